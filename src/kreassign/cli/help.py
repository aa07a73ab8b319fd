"""How help looks: what the command does, examples, and then its options, in groups where they are many.

click writes options in one list and examples at the end, where nobody scrolls to. Its formatter is ours to choose, so
that commands need not know.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import click

MANY = 12
"""From so many options on they stand in groups."""

OTHERS = "Options"
GROUPS = {
    "Cluster": ("--bootstrap-server", "--bootstrap-controller", "--command-config", "--lease", "--cluster"),
    "Loads": ("--data", "--snapshot", "--as-of", "--by", "--require-load", "--max-load-age"),
    "Throttle": ("--throttle", "--throttle-broker", "--broker-capacity", "--throttle-floor", "--adopt", "--alongside"),
    "Safety": ("--dry-run", "--yes", "--guard", "--expect-current", "--replan", "--stepwise", "--disk-reserve"),
    "Hours": ("--window", "--time-zone", "--deadline", "--at-window-end"),
    "Order and limits": (
        "--order", "--start", "--elections-per-step", "--max-moves", "--max-moves-per-broker", "--max-moves-per-source",
        "--max-moves-per-destination", "--max-moves-per-log-dir", "--max-bytes", "--max-bytes-per-broker",
        "--max-bytes-per-source", "--max-bytes-per-destination", "--max-bytes-per-log-dir",
    ),
    "Goals": (
        "--goals-file", "--goal", "--tolerance", "--racks", "--exclude-topics", "--exclude-brokers", "--rack-price",
        "--groups", "--transactional-ids", "--share-groups",
    ),
    "Budget": ("--budget-bytes", "--budget-moves", "--max-leader-changes", "--fit-in", "--rate"),
    "Search": ("--on", "--parts", "--seed", "--master", "--conf"),
    "Output": ("--out", "--current-out", "--out-dir", "--wide", "--explain", "--format"),
}  # fmt: skip
_GROUP_OF = {option: group for group, options in GROUPS.items() for option in options}
_EXAMPLES = re.compile(r"\n  Examples:\n(?:    .*\n?)+")
_FIRST_LIST = re.compile(r"^(?:Positional arguments|Commands|Options|[A-Z][a-z ]+):$", re.MULTILINE)

Row = tuple[str, str]


class Formatter(click.HelpFormatter):
    """Writes options in groups, and examples before them."""

    def __init__(self, indent_increment: int = 2, width: int | None = None, max_width: int | None = None) -> None:
        super().__init__(indent_increment, width, max_width)
        self._heading = ""

    def write_heading(self, heading: str) -> None:
        """Write a heading, but for that of options, which their groups have of their own."""
        self._heading = heading
        if heading != OTHERS:
            super().write_heading(heading)

    def write_dl(self, rows: Iterable[Row], col_max: int = 30, col_spacing: int = 2) -> None:
        """Write a list, of options by their groups."""
        rows = list(rows)
        if self._heading != OTHERS:
            super().write_dl(rows, col_max, col_spacing)
            return
        self._heading = ""
        grouped = list(by_group(rows)) if len(rows) >= MANY else [(OTHERS, rows)]
        for number, (group, members) in enumerate(grouped):
            if number:
                self.write_paragraph()
            self.dedent()
            super().write_heading(group)
            self.indent()
            super().write_dl(members, col_max, col_spacing)

    def getvalue(self) -> str:
        """All that was written, with the examples before the first list."""
        text = super().getvalue()
        examples, lists = _EXAMPLES.search(text), _FIRST_LIST.search(text)
        if examples is None or lists is None or examples.start() < lists.start():
            return text
        rest = f"{text[lists.start() : examples.start()].rstrip()}\n"
        return f"{text[: lists.start()]}{examples[0].strip(chr(10))}\n\n{rest}"


def by_group(rows: Iterable[Row]) -> Iterator[tuple[str, list[Row]]]:
    """The options of each group that has any, the groups in their order; those of none first."""
    found: dict[str, list[Row]] = {group: [] for group in (OTHERS, *GROUPS)}
    for row in rows:
        names = re.findall(r"--[a-z-]+", row[0])
        found[next((_GROUP_OF[name] for name in names if name in _GROUP_OF), OTHERS)].append(row)
    return ((group, members) for group, members in found.items() if members)
