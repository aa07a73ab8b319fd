"""A move in steps of one replica."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kreassign.executor.events import PlannedMove
from kreassign.executor.state.steps import move_steps
from kreassign.model import TopicPartition
from kreassign.model.run import LogDirTarget

WHOLE = PlannedMove(TopicPartition("t", 0), (1, 2), (4, 2, 5), 7, 3.0, is_urgent=True)


@pytest.mark.parametrize(("original", "target", "between"), [
    ((1, 2, 3), (4, 5, 6), [(1, 2, 4), (1, 5, 4)]),
    ((1, 2, 3), (3, 4, 2), []),
    ((1, 2), (2, 1), []),
    ((1,), (2, 3, 4), [(1, 2), (1, 2, 3)]),
    ((1, 2, 3), (4,), []),
    ((1, 2, 3, 9), (4, 5), [(1, 2, 3, 4)]),
])  # fmt: skip
def test_steps_lead_from_list_to_list(
    original: tuple[int, ...], target: tuple[int, ...], between: list[tuple[int, ...]]
) -> None:
    steps = move_steps(replace(WHOLE, original=original, target=target))
    lists = [original, *between, target]
    assert steps == tuple(replace(WHOLE, original=begin, target=end) for begin, end in pairwise(lists))


REPLICAS = st.lists(st.integers(0, 7), min_size=1, max_size=5, unique=True).map(tuple)


@given(REPLICAS, REPLICAS)
def test_each_step_adds_one_replica_at_most(original: tuple[int, ...], target: tuple[int, ...]) -> None:
    steps = move_steps(replace(WHOLE, original=original, target=target))
    added = [step.adding for step in steps]
    assert max(map(len, added)) <= 1
    assert sorted(broker for one in added for broker in one) == sorted(set(target) - set(original))
    assert (steps[0].original, steps[-1].target) == (original, target)
    assert min(len(step.target) for step in steps) >= min(len(original), len(target))
    assert {step.original[0] for step in steps} == {original[0]}


def test_each_step_names_the_directory_of_its_copy() -> None:
    changed, *new = log_dirs = (LogDirTarget(2, "/b", "/a"), LogDirTarget(4, "/c"), LogDirTarget(5, "/d"))
    assert move_steps(replace(WHOLE, log_dirs=log_dirs)) == (
        replace(WHOLE, target=(1, 2, 4), log_dirs=(new[0],)),
        replace(WHOLE, original=(1, 2, 4), log_dirs=(changed, new[1])),
    )
    one_copy = replace(WHOLE, target=(4, 2), log_dirs=log_dirs[:2])
    assert move_steps(one_copy) == (one_copy,)
