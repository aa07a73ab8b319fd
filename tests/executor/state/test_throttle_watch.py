"""When a throttle is read again, and what is said of one that others changed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kreassign.executor.events import (
    CallFailed,
    ConfigsRead,
    Event,
    HealthObserved,
    LeaseLost,
    LeaseTaken,
    PlacementState,
    ThrottleChecked,
    VerdictsRecorded,
)
from kreassign.executor.guards import GuardName, Health, Reaction, Verdict
from kreassign.executor.guards.settings import settings
from kreassign.executor.instructions import CheckThrottle, SetThrottle, SubmitMoves
from kreassign.executor.state import health_watch, throttle_watch
from kreassign.executor.state.run import Doubt, Run
from kreassign.executor.state.throttle_watch import DOUBT_EVERY_MS, PROPAGATION_MS
from kreassign.executor.throttle.ledger import ConfigValue
from kreassign.model import ConfigResource
from tests.executor.run_events import BEFORE, LISTED, LISTS, LIVE, PREPARED, RATES, look, machine_after, started

KEY = RATES[0].key
FOUND = ConfigValue(KEY, "5")
TOPIC = ConfigResource.topic("a")
GUARDED: tuple[Event, ...] = (replace(started(), guards=settings(), rereads_throttle=True), *PREPARED[1:])
LOST: tuple[Event, ...] = (*GUARDED, LeaseLost(3_000, "another member has it"), LeaseTaken(4_000, 7))


def watched(*, since_ms: int | None = None, checked_ms: int | None = None, now_ms: int = 0) -> Run:
    """A run whose throttle is in force, with one doubt since then."""
    run = machine_after(*GUARDED)[0]._run
    run.moves.observed_ms, run.throttle.checked_ms = now_ms, checked_ms
    run.throttle.doubts = {} if since_ms is None else {KEY: Doubt(FOUND, since_ms)}
    return run


def test_a_throttle_nobody_doubts_is_read_again_before_moves_are_sent() -> None:
    assert throttle_watch.is_due(watched(), {TOPIC})
    assert not throttle_watch.is_due(watched(), ())


@pytest.mark.parametrize("lacks", ["rereads_throttle", "reactions", "in_force"])
def test_a_run_that_does_not_guard_its_throttle_does_not_read_it_again(lacks: str) -> None:
    run = watched(since_ms=0)
    match lacks:
        case "rereads_throttle":
            run.identity.rereads_throttle = False
        case "reactions":
            run.identity.reactions = {}
        case _:
            run.throttle.in_force = set()
    assert not throttle_watch.is_due(run, {TOPIC})


@pytest.mark.parametrize(("checked_ms", "now_ms", "is_due"), [
    (None, 1_000, True),
    (1_000, 1_001, True),
    (3_000, 3_000 + DOUBT_EVERY_MS - 1, False),
    (3_000, 3_000 + DOUBT_EVERY_MS, True),
])  # fmt: skip
def test_a_doubt_is_read_again_soon_at_first_and_then_every_five_seconds(
    checked_ms: int | None, now_ms: int, is_due: bool
) -> None:
    run = watched(since_ms=1_000, checked_ms=checked_ms, now_ms=now_ms)
    assert throttle_watch.is_due(run, ()) == is_due


def test_an_odd_answer_holds_moves_and_is_someone_elses_doing_only_when_it_stays() -> None:
    healthy = HealthObserved(5_000, Health(LIVE))
    machine, (question,) = machine_after(*GUARDED, look(5_000, PlacementState.UNTOUCHED), healthy)
    run = machine._run
    assert isinstance(question, CheckThrottle)
    machine.replay(ThrottleChecked(6_000, (FOUND,)))
    assert run.throttle.doubts == {KEY: Doubt(FOUND, 6_000)}
    assert (run.throttle.checked_ms, throttle_watch.allows_start(run)) == (6_000, False)
    throttle_watch.take_in(run, 6_000 + PROPAGATION_MS - 1, (KEY,), (FOUND,), ())
    assert throttle_watch.foreign(run) == ()
    throttle_watch.take_in(run, 6_000 + PROPAGATION_MS, (KEY,), (FOUND,), ())
    assert throttle_watch.foreign(run) == (FOUND,)
    throttle_watch.take_in(run, 20_000, (KEY,), (), ())
    assert throttle_watch.allows_start(run)


def test_what_others_changed_is_told_once_a_guard_has_said_so() -> None:
    run = watched()
    run.throttle.doubts = {KEY: Doubt(FOUND, 0, is_foreign=True)}
    health_watch.take_in(run, VerdictsRecorded(1, (Verdict(GuardName.DISK, Reaction.HOLD, "full", "make room"),)))
    assert run.throttle.told == {}
    said = Verdict(GuardName.FOREIGN_THROTTLE, Reaction.HOLD, "changed", "set it again")
    health_watch.take_in(run, VerdictsRecorded(2, (said,)))
    assert run.throttle.told == {KEY: FOUND}


def test_a_run_that_has_its_lease_again_looks_at_its_throttle_and_tells_what_differs_before_it_sets_it() -> None:
    (question,) = machine_after(*LOST)[1]
    assert isinstance(question, CheckThrottle)
    assert {one.key for one in question.overrides} == {one.key for one in RATES}
    machine, (order,) = machine_after(*LOST, ThrottleChecked(5_000, (FOUND,)), ConfigsRead(6_000, BEFORE))
    assert isinstance(order, SetThrottle)
    assert {one.key for one in order.overrides} == {one.key for one in RATES}
    (told,) = machine.view.problems[:1]
    assert FOUND.then in told
    assert machine._run.throttle.doubts == {}


def test_where_its_throttle_cannot_be_looked_at_it_is_set_again_all_the_same() -> None:
    (order,) = machine_after(*LOST, CallFailed(5_000, "no answer"), ConfigsRead(6_000, BEFORE))[1]
    assert isinstance(order, SetThrottle)
    assert {one.key for one in order.overrides} == {one.key for one in RATES}


def test_a_run_without_guards_looks_at_nothing_and_sends_its_moves() -> None:
    run = machine_after(*LISTED)
    assert isinstance(run[1][0], SubmitMoves)


def test_read_again_are_rates_lists_of_the_topics_about_to_move_and_what_is_in_doubt() -> None:
    run = machine_after(*LISTED)[0]._run
    rates, lists = {one.key for one in RATES}, {one.key for one in LISTS}
    assert {one.key for one in throttle_watch.question(run, ()).overrides} == rates
    assert {one.key for one in throttle_watch.question(run, {TOPIC}).overrides} == rates | lists
    run.throttle.doubts = {LISTS[0].key: Doubt(FOUND, 0)}
    assert {one.key for one in throttle_watch.question(run, ()).overrides} == rates | {LISTS[0].key}
