#!/usr/bin/env python3
"""Write docs/reference/twin-omissions.md from the headers of the twin's handlers.

python scripts/twin_omissions_page.py
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from kreassign.model.error_codes import error_code
from kreassign.twin.api.handlers import HANDLERS
from kreassign.twin.api.request import Handler
from kreassign.twin.refused import REFUSED
from kreassign.twin.version import NOT_OFFERED, RELEASES
from kreassign.wire import api

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "twin-omissions.md"

_HEAD = """\
# What the twin leaves out

The Kafka APIs that a [twin](kreassign.md#kreassign-twin) answers, in which versions, and what each does not do. There
are no records: nothing can be produced or fetched, sizes and offsets are computed. What it does not do at all is
[refused](#what-is-refused).

This page is written by `python scripts/twin_omissions_page.py` from the headers of the handlers in
`src/kreassign/twin/api/`, and from `refused.py` and `api_versions.json` in `src/kreassign/twin/`; change those instead.
"""
_REFUSED = """\
## What is refused

Each item of these requests is answered at once with an error after which no client asks again:

| API | Error | Says | In ApiVersions |
|---|---|---|---|
"""
_NOT_OFFERED = """
What is not in ApiVersions, clients do without, or say that brokers do not support it. These are not answered either:
the connection of a client that asks all the same is closed, as by a broker that does not know the API.

| API | Why |
|---|---|
"""
_NO_KAFKAS = {known.key for known in api.KIP_179_APIS}
_SECTIONS = ("Behaviour:", "Left out:")


class Header(NamedTuple):
    """Parts of a handler's documentation; `permission` without its label."""

    name: str
    summary: str
    permission: str
    behaviour: tuple[str, ...]
    left_out: tuple[str, ...]


def header(text: str) -> Header:
    """The parts of a documentation string; ValueError where one is missing."""
    first, *rest = text.strip().splitlines()
    name, colon, summary = first.partition(": ")
    if not colon or not any(line.startswith("Permission: ") for line in rest):
        raise ValueError(f"{first!r} does not begin a header: give name and Permission")
    lists = {section: tuple(_items(rest, section)) for section in _SECTIONS}
    if not all(lists.values()):
        raise ValueError(f"{first!r} must list its behaviour and what is left out")
    return Header(name, summary, _paragraph(rest, "Permission: "), *lists.values())


def offered(api_key: int) -> str:
    """The versions of an API by release, as `0-1 on 3.7; 0-2 on 3.9, 4.2, 4.3`."""
    if api_key in _NO_KAFKAS:
        return "0, if the twin was started with KIP-179"
    ranges = [(release.versions(api_key), release.name) for release in RELEASES]
    groups = [
        (versions, [name for _, name in members]) for versions, members in groupby(ranges, key=lambda pair: pair[0])
    ]
    if len(groups) == 1:
        return str(groups[0][0])
    return "; ".join(f"{versions or 'none'} on {', '.join(names)}" for versions, names in groups)


def omissions_page(handlers: tuple[Handler, ...] = HANDLERS) -> str:
    """The page in Markdown."""
    sections = (_section(handler) for handler in sorted(handlers, key=lambda one: one.api.key))
    return "\n".join([_HEAD, *sections, refusals()])


def refusals() -> str:
    """The tables of what is refused and of what is not offered."""
    refused = (
        f"| {row.api.name} ({row.api.key}) | {error_code(row.code)} | {row.text} | "
        f"{'yes' if row.is_listed else 'no'} |\n"
        for row in REFUSED
    )
    others = (f"| {name} ({key}) | {why} |\n" for key, (name, why) in NOT_OFFERED.items())
    return "".join([_REFUSED, *refused, _NOT_OFFERED, *others])


def documented(handler: Handler) -> Header:
    """The header of a handler, which is its documentation."""
    return header(inspect.cleandoc(handler.handle.__doc__ or ""))


def main() -> None:
    """Write the page."""
    PAGE.write_text(omissions_page(), encoding="utf-8")


def _section(handler: Handler) -> str:
    said = documented(handler)
    lines = [
        f"## {said.name} ({handler.api.key})",
        "",
        said.summary[0].upper() + said.summary[1:],
        "",
        f"Versions: {offered(handler.api.key)}. Permission: {said.permission}",
        "",
        *(f"- {item}" for item in said.left_out),
        "",
    ]
    return "\n".join(lines)


def _items(lines: list[str], section: str) -> Iterator[str]:
    """The items of the list below a line, each joined to one line."""
    if section not in lines:
        return
    item = ""
    for line in lines[lines.index(section) + 1 :]:
        if not line.strip():
            break
        if line.startswith("- ") and item:
            yield item
            item = ""
        item = f"{item} {line.removeprefix('- ').strip()}".strip()
    if item:
        yield item


def _paragraph(lines: list[str], label: str) -> str:
    """Text after a label, up to the next empty line."""
    start = next(number for number, line in enumerate(lines) if line.startswith(label))
    end = next((number for number in range(start, len(lines)) if not lines[number].strip()), len(lines))
    return " ".join(line.strip() for line in lines[start:end]).removeprefix(label)


if __name__ == "__main__":
    main()
