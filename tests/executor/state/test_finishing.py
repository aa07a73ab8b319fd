"""The end of a run: elections in steps, settings that cannot be restored, and a result that cannot be verified."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import pytest

from kreassign.executor.events import (
    CallFailed,
    ConfigsRead,
    Event,
    LeadersElected,
    PlacementState,
    PlannedMove,
    Refusal,
    RunStarted,
    ThrottleRestored,
    TimePassed,
    Unwritten,
    Verified,
)
from kreassign.executor.guards import GuardName, Reaction
from kreassign.executor.instructions import ElectLeaders, ReadConfigs, RestoreThrottle, Verify, Wait
from kreassign.executor.scheduling import Pace
from kreassign.executor.state import Phase, finishing
from kreassign.executor.state.finishing import CALL_PATIENCE_MS, RESTORING, VERIFY_PATIENCE_MS
from kreassign.executor.state.move import MoveStatus
from kreassign.executor.state.phases import (
    Afterwards,
    Cancelled,
    ConfirmingRestore,
    Done,
    Electing,
    Failed,
    Paused,
    Restore,
    Restoring,
    RunState,
    Verifying,
    WritingBack,
    failing,
)
from kreassign.executor.state.run import Doubt, PassingProblem, Run
from kreassign.executor.state.throttle_watch import PROPAGATION_MS
from kreassign.executor.throttle.ledger import ConfigValue
from kreassign.executor.throttle.rates import NO_THROTTLE
from kreassign.model import TopicPartition
from tests.executor.run_events import (
    A0,
    A1,
    ARRIVED,
    ELECTED,
    LISTS,
    LIVE,
    MOVES,
    OVERRIDES,
    RATE,
    RATES,
    RESTORED,
    SUBMITTED,
    look,
    replayed,
    seen,
    started,
    with_before,
    with_our_values,
)
from tests.executor.state.run_changes import handled, run_after

ONE_BY_ONE: tuple[Event, ...] = (
    RunStarted(
        0,
        "run-1",
        "cluster-1",
        tuple(replace(move, topic_id="id of a") for move in MOVES),
        NO_THROTTLE,
        LIVE,
        pace=Pace(elections_per_step=1),
    ),
    look(1_000, PlacementState.ARRIVED, MOVES[0], leader=1),
    TimePassed(1_000),
    look(2_000, PlacementState.ARRIVED, MOVES[1], leader=3),
)
WRITTEN_BACK: tuple[Event, ...] = (*ELECTED, ConfigsRead(9_000, with_our_values()))


def test_leaders_are_elected_a_step_at_a_time_with_the_ids_of_their_topics() -> None:
    assert replayed(*ONE_BY_ONE)[1] == (ElectLeaders((A0,), {"a": "id of a"}),)
    assert replayed(*ONE_BY_ONE, LeadersElected(3_000, (A0,)))[1] == (Wait(),)
    again = (LeadersElected(3_000, (A0,)), TimePassed(4_000))
    assert replayed(*ONE_BY_ONE, *again)[1] == (ElectLeaders((A1,), {"a": "id of a"}),)


def test_an_election_that_is_refused_or_fails_is_told_and_ends_no_run() -> None:
    refused = replayed(*ARRIVED, LeadersElected(8_000, (), (Refusal(A0, "not in sync"),)))
    failed = replayed(*ARRIVED, CallFailed(8_000, "no answer"))
    assert "not in sync" in refused[0].problems[0]
    assert "no answer" in failed[0].problems[0]
    assert all(isinstance(instructions[0], ReadConfigs) for _, instructions in (refused, failed))


def test_settings_of_a_broker_that_the_cluster_does_not_know_any_more_are_given_up_and_told() -> None:
    view, _ = replayed(*WRITTEN_BACK, ThrottleRestored(10_000, unregistered=(2,)))
    assert {key.broker for key in view.pending_restores} == {one.key.broker for one in OVERRIDES} - {2}
    assert any("did not know that broker any more" in problem for problem in view.problems)


def test_settings_that_a_controller_took_for_a_broker_that_is_down_are_restored() -> None:
    view, _ = replayed(*WRITTEN_BACK, ThrottleRestored(10_000, by_controller=(2,)))
    assert {key.broker for key in view.pending_restores} == {one.key.broker for one in OVERRIDES} - {2}
    assert any("broker 2 was down" in problem for problem in view.problems)


def test_a_result_is_verified_again_for_a_minute_where_nobody_answers() -> None:
    silent = (*RESTORED, CallFailed(12_000, "no answer"))
    assert replayed(*silent)[1] == (Wait(),)
    assert isinstance(replayed(*silent, TimePassed(13_000))[1][0], Verify)
    late = 12_000 + CALL_PATIENCE_MS
    still = replayed(*silent, TimePassed(late), CallFailed(late - 1, "no answer"))
    assert (still[0].phase, still[1]) == (Phase.VERIFYING, (Wait(),))
    view, _ = replayed(*silent, TimePassed(late), CallFailed(late, "no answer"))
    assert (view.phase, view.ended_ms, len(view.findings)) == (Phase.FAILED, late, 1)


def test_brokers_may_take_a_while_to_show_what_is_so() -> None:
    doubtful = (*RESTORED, Verified(12_000, ("a-0 is elsewhere",)))
    assert replayed(*doubtful)[1] == (Wait(),)
    late = 12_000 + VERIFY_PATIENCE_MS
    assert replayed(*doubtful, TimePassed(late), Verified(late, ()))[0].phase is Phase.DONE
    view, _ = replayed(*doubtful, TimePassed(late), Verified(late, ("a-0 is elsewhere",)))
    assert (view.phase, view.findings) == (Phase.FAILED, ("a-0 is elsewhere",))


# --- every row, with all that it changes ---------------------------------------------------------------------------

KEYS_SET = tuple(one.key for one in OVERRIDES)
AT_END = Restore(Afterwards.VERIFY)


def at_end(*events: Event) -> Run:
    """A run whose moves are made, with all its throttle in force."""
    return run_after(*(events or ELECTED))


def test_leaders_are_elected_where_a_move_is_complete_and_another_than_its_first_replica_leads() -> None:
    moves = tuple(
        PlannedMove(TopicPartition("a", number), (0, 1), (1, 0), 0, topic_id=f"id {number}") for number in range(6)
    )
    run = run_after(started(*moves, throttle=None), look(1_000, PlacementState.ARRIVED, *moves, leader=0))
    names = tuple(move.topic_partition for move in moves)
    run.control.pace = Pace(elections_per_step=2)
    records = run.moves.records
    records[names[1]].status = MoveStatus.FAILED
    records[names[2]].observation = None
    records[names[3]].see(seen(moves[3], PlacementState.ARRIVED, leader=1), 2_000)
    assert finishing.elect(run) == (Electing((names[5],)), (ElectLeaders((names[0], names[4]), {"a": "id 4"}),))


def test_where_every_leader_is_the_preferred_one_the_throttle_is_restored_at_once() -> None:
    run = run_after(*SUBMITTED, look(5_000, PlacementState.ARRIVED))
    assert finishing.elect(run) == (Restoring(AT_END), (ReadConfigs(KEYS_SET),))


def test_an_answer_about_leaders_is_followed_by_the_next_step_or_the_throttle() -> None:
    run = at_end(*ARRIVED)
    refused = LeadersElected(8_000, (), (Refusal(A0, "not in sync"), Refusal(A1, "no")))
    noted = [
        "the preferred leader of a-0 could not be elected: not in sync",
        "the preferred leader of a-1 could not be elected: no",
    ]
    assert handled(run, refused, Electing((A1,))) == ((Wait(),), {"problems.noted": noted})
    assert handled(run, TimePassed(9_000)) == ((ElectLeaders((A1,)),), {"state": Electing(())})
    assert handled(run, LeadersElected(9_000, (A1,))) == ((ReadConfigs(KEYS_SET),), {"state": Restoring(AT_END)})
    failed = [*noted, "preferred leaders could not be elected: no answer"]
    assert handled(run, CallFailed(9_000, "no answer"), Electing((A1,))) == (
        (ReadConfigs(KEYS_SET),),
        {"state": Restoring(AT_END), "problems.noted": failed},
    )


def test_whoever_runs_alongside_others_asks_for_their_moves() -> None:
    run = at_end()
    run.throttle.is_alongside = True
    assert handled(run, TimePassed(9_000)) == ((ReadConfigs(KEYS_SET, asks_for_others=True),), {})


def test_what_was_read_is_written_back_and_is_not_in_force_from_then_on() -> None:
    run = at_end()
    for failing_since_ms in (None, 8_000):
        run.throttle.in_force = {*KEYS_SET}
        how = replace(AT_END, failing_since_ms=failing_since_ms)
        found = handled(run, ConfigsRead(9_000, with_our_values(OVERRIDES[:2])), Restoring(how))
        in_force = {"state": WritingBack(how), "throttle.in_force": {*KEYS_SET[2:]}}
        assert found == ((RestoreThrottle(OVERRIDES[:2]),), in_force)


def test_lists_with_entries_of_others_are_shared() -> None:
    run = at_end()
    others = ConfigValue(LISTS[0].key, "0:2,1:3,7:1")
    orders, _ = handled(run, ConfigsRead(9_000, (*with_our_values(RATES), others, *with_our_values(LISTS[1:]))))
    assert orders == (RestoreThrottle(OVERRIDES, (LISTS[0].key,)),)


def test_settings_of_brokers_that_are_down_are_written_unread() -> None:
    (down,) = (one for one in RATES if one.key.broker == 3)
    orders, _ = handled(at_end(), ConfigsRead(9_000, with_our_values(OVERRIDES[:1]), down=(3,)))
    assert orders == (RestoreThrottle((OVERRIDES[0], down)),)


def test_an_old_value_that_nobody_has_written_yet_is_odd_and_written() -> None:
    """A broker may be behind: what it shows is from before the run, and the run has set it since."""
    run = at_end()
    back = ConfigValue(KEYS_SET[0], OVERRIDES[0].before)
    first = handled(run, ConfigsRead(9_000, (back,)), Restoring(AT_END))
    doubted = {KEYS_SET[0]: Doubt(back, 9_000)}
    assert first == ((Wait(),), {"state": Restoring(failing(AT_END, 9_000)), "throttle.doubts": doubted})
    late = 9_000 + PROPAGATION_MS
    orders, found = handled(run, ConfigsRead(late, (back,)), Restoring(AT_END))
    assert orders == (RestoreThrottle(OVERRIDES[:1]),)
    told = f"someone else changed a throttle during the run: {back.then}, and the run had set it to '{RATE}'"
    assert found == {
        "state": WritingBack(AT_END),
        "problems.noted": [told],
        "throttle.told": {KEYS_SET[0]: back},
        "throttle.doubts": {KEYS_SET[0]: Doubt(back, 9_000, is_foreign=True)},
        "throttle.in_force": {*KEYS_SET[1:]},
        "throttle.is_lost": True,
    }


def test_an_earlier_rate_of_the_run_is_its_own_too() -> None:
    run = at_end()
    run.throttle.rated = {KEYS_SET[0]: {"5", "6", str(OVERRIDES[0].value)}}
    run.throttle.in_force = set()
    shown = ConfigsRead(9_000, (ConfigValue(KEYS_SET[0], "5"),))
    assert handled(run, shown)[0] == (Wait(),)
    orders, _ = handled(run, replace(shown, at_ms=9_000 + PROPAGATION_MS))
    assert orders == (RestoreThrottle((replace(OVERRIDES[0], unconfirmed=("5", "6")),)),)


def test_what_others_changed_is_theirs_once_that_is_certain_and_is_told_once() -> None:
    run = at_end()
    others = ConfigValue(KEYS_SET[0], "5")
    handled(run, ConfigsRead(9_000, (others,)), Restoring(AT_END))
    orders, found = handled(run, ConfigsRead(9_000 + PROPAGATION_MS, (others,)), Restoring(AT_END))
    assert orders == (Wait(),)
    assert found == {
        "state": Restoring(failing(AT_END, 9_000 + PROPAGATION_MS)),
        "throttle.pending": {one.key: one for one in OVERRIDES[1:]},
        "throttle.in_force": {*KEYS_SET[1:]},
        "throttle.doubts": {},
        "throttle.is_lost": True,
        "problems.noted": [f"someone else changed a throttle during the run, and it was left so: {others.then}"],
    }


def test_rates_that_others_had_before_stay_while_their_moves_go_on() -> None:
    run = at_end()
    run.throttle.originals = {KEYS_SET[0]: "70", LISTS[0].key: None}
    values = with_our_values((*OVERRIDES[:2], LISTS[0]))
    orders, found = handled(run, ConfigsRead(9_000, values, others_move=True))
    (left, written, listed) = (OVERRIDES[0], OVERRIDES[1], LISTS[0])
    assert orders == (RestoreThrottle((written, listed)),)
    assert found == {
        "state": WritingBack(AT_END),
        "throttle.pending": {one.key: one for one in OVERRIDES[1:]},
        "throttle.in_force": {*KEYS_SET[1:]} - {written.key, listed.key},
        "throttle.left": {left.key},
        "problems.noted": [
            f"moves of others went on, so that a throttle was left that they had before: {values[0].then}"
        ],
    }


UNWRITTEN = (Unwritten(3, "it is down"), Unwritten(2, "it is away"))


def test_after_writing_it_is_read_whether_that_is_there() -> None:
    run = at_end(*WRITTEN_BACK)
    how = replace(AT_END, failing_since_ms=8_000)
    written = ThrottleRestored(10_000, ("broker 1 said no",), UNWRITTEN)
    told = PassingProblem("broker 1 said no", 10_000)
    assert handled(run, written, WritingBack(how)) == (
        (ReadConfigs(KEYS_SET),),
        {
            "state": ConfirmingRestore(replace(how, unwritten=tuple(map(str, UNWRITTEN)))),
            "problems.passing": {RESTORING: {"broker 1 said no": told}},
        },
    )


def test_of_settings_that_nobody_can_read_the_word_of_the_controller_counts() -> None:
    run = at_end(*WRITTEN_BACK)
    by_broker = {one.key.broker: one for one in RATES}
    rest = {one.key: one for one in OVERRIDES if one.key.broker not in {2, 3}}
    assert handled(run, ThrottleRestored(10_000, by_controller=(2,), unregistered=(3,))) == (
        (ReadConfigs(tuple(rest)),),
        {
            "state": ConfirmingRestore(AT_END),
            "throttle.pending": rest,
            "throttle.carried": {by_broker[2].key, by_broker[3].key},
            "problems.noted": [
                "broker 2 was down: the controller took the values that it had before the run",
                f"{by_broker[3].then}; the cluster did not know that broker any more, so nothing was restored there",
            ],
        },
    )


def test_where_the_controller_took_all_nothing_is_read() -> None:
    run = at_end(*WRITTEN_BACK)
    run.throttle.pending = {one.key: one for one in RATES}
    run.problems.unrestored = ("broker 9 could not be read",)
    orders, found = handled(run, ThrottleRestored(10_000, ("no",), by_controller=LIVE))
    made = (Verify(MOVES, LISTS),)
    assert (orders, found["state"], found["problems.unrestored"]) == (made, Verifying(), ())
    assert found["problems.passing"] == {RESTORING: {"no": PassingProblem("no", 10_000, 10_000)}}


def test_what_was_just_written_is_not_written_at_once_again() -> None:
    run = at_end(*WRITTEN_BACK)
    again = ConfigsRead(11_000, (*with_before(OVERRIDES[1:]), *with_our_values(OVERRIDES[:1])))
    how = replace(AT_END, unwritten=("broker 3 is down",))
    assert handled(run, again, ConfirmingRestore(how)) == (
        (Wait(),),
        {
            "state": Restoring(failing(how, 11_000)),
            "throttle.pending": {OVERRIDES[0].key: OVERRIDES[0]},
        },
    )


@pytest.mark.parametrize("state", [Restoring, ConfirmingRestore])
def test_a_throttle_that_cannot_be_read_is_left_after_a_minute(
    state: type[Restoring | ConfirmingRestore],
) -> None:
    run = at_end(*WRITTEN_BACK)
    run.throttle.in_force = {KEYS_SET[0]}
    how = Restore(Afterwards.VERIFY, 9_000, ("broker 3 is down", "no answer"))
    assert handled(deepcopy(run), CallFailed(9_000, "no answer"), state(AT_END)) == (
        (Wait(),),
        {"state": Restoring(replace(AT_END, failing_since_ms=9_000))},
    )
    early = handled(deepcopy(run), CallFailed(8_999 + CALL_PATIENCE_MS, "no answer"), state(how))
    assert early == ((Wait(),), {} if state is Restoring else {"state": Restoring(how)})
    assert handled(run, CallFailed(9_000 + CALL_PATIENCE_MS, "no answer"), state(how)) == (
        (Verify(MOVES, OVERRIDES),),
        {
            "state": Verifying(),
            "throttle.in_force": set(),
            "problems.unrestored": ("no answer", "broker 3 is down"),
        },
    )


def test_what_could_not_be_read_is_told_where_it_is_given_up() -> None:
    run = at_end(*WRITTEN_BACK)
    how = Restore(Afterwards.VERIFY, 9_000)
    silent = ConfigsRead(9_000 + CALL_PATIENCE_MS, (), ("broker 0 could not be read",))
    for state in (Restoring(how), ConfirmingRestore(how)):
        orders, found = handled(run, silent, state)
        assert orders == (Verify(MOVES, OVERRIDES),)
        assert found["problems.unrestored"] == ("broker 0 could not be read",)
        run.problems.unrestored = ()


@pytest.mark.parametrize(("afterwards", "state", "orders"), [
    (Afterwards.PAUSE, Paused(), ()),
    (Afterwards.FAIL, Failed(11_000), ()),
    (Afterwards.VERIFY, Verifying(), (Verify(MOVES, OVERRIDES),)),
])  # fmt: skip
def test_once_the_throttle_is_restored_what_was_to_follow_follows(
    afterwards: Afterwards, state: RunState, orders: tuple[Verify, ...]
) -> None:
    for begun in (Restoring(Restore(afterwards)), ConfirmingRestore(Restore(afterwards))):
        run = at_end(*WRITTEN_BACK)
        run.problems.unrestored = ("no answer",)
        run.tell(RESTORING, 10_000, "no")
        assert handled(run, ConfigsRead(11_000, with_before()), begun) == (
            orders,
            {
                "state": state,
                "throttle.pending": {},
                "problems.unrestored": (),
                "problems.passing": {RESTORING: {"no": PassingProblem("no", 10_000, 11_000)}},
            },
        )


def test_verified_are_moves_that_were_made_and_settings_that_can_be_read() -> None:
    run = at_end(*RESTORED)
    run.moves.records[A0].status = MoveStatus.CANCELLED
    run.throttle.carried, run.throttle.left = {KEYS_SET[0]}, {KEYS_SET[2]}
    run.state = Verifying(11_000)
    assert handled(run, TimePassed(12_000)) == ((Verify(MOVES[1:], (OVERRIDES[1], *OVERRIDES[3:])),), {})


FOUND = ("a-0 is elsewhere",)


@pytest.mark.parametrize(("event", "since_ms", "orders", "state", "findings"), [
    (Verified(12_000, FOUND), None, (Wait(),), Verifying(12_000), FOUND),
    (Verified(11_999 + VERIFY_PATIENCE_MS, FOUND), 12_000, (Wait(),), Verifying(12_000), FOUND),
    (Verified(12_000 + VERIFY_PATIENCE_MS, FOUND), 12_000, (), Failed(12_000 + VERIFY_PATIENCE_MS), FOUND),
    (Verified(12_500, ()), 12_000, (), Done(12_500), ()),
    (CallFailed(12_000, "no"), None, (Wait(),), Verifying(12_000), ("before",)),
    (CallFailed(11_999 + CALL_PATIENCE_MS, "no"), 12_000, (Wait(),), Verifying(12_000), ("before",)),
    (CallFailed(12_000 + CALL_PATIENCE_MS, "no"), 12_000, (), Failed(12_000 + CALL_PATIENCE_MS),
     ("the result could not be verified: no",)),
])  # fmt: skip
def test_a_result_is_verified_until_it_is_right_or_patience_ends(
    event: Event, since_ms: int | None, orders: tuple[Wait, ...], state: RunState, findings: tuple[str, ...]
) -> None:
    run = at_end(*RESTORED)
    run.problems.findings = ("before",)
    assert handled(run, event, Verifying(since_ms))[0] == orders
    assert (run.state, run.problems.findings) == (state, findings)


def with_status(run: Run, *statuses: MoveStatus) -> Run:
    for record, status in zip(run.moves.records.values(), statuses, strict=True):
        record.status = status
    return run


COMPLETE, CANCELLED, LEFT = MoveStatus.COMPLETE, MoveStatus.CANCELLED, MoveStatus.FAILED


@pytest.mark.parametrize(("statuses", "state"), [
    ((COMPLETE, COMPLETE), Done),
    ((COMPLETE, CANCELLED), Cancelled),
    ((CANCELLED, LEFT), Failed),
])  # fmt: skip
def test_what_failed_weighs_more_than_what_was_cancelled(
    statuses: tuple[MoveStatus, MoveStatus], state: type[Done | Cancelled | Failed]
) -> None:
    run = with_status(at_end(*RESTORED), *statuses)
    assert handled(run, Verified(12_000, ())) == ((), {"state": state(12_000)})


@pytest.mark.parametrize(("reaction", "state"), [
    (Reaction.HOLD, Failed),
    (Reaction.WARN, Done),
    (None, Done),
])  # fmt: skip
def test_moves_without_the_throttle_that_they_were_to_have_fail_a_run_that_guards_it(
    reaction: Reaction | None, state: type[Failed | Done]
) -> None:
    run = at_end(*RESTORED)
    run.throttle.is_lost = True
    run.identity.reactions = {} if reaction is None else {GuardName.FOREIGN_THROTTLE: reaction}
    assert handled(run, Verified(12_000, ())) == ((), {"state": state(12_000)})


def test_a_setting_that_is_not_restored_fails_the_run() -> None:
    run = at_end(*RESTORED)
    run.throttle.pending = {OVERRIDES[0].key: OVERRIDES[0]}
    assert handled(run, Verified(12_000, ())) == ((), {"state": Failed(12_000)})
