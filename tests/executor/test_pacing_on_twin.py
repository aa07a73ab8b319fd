"""Runs on the twin that keep to their pace."""

from __future__ import annotations

from pathlib import Path

import pytest

from kreassign.executor.events import LeadersElected, PaceRequested
from kreassign.model.pace import NO_LIMITS, EndpointKind, Limit, Measure, Order, Pace, PaceChange
from kreassign.twin.api.connection import AffectedResponses, Lost
from kreassign.wire import api
from tests.executor.twin_runs import TwinRig, pace

pytestmark = pytest.mark.thorough

TARGETS = dict.fromkeys(range(6), (3, 1))


def in_flight(rig: TwinRig, chosen: Pace) -> list[int]:
    """Moves in flight at each step of the twin."""
    counts: list[int] = []
    rig.twin.watch(lambda *_: counts.append(len(rig.twin.metadata.reassigning)))
    history = rig.run(rig.prepared(TARGETS, pace=chosen))
    assert history.state == "done", history.problems
    return counts


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
    assert max(in_flight(TwinRig(tmp_path, [[0, 1]] * 6), chosen)) == most


def asked(rig: TwinRig, seconds: float, change: PaceChange) -> None:
    rig.ask_after(seconds, lambda at_ms, number: PaceRequested(at_ms, number, change))


def test_a_limit_that_is_lifted_during_the_run_lets_the_rest_start(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1]] * 6)
    asked(rig, 5, PaceChange(limits=(Limit(EndpointKind.CLUSTER, Measure.MOVES, None),)))
    counts = in_flight(rig, pace(moves=1))
    assert max(counts) >= 5
    assert rig.resumed_pace == NO_LIMITS


def test_a_limit_set_during_the_run_holds_up_new_moves_only(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1]] * 6)
    asked(rig, 5, PaceChange(Order.NAME, (Limit(EndpointKind.SOURCE, Measure.MOVES, 1),)))
    counts = in_flight(rig, pace(moves=3))
    assert max(counts) == 3
    falling = counts[len(counts) - counts[::-1].index(3) :]
    assert max(falling[falling.index(1) :]) == 1
    assert rig.resumed_pace == Pace(
        Order.NAME, pace(moves=3).caps.limited((Limit(EndpointKind.SOURCE, Measure.MOVES, 1),))
    )


def test_an_unanswered_election_is_fine_if_the_right_brokers_lead(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1]] * 6)
    rig.twin.response_faults.add(Lost(), AffectedResponses(api.ELECT_LEADERS.key), hits_once=True)
    found = rig.run(rig.prepared(dict.fromkeys(range(6), (1, 0))))
    assert [len(event.elected) for event in rig.seen if isinstance(event, LeadersElected)] == [0, 6]
    assert (found.state, found.problems) == ("done", ())
