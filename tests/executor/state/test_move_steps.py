"""A move in steps of one replica."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kreassign.executor.events import LogDirTarget, PlannedMove
from kreassign.executor.state.move_steps import move_steps
from kreassign.model import TopicPartition


def lists(original: tuple[int, ...], target: tuple[int, ...]) -> list[tuple[int, ...]]:
    steps = move_steps(PlannedMove(TopicPartition("t", 0), original, target, 7))
    assert [step.original for step in steps[1:]] == [step.target for step in steps[:-1]]
    return [steps[0].original, *(step.target for step in steps)]


@pytest.mark.parametrize(
    ("original", "target", "between"),
    [
        ((1, 2, 3), (4, 5, 6), [(1, 2, 4), (1, 5, 4)]),
        ((1, 2, 3), (3, 4, 2), []),
        ((1, 2), (2, 1), []),
        ((1,), (2, 3, 4), [(1, 2), (1, 2, 3)]),
        ((1, 2, 3), (4,), []),
        ((1, 2, 3, 9), (4, 5), [(1, 2, 3, 4)]),
    ],
)
def test_steps_lead_from_list_to_list(
    original: tuple[int, ...], target: tuple[int, ...], between: list[tuple[int, ...]]
) -> None:
    assert lists(original, target) == [original, *between, target]


REPLICAS = st.lists(st.integers(0, 7), min_size=1, max_size=5, unique=True).map(tuple)


@given(REPLICAS, REPLICAS)
def test_each_step_adds_one_replica_at_most_and_the_last_makes_the_order_of_the_plan(
    original: tuple[int, ...], target: tuple[int, ...]
) -> None:
    steps = move_steps(PlannedMove(TopicPartition("t", 0), original, target, 7))
    added = [step.adding for step in steps]
    assert max(map(len, added)) <= 1
    assert sorted(broker for one in added for broker in one) == sorted(set(target) - set(original))
    assert steps[0].original == original
    assert steps[-1].target == target
    smallest = min(len(original), len(target))
    assert all(len(step.target) >= smallest for step in steps)
    assert {step.original[0] for step in steps} == {original[0]}


def test_each_step_names_the_directory_of_its_copy_and_the_last_one_those_that_only_change() -> None:
    log_dirs = (LogDirTarget(2, "/b", "/a"), LogDirTarget(4, "/c"), LogDirTarget(5, "/d"))
    whole = PlannedMove(TopicPartition("t", 0), (1, 2), (4, 2, 5), 7, 3.0, is_urgent=True, log_dirs=log_dirs)
    assert move_steps(whole) == (
        replace(whole, target=(1, 2, 4), log_dirs=log_dirs[1:2]),
        replace(whole, original=(1, 2, 4), log_dirs=(log_dirs[0], log_dirs[2])),
    )


def test_a_move_of_one_copy_is_one_step() -> None:
    log_dirs = (LogDirTarget(2, "/b", "/a"), LogDirTarget(4, "/c"))
    whole = PlannedMove(TopicPartition("t", 0), (1, 2), (4, 2), 7, log_dirs=log_dirs)
    assert move_steps(whole) == (whole,)
