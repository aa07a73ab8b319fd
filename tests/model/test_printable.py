"""Texts from elsewhere as shown: all readable parts, and nothing that a terminal would obey."""

from __future__ import annotations

import io
import json
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kreassign.model.text import PrintableStream, printable, shortened

ANY_TEXT = st.text(st.characters(categories=["L", "N", "P", "S", "Z", "C"]))


@pytest.mark.parametrize(("text", "shown"), [
    ("\x1b[2J\x1b[31mall is well", r"\u001b[2J\u001b[31mall is well"),
    ("100 %\rdone", r"100 %\u000ddone"),
    ("\x9b2J", r"\u009b2J"),
    ("a\x00b\x7f", r"a\u0000b\u007f"),
    ("user\u202egnp.exe", r"user\u202egnp.exe"),
    ("half \ud800 of a pair", r"half \ud800 of a pair"),
])  # fmt: skip
def test_what_deceives_is_shown_by_its_number(text: str, shown: str) -> None:
    assert printable(text) == shown


@pytest.mark.parametrize("text", ["", "two\nlines\tand a tab", "größer → 東京 🙂", "a\\u001b as it was written"])
def test_any_other_text_stays_as_it_is(text: str) -> None:
    assert printable(text) == text


@given(ANY_TEXT)
def test_nothing_shown_controls_a_terminal_or_cannot_be_encoded(text: str) -> None:
    shown = printable(text)
    shown.encode()
    assert not {unicodedata.category(one) for one in shown.replace("\n", "").replace("\t", "")} & {"Cc", "Cs"}
    assert printable(shown) == shown


@given(st.dictionaries(ANY_TEXT, ANY_TEXT))
def test_json_stays_the_same_json(document: dict[str, str]) -> None:
    assert json.loads(printable(json.dumps(document, ensure_ascii=False))) == document


def test_a_stream_shows_only_printable_text_and_offers_no_way_around() -> None:
    below = io.StringIO()
    stream = PrintableStream(below)
    assert stream.write("a\x1b[1mb\n") == 7
    stream.flush()
    assert below.getvalue() == "a\\u001b[1mb\n"
    assert not hasattr(stream, "buffer")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
@pytest.mark.parametrize("errors", ["strict", "surrogateescape"])
def test_an_output_without_unicode_gets_other_signs(encoding: str, errors: str) -> None:
    below = io.BytesIO()
    stream = PrintableStream(io.TextIOWrapper(below, encoding, errors))
    stream.write("0 → 1 █▒░ … 東🙂\n")
    stream.flush()
    assert below.getvalue() == b"0 -> 1 #+- ... \\u6771\\ud83d\\ude42\n"
    assert json.loads(f'"{below.getvalue().decode().split()[-1]}"') == "東🙂"


def test_a_stream_is_as_the_one_below_for_those_who_ask(tmp_path: Path) -> None:
    with (tmp_path / "out").open("w", encoding="latin-1", errors="replace") as below:
        stream = PrintableStream(below)
        assert (stream.inner, stream.encoding, stream.errors) == (below, "latin-1", "replace")
        assert (stream.isatty(), stream.fileno()) == (False, below.fileno())
        stream.write("a\x1b→")
        stream.flush()
        assert (tmp_path / "out").read_text(encoding="latin-1") == "a\\u001b?"


@pytest.mark.parametrize(("length", "shown"), [(0, ""), (39, "x" * 39), (40, "x" * 40), (41, f"{'x' * 40}…")])
def test_a_text_that_is_too_long_for_a_message_is_cut(length: int, shown: str) -> None:
    assert shortened("x" * length) == shown
