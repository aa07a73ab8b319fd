"""Sections of docs/reference/torture.md that campaigns write, between two marks, with command, day and machine."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import click

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "torture.md"


def conditions(command: str, day: datetime | None = None) -> str:
    """The sentence above a table: its command, its day and its machine."""
    day = day or datetime.now(UTC)
    cores, load = os.cpu_count() or 1, os.getloadavg()[0]
    return f"`{command}`, on {day.day} {day:%B %Y}; {cores} cores, load at the end {load:.0f}:"


def with_section(page: str, name: str, text: str) -> str:
    """Replace the text of a section; ValueError where the page has no section of that name."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    before, mark, rest = page.partition(begin)
    _, closing, after = rest.partition(end)
    if not mark or not closing:
        raise ValueError(f"the page has no section between {begin} and {end}")
    return f"{before}{begin}\n{text.strip()}\n{end}{after}"


def report(section: str, command: str, text: str, *, is_broken: bool, writes: bool = True, page: Path = PAGE) -> None:
    """Print a table and write it into its section of the page; SystemExit with code 1 if a promise was broken."""
    click.echo(text)
    if writes:
        whole = with_section(page.read_text(encoding="utf-8"), section, f"{conditions(command)}\n\n{text}")
        page.write_text(whole, encoding="utf-8")
    if is_broken:
        raise SystemExit(1)
