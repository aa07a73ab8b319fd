"""A run without its lease, and after it has it again."""

from __future__ import annotations

import pytest

from kreassign.executor.events import (
    CallFailed,
    Event,
    HoldRequested,
    LeaseForgone,
    LeaseLost,
    LeaseRefused,
    LeaseTaken,
    StopRequested,
    ThrottleChecked,
    TimePassed,
)
from kreassign.executor.guards import GuardName, Reaction
from kreassign.executor.state.control import ASK_EVERY_MS
from kreassign.executor.throttle_ledger import ConfigValue
from kreassign.model.run import Phase
from tests.executor.run_events import RATE, SUBMITTED
from tests.executor.state.played import FOLLOWERS, LEADER_0, Played, begun, guarded

LOSS = LeaseLost(5_000, "another member has it")
LOST: tuple[Event, ...] = (*SUBMITTED, LOSS)
TOLD = "another member has it; nothing is changed until it is had again"
TAKEN, FORGONE = LeaseTaken(7_000, 3), LeaseForgone(7_000, "an operator allowed it")
HELD, NONE = "held since generation 3 of the group", "none: an operator allowed it"
ALL = "all rates, both lists"


@pytest.mark.parametrize(("events", "decided", "lease"), [
    ([LOSS], "take the lease", "another member has it"),
    ([LOSS, LeaseRefused(6_000, "not yet")], "wait", "not yet"),
    ([LOSS, LeaseRefused(6_000, "not yet"), TimePassed(5_999 + ASK_EVERY_MS)], "wait", "not yet"),
    ([LOSS, LeaseRefused(6_000, "not yet"), TimePassed(6_000 + ASK_EVERY_MS)], "take the lease", "not yet"),
    ([LOSS, TAKEN], f"set {ALL}", HELD),
    # Whoever asks when nothing was lost is only told.
    ([TAKEN], "", HELD),
    ([FORGONE], "", NONE),
])  # fmt: skip
def test_a_run_that_lost_its_lease_asks_for_it_every_ten_seconds(events: list[Event], decided: str, lease: str) -> None:
    run = Played(*SUBMITTED, *events)
    assert (run.decided, run.view.control.lease) == (decided, lease)


def test_a_loss_is_told_until_the_run_has_the_lease_again() -> None:
    run = Played(*LOST)
    assert run.problems == (TOLD,)
    assert run.on(TAKEN).problems == (f"over, from 00:00:05 to 00:00:07 UTC: {TOLD}",)


def test_an_operators_pause_outlives_the_loss_of_the_lease() -> None:
    assert Played(*SUBMITTED, HoldRequested(4_000, 1), LOSS, TAKEN).view.control.is_held


def test_a_run_without_its_lease_that_is_stopped_writes_nothing_back() -> None:
    run = Played(*LOST, StopRequested(7_000))
    assert (run.view.phase, run.decided, run.pending) == (Phase.PAUSED, "", ALL)


GONE, OTHER = ConfigValue(LEADER_0, None), ConfigValue(FOLLOWERS, "7:7")


@pytest.mark.parametrize(("answer", "problems"), [
    (ThrottleChecked(8_000, (GONE,)),
     (f"when the run had the lease again, {GONE.then}; the run had set it to '{RATE}' and set it again",)),
    (ThrottleChecked(8_000, (OTHER,)),
     (f"when the run had the lease again, {OTHER.then}; the run had set it to '0:2,1:3' and set it again",)),
    (ThrottleChecked(8_000), ()),
])  # fmt: skip
def test_a_throttle_that_another_run_restored_is_told_and_set_again(answer: Event, problems: tuple[str, ...]) -> None:
    run = Played(guarded()).go("wait").on(LOSS, TAKEN)
    assert run.decided == f"check {ALL}"
    run.on(answer)
    assert run.decided == f"set {ALL}"
    told = [problem for problem in run.problems if "over, from" not in problem]
    assert tuple(told) == problems
    assert run.view.was_throttle_kept


@pytest.mark.parametrize("answer", [
    CallFailed(8_000, "no answer"), ThrottleChecked(8_000, unread=(LEADER_0.resource,)),
])  # fmt: skip
def test_rates_that_could_not_be_read_are_read_before_they_are_set(answer: Event) -> None:
    run = Played(guarded()).go("wait").on(LOSS, TAKEN, answer)
    assert run.decided == "wait"
    assert run.on(TimePassed(9_000)).decided == f"check {ALL}"


def test_settings_of_topics_that_are_gone_are_not_set_again() -> None:
    run = Played(guarded()).go("wait").on(LOSS, TAKEN)
    run.on(ThrottleChecked(8_000, (OTHER,), gone=(FOLLOWERS.resource,)))
    assert (run.pending, run.go("set").decided) == ("all rates", "set all rates")
    assert not [problem for problem in run.problems if "had the lease again" in problem]


@pytest.mark.parametrize(("run", "decided"), [
    (Played(begun(guards={GuardName.STALL: Reaction.WARN})).go("wait"), f"set {ALL}"),
    (Played(guarded()).go("set all").intend(), "read both lists"),
    (Played(guarded(throttle=None)).go("wait"), "observe a-0 a-1"),
], ids=["no such guard", "nothing in force", "no throttle"])  # fmt: skip
def test_a_throttle_that_is_not_guarded_or_not_set_is_not_read(run: Played, decided: str) -> None:
    assert run.copy().on(LOSS, TAKEN).decided == decided
