"""Approved screens: what a user sees, in a file beside the test that compares it.

A screen is several lines: the output of a command, a page, a help text, a document, the story of a run. It is in
`approved/NAME.txt`, in the folder of the test. `make approve` writes the files of all screens that have changed, and
`git diff` shows what changed for users. What differs between machines or runs is replaced by its name before comparing.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDER = "approved"
RENEWS = "KREASSIGN_APPROVE"
"""The variable by which `make approve` has screens written instead of compared."""
Part = str | int | Path | re.Pattern[str]
DAYS = re.compile(r"\d+(?= days ago)")
"""How long the loads of a plan are in the past today."""


def approve(screen: str | Iterable[object], name: str, **parts: Part) -> None:
    """Compare a text, or lines, with `approved/NAME.txt` (or NAME, if it has a suffix) beside the test that runs.

    Parts get the names by which they are given: `DIR=tmp_path` shows <DIR> for it.
    """
    __tracebackhide__ = True
    test, *_ = os.environ["PYTEST_CURRENT_TEST"].split("::")
    text = screen if isinstance(screen, str) else "".join(f"{line}\n" for line in screen)
    compare(named(text, parts), (ROOT / test).parent / FOLDER / (name if "." in name else f"{name}.txt"))


def named(text: str, parts: Mapping[str, Part]) -> str:
    """Replace each part by its name in angle brackets, in the order in which they are given."""
    for name, part in parts.items():
        text = re.sub(part if isinstance(part, re.Pattern) else re.escape(str(part)), f"<{name}>", text)
    return text


def compare(text: str, file: Path) -> None:
    """Fail with the difference and the command that renews the file; write it where that was asked for."""
    __tracebackhide__ = True
    if os.environ.get(RENEWS):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
    before = file.read_bytes().decode() if file.exists() else None
    if text == before:
        return
    path = file.relative_to(ROOT) if file.is_relative_to(ROOT) else file
    lines = (before or "").splitlines(), text.splitlines()
    difference = difflib.unified_diff(*lines, f"approved: {path}", "shown now", lineterm="")
    pytest.fail("\n".join([*difference, "", "If users are to see it so: make approve"]), pytrace=False)
