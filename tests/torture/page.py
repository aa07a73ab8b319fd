"""Sections of a page that a command writes by itself, between two marks, with machine and day."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "torture.md"


def conditions(command: str, day: datetime | None = None) -> str:
    """By what a table was made, when and on what: the sentence above it."""
    day = day or datetime.now(UTC)
    cores, load = os.cpu_count() or 1, os.getloadavg()[0]
    return f"`{command}`, on {day.day} {day:%B %Y}; {cores} cores, load at the end {load:.0f}:"


def with_section(page: str, name: str, text: str) -> str:
    """A page with this text in the section of that name; ValueError where the page has no such section."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    before, mark, rest = page.partition(begin)
    _, closing, after = rest.partition(end)
    if not mark or not closing:
        raise ValueError(f"the page has no section between {begin} and {end}")
    return f"{before}{begin}\n{text.strip()}\n{end}{after}"


def write_section(name: str, text: str, page: Path = PAGE) -> None:
    """Put it there."""
    page.write_text(with_section(page.read_text(encoding="utf-8"), name, text), encoding="utf-8")
