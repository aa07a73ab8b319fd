"""`make test` keeps what is promised: the table of what only `make test-all` has, held against pages and tests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.checks.pages import is_case
from tests.checks.source import ROOT
from tests.suites import SECTIONS, Row, is_exhaustive, table
from tests.test_kips_page import HOMES, ROWS, names_in
from tests.test_kips_page import Row as RowOfKip

PROMISES = ROOT / "docs" / "concepts" / "guarantees.md"
TEST = re.compile(r"`(tests/[^`]+::[^`]+)`")


def promises() -> list[tuple[str, ...]]:
    """The tests that each row of the page of guarantees names."""
    rows = (line for line in PROMISES.read_text(encoding="utf-8").splitlines() if line.startswith("| "))
    return [tests for line in rows if (tests := tuple(TEST.findall(line)))]


def kept(tests: tuple[str, ...]) -> list[str]:
    """Return the tests that `make test` has. A test named without a case is kept if any case is."""
    return [test for test in tests if not is_exhaustive(test) or ("[" not in test and any(_cases_kept(test)))]


def _cases_kept(test: str) -> list[str]:
    path, _, _ = test.partition("::")
    return [case for row in table("exhaustive") if row.has(test) for case in row.but if is_case(case, path)]


def test_every_promise_keeps_a_test() -> None:
    assert len(promises()) > 40
    assert [tests for tests in promises() if not kept(tests)] == []


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_every_row_of_a_design_document_keeps_a_test_per_cluster(row: RowOfKip) -> None:
    """Real Kafka with ZooKeeper is asked for what only it has; the rest of it is left to `make test-all`."""
    for cluster, answer in row.answers.items():
        if cluster == "ZooKeeper" and row.answers["KRaft"] == "yes":
            continue
        named = [test for test in kept(row.tests) if test.startswith(HOMES[cluster])]
        assert named or answer == "–", f"{cluster}: all of its tests are left to make test-all: {row.tests}"


@pytest.mark.parametrize("row", [row for one in SECTIONS for row in table(one)], ids=lambda row: row.why[:50])
def test_the_table_names_tests_that_exist(row: Row) -> None:
    assert row.why
    for test in row.tests:
        path, _, name = test.partition("::")
        assert (ROOT / path).exists(), test
        assert not name or name in names_in(ROOT / path), test
    for case in row.but:
        assert any(is_case(case, path) for path in _files(row)), case


def _files(row: Row) -> list[str]:
    places = [ROOT / test.partition("::")[0] for test in row.tests]
    files = [file for place in places for file in (place.rglob("*.py") if place.is_dir() else (place,))]
    return [str(Path(file).relative_to(ROOT)) for file in files]


def test_a_row_has_the_whole_name_and_leaves_its_exceptions() -> None:
    row = Row("why", ("tests/a/", "tests/b.py::test_it", "tests/c.py"), frozenset({"kept"}))
    assert all(
        map(row.has, ("tests/a/x.py::test_y", "tests/b.py::test_it", "tests/b.py::test_it[1]", "tests/c.py::test_z"))
    )
    assert not any(map(row.has, ("tests/b.py::test_it[kept]", "tests/b.py::test_it_too", "tests/d.py::test_it")))


def test_a_row_leaves_only_the_cases_that_begin_so() -> None:
    row = Row("why", ("tests/a.py",), only="kafka-")
    assert row.has("tests/a.py::test_it[kafka-4.3]")
    assert not row.has("tests/a.py::test_it[in-process-4.3]")
