"""Why moves that wait are not started, and what cannot happen to a run that is at rest."""

from __future__ import annotations

import pytest

from kreassign.executor.events import Event, HoldRequested, LeaseForgone, LeaseLost, LeaseTaken
from kreassign.executor.state import AT_REST, STATES, TRANSITIONS, Phase
from kreassign.executor.state.phases import Restoring, Submitting, Waiting
from tests.executor.run_events import PREPARED, SUBMITTED, replayed


def test_what_holds_moves_back_is_told_while_one_waits() -> None:
    hindrance = replayed(*PREPARED, HoldRequested(2_000, 1))[0].hindrance(2_000)
    assert hindrance == "an operator paused it, so nothing is started before `kreassign resume run-1`"
    assert replayed(*PREPARED)[0].hindrance(2_000) is None


def test_where_all_moves_are_under_way_nothing_holds_them_back() -> None:
    assert replayed(*SUBMITTED, HoldRequested(4_000, 1))[0].hindrance(4_000) is None


@pytest.mark.parametrize("event", [LeaseLost, LeaseTaken, LeaseForgone])
def test_a_lease_does_not_matter_to_runs_that_have_not_begun_or_are_at_rest(event: type[Event]) -> None:
    resting = [one for one in STATES if one.phase in {*AT_REST, Phase.NEW}]
    assert [one.__name__ for one in resting if (one, event) in TRANSITIONS] == []


def test_a_run_that_waits_or_changes_the_cluster_can_lose_its_lease() -> None:
    assert [one.__name__ for one in (Waiting, Submitting, Restoring) if (one, LeaseLost) not in TRANSITIONS] == []
