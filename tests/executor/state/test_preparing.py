"""The beginning of a run and of a resumed one: what each event orders, and all that it changes."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import pytest

from kreassign.executor.events import (
    CallFailed,
    ConfigsRead,
    LogDirTarget,
    Operator,
    PlacementState,
    RunResumed,
    RunStarted,
    ThrottleChecked,
    ThrottleSet,
    TimePassed,
    Unwritten,
)
from kreassign.executor.guards import GuardName, GuardSetting, Reaction
from kreassign.executor.instructions import (
    CheckThrottle,
    ElectLeaders,
    ObserveMoves,
    ReadConfigs,
    SetThrottle,
    Wait,
)
from kreassign.executor.scheduling import Pace
from kreassign.executor.state import finishing, moving, preparing
from kreassign.executor.state.move import MoveRecord, Replan
from kreassign.executor.state.move_steps import move_steps
from kreassign.executor.state.phases import (
    Afterwards,
    Electing,
    Failed,
    Observing,
    Preparing,
    Restore,
    Restoring,
    Resuming,
    Throttling,
)
from kreassign.executor.state.preparing import CONFIG_PATIENCE_MS, READING
from kreassign.executor.state.run import Control, Doubt, PassingProblem, Run, RunIdentity, ThrottleLedger
from kreassign.executor.state.throttle_watch import PROPAGATION_MS
from kreassign.executor.throttle.ledger import ConfigKey, ConfigOverride, ConfigValue
from kreassign.executor.throttle.originals import FoundThrottles
from kreassign.executor.throttle.rates import ThrottleRates
from kreassign.model import ConfigResource
from kreassign.model.throttle import FOLLOWER_THROTTLED_RATE, LEADER_THROTTLED_RATE, LOG_DIR_RATE
from tests.executor.run_events import (
    A0,
    A1,
    ARRIVED,
    BEFORE,
    KEYS,
    KNOWN,
    LISTED,
    LISTS,
    MOVES,
    OVERRIDES,
    PREPARED,
    RATE,
    RATES,
    SUBMITTED,
    look,
    started,
)
from tests.executor.state.run_changes import Changes, changed, handled, run_after

ANN, BOB = Operator("ann", "host"), Operator("bob", "host")
BOTH = (A0, A1)
OURS = f"the run had set it to '{RATE}'"
OBSERVE = ObserveMoves(MOVES)
KEYS_SET = {one.key: one for one in OVERRIDES}
TOPIC = ConfigResource.topic("a")


def guarded(run: Run, reaction: Reaction = Reaction.HOLD) -> Run:
    run.identity.reactions, run.identity.rereads_throttle = {GuardName.FOREIGN_THROTTLE: reaction}, True
    run.identity.rereads_first = True
    return run


# --- beginning -----------------------------------------------------------------------------------------------------

BEGUN = RunStarted(
    7,
    "run-1",
    "cluster-1",
    (replace(MOVES[0], target=(2, 3)), MOVES[1]),
    ThrottleRates(RATE),
    (4, 3, 2, 1, 0),
    (GuardSetting(GuardName.DISK, Reaction.WARN), GuardSetting(GuardName.STALL, Reaction.OFF)),
    Pace(elections_per_step=3),
    "plan-1",
    ANN,
    rereads_throttle=True,
    guards_to_the_end=True,
    rereads_first=True,
    found=FoundThrottles.ALONGSIDE,
    originals=(ConfigValue(LISTS[0].key, "7:7"),),
    adopted=(ConfigValue(RATES[0].key, "8"),),
    replans=True,
)


def test_a_run_begins_with_all_that_it_was_given() -> None:
    run = Run()
    (orders, _) = handled(run, BEGUN)
    assert isinstance(orders[0], ReadConfigs)
    assert run.identity == RunIdentity(
        "run-1",
        "cluster-1",
        7,
        "plan-1",
        (ANN,),
        ANN,
        {GuardName.DISK: Reaction.WARN},
        rereads_throttle=True,
        guards_to_the_end=True,
        rereads_first=True,
    )
    assert run.control == Control(ThrottleRates(RATE), Pace(elections_per_step=3), replans=True)
    assert run.throttle == ThrottleLedger(
        (4, 3, 2, 1, 0),
        originals={LISTS[0].key: "7:7"},
        adopted={RATES[0].key: "8"},
        is_alongside=True,
    )
    assert run.moves.records == {move.topic_partition: MoveRecord(move) for move in BEGUN.moves}
    assert [*run.moves.index.unsettled] == [A0, A1]


def test_a_run_in_steps_has_those_of_each_move_and_another_none() -> None:
    run = run_after(replace(BEGUN, pace=Pace(is_stepwise=True), found=FoundThrottles.REFUSE))
    assert [one.steps for one in run.moves.records.values()] == [move_steps(move) for move in BEGUN.moves]
    assert not run.throttle.is_alongside


RESUMED = RunResumed(9_000, (2, 1, 0), BOB)


def test_whoever_resumes_a_run_is_noted_with_the_brokers_that_are_live() -> None:
    run = run_after(*SUBMITTED)
    run.identity.note(ANN)
    run.identity.rereads_first = True
    handled(run, RESUMED)
    assert (run.identity.operators, run.identity.operator) == ((ANN, BOB), BOB)
    assert run.throttle.live_brokers == (2, 1, 0)
    assert (run.identity.rereads_first, run.control.replans) == (False, False)
    handled(run, replace(RESUMED, rereads_first=True, replans=True))
    assert (run.identity.rereads_first, run.control.replans) == (True, True)
    handled(run, RESUMED)
    assert (run.identity.rereads_first, run.control.replans) == (False, True)


def worn() -> Run:
    """A run with everything in it that belongs to the process that is gone."""
    run = run_after(*SUBMITTED, look(5_000, PlacementState.MOVING, done=100))
    odd = ConfigValue(RATES[0].key, "5")
    throttle = run.throttle
    throttle.unset_since_ms, throttle.unread, throttle.is_lost = 4_000, (TOPIC,), True
    throttle.doubts, throttle.due, throttle.is_asked_for = {odd.key: Doubt(odd, 4_000)}, {odd.key}, True
    throttle.unseen = {odd.key}
    run.control.is_held = True
    run.problems.unrestored, run.problems.findings = ("not restored",), ("a-0 is elsewhere",)
    run.tell(finishing.RESTORING, 4_000, "no")
    run.health.checked_ms, run.health.absent_since_ms, run.health.lost = 4_000, {2: 4_000}, (2,)
    run.traffic.measured_ms = 4_000
    return run


TIMES: Changes = {
    f"a-{move}.{attempts}.{time}_ms": 9_000
    for move in (0, 1)
    for attempts in ("submissions", "cancellations")
    for time in ("first", "last", "due")
}
FROM_SCRATCH: Changes = {
    **TIMES,
    **{f"a-{move}.progressed_ms": 9_000 for move in (0, 1)},
    **{f"a-{move}.anchor": None for move in (0, 1)},
    "moves.speed.most_done_bytes": 0.0,
    "throttle.unset_since_ms": None,
    "throttle.unread": (),
    "throttle.doubts": {},
    "throttle.is_asked_for": False,
    "control.is_held": False,
    "problems.unrestored": (),
    "problems.findings": (),
    "problems.passing": {finishing.RESTORING: {"no": PassingProblem("no", 4_000, 9_000)}},
    "health.checked_ms": None,
    "health.absent_since_ms": {},
    "health.lost": (),
    "traffic.measured_ms": None,
}
"""What begins from scratch in a run that is resumed."""


def test_no_patience_spans_two_processes_and_all_that_was_left_is_set_again() -> None:
    run = worn()
    assert changed(run, lambda: preparing.resume(run, 9_000)) == (
        (Throttling(), (SetThrottle(OVERRIDES),)),
        {
            **FROM_SCRATCH,
            "throttle.due": set(),
            "throttle.unseen": set(),
            "throttle.in_force": set(),
            "throttle.is_lost": False,
        },
    )


def test_a_run_that_reads_first_what_it_left_asks_for_all_of_it() -> None:
    run = guarded(worn())
    assert changed(run, lambda: preparing.resume(run, 9_000)) == (
        (Resuming(), (CheckThrottle(OVERRIDES),)),
        {**FROM_SCRATCH, "throttle.before": {}, "throttle.due": {*KEYS_SET}, "throttle.unseen": {*KEYS_SET}},
    )


def test_where_another_run_may_have_restored_it_is_looked_at_to_be_told_and_not_to_be_doubted() -> None:
    run = guarded(worn())
    run.throttle.in_force = {*KEYS_SET} - {LISTS[0].key}
    were_set = tuple(sorted({*KEYS_SET} - {LISTS[0].key}))
    assert changed(run, lambda: preparing.resume(run, 9_000, others_may_restore=True)) == (
        (Resuming(None, were_set), (CheckThrottle(OVERRIDES),)),
        {
            **FROM_SCRATCH,
            "throttle.before": {},
            "throttle.due": {*KEYS_SET},
            "throttle.unseen": set(),
            "throttle.in_force": set(),
            "throttle.is_lost": False,
        },
    )


@pytest.mark.parametrize("lacks", ["guard", "throttle in force", "moves"])
def test_nobody_looks_at_what_does_not_matter_any_more(lacks: str) -> None:
    run = guarded(run_after(*(ARRIVED if lacks == "moves" else SUBMITTED)))
    if lacks == "guard":
        run.identity.reactions = {}
    if lacks == "throttle in force":
        run.throttle.in_force = set()
    expected = (Electing(()), (ElectLeaders((A0,)),)) if lacks == "moves" else (Throttling(), (SetThrottle(OVERRIDES),))
    assert preparing.resume(run, 9_000, others_may_restore=True) == expected


# --- reading what was left -----------------------------------------------------------------------------------------


def resuming() -> Run:
    """A guarded run that reads what it left."""
    run = guarded(run_after(*SUBMITTED))
    run.state, _ = preparing.resume(run, 9_000)
    return run


def test_what_is_as_it_was_set_is_set_again() -> None:
    run = resuming()
    run.tell(READING, 9_500, "no answer")
    assert handled(run, ThrottleChecked(10_000)) == (
        (SetThrottle(OVERRIDES),),
        {
            "state": Throttling(),
            "throttle.before": KNOWN,
            "throttle.due": set(),
            "throttle.unseen": set(),
            "problems.passing": {READING: {"no answer": PassingProblem("no answer", 9_500, 10_000)}},
        },
    )


def test_what_could_not_be_read_is_read_again_for_a_minute_and_what_is_in_flight_watched_afterwards() -> None:
    run = resuming()
    unread = ThrottleChecked(10_000, unread=(TOPIC, ConfigResource.broker(1)))
    left = {*(one.key for one in LISTS), RATES[1].key}
    again = {"state": Resuming(10_000), "throttle.unseen": left}
    assert handled(run, unread) == ((Wait(),), again)
    assert handled(run, TimePassed(11_000)) == ((CheckThrottle(OVERRIDES),), {})
    assert handled(run, replace(unread, at_ms=9_999 + CONFIG_PATIENCE_MS)) == ((Wait(),), {})
    late = 10_000 + CONFIG_PATIENCE_MS
    texts = ("topic a could not be read", "broker 1 could not be read")
    assert handled(run, replace(unread, at_ms=late)) == (
        (OBSERVE,),
        {
            "state": Observing(BOTH),
            "problems.passing": {READING: {text: PassingProblem(text, late) for text in texts}},
        },
    )


def test_where_nobody_answers_it_is_asked_again() -> None:
    run = resuming()
    assert handled(run, CallFailed(10_000, "no answer")) == ((Wait(),), {"state": Resuming(10_000)})
    late = 10_000 + CONFIG_PATIENCE_MS
    told = {READING: {"no answer": PassingProblem("no answer", late)}}
    assert handled(run, CallFailed(late, "no answer")) == (
        (OBSERVE,),
        {"state": Observing(BOTH), "problems.passing": told},
    )


def test_what_is_odd_is_read_a_second_time() -> None:
    run = resuming()
    odd = ConfigValue(RATES[0].key, "5")
    assert handled(run, ThrottleChecked(10_000, (odd,)), Resuming(9_500)) == (
        (Wait(),),
        {"state": Resuming(), "throttle.unseen": {odd.key}, "throttle.doubts": {odd.key: Doubt(odd, 10_000)}},
    )
    late = 10_000 + PROPAGATION_MS
    orders, changes = handled(run, ThrottleChecked(late, (odd,)))
    assert orders == (SetThrottle(OVERRIDES[1:]),)
    assert changes == {
        "state": Throttling(),
        "throttle.before": KNOWN,
        "throttle.due": set(),
        "throttle.unseen": set(),
        "throttle.doubts": {odd.key: Doubt(odd, 10_000, is_foreign=True)},
        "throttle.was_found_changed": True,
        "throttle.told": {odd.key: odd},
        "problems.noted": [f"someone else had changed a throttle when the run was resumed: {odd.then}, and {OURS}"],
    }


def test_whoever_asked_for_a_throttle_does_not_keep_the_moves_waiting_for_an_answer() -> None:
    run = resuming()
    run.throttle.is_asked_for = True
    told = {READING: {"no answer": PassingProblem("no answer", 10_000)}}
    assert handled(run, CallFailed(10_000, "no answer")) == (
        (OBSERVE,),
        {"state": Observing(BOTH), "problems.passing": told},
    )


def test_what_differs_when_the_lease_is_had_again_is_told_and_set() -> None:
    run = guarded(run_after(*SUBMITTED))
    run.state, _ = preparing.resume(run, 9_000, others_may_restore=True)
    odd = ConfigValue(RATES[0].key, None)
    silent = deepcopy(run)
    assert handled(run, ThrottleChecked(10_000, (odd,))) == (
        (SetThrottle(OVERRIDES),),
        {
            "state": Throttling(),
            "throttle.before": KNOWN,
            "throttle.due": set(),
            "problems.noted": [f"when the run had the lease again, {odd.then}; {OURS} and set it again"],
        },
    )
    assert handled(silent, CallFailed(10_000, "no answer")) == (
        (SetThrottle(OVERRIDES),),
        {"state": Throttling(), "throttle.before": KNOWN, "throttle.due": set()},
    )


# --- reading what was before ---------------------------------------------------------------------------------------


def test_where_nothing_is_to_be_throttled_or_restored_it_begins_to_move() -> None:
    run = run_after(started(throttle=None))
    assert preparing.enter(run) == (Observing(BOTH), (OBSERVE,))
    run.throttle.adopted = {RATES[0].key: "5"}
    assert preparing.enter(run)[0] == Preparing()
    run.throttle.adopted = {}
    run.control.rates = ThrottleRates(5)
    assert preparing.enter(run)[0] == Preparing()
    over = run_after(*ARRIVED)
    assert preparing.enter(over) == (Electing(()), (ElectLeaders((A0,)),))


def test_a_throttle_that_was_taken_away_is_set_back_while_it_is_pending() -> None:
    run = run_after(*SUBMITTED)
    run.control.rates = ThrottleRates()
    back = tuple(replace(one, value=one.before, unconfirmed=(str(one.value),)) for one in RATES)
    assert preparing.enter(run) == (Throttling(), (SetThrottle(back),))


def test_a_guarded_throttle_that_nobody_has_seen_is_seen_first() -> None:
    run = guarded(run_after(*SUBMITTED))
    run.throttle.unseen = {LISTS[0].key}
    assert preparing.enter(run) == (Resuming(), (CheckThrottle(OVERRIDES),))
    run.identity.reactions = {}
    assert preparing.enter(run) == (Observing(BOTH), (OBSERVE,))


def test_settings_of_brokers_that_are_down_are_not_read_but_set_once_they_are_back() -> None:
    within = replace(MOVES[1], log_dirs=(LogDirTarget(1, "/b", "/a"), LogDirTarget(0, "/b", "/a")))
    run = run_after(replace(started(MOVES[0], within), live_brokers=(0, 1, 2)))
    local = (ConfigKey(ConfigResource.broker(0), LOG_DIR_RATE), ConfigKey(ConfigResource.broker(1), LOG_DIR_RATE))
    keys = tuple(key for key in KEYS if key.broker != 3)
    assert preparing.enter(run) == (Preparing(), (ReadConfigs((*keys, *local)),))
    assert run.throttle.awaited == {3}
    run.throttle.awaited = frozenset()
    run.throttle.live_brokers = (1, 2)
    preparing.enter(run)
    assert run.throttle.awaited == {0, 3}


def test_what_others_left_behind_is_read_too_and_nothing_twice() -> None:
    other = ConfigKey(ConfigResource.broker(4), LEADER_THROTTLED_RATE)
    run = run_after(started())
    run.throttle.adopted = {other: "5", KEYS[0]: "6"}
    assert preparing.enter(run)[1] == (ReadConfigs((*KEYS, other)),)
    run.throttle.pending = {RATES[0].key: RATES[0]}
    unknown = tuple(key for key in (*KEYS, other) if key != RATES[0].key)
    assert preparing.enter(run)[1] == (ReadConfigs(unknown),)


def test_a_move_that_shall_lead_elsewhere_has_its_new_destinations_throttled() -> None:
    run = run_after(*SUBMITTED)
    run.moves.records[A0].replan(Replan(5_000, (2,), (2, 1), (4, 1)))
    new = ConfigKey(ConfigResource.broker(4), FOLLOWER_THROTTLED_RATE)
    assert preparing.enter(run) == (Preparing(), (ReadConfigs((new,)),))


def test_brokers_that_are_down_after_all_are_awaited() -> None:
    run = run_after(started())
    values = tuple(one for one in BEFORE if one.key.broker != 3)
    run.throttle.awaited = frozenset({4})
    run.tell(READING, 500, "no answer")
    orders, changes = handled(run, ConfigsRead(1_000, values, down=(3,)))
    assert orders == (SetThrottle(tuple(one for one in RATES if one.key.broker != 3)),)
    assert changes == {
        "state": Throttling(),
        "throttle.live_brokers": (0, 1, 2, 4),
        "throttle.awaited": {3},
        "throttle.before": {one.key: one.value for one in values},
        "problems.passing": {READING: {"no answer": PassingProblem("no answer", 500, 1_000)}},
    }


def test_what_shall_be_at_the_end_is_not_what_was_found_where_others_had_changed_it() -> None:
    run = run_after(started())
    run.throttle.originals = {RATES[0].key: "70", RATES[1].key: None}
    handled(run, ConfigsRead(1_000, BEFORE))
    assert run.throttle.before == {**KNOWN, RATES[0].key: "70", RATES[1].key: None}


@pytest.mark.parametrize(("event", "texts"), [
    (ConfigsRead(1_000, BEFORE, ("broker 1 could not be read",)), ("broker 1 could not be read",)),
    (CallFailed(1_000, "no answer"), ("no answer",)),
])  # fmt: skip
def test_settings_are_asked_for_again_for_a_minute(event: ConfigsRead | CallFailed, texts: tuple[str, ...]) -> None:
    run = run_after(started())
    assert handled(run, event) == ((Wait(),), {"state": Preparing(1_000)})
    assert handled(run, TimePassed(2_000)) == ((ReadConfigs(KEYS),), {})
    assert handled(run, replace(event, at_ms=999 + CONFIG_PATIENCE_MS)) == ((Wait(),), {})
    late, noted = 1_000 + CONFIG_PATIENCE_MS, "the throttle could not be set, so nothing more was started"
    assert handled(run, replace(event, at_ms=late)) == (
        (),
        {"state": Failed(late), "problems.noted": [*texts, noted]},
    )


def test_what_is_in_flight_is_watched_though_settings_cannot_be_read() -> None:
    run = run_after(*SUBMITTED)
    late = 1_000 + CONFIG_PATIENCE_MS
    told = {READING: {"no answer": PassingProblem("no answer", late)}}
    assert handled(run, CallFailed(late, "no answer"), Preparing(1_000)) == (
        (OBSERVE,),
        {"state": Observing(BOTH), "problems.passing": told},
    )


def test_what_was_set_already_is_restored_where_the_rest_cannot_be_read() -> None:
    run = run_after(*PREPARED)
    late = 1_000 + CONFIG_PATIENCE_MS
    run.tell(READING, 500, "no answer")
    assert handled(run, CallFailed(late, "no answer"), Preparing(1_000)) == (
        (ReadConfigs(tuple(one.key for one in RATES)),),
        {
            "state": Restoring(Restore(Afterwards.FAIL)),
            "problems.passing": {},
            "problems.noted": ["no answer", "the throttle could not be set, so nothing more was started"],
        },
    )


# --- setting -------------------------------------------------------------------------------------------------------


def settings_made(run: Run) -> dict[str, str | None]:
    """What is about to be set, of whom, and to which value."""
    orders = preparing._set(run)[1]
    assert len(orders) == 1
    order = orders[0]
    return {str(one.key): one.value for one in order.overrides} if isinstance(order, SetThrottle) else {}


FIRST, SECOND, THIRD, LAST = (str(one.key) for one in RATES)


def test_set_is_what_is_wanted_and_not_so_yet() -> None:
    run = run_after(*LISTED)
    assert settings_made(run) == {}
    assert preparing._set(run) == (Observing(BOTH), (OBSERVE,))
    run.control.rates = ThrottleRates(5)
    assert settings_made(run) == dict.fromkeys((FIRST, SECOND, THIRD, LAST), "5")


def test_what_is_due_is_set_again_before_what_is_new() -> None:
    run = run_after(*LISTED)
    run.throttle.due = {LISTS[1].key, RATES[2].key}
    run.throttle.pending[RATES[0].key] = replace(RATES[0], value="5")
    run.throttle.is_asked_for = True
    assert changed(run, lambda: preparing._set(run)) == (
        (Throttling(), (SetThrottle((RATES[2], LISTS[1], replace(RATES[0], unconfirmed=("5",)))),)),
        {"throttle.due": set(), "throttle.is_asked_for": False},
    )


def test_brokers_that_are_back_get_theirs_again_and_are_awaited_no_more() -> None:
    run = run_after(*LISTED)
    run.throttle.awaited, run.throttle.live_brokers = frozenset({2, 3, 7}), (0, 1, 2)
    found, changes = changed(run, lambda: preparing._set(run))
    assert found == (Throttling(), (SetThrottle((RATES[2],)),))
    assert changes == {"throttle.awaited": {3, 7}}
    run.throttle.awaited = frozenset({2})
    run.throttle.doubts = {RATES[2].key: Doubt(ConfigValue(RATES[2].key, "5"), 1_000)}
    assert preparing._set(run) == (Observing(BOTH), (OBSERVE,))


def test_what_is_in_doubt_is_set_only_where_it_is_due() -> None:
    run = run_after(*LISTED)
    run.control.rates = ThrottleRates(5)
    run.throttle.doubts = {one.key: Doubt(ConfigValue(one.key, "7"), 1_000) for one in RATES[:2]}
    run.throttle.due = {RATES[1].key}
    assert settings_made(run) == dict.fromkeys((SECOND, THIRD, LAST), "5")


def test_of_what_is_pending_the_value_before_is_known() -> None:
    run = run_after(*LISTED)
    other = ConfigKey(ConfigResource.broker(4), LEADER_THROTTLED_RATE)
    run.throttle.before = {other: "9", RATES[0].key: "wrong"}
    preparing._set(run)
    assert run.throttle.before == {other: "9", **KNOWN}


def adopting(broker: int, value: str | None) -> dict[int | None, str | None]:
    """What is set of which broker where others left this rate, and the run wants one for all brokers but broker 4."""
    run = run_after(started())
    key = ConfigKey(ConfigResource.broker(broker), LEADER_THROTTLED_RATE)
    run.throttle.adopted, run.throttle.before = {key: value}, {key: "70", RATES[1].key: "70"}
    run.control.rates = ThrottleRates(5).changed(None, (4,))
    return {key.broker: one.value for key, one in wanted(run).items()}


def wanted(run: Run) -> dict[ConfigKey, ConfigOverride]:
    orders = preparing._set(run)[1]
    return {one.key: one for order in orders if isinstance(order, SetThrottle) for one in order.overrides}


def test_what_others_left_behind_stays_where_the_run_has_no_other_rate_for_it() -> None:
    assert adopting(0, "6") == {0: "5", 1: "5"}
    assert adopting(4, "6") == {1: "5", 4: "6"}
    assert adopting(4, None) == {1: "5", 4: None}


def test_what_others_left_behind_and_nobody_has_read_is_left_alone() -> None:
    run = run_after(started())
    run.throttle.adopted = {ConfigKey(ConfigResource.broker(4), LEADER_THROTTLED_RATE): "6"}
    assert wanted(run) == {}


def test_what_was_found_and_is_wanted_so_is_adopted_as_it_was_found() -> None:
    run = run_after(started())
    key = RATES[0].key
    run.throttle.adopted, run.throttle.before = {key: "6"}, {key: str(RATE)}
    assert wanted(run) == {key: ConfigOverride(key, str(RATE), "6")}


@pytest.mark.parametrize(("event", "until_ms"), [
    (ThrottleSet(3_000), 3_000),
    (ThrottleSet(3_000, ("no",), failed=(TOPIC,), may_pass=True), None),
])  # fmt: skip
def test_once_all_is_set_or_what_is_not_may_pass_it_moves(event: ThrottleSet, until_ms: int | None) -> None:
    run = run_after(*PREPARED[:3])
    run.tell(moving.SETTING, 1_500, "earlier")
    handled(run, event)
    assert (run.state, run.problems.noted) == (Observing(BOTH), [])
    assert run.problems.passing == {moving.SETTING: {"earlier": PassingProblem("earlier", 1_500, until_ms)}}


@pytest.mark.parametrize("event", [
    ThrottleSet(3_000, ("no",), failed=(TOPIC,)),
    ThrottleSet(3_000, ("no",), may_pass=True),
])  # fmt: skip
def test_what_could_not_be_set_for_good_ends_the_run(event: ThrottleSet) -> None:
    run = run_after(*PREPARED[:3])
    run.tell(moving.SETTING, 1_500, "earlier")
    orders, changes = handled(run, event)
    assert orders == (ReadConfigs(tuple(one.key for one in RATES)),)
    assert changes["state"] == Restoring(Restore(Afterwards.FAIL))
    assert changes["problems.noted"] == ["no", "the throttle could not be set, so nothing more was started"]
    assert changes["problems.passing"] == {}


def test_what_is_in_flight_goes_on_without_its_throttle_and_that_is_told() -> None:
    run = run_after(*SUBMITTED)
    event = ThrottleSet(5_000, ("no",), (Unwritten(3, "it is down"),))
    assert handled(run, event, Throttling()) == (
        (OBSERVE,),
        {
            "state": Observing(BOTH),
            "throttle.awaited": {3},
            "problems.unset": {
                3: "the throttle of broker 3 could not be written: it is down; it is set when the broker is back"
            },
            "problems.passing": {moving.SETTING: {"no": PassingProblem("no", 5_000)}},
        },
    )
