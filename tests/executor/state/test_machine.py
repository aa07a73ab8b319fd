"""A run from its first event to its last, what stops and resumes it, and events that cannot happen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kreassign.errors import InvariantBroken, JournalDamaged
from kreassign.executor.events import (
    BrokersForgotten,
    CallFailed,
    ClockStepped,
    ConfigsRead,
    Event,
    HoldRequested,
    MovesObserved,
    PlannedMove,
    RunResumed,
    RunStarted,
    StopRequested,
    ThrottleIntended,
    ThrottleRestored,
    ThrottleSet,
    TimePassed,
    TrafficMeasured,
    Verified,
)
from kreassign.executor.state import STATES, TRANSITIONS, Machine
from kreassign.executor.state.machine import handle
from kreassign.executor.state.phases import Throttling
from kreassign.model import TopicPartition
from kreassign.model.pace import AtWindowEnd, Pace, Schedule, UtcOffset, Window
from kreassign.model.run import AT_REST, Phase
from tests.executor.run_events import (
    A0,
    ARRIVED,
    BEFORE,
    LISTED,
    LIVE,
    MOVES,
    OVERRIDES,
    PREPARED,
    RATES,
    SUBMITTED,
    WHOLE,
    look,
    machine_after,
    seen,
    started,
    with_before,
    with_our_values,
)
from tests.executor.state.played import MOVING, Played, begun

ALL = "all rates, both lists"
STORY = (
    ("preparing", f"read {ALL}", "", "planned planned"),
    ("throttling", "set all rates", "", "planned planned"),
    ("throttling", "", "all rates", "planned planned"),
    ("moving", "observe a-0 a-1", "all rates", "planned planned"),
    ("moving", "set both lists", "all rates", "planned planned"),
    ("moving", "", ALL, "planned planned"),
    ("moving", "submit a-0 a-1", ALL, "planned planned"),
    ("moving", "", ALL, "sent sent"),
    ("moving", "observe a-0 a-1", ALL, "moving moving"),
    ("moving", "wait", ALL, "moving moving"),
    ("moving", "observe a-0 a-1", ALL, "moving moving"),
    ("electing", "elect a-0", ALL, "complete complete"),
    ("restoring", f"read {ALL}", ALL, "complete complete"),
    ("restoring", f"restore {ALL}", ALL, "complete complete"),
    ("restoring", f"read {ALL}", ALL, "complete complete"),
    ("verifying", f"verify a-0 a-1 with {ALL}", "", "complete complete"),
    ("done", "", "", "complete complete"),
)
"""After each event of a run in which all goes well: its phase, its order, what is to be restored, and its moves."""


def test_a_whole_run_throttles_looks_moves_restores_and_verifies() -> None:
    run = Played()
    for event, expected in zip(WHOLE, STORY, strict=True):
        run.on(event)
        assert (run.view.phase, run.decided, run.pending, run.moves) == expected
    assert (run.view.ended_ms, run.problems, run.view.residue) == (12_000, (), ())


@pytest.mark.parametrize("begin", [
    begun(throttle=None), begun(PlannedMove(A0, (0, 1), (1, 0), 1_000)),
], ids=["no throttle", "nothing copied"])  # fmt: skip
def test_a_run_that_needs_no_throttle_changes_no_setting(begin: RunStarted) -> None:
    run = Played(begin)
    assert (run.decided.split()[0], run.pending) == ("observe", "")


STOPPED: tuple[Event, ...] = (
    *PREPARED,
    StopRequested(2_000),
    ConfigsRead(3_000, with_our_values(RATES)),
    ThrottleRestored(3_000),
    ConfigsRead(3_000, with_before(RATES)),
)


@pytest.mark.parametrize(("begin", "phase", "decided", "pending"), [
    (PREPARED, Phase.RESTORING, "read all rates", "all rates"),
    (SUBMITTED, Phase.PAUSED, "", ALL),
    ((begun(throttle=None),), Phase.PAUSED, "", ""),
], ids=["nothing in flight", "in flight", "no throttle"])  # fmt: skip
def test_a_stop_restores_the_throttle_unless_copies_are_in_flight(
    begin: tuple[Event, ...], phase: Phase, decided: str, pending: str
) -> None:
    run = Played(*begin, StopRequested(5_000))
    assert (run.view.phase, run.decided, run.pending) == (phase, decided, pending)


def test_a_run_that_was_stopped_reads_and_throttles_when_it_is_resumed() -> None:
    run = Played(*STOPPED)
    assert (run.view.phase, run.decided, run.view.residue) == (Phase.PAUSED, "", ())
    assert run.on(RunResumed(9_000, LIVE)).decided == f"read {ALL}"


def test_a_stop_during_copies_tells_which_settings_stay() -> None:
    assert Played(*SUBMITTED, StopRequested(5_000)).view.residue[-2] == (
        "follower.replication.throttled.replicas of topic a is still '0:2,1:3'; before the run it was not set"
    )


@pytest.mark.parametrize("count", range(1, len(WHOLE)))
def test_after_a_crash_nothing_is_sent_before_the_moves_are_observed(count: int) -> None:
    before = Played(*WHOLE[:count])
    run = before.copy().on(RunResumed(20_000, LIVE))
    assert run.decided
    assert not run.decided.startswith("submit")
    assert run.pending == before.pending


LIST_VALUES = tuple(present for present in BEFORE if present.key.broker is None)


@pytest.mark.parametrize(("begin", "events", "decided"), [
    (PREPARED[:3], [ConfigsRead(9_000, LIST_VALUES)], "set all rates"),
    (LISTED[:-1], [], f"set {ALL}"),
    (SUBMITTED[:-1], [ThrottleIntended(9_000, OVERRIDES), ThrottleSet(9_000)], "observe a-0 a-1"),
    (SUBMITTED[:-1], [ThrottleIntended(9_000, OVERRIDES), ThrottleSet(9_000), look(10_000, MOVING)], "wait"),
    (SUBMITTED, [ThrottleIntended(9_000, OVERRIDES), ThrottleSet(9_000, ("broker 1: no",))], "observe a-0 a-1"),
], ids=["rates intended", "lists intended", "sent", "under way", "not set"])  # fmt: skip
def test_a_crash_between_intention_and_answer_is_repaired(
    begin: tuple[Event, ...], events: list[Event], decided: str
) -> None:
    assert Played(*begin, RunResumed(9_000, LIVE), *events).decided == decided


def test_every_state_can_be_entered_and_left_or_is_a_rest() -> None:
    entered = {state for row in TRANSITIONS.values() for state in row.leads_to}
    left = {state for state, event in TRANSITIONS if event not in {RunResumed, BrokersForgotten}}
    assert entered == {state for state in STATES if state.phase is not Phase.NEW}
    assert left == {state for state in STATES if state.phase not in AT_REST}


@pytest.mark.parametrize("event", [Verified(1_000, ()), ThrottleIntended(1_000, ()), started()])
def test_an_event_that_cannot_happen_is_a_bug_or_a_damaged_journal(event: Event) -> None:
    machine, _ = machine_after(started())
    assert not machine.accepts(type(event))
    reason = rf"run run-1: {type(event).__name__} cannot happen while preparing \(Preparing\)"
    with pytest.raises(InvariantBroken, match=f"^{reason}$"):
        machine.handle(event)
    with pytest.raises(JournalDamaged, match=rf"^the journal of run run-1 tells what cannot be \({reason}\); it was"):
        machine.replay(event)


def test_an_event_whose_fields_mean_nothing_makes_a_journal_unreadable() -> None:
    unknown = replace(seen(MOVES[0], MOVING), topic_partition=TopicPartition("b", 7))
    with pytest.raises(JournalDamaged, match=r"tells what cannot be \(.*b.*7.*\); it was damaged"):
        machine_after(*SUBMITTED, MovesObserved(5_000, (unknown,)))


def test_a_journal_replays_where_its_time_zone_is_unknown() -> None:
    """By UTC the window is over, and copies would be cancelled; where the run was, it had just opened."""
    elsewhere = (UtcOffset(0, 12 * 3_600),)
    hours = Schedule((Window(0, 60),), "Mars/Base", at_end=AtWindowEnd.CANCEL, offsets=elsewhere)
    begin = begun(throttle=None, pace=Pace(hours=hours))
    noon_ms = 12 * 3_600_000
    machine, _ = machine_after(begin, look(noon_ms, MOVING), look(noon_ms + 1_000, MOVING))
    assert machine.view.phase is Phase.MOVING


def test_a_row_that_leads_elsewhere_than_it_says_is_a_bug() -> None:
    run = machine_after(*ARRIVED)[0]._run
    run.state = Throttling()
    with pytest.raises(InvariantBroken, match=r"^run run-1: ThrottleSet may not lead from Throttling to Electing$"):
        handle(run, ThrottleSet(8_000))
    assert run.state == Throttling()


def test_a_run_that_has_not_begun_takes_only_its_beginning() -> None:
    assert [kind for kind in {event for _, event in TRANSITIONS} if Machine().accepts(kind)] == [RunStarted]
    assert (Machine().at_ms, Played(started()).machine.accepts(ConfigsRead)) == (0, True)


LOOKED = Played(*SUBMITTED, look(5_000, MOVING))


@pytest.mark.parametrize(("event", "step", "decided"), [
    # What comes during a wait does not end it.
    (HoldRequested(6_000, 1), "Waiting", ""),
    (ClockStepped(6_000, 1), "Waiting", ""),
    (BrokersForgotten(6_000, (9,)), "Waiting", ""),
    (StopRequested(6_000), "Paused", ""),
    (RunResumed(6_000, LIVE), "Throttling", f"set {ALL}"),
    # Whatever else comes shows that it was over.
    (TimePassed(6_000), "Observing", "observe a-0 a-1"),
    (MovesObserved(6_000, ()), "Waiting", "wait"),
    (TrafficMeasured(6_000, ()), "Observing", "observe a-0 a-1"),
    (CallFailed(6_000, "no answer"), "Waiting", "wait"),
])  # fmt: skip
def test_an_event_next_to_a_wait_tells_whether_it_was_over(event: Event, step: str, decided: str) -> None:
    run = LOOKED.copy().on(event)
    assert (run.step, run.decided, run.now) == (step, decided, 6_000)


def test_a_request_does_not_end_a_wait() -> None:
    run = LOOKED.copy().on(HoldRequested(6_000, 1), MovesObserved(7_000, ()))
    assert run.decided == "wait"
    with pytest.raises(JournalDamaged):
        machine_after(*SUBMITTED, HoldRequested(4_500, 1), TimePassed(5_000))


def test_an_answer_after_a_wait_ends_it_in_every_phase() -> None:
    run = Played(started(), CallFailed(1_000, "no answer"), ConfigsRead(2_000, BEFORE))
    assert run.decided == "set all rates"
