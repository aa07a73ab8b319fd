"""Sentences on a terminal: broken at words at its width, commands whole; one line each in a pipe."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from rich.table import Column

from kreassign.cli.output import PlainConsole, figures, names, text_table
from kreassign.cli.streams import TerminalStream, folded

COMMAND = f"kreassign resume 20261127T211345Z-dcbe --state-dir /{'long/' * 20}"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("line", "shown"), [
    ("a short line", ["a short line"]),
    (f"{'word ' * 20}end", [("word " * 16).rstrip(), "  word word word word end"]),
    (f"  {'word ' * 20}end", [f"  {('word ' * 15).rstrip()}", "    word word word word word end"]),
    (f"next: {COMMAND}", [f"next: {COMMAND}"]),
    (f"    {COMMAND}", [f"    {COMMAND}"]),
    (f"to restore it: {COMMAND}", ["to restore it:", f"  {COMMAND}"]),
    (f"{'word ' * 12}then `{COMMAND}`, and wait", [("word " * 12).rstrip() + " then", f"  `{COMMAND}`,", "  and wait"]),
    (f"{'word ' * 14}a rate of 20.5 MB/s, and on", [("word " * 14) + "a rate of", "  20.5 MB/s, and on"]),
    ("x" * 200, ["x" * 200]),
    ("", [""]),
])  # fmt: skip
def test_a_line_is_broken_at_words_and_commands_stay_whole(line: str, shown: list[str]) -> None:
    assert folded(line, 80).split("\n") == shown


def test_streams_and_consoles_fold_on_terminals_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    sentence = f"{'word ' * 30}end"
    for make, is_folded in ((Terminal, True), (io.StringIO, False)):
        stream = make()
        TerminalStream(stream).write(f"{sentence}\n")
        of_console = make()
        PlainConsole(of_console, width=60).print(sentence)
        for written in (stream.getvalue(), of_console.getvalue()):
            assert " ".join(written.split()) == sentence
            assert (max(map(len, written.splitlines())) <= 60, written.count("\n") == 1) == (is_folded, not is_folded)


@pytest.mark.parametrize(("width", "shown"), [
    (60, ["run                    started                  moves",
          "20261128T052720Z-00c4  2026-11-28 05:27:20 UTC     29"]),
    (36, ["run: 20261128T052720Z-00c4", "  started: 2026-11-28 05:27:20 UTC", "  moves: 29"]),
])  # fmt: skip
def test_a_table_that_would_break_words_is_a_block_of_lines_per_row(width: int, shown: list[str]) -> None:
    columns = [Column("run", no_wrap=True), *names("started"), *figures("moves")]
    out = io.StringIO()
    PlainConsole(out, width=width).print(
        text_table(columns, [("20261128T052720Z-00c4", "2026-11-28 05:27:20 UTC", "29")])
    )
    assert out.getvalue().splitlines() == shown


def test_an_error_on_a_terminal_of_80_columns_is_broken_at_words(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "kreassign", "status", "20261127T211345Z-dcbe", "--state-dir", str(tmp_path)]
    piped = subprocess.run(command, capture_output=True, text=True, check=False).stderr.splitlines()
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": "80"}
    subprocess.run(command, stdout=theirs, stderr=theirs, stdin=subprocess.DEVNULL, check=False, env=environment)
    shown = os.read(ours, 10_000).decode().splitlines()
    os.close(ours)
    os.close(theirs)
    assert max(map(len, piped)) > 80
    assert " ".join(" ".join(shown).split()) == " ".join(piped)
    assert all(len(line) <= 80 or " " not in line.strip() for line in shown), shown
