"""From what a cluster shows to the issues that it has."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kreassign.errors import ClusterError, JournalLocked, OutcomeUnknown, Rejected, Unreachable
from kreassign.executor.history.diagnosis import ClusterReadings, diagnose, notes
from kreassign.executor.history.findings import LEASE, Moving, NotRead
from kreassign.executor.history.run_history import ExplainedSetting, UnreadableJournal
from kreassign.executor.journal import damaged
from kreassign.executor.lease import LeaseHolder
from kreassign.executor.maintenance.record import Entered, MaintenanceRecord
from kreassign.executor.throttle_ledger import ConfigKey, ConfigValue
from kreassign.model import (
    NO_LEADER,
    AllowedOperations,
    ConfigResource,
    LogDir,
    OngoingReassignment,
    Partition,
    TopicPartition,
)

HOLDER = LeaseHolder("run-1", "alice", "ops-1", 1)
T0 = TopicPartition("t", 0)
LIVE = (0, 1, 2)
MOVE = OngoingReassignment((0, 1, 2), (2,), (1,))
ENDLESS = OngoingReassignment((0, 1, 2), (2,), (2,))
LIST = ConfigValue(ConfigKey(ConfigResource.topic("t"), "leader.replication.throttled.replicas"), "0:1")
RATE = ConfigValue(ConfigKey(ConfigResource.broker(1), "leader.replication.throttled.rate"), "5")


def one(isr: tuple[int, ...] = (0, 1), leader: int = 0) -> Partition:
    return Partition(T0, (0, 1), isr, leader)


def kinds(readings: ClusterReadings) -> list[str]:
    return [issue.kind for issue in diagnose(readings)]


def test_a_healthy_cluster_has_no_issues() -> None:
    assert kinds(ClusterReadings(LIVE, (one(),))) == []


def test_a_stuck_reassignment_is_explained_with_a_remedy() -> None:
    (issue,) = diagnose(ClusterReadings(LIVE, (one(),), {T0: ENDLESS}))
    assert (issue.kind, issue.subject) == ("endless", "t-0")
    assert "broker 2 is both added and removed" in issue.seen
    assert "Cancel it" in issue.remedy
    assert "then start it again with [0, 1]" in issue.remedy
    ((cancel,),) = issue.commands
    assert cancel.startswith("kafka-reassign-partitions --cancel --preserve-throttles --reassignment-json-file <(echo ")
    assert """'{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[]}]}')""" in cancel


@pytest.mark.parametrize(
    ("live", "move", "kind"), [(LIVE, ENDLESS, "endless"), ((0, 1), MOVE, "destination"), (LIVE, MOVE, "stuck")]
)
def test_what_a_run_of_this_machine_owns_is_cancelled_by_that_run_only(
    live: tuple[int, ...], move: OngoingReassignment, kind: str
) -> None:
    moving = (Moving(T0, move, "run-1", 5, 5),)
    owned = ClusterReadings(live, (one(),), {T0: move}, moving=moving, run_ids=("run-1",), lease=HOLDER)
    (issue,) = diagnose(owned)
    assert (issue.kind, issue.commands) == (kind, (("kreassign", "cancel", "run-1"),))


@pytest.mark.parametrize(
    ("live", "move", "kind"), [(LIVE, ENDLESS, "endless"), ((0, 1), MOVE, "destination"), (LIVE, MOVE, "stuck")]
)
def test_another_machines_move_is_never_advised_to_be_cancelled(
    live: tuple[int, ...], move: OngoingReassignment, kind: str
) -> None:
    found = ClusterReadings(live, (one(),), {T0: move}, moving=(Moving(T0, move, "", 5, 5),), lease=HOLDER)
    (issue,) = diagnose(found)
    assert (issue.kind, issue.commands) == (kind, ())
    way = (
        f"It may be of {HOLDER}: if so, cancel it there with `kreassign cancel run-1`; if not, leave it until that is "
        "at its end, then look again"
    )
    assert way in issue.remedy
    assert notes(found)[-1] == f"1 partition is being reassigned; by whom is not known. {way}"
    # A run of this machine that holds the lease names its moves in its journal: these are not among them.
    (strangers,) = diagnose(replace(found, run_ids=("run-1",)))
    assert strangers.commands[0][0].startswith("kafka-reassign-partitions --cancel")


def test_another_machines_throttle_is_never_advised_to_be_deleted() -> None:
    (issue,) = diagnose(ClusterReadings(LIVE, (one(),), throttles=(RATE,), lease=HOLDER))
    assert issue.commands == (("kreassign", "doctor"),)
    assert f"It may be of {HOLDER}: leave it until that is at its end" in issue.remedy


def test_a_rate_that_a_run_set_in_place_of_another_is_left_to_the_next_run() -> None:
    """`kreassign throttle --remove-left` leaves it, too."""
    (issue,) = diagnose(
        ClusterReadings(LIVE, (one(),), throttles=(RATE,), explained=(ExplainedSetting(RATE, "7", "run-9"),))
    )
    assert issue.commands == ()
    assert "Run run-9 set it in place of '7', which the next run here restores" in issue.remedy


UNREAD_JOURNAL = UnreadableJournal.of(Path("run-9.sqlite"), damaged(Path("run-9.sqlite"), "is no database"))
UNSURE = pytest.mark.parametrize(("gap", "remedy"), [
    pytest.param(
        {"unreadable_journals": (UNREAD_JOURNAL,)},
        "It may be of run run-9, whose journal cannot be read: leave it until that is read, or set aside, then look",
        id="journal",
    ),
    pytest.param(
        {"unread": (NotRead(LEASE, Unreachable("no answer")),)},
        "It may be of a run of another machine, since the lease could not be read: leave it until that is known, then",
        id="lease",
    ),
])  # fmt: skip


@UNSURE
@pytest.mark.parametrize(("live", "move", "kind"), [(LIVE, ENDLESS, "endless"), ((0, 1), MOVE, "destination")])
def test_a_move_that_may_be_of_an_unread_run_is_cancelled_by_no_advice(
    gap: dict[str, Any], remedy: str, live: tuple[int, ...], move: OngoingReassignment, kind: str
) -> None:
    issue = diagnose(ClusterReadings(live, (one(),), {T0: move}, **gap))[0]
    assert (issue.kind, issue.commands) == (kind, ())
    assert remedy in issue.remedy


@UNSURE
def test_a_move_that_gets_on_is_told_with_the_same_doubt(gap: dict[str, Any], remedy: str) -> None:
    (note,) = notes(ClusterReadings(LIVE, (one(),), {T0: MOVE}, moving=(Moving(T0, MOVE),), **gap))
    assert note.startswith(f"1 partition is being reassigned; by whom is not known. {remedy}")


@UNSURE
def test_a_throttle_that_may_be_of_an_unread_run_is_deleted_by_no_advice(gap: dict[str, Any], remedy: str) -> None:
    found = diagnose(ClusterReadings(LIVE, (one(),), throttles=(RATE,), **gap))
    (issue,) = (each for each in found if each.kind == "throttle")
    assert issue.commands == (("kreassign", "doctor"),)
    assert remedy in issue.remedy


def test_a_reassignment_is_an_issue_only_if_its_destination_is_gone() -> None:
    assert kinds(ClusterReadings(LIVE, (one(),), {T0: MOVE})) == []
    assert kinds(ClusterReadings((0, 1), (one(),), {T0: MOVE})) == ["destination"]


@pytest.mark.parametrize(
    ("partition", "found"),
    [
        (one(leader=NO_LEADER, isr=()), ["offline"]),
        (one(isr=(0,)), ["under-replicated"]),
        (one(leader=1), ["leader"]),
        (one(leader=1, isr=(1,)), ["under-replicated"]),
    ],
)
def test_partitions_in_trouble_are_found(partition: Partition, found: list[str]) -> None:
    assert kinds(ClusterReadings(LIVE, (partition,))) == found


def test_a_throttle_is_an_issue_only_while_nothing_needs_it() -> None:
    assert kinds(ClusterReadings(LIVE, (one(),), throttles=(LIST, RATE))) == ["throttle", "throttle"]
    assert kinds(ClusterReadings(LIVE, (one(),), {T0: MOVE}, throttles=(LIST, RATE))) == []
    elsewhere = {TopicPartition("u", 0): MOVE}
    assert kinds(ClusterReadings(LIVE, (one(),), elsewhere, throttles=(LIST, RATE))) == ["throttle"]


def test_directories_that_are_offline_or_cordoned_are_found() -> None:
    broken = LogDir("/a", "KAFKA_STORAGE_ERROR", None, None, False, ())
    cordoned, open_one = LogDir("/b", None, 9, 9, True, ()), LogDir("/c", None, 9, 9, False, ())
    assert kinds(ClusterReadings(LIVE, (one(),), log_dirs={1: (broken, open_one)})) == ["log-dir"]
    assert kinds(ClusterReadings(LIVE, (one(),), log_dirs={1: (cordoned,)})) == ["cordoned"]
    assert kinds(ClusterReadings(LIVE, (one(),), log_dirs={1: (cordoned, open_one)})) == []


def test_a_broker_in_maintenance_is_no_forgotten_cordon() -> None:
    cordoned = LogDir("/b", None, 9, 9, True, ())
    record = MaintenanceRecord(1, {1: Entered(0, "ann@host", is_cordoned=True)})
    (issue,) = diagnose(ClusterReadings(LIVE, (one(),), log_dirs={1: (cordoned,)}, maintenance=record))
    assert str(issue).startswith("broker 1: in maintenance since 1970-01-01 00:00 UTC, by ann@host.")
    assert issue.commands == (("kreassign", "maintenance", "exit", "1"),)


def test_runs_that_were_left_and_what_could_not_be_read_are_told() -> None:
    found = diagnose(
        ClusterReadings(LIVE, (one(),), interrupted_runs=("run-1",), unread=(NotRead("topic", "odd", "u"),))
    )
    assert [issue.kind for issue in found] == ["run", "unread"]
    assert found[0].commands == (("kreassign", "resume", "run-1"), ("kreassign", "cancel", "run-1"))


def denied(resource: ConfigResource) -> Rejected:
    code = 29 if resource == ConfigResource.topic(resource.name) else 31
    return Rejected("", api="DescribeConfigs", code=code, name="DENIED", item=resource)


def unread(errors: dict[int, ClusterError]) -> tuple[NotRead, ...]:
    return tuple(NotRead("settings of broker", error, broker) for broker, error in errors.items())


def test_what_could_not_be_read_is_told_once_for_each_reason() -> None:
    silent = unread({broker: OutcomeUnknown("no answer", item=f"broker {broker}") for broker in LIVE})
    odd = NotRead("log directories of broker", OutcomeUnknown("no answer", item="broker 2"), 2)
    (issue,) = diagnose(ClusterReadings(LIVE, (one(),), unread=(*silent, odd)))
    said = "settings of brokers 0, 1, 2 and log directories of broker 2 could not be read: no answer"
    assert (issue.kind, issue.seen) == ("unread", said)
    refused = unread({broker: denied(ConfigResource.broker(broker)) for broker in LIVE})
    topics = tuple(NotRead("settings of topic", denied(ConfigResource.topic(name)), name) for name in "tu")
    on_cluster, on_topics = diagnose(ClusterReadings(LIVE, (one(),), unread=(*refused, *topics)))
    assert on_cluster.seen.startswith("settings of brokers 0, 1, 2 could not be read: permission is missing: Desc")
    assert on_topics.seen.startswith(
        "settings of topics t, u could not be read: permission is missing: DescribeConfigs"
    )


def test_a_refused_reading_is_not_told_beside_the_missing_permission() -> None:
    refused = unread({broker: denied(ConfigResource.broker(broker)) for broker in LIVE})
    topic = NotRead("settings of topic", denied(ConfigResource.topic("t")), "t")
    everything = frozenset({"Describe", "DescribeConfigs", "Alter", "AlterConfigs", "Read"})
    lacking = AllowedOperations(everything - {"DescribeConfigs"}, {"t": everything})
    readings = ClusterReadings(LIVE, (one(),), unread=(*refused, topic))
    # Nothing else tells that the topic was not read.
    assert kinds(replace(readings, allowed=lacking)) == [*["permission"] * 4, "unread"]
    assert kinds(replace(readings, allowed=AllowedOperations(everything, {"t": everything}))) == ["unread"] * 2


def test_a_run_that_was_left_is_gone_on_with_before_anything_is_planned() -> None:
    left = ClusterReadings(LIVE, (one(leader=1),), min_isr={"t": 3}, interrupted_runs=("run-1",), run_ids=("run-1",))
    assert kinds(left) == ["run", "min-isr", "leader"]
    assert kinds(replace(left, of_runs=frozenset({T0}))) == ["run", "min-isr"]


HELD = {0: 20_000_000_000, 1: 0, 2: 1_000_000_000}


@pytest.mark.parametrize("more", [
    {"ongoing": {T0: MOVE}},
    {"run_ids": ("run-1",)},
    {"lease": HOLDER},
    {"maintenance": MaintenanceRecord(1, dict.fromkeys((0, 1), Entered(0, "ann@host", is_cordoned=True)))},
])  # fmt: skip
def test_nobody_is_told_to_even_out_what_a_run_moves_or_people_emptied(more: dict[str, Any]) -> None:
    dirs = dict.fromkeys(LIVE, (LogDir("/a", None, 9, 9, False, ()),))
    uneven = ClusterReadings(LIVE, (one(),), log_dirs=dirs, held_bytes=HELD)
    assert "broker 0 holds 20 GB" in notes(uneven)[0]
    assert [one for one in notes(replace(uneven, **more)) if "uneven" in one] == []


def test_a_journal_that_cannot_be_read_is_named_with_what_to_do() -> None:
    path = Path("/state/c/run-1.sqlite")
    journal = UnreadableJournal.of(path, damaged(path, "is damaged at event 3"))
    (issue,) = diagnose(ClusterReadings(LIVE, (one(),), unreadable_journals=(journal,)))
    assert (issue.kind, issue.subject) == ("journal", "run run-1")
    assert "/state/c/run-1.sqlite is damaged at event 3" in issue.seen
    assert "kreassign forget /state/c/run-1.sqlite" in issue.remedy
    locked = UnreadableJournal.of(path, JournalLocked("process 7 has locked it", "Let it end"))
    (issue,) = diagnose(ClusterReadings(LIVE, (one(),), unreadable_journals=(locked,)))
    assert (issue.remedy, issue.commands) == ("Let it end", ())
