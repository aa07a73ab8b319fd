"""Foreign settings and moves when a run begins: shown and refused, until the operator says what they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from kreassign.admin import AdminClient
from kreassign.errors import Drifted, InputError
from kreassign.executor.events import HoldRequested, RunStarted, ThrottleIntended, ThrottleRequested
from kreassign.executor.history.run_history import fold
from kreassign.executor.journal import Journal, journal_path, read_events
from kreassign.executor.runner import Runner
from kreassign.executor.throttle_ledger import FoundThrottles
from kreassign.model import ConfigResource, TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.run import RunHistory
from kreassign.model.throttle import (
    FOLLOWER_THROTTLED_RATE,
    FOLLOWER_THROTTLED_REPLICAS,
    LEADER_THROTTLED_RATE,
    NO_THROTTLE,
    AdaptiveThrottle,
    BrokerRate,
    ThrottleRates,
)
from kreassign.operations.plan_files import PlanFile
from kreassign.operations.run import RunContext, RunRequest, prepare_as_seen, prepare_run
from kreassign.operations.verify import verify_run
from kreassign.twin.controller.decision import Decision
from kreassign.twin.metadata import ConfigChanged
from tests.executor.odd_port import OddPort, Real, as_it_is
from tests.executor.twin_runs import RATE, TwinRig, tp

pytestmark = pytest.mark.thorough

TOPIC, SENDER, UNCONCERNED = ConfigResource.topic("t"), ConfigResource.broker(0), ConfigResource.broker(4)
THROTTLE = ThrottleRates(RATE)
RATES = {(SENDER, LEADER_THROTTLED_RATE): "7000000", (UNCONCERNED, FOLLOWER_THROTTLED_RATE): "9"}
LIST = {(TOPIC, FOLLOWER_THROTTLED_REPLICAS): "7:4"}
Settings = Mapping[tuple[ConfigResource, str], str | None]


@pytest.fixture
def rig(tmp_path: Path) -> TwinRig:
    return TwinRig(tmp_path / "cluster", [[0, 1], [1, 0]])


def change(rig: TwinRig, settings: Settings) -> None:
    """Change settings as a second operator."""
    records = tuple(ConfigChanged(resource, name, value) for (resource, name), value in settings.items())
    rig.twin.commit(Decision(records, None))


def prepared(
    rig: TwinRig,
    found: FoundThrottles = FoundThrottles.REFUSE,
    throttle: ThrottleRates = THROTTLE,
    number: int = 0,
    state_dir: str = "state",
    client: OddPort | None = None,
) -> RunStarted:
    """A run of one move from this state directory, checked as the command line checks it."""
    plan = PlanFile(Plan((PartitionAssignment(tp(number), (2, 3)),)))
    context = RunContext(rig.state_dir / state_dir)
    request = RunRequest(plan, throttle, measure_for_s=0, found=found)
    return replace(
        prepare_run(cast(AdminClient, client or rig.client), request, context, rig.transport), run_id="run-1"
    )


def execute(rig: TwinRig, started: RunStarted, state_dir: str = "state", client: OddPort | None = None) -> RunHistory:
    with Journal.create(rig.state_dir / state_dir, started) as journal:
        runner = Runner(client.port if client else rig.client, rig.transport, journal)
        return runner.start(started)


def move_of_others(rig: TwinRig, throttle: int, broker: int = 2) -> None:
    """Move t-1 to this broker at this rate as a second operator."""
    names = ((SENDER, LEADER_THROTTLED_RATE), (ConfigResource.broker(broker), FOLLOWER_THROTTLED_RATE))
    change(rig, dict.fromkeys(names, str(throttle)) | {(TOPIC, FOLLOWER_THROTTLED_REPLICAS): f"1:{broker}"})
    rig.client.alter_partition_reassignments({tp(1): (broker, 0)}).raise_if_any()


def test_a_throttle_that_no_run_accounts_for_is_shown_and_nothing_begins(rig: TwinRig) -> None:
    change(rig, {**RATES, **LIST})
    with pytest.raises(InputError) as refused:
        prepared(rig)
    for sentence in (
        "leader.replication.throttled.rate of broker 0 is '7000000'",
        "follower.replication.throttled.rate of broker 4 is '9'",
        "follower.replication.throttled.replicas of topic t is '7:4'",
        "--adopt remove",
        "--adopt restore",
    ):
        assert sentence in str(refused.value)


def test_what_others_move_is_shown_and_may_only_be_gone_alongside(rig: TwinRig) -> None:
    move_of_others(rig, RATE // 8)
    for choice in (FoundThrottles.REFUSE, FoundThrottles.REMOVE, FoundThrottles.RESTORE):
        with pytest.raises(InputError, match=r"partitions are being reassigned by others: t-1.*--alongside"):
            prepared(rig, choice)


@pytest.mark.parametrize("settings", [
    {(ConfigResource.broker(3), FOLLOWER_THROTTLED_RATE): "80000000"},
    {(UNCONCERNED, FOLLOWER_THROTTLED_RATE): "80000000"},
    {(UNCONCERNED, FOLLOWER_THROTTLED_RATE): None},
], ids=["set since", "another value", "removed"])  # fmt: skip
def test_only_throttles_that_were_shown_are_removed(rig: TwinRig, settings: Settings) -> None:
    change(rig, RATES)
    plan = PlanFile(Plan((PartitionAssignment(tp(0), (2, 3)),)))
    request = RunRequest(plan, THROTTLE, measure_for_s=0, found=FoundThrottles.REMOVE)
    context = RunContext(rig.state_dir / "state")
    seen = prepare_run(rig.client, request, context, rig.transport)
    again = prepare_as_seen(rig.client, request, context, seen, rig.transport)
    assert again.adopted == seen.adopted != ()
    change(rig, settings)
    (name,) = (f"{name} of {resource}" for resource, name in settings)
    with pytest.raises(Drifted, match=f"nothing was started: {name} changed since the preview"):
        prepare_as_seen(rig.client, request, context, seen, rig.transport)


def lists_nothing_once(odd: OddPort) -> None:
    """The next question about moves of all partitions finds none, as who is controller no longer answers."""

    def answer(real: Real, partitions: object = None, **named: object) -> object:
        if partitions is not None:
            return real(partitions, **named)
        odd.answer_always("list_partition_reassignments", as_it_is)
        return {}

    odd.answer_always("list_partition_reassignments", answer)


def test_one_empty_list_does_not_hide_moves_of_others(rig: TwinRig) -> None:
    move_of_others(rig, RATE // 8)
    odd = OddPort(rig.client)
    lists_nothing_once(odd)
    with pytest.raises(InputError, match=r"partitions are being reassigned by others: t-1"):
        prepared(rig, client=odd)


def test_one_empty_list_at_the_end_leaves_moves_of_others_their_rates(rig: TwinRig) -> None:
    move_of_others(rig, RATE // 20, broker=4)
    started = prepared(rig, FoundThrottles.ALONGSIDE)
    odd = OddPort(rig.client)
    rig.after(1, lambda: lists_nothing_once(odd))
    assert execute(rig, started, client=odd).state == "done"
    assert rig.throttles["broker 0 leader.replication.throttled.rate"] == str(RATE)


@pytest.mark.parametrize(
    "throttle",
    [
        NO_THROTTLE,
        ThrottleRates(RATE, (BrokerRate(0, 5),)),
        ThrottleRates(adaptive=AdaptiveThrottle(10 * RATE)),
    ],
)
def test_alongside_others_there_is_one_rate_for_all(rig: TwinRig, throttle: ThrottleRates) -> None:
    move_of_others(rig, RATE // 8)
    with pytest.raises(InputError, match="shares the rate of each broker with them"):
        prepared(rig, FoundThrottles.ALONGSIDE, throttle)


def test_there_is_nothing_to_go_alongside_where_nobody_moves_anything(rig: TwinRig) -> None:
    change(rig, RATES)
    with pytest.raises(InputError, match="nothing is being reassigned that needs it"):
        prepared(rig, FoundThrottles.ALONGSIDE)


def test_an_empty_list_is_no_throttle(rig: TwinRig) -> None:
    change(rig, {(TOPIC, FOLLOWER_THROTTLED_REPLICAS): ""})
    assert prepared(rig).moves


@pytest.mark.parametrize("throttle", [THROTTLE, NO_THROTTLE], ids=["with a throttle", "without one"])
@pytest.mark.parametrize("entries", ["7:4", "*"])
def test_leftovers_are_gone_at_the_end_even_if_the_run_ignores_them(
    rig: TwinRig, throttle: ThrottleRates, entries: str
) -> None:
    change(rig, {**RATES, (TOPIC, FOLLOWER_THROTTLED_REPLICAS): entries})
    found = execute(rig, prepared(rig, FoundThrottles.REMOVE, throttle))
    assert (found.state, found.problems, found.throttle_residue, rig.throttles) == ("done", (), (), {})


@pytest.mark.parametrize(("broker", "known"), [(2, ["9000000"]), (4, [])], ids=["needed", "no part in it"])
def test_what_is_set_while_a_run_is_paused_stays(rig: TwinRig, broker: int, known: list[str]) -> None:
    """The left throttle is restored with the pause. The same setting, set again since, is an operator's: a run that
    needs it waits until one asks for its throttle, and gives it back.
    """
    name = (ConfigResource.broker(broker), FOLLOWER_THROTTLED_RATE)
    change(rig, {name: "7000000"})
    rig.stop_after(3)
    assert rig.run(prepared(rig, FoundThrottles.REMOVE), lambda number: HoldRequested(0, number)).state == "paused"
    assert rig.throttles == {}
    change(rig, {name: "9000000"})
    asked_ms = rig.transport.now_ms() + 60_000
    rig.ask_after(60, lambda at_ms, number: ThrottleRequested(at_ms, number, RATE))
    rig.seen.clear()
    found = rig.resume()
    assert (found.state, bool(found.problems)) == ("done", broker == 2)
    assert rig.throttles == {f"broker {broker} {FOLLOWER_THROTTLED_RATE}": "9000000"}
    set_by_run = [event for event in rig.seen if isinstance(event, ThrottleIntended)]
    changes = [(event.at_ms, one) for event in set_by_run for one in event.overrides if one.key == name]
    assert [one.before for _, one in changes] == known
    assert all(at_ms >= asked_ms for at_ms, _ in changes)


def test_what_is_meant_to_be_there_has_its_value_again(rig: TwinRig) -> None:
    change(rig, {**RATES, **LIST})
    before = rig.throttles
    found = execute(rig, prepared(rig, FoundThrottles.RESTORE))
    assert (found.state, found.problems, rig.throttles) == ("done", (), before)


def test_alongside_others_only_our_entries_go_and_rates_stay(rig: TwinRig) -> None:
    move_of_others(rig, RATE // 20, broker=4)  # which gets nothing from the run
    found = execute(rig, prepared(rig, FoundThrottles.ALONGSIDE))
    assert rig.client.list_partition_reassignments()
    assert (found.state, found.throttle_residue) == ("done", ())
    assert rig.throttles == {
        "broker 0 leader.replication.throttled.rate": str(RATE),
        "broker 4 follower.replication.throttled.rate": str(RATE // 20),
        "topic t follower.replication.throttled.replicas": "1:4",
    }
    journal = journal_path(rig.state_dir / "state", rig.twin.cluster_id, "run-1")
    assert not [one for one in verify_run(rig.client, journal).findings if one.kind == "throttle"]
    rig.transport.sleep(300)
    assert rig.client.list_partition_reassignments() == {}
    left = [one.subject for one in verify_run(rig.client, journal).findings if one.kind == "throttle"]
    assert left == ["broker 0"]


def test_rates_stay_while_others_move_a_partition_of_the_plan(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1], [1, 0]], size_bytes=1_000 * RATE)
    move_of_others(rig, RATE // 20, broker=4)
    started = prepared(rig, FoundThrottles.ALONGSIDE)

    def take_over() -> None:
        targets: dict[TopicPartition, tuple[int, ...] | None]
        for targets in ({tp(0): None, tp(1): None}, {tp(0): (4, 1)}):
            rig.client.alter_partition_reassignments(targets).raise_if_any()

    rig.between_steps(4, take_over)
    found = rig.run(started)
    assert (found.state, rig.client.list_partition_reassignments().keys()) == ("failed", {tp(0)})
    assert rig.throttles["broker 0 leader.replication.throttled.rate"] == str(RATE)
    assert rig.throttles["broker 4 follower.replication.throttled.rate"] == str(RATE // 20)


def test_alongside_others_nothing_is_left_if_they_ended_first(rig: TwinRig) -> None:
    move_of_others(rig, RATE)
    rig.after(8, lambda: change(rig, {(TOPIC, FOLLOWER_THROTTLED_REPLICAS): "0:2,0:3"}))
    found = execute(rig, prepared(rig, FoundThrottles.ALONGSIDE))
    assert (found.state, found.throttle_residue, rig.throttles) == ("done", (), {})


def test_two_state_directories_do_not_claim_each_others_throttle(rig: TwinRig) -> None:
    first = prepared(rig, state_dir="one")
    refusals: list[str] = []

    def begin_second() -> None:
        with pytest.raises(InputError) as refused:
            prepared(rig, number=1, state_dir="two")
        refusals.append(str(refused.value))

    with Journal.create(rig.state_dir / "one", first) as journal:
        polls = 0

        def listen(*_: object) -> None:
            nonlocal polls
            polls += 1
            if polls == 20:
                begin_second()

        found = Runner(rig.client, rig.transport, journal, listener=listen).start(first)
    assert (found.state, rig.throttles) == ("done", {})
    assert "broker 0 is" in refusals[0]
    assert "t-0" in refusals[0]
    assert prepared(rig, number=1, state_dir="two").moves


def test_what_the_run_found_and_was_told_to_do_is_in_its_journal(rig: TwinRig) -> None:
    change(rig, RATES)
    execute(rig, prepared(rig, FoundThrottles.REMOVE))
    events = read_events(journal_path(rig.state_dir / "state", rig.twin.cluster_id, "run-1"))
    first = events[0]
    assert isinstance(first, RunStarted)
    assert first.found is FoundThrottles.REMOVE
    assert {present.key.resource for present in first.adopted} == {SENDER, UNCONCERNED}
    assert not fold(events).pending_restores
