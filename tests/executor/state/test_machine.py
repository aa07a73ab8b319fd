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
    LeadersElected,
    MovesObserved,
    MovesSubmitted,
    PlacementState,
    PlannedMove,
    Refusal,
    RunResumed,
    RunStarted,
    StopRequested,
    SubmissionIntended,
    ThrottleIntended,
    ThrottleRestored,
    ThrottleSet,
    TimePassed,
    TrafficMeasured,
    Verified,
)
from kreassign.executor.instructions import (
    ElectLeaders,
    ObserveMoves,
    ReadConfigs,
    RestoreThrottle,
    SetThrottle,
    SubmitMoves,
    Verify,
    Wait,
)
from kreassign.executor.state import AT_REST, STATES, TRANSITIONS, Machine, Phase
from kreassign.executor.state.machine import handle
from kreassign.executor.state.move import DOUBT_MS, LEADERLESS_MS, MoveStatus
from kreassign.executor.state.moving import UNSET_PATIENCE_MS
from kreassign.executor.state.phases import Observing, Paused, RunState, Throttling, Waiting
from kreassign.executor.state.run import Run
from kreassign.executor.state.throttle_watch import PROPAGATION_MS
from kreassign.executor.throttle.ledger import ConfigValue
from kreassign.model import NO_LEADER, ConfigResource, TopicPartition
from tests.executor.run_events import (
    A0,
    A1,
    ARRIVED,
    BEFORE,
    ELECTED,
    KEYS,
    LISTED,
    LISTS,
    MOVES,
    OVERRIDES,
    PREPARED,
    RATES,
    RESTORED,
    SUBMITTED,
    WHOLE,
    look,
    machine_after,
    replayed,
    seen,
    started,
    with_before,
    with_our_values,
)

LIVE = (0, 1, 2, 3)
BEFORE_LISTS = tuple(present for present in BEFORE if present.key.name.endswith("replicas"))


def test_a_run_begins_by_reading_the_settings_that_it_will_change() -> None:
    execution, instructions = replayed(started())
    assert instructions == (ReadConfigs(KEYS),)
    assert execution.phase is Phase.PREPARING


def test_the_throttle_is_set_before_anything_moves() -> None:
    assert replayed(started(), ConfigsRead(1_000, BEFORE))[1] == (SetThrottle(RATES),)


def test_a_throttle_has_to_be_restored_as_soon_as_it_is_intended() -> None:
    execution, instructions = replayed(*PREPARED[:3])
    assert instructions == ()
    assert tuple(execution.pending_restores.values()) == RATES


def test_moves_are_sent_only_after_a_look_at_where_they_are() -> None:
    assert replayed(*PREPARED)[1] == (ObserveMoves(MOVES),)
    assert replayed(*LISTED)[1] == (SubmitMoves({A0: (2, 1), A1: (1, 3)}),)


def test_the_replicas_of_a_move_are_listed_before_it_is_sent() -> None:
    assert replayed(*PREPARED, look(3_000, PlacementState.UNTOUCHED))[1] == (SetThrottle(LISTS),)


def test_a_replica_that_has_caught_up_leaves_the_lists_and_the_others_stay() -> None:
    arrived = MovesObserved(5_000, (seen(MOVES[0], PlacementState.ARRIVED), seen(MOVES[1], PlacementState.MOVING)))
    instructions = replayed(*SUBMITTED, arrived)[1]
    followers, leaders = LISTS
    assert instructions == (
        SetThrottle((
            replace(followers, value="1:3", unconfirmed=("0:2,1:3",)),
            replace(leaders, value="1:0,1:1", unconfirmed=("0:0,0:1,1:0,1:1",)),
        )),
    )  # fmt: skip


def test_of_a_move_with_two_copies_only_the_one_that_lags_stays_listed() -> None:
    both = PlannedMove(A0, (0, 1), (2, 3), 1_000)
    observation = seen(both, PlacementState.MOVING)
    _, instructions = replayed(
        started(both), ConfigsRead(1_000, BEFORE), ThrottleIntended(1_000, ()), ThrottleSet(1_000),
        MovesObserved(2_000, (replace(observation, isr=(0, 1, 3)),)),
    )  # fmt: skip
    (setting,) = instructions
    assert isinstance(setting, SetThrottle)
    assert [override.value for override in setting.overrides] == ["0:2", "0:0,0:1"]


def test_no_more_moves_are_sent_at_once_than_a_controller_takes() -> None:
    many = [PlannedMove(TopicPartition("a", number), (0, 1), (2, 1), 0) for number in range(2_500)]
    machine, (order,) = machine_after(started(*many, throttle=None), look(0, PlacementState.UNTOUCHED, *many))
    sizes = []
    while isinstance(order, SubmitMoves):
        sizes.append(len(order.targets))
        names = tuple(order.targets)
        machine.replay(SubmissionIntended(0, names))
        (order,) = machine.replay(MovesSubmitted(0, names))
    assert sizes == [1_000, 1_000, 500]


def test_what_was_refused_in_a_first_request_leaves_the_lists_before_the_next_one_is_sent() -> None:
    many = [PlannedMove(TopicPartition("a", number), (0, 1), (2, 1), 0) for number in range(1_001)]
    machine, (order,) = machine_after(
        started(*many), ConfigsRead(1_000, BEFORE), ThrottleIntended(1_000, ()), ThrottleSet(2_000),
        look(3_000, PlacementState.UNTOUCHED, *many),
    )  # fmt: skip
    assert isinstance(order, SetThrottle)
    machine.replay(ThrottleIntended(3_000, order.overrides))
    (order,) = machine.replay(ThrottleSet(3_000))
    assert isinstance(order, SubmitMoves)
    first, *others = names = tuple(order.targets)
    machine.replay(SubmissionIntended(3_000, names))
    (order,) = machine.replay(MovesSubmitted(3_000, tuple(others), (Refusal(first, "no"),)))
    assert isinstance(order, SetThrottle)
    assert f"{first.partition}:2" not in str(order.overrides[0].value).split(",")
    machine.replay(ThrottleIntended(3_000, order.overrides))
    (last,) = {move.topic_partition for move in many} - set(names)
    assert machine.replay(ThrottleSet(3_000)) == (SubmitMoves({last: (2, 1)}),)


def test_when_the_lists_cannot_be_set_nothing_is_sent_and_it_looks_again() -> None:
    execution, instructions = replayed(*LISTED[:-1], ThrottleSet(4_000, ("topic a: not authorized",)))
    assert instructions == (Wait(),)
    assert replayed(*LISTED[:-1], ThrottleSet(4_000, ("topic a: no",)), TimePassed(5_000))[1] == (ObserveMoves(MOVES),)
    assert execution.problems == ("topic a: not authorized",)


def test_lists_that_could_not_be_set_are_set_again_before_anything_is_sent() -> None:
    refused = ThrottleSet(4_000, ("topic a: no",), failed=(ConfigResource.topic("a"),))
    looked = (*LISTED[:-1], refused, TimePassed(5_000), look(5_000, PlacementState.UNTOUCHED))
    ((order,), (expected,)) = replayed(*looked)[1], replayed(*LISTED[:-2])[1]
    assert isinstance(order, SetThrottle)
    assert isinstance(expected, SetThrottle)
    assert [(override.key, override.value) for override in order.overrides] == [
        (override.key, override.value) for override in expected.overrides
    ]
    again = ThrottleIntended(5_000, order.overrides)
    assert replayed(*looked, again, ThrottleSet(6_000))[1] == (SubmitMoves({A0: (2, 1), A1: (1, 3)}),)
    late = replace(refused, at_ms=4_000 + UNSET_PATIENCE_MS)
    execution, instructions = replayed(*looked, again, late)
    assert isinstance(instructions[0], ReadConfigs)
    assert "the throttle could not be set, so nothing more was started" in execution.problems
    # A topic that is gone is no reason to wait: its moves are over at the next look.
    gone = (*LISTED[:-1], ThrottleSet(4_000, ("topic a: gone",)), TimePassed(5_000))
    assert replayed(*gone, look(5_000, PlacementState.DELETED))[0].phase is Phase.RESTORING


def test_a_run_without_throttle_changes_no_setting() -> None:
    execution, instructions = replayed(started(throttle=None))
    assert instructions == (ObserveMoves(MOVES),)
    assert not execution.pending_restores


def test_a_plan_that_copies_nothing_needs_no_throttle() -> None:
    reorder = PlannedMove(A0, (0, 1), (1, 0), 1_000)
    assert replayed(started(reorder))[1] == (ObserveMoves((reorder,)),)


def test_while_copies_are_under_way_it_waits_and_looks_again() -> None:
    assert replayed(*SUBMITTED, look(5_000, PlacementState.MOVING))[1] == (Wait(),)
    assert replayed(*SUBMITTED, look(5_000, PlacementState.MOVING), TimePassed(6_000))[1] == (ObserveMoves(MOVES),)


def test_a_look_tells_only_what_changed_and_the_rest_counts_as_before() -> None:
    partly = MovesObserved(7_000, (seen(MOVES[0], PlacementState.ARRIVED),))
    execution, _ = replayed(*SUBMITTED, look(5_000, PlacementState.MOVING), TimePassed(6_000), partly)
    assert [record.status for record in execution.records.values()] == [MoveStatus.COMPLETE, MoveStatus.MOVING]


def test_leaders_are_elected_where_another_than_the_first_replica_leads() -> None:
    assert replayed(*ARRIVED)[1] == (ElectLeaders((A0,)),)


def test_no_election_is_asked_for_where_the_first_replica_leads_already() -> None:
    arrived = look(5_000, PlacementState.ARRIVED)
    assert replayed(*SUBMITTED, arrived)[1] == (ReadConfigs(tuple(override.key for override in OVERRIDES)),)


def test_settings_are_restored_and_read_back_before_the_override_is_closed() -> None:
    assert replayed(*ELECTED)[1] == (ReadConfigs(tuple(override.key for override in OVERRIDES)),)
    execution, instructions = replayed(*RESTORED[:-2])
    assert instructions == (RestoreThrottle(OVERRIDES),)
    assert len(execution.pending_restores) == len(OVERRIDES)
    execution, instructions = replayed(*RESTORED[:-1])
    assert instructions == (ReadConfigs(tuple(override.key for override in OVERRIDES)),)
    assert len(execution.pending_restores) == len(OVERRIDES)
    assert not replayed(*RESTORED)[0].pending_restores


def test_the_end_is_verified_with_the_settings_of_before() -> None:
    assert replayed(*RESTORED)[1] == (Verify(MOVES, OVERRIDES),)


def test_a_run_in_which_everything_went_well_is_done() -> None:
    execution, instructions = replayed(*WHOLE)
    assert (execution.phase, instructions) == (Phase.DONE, ())
    assert (execution.ended_ms, execution.problems, execution.residue) == (12_000, (), ())


# --- what can go wrong ---------------------------------------------------------------------------------------------


def test_when_the_throttle_cannot_be_set_nothing_is_sent_and_what_was_set_is_restored() -> None:
    refused = ThrottleSet(2_000, ("broker 1: not authorized",))
    execution, instructions = replayed(*PREPARED[:3], refused)
    assert instructions == (ReadConfigs(tuple(override.key for override in RATES)),)
    half_set = (*with_our_values(RATES[:1]), *with_before(RATES[1:]))
    execution, instructions = replayed(*PREPARED[:3], refused, ConfigsRead(3_000, half_set))
    assert instructions == (RestoreThrottle(RATES[:1]),)
    rest = (ThrottleRestored(4_000), ConfigsRead(5_000, with_before(RATES)))
    execution, instructions = replayed(*PREPARED[:3], refused, ConfigsRead(3_000, half_set), *rest)
    assert (execution.phase, instructions, execution.residue) == (Phase.FAILED, (), ())
    assert "broker 1: not authorized" in execution.problems


def test_settings_that_cannot_be_read_are_asked_for_again_and_then_given_up() -> None:
    silent = ConfigsRead(1_000, (), ("broker 1 could not be read",))
    assert replayed(started(), silent)[1] == (Wait(),)
    assert replayed(started(), silent, TimePassed(2_000))[1] == (ReadConfigs(KEYS),)
    execution, instructions = replayed(started(), silent, TimePassed(2_000), CallFailed(62_000, "timed out"))
    assert (execution.phase, instructions) == (Phase.FAILED, ())


def test_a_refused_move_fails_and_the_others_go_on() -> None:
    answer = MovesSubmitted(4_000, (A1,), (Refusal(A0, "no such broker is registered"),))
    execution, instructions = replayed(*SUBMITTED[:-1], answer)
    assert instructions == (ObserveMoves(MOVES[1:]),)
    assert "no such broker is registered" in (execution.records[A0].problem or "")


def test_when_all_moves_are_refused_the_throttle_is_restored_and_the_run_fails() -> None:
    answer = MovesSubmitted(4_000, (), (Refusal(A0, "no"), Refusal(A1, "no")))
    rest = (ConfigsRead(5_000, with_our_values()), ThrottleRestored(6_000), ConfigsRead(7_000, with_before()))
    execution, instructions = replayed(*SUBMITTED[:-1], answer, *rest, Verified(8_000, ()))
    assert (execution.phase, instructions, execution.residue) == (Phase.FAILED, (), ())


def test_after_a_lost_answer_the_cluster_is_looked_at_before_anything_is_sent() -> None:
    lost = MovesSubmitted(4_000, (), (), unknown=(A0, A1))
    assert replayed(*SUBMITTED[:-1], lost)[1] == (ObserveMoves(MOVES),)


def test_after_a_lost_answer_only_what_did_not_arrive_is_sent_again() -> None:
    lost = MovesSubmitted(4_000, (), (), unknown=(A0, A1))
    half = MovesObserved(5_000, (seen(MOVES[0], PlacementState.MOVING), seen(MOVES[1], PlacementState.UNTOUCHED)))
    execution, instructions = replayed(*SUBMITTED[:-1], lost, half)
    assert instructions == (SubmitMoves({A1: (1, 3)}),)
    assert execution.records[A0].status is MoveStatus.MOVING


def test_a_move_without_effect_is_not_sent_for_ever() -> None:
    def attempts(*times_ms: int) -> tuple[Event, ...]:
        return tuple(
            event
            for at_ms in times_ms
            for event in (
                SubmissionIntended(at_ms, (A0, A1)),
                MovesSubmitted(at_ms, (), (), unknown=(A0, A1)),
                look(at_ms + 30_000, PlacementState.UNTOUCHED),
            )
        )

    execution, instructions = replayed(*LISTED, *attempts(4_000, 34_000, 64_000))
    assert instructions == (SubmitMoves({A0: (2, 1), A1: (1, 3)}),)
    execution, _ = replayed(*LISTED, *attempts(4_000, 34_000, 64_000, 94_000))
    assert {record.status for record in execution.records.values()} == {MoveStatus.FAILED}
    assert "4 times in 120 s" in (execution.records[A0].problem or "")


def test_a_move_is_not_sent_again_before_a_pause_is_over() -> None:
    lost = MovesSubmitted(3_000, (), (), unknown=(A0, A1))
    execution, instructions = replayed(*SUBMITTED[:-1], lost, look(3_000, PlacementState.UNTOUCHED))
    assert instructions == (Wait(),)
    assert {record.status for record in execution.records.values()} == {MoveStatus.SENT}


def test_what_the_cluster_did_not_tell_of_leads_to_no_conclusion() -> None:
    strange = (*SUBMITTED, look(5_000, PlacementState.DIVERGED))
    unread = MovesObserved(5_000 + 2 * DOUBT_MS, (), (Refusal(A0, "no"), Refusal(A1, "no")))
    execution, instructions = replayed(*strange, TimePassed(5_500), unread)
    assert instructions == (Wait(),)
    assert {record.status for record in execution.records.values()} == {MoveStatus.MOVING}
    assert execution.problems == ("no",)


def test_a_partition_without_a_leader_is_not_sent_before_it_has_one_and_fails_after_a_while() -> None:
    def leaderless(at_ms: int) -> MovesObserved:
        untouched = (seen(move, PlacementState.UNTOUCHED) for move in MOVES)
        return MovesObserved(at_ms, tuple(replace(one, leader=NO_LEADER) for one in untouched))

    waiting = (started(throttle=None), leaderless(3_000))
    execution, instructions = replayed(*waiting)
    assert instructions == (Wait(),)
    assert "a-0 had no leader when it was to start; nothing is sent before it has one" in execution.problems
    led = look(30_000, PlacementState.UNTOUCHED)
    assert replayed(*waiting, TimePassed(30_000), led)[1] == (SubmitMoves({A0: (2, 1), A1: (1, 3)}),)
    execution, _ = replayed(*waiting, TimePassed(63_000), leaderless(3_000 + LEADERLESS_MS))
    assert {record.status for record in execution.records.values()} == {MoveStatus.FAILED}
    assert "bring back one of [0, 1], then replan" in (execution.records[A0].problem or "")


def test_a_partition_that_changed_since_the_plan_is_not_touched() -> None:
    drifted = MovesObserved(3_000, (seen(MOVES[0], PlacementState.DIVERGED), seen(MOVES[1], PlacementState.UNTOUCHED)))
    execution, instructions = replayed(*PREPARED, drifted, ThrottleIntended(3_000, LISTS), ThrottleSet(3_000))
    assert instructions == (SubmitMoves({A1: (1, 3)}),)
    assert "someone else changed it" in (execution.records[A0].problem or "")


@pytest.mark.parametrize("where", [PlacementState.UNTOUCHED, PlacementState.DIVERGED])
def test_a_move_that_someone_cancelled_fails_once_it_looks_so_for_a_while(where: PlacementState) -> None:
    strange = (*SUBMITTED, look(5_000, where))
    execution, instructions = replayed(*strange)
    assert instructions == (Wait(),)
    execution, _ = replayed(*strange, TimePassed(5_500), MovesObserved(5_000 + DOUBT_MS, ()))
    assert {record.status for record in execution.records.values()} == {MoveStatus.FAILED}


def test_brokers_that_lag_behind_the_controller_cause_no_alarm() -> None:
    settling = (*SUBMITTED, look(5_000, PlacementState.SETTLING), MovesObserved(6_000, ()))
    execution, _ = replayed(*settling, look(7_000, PlacementState.ARRIVED))
    assert {record.status for record in execution.records.values()} == {MoveStatus.COMPLETE}


def test_a_doubt_that_passes_is_forgotten() -> None:
    doubts = (*SUBMITTED, look(5_000, PlacementState.DIVERGED), TimePassed(6_000))
    moving = (look(7_000, PlacementState.MOVING), TimePassed(8_000))
    execution, instructions = replayed(*doubts, *moving, look(6_000 + DOUBT_MS, PlacementState.DIVERGED))
    assert instructions == (Wait(),)
    assert {record.status for record in execution.records.values()} == {MoveStatus.MOVING}


def test_a_deleted_topic_fails_its_move() -> None:
    execution, _ = replayed(*SUBMITTED, look(5_000, PlacementState.DELETED))
    assert execution.records[A0].problem == "the partition no longer exists"


def test_a_cluster_out_of_reach_pauses_the_run_after_minutes_with_its_throttle_in_force() -> None:
    assert replayed(*SUBMITTED, CallFailed(5_000, "timed out"))[1] == (Wait(),)
    events = (*SUBMITTED, CallFailed(5_000, "timed out"), TimePassed(6_000), CallFailed(305_000, "timed out"))
    execution, instructions = replayed(*events)
    assert (execution.phase, instructions) == (Phase.PAUSED, ())
    assert len(execution.residue) == len(OVERRIDES)


def test_a_setting_that_someone_else_changed_meanwhile_stays_and_is_told() -> None:
    others = ConfigValue(OVERRIDES[0].key, "someone's")
    written = (ConfigsRead(9_000, (others, *with_our_values(OVERRIDES[1:]))), ThrottleRestored(9_000))
    once = (*ELECTED, *written, ConfigsRead(9_000, (others, *with_before(OVERRIDES[1:]))))
    execution, instructions = replayed(*once)
    assert (tuple(execution.pending_restores), instructions) == ((others.key,), (Wait(),))
    execution, instructions = replayed(*once, TimePassed(9_000), ConfigsRead(9_000 + PROPAGATION_MS, (others,)))
    assert instructions == (Verify(MOVES, OVERRIDES),)
    assert any("someone's" in problem for problem in execution.problems)
    assert not execution.pending_restores


def test_a_setting_that_cannot_be_restored_is_named_at_the_end_and_can_be_restored_later() -> None:
    back = with_before(OVERRIDES[1:])
    silent = ("broker 0 could not be read",)
    written = (ConfigsRead(9_000, with_our_values(OVERRIDES[1:]), silent), ThrottleRestored(9_000))
    events = (*ELECTED, *written, ConfigsRead(9_000, back, silent), TimePassed(10_000), ConfigsRead(70_000, (), silent))
    execution, instructions = replayed(*events, Verified(71_000, ()))
    assert (execution.phase, instructions) == (Phase.FAILED, ())
    assert execution.residue == (str(OVERRIDES[0]),)
    execution, instructions = replayed(*events, Verified(71_000, ()), RunResumed(80_000, LIVE))
    assert instructions == (ElectLeaders((A0,)),)
    late = (LeadersElected(80_000, (A0,)), ConfigsRead(81_000, with_our_values(OVERRIDES[:1])))
    execution, instructions = replayed(*events, Verified(71_000, ()), RunResumed(80_000, LIVE), *late)
    assert instructions == (RestoreThrottle(OVERRIDES[:1]),)


def test_what_is_not_as_planned_is_looked_at_again_before_the_run_fails() -> None:
    finding = ("a-0: led by 1 and not by the preferred leader 2",)
    execution, instructions = replayed(*RESTORED, Verified(12_000, finding))
    assert instructions == (Wait(),)
    assert (
        replayed(*RESTORED, Verified(12_000, finding), TimePassed(13_000), Verified(14_000, ()))[0].phase is Phase.DONE
    )
    execution, instructions = replayed(
        *RESTORED, Verified(12_000, finding), TimePassed(13_000), Verified(32_000, finding)
    )
    assert (execution.phase, execution.findings) == (Phase.FAILED, finding)


STOPPED = (
    StopRequested(2_000),
    ConfigsRead(3_000, with_our_values(RATES)),
    ThrottleRestored(3_000),
    ConfigsRead(3_000, with_before(RATES)),
)


# --- stop and resume -----------------------------------------------------------------------------------------------


def test_a_stop_before_anything_moves_restores_the_throttle_first() -> None:
    execution, instructions = replayed(*PREPARED, StopRequested(2_000))
    assert instructions == (ReadConfigs(tuple(override.key for override in RATES)),)
    execution, instructions = replayed(*PREPARED, *STOPPED)
    assert (execution.phase, instructions, execution.residue) == (Phase.PAUSED, (), ())


def test_a_stop_while_copies_are_in_flight_leaves_their_throttle_and_says_so() -> None:
    execution, instructions = replayed(*SUBMITTED, StopRequested(5_000))
    assert (execution.phase, instructions) == (Phase.PAUSED, ())
    assert execution.residue[-2] == (
        "follower.replication.throttled.replicas of topic a is still '0:2,1:3'; before the run it was not set"
    )


@pytest.mark.parametrize("count", range(1, len(WHOLE)))
def test_after_a_crash_at_any_event_nothing_is_sent_before_a_look_and_no_override_is_forgotten(count: int) -> None:
    execution, instructions = replayed(*WHOLE[:count], RunResumed(20_000, LIVE))
    assert not any(isinstance(order, SubmitMoves) for order in instructions)
    owed_before = replayed(*WHOLE[:count])[0].pending_restores
    assert execution.pending_restores == owed_before
    assert instructions


def test_a_crash_after_the_throttle_was_intended_sets_it_again_to_the_same_values() -> None:
    unknown = (RunResumed(9_000, LIVE), ConfigsRead(9_000, BEFORE_LISTS))
    assert replayed(*PREPARED[:3], *unknown)[1] == (SetThrottle(RATES),)
    assert replayed(*LISTED[:-1], RunResumed(9_000, LIVE))[1] == (SetThrottle(OVERRIDES),)


def test_a_crash_between_sending_and_its_answer_looks_first() -> None:
    crashed = (*SUBMITTED[:-1], RunResumed(9_000, LIVE), ThrottleIntended(9_000, OVERRIDES), ThrottleSet(9_000))
    assert replayed(*crashed)[1] == (ObserveMoves(MOVES),)
    assert replayed(*crashed, look(10_000, PlacementState.MOVING))[1] == (Wait(),)


def test_a_paused_run_that_is_resumed_throttles_what_is_left() -> None:
    paused = (*PREPARED, *STOPPED)
    assert replayed(*paused, RunResumed(9_000, LIVE))[1] == (ReadConfigs(KEYS),)


def test_a_throttle_that_fails_on_resume_does_not_abandon_what_is_in_flight() -> None:
    events = (
        *SUBMITTED,
        RunResumed(9_000, LIVE),
        ThrottleIntended(9_000, OVERRIDES),
        ThrottleSet(9_000, ("broker 1: no",)),
    )
    execution, instructions = replayed(*events)
    assert instructions == (ObserveMoves(MOVES),)
    assert execution.step == "Observing"


# --- the tables ----------------------------------------------------------------------------------------------------


def test_an_event_that_cannot_happen_in_a_phase_is_a_bug() -> None:
    machine, _ = machine_after(started())
    with pytest.raises(InvariantBroken, match="Verified cannot happen while preparing"):
        machine.handle(Verified(1_000, ()))


def test_an_event_that_cannot_happen_in_a_phase_makes_a_journal_unreadable() -> None:
    with pytest.raises(JournalDamaged, match="journal of run run-1 tells what cannot be"):
        replayed(started(), Verified(1_000, ()))


def test_every_state_can_be_entered_and_left_or_is_a_rest() -> None:
    entered = {state for row in TRANSITIONS.values() for state in row.leads_to}
    left = {state for state, event in TRANSITIONS if event not in {RunResumed, BrokersForgotten}}
    assert entered == {state for state in STATES if state.phase is not Phase.NEW}
    assert left == {state for state in STATES if state.phase not in AT_REST}


# --- waiting -------------------------------------------------------------------------------------------------------

LOOKED = (*SUBMITTED, look(5_000, PlacementState.MOVING))


def test_a_machine_waits_from_when_it_is_told_to_until_something_else_is_to_be_done() -> None:
    machine, _ = machine_after(*LOOKED)
    assert machine == Machine(machine._run, _is_waiting=True, _at_ms=5_000)
    machine.handle(HoldRequested(6_000, 1))
    assert machine == Machine(machine._run, _is_waiting=True, _at_ms=6_000)
    machine.handle(TimePassed(7_000))
    assert machine == Machine(machine._run, _is_waiting=False, _at_ms=7_000)
    machine.handle(HoldRequested(8_000, 2))
    assert (machine.at_ms, machine._is_waiting) == (8_000, False)
    assert Machine() == Machine(Run(), _is_waiting=False, _at_ms=0)


@pytest.mark.parametrize(("event", "state"), [
    (HoldRequested(6_000, 1), Waiting()),
    (ClockStepped(6_000, 1), Waiting()),
    (BrokersForgotten(6_000, (9,)), Waiting()),
    (TimePassed(6_000), Observing((A0, A1))),
    (StopRequested(6_000), Paused()),
    (MovesObserved(6_000, ()), Waiting()),
    (TrafficMeasured(6_000, ()), Observing((A0, A1))),
    (CallFailed(6_000, "no answer"), Waiting(6_000)),
])  # fmt: skip
def test_of_a_journal_what_does_not_come_during_a_wait_shows_that_it_was_over(event: Event, state: RunState) -> None:
    machine, _ = machine_after(*LOOKED)
    machine.replay(event)
    assert machine._run.state == state


def test_a_wait_before_a_question_that_is_asked_again_is_over_when_its_answer_comes() -> None:
    machine, _ = machine_after(started(), CallFailed(1_000, "no answer"))
    assert machine.replay(ConfigsRead(2_000, BEFORE)) == (SetThrottle(RATES),)
    assert machine.at_ms == 2_000


def test_a_run_that_has_not_begun_takes_only_its_beginning() -> None:
    assert Machine().accepts(RunStarted)
    assert not Machine().accepts(RunResumed)
    machine, _ = machine_after(started())
    assert machine.accepts(ConfigsRead)
    assert not machine.accepts(RunStarted)


@pytest.mark.parametrize("broken", [
    ThrottleIntended(1_000, ()),
    replace(started(), moves=()),
])  # fmt: skip
def test_what_cannot_happen_is_named_with_its_run_and_state(broken: Event) -> None:
    machine, _ = machine_after(started())
    kind = type(broken).__name__
    with pytest.raises(InvariantBroken, match=rf"^run run-1: {kind} cannot happen while preparing \(Preparing\)$"):
        machine.handle(broken)


def test_an_event_whose_fields_mean_nothing_makes_a_journal_unreadable() -> None:
    machine, _ = machine_after(*SUBMITTED)
    unknown = TopicPartition("b", 7)
    with pytest.raises(JournalDamaged, match=r"^the journal of run run-1 tells what cannot be \(.*b.*7.*\); it was"):
        machine.replay(MovesObserved(5_000, (replace(seen(MOVES[0], PlacementState.MOVING), topic_partition=unknown),)))


def test_what_leads_to_another_state_than_its_row_says_is_a_bug_and_changes_no_state() -> None:
    run = machine_after(*ARRIVED)[0]._run
    run.state = Throttling()
    with pytest.raises(InvariantBroken, match=r"^run run-1: ThrottleSet may not lead from Throttling to Electing$"):
        handle(run, ThrottleSet(8_000))
    assert run.state == Throttling()
