"""Command lines that are given an odd file: what they may say, what they may leave behind."""

from __future__ import annotations

import io
import traceback
import unicodedata
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import click
from click.testing import CliRunner

from kreassign.cli.main import kreassign
from tests.campaigns.campaign import BrokenError

REFUSALS = {1, 2, 3, 4, 5, 6}
SAYS_WHERE = (
    "the plan cannot be executed:", "the placement of ", "no topic matches ", "consumer-racks: ", "leader-racks: ",
    "least-topic-leaders: ", "broker-sets: ", "broker-capacity: ", "rack-prices: ",
    "no process executes run", "there is nothing to ", "a fault names ",
)  # fmt: skip
"""What is said of a file that is whole, and whose partitions, topics, racks or brokers are not in the cluster; and of a
run that nobody executes."""


def files_in(folder: Path) -> dict[str, bytes]:
    """Files in a folder, without write-ahead logs, which a reader of SQLite may make."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith(("-wal", "-shm"))
    }


def command(words: Sequence[str], odd: Path, *, also: tuple[int, ...] = (), called: click.Command = kreassign) -> bool:
    """Call kreassign with an odd file: whether it did what it was asked. Raises BrokenError.

    A refusal is one line that begins with `error:`, names the file where it is to blame, and leaves nothing behind.
    `also` are codes with which the command says something else than that it failed.
    """
    before = files_in(odd.parent)
    result = CliRunner().invoke(called, list(words))
    said = f"`kreassign {' '.join(words)}` ended with {result.exit_code}: {result.output[-1500:]}"
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        told = "".join(traceback.format_exception(result.exception))
        raise BrokenError(f"{said}\n{told[-3_000:]}")
    if found := unfit(result.output):
        raise BrokenError(f"{said}\nhas a character that controls a terminal: {found}")
    if result.exit_code in {0, *also}:
        return True
    errors = [line for line in result.stderr.splitlines() if line.lower().startswith("error:")]
    if result.exit_code not in REFUSALS or len(errors) != 1:
        raise BrokenError(f"{said}\nis no refusal in one line")
    if result.exit_code == 2 and odd.name not in result.stderr and not any(text in errors[0] for text in SAYS_WHERE):
        raise BrokenError(f"{said}\ndoes not name the file")
    # What an import refuses row by row stays in its quarantine.
    if files_in(odd.parent) != before and "nothing is there to store" not in errors[0]:
        raise BrokenError(f"{said}\nleaves files behind")
    return False


def tool(main: Callable[[Sequence[str]], int], words: Sequence[str]) -> bool:
    """Call one of the drop-in tools: whether it did what it was asked. Raises BrokenError, or what the tool raises."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(words)
    said = out.getvalue() + err.getvalue()
    if code not in {0, 1} or "Traceback" in said:
        raise BrokenError(f"ended with {code}: {said[-1500:]}")
    if found := unfit(said):
        raise BrokenError(f"has a character that controls a terminal: {found}")
    if code and not said.strip():
        raise BrokenError("refuses without a word")
    return code == 0


# --- terminals, judged without the code that sees to them ------------------------------------------------------------

_LINES = {"\n", "\t"}
_MARKS_OF_DIRECTION = {"\u061c", "\u200e", "\u200f", *map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A)))}
_ENDS_OF_LINES = {"\u2028", "\u2029"}


def unfit(text: str) -> str:
    """The first character that may make a terminal lie, and its surroundings; "" if there is none."""
    for at, one in enumerate(text):
        is_control = unicodedata.category(one) in {"Cc", "Cs"} and one not in _LINES
        if is_control or one in _MARKS_OF_DIRECTION or one in _ENDS_OF_LINES:
            return repr(text[max(0, at - 30) : at + 30])
    return ""
