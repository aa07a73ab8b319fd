"""Whose a throttle is, over several runs and an operator between them: on the twin, as the command line runs them.

What no journal of the state directory shows as written by its run is somebody's: no run changes it without --adopt.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kreassign.clock import SystemClock
from kreassign.errors import Drifted, InputError
from kreassign.executor.journal import find_journals
from kreassign.executor.lease import GROUP_ID, OFFSETS_TOPIC
from kreassign.executor.throttle_ledger import FoundThrottles
from kreassign.model import ConfigResource, NewTopic
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.run import Operator, RunHistory
from kreassign.model.throttle import (
    FOLLOWER_THROTTLED_RATE,
    FOLLOWER_THROTTLED_REPLICAS,
    LEADER_THROTTLED_RATE,
    LOG_DIR_RATE,
    ThrottleRates,
)
from kreassign.operations.plan_files import PlanFile
from kreassign.operations.rollback import (
    Rollback,
    RollbackRequest,
    end_run_to_undo,
    preview_rollback,
    roll_back,
    start_rollback,
)
from kreassign.operations.run import RunContext, RunRequest, prepare_run, resume_run, start_run
from kreassign.operations.run_journals import forget_brokers
from kreassign.twin.access import ANONYMOUS, Allow, Operation, Permissions
from tests.executor.deaths import Died
from tests.executor.test_foreign_throttle_on_twin import change, clear_all
from tests.executor.twin_runs import RATE, TwinRig, tp

pytestmark = pytest.mark.thorough

DAY_S = 86_400.0
HERE, ELSEWHERE = "host-1", "host-2"
FIRST, SECOND = PartitionAssignment(tp(0), (2, 1)), PartitionAssignment(tp(1), (3, 0))
"""From broker 0 to 2; from broker 1 to 3: the second move has no broker of the first."""

SETTINGS = {
    "a rate of the run": (ConfigResource.broker(2), FOLLOWER_THROTTLED_RATE, "7000000"),
    "another rate of its broker": (ConfigResource.broker(2), LEADER_THROTTLED_RATE, "7000000"),
    "the rate of directories": (ConfigResource.broker(2), LOG_DIR_RATE, "7000000"),
    "a list of its topic": (ConfigResource.topic("t"), FOLLOWER_THROTTLED_REPLICAS, "7:4"),
    "a rate of another broker": (ConfigResource.broker(4), LEADER_THROTTLED_RATE, "7000000"),
}
of_every_setting = pytest.mark.parametrize("what", SETTINGS)
of_a_rate_and_a_list = pytest.mark.parametrize("what", ["a rate of the run", "a list of its topic"])
from_both_hosts = pytest.mark.parametrize("host", [HERE, ELSEWHERE])


@pytest.fixture
def rig(tmp_path: Path) -> TwinRig:
    rig = TwinRig(tmp_path, [[0, 1], [1, 0]], others={"secret": [[0, 1]]})
    rig.client.create_topics([NewTopic(OFFSETS_TOPIC, assignments=((0, 1, 2), (1, 2, 3)))]).raise_if_any()
    return rig


def context_of(rig: TwinRig, host: str, kill_after_s: float | None = None) -> RunContext:
    """A host with a state directory of its own; its process is killed so much later."""
    due_ms = None if kill_after_s is None else rig.transport.now_ms() + kill_after_s * 1000

    def kill(*_: object) -> None:
        if due_ms is not None and rig.transport.now_ms() >= due_ms:
            raise Died

    return RunContext(rig.state_dir / host, operator=Operator("alice", host), observers=(kill,))


def run(
    rig: TwinRig,
    host: str,
    move: PartitionAssignment,
    found: FoundThrottles = FoundThrottles.REFUSE,
    *,
    kill_after_s: float | None = None,
) -> RunHistory:
    """Run one throttled move on this host."""
    context = context_of(rig, host, kill_after_s)
    request = RunRequest(PlanFile(Plan((move,))), ThrottleRates(RATE), measure_for_s=0, found=found)
    started = prepare_run(rig.client, request, context, rig.transport)
    return start_run(rig.client, started, context, clock=rig.transport)


def refused_run(rig: TwinRig, host: str, what: str) -> None:
    """See the second run refused, with what is set and what to do, and the setting left alone."""
    resource, name, value = SETTINGS[what]
    before = rig.throttles
    with pytest.raises(InputError) as refused:
        run(rig, host, SECOND)
    for sentence in (f"{name} of {resource} is '{value}'", "--adopt remove", "--adopt restore"):
        assert sentence in str(refused.value)
    assert rig.throttles == before
    assert before[f"{resource} {name}"] == value


def set_by_hand(rig: TwinRig, what: str) -> Callable[[], None]:
    return lambda: change(rig, *SETTINGS[what])


@from_both_hosts
@of_every_setting
def test_what_an_operator_sets_during_a_run_outlives_the_next_run(rig: TwinRig, host: str, what: str) -> None:
    rig.after(5, set_by_hand(rig, what))
    first = run(rig, HERE, FIRST)
    if what == "a rate of the run":
        assert any("it was left so" in problem for problem in first.problems)
    assert list(rig.throttles.values()) == [SETTINGS[what][2]]
    refused_run(rig, host, what)


@of_a_rate_and_a_list
def test_a_rate_set_after_a_killed_run_outlives_a_run_elsewhere(rig: TwinRig, what: str) -> None:
    kill_and_clean_up(rig)
    set_by_hand(rig, what)()
    refused_run(rig, ELSEWHERE, what)


@of_a_rate_and_a_list
def test_what_an_operator_sets_after_a_killed_run_outlives_a_run_here(rig: TwinRig, what: str) -> None:
    kill_and_clean_up(rig)
    with pytest.raises(InputError, match="was left on this cluster"):
        run(rig, HERE, SECOND)
    (journal,) = find_journals(rig.state_dir / HERE)
    resumed = resume_run(rig.client, journal, context_of(rig, HERE), clock=rig.transport)
    assert (resumed.throttle_residue, rig.throttles) == ((), {})
    set_by_hand(rig, what)()
    refused_run(rig, HERE, what)


def kill_and_clean_up(rig: TwinRig) -> None:
    """A run is killed; an operator removes its throttle when its move has ended, and a day passes."""
    with pytest.raises(Died):
        run(rig, HERE, FIRST, kill_after_s=5)
    assert rig.throttles
    rig.transport.sleep(60)
    assert not rig.client.list_partition_reassignments()
    clear_all(rig)
    rig.transport.sleep(DAY_S)


@from_both_hosts
@of_a_rate_and_a_list
def test_a_hidden_topic_gives_no_later_run_a_setting_of_others(rig: TwinRig, host: str, what: str) -> None:
    """The first run may not read the configuration of a topic that is no concern of it."""
    everything = rig.twin.settings.permissions
    on_topics = (Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS, Operation.READ)
    operations = (*on_topics, Operation.ALTER)
    rules = {
        *(Allow(ANONYMOUS, operation) for operation in operations),
        *(Allow(ANONYMOUS, operation, topic) for operation in on_topics for topic in ("t", OFFSETS_TOPIC)),
        Allow(ANONYMOUS, Operation.DESCRIBE, "secret"),
        Allow(ANONYMOUS, Operation.READ, group=GROUP_ID),
        Allow(ANONYMOUS, Operation.READ, group="kreassign-maintenance"),
    }
    rig.twin.settings = replace(rig.twin.settings, permissions=Permissions(frozenset(rules)))
    assert run(rig, HERE, FIRST).state == "done"
    rig.twin.settings = replace(rig.twin.settings, permissions=everything)
    rig.transport.sleep(DAY_S)
    set_by_hand(rig, what)()
    refused_run(rig, host, what)


@from_both_hosts
@of_a_rate_and_a_list
def test_what_adopt_restores_outlives_a_later_run(rig: TwinRig, host: str, what: str) -> None:
    set_by_hand(rig, what)()
    before = rig.throttles
    adopted = run(rig, HERE, FIRST, FoundThrottles.RESTORE)
    assert (adopted.state, adopted.problems, rig.throttles) == ("done", (), before)
    refused_run(rig, host, what)
    assert run(rig, host, SECOND, FoundThrottles.RESTORE).state == "done"
    assert rig.throttles == before


@from_both_hosts
@of_a_rate_and_a_list
def test_what_adopt_removes_is_gone_with_the_run(rig: TwinRig, host: str, what: str) -> None:
    rig.after(5, set_by_hand(rig, what))
    run(rig, HERE, FIRST)
    assert run(rig, host, SECOND, FoundThrottles.REMOVE).state == "done"
    assert rig.throttles == {}


def test_a_rollback_does_not_remove_what_was_set_after_its_run(rig: TwinRig) -> None:
    what = "a rate of the run"
    set_by_hand(rig, what)()
    done = run(rig, HERE, FIRST, FoundThrottles.REMOVE)
    assert (done.state, rig.throttles) == ("done", {})
    set_by_hand(rig, what)()
    before = rig.throttles
    with pytest.raises(InputError, match="--adopt remove"):
        roll_back(rig.client, RollbackRequest(done.run_id), context_of(rig, HERE))
    assert rig.throttles == before


@pytest.mark.parametrize("what", ["a rate of the run", "a rate of another broker"])
def test_a_rollback_removes_only_throttles_that_its_preview_saw(rig: TwinRig, what: str) -> None:
    done = run(rig, HERE, FIRST)
    set_by_hand(rig, "a list of its topic")()
    request, context = RollbackRequest(done.run_id, found=FoundThrottles.REMOVE), context_of(rig, HERE)
    seen = preview_rollback(rig.client, request, context)
    set_by_hand(rig, what)()
    before = rig.throttles
    resource, name, _ = SETTINGS[what]
    with pytest.raises(Drifted, match=f"nothing was started: {name} of {resource} changed since the preview"):
        undo_as_seen(rig, request, context, seen)
    assert rig.throttles == before
    assert undo_as_seen(rig, request, context, preview_rollback(rig.client, request, context)).state == "done"
    assert rig.throttles == {}


def test_a_rollback_moves_nothing_that_its_preview_left_alone(rig: TwinRig) -> None:
    done = run(rig, HERE, FIRST)
    rig.twin.stop(0)
    rig.transport.sleep(60)
    request, context = RollbackRequest(done.run_id), context_of(rig, HERE)
    seen = preview_rollback(rig.client, request, context)
    assert (seen.plan.plan.assignments, len(seen.plan.skipped)) == ((), 1)
    rig.twin.start(0)
    rig.transport.sleep(60)
    with pytest.raises(Drifted, match="nothing was started: t-0 changed since the preview"):
        undo_as_seen(rig, request, context, seen)


def undo_as_seen(rig: TwinRig, request: RollbackRequest, context: RunContext, seen: Rollback) -> RunHistory:
    """Undo a run after the yes to a preview."""
    prepared = end_run_to_undo(rig.client, request, context, rig.transport)
    undone = start_rollback(rig.client, prepared, request, context, rig.transport, seen=seen).run
    assert undone is not None
    return undone


# What an earlier run set and could not restore


def second_run(rig: TwinRig) -> tuple[RunHistory, list[str]]:
    """The next run on this host, and what it warned of."""
    warnings: list[str] = []
    context = replace(context_of(rig, HERE), warn=warnings.append)
    request = RunRequest(PlanFile(Plan((SECOND,))), ThrottleRates(RATE), measure_for_s=0)
    started = prepare_run(rig.client, request, context, rig.transport)
    return start_run(rig.client, started, context, clock=rig.transport), warnings


def forgotten_broker(rig: TwinRig) -> RunHistory:
    """A run whose destination was lost and forgotten, and comes back with the rate of the run."""
    rig.after(4, lambda: rig.twin.crash(2))
    request = RunRequest(PlanFile(Plan((FIRST,))), ThrottleRates(RATE // 8), measure_for_s=0, give_up_after_s=60)
    context = context_of(rig, HERE)
    first = start_run(
        rig.client, prepare_run(rig.client, request, context, rig.transport), context, clock=rig.transport
    )
    forget_brokers(find_journals(rig.state_dir / HERE)[0], (2,), rig.transport)
    rig.twin.start(2)
    rig.transport.sleep(60)
    return first


def recreated_topic(rig: TwinRig) -> RunHistory:
    """A run whose topic was recreated, and a broker that shows the list of the former one after a restart."""
    due_ms = [rig.transport.now_ms() + 4_000]

    def recreate(*_: object) -> None:
        if due_ms and rig.transport.now_ms() >= due_ms[0]:
            due_ms.clear()
            rig.client.delete_topics(["t"]).raise_if_any()
            rig.client.create_topics([NewTopic("t", assignments=((0, 1), (1, 0)))]).raise_if_any()

    context = replace(context_of(rig, HERE), observers=(recreate,))
    request = RunRequest(PlanFile(Plan((FIRST,))), ThrottleRates(RATE), measure_for_s=0)
    started = prepare_run(rig.client, request, context, rig.transport)
    first = start_run(rig.client, started, context, clock=rig.transport)
    assert (first.state, rig.throttles) == ("failed", {})
    change(rig, ConfigResource.topic("t"), FOLLOWER_THROTTLED_REPLICAS, "0:2")
    return first


@pytest.mark.parametrize("begin", [forgotten_broker, recreated_topic])
def test_what_a_run_could_not_restore_is_restored_by_the_next(
    rig: TwinRig, begin: Callable[[TwinRig], RunHistory]
) -> None:
    first = begin(rig)
    assert len(rig.throttles) == 1
    second, warnings = second_run(rig)
    assert (second.state, rig.throttles) == ("done", {})
    (warning,) = [one for one in warnings if "could not restore" in one]
    assert f"which run {first.run_id} set and could not restore; it is restored at the end of this run" in warning


@from_both_hosts
def test_a_rate_set_again_once_a_later_run_restored_it_is_somebodys(rig: TwinRig, host: str) -> None:
    """By hand, and the very value of the first run; the later one may be in another state directory."""
    forgotten_broker(rig)
    before = rig.throttles
    assert run_of_both(rig, host, SECOND).state == "done"
    assert rig.throttles == {}
    change(rig, ConfigResource.broker(2), FOLLOWER_THROTTLED_RATE, str(RATE // 8))
    assert rig.throttles == before
    with pytest.raises(InputError, match="--adopt remove"):
        run_of_both(rig, HERE, PartitionAssignment(tp(1), (1, 0)))
    assert rig.throttles == before


def run_of_both(rig: TwinRig, host: str, move: PartitionAssignment) -> RunHistory:
    """A run in the directory of this host, which knows those of both."""
    both = rig.state_dir / HERE, rig.state_dir / ELSEWHERE
    context = replace(context_of(rig, host), beside=both, warn=lambda _: None)
    request = RunRequest(PlanFile(Plan((move,))), ThrottleRates(RATE), measure_for_s=0)
    started = prepare_run(rig.client, request, context, rig.transport)
    return start_run(rig.client, started, context, clock=rig.transport)


def test_another_value_of_a_setting_that_was_not_restored_is_somebodys(rig: TwinRig) -> None:
    forgotten_broker(rig)
    set_by_hand(rig, "a rate of the run")()
    refused_run(rig, HERE, "a rate of the run")


class Meanwhile(SystemClock):
    """The twin's time, of which a run measures some; then this happens."""

    def __init__(self, rig: TwinRig, deed: Callable[[], object]) -> None:
        self._rig, self._deed = rig, deed

    def now_ms(self) -> int:
        return self._rig.transport.now_ms()

    def sleep(self, seconds: float) -> None:
        self._rig.transport.sleep(seconds)
        self._deed()


@of_every_setting
def test_what_another_run_sets_while_this_one_measures_is_refused(rig: TwinRig, what: str) -> None:
    clock = Meanwhile(rig, lambda: change(rig, *SETTINGS[what]))
    request = RunRequest(PlanFile(Plan((FIRST,))), ThrottleRates(RATE), measure_for_s=5.0)
    with pytest.raises(InputError, match="throttles are set that no known run owns"):
        prepare_run(rig.client, request, context_of(rig, HERE), clock)
