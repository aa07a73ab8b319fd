"""The end of a run: elections in steps, settings that cannot be restored, and a result that cannot be verified."""

from __future__ import annotations

from dataclasses import replace

from kreassign.executor.events import (
    CallFailed,
    ConfigsRead,
    Event,
    LeadersElected,
    PlacementState,
    Refusal,
    RunStarted,
    ThrottleRestored,
    TimePassed,
    Verified,
)
from kreassign.executor.instructions import ElectLeaders, ReadConfigs, Verify, Wait
from kreassign.executor.scheduling import Pace
from kreassign.executor.state import Phase
from kreassign.executor.state.finishing import CALL_PATIENCE_MS, VERIFY_PATIENCE_MS
from kreassign.executor.throttle.rates import NO_THROTTLE
from tests.executor.run_events import (
    A0,
    A1,
    ARRIVED,
    ELECTED,
    LIVE,
    MOVES,
    OVERRIDES,
    RESTORED,
    look,
    replayed,
    with_our_values,
)

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
