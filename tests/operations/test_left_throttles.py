"""Throttles that were left on a twin: which of them are removed, and what keeps the others."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import cast

import pytest

from kreassign.admin import AdminClient, client_settings
from kreassign.errors import InputError, JournalUnreadable, OutcomeUnknown
from kreassign.executor.journal import Journal, find_journals
from kreassign.executor.journal.folder import cluster_folder
from kreassign.executor.lease import OFFSETS_TOPIC, ClusterLease, LeaseHolder, LeasePolicy
from kreassign.executor.throttle_ledger import ConfigValue
from kreassign.model import ConfigChange, ConfigResource, NewTopic
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.run import Operator
from kreassign.model.throttle import (
    FOLLOWER_THROTTLED_RATE,
    FOLLOWER_THROTTLED_REPLICAS,
    LEADER_THROTTLED_RATE,
    ThrottleRates,
)
from kreassign.operations.left_throttles import RemovedThrottles, find_left_throttles, remove_left_throttles
from kreassign.operations.plan_files import PlanFile
from kreassign.operations.run import RunContext, RunRequest, prepare_run, start_run
from kreassign.wire import api
from tests.executor.deaths import Died
from tests.executor.odd_port import OddPort, Real
from tests.executor.test_foreign_throttle_on_twin import change
from tests.executor.twin_runs import RATE, TwinRig, tp
from tests.wire.mangled import MangledTransport

ALICE = Operator("alice", "host-1")
RATE_OF_4 = (ConfigResource.broker(4), LEADER_THROTTLED_RATE, "7000000")
LIST_OF_U = (ConfigResource.topic("u"), FOLLOWER_THROTTLED_REPLICAS, "")


@pytest.fixture
def rig(tmp_path: Path) -> TwinRig:
    return TwinRig(tmp_path, [[0, 1]], others={"u": [[0, 1]]})


def lease_elsewhere(rig: TwinRig) -> ClusterLease:
    holder = LeaseHolder("run-9", "alice", "host-2", 1)
    return ClusterLease(rig.client, rig.transport, holder, LeasePolicy.REQUIRE, was_held=False)


def removed(client: AdminClient, rig: TwinRig, left: Collection[ConfigValue]) -> RemovedThrottles:
    return remove_left_throttles(client, RunContext(rig.state_dir, operator=ALICE), left, rig.transport)


def killed_run(rig: TwinRig) -> str:
    """A run whose process dies while its throttle is set; its id."""
    due_ms = rig.transport.now_ms() + 5000

    def kill(*_: object) -> None:
        if rig.transport.now_ms() >= due_ms:
            raise Died

    context = RunContext(rig.state_dir, operator=ALICE, observers=(kill,))
    plan = PlanFile(Plan((PartitionAssignment(tp(0), (2, 1)),)))
    started = prepare_run(rig.client, RunRequest(plan, ThrottleRates(RATE), measure_for_s=0), context, rig.transport)
    with pytest.raises(Died):
        start_run(rig.client, started, context, clock=rig.transport)
    return started.run_id


def test_left_throttles_are_removed_and_those_of_a_run_stay(rig: TwinRig) -> None:
    run_id = killed_run(rig)
    of_run = rig.throttles
    rig.transport.sleep(60)  # its move ends
    for setting in (RATE_OF_4, LIST_OF_U):
        change(rig, *setting)
    found = find_left_throttles(rig.client, rig.state_dir)
    assert {(one.key.resource, one.key.name, one.value) for one in found.left} == {RATE_OF_4, LIST_OF_U}
    assert len(found.needed) == len(of_run)
    assert all(f"`kreassign resume {run_id}`" in one and "rollback" in one for one in found.needed)
    change(rig, *RATE_OF_4[:2], "8000000")
    done = removed(rig.client, rig, found.left)
    assert [one.key.resource for one in done.removed] == [LIST_OF_U[0]]
    assert [reason for _, reason in done.kept] == ["it was changed, or is needed by now"]
    assert rig.throttles == of_run | {f"{RATE_OF_4[0]} {LEADER_THROTTLED_RATE}": "8000000"}
    assert done.record is not None
    record = json.loads(done.record.read_bytes())
    at = datetime.fromtimestamp(rig.transport.now_ms() / 1000, UTC).isoformat(timespec="milliseconds")
    assert (record["at"], record["by"]) == (at, "alice@host-1")
    (kept,) = record["removed"]
    assert (kept["resource"], kept["name"], kept["value"]) == ("topic u", FOLLOWER_THROTTLED_REPLICAS, "")
    assert kept["to_set_again"].startswith("kafka-configs --alter --entity-type topics --entity-name u --add-config")


def test_what_a_run_of_another_state_directory_needs_stays(rig: TwinRig, tmp_path: Path) -> None:
    run_id, elsewhere = killed_run(rig), tmp_path / "elsewhere"
    rig.transport.sleep(60)  # its move ends
    of_run = rig.throttles
    change(rig, *RATE_OF_4)
    found = find_left_throttles(rig.client, elsewhere, beside=(rig.state_dir,))
    assert [one.key.resource for one in found.left] == [RATE_OF_4[0]]
    assert len(found.needed) == len(of_run)
    assert all(f"`kreassign resume {run_id}`" in one for one in found.needed)
    alone = find_left_throttles(rig.client, elsewhere).left
    context = RunContext(elsewhere, operator=ALICE, beside=(rig.state_dir,))
    done = remove_left_throttles(rig.client, context, alone, rig.transport)
    assert [one.key.resource for one in done.removed] == [RATE_OF_4[0]]
    assert (rig.throttles, len(done.kept)) == (of_run, len(of_run))


def test_a_run_that_is_executed_in_another_state_directory_is_waited_for(rig: TwinRig, tmp_path: Path) -> None:
    with (
        Journal.create(rig.state_dir, rig.prepared({0: (2, 1)})),
        pytest.raises(InputError, match="is being executed, and may need every throttle"),
    ):
        find_left_throttles(rig.client, tmp_path / "elsewhere", beside=(rig.state_dir,))


def test_of_a_list_only_the_entries_go_that_were_seen(rig: TwinRig) -> None:
    """Another tool adds its own between the last look and the removal."""
    name = FOLLOWER_THROTTLED_REPLICAS
    for topic, entries in (("t", "0:1,0:2"), ("u", "0:1")):
        change(rig, ConfigResource.topic(topic), name, entries)
    left = find_left_throttles(rig.client, rig.state_dir).left
    odd = OddPort(rig.client)

    def added_first(real: Real, *args: object, **named: object) -> object:
        theirs = [ConfigChange.append(name, "0:3")]
        rig.client.incremental_alter_configs({ConfigResource.topic("t"): theirs}).raise_if_any()
        return real(*args, **named)

    odd.answer("incremental_alter_configs", added_first)
    done = removed(cast(AdminClient, odd), rig, left)
    assert {str(one.key.resource) for one in done.removed} == {"topic t", "topic u"}
    assert rig.throttles == {f"topic t {name}": "0:3"}


def test_nothing_is_removed_if_a_run_elsewhere_began_after_the_look(rig: TwinRig) -> None:
    change(rig, *RATE_OF_4)
    rig.client.create_topics([NewTopic(OFFSETS_TOPIC, assignments=((0, 1, 2),))]).raise_if_any()
    left = find_left_throttles(rig.client, rig.state_dir).left
    lease_elsewhere(rig).take()
    with pytest.raises(InputError, match="run-9"):
        removed(rig.client, rig, left)
    assert len(rig.throttles) == 1


class Losing(MangledTransport):
    """Connections on which answers to changed settings get lost."""

    def answer(self, request: bytes, payload: bytes) -> bytes:
        if int.from_bytes(request[:2], "big") == api.INCREMENTAL_ALTER_CONFIGS.key:
            raise OutcomeUnknown("the answer was lost")
        return payload


def test_what_may_have_been_removed_is_told_and_its_value_kept(rig: TwinRig) -> None:
    change(rig, *LIST_OF_U)
    settings = client_settings(bootstrap_servers="broker-0:9092")
    transport = Losing(rig.transport, Random(0), 0.0)
    with AdminClient.connect(settings, clock=rig.transport, transport=transport) as client:
        left = find_left_throttles(client, rig.state_dir).left
        done = removed(client, rig, left)
    assert (done.removed, done.kept, [one for one, _ in done.unknown]) == ((), (), [*left])
    assert rig.throttles == {}
    assert done.record is not None
    assert "--entity-name u" in done.record.read_text()


@pytest.mark.parametrize("behind", range(3))
def test_a_list_changed_since_stays_beside_a_broker_behind(rig: TwinRig, behind: int) -> None:
    change(rig, *LIST_OF_U)
    rig.twin.views.hold_back(behind)
    left = find_left_throttles(rig.client, rig.state_dir).left
    change(rig, *LIST_OF_U[:2], "*")
    done = removed(rig.client, rig, left)
    assert ([*done.removed], len(done.kept)) == ([], 1)
    assert rig.throttles == {f"{LIST_OF_U[0]} {LIST_OF_U[1]}": "*"}


def test_nothing_is_removed_while_its_values_cannot_be_kept(rig: TwinRig) -> None:
    change(rig, *LIST_OF_U)
    left = find_left_throttles(rig.client, rig.state_dir).left
    rig.state_dir.mkdir(parents=True, exist_ok=True)
    cluster_folder(rig.state_dir, rig.twin.cluster_id).touch()
    with pytest.raises(InputError, match=r"could not be written: not a directory\. Nothing was removed; choose"):
        removed(rig.client, rig, left)
    assert rig.throttles == {f"{LIST_OF_U[0]} {LIST_OF_U[1]}": ""}


def test_a_throttle_that_a_move_needs_stays(rig: TwinRig) -> None:
    of_t = (ConfigResource.topic("t"), FOLLOWER_THROTTLED_REPLICAS, "0:2")
    receiver = (ConfigResource.broker(2), FOLLOWER_THROTTLED_RATE, "1000")
    for setting in (of_t, receiver, LIST_OF_U):
        change(rig, *setting)
    rig.client.alter_partition_reassignments({tp(0): (2, 1)}).raise_if_any()
    found = find_left_throttles(rig.client, rig.state_dir)
    assert [one.key.resource for one in found.left] == [LIST_OF_U[0]]
    assert [one.rpartition(": ")[2] for one in found.needed] == [
        "the topic is being reassigned",
        "partitions are being reassigned",
    ]


def test_nothing_is_removed_while_an_unknown_run_may_need_it(rig: TwinRig) -> None:
    killed_run(rig)
    (journal,) = find_journals(rig.state_dir)
    journal.write_bytes(b"SQLite format 3\x00" + b"\xff" * 4096)
    with pytest.raises(JournalUnreadable):
        find_left_throttles(rig.client, rig.state_dir)


def test_nothing_is_removed_while_a_run_elsewhere_holds_the_lease(rig: TwinRig) -> None:
    change(rig, *RATE_OF_4)
    rig.client.create_topics([NewTopic(OFFSETS_TOPIC, assignments=((0, 1, 2),))]).raise_if_any()
    lease_elsewhere(rig).take()
    with pytest.raises(InputError, match=re.escape("holds the lease of the cluster")):
        find_left_throttles(rig.client, rig.state_dir)


@pytest.mark.parametrize("behind", range(3))
def test_what_a_broker_behind_does_not_list_is_found(rig: TwinRig, behind: int) -> None:
    rig.restart_unseen(4, behind)
    rig.client.create_topics([NewTopic("new", assignments=((0, 1),))]).raise_if_any()
    rig.transport.sleep(60)
    of_new = (ConfigResource.topic("new"), FOLLOWER_THROTTLED_REPLICAS, "")
    for setting in (RATE_OF_4, of_new):
        change(rig, *setting)
    found = find_left_throttles(rig.client, rig.state_dir)
    assert {(one.key.resource, one.key.name, one.value) for one in found.left} == {RATE_OF_4, of_new}
    assert found.unread == ()
