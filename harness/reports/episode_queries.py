"""The SQL of ``episode_table``: which row of an episode counts, and what is selected.

Promises: the row that counts is the greatest by ``records.count_key``.
"""

from __future__ import annotations

from harness.reports.row_queries import LINES
from harness.stopwatch import PARTS

#: ``best``: the row that counts of each episode, how many rows it has, whether any is an outcome.
#: ``places``: the distinct cells of rows. ``episodes``: those with an outcome; one counts
#: that is selected, or of whose cell nothing is sealed.
TABLES = """
CREATE TABLE sealed (manifest UBIGINT, selected BIGINT, rank BIGINT);
CREATE TABLE repeated (manifest UBIGINT, position BIGINT);
CREATE TABLE places (place UBIGINT, is_sealed BOOLEAN);
CREATE TABLE best (
  id BIGINT, tried BIGINT, settled BOOLEAN, manifest UBIGINT, position BIGINT
);
CREATE TABLE episodes (
  place UBIGINT, seed BIGINT, success BOOLEAN, hard_success BOOLEAN, collision BOOLEAN,
  position BIGINT, manifest UBIGINT, video VARCHAR, rank BIGINT, tried BIGINT,
  is_selected BOOLEAN, counts BOOLEAN
);
INSERT INTO texts VALUES (hash(''), [''], false);
"""
CLEAR = "".join(
    f"DELETE FROM {table};" for table in ("sealed", "repeated", "places", "best", "episodes")
)
SEALED = f"INSERT INTO sealed SELECT hash(v[1]), v[2]::BIGINT, v[3]::BIGINT FROM {LINES}"
REPEATED = f"INSERT INTO repeated SELECT hash(v[1]), v[2]::BIGINT FROM {LINES}"

CURRENT = """
FROM rows LEFT JOIN floors USING (manifest, position) WHERE attempt > coalesce(floor, 0)
"""
# One number in the order of ``records.count_key``: comparing rows would keep each in memory.
_KEY = """
(success IS NOT NULL)::INT::HUGEINT * (1::HUGEINT << 100) + (attempt::HUGEINT << 32) + nth
"""
BEST = f"""
INSERT INTO best
SELECT max_by(id, key), count(*), bool_or(success IS NOT NULL), manifest, position FROM (
  SELECT rows.rowid AS id, manifest, position, success, {_KEY} AS key
  FROM rows JOIN (
    SELECT code AS worker, row_number() OVER (ORDER BY words[1]) AS nth
    FROM texts SEMI JOIN (SELECT DISTINCT worker AS code FROM rows) USING (code)
  ) USING (worker)
  LEFT JOIN floors USING (manifest, position) WHERE attempt > coalesce(floor, 0)
) GROUP BY manifest, position
"""

PLACES = """
SELECT code, words FROM texts SEMI JOIN (SELECT DISTINCT place AS code FROM rows) USING (code)
"""
PLACED = f"INSERT INTO places SELECT v[1]::UBIGINT, v[2]::BOOLEAN FROM {LINES}"
#: The code of a place whose texts no row holds.
PLACE = "SELECT hash(?, ?, ?)"
EPISODES = """
INSERT INTO episodes
SELECT * EXCLUDE (is_sealed), is_selected OR NOT is_sealed FROM (
  SELECT place, seed, success, hard_success, collision, rows.position, rows.manifest, video, rank,
    tried, rows.position < coalesce(selected, 0) AND repeated.position IS NULL AS is_selected,
    is_sealed
  FROM rows JOIN best ON rows.rowid = best.id JOIN places USING (place)
  LEFT JOIN sealed ON sealed.manifest = rows.manifest
  LEFT JOIN repeated ON repeated.manifest = rows.manifest AND repeated.position = rows.position
  WHERE settled
)
"""
ADDED = f"""
INSERT INTO episodes SELECT v[1]::UBIGINT, v[2]::BIGINT, v[3]::BOOLEAN, v[4]::BOOLEAN,
  v[5]::BOOLEAN, 0, hash(''), v[6], NULL, 1, false, true FROM {LINES}
"""

TALLIES = """
SELECT place, count(*), count(*) FILTER (success), count(*) FILTER (hard_success),
  count(hard_success), count(*) FILTER (collision), count(collision)
FROM episodes WHERE counts GROUP BY place
"""
LOOSE = "SELECT DISTINCT place FROM episodes WHERE counts AND NOT is_selected"
STRAYS = "SELECT coalesce(sum(tried), 0) FROM episodes WHERE NOT counts"
#: Outcomes of episodes that have another one, which counts.
REPEATS = f"""
SELECT (SELECT count(*) {CURRENT} AND success IS NOT NULL)
  - (SELECT count(*) FROM best WHERE settled)
"""
MISSING = """
SELECT rank, position
FROM (SELECT manifest, rank, unnest(range(selected)) AS position FROM sealed)
ANTI JOIN best USING (manifest, position) ANTI JOIN repeated USING (manifest, position)
ORDER BY rank, position
"""
ERRORS = """
SELECT of_manifest.words[1], position, attempt, of_worker.words[1],
  of_host.words[1],
  of_place.words[1], of_place.words[2], of_place.words[3], seed, error, tried
FROM rows JOIN best USING (manifest, position) LEFT JOIN floors USING (manifest, position)
JOIN texts AS of_manifest ON of_manifest.code = manifest
JOIN texts AS of_place ON of_place.code = place
JOIN texts AS of_worker ON of_worker.code = worker
JOIN texts AS of_host ON of_host.code = host
WHERE NOT settled AND attempt > coalesce(floor, 0)
"""

#: The seconds of each part, null where nobody measured it.
PROFILES = f"""
SELECT place, {", ".join(f"sum(profile.{part})::DOUBLE" for part in PARTS)} {CURRENT} GROUP BY place
"""
IDENTITIES = f"""
SELECT words FROM texts SEMI JOIN (SELECT DISTINCT identity AS code {CURRENT}) USING (code)
"""

#: The manifests of episodes: their codes and hashes.
MANIFESTS = """
SELECT code, words[1]
FROM texts SEMI JOIN (SELECT DISTINCT manifest AS code FROM episodes) USING (code)
"""


def ordered(what: str, more: str) -> str:
    """``what`` of the counted episodes of the places ``$places`` and manifests ``$manifests``, two
    lists of codes, in the order of a report. An episode has the numbers of both (``place_nr``
    and ``manifest_nr``, from 1) instead of their texts, which would be sorted with it.

    Args:
        more: another condition, after an AND, or "".
    """
    return f"""
SELECT {what} FROM (
  SELECT place_nr, seed, success, hard_success, collision, position, manifest_nr, video
  FROM episodes JOIN ({_numbered("place")}) USING (place)
  JOIN ({_numbered("manifest")}) USING (manifest)
  WHERE counts {more}
  ORDER BY place_nr, seed, position, rank NULLS LAST, manifest
)
"""


def _numbered(code: str) -> str:
    listed = f"""from_json(${code}s, '["UBIGINT"]')"""
    return f"SELECT unnest({listed}) AS {code}, generate_subscripts({listed}, 1) AS {code}_nr"


EPISODE = "place_nr, seed, success, hard_success, collision, position, manifest_nr, video"
#: An episode as JSON; ``$heads`` and ``$hashes`` are texts for the numbers.
EPISODE_JSON = """
concat(from_json($heads, '["VARCHAR"]')[place_nr], ', "seed": ', seed, ', "success": ', success,
  ', "hard_success": ', coalesce(hard_success::VARCHAR, 'null'),
  ', "collision": ', coalesce(collision::VARCHAR, 'null'), ', "position": ', position,
  ', "manifest": ', from_json($hashes, '["VARCHAR"]')[manifest_nr],
  ', "video": ', coalesce(to_json(video)::VARCHAR, 'null'), '}')
"""
