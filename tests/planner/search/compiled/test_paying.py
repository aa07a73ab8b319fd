"""Loops after an installation: Python runs them until compiling pays."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from bench.random_clusters import random_cluster
from kreassign.planner import solve
from kreassign.planner.search.compiled.compiler import MOST_IN_ALL_S, MOST_REPLICAS, as_pays, in_python

PART = """
from kreassign.planner.search.compiled.compiler import compiled, compiled_part
@compiled_part
def step(number: int) -> int:
    return number + 1
@compiled
def twice_on(number: int) -> int:
    return step(step(number))
"""


@pytest.fixture
def loops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Loops of which nothing is compiled yet."""
    (tmp_path / "new_loops.py").write_text(PART)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "new_loops", raising=False)
    importlib.invalidate_caches()
    return importlib.import_module("new_loops")


def machine_code(folder: Path) -> list[Path]:
    return list(folder.rglob("*.nbi"))


def noted(folder: Path) -> float:
    (note,) = folder.rglob("in-python-*")
    return float(note.read_text())


@pytest.mark.parametrize("seed", [2, 46])
def test_python_finds_the_same_plan_as_machine_code_to_the_last_bit(seed: int) -> None:
    problem = random_cluster(seed).problem
    with in_python():
        interpreted = solve(problem)
    compiled = solve(problem)
    assert np.array_equal(interpreted.assignment.replicas, compiled.assignment.replicas)
    assert np.array_equal(interpreted.missed, compiled.missed)


def test_the_first_plans_of_small_clusters_wait_for_no_compiler(loops: ModuleType, tmp_path: Path) -> None:
    for _ in range(2):
        with as_pays(MOST_REPLICAS, loops.twice_on):
            assert loops.twice_on(1) == 3
    assert machine_code(tmp_path) == []
    assert 0 <= noted(tmp_path) < MOST_IN_ALL_S


def test_a_large_cluster_is_compiled_for_at_once_and_all_later_ones_profit(loops: ModuleType, tmp_path: Path) -> None:
    with as_pays(MOST_REPLICAS + 1, loops.twice_on):
        assert loops.twice_on(1) == 3
    assert machine_code(tmp_path)
    assert noted(tmp_path) == MOST_IN_ALL_S


@pytest.mark.parametrize(("text", "is_compiled"), [(str(MOST_IN_ALL_S), True), ("?", False)])
def test_loops_are_compiled_once_a_note_says_that_python_took_as_long(
    loops: ModuleType, tmp_path: Path, text: str, is_compiled: bool
) -> None:
    """A note that cannot be read counts for nothing."""
    with as_pays(1, loops.twice_on):
        loops.twice_on(1)
    (note,) = tmp_path.rglob("in-python-*")
    note.write_text(text)
    with as_pays(1, loops.twice_on):
        assert loops.twice_on(1) == 3
    assert bool(machine_code(tmp_path)) == is_compiled
    assert is_compiled or noted(tmp_path) < 1


def test_a_plan_that_takes_python_too_long_is_ended_by_machine_code(loops: ModuleType, tmp_path: Path) -> None:
    seconds = iter([True, False])
    with in_python(lambda: next(seconds)):
        assert (loops.twice_on(1), machine_code(tmp_path)) == (3, [])
        assert loops.twice_on(1) == 3
    assert machine_code(tmp_path)
