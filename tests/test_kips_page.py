"""The page of the design documents is true: cells are filled, and what they name exists."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.checks.pages import is_case

TOP = Path(__file__).resolve().parent.parent
PAGE = TOP / "docs" / "reference" / "kips.md"
CODE = TOP / "src" / "kreassign"
COLUMNS = 7
KIPS = {"KIP-455", "KIP-183", "KIP-179", "KIP-860", "KIP-1335"}
# Where a test has to be that shows something on such a cluster.
HOMES = {
    "KRaft": ("tests/real/", "tests/conformance/", "tests/twin/test_java_tools.py"),
    "ZooKeeper": ("tests/real/",),
    "Twin": (
        "tests/twin/",
        "tests/kips/",
        "tests/conformance/",
        "tests/cli/",
        "tests/kafka_tools/",
        "tests/executor/",
        "tests/admin/",
    ),
}


@dataclass(frozen=True)
class Row:
    """One row: what the document has, where we have it, on which clusters, shown by which tests, what differs."""

    what: str
    places: tuple[str, ...]
    answers: dict[str, str]
    tests: tuple[str, ...]
    cells: tuple[str, ...]

    def __str__(self) -> str:
        return self.what[:60]


def rows() -> Iterator[Row]:
    for line in PAGE.read_text().splitlines():
        if line.startswith("| ") and not line.startswith("| What the document has"):
            cells = tuple(cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1])
            answers = dict(zip(HOMES, cells[2:5], strict=True))
            yield Row(cells[0], _quoted(cells[1]), answers, _quoted(cells[5]), cells)


def _quoted(cell: str) -> tuple[str, ...]:
    return tuple(re.findall(r"`([^`]+)`", cell))


@cache
def names_in(file: Path) -> frozenset[str]:
    """Every function, class and constant of a module."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found.update(target.id for target in node.targets if isinstance(target, ast.Name))
    return frozenset(found)


ROWS = tuple(rows())


def test_all_five_documents_are_there_with_many_rows() -> None:
    headings = set(re.findall(r"^## (KIP-\d+)", PAGE.read_text(), re.MULTILINE))
    assert headings == KIPS
    assert len(ROWS) > 190


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_every_row_is_complete_and_names_what_exists(row: Row) -> None:
    assert len(row.cells) == COLUMNS
    assert all(row.cells)
    for place in row.places:
        path, _, name = place.partition("::")
        assert (CODE / path).exists(), place
        assert not name or name in names_in(CODE / path), place
    assert row.tests
    for test in row.tests:
        path, _, name = test.partition("::")
        function, _, case = name.partition("[")
        assert function in names_in(TOP / path), test
        assert not case or is_case(case.removesuffix("]"), path), test


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_yes_is_shown_by_a_test_on_such_a_cluster(row: Row) -> None:
    for cluster, answer in row.answers.items():
        assert answer in {"yes", "–"}
        if answer == "yes":
            assert any(test.startswith(HOMES[cluster]) for test in row.tests), f"{cluster}: {row.tests}"


ON_THE_CLIENT = r"on the client|no twin is asked|before anybody is asked|nothing to ask a cluster"
"""Nothing of it reaches any cluster."""
REASONS = {
    "KRaft": rf"Kafka 4 has no ZooKeeper|ZooKeeper mode|In KRaft mode|releases with KRaft|No Kafka has|{ON_THE_CLIENT}",
    "ZooKeeper": rf"No Kafka (has|with ZooKeeper)|Kafka with ZooKeeper|With ZooKeeper|no ZooKeeper|{ON_THE_CLIENT}"
    "|nobody asks real ones",
    "Twin": ON_THE_CLIENT,
}
"""What the last cell has to say of a cluster on which a row was not shown."""


@pytest.mark.parametrize("row", [row for row in ROWS if "–" in row.answers.values()], ids=str)
def test_what_was_not_shown_on_a_cluster_has_its_reason(row: Row) -> None:
    for cluster, answer in row.answers.items():
        if answer == "–":
            assert re.search(REASONS[cluster], row.cells[-1]), f"{cluster}: {row.cells[-1]}"


@pytest.mark.parametrize("row", [row for row in ROWS if row.answers["ZooKeeper"] == "yes"], ids=str)
def test_a_yes_for_zookeeper_is_shown_by_a_test_that_has_one(row: Row) -> None:
    real = [test for test in row.tests if test.startswith(HOMES["ZooKeeper"])]
    assert any("zookeeper" in _text_of(test).lower() for test in real), real


def _text_of(test: str) -> str:
    """A test with its decorators, and the constants of its module that it names."""
    path, _, name = test.partition("::")
    source = (TOP / path).read_text()
    nodes = ast.parse(source).body
    function = next(node for node in nodes if isinstance(node, ast.FunctionDef) and node.name == name.partition("[")[0])
    text = ast.unparse(function)
    constants = (node for node in nodes if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name))
    return text + "".join(ast.unparse(node) for node in constants if ast.unparse(node.targets[0]) in text)


CODED = tuple((row, code[1]) for row in ROWS if (code := re.match(r"[^`]*`[A-Z_]+` \((\d+)\)", row.what)))


@pytest.mark.parametrize(("row", "code"), CODED, ids=str)
def test_the_tests_of_an_error_know_its_code(row: Row, code: str) -> None:
    assert any(is_case(code, test.partition("::")[0]) for test in row.tests), row.tests


def test_there_are_errors_enough() -> None:
    assert len(CODED) >= 30
