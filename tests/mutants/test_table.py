"""The table of mutants keeps up with the code."""

import ast
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from tests.mutants.table import PACKAGE, read_table

ROOT = Path(__file__).parents[2]
MUTANTS = read_table()
LEAST = 150


@pytest.mark.parametrize("module", sorted({mutant.module for mutant in MUTANTS}))
def test_the_place_of_a_mutant_is_there_exactly_once_and_the_fault_is_still_a_program(module: str) -> None:
    mutants = [mutant for mutant in MUTANTS if mutant.module == module]
    assert [mutant.id for mutant in mutants if mutant.occurrences(ROOT) != 1] == []
    source = (ROOT / PACKAGE / module).read_text(encoding="utf-8")
    program = statements(source)
    assert [mutant.id for mutant in mutants if statements(mutant.applied(source)) == program] == []


def statements(source: str) -> list[str]:
    """A program without its comments and line breaks. Most statements are the same in all mutants of a module."""
    lines = source.splitlines(keepends=True)
    found = []
    for statement in ast.parse(source).body:
        decorators = getattr(statement, "decorator_list", [])
        first = min(one.lineno for one in (statement, *decorators))
        found.append(dumped("".join(lines[first - 1 : statement.end_lineno])))
    return found


@cache
def dumped(statement: str) -> str:
    return ast.dump(ast.parse(statement))


def test_every_mutant_has_an_id_of_its_own_and_tests_that_are_there() -> None:
    assert [one for one, count in Counter(mutant.id for mutant in MUTANTS).items() if count > 1] == []
    assert {test for mutant in MUTANTS for test in mutant.tests if not (ROOT / test).is_file()} == set()


def test_there_are_mutants_of_everything_that_moves_data_or_judges_a_plan() -> None:
    packages = Counter(mutant.module.partition("/")[0] for mutant in MUTANTS)
    assert len(MUTANTS) >= LEAST
    assert packages.keys() >= {"executor", "twin", "planner", "kafka_tools", "model"}
