"""Brokers of a twin enter maintenance and leave it, whatever happens meanwhile, by whoever goes on."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import cast

import pytest

from kreassign.admin import AdminClient
from kreassign.errors import ClusterBusy, ClusterError, ExecutionError, InputError, JournalDamaged
from kreassign.executor.brokers import CORDON, NOT_SHOWN, UNCORDON, Blocked, Finished
from kreassign.executor.events import HoldRequested, RunStarted
from kreassign.executor.journal import Journal
from kreassign.executor.journal.file import CHANGE_PATIENCE_S
from kreassign.executor.journal.folder import cluster_folder, make_folder
from kreassign.executor.lease import OFFSETS_TOPIC, SESSION_MS, ClusterLease, Held, LeaseHolder, LeasePolicy
from kreassign.executor.maintenance.decisions import MaintenanceFacts, Step, next_to_enter, next_to_exit
from kreassign.executor.maintenance.record import ids_in_maintenance
from kreassign.model import Batch, ConfigChange, ConfigResource, NewTopic
from kreassign.model.error_codes import (
    CLUSTER_AUTHORIZATION_FAILED,
    GROUP_AUTHORIZATION_FAILED,
    POLICY_VIOLATION,
    TOPIC_AUTHORIZATION_FAILED,
)
from kreassign.operations.broker_changes import read_maintenance
from kreassign.operations.doctor import diagnose_cluster
from kreassign.operations.maintenance import Maintenance, MaintenanceResult, Way, maintain, preview_maintenance
from kreassign.operations.plan import make_plan
from kreassign.operations.plan_inputs import inputs_of_cluster
from kreassign.operations.plan_tasks import DrainBrokers
from kreassign.operations.run import RunContext
from kreassign.operations.whole_file import locked
from kreassign.planner.problem.policy import PlanPolicy
from kreassign.twin.groups import RETENTION_MS
from kreassign.twin.version import kafka_version
from tests.approved import approve
from tests.executor.odd_port import (
    OddPort,
    Real,
    as_it_is,
    each_refused,
    lost_on_the_way_back,
    lost_on_the_way_there,
    not_reached,
    refusal,
    refused,
)
from tests.executor.test_lease_on_twin import lease_of, with_offsets_topic
from tests.executor.twin_runs import TwinRig, tp

LISTS = [[3, 0, 1], [0, 3, 2], [2, 1, 4], [3, 4, 0]]
MIN_ISR = "min.insync.replicas"


class Killed(BaseException):
    """The process is gone."""


@dataclass
class Operator:
    """Operator at a machine, by the state directory."""

    rig: TwinRig
    state_dir: Path
    policy: LeasePolicy = LeasePolicy.AUTO

    def __post_init__(self) -> None:
        self.said: list[str] = []
        self.warnings: list[str] = []

    @property
    def context(self) -> RunContext:
        return RunContext(self.state_dir, 1.0, lease=self.policy, warn=self.warnings.append)

    def enter(self, *brokers: int, wait_s: float = 60) -> MaintenanceResult:
        self.said.clear()
        return self._go(Way.ENTER, brokers or (3,), wait_s)

    def exit(self, *brokers: int, wait_s: float = 60) -> MaintenanceResult:
        self.said.clear()
        return self._go(Way.EXIT, brokers or (3,), wait_s)

    def _go(self, way: Way, brokers: tuple[int, ...], wait_s: float) -> MaintenanceResult:
        clock = self.rig.transport
        return maintain(self.rig.client, brokers, way, self.context, self.said.append, wait_s=wait_s, clock=clock)


@pytest.fixture
def ann(tmp_path: Path) -> Operator:
    return Operator(TwinRig(tmp_path / "ann", LISTS), tmp_path / "ann")


def leaders(rig: TwinRig) -> list[int]:
    return [state.leader for _, state in sorted(rig.twin.metadata.topics["t"].partitions.items())]


def lists(rig: TwinRig) -> list[list[int]]:
    return [list(rig.replicas[number]) for number in sorted(rig.replicas)]


def cordons(rig: TwinRig) -> dict[int, str]:
    found = {
        broker: rig.twin.metadata.configs.get(ConfigResource.broker(broker), {}) for broker in rig.twin.processes.ids
    }
    return {broker: values["cordoned.log.dirs"] for broker, values in found.items() if "cordoned.log.dirs" in values}


def set_by_others(rig: TwinRig, broker: int, change: ConfigChange) -> None:
    rig.client.incremental_alter_configs({ConfigResource.broker(broker): [change]}).raise_if_any()


def require(rig: TwinRig, count: int) -> None:
    rig.client.incremental_alter_configs(
        {ConfigResource.topic("t"): [ConfigChange.set(MIN_ISR, str(count))]}
    ).raise_if_any()


def restart(rig: TwinRig, broker: int = 3) -> None:
    rig.twin.stop(broker)
    rig.transport.sleep(30)
    rig.twin.start(broker)
    rig.transport.sleep(30)


def test_a_broker_is_restarted_without_ever_leading_and_all_is_as_before(ann: Operator) -> None:
    rig = ann.rig
    require(rig, 2)
    entered = ann.enter()
    assert entered.is_finished
    approve([*ann.said, str(entered.next_step)], "maintenance-enter")
    assert 3 not in leaders(rig)
    assert ann.enter().steps == (), "again: nothing is left to do"

    restart(rig)
    assert 3 not in leaders(rig), "it does not get back what it led by itself"
    assert ann.exit().is_finished
    approve(ann.said, "maintenance-exit")
    assert (lists(rig), leaders(rig), cordons(rig)) == (LISTS, [3, 0, 2, 3], {})
    assert ann.exit().steps == ()


def test_a_partition_that_would_lose_min_isr_is_named_unchanged(ann: Operator) -> None:
    require(ann.rig, 3)
    refused = ann.enter()
    assert isinstance(refused.next_step, Blocked)
    assert "without broker 3, 3 partitions would lose min.insync.replicas: t-0 has replicas [3, 0, 1]" in str(
        refused.next_step
    )
    assert (ann.said, lists(ann.rig), cordons(ann.rig)) == ([], LISTS, {})


@pytest.mark.parametrize("way", Way)
def test_no_maintenance_begins_or_ends_that_nobody_agreed_to(ann: Operator, way: Way) -> None:
    """A broker was silent when there was to be a question, so that there was none, and answers by now."""
    if way is Way.EXIT:
        assert ann.enter().is_finished
    rig, before = ann.rig, ann.rig.twin.metadata.offset
    found = maintain(rig.client, (3,), way, ann.context, clock=rig.transport, is_agreed=False)
    assert (found.next_step, found.steps, rig.twin.metadata.offset) == (NOT_SHOWN, (), before)


def test_a_replica_that_does_not_catch_up_in_time_is_named(ann: Operator) -> None:
    require(ann.rig, 2)
    ann.rig.twin.stop(0)
    ann.rig.transport.sleep(30)
    late = ann.enter(wait_s=20)
    assert isinstance(late.next_step, Blocked)
    assert "after 20 s there is still to wait: t-0 has [1] in sync besides, and needs 2" in str(late.next_step)
    ann.rig.twin.start(0)
    assert ann.enter().is_finished, "given again, it goes on"
    assert ann.exit().is_finished
    assert lists(ann.rig) == LISTS


@pytest.mark.parametrize("is_as_left", [True, False])
def test_a_topic_created_again_keeps_its_order_in_the_end(tmp_path: Path, is_as_left: bool) -> None:
    rig = TwinRig(tmp_path, LISTS, release="4.2")  # which has no cordons, that would forbid the new lists
    ann = Operator(rig, tmp_path)
    assert ann.enter().is_finished
    placed = tuple(map(tuple, lists(rig))) if is_as_left else ((1, 3), (2, 4))
    rig.client.delete_topics(["t"]).raise_if_any()
    rig.client.create_topics([NewTopic("t", assignments=placed)]).raise_if_any()
    rig.transport.sleep(10)
    assert ann.exit().is_finished
    assert tuple(map(tuple, lists(rig))) == placed
    assert ann.said[-1].startswith("end the maintenance of broker 3; t-0 keeps ")
    assert "for its topic was deleted and created again" in ann.said[-1]
    assert not any("put another replica first" in sentence for sentence in ann.said)


def test_another_operator_elsewhere_ends_it_with_what_the_cluster_keeps(ann: Operator, tmp_path: Path) -> None:
    ann.policy = LeasePolicy.REQUIRE  # which has the cluster create the topic for it
    assert ann.enter().is_finished
    assert ann.warnings == []
    bob = Operator(ann.rig, tmp_path / "bob")
    (issue,) = diagnose_cluster(bob.rig.client, bob.state_dir).issues
    assert (issue.kind, issue.subject) == ("maintenance", "broker 3")
    assert bob.exit().is_finished
    assert diagnose_cluster(bob.rig.client, bob.state_dir).issues == ()
    assert (lists(ann.rig), leaders(ann.rig), cordons(ann.rig)) == (LISTS, [3, 0, 2, 3], {})
    assert ann.exit().steps == (), "what ann's machine knows is older"


def test_maintenance_ended_elsewhere_does_not_return(ann: Operator, tmp_path: Path) -> None:
    """The cluster has forgotten both its beginning and its end, and the file of the first machine is stale."""
    ann.policy = LeasePolicy.REQUIRE
    assert ann.enter().is_finished
    bob = Operator(ann.rig, tmp_path / "bob")
    assert bob.exit().is_finished
    ann.rig.twin.advance(RETENTION_MS)
    (issue,) = diagnose_cluster(ann.rig.client, ann.state_dir).issues
    assert issue.kind == "unread"
    assert "so that it may have been ended elsewhere" in str(issue)
    with pytest.raises(InputError, match=r"broker 3 since .*may have been ended elsewhere.*maintenance exit 3"):
        ann.enter(4)
    assert ann.exit(3).is_finished
    assert (lists(ann.rig), cordons(ann.rig)) == (LISTS, {})
    assert ann.enter(4).is_finished
    assert ids_in_maintenance(ann.rig.client) == {4}


def test_a_record_that_ignored_the_clusters_takes_nothing_from_it(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path / "rig", LISTS, release="4.2")
    ann, bob = Operator(rig, tmp_path / "ann", LeasePolicy.REQUIRE), Operator(rig, tmp_path / "bob", LeasePolicy.OFF)
    assert ann.enter(4).is_finished
    ann.policy = LeasePolicy.OFF
    assert ann.exit(4).is_finished
    ann.policy = LeasePolicy.AUTO
    assert ann.enter(3).is_finished
    assert ids_in_maintenance(rig.client) == {3}, "what ended was made from the cluster's record"
    assert bob.enter(2).is_finished
    bob.policy = LeasePolicy.AUTO
    assert bob.exit(2).is_finished
    assert ids_in_maintenance(rig.client) == {3}
    assert ann.exit().is_finished
    assert (lists(rig), leaders(rig)) == (LISTS, [3, 0, 2, 3])


def test_maintenance_longer_than_the_cluster_remembers_goes_on(ann: Operator) -> None:
    ann.policy = LeasePolicy.REQUIRE
    assert ann.enter().is_finished
    ann.rig.twin.advance(RETENTION_MS)
    assert ids_in_maintenance(ann.rig.client) == frozenset()
    assert ann.enter(3).is_finished
    assert ann.exit(3).is_finished
    assert (lists(ann.rig), leaders(ann.rig), cordons(ann.rig)) == (LISTS, [3, 0, 2, 3], {})


@pytest.mark.parametrize("answer", [lost_on_the_way_there, lost_on_the_way_back, not_reached])
def test_nothing_follows_from_a_record_that_the_cluster_may_not_have(
    ann: Operator, answer: Callable[..., object]
) -> None:
    ann.policy = LeasePolicy.REQUIRE
    assert ann.enter(4).is_finished
    assert ann.exit(4).is_finished
    ann.policy = LeasePolicy.AUTO
    odd = OddPort(ann.rig.client)
    odd.answer_always("commit_offsets", answer)
    before = lists(ann.rig)
    with pytest.raises(ClusterError):
        maintain(cast(AdminClient, odd), (3,), Way.ENTER, ann.context, wait_s=60, clock=ann.rig.transport)
    assert (lists(ann.rig), cordons(ann.rig)) == (before, {})
    assert ann.enter().is_finished
    assert ann.exit().is_finished
    assert lists(ann.rig) == LISTS


def test_nothing_is_changed_while_this_machine_cannot_keep_the_record(ann: Operator) -> None:
    ann.state_dir.mkdir(parents=True, exist_ok=True)
    cluster_folder(ann.state_dir, ann.rig.twin.cluster_id).touch()
    before = lists(ann.rig)
    with pytest.raises(InputError, match=r"maintenance\.json cannot be read: not a directory"):
        ann.enter()
    assert (lists(ann.rig), cordons(ann.rig)) == (before, {})


def test_where_the_cluster_keeps_nothing_it_is_said_who_has_to_end_it(ann: Operator, tmp_path: Path) -> None:
    assert ann.enter().is_finished
    (warning,) = ann.warnings
    assert "is recorded on this machine only" in warning
    assert "`--lease require` creates it" in warning
    bob = Operator(ann.rig, tmp_path / "bob")
    assert "cordoned by somebody else than its maintenance" in str(bob.exit().next_step)
    assert ann.exit().is_finished
    assert lists(ann.rig) == LISTS


def test_exit_opens_no_cordon_that_others_set_since_its_own_ended(ann: Operator) -> None:
    assert ann.enter().is_finished
    set_by_others(ann.rig, 4, CORDON)
    assert "names broker 4" in str(ann.exit().next_step)
    assert cordons(ann.rig) == {4: "*"}
    set_by_others(ann.rig, 3, CORDON)
    set_by_others(ann.rig, 4, UNCORDON)
    assert "names broker 3" in str(ann.exit().next_step)
    assert cordons(ann.rig) == {3: "*"}
    set_by_others(ann.rig, 3, UNCORDON)
    assert ann.exit().is_finished
    assert (lists(ann.rig), leaders(ann.rig), cordons(ann.rig)) == (LISTS, [3, 0, 2, 3], {})


@pytest.mark.parametrize("release", ["4.2", "4.4"])
def test_maintenance_ended_while_another_command_waits_is_not_begun_again(tmp_path: Path, release: str) -> None:
    ann = Operator(TwinRig(tmp_path, LISTS, release=release), tmp_path)
    require(ann.rig, 2)
    ann.rig.twin.stop(0)
    ann.rig.transport.sleep(30)
    bob, ended = Operator(ann.rig, ann.state_dir), list[MaintenanceResult]()

    def tell(sentence: str) -> None:
        if sentence.startswith("wait: t-0 has") and not ended:
            ended.append(bob.exit())

    found = maintain(ann.rig.client, (3,), Way.ENTER, ann.context, tell, wait_s=60, clock=ann.rig.transport)
    assert [one.is_finished for one in ended] == [True]
    assert "the maintenance of broker 3 was ended by somebody else since this command began" in str(found.next_step)
    assert (lists(ann.rig), cordons(ann.rig)) == (LISTS, {})
    assert "maintenance" not in [one.kind for one in diagnose_cluster(ann.rig.client, ann.state_dir).issues]


@pytest.mark.parametrize("at", ["put another replica first", "elect"])
@pytest.mark.parametrize("release", ["4.2", "4.4"])
def test_no_exit_gives_leaders_to_a_broker_that_entered_again_meanwhile(tmp_path: Path, release: str, at: str) -> None:
    """Before Kafka 4.3 there is no cordon that would show it."""
    ann = Operator(TwinRig(tmp_path, LISTS, release=release), tmp_path)
    assert ann.enter().is_finished
    bob, begun, left = Operator(ann.rig, ann.state_dir), list[MaintenanceResult](), list[list[list[int]]]()

    def tell(sentence: str) -> None:
        if sentence.startswith(at) and not begun:
            begun.append(bob.enter())
            left.append(lists(ann.rig))

    found = maintain(ann.rig.client, (3,), Way.EXIT, ann.context, tell, wait_s=60, clock=ann.rig.transport)
    assert [one.is_finished for one in begun] == [True]
    assert "the maintenance of broker 3 was begun again by somebody else" in str(found.next_step)
    assert cordons(ann.rig) == ({} if release == "4.2" else {3: "*"})
    assert 3 not in leaders(ann.rig)
    assert left == [lists(ann.rig)]


@pytest.mark.parametrize("way", Way)
def test_of_several_brokers_each_later_command_counts(tmp_path: Path, way: Way) -> None:
    """Without a lease, another command is given for broker 4 while the cordon of broker 3 is changed."""
    rig = TwinRig(tmp_path, LISTS)
    ann, bob = (Operator(rig, tmp_path, LeasePolicy.OFF) for _ in range(2))
    assert way is Way.ENTER or ann.enter(3, 4).is_finished
    odd, given = OddPort(rig.client), list[MaintenanceResult]()

    def give_first(real: Real, changes: dict[ConfigResource, object], **named: object) -> object:
        answer = real(changes, **named)
        if not named.get("validate_only") and not given:
            given.append(bob.exit(4) if way is Way.ENTER else bob.enter(4))
        return answer

    odd.answer_always("incremental_alter_configs", give_first)
    client, said = cast(AdminClient, odd), list[str]()
    found = maintain(client, (3, 4), way, ann.context, said.append, wait_s=60, clock=rig.transport)
    assert [one.is_finished for one in given] == [True]
    assert "the maintenance of broker 4 was" in str(found.next_step)
    assert cordons(rig) == ({3: "*"} if way is Way.ENTER else {4: "*"})
    changed = [sentence for sentence in said if "cordon" in sentence and "write down" not in sentence]
    assert changed == (["cordon the log directories of broker 3"] if way is Way.ENTER else ["uncordon broker 3"])


@pytest.mark.parametrize("release", ["4.2", "4.4"])
@pytest.mark.parametrize("way", Way)
def test_a_command_undone_right_after_it_wrote_the_record_is_over(tmp_path: Path, release: str, way: Way) -> None:
    """It has not read what it wrote when another command is given."""
    rig = TwinRig(tmp_path, LISTS, release=release)
    ann, bob, odd = Operator(rig, tmp_path), Operator(rig, tmp_path), OddPort(rig.client)
    undone = list[MaintenanceResult]()
    assert way is Way.ENTER or ann.enter().is_finished

    def undo(real: Real, *args: object, **named: object) -> object:
        record = read_maintenance(rig.client, ann.context).record
        if 3 in (record.staying if way is Way.ENTER else record.leaving) and not undone:
            undone.append(bob.exit() if way is Way.ENTER else bob.enter())
        return real(*args, **named)

    odd.answer_always("list_partition_reassignments", undo)
    found = maintain(cast(AdminClient, odd), (3,), way, ann.context, wait_s=60, clock=rig.transport)
    assert [one.is_finished for one in undone] == [True]
    what = "ended" if way is Way.ENTER else "begun again"
    assert f"the maintenance of broker 3 was {what} by somebody else since" in str(found.next_step)
    assert (3 in leaders(rig)) is (way is Way.ENTER)


def test_a_step_that_another_command_took_first_is_not_told(ann: Operator, tmp_path: Path) -> None:
    with_offsets_topic(ann.rig)
    assert ann.enter().is_finished
    bob, odd = Operator(ann.rig, tmp_path / "bob"), OddPort(ann.rig.client)
    said, ended = list[str](), list[MaintenanceResult]()

    def end_first(real: Real, *args: object, **named: object) -> object:
        if not ended:
            ended.append(bob.exit())
        return real(*args, **named)

    odd.answer_always("join_group", end_first)  # the lease
    client, clock = cast(AdminClient, odd), ann.rig.transport
    found = maintain(client, (3,), Way.EXIT, ann.context, said.append, wait_s=60, clock=clock)
    assert [one.is_finished for one in (*ended, found)] == [True, True]
    assert (found.steps, said) == ((), [])


@dataclass
class WaitingClock:
    """The clock of a twin; something happens in each wait of less than a second."""

    rig: TwinRig
    meanwhile: Callable[[], None]

    def now_ms(self) -> int:
        return self.rig.transport.now_ms()

    def monotonic_s(self) -> float:
        return self.rig.transport.monotonic_s()

    def sleep(self, seconds: float) -> None:
        self.rig.transport.sleep(seconds)
        if seconds < 1:
            self.meanwhile()


def lock_of_record(ann: Operator) -> Path:
    lock = cluster_folder(ann.state_dir, ann.rig.twin.cluster_id) / ".maintenance.json.lock"
    make_folder(lock.parent)
    return lock


def test_a_stopped_command_that_changes_the_record_is_waited_for_and_named(ann: Operator) -> None:
    before, lock = ann.rig.transport.monotonic_s(), lock_of_record(ann)
    with locked(lock), pytest.raises(InputError, match="another command has been changing") as refused:
        ann.enter()
    assert f": process {os.getpid()} (" in str(refused.value)
    assert f") has locked {lock}. " in str(refused.value)
    assert ann.rig.transport.monotonic_s() - before >= CHANGE_PATIENCE_S
    assert (lists(ann.rig), cordons(ann.rig)) == (LISTS, {})
    assert ann.enter().is_finished


def test_a_record_is_not_written_without_the_lease_that_was_lost_meanwhile(ann: Operator) -> None:
    """While a stopped command kept the lock of the record."""
    rig, lock = with_offsets_topic(ann.rig), lock_of_record(ann)
    with ExitStack() as stopped:
        stopped.enter_context(locked(lock))

        def meanwhile() -> None:
            rig.transport.sleep(SESSION_MS / 1000 + 1)
            assert isinstance(lease_of(rig, "run-1").take(), Held)
            stopped.close()

        with pytest.raises(ExecutionError, match="nothing more was changed: the lease of the cluster was lost"):
            maintain(rig.client, (3,), Way.ENTER, ann.context, wait_s=60, clock=WaitingClock(rig, meanwhile))
    assert ids_in_maintenance(rig.client) == frozenset()


def test_a_lock_that_cannot_be_opened_is_named(ann: Operator) -> None:
    lock = lock_of_record(ann)
    lock.symlink_to(lock.with_name("of others"))
    with pytest.raises(InputError) as refused:
        ann.enter()
    assert f"{lock}, which keeps other commands from changing maintenance.json" in str(refused.value)
    assert "make room" not in str(refused.value)
    assert (lists(ann.rig), cordons(ann.rig)) == (LISTS, {})


def test_a_cordon_others_set_after_a_death_at_its_opening_stays(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, LISTS, release="4.3")
    ann, odd = Operator(rig, tmp_path), OddPort(rig.client)
    assert ann.enter().is_finished

    def opened(real: Real, *args: object, **named: object) -> object:
        answer = real(*args, **named)
        if named.get("validate_only"):
            return answer
        raise Killed

    def tell(sentence: str) -> None:
        if sentence.startswith("put another replica first"):
            set_by_others(rig, 3, CORDON)

    odd.answer_always("incremental_alter_configs", opened)
    with pytest.raises(Killed):
        maintain(cast(AdminClient, odd), (3,), Way.EXIT, ann.context, wait_s=60, clock=rig.transport)
    assert cordons(rig) == {}
    assert maintain(rig.client, (3,), Way.EXIT, ann.context, tell, wait_s=60, clock=rig.transport).is_finished
    assert (lists(rig), cordons(rig)) == (LISTS, {3: "*"})


def test_exit_takes_back_a_cordon_that_its_broker_does_not_show(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, LISTS, release="4.3")
    ann = Operator(rig, tmp_path)

    def tell(sentence: str) -> None:
        if sentence.startswith("cordon the log directories"):
            rig.twin.views.hold_back(3)

    maintain(rig.client, (3,), Way.ENTER, ann.context, tell, wait_s=10, clock=rig.transport)
    assert cordons(rig) == {3: "*"}
    assert "uncordon broker 3" in ann.exit(wait_s=10).steps
    assert cordons(rig) == {}


def test_exit_beside_a_gone_broker_shows_all_that_it_does(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[3, 0, 1], [4, 0, 1]])
    ann = Operator(rig, tmp_path)
    assert ann.enter(3, 4).is_finished
    rig.twin.stop(3)
    rig.transport.sleep(30)
    rig.client.unregister_broker(3)
    rig.client.alter_partition_reassignments({tp(0): (0, 1)}).raise_if_any()
    rig.transport.sleep(60)
    shown = [str(step) for step in preview_maintenance(rig.client, (3, 4), Way.EXIT, ann.context).due]
    ended, begun = "end the maintenance of broker 3", "begin to end the maintenance of broker 4"
    assert shown[:3] == [ended, begun, "uncordon broker 4"]
    assert ann.exit(3, 4).is_finished
    assert ann.said == shown


def test_a_list_others_reorder_once_it_is_restored_stays_theirs(tmp_path: Path) -> None:
    """Another broker of it is still in maintenance."""
    rig = TwinRig(tmp_path, [[3, 4, 0]], release="4.2")
    ann = Operator(rig, tmp_path)
    assert ann.enter(3, 4).is_finished
    (ours,) = lists(rig)
    assert ann.exit(3).is_finished
    assert lists(rig) == [[3, 4, 0]]
    rig.client.alter_partition_reassignments({tp(0): tuple(ours)}).raise_if_any()
    assert ann.exit(4).is_finished
    assert lists(rig) == [ours]


def refuse_opening(broker: int) -> Callable[..., object]:
    """Refuse to change the settings of this broker."""

    def answer(real: Real, changes: Mapping[ConfigResource, object], **named: object) -> object:
        if ConfigResource.broker(broker) in changes:
            raise refusal(CLUSTER_AUTHORIZATION_FAILED)
        return real(changes, **named)

    return answer


def test_exit_that_fails_at_a_second_broker_records_the_first_as_open(ann: Operator) -> None:
    assert ann.enter(3, 4).is_finished
    odd = OddPort(ann.rig.client)
    odd.answer_always("incremental_alter_configs", refuse_opening(4))
    with pytest.raises(ClusterError, match="CLUSTER_AUTHORIZATION_FAILED"):
        maintain(cast(AdminClient, odd), (3, 4), Way.EXIT, ann.context, wait_s=60, clock=ann.rig.transport)
    set_by_others(ann.rig, 3, CORDON)
    ann.exit(3, 4)
    assert cordons(ann.rig) == {3: "*"}


@pytest.mark.parametrize(("release", "then"), [("4.3", "4.3"), ("4.4", "4.4"), ("4.3", "4.4")])
@pytest.mark.parametrize("dies_before", range(12))
def test_another_host_ends_what_a_killed_process_began(
    tmp_path: Path, dies_before: int, release: str, then: str
) -> None:
    """For each last step, and also when the cluster is upgraded after that."""
    rig = TwinRig(tmp_path / "ann", LISTS, release=release)
    ann, bob = (Operator(rig, tmp_path / name, LeasePolicy.REQUIRE) for name in ("ann", "bob"))
    calls = 0

    def mortal(decide: Callable[[MaintenanceFacts], Step]) -> Callable[[MaintenanceFacts], Step]:
        def decided(facts: MaintenanceFacts) -> Step:
            nonlocal calls
            calls += 1
            if calls > dies_before:
                raise Killed
            return decide(facts)

        return decided

    for decide in (next_to_enter, next_to_exit):
        try:
            Maintenance(rig.client, (3,), ann.context, clock=rig.transport).go_on(mortal(decide))
        except Killed:
            break
    rig.twin.settings = replace(rig.twin.settings, version=kafka_version(then))
    assert bob.enter().is_finished
    assert 3 not in leaders(rig)
    assert bob.exit().is_finished
    assert (lists(rig), leaders(rig), cordons(rig)) == (LISTS, [3, 0, 2, 3], {})


def test_a_cordon_of_others_is_refused_before_anything_is_written_from_4_4(ann: Operator, tmp_path: Path) -> None:
    ann.rig.client.incremental_alter_configs({ConfigResource.broker(3): [CORDON]}).raise_if_any()
    refused = ann.enter()
    assert isinstance(refused.next_step, Blocked)
    assert "Kafka takes no changed list that names broker 3, because all its working log dir" in str(refused.next_step)
    assert (ann.said, lists(ann.rig), ann.rig.twin.metadata.topics.keys()) == ([], LISTS, {"t"})
    older = Operator(TwinRig(tmp_path / "old", LISTS, release="4.3"), tmp_path / "old")
    older.rig.client.incremental_alter_configs({ConfigResource.broker(3): [CORDON]}).raise_if_any()
    assert older.enter().is_finished
    assert older.exit().is_finished
    assert (lists(older.rig), cordons(older.rig)) == (LISTS, {3: "*"})


def test_a_controller_late_about_a_cordons_end_is_asked_again(ann: Operator) -> None:
    assert ann.enter().is_finished
    odd = OddPort(ann.rig.client)
    odd.answer("alter_partition_reassignments", each_refused(39), each_refused(39))
    client = cast(AdminClient, odd)
    ended = maintain(client, (3,), Way.EXIT, ann.context, wait_s=60, clock=ann.rig.transport)
    assert ended.is_finished
    assert lists(ann.rig) == LISTS


def run_after_exit(ann: Operator, journal: Journal, started: RunStarted) -> tuple[list[object], str]:
    """Return the moves when the maintenance ends during a run that waits for it, and how the run ends."""
    under_way: list[object] = []

    def end() -> None:
        under_way.append(ann.rig.client.list_partition_reassignments())
        assert ann.exit().is_finished

    ann.rig.between_steps(20, end)
    return under_way, ann.rig.new_runner(journal).start(started).state


def test_a_run_starts_no_moves_to_it_and_keeps_lists_of_its_moves(ann: Operator) -> None:
    """The guard `cordoned` holds it; broker 3 is its next destination."""
    rig = ann.rig
    started = rig.prepared({2: (2, 1, 3), 0: (3, 0, 4)}, throttle=None)
    with Journal.create(ann.state_dir, started) as journal:
        assert ann.enter().is_finished
        assert "put another replica first in the lists of t-3" in ann.said
        assert lists(rig)[0] == LISTS[0], "the run is still to move it"
        assert run_after_exit(ann, journal, started) == ([{}], "done"), "nothing was moved before it was over"
    assert lists(rig) == [[3, 0, 4], LISTS[1], [2, 1, 3], LISTS[3]]
    assert leaders(rig)[3] == 3


@pytest.mark.parametrize("way", list(Way))
def test_no_list_changes_while_a_journal_of_a_run_cannot_be_read(ann: Operator, way: Way) -> None:
    if way is Way.EXIT:
        assert ann.enter().is_finished
    before = lists(ann.rig)
    path = cluster_folder(ann.state_dir, ann.rig.twin.cluster_id) / "run-1.sqlite"
    make_folder(path.parent)
    path.write_bytes(b"damaged")
    with pytest.raises(JournalDamaged, match="a run on this cluster has a journal that cannot be read"):
        ann.enter() if way is Way.ENTER else ann.exit()
    assert (lists(ann.rig), bool(cordons(ann.rig))) == (before, way is Way.EXIT)


@pytest.mark.parametrize("holder", ["run-1", "run-2"])
def test_beside_a_run_here_only_the_lease_of_that_run_is_shared(ann: Operator, holder: str) -> None:
    started = ann.rig.prepared({2: (2, 1, 0)}, throttle=None)
    lease = ClusterLease(ann.rig.new_client(), ann.rig.transport, LeaseHolder(holder, "bob", "b", 0))
    ann.rig.client.create_topics([NewTopic(OFFSETS_TOPIC, assignments=((0, 1, 2),))]).raise_if_any()
    with Journal.create(ann.state_dir, started):
        assert isinstance(lease.take(), Held)
        if holder == started.run_id:
            assert ann.enter().is_finished
            return
        with pytest.raises(ClusterBusy, match="run run-2 of bob@b"):
            ann.enter()
    assert (lists(ann.rig), cordons(ann.rig)) == (LISTS, {})


def test_before_cordons_the_cluster_record_holds_off_a_remote_run(tmp_path: Path) -> None:
    """Kafka 4.2: the run of another machine begins in the middle, and moves to broker 3 only when that is over."""
    rig = TwinRig(tmp_path / "bob", LISTS, release="4.2")
    ann = Operator(rig, tmp_path / "ann", LeasePolicy.REQUIRE)
    assert ann.enter().is_finished
    assert ids_in_maintenance(rig.client) == {3}
    started = rig.prepared({2: (2, 1, 3)}, throttle=None)
    rig.in_maintenance = partial(ids_in_maintenance, rig.client)
    with Journal.create(tmp_path / "bob", started) as journal:
        assert run_after_exit(ann, journal, started) == ([{}], "done"), "nothing was moved before it was over"
    assert lists(rig) == [*LISTS[:2], [2, 1, 3], LISTS[3]]


@pytest.mark.parametrize("release", ["3.9", "4.2"])
def test_before_cordons_a_run_that_is_paused_or_left_is_in_nobodys_way(tmp_path: Path, release: str) -> None:
    ann = Operator(TwinRig(tmp_path, LISTS, release=release), tmp_path, LeasePolicy.REQUIRE)
    with Journal.create(tmp_path, ann.rig.prepared({2: (2, 1, 3)}, throttle=None)) as journal:
        blocked = ann.enter().next_step
        assert "cancel it (`kreassign cancel`), or while a process executes it, pause it until" in str(blocked)
        journal.append(HoldRequested(ann.rig.transport.now_ms(), 1, "ann"))
        assert ann.enter().is_finished
    assert ann.exit().is_finished
    assert ann.enter().is_finished, "no process executes the run any more"


@pytest.mark.parametrize("policy", [LeasePolicy.OFF, LeasePolicy.AUTO])
def test_before_cordons_an_interrupted_run_that_learns_of_none_blocks(tmp_path: Path, policy: LeasePolicy) -> None:
    """The cluster keeps no record: without a topic `__consumer_offsets`, or unasked."""
    ann = Operator(TwinRig(tmp_path, LISTS, release="4.2"), tmp_path, policy)
    Journal.create(tmp_path, ann.rig.prepared({2: (2, 1, 3)}, throttle=None)).close()
    blocked = ann.enter()
    assert isinstance(blocked.next_step, Blocked)
    assert "is still to move t-2 to broker 3" in str(blocked.next_step)
    assert (ann.said, lists(ann.rig)) == ([], LISTS)


def test_before_cordons_each_run_counts_with_its_own_destinations(tmp_path: Path) -> None:
    """The run left behind has the other destination for the partition that the active one is to move."""
    ann = Operator(TwinRig(tmp_path, LISTS, release="4.2"), tmp_path, LeasePolicy.REQUIRE)
    left = replace(ann.rig.prepared({1: (0, 4, 2)}, throttle=None), run_id="run-0")
    Journal.create(tmp_path, left).close()
    with Journal.create(tmp_path, ann.rig.prepared({1: (0, 1, 2)}, throttle=None)):
        assert "is still to move t-1 to broker 1" in str(ann.enter(1).next_step)
        assert ann.enter(4).is_finished


@pytest.mark.parametrize("release", ["3.9", "4.2"])
def test_before_cordons_a_plan_puts_nothing_on_a_broker_in_maintenance(tmp_path: Path, release: str) -> None:
    rig = TwinRig(tmp_path / "bob", [[0, 1], [1, 0], [0, 2], [2, 0]], release=release)
    ann, warnings = Operator(rig, tmp_path / "ann", LeasePolicy.REQUIRE), list[str]()

    def drained_to() -> set[int]:
        policy = PlanPolicy()
        inputs = inputs_of_cluster(rig.client, policy, measure_for_s=0, clock=rig.transport, warn=warnings.append)
        plan = make_plan(inputs, DrainBrokers((0,))).plan
        lists = (replicas for name, replicas in plan.replicas.items() if name.topic == "t")
        return {broker for replicas in lists for broker in replicas}

    assert {3, 4} <= drained_to(), "empty brokers are where a drain goes to"
    assert ann.enter().is_finished
    assert drained_to().isdisjoint({0, 3})
    assert ann.exit().is_finished
    assert {3, 4} <= drained_to()
    assert warnings == []


def test_a_run_learns_who_is_in_maintenance_or_that_it_is_unknown(ann: Operator) -> None:
    ann.policy = LeasePolicy.REQUIRE
    assert ann.enter().is_finished
    odd = OddPort(ann.rig.client)
    asked = partial(ids_in_maintenance, odd.port)
    odd.answer("fetch_offsets", lambda *_, **__: Batch())
    assert asked() == {3}, "one empty answer is not believed"
    odd.answer("fetch_offsets", refused(GROUP_AUTHORIZATION_FAILED))
    assert asked() == {3}, "nor is one refusal"
    odd.answer_always("fetch_offsets", lost_on_the_way_there)
    with pytest.raises(ClusterError, match="broke before the answer came"):
        asked()
    odd.answer_always("fetch_offsets", refused(GROUP_AUTHORIZATION_FAILED))
    assert asked() == set(), "it can keep no lease either"
    odd.answer_always("fetch_offsets", as_it_is)
    assert ann.exit().is_finished
    assert asked() == set()


def test_a_topic_that_is_created_meanwhile_does_not_land_on_it(ann: Operator) -> None:
    assert ann.enter().is_finished
    ann.rig.client.create_topics([NewTopic("new", 8, 2)]).raise_if_any()
    found = ann.rig.twin.metadata.topics["new"].partitions.values()
    assert not any(3 in state.replicas for state in found)


@pytest.mark.parametrize("release", ["3.9", "4.2"])
def test_a_release_without_cordons_is_demoted_all_the_same(tmp_path: Path, release: str) -> None:
    rig = TwinRig(tmp_path, LISTS, release=release)
    ann = Operator(rig, tmp_path)
    entered = ann.enter()
    assert "it leads nothing, 3 partitions keep min.insync.replicas without it, it is not cordoned" in str(
        entered.next_step
    )
    assert ann.exit().is_finished
    assert (lists(rig), leaders(rig)) == (LISTS, [3, 0, 2, 3])


@pytest.mark.parametrize("code", [POLICY_VIOLATION, TOPIC_AUTHORIZATION_FAILED])
@pytest.mark.parametrize("release", ["3.9", "4.2"])
def test_before_cordons_a_dead_replica_hinders_nobody(tmp_path: Path, release: str, code: int) -> None:
    """The controller refuses the topic that is to tell whether lists may name it."""
    rig = TwinRig(tmp_path, LISTS, release=release)
    ann, odd = Operator(rig, tmp_path), OddPort(rig.client)
    rig.twin.stop(4)
    rig.transport.sleep(30)
    odd.answer_always("create_topics", refused(code))
    client = cast(AdminClient, odd)
    for way, list_of_dead in ((Way.ENTER, [0, 4, 3]), (Way.EXIT, LISTS[3])):
        assert maintain(client, (3,), way, ann.context, wait_s=60, clock=rig.transport).is_finished
        assert lists(rig)[3] == list_of_dead


def test_a_damaged_record_is_refused_by_name(ann: Operator) -> None:
    assert ann.enter().is_finished
    path = next(ann.state_dir.glob("*/maintenance.json"))
    path.write_text("{", encoding="utf-8")
    with pytest.raises(InputError, match=r"maintenance\.json: it is no record of maintenance"):
        ann.exit()


@pytest.mark.parametrize(("way", "behind"), [(Way.ENTER, 0), (Way.ENTER, 1), (Way.EXIT, 0)])
def test_maintenance_beside_a_broker_behind_undoes_no_move_of_others(ann: Operator, way: Way, behind: int) -> None:
    rig = ann.rig
    if way is Way.EXIT:
        ann.enter()
    rig.twin.views.hold_back(behind)
    rig.client.alter_partition_reassignments({tp(0): (1, 0, 4), tp(3): (4, 0, 2)}).raise_if_any()
    rig.transport.sleep(90)
    moved = lists(rig)
    result = ann.enter() if way is Way.ENTER else ann.exit()
    assert lists(rig) == moved
    if way is Way.ENTER:
        assert isinstance(result.next_step, Blocked)
        assert f"wait: brokers to show the same as broker {behind}" in str(result.next_step)
    else:
        assert result.next_step == Finished(("broker 3 is in service",))
        assert "t-0 keeps [1, 0, 4], for somebody else has changed or moves it" in str(result.steps)
    assert ann.said.count("uncordon broker 3") == (way is Way.EXIT)


def restart_behind_the_back(rig: TwinRig, of: int) -> None:
    """Restart broker 3; a broker goes on knowing it as down."""
    rig.twin.stop(3)
    rig.transport.sleep(30)
    rig.twin.views.hold_back(of)
    rig.twin.start(3)
    rig.transport.sleep(30)


@pytest.mark.parametrize("behind", range(3))
def test_enter_beside_a_broker_behind_lets_no_leader_be_stopped(ann: Operator, behind: int) -> None:
    assert ann.enter().is_finished
    restart_behind_the_back(ann.rig, behind)
    open_again = {ConfigResource.broker(3): [ConfigChange.delete("cordoned.log.dirs")]}
    ann.rig.client.incremental_alter_configs(open_again).raise_if_any()
    ann.rig.transport.sleep(5)
    ann.rig.client.alter_partition_reassignments({tp(0): (3, 0, 1), tp(3): (3, 4, 0)}).raise_if_any()
    ann.rig.transport.sleep(5)
    ann.rig.client.elect_leaders([tp(0), tp(3)]).raise_if_any()
    assert 3 in leaders(ann.rig)
    assert not (ann.enter().is_finished and 3 in leaders(ann.rig))


@pytest.mark.parametrize("behind", range(3))
def test_exit_beside_a_broker_behind_starts_no_broker_that_runs(ann: Operator, behind: int) -> None:
    assert ann.enter().is_finished
    restart_behind_the_back(ann.rig, behind)
    assert "start it" not in str(ann.exit().next_step)
    assert cordons(ann.rig) == {}


def test_maintenance_that_others_undo_again_and_again_ends(ann: Operator) -> None:
    rig = ann.rig

    def undo(sentence: str) -> None:
        if sentence.startswith("elect"):
            rig.client.alter_partition_reassignments({tp(0): (3, 0, 1), tp(3): (3, 4, 0)}).raise_if_any()

    result = maintain(rig.client, (3,), Way.ENTER, ann.context, undo, wait_s=60, clock=rig.transport)
    assert isinstance(result.next_step, Blocked)
