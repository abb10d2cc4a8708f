"""Where a Debian release's backports suite is, judged by the apt sources a machine already uses.

Prints a deb822 stanza for ``<codename>-backports`` on the same mirror with the same trust, or
nothing when a source already names that suite. Standard library only: it runs before any
environment exists.

    python3 scripts/lib/apt_backports.py bookworm
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

#: One source: field names in lower case, e.g. ``{"types": "deb", "uris": "...", "suites": ...}``.
Source = dict[str, str]

#: What decides whether apt trusts a mirror goes along with its address.
TRUST_FIELDS = {"signed-by": "Signed-By", "trusted": "Trusted"}
ONE_LINE = re.compile(
    r"^deb\s+(?:\[(?P<options>[^\]]*)\]\s+)?(?P<uri>\S+)\s+(?P<suite>\S+)(?P<rest>.*)"
)


def parse_one_line(text: str) -> Iterator[Source]:
    """The ``deb [options] uri suite component...`` format of ``*.list`` files."""
    for line in text.splitlines():
        match = ONE_LINE.match(line.split("#", 1)[0].strip())
        if match is None:
            continue
        options = (item.partition("=") for item in (match["options"] or "").split())
        yield {
            **{name.lower(): value for name, _, value in options},
            "types": "deb",
            "uris": match["uri"],
            "suites": match["suite"],
            "components": match["rest"].strip(),
        }


def parse_deb822(text: str) -> Iterator[Source]:
    """The stanzas of ``*.sources`` files; an embedded key keeps its continuation lines."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    for stanza in re.split(r"\n\s*\n", "\n".join(lines)):
        source: Source = {}
        name = ""
        for line in stanza.splitlines():
            if line[:1].isspace() and name:
                source[name] += "\n" + line
            elif ":" in line:
                name, value = line.split(":", 1)
                name = name.strip().lower()
                source[name] = value.strip()
        enabled = source.get("enabled", "yes").lower() != "no"
        if enabled and "deb" in source.get("types", "").split():
            yield source


def backports_stanza(sources: Iterable[Source], codename: str) -> str | None:
    """The stanza to add; empty when the suite is there already; None when no mirror is known."""
    known = list(sources)
    wanted = f"{codename}-backports"
    if any(wanted in source["suites"].split() for source in known):
        return ""
    for source in known:
        if codename in source["suites"].split() and "main" in source["components"].split():
            fields = {
                "Types": "deb",
                "URIs": source["uris"],
                "Suites": wanted,
                "Components": "main",
                **{title: source[name] for name, title in TRUST_FIELDS.items() if name in source},
            }
            return "".join(f"{name}: {value}\n" for name, value in fields.items())
    return None


def read_sources(apt: Path) -> Iterator[Source]:
    """Every source that apt reads under ``apt`` (``/etc/apt``)."""
    for path in [apt / "sources.list", *sorted((apt / "sources.list.d").glob("*"))]:
        if path.is_file() and path.suffix == ".list":
            yield from parse_one_line(path.read_text())
        elif path.is_file() and path.suffix == ".sources":
            yield from parse_deb822(path.read_text())


def main(codename: str, apt: str = "/etc/apt") -> int:
    stanza = backports_stanza(read_sources(Path(apt)), codename)
    if stanza is None:
        print(f"{codename}-backports: no mirror of {codename} in {apt}; add it", file=sys.stderr)
        return 2
    print(stanza, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
