"""The backports suite is taken from the mirror, and the trust, that the machine already uses."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts.lib.apt_backports import backports_stanza, main, parse_deb822, parse_one_line

DEB822 = """\
Types: deb
# a snapshot's address was here
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://mirror.example/debian-security
Suites: bookworm-security
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
"""

STANZA = """\
Types: deb
URIs: http://mirror.example/debian
Suites: bookworm-backports
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
"""


def test_deb822_with_a_comment_inside_a_stanza() -> None:
    assert backports_stanza(parse_deb822(DEB822), "bookworm") == STANZA


def test_one_line_with_options() -> None:
    text = """
# deb http://commented.example/debian bookworm main
deb-src http://mirror.example/debian bookworm main
deb [arch=amd64 signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] \
http://mirror.example/debian bookworm main contrib # ours
"""
    assert backports_stanza(parse_one_line(text), "bookworm") == STANZA


def test_one_line_without_options_names_no_key() -> None:
    stanza = backports_stanza(parse_one_line("deb file:/srv/debian bookworm main"), "bookworm")
    assert stanza == (
        "Types: deb\nURIs: file:/srv/debian\nSuites: bookworm-backports\nComponents: main\n"
    )


def test_an_embedded_key_keeps_its_lines() -> None:
    key = " -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n mDMEYCQjIxYJKwYBBAHaRw8BAQdAD"
    text = f"Types: deb\nURIs: u\nSuites: trixie\nComponents: main\nSigned-By:\n{key}\n"
    stanza = backports_stanza(parse_deb822(text), "trixie")
    assert stanza is not None
    assert stanza.endswith(f"\n{key}\n")


@pytest.mark.parametrize("text", [DEB822 + "\n" + STANZA, STANZA])
def test_a_suite_that_is_there_is_not_added_again(text: str) -> None:
    assert backports_stanza(parse_deb822(text), "bookworm") == ""


@pytest.mark.parametrize(
    "text",
    [
        "",
        DEB822.replace("bookworm", "trixie"),
        DEB822.replace("Types: deb\n", "Types: deb-src\n"),
        DEB822.replace("Types: deb\n", "Types: deb\nEnabled: no\n"),
        DEB822.replace("Components: main\n", "Components: contrib\n"),
    ],
)
def test_no_mirror_of_the_release(text: str) -> None:
    assert backports_stanza(parse_deb822(text), "bookworm") is None


words = st.text("abcdefghijklmnopqrstuvwxyz0123456789-", min_size=1, max_size=12)


@given(uri=words, codename=words, key=st.none() | words, extra=st.lists(words, max_size=3))
def test_both_formats_say_the_same(
    uri: str, codename: str, key: str | None, extra: list[str]
) -> None:
    option, field = (f"[signed-by=/{key}] ", f"Signed-By: /{key}\n") if key else ("", "")
    rest = " ".join(["main", *extra])
    line = f"deb {option}http://{uri} {codename} {rest}"
    stanza = f"Types: deb\nURIs: http://{uri}\nSuites: {codename}\nComponents: {rest}\n{field}"
    made = backports_stanza(parse_one_line(line), codename)
    assert made == backports_stanza(parse_deb822(stanza), codename)
    assert made is not None
    # What was made is itself a source that apt would read, so the second time nothing is added.
    assert backports_stanza(parse_deb822(made), codename) == ""


def test_reads_what_apt_reads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parts = tmp_path / "sources.list.d"
    parts.mkdir()
    (tmp_path / "sources.list").write_text("# moved to sources.list.d\n")
    (parts / "old.sources.disabled").write_text(STANZA)
    (parts / "debian.sources").write_text(DEB822)
    assert main("bookworm", str(tmp_path)) == 0
    assert capsys.readouterr().out == STANZA
    assert main("trixie", str(tmp_path)) == 2
    assert capsys.readouterr().out == ""
