"""Every kind of finding of the doctor comes with a command that can be pasted, or is excused with its reason."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import click
import pytest

from kreassign.cli.commands.plan import DEFAULT_TASK
from kreassign.cli.main import kreassign
from kreassign.cli.next_command import pasted
from kreassign.cli.options.cluster import ClusterOptions
from kreassign.errors import Unreachable
from kreassign.executor.history.diagnosis import ClusterReadings, diagnose
from kreassign.executor.history.findings import Filling, Issue, Moving, NotRead
from kreassign.executor.history.run_history import UnreadableJournal
from kreassign.executor.lease import LeaseHolder
from kreassign.executor.maintenance.record import Entered, MaintenanceRecord
from kreassign.executor.throttle_ledger import ConfigKey, ConfigValue
from kreassign.kafka_tools import reassign_partitions
from kreassign.model import (
    NO_LEADER,
    AllowedOperations,
    Broker,
    ConfigResource,
    LogDir,
    OngoingReassignment,
    Partition,
    TopicPartition,
)
from kreassign.operations.connect import connect
from tests.approved import approve
from tests.checks import pages
from tests.checks.pages import Programs
from tests.checks.source import Source, read
from tests.kafka_tools.served_twin import served
from tests.twin.asking import twin

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
AT_REST = Partition(T0, (0, 1), (0, 1), 0)
LONE = Partition(TopicPartition("t", 2), (2,), (2,), 2)
MOVE = OngoingReassignment((0, 1, 2), (2,), (1,))
LEASE = LeaseHolder("run-9", "alice", "ops-1", 1)
HERE = ClusterReadings((0, 1, 2), (AT_REST,))
RACKS = (Broker(0, "h", 1, "a"), Broker(1, "h", 1, "a"), Broker(2, "h", 1, "b"))
RATE = ConfigValue(ConfigKey(ConfigResource.broker(1), "leader.replication.throttled.rate"), "5")

FOUND = {
    "endless": replace(HERE, ongoing={T0: OngoingReassignment((0, 1, 2), (2,), (2,))}),
    "destination": replace(HERE, live=(0, 1), ongoing={T0: MOVE}),
    "stuck": replace(HERE, ongoing={T0: MOVE}, moving=(Moving(T0, MOVE, "", 5, 5),), measured_s=5.0),
    "offline": replace(HERE, partitions=(Partition(T0, (0, 1), (), NO_LEADER),)),
    "under-replicated": replace(HERE, partitions=(Partition(T0, (0, 1), (0,), 0),)),
    "leader": replace(HERE, partitions=(Partition(T0, (0, 1), (0, 1), 1),)),
    "broker": replace(HERE, live=(0,)),
    "min-isr": replace(HERE, min_isr={"t": 3}),
    "factor": replace(HERE, partitions=(AT_REST, replace(AT_REST, topic_partition=T1), LONE)),
    "racks": replace(HERE, brokers=RACKS),
    "disk": replace(HERE, disks=(Filling(1, "/a", 100, 3, None),)),
    "log-dir": replace(HERE, log_dirs={1: (LogDir("/a", "KAFKA_STORAGE_ERROR", None, None, False, ()),)}),
    "cordoned": replace(HERE, log_dirs={1: (LogDir("/a", None, 9, 9, True, ()),)}),
    "maintenance": replace(HERE, maintenance=MaintenanceRecord(1, {1: Entered(0, "ann", is_cordoned=False)})),
    "run": replace(HERE, interrupted_runs=("run-1",)),
    "journal": replace(HERE, unreadable_journals=(UnreadableJournal(Path("/s/run-1.sqlite"), "damaged", "forget it"),)),
    "throttle": replace(HERE, throttles=(RATE,)),
    "permission": replace(HERE, allowed=AllowedOperations(frozenset(), {})),
    "unread": replace(HERE, unread=tuple(NotRead("settings of broker", Unreachable("silent"), one) for one in (1, 2))),
}  # fmt: skip
"""What a cluster has to show for each kind of finding."""

OWNED_ELSEWHERE = ("endless", "destination", "stuck")
"""Kinds without a command where a run of another machine holds the lease: only there they can be cancelled."""


def issues(readings: ClusterReadings, kind: str) -> list[Issue]:
    return [issue for issue in diagnose(readings) if issue.kind == kind]


def lines(readings: ClusterReadings, kind: str) -> list[str]:
    """The commands of the findings of this kind, for a cluster."""
    cluster = ClusterOptions("broker-1:9092")
    with click.Context(kreassign, info_name="kreassign"):
        return [pasted(words, cluster) for issue in issues(readings, kind) for words in issue.commands]


def test_every_kind_of_finding_is_tried() -> None:
    sources = read("src/kreassign/executor/history/*.py")
    texts = "\n".join(source.text for source in sources)
    kinds = re.findall(r'(?:Issue|of_many|issue_of_move)\(\s*"([a-z-]+)"', texts)
    assert set(kinds) == set(FOUND)


def test_every_kind_of_finding_is_approved_with_its_commands() -> None:
    shown = []
    for kind, readings in FOUND.items():
        shown += [f"{kind}:", *(f"  {issue}" for issue in issues(readings, kind))]
        shown += [f"    {command}" for command in lines(readings, kind)]
    approve(shown, "findings-of-the-doctor")


@pytest.mark.parametrize("kind", FOUND)
def test_every_kind_of_finding_has_commands_that_can_be_typed(kind: str) -> None:
    found = lines(FOUND[kind], kind)
    programs = Programs(kreassign, {}, {"kreassign plan": DEFAULT_TASK})
    assert found
    assert not list(pages.wrong_command_lines(Source("it.md", "```\n" + "\n".join(found) + "\n```\n"), programs))
    assert all(line.startswith(("kreassign ", "kafka-")) for line in found)
    assert all("--bootstrap-server" in line for line in found if not line.startswith("kreassign forget"))


@pytest.mark.parametrize("kind", OWNED_ELSEWHERE)
def test_the_command_that_cancels_a_reassignment_does(kind: str, tmp_path: Path) -> None:
    asked, plan = twin({"t": [[0, 1]]}), tmp_path / "cancel.json"
    asked.crash(2)
    (line,) = lines(FOUND[kind], kind)
    options, (document,) = line.partition("<(")[0].split()[1:], re.findall(r"<\(echo '(.*)'\)", line)
    plan.write_text(document)
    with served(asked) as address, connect(address) as client:
        client.alter_partition_reassignments({T0: (0, 2)}).raise_if_any()
        assert reassign_partitions.main([*options, str(plan), "--bootstrap-server", address]) == 0
        assert client.list_partition_reassignments() == {}


@pytest.mark.parametrize("kind", FOUND)
def test_only_what_a_run_elsewhere_may_own_has_no_command(kind: str) -> None:
    found = lines(replace(FOUND[kind], lease=LEASE), kind)
    # Nor has a run anything left behind while it holds the lease.
    assert bool(found) is (kind not in (*OWNED_ELSEWHERE, "record"))
    assert not any(line.startswith("kafka-reassign-partitions") or "throttled" in line for line in found)
