"""Runs on the twin that keep to their pace."""

from __future__ import annotations

from pathlib import Path

import pytest

from kreassign.executor.event_json import from_json, to_json
from kreassign.executor.events import RunStarted
from kreassign.executor.pacing import NO_LIMITS, Order, Pace, pace
from tests.executor.worlds import World

TARGETS = dict.fromkeys(range(6), (3, 1))


def most_in_flight(world: World, chosen: Pace) -> tuple[int, list[int]]:
    """How many moves were in flight at most, and the partitions in the order in which they were started."""
    counts: list[int] = []
    order: list[int] = []

    def note(watched: object, _step: object) -> None:
        moving = world.twin.metadata.reassigning
        counts.append(len(moving))
        order.extend(sorted(key.partition for key in moving if key.partition not in order))
        del watched

    world.twin.watch(note)
    history = world.run(world.prepared(TARGETS, pace=chosen))
    assert history.state == "done", history.problems
    return max(counts), order


@pytest.mark.parametrize(
    ("chosen", "most"),
    [
        (NO_LIMITS, 6),
        (pace(moves=2), 2),
        (pace(moves_per_broker=3), 3),
        (pace(bytes_per_broker=25_000_000), 2),
        (pace(size_bytes=1), 1),
    ],
    ids=["no limit", "2 moves", "3 moves a broker", "25 MB a broker", "less than one move"],
)
def test_no_more_is_in_flight_than_the_limit_allows_and_all_arrive(tmp_path: Path, chosen: Pace, most: int) -> None:
    assert most_in_flight(World(tmp_path, [[0, 1]] * 6), chosen)[0] == most


def test_moves_start_in_the_order_that_was_chosen(tmp_path: Path) -> None:
    started = most_in_flight(World(tmp_path, [[0, 1]] * 6), pace(Order.NAME, moves=1))[1]
    assert started == list(range(6))


def test_the_pace_is_kept_in_the_journal() -> None:
    chosen = pace(Order.RELIEF, moves=4, bytes_per_broker=7)
    event = RunStarted(0, "r", "c", (), None, (), pace=chosen)
    assert from_json("RunStarted", to_json(event)) == event


def test_a_journal_from_before_there_were_limits_has_none() -> None:
    text = to_json(RunStarted(0, "r", "c", (), None, ()))
    start, _, _ = text.partition(',"pace"')
    assert from_json("RunStarted", start + "}") == RunStarted(0, "r", "c", (), None, ())
