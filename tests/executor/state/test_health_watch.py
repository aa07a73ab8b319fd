"""Inspections and verdicts in a run, as events."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kreassign.executor.events import (
    Event,
    HealthObserved,
    LogDirTarget,
    MovesObserved,
    PlacementState,
    PlannedMove,
    RunResumed,
    RunStarted,
    SubmissionIntended,
    TimePassed,
    VerdictsRecorded,
)
from kreassign.executor.guards import GuardName, GuardSetting, Health, LogDirSpace, Reaction, Verdict
from kreassign.executor.guards.settings import reactions, settings
from kreassign.executor.instructions import (
    CancelMoves,
    CheckHealth,
    Instruction,
    ObserveMoves,
    ReadConfigs,
    RecordVerdicts,
    ReplanMoves,
    SetThrottle,
    SubmitMoves,
    Wait,
)
from kreassign.executor.scheduling import Pace
from kreassign.executor.state import WindDown, health_watch
from kreassign.executor.state.health_watch import CHECK_EVERY_MS, DOWN_MS, FRESH_MS, REPLANNING
from kreassign.executor.state.move import MoveStatus
from kreassign.executor.state.phases import Cancelling, CheckingHealth, RecordingVerdicts, SettingLists, Waiting
from kreassign.executor.state.run import Doubt, GuardBreach, Run
from kreassign.executor.throttle.ledger import ConfigValue
from kreassign.executor.throttle.rates import NO_THROTTLE
from kreassign.model import ConfigResource
from tests.executor.run_events import (
    A0,
    A1,
    LISTED,
    LIVE,
    MOVES,
    OVERRIDES,
    RATE,
    RATES,
    SUBMITTED,
    look,
    replayed,
    started,
)
from tests.executor.state.run_changes import Changes, changed, handled, run_after

MOVE = PlannedMove(A0, (0, 1), (2, 1), 1_000)
WELL = Health(LIVE)
WITHOUT_2 = Health((0, 1, 3, 4))
BARRED = Health(LIVE, cordoned=(2,))
UNTOUCHED = look(1_000, PlacementState.UNTOUCHED, MOVE)


def begun(guards: tuple[GuardSetting, ...] = settings()) -> RunStarted:
    return RunStarted(0, "run-1", "cluster-1", (MOVE,), NO_THROTTLE, LIVE, guards)


def noted(at_ms: int, *events: Event) -> VerdictsRecorded:
    """What the guards say last, as it is written down."""
    (order,) = replayed(*events)[1]
    assert isinstance(order, RecordVerdicts)
    return VerdictsRecorded(at_ms, order.verdicts)


def test_the_cluster_is_inspected_before_a_move_is_sent() -> None:
    assert replayed(begun(), UNTOUCHED)[1] == (CheckHealth((MOVE,), ()),)
    assert replayed(begun(), UNTOUCHED, HealthObserved(1_000, WELL))[1] == (SubmitMoves({A0: (2, 1)}),)


def test_an_inspection_is_made_again_when_it_is_old_and_earlier_when_something_shall_start() -> None:
    inspected = (begun(), UNTOUCHED, HealthObserved(1_000, BARRED))
    held = (*inspected, noted(1_000, *inspected), TimePassed(0))
    assert replayed(*held, MovesObserved(999 + FRESH_MS, ()))[1] == (Wait(),)
    assert replayed(*held, MovesObserved(1_000 + FRESH_MS, ()))[1] == (CheckHealth((MOVE,), (), BARRED),)
    moving = (begun(), look(1_000, PlacementState.MOVING, MOVE), HealthObserved(1_000, WELL))
    assert replayed(*moving, MovesObserved(999 + CHECK_EVERY_MS, ()))[1] == (Wait(),)
    assert replayed(*moving, MovesObserved(1_000 + CHECK_EVERY_MS, ()))[1] == (CheckHealth((MOVE,), (), WELL),)


def test_a_breach_holds_what_is_not_begun_until_it_is_over() -> None:
    breached = (begun(), UNTOUCHED, HealthObserved(1_000, BARRED))
    held = (*breached, noted(1_000, *breached))
    execution, instructions = replayed(*held)
    assert instructions == (Wait(),)
    assert (
        "broker 2 shall get copies, but is in maintenance, or its log directories are cordoned" in execution.problems[0]
    )
    over = (*held, TimePassed(20_000), MovesObserved(20_000, ()), HealthObserved(20_000, WELL))
    assert noted(20_000, *over).verdicts == ()
    assert replayed(*over, noted(20_000, *over))[1] == (SubmitMoves({A0: (2, 1)}),)


def test_what_the_guards_said_before_is_not_written_down_again() -> None:
    breached = (begun(), UNTOUCHED, HealthObserved(1_000, BARRED))
    again = (
        *breached,
        noted(1_000, *breached),
        TimePassed(20_000),
        MovesObserved(20_000, ()),
        HealthObserved(20_000, BARRED),
    )
    assert replayed(*again)[1] == (Wait(),)


def test_a_verdict_that_cancels_ends_the_run() -> None:
    verdict = Verdict(GuardName.DISK, Reaction.CANCEL, "full", "make room")
    events = (begun(), UNTOUCHED, HealthObserved(1_000, BARRED), VerdictsRecorded(1_000, (verdict,)))
    execution, instructions = replayed(*events)
    assert instructions == (ObserveMoves((MOVE,)),)
    assert (execution.wind_down, execution.wants_rollback) == (WindDown.CANCEL, False)


def test_a_destination_may_be_down_for_a_minute_and_then_gets_no_more_copies() -> None:
    moving = (begun(), look(1_000, PlacementState.MOVING, MOVE), HealthObserved(1_000, WITHOUT_2))

    def seen_again(at_ms: int) -> tuple[object, ...]:
        looked = (TimePassed(at_ms), look(at_ms, PlacementState.MOVING, MOVE), HealthObserved(at_ms, WITHOUT_2))
        return replayed(*moving, *looked)[1]

    assert seen_again(60_999) == (Wait(),)
    assert seen_again(61_000) == (CancelMoves((A0,)),)


def test_what_may_be_under_way_is_sent_again_though_a_guard_holds() -> None:
    """Nobody knows whether the request of the process that died arrived: asking again finds out, and begins nothing."""
    begun_before = (begun(), UNTOUCHED, HealthObserved(1_000, WELL), SubmissionIntended(1_000, (A0,)))
    looked = (RunResumed(30_000, LIVE), look(30_000, PlacementState.UNTOUCHED, MOVE), HealthObserved(30_000, BARRED))
    held = (*begun_before, *looked)
    assert replayed(*held, noted(30_000, *held))[1] == (SubmitMoves({A0: (2, 1)}),)


def test_where_moves_are_planned_again_a_destination_that_is_down_gets_another_one_in_its_place() -> None:
    first = (replace(begun(), replans=True), look(1_000, PlacementState.MOVING, MOVE), HealthObserved(1_000, WITHOUT_2))
    again = (TimePassed(61_000), look(61_000, PlacementState.MOVING, MOVE), HealthObserved(61_000, WITHOUT_2))
    execution, (question,) = replayed(*first, *again)
    assert isinstance(question, ReplanMoves)
    assert question.moves == (MOVE,)
    assert not execution.records[A0].is_given_up


# --- every row, with all that it changes ---------------------------------------------------------------------------

HOLD, CANCEL, ROLLBACK = (
    Verdict(GuardName.DISK, reaction, "full", "make room")
    for reaction in (Reaction.HOLD, Reaction.CANCEL, Reaction.ROLLBACK)
)
BROKER = Verdict(GuardName.BROKER, Reaction.WARN, "gone", "start it")
THROTTLE = Verdict(GuardName.FOREIGN_THROTTLE, Reaction.HOLD, "changed", "set it again")
FOREIGN = ConfigValue(RATES[0].key, "5")
BARE = "what is in flight goes on without it: a-0, a-1"


def checking(*events: Event, guards: tuple[GuardSetting, ...] = settings()) -> Run:
    """A run with guards that starts nothing, and whose health is about to be looked at."""
    run = run_after(*(events or SUBMITTED))
    run.identity.reactions = reactions(guards)
    run.state = CheckingHealth((), ())
    return run


@pytest.mark.parametrize("reason", ["reactions", "awaited", "due", "replans"])
def test_health_is_checked_where_anything_depends_on_it(reason: str) -> None:
    run = run_after(*SUBMITTED)
    assert not health_watch.is_due(run, (A0,), 5_000)
    match reason:
        case "reactions":
            run.identity.reactions = {GuardName.DISK: Reaction.WARN}
        case "awaited":
            run.throttle.awaited = frozenset({2})
        case "due":
            run.throttle.due = {RATES[0].key}
        case _:
            run.control.replans = True
    assert health_watch.is_due(run, (A0,), 5_000)
    run.health.checked_ms = 5_000
    assert not health_watch.is_due(run, (A0,), 4_999 + FRESH_MS)
    assert health_watch.is_due(run, (A0,), 5_000 + FRESH_MS)
    assert not health_watch.is_due(run, (), 4_999 + CHECK_EVERY_MS)
    assert health_watch.is_due(run, (), 5_000 + CHECK_EVERY_MS)


def test_a_check_of_a_cluster_that_is_well_remembers_it_and_goes_on() -> None:
    run = checking()
    assert handled(run, HealthObserved(5_000, WELL)) == (
        (Wait(),),
        {
            "state": Waiting(),
            "health.first": WELL,
            "health.checked_ms": 5_000,
            "health.disk_budget.rate_bytes_per_s": RATE,
        },
    )
    # The first one stays that of the beginning.
    busy = replace(WELL, cordoned=(4,))
    changes = {"health.checked_ms": 6_000, "state": Waiting()}
    assert handled(run, HealthObserved(6_000, busy), CheckingHealth((), ())) == ((Wait(),), changes)


def test_the_guards_judge_all_that_is_known_of_the_run() -> None:
    run = checking(*SUBMITTED, look(5_000, PlacementState.MOVING, done=100))
    run.health.first = Health((0, 1, 2, 3, 4, 5))
    run.control.pace = Pace(disk_reserve=0.25)
    run.throttle.doubts = {RATES[0].key: Doubt(FOREIGN, 0, is_foreign=True)}
    space = (LogDirSpace(2, "/a", 1_000, 249), LogDirSpace(3, "/a", 1_000, 649), LogDirSpace(4, "/a", 1_000, 0))
    found = replace(WELL, log_dir_space=space, cordoned=(2, 4), foreign_configs=(FOREIGN,))
    ((order,), changes) = handled(run, HealthObserved(700_000, found))
    assert isinstance(order, RecordVerdicts)
    assert [(one.guard, one.seen) for one in order.verdicts] == [
        (GuardName.BROKER, "brokers [5], which were there when the run began, are gone"),
        (GuardName.DISK, "/a of broker 2 has 249 of 1000 bytes left"),
        (
            GuardName.DISK,
            "broker 2 has 0 bytes left above the reserve in its log directories, and 900 are to come in",
        ),
        (
            GuardName.DISK,
            "broker 3 has 399 bytes left above the reserve in its log directories, and 400 are to come in",
        ),
        (
            GuardName.CORDONED,
            "broker 2 shall get copies, but is in maintenance, or its log directories are cordoned or offline",
        ),
        (
            GuardName.FOREIGN_THROTTLE,
            f"somebody else changed throttles of this run: {FOREIGN}, and the run had set it to '{RATE}'; {BARE}",
        ),
        (
            GuardName.STALL,
            "a-0 has made no progress for 11 minutes: broker 2 has 100 bytes, 900 left; in sync are [0, 1]",
        ),
        (
            GuardName.STALL,
            "a-1 has made no progress for 11 minutes: broker 3 has 100 bytes, 400 left; in sync are [1, 0]",
        ),
    ]
    assert changes["state"] == RecordingVerdicts((), (), frozenset())


def test_copies_into_named_directories_are_judged_by_those() -> None:
    named = replace(MOVES[0], log_dirs=(LogDirTarget(2, "/b"),))
    run = checking(started(named, throttle=None))
    space = (LogDirSpace(2, "/a", 1_000, 0), LogDirSpace(2, "/b", 9_000, 9_000))
    orders, _ = handled(run, HealthObserved(5_000, replace(WELL, log_dir_space=space)))
    assert orders == (Wait(),)


def test_a_move_whose_copies_caught_up_is_not_judged() -> None:
    run = checking(*SUBMITTED, look(5_000, PlacementState.MOVING))
    record = run.moves.records[A0]
    assert record.observation is not None
    record.observation = replace(record.observation, isr=(0, 1, 2))
    ((order,), _) = handled(run, HealthObserved(700_000, WELL))
    assert isinstance(order, RecordVerdicts)
    assert [one.seen.split()[0] for one in order.verdicts] == ["a-1"]


def test_a_setting_that_was_read_with_another_value_is_in_doubt_and_one_that_was_not_is_no_more() -> None:
    run = checking()
    first, second, third = (one.key for one in RATES[:3])
    run.throttle.doubts = {second: Doubt(FOREIGN, 1_000), third: Doubt(FOREIGN, 1_000)}
    unread = (ConfigResource.broker(2),)
    handled(run, HealthObserved(5_000, replace(WELL, foreign_configs=(FOREIGN,), unread_configs=unread)))
    assert run.throttle.doubts == {third: Doubt(FOREIGN, 1_000), first: Doubt(FOREIGN, 5_000)}


def test_brokers_that_are_back_are_throttled_next_once_their_settings_can_be_read() -> None:
    for unread, returned in (((), {2, 3}), ((ConfigResource.broker(3),), {2})):
        run = checking(guards=settings())
        run.throttle.awaited, run.throttle.live_brokers = frozenset({2, 3, 9}), (1, 0)
        run.health.verdicts = (HOLD,)
        health = replace(WELL, unread_configs=unread)
        ((order,), changes) = handled(run, HealthObserved(5_000, health), CheckingHealth((), (A1,)))
        assert order == RecordVerdicts(())
        assert changes["state"] == RecordingVerdicts((), (A1,), frozenset(returned))
        recorded = handled(run, VerdictsRecorded(6_000, ()))
        assert recorded[1]["throttle.live_brokers"] == tuple(sorted({0, 1, *returned}))
        assert isinstance(recorded[0][0], ReadConfigs | SetThrottle)


@pytest.mark.parametrize(("wind_down", "to_the_end", "is_set"), [
    (None, False, True),
    (WindDown.FINISH, False, False),
    (WindDown.FINISH, True, True),
])  # fmt: skip
def test_what_is_due_is_set_unless_a_cancelled_run_is_not_guarded_to_its_end(
    wind_down: WindDown | None, to_the_end: bool, is_set: bool
) -> None:
    run = checking()
    run.throttle.due = {one.key for one in OVERRIDES}
    run.control.wind_down, run.identity.guards_to_the_end = wind_down, to_the_end
    (order,) = handled(run, HealthObserved(5_000, WELL), CheckingHealth((), (A1,)))[0]
    assert order == (SetThrottle(OVERRIDES) if is_set else ObserveMoves(MOVES))


@pytest.mark.parametrize(("wind_down", "orders"), [
    (None, (CancelMoves((A1,)),)),
    (WindDown.FINISH, (ObserveMoves(MOVES),)),
])  # fmt: skip
def test_after_a_check_moves_are_cancelled_and_a_cancelled_run_looks_again(
    wind_down: WindDown | None, orders: tuple[Instruction, ...]
) -> None:
    run = checking()
    run.control.wind_down = wind_down
    assert handled(run, HealthObserved(5_000, WELL), CheckingHealth((A0,), (A1,)))[0] == orders
    # The same where the guards have something to say first.
    run.health.verdicts = (HOLD,)
    waits = handled(run, HealthObserved(6_000, WELL), CheckingHealth((A0,), (A1,)))
    assert waits[1]["state"] == RecordingVerdicts((A0,), (A1,), frozenset())
    assert handled(run, VerdictsRecorded(6_000, ()))[0] == orders


def test_what_guards_say_opens_breaches_and_what_they_say_no_more_closes_them() -> None:
    run = checking()
    run.health.breaches = [GuardBreach(BROKER, 1_000, 1_000, 2_000)]
    recording = RecordingVerdicts((), (), frozenset())
    noted = handled(run, VerdictsRecorded(5_000, (HOLD, BROKER)), recording)[1]
    opened = [GuardBreach(BROKER, 1_000, 1_000, 2_000), *(GuardBreach(one, 5_000, 5_000) for one in (HOLD, BROKER))]
    assert noted == {"state": Waiting(), "health.breaches": opened, "health.verdicts": (HOLD, BROKER)}
    seen_again = handled(run, HealthObserved(6_000, WELL), CheckingHealth((), ()))[1]
    opened[1:] = [GuardBreach(one, 5_000, 6_000) for one in (HOLD, BROKER)]
    assert seen_again["health.breaches"] == opened
    other = replace(BROKER, seen="others are gone")
    assert handled(run, VerdictsRecorded(7_000, (other,)))[1] == {
        "state": Waiting(),
        "health.breaches": [opened[0], GuardBreach(HOLD, 5_000, 6_000, 7_000), opened[2]],
        "health.verdicts": (other,),
    }


@pytest.mark.parametrize(("verdict", "control"), [
    (HOLD, {}),
    (CANCEL, {"control.wind_down": WindDown.CANCEL}),
    (ROLLBACK, {"control.wind_down": WindDown.CANCEL, "control.wants_rollback": True}),
])  # fmt: skip
def test_a_guard_may_cancel_the_run_and_ask_for_a_rollback(verdict: Verdict, control: Changes) -> None:
    run = checking()
    found = changed(run, lambda: health_watch.take_in(run, VerdictsRecorded(5_000, (BROKER, verdict))))[1]
    assert {path: value for path, value in found.items() if path.startswith("control")} == control
    # What was asked for once stays so.
    later = changed(run, lambda: health_watch.take_in(run, VerdictsRecorded(6_000, (BROKER,))))[1]
    assert [path for path in later if path.startswith("control")] == []


def test_what_others_changed_is_noted_as_told_when_a_guard_begins_to_say_so_and_not_before() -> None:
    run = checking()
    key = RATES[0].key
    run.throttle.doubts = {key: Doubt(FOREIGN, 0, is_foreign=True), RATES[1].key: Doubt(FOREIGN, 0)}
    health_watch.take_in(run, VerdictsRecorded(5_000, (THROTTLE,)))
    assert run.throttle.told == {key: FOREIGN}
    run.throttle.doubts[key] = Doubt(replace(FOREIGN, value="6"), 0, is_foreign=True)
    health_watch.take_in(run, VerdictsRecorded(6_000, (THROTTLE,)))
    assert run.throttle.told == {key: FOREIGN}


def test_news_are_other_guards_than_before_and_not_other_figures_of_the_same() -> None:
    run = checking()
    run.health.verdicts = (HOLD, BROKER)
    assert not health_watch.are_news(run, (replace(HOLD, seen="fuller"), BROKER))
    assert health_watch.are_news(run, (HOLD,))
    assert health_watch.are_news(run, (BROKER, HOLD))


@pytest.mark.parametrize(("is_held", "verdicts", "holds"), [
    (False, (), False),
    (True, (), True),
    (False, (BROKER,), False),
    (False, (BROKER, HOLD), True),
])  # fmt: skip
def test_an_operator_or_a_guard_holds_what_is_not_begun(
    is_held: bool, verdicts: tuple[Verdict, ...], holds: bool
) -> None:
    run = checking()
    run.control.is_held, run.health.verdicts = is_held, verdicts
    assert health_watch.holds(run) == holds


ABSENT = Health((0, 1, 4))
AWAY_2, AWAY_3 = (f"its destinations [{broker}] had been down for 60 s; plan it again" for broker in (2, 3))
HINT = ", or use `--replan` next time, which chooses other brokers"


def absences(run: Run, at_ms: int, health: Health) -> Changes:
    """What a check changes of what is known of brokers that are down."""
    found = handled(run, HealthObserved(at_ms, health), CheckingHealth((), ()))[1]
    return {path: value for path, value in found.items() if "health." not in path or path in DOWN}


DOWN = {"health.lost", "health.absent_since_ms"}


def test_moves_to_brokers_that_stay_down_are_given_up_after_a_minute() -> None:
    run = checking(*SUBMITTED, look(5_000, PlacementState.MOVING), guards=())
    since = {"health.absent_since_ms": {2: 5_000, 3: 5_000}}
    assert absences(run, 5_000, ABSENT) == {"state": Waiting(), **since}
    assert absences(run, 4_999 + DOWN_MS, ABSENT) == {"state": Waiting()}
    given_up = {"a-0.given_up": AWAY_2 + HINT, "a-1.given_up": AWAY_3 + HINT}
    assert absences(run, 5_000 + DOWN_MS, ABSENT) == {"state": Cancelling(), "health.lost": (2, 3), **given_up}
    assert absences(run, 65_001, Health((0, 1, 2, 4)))["health.absent_since_ms"] == {3: 5_000}
    assert absences(run, 66_000, WELL)["health.lost"] == ()
    again = {"state": Cancelling(), "health.absent_since_ms": {3: 70_000}}
    assert absences(run, 70_000, Health((0, 1, 2, 4))) == again


def test_moves_that_were_just_sent_are_not_given_up_and_those_that_wait_fail_at_once() -> None:
    run = checking(*SUBMITTED[:-1], guards=())
    run.health.absent_since_ms = {2: 0, 3: 0}
    assert absences(run, DOWN_MS, ABSENT) == {"state": Waiting(), "health.lost": (2, 3)}
    run = checking(*LISTED, guards=())
    run.health.absent_since_ms = {2: 0}
    assert absences(run, DOWN_MS, WITHOUT_2) == {
        "state": SettingLists(()),
        "health.lost": (2,),
        "a-0.given_up": AWAY_2 + HINT,
        "a-0.status": MoveStatus.FAILED,
        "a-0.completed_ms": DOWN_MS,
        "a-0.problem": AWAY_2 + HINT,
        "moves.index.queue": ["a-1"],
    }


def test_where_moves_are_planned_again_they_are_given_up_only_once_the_run_is_cancelled() -> None:
    run = checking(*SUBMITTED, look(5_000, PlacementState.MOVING), guards=())
    run.control.replans, run.health.absent_since_ms = True, {2: 0}
    run.tell(REPLANNING, 3_000, "no answer")
    (question,) = handled(run, HealthObserved(DOWN_MS, WITHOUT_2))[0]
    assert isinstance(question, ReplanMoves)
    assert not run.moves.records[A0].is_given_up
    assert run.problems.passing[REPLANNING]["no answer"].until_ms is None
    run.control.wind_down = WindDown.CANCEL
    health_watch.judge(run, (), HealthObserved(DOWN_MS, WITHOUT_2))
    assert run.moves.records[A0].given_up == AWAY_2
    health_watch.judge(run, (), HealthObserved(DOWN_MS + 1, WELL))
    assert run.problems.passing[REPLANNING]["no answer"].until_ms == DOWN_MS + 1


def test_brokers_whose_moves_went_elsewhere_are_watched_still() -> None:
    run = checking(guards=())
    run.health.replaced = frozenset({4})
    health_watch.judge(run, (), HealthObserved(5_000, Health((0, 1, 2, 3))))
    assert run.health.absent_since_ms == {4: 5_000}
