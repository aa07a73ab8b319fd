"""The doctor visits a twin on which somebody overrode a reassignment so that it can never complete."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from kreassign.admin import AdminClient, client_settings
from kreassign.errors import JournalDamaged, Unreachable
from kreassign.executor.journal.folder import ClusterLock
from kreassign.executor.lease import LeasePolicy
from kreassign.executor.maintenance.record import MaintenanceRecord
from kreassign.model import Batch, ConfigChange, ConfigResource, LogDir
from kreassign.model.error_codes import NOT_CONTROLLER
from kreassign.model.pace import Order
from kreassign.model.throttle import FOLLOWER_THROTTLED_RATE, LEADER_THROTTLED_REPLICAS
from kreassign.operations.broker_changes import MaintenanceStore
from kreassign.operations.connect import tell_nobody
from kreassign.operations.doctor import diagnose_cluster
from kreassign.operations.left_throttles import find_left_throttles
from kreassign.operations.run import RunContext
from kreassign.operations.run_journals import forget_brokers
from kreassign.operations.snapshot import overview
from kreassign.twin.cluster import Twin
from kreassign.twin.core import TwinSettings
from kreassign.twin.transport import TwinTransport
from tests.executor.odd_port import OddPort, Real, each_refused
from tests.executor.twin_runs import RATE, TwinRig, pace, tp
from tests.operations.test_throttle_owners import Meanwhile
from tests.twin.asking import cluster

BY_SOMEBODY_ELSE = (
    "1 partition is being reassigned, by somebody else; if they agree, `kafka-reassign-partitions --cancel "
    "--preserve-throttles --reassignment-json-file FILE` cancels what FILE lists"
)


def test_the_doctor_finds_an_endless_override_and_a_forgotten_throttle(
    tmp_path: Path,
) -> None:
    transport = TwinTransport(Twin(cluster({"t": [[0, 1]]}), TwinSettings()))
    settings = client_settings(bootstrap_servers="broker-0:9092")
    rate = ConfigResource.broker(3)
    with AdminClient.connect(settings, clock=transport, transport=transport) as client:
        client.alter_partition_reassignments({tp(0): (0, 1, 2)}).raise_if_any()
        client.alter_partition_reassignments({tp(0): (0, 1)}, warns_of_overrides=False).raise_if_any()
        client.incremental_alter_configs({rate: [ConfigChange.set(FOLLOWER_THROTTLED_RATE, "5")]}).raise_if_any()
        transport.sleep(600)
        looked = diagnose_cluster(client, tmp_path, measure_for_s=5, clock=transport)
        assert [issue.kind for issue in looked.issues] == ["endless"]
        assert looked.notes == (BY_SOMEBODY_ELSE,)
        client.alter_partition_reassignments({tp(0): None}).raise_if_any()
        transport.sleep(10)
        assert [issue.kind for issue in diagnose_cluster(client, tmp_path).issues] == ["throttle"]
        client.incremental_alter_configs({rate: [ConfigChange.delete(FOLLOWER_THROTTLED_RATE)]}).raise_if_any()
        assert diagnose_cluster(client, tmp_path).issues == ()


@pytest.mark.parametrize("behind", range(2))
def test_the_doctor_finds_a_throttle_beside_a_broker_that_lags(tmp_path: Path, behind: int) -> None:
    rig = TwinRig(tmp_path, [[0, 1], [1, 2]])
    rig.twin.views.hold_back(behind)
    change = ConfigChange.set(LEADER_THROTTLED_REPLICAS, "0:0")
    rig.client.incremental_alter_configs({ConfigResource.topic("t"): [change]}).raise_if_any()
    assert [issue.kind for issue in diagnose_cluster(rig.client, tmp_path).issues] == ["throttle"]


def test_the_doctor_takes_no_move_that_begins_meanwhile_for_a_factor(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1], [1, 2], [2, 3]])
    odd = OddPort(rig.client)

    def begun_first(real: Real, *args: Any, **named: Any) -> Any:
        rig.client.alter_partition_reassignments({tp(0): (2, 3)}).raise_if_any()
        return real(*args, **named)

    odd.answer("describe_topics", begun_first)
    assert diagnose_cluster(cast(AdminClient, odd), tmp_path, clock=rig.transport).issues == ()


def test_the_doctor_takes_no_move_that_ends_meanwhile_for_a_stuck_one(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1], [1, 2]])
    odd = OddPort(rig.client)
    rig.client.alter_partition_reassignments({tp(0): (2, 3)}).raise_if_any()

    def ended_first(real: Real, *args: Any, **named: Any) -> Any:
        answer = real(*args, **named)
        rig.transport.sleep(600)
        return answer

    odd.answer("describe_cluster", ended_first)
    looked = diagnose_cluster(cast(AdminClient, odd), tmp_path, measure_for_s=5, clock=rig.transport)
    assert [one.kind for one in looked.issues] == []


def test_the_doctor_names_a_run_only_for_what_its_journal_sent(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1], [1, 0]], size_bytes=100 * RATE)
    started = rig.prepared({0: (0, 2), 1: (1, 3)}, pace=pace(Order.NAME, moves=1))
    rig.stop_after(5)
    assert rig.run(started).state == "paused"
    rig.client.alter_partition_reassignments({tp(1): (1, 3)}).raise_if_any()
    notes = diagnose_cluster(rig.client, tmp_path, clock=rig.transport).notes
    assert "1 partition is being reassigned, by run run-1; `kreassign cancel run-1` cancels that" in notes
    assert BY_SOMEBODY_ELSE in notes


def test_the_doctor_names_no_run_for_a_move_that_was_refused(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1]], size_bytes=100 * RATE)
    odd = OddPort(rig.client)
    rig.odd_port = odd.port
    started = rig.prepared({0: (0, 2)})
    odd.answer_always("alter_partition_reassignments", each_refused(NOT_CONTROLLER))
    rig.stop_after(5)
    assert rig.run(started).state == "paused"
    rig.client.alter_partition_reassignments({tp(0): (0, 2)}).raise_if_any()
    notes = diagnose_cluster(rig.client, tmp_path, clock=rig.transport).notes
    assert BY_SOMEBODY_ELSE in notes


@pytest.mark.parametrize("is_active", [False, True])
def test_the_doctor_does_not_say_who_moves_beside_an_unread_journal(tmp_path: Path, *, is_active: bool) -> None:
    """Also if a process executes its run, without a lease that would name it."""
    rig = TwinRig(tmp_path, [[0, 1]], size_bytes=100 * RATE)
    rig.stop_after(5)
    assert rig.run(rig.prepared({0: (0, 2)})).state == "paused"
    rig.path().write_bytes(b"no journal")
    with closing(ClusterLock(rig.path())) as lock:
        if is_active:
            lock.execute()
        looked = diagnose_cluster(rig.client, tmp_path, clock=rig.transport)
    assert (
        "1 partition is being reassigned; by whom is not known. It may be of run run-1, whose journal cannot be read: "
        "leave it until that is read, or set aside, then look again"
    ) in looked.notes
    (journal,) = looked.issues
    assert (journal.kind, journal.subject, bool(journal.commands)) == ("journal", "run run-1", not is_active)
    assert ("end that process (Ctrl-C), then look again" in journal.remedy) is is_active


def test_the_doctor_knows_a_run_that_pauses_while_it_looks(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1]], size_bytes=100 * RATE)
    rig.stop_after(5)
    assert rig.run(rig.prepared({0: (0, 2)})).state == "paused"
    lock = ClusterLock(rig.path())
    lock.execute()
    looked = diagnose_cluster(rig.client, tmp_path, measure_for_s=5, clock=Meanwhile(rig, lock.close))
    assert "1 partition is being reassigned, by run run-1; `kreassign cancel run-1` cancels that" in looked.notes
    assert [(one.kind, one.subject) for one in looked.issues] == [("run", "run run-1")]


def test_the_doctor_calls_no_throttle_left_whose_run_ends_while_it_looks(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1]], size_bytes=100 * RATE)
    rig.stop_after(5)
    assert rig.run(rig.prepared({0: (0, 2)}, throttle=RATE)).state == "paused"
    looked = diagnose_cluster(rig.client, tmp_path, measure_for_s=5, clock=Meanwhile(rig, rig.resume))
    assert (looked.issues, rig.throttles) == ((), {})


def test_a_damaged_journal_of_a_done_run_leaves_a_throttle_unexplained(tmp_path: Path) -> None:
    """The run may have set it in place of another value, which only its journal has."""
    rig = TwinRig(tmp_path, [[0, 1]])
    assert rig.run(rig.prepared({0: (0, 2)}, throttle=RATE)).state == "done"
    with closing(sqlite3.connect(rig.path())) as journal, journal:
        journal.execute("UPDATE events SET digest = '' WHERE sequence = 2")
    assert "journal" not in [one.kind for one in diagnose_cluster(rig.client, tmp_path, clock=rig.transport).issues]
    rate = ConfigChange.set(FOLLOWER_THROTTLED_RATE, "5")
    rig.client.incremental_alter_configs({ConfigResource.broker(3): [rate]}).raise_if_any()
    issues = {one.kind: one for one in diagnose_cluster(rig.client, tmp_path, clock=rig.transport).issues}
    assert issues["throttle"].remedy.startswith("It may be of run run-1, whose journal cannot be read: leave it until")
    assert issues["journal"].commands == (("kreassign", "forget", str(rig.path())),)
    with pytest.raises(JournalDamaged, match="run-1"):
        find_left_throttles(rig.client, tmp_path)


def test_the_doctor_reads_the_maintenance_of_each_state_directory(tmp_path: Path) -> None:
    """A cluster without a topic for it keeps no record: only the directory of the command has it."""
    rig = TwinRig(tmp_path, [[0, 1]])
    elsewhere = tmp_path / "elsewhere"
    context = RunContext(elsewhere, lease=LeasePolicy.OFF, warn=tell_nobody)
    store = MaintenanceStore(rig.client, context, rig.twin.cluster_id, "ann", rig.transport)
    store.write(MaintenanceRecord().entered((3,), 5, "ann", ()))
    for first, beside in ((tmp_path / "here", (elsewhere,)), (elsewhere, (tmp_path / "here",))):
        (issue,) = diagnose_cluster(rig.client, first, clock=rig.transport, beside=beside).issues
        assert (issue.kind, issue.subject) == ("maintenance", "broker 3")


def test_the_doctor_calls_no_move_stuck_whose_broker_does_not_answer(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1]], size_bytes=10_000 * RATE)
    rig.client.alter_partition_reassignments({tp(0): (0, 2)}).raise_if_any()
    odd = OddPort(rig.client)

    def silent(real: Real, *args: Any, **named: Any) -> Any:
        outcome = real(*args, **named)
        answered = {broker: dirs for broker, dirs in outcome.ok.items() if broker != 2}
        return Batch(answered, {**outcome.failed, 2: Unreachable("no answer")})

    odd.answer_always("describe_log_dirs", silent)
    looked = diagnose_cluster(cast(AdminClient, odd), tmp_path, measure_for_s=5, clock=rig.transport)
    assert rig.client.list_partition_reassignments()
    assert "stuck" not in [issue.kind for issue in looked.issues]


def test_the_doctor_names_a_broker_that_does_not_tell_its_free_space(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1], [1, 0]])
    odd = OddPort(rig.client)

    def unsized(real: Real, *args: Any, **named: Any) -> Batch[int, tuple[LogDir, ...]]:
        found: Batch[int, tuple[LogDir, ...]] = real(*args, **named)
        untold = {2: tuple(replace(one, usable_bytes=None) for one in found.ok[2])} if 2 in found.ok else {}
        return Batch({**found.ok, **untold}, found.failed)

    odd.answer_always("describe_log_dirs", unsized)
    (issue,) = diagnose_cluster(cast(AdminClient, odd), tmp_path, clock=rig.transport).issues
    assert issue.seen.startswith("free space of broker 2: not told for each of its log directories")
    assert overview(cast(AdminClient, odd)).is_troubled


def test_the_doctor_names_the_run_whose_rate_came_back_with_its_broker(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1], [1, 0]])
    rig.after(4, lambda: rig.twin.crash(2))
    rig.run(rig.prepared({0: (2, 1), 1: (3, 0)}, throttle=RATE // 8))
    forget_brokers(rig.path(), (2,), rig.transport)
    rig.twin.start(2)
    rig.transport.sleep(60)
    issues = diagnose_cluster(rig.client, tmp_path, clock=rig.transport).issues
    (left,) = (one for one in issues if one.kind == "throttle")
    assert left.remedy.startswith("Run run-1 set it, and could not restore it. Unless it is meant to be there, remove")
    assert left.commands == (("kreassign", "throttle", "--remove-left"),)


@pytest.mark.parametrize("behind", range(3))
def test_the_doctor_calls_no_broker_down_that_one_behind_does_not_know(tmp_path: Path, behind: int) -> None:
    rig = TwinRig(tmp_path, [[0, 1], [1, 2]])
    rig.restart_unseen(4, behind)
    assert diagnose_cluster(rig.client, tmp_path, clock=rig.transport).issues == ()


def test_the_doctor_says_when_a_single_broker_answers(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1], [1, 0]], brokers=2)
    odd = OddPort(rig.client)

    def silent_one(real: Real, *args: Any, broker: int | None = None, **named: Any) -> Any:
        if broker == 1:
            raise Unreachable("broker 1 did not answer")
        return real(*args, broker=broker, **named)

    for call in ("describe_topics", "describe_cluster"):
        odd.answer_always(call, silent_one)
    looked = diagnose_cluster(cast(AdminClient, odd), tmp_path, clock=rig.transport)
    assert any("what a second broker shows of brokers and topics" in one.seen for one in looked.issues)
