"""Tests that a suite leaves to a longer one: the table tests/suites.toml, read while tests are collected.

One table and not marks in a hundred files, so that what a change must pass is seen, weighed and checked in one place:
tests/test_suites.py holds that every promise and every row of a design document keeps a test in `make test`.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

TABLE = Path(__file__).with_name("suites.toml")
LEFT_TO = "--left-to"
SECTIONS = ("thorough", "exhaustive")
"""Marks of what `make test-fast` leaves to `make test`, and of what that leaves to `make test-all`."""
LONG = ("thorough", "kafka", "spark", "browser")
"""Marks of tests that are not quick."""


@dataclass(frozen=True, slots=True)
class Row:
    """Tests that are left to the longer suite, with the reason; `but` are cases of theirs that are not.

    `tests` are a folder, a file, or a test of a file. With `only`, cases that do not begin with it are not left either;
    with `partly`, those are as good, so that the test as a whole is not left. With `one_in`, one in so many cases of
    each test is not left, the first among them; of a folder or a file only tests that are not quick have fewer cases.
    """

    why: str
    tests: tuple[str, ...]
    but: frozenset[str] = frozenset()
    only: str = ""
    partly: bool = False
    one_in: int = 0

    def has(self, test: str) -> bool:
        """True if the id of a test, with or without its case, is one of these, or would be but for its number."""
        path, bracket, case = test.partition("[")
        if not bracket and (self.partly or self.one_in):
            return False
        if bracket and (case.removesuffix("]") in self.but or not case.startswith(self.only)):
            return False
        return any(_begins(path, one) for one in self.tests)


def _begins(path: str, beginning: str) -> bool:
    rest = path.removeprefix(beginning)
    return path.startswith(beginning) and (not rest or beginning.endswith("/") or rest.startswith("::"))


@cache
def _in_file(section: str, file: str) -> tuple[Row, ...]:
    """The rows that can have tests of this file: few, of many that would be asked for each of thousands of tests."""
    return tuple(
        row for row in table(section) if any(one.startswith(file) or file.startswith(one) for one in row.tests)
    )


def _rows_with(test: str, section: str) -> list[Row]:
    return [row for row in _in_file(section, test.partition("::")[0]) if row.has(test)]


@cache
def table(section: str) -> tuple[Row, ...]:
    """The rows of a section of the table."""
    rows = tomllib.loads(TABLE.read_text(encoding="utf-8"))[section]
    return tuple(
        Row(
            row["why"],
            tuple(row["tests"]),
            frozenset(row.get("but", ())),
            row.get("only", ""),
            row.get("partly", False),
            row.get("one_in", 0),
        )
        for row in rows
    )


def is_exhaustive(test: str) -> bool:
    """True if `make test` leaves the test with this id out, or may, by its number among the cases of its test."""
    return bool(_rows_with(test, "exhaustive"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take where the quick tests write what `make test` has to collect: a third of the files, by four workers."""
    parser.addoption(LEFT_TO, metavar="FILE", help="write which files have tests that are left to `make test`")


def pytest_deselected(items: list[pytest.Item]) -> None:
    """Write them, each in a line."""
    if file := items[0].config.getoption(LEFT_TO):
        left = {item.nodeid.partition("::")[0] for item in items if not item.get_closest_marker("exhaustive")}
        Path(file).write_text("".join(f"{path}\n" for path in sorted(left)), encoding="utf-8")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark them before any are chosen by marker."""
    for section in SECTIONS:
        cases = Counter[str]()
        for item in items:
            test, *_ = item.nodeid.partition("[")
            is_long = any(item.get_closest_marker(one) for one in LONG)
            rows = [one for one in _rows_with(item.nodeid, section) if is_long or not one.one_in or test in one.tests]
            if rows and any(not row.one_in or cases[test] % row.one_in for row in rows):
                item.add_marker(section)
            cases[test] += any(row.one_in for row in rows)
