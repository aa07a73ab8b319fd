"""Findings of the doctor in brokers, racks, disks, moves, throttles and permissions: each from values."""

from __future__ import annotations

import re
from typing import Any

import pytest

from kreassign.executor.history.diagnosis import ClusterReadings, diagnose, notes
from kreassign.executor.history.findings import (
    NEEDS,
    Issue,
    Moving,
    PlacementReadings,
    disk_issues,
    fillings,
    permission_issues,
    placement_issues,
)
from kreassign.executor.lease import OFFSETS_TOPIC
from kreassign.executor.throttle_ledger import ConfigKey, ConfigValue
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
from tests.approved import approve
from tests.checks.source import read

GB = 1_000_000_000
HOSTS = tuple(Broker(number, f"h{number}", 9092, "ab"[number % 2]) for number in range(4))
MOVE = OngoingReassignment((0, 1, 2), (2,), (1,))
RATE = ConfigValue(ConfigKey(ConfigResource.broker(1), "leader.replication.throttled.rate"), "5")
EVERYTHING = frozenset({"Describe", "DescribeConfigs", "Alter", "AlterConfigs", "Read"})


def tp(number: int, topic: str = "t") -> TopicPartition:
    return TopicPartition(topic, number)


def part(number: int, *replicas: int, isr: tuple[int, ...] | None = None, topic: str = "t") -> Partition:
    alive = replicas if isr is None else isr
    return Partition(tp(number, topic), replicas, alive, alive[0] if alive else NO_LEADER)


def without(*fenced: int) -> tuple[Broker, ...]:
    return tuple(Broker(one.id, one.host, one.port, one.rack, one.id in fenced) for one in HOSTS)


def found(*partitions: Partition, brokers: tuple[Broker, ...] = HOSTS, **min_isr: int) -> list[Issue]:
    return [*placement_issues(PlacementReadings(brokers, partitions, min_isr=min_isr))]


# Brokers and racks


def test_a_broker_that_is_down_is_found_with_what_is_at_risk() -> None:
    partitions = (part(0, 0, 1), part(1, 2, 3, isr=(3,)), part(2, 2, 1, isr=()))
    (issue,) = found(*partitions, brokers=without(2))
    assert (issue.kind, issue.subject) == ("broker", "broker 2 (h2:9092, rack a)")
    assert "2 partitions have a replica there: 1 without leader, 1 with one replica in sync" in issue.seen
    assert issue.commands == (("kreassign", "plan", "drain-brokers", "2", "--out", "plan.json"),)


def test_an_unlisted_broker_is_known_by_its_replicas() -> None:
    (issue,) = found(part(0, 0, 7, isr=(0,)))
    assert (issue.subject, issue.seen.partition(";")[0]) == ("broker 7", "it is down")


def test_a_rack_of_which_every_broker_is_down_is_one_finding() -> None:
    (issue,) = found(part(0, 0, 1, isr=(0,)), brokers=without(1, 3))
    assert (issue.subject, "all its brokers (1,3) are down" in issue.seen) == ("rack b", True)
    assert issue.commands[0][3] == "1,3"


# Replicas


def test_partitions_that_producers_cannot_write_to_are_found() -> None:
    issue, _ = found(part(0, 0, 1, isr=(0,)), part(1, 1, 2), t=2)
    assert (issue.kind, issue.subject, issue.seen.partition(" ")[0]) == ("min-isr", "1 partition", "t-0")
    assert issue.commands == (("kreassign", "plan", "repair", "--out", "plan.json"),)


def test_a_topic_that_asks_for_more_replicas_in_sync_than_it_has_is_found() -> None:
    (issue,) = found(part(0, 0, 1), t=3)
    assert issue.seen == (
        "min.insync.replicas 3 is more than the replication factor 2: brokers ask for 2 replicas then, so acks=all is "
        "refused while one is out of sync; before Kafka 3.7 it is always refused"
    )
    assert issue.commands[0][2:6] == ("replication-factor", "3", "--topic", "t")


def test_a_topic_whose_producers_need_every_replica_is_found() -> None:
    assert found(part(0, 0, 1), part(1, 1, 2, 3), t=1) == []
    (issue,) = found(part(0, 0, 1), part(1, 1, 2), t=2)
    assert "acks=all is refused while any one is out of sync" in issue.seen
    assert issue.commands[0][2:6] == ("replication-factor", "3", "--topic", "t")
    (all_brokers,) = found(part(0, 0, 1), brokers=HOSTS[:2], t=2)
    assert all_brokers.commands == ()


def test_a_single_copy_that_acknowledges_is_found() -> None:
    # Producers do write then, since 3.7: brokers cap the setting by the number of replicas.
    (issue,) = found(part(0, 0), t=2)
    assert "brokers ask for 1 replica then, so a single copy acknowledges acks=all" in issue.seen


def test_partitions_short_of_replicas_are_found_unless_being_moved() -> None:
    partitions = (part(0, 0, 1), part(1, 0, 1), part(2, 0))
    (issue,) = found(*partitions)
    assert (issue.kind, issue.seen.partition(" ")[0]) == ("factor", "t-2")
    moving = PlacementReadings(HOSTS, partitions, {tp(2): MOVE})
    assert [*placement_issues(moving)] == []


@pytest.mark.parametrize("moving", [(2, 3), (1, 2, 3), (0, 1, 2, 3)])
def test_replicas_on_their_way_are_no_norm_for_others(moving: tuple[int, ...]) -> None:
    partitions = tuple(part(number, 0, 1, *((2,) if number in moving else ())) for number in range(4))
    readings = PlacementReadings(HOSTS, partitions, dict.fromkeys(map(tp, moving), MOVE), {"t": 1})
    assert [one for one in placement_issues(readings) if one.kind in {"factor", "min-isr"}] == []


def test_a_tie_of_factors_is_not_taken_as_the_higher_one() -> None:
    assert found(part(0, 0, 1), part(1, 0)) == []


def test_partitions_in_one_rack_are_found_and_brokers_without_one() -> None:
    (issue,) = found(part(0, 0, 2), part(1, 0, 1))
    assert (issue.kind, issue.seen.partition(" ")[0]) == ("racks", "t-0")
    bare = tuple(Broker(one.id, one.host, one.port) for one in HOSTS)
    without_rack, crowded = found(part(0, 0, 1), part(1, 1, 3), brokers=(*bare[:1], *HOSTS[1:]))
    assert (without_rack.kind, without_rack.subject) == ("racks", "broker 0")
    assert crowded.seen.partition(" ")[0] == "t-1"
    assert found(part(0, 0, 2), brokers=bare) == []


# Disks


def log_dir(path: str, free: int, total: int = 100) -> LogDir:
    return LogDir(path, None, total * GB, free * GB, is_cordoned=False, replicas=())


def disks(now: int, before: int, *others: LogDir) -> list[Issue]:
    then = {1: (log_dir("/a", before), *others)}
    return [*disk_issues(fillings({1: (log_dir("/a", now), *others)}, then, 10), 10)]


def test_a_disk_that_is_nearly_full_is_found_with_the_time_until_it_is() -> None:
    (issue,) = disks(3, 4)
    assert issue.seen.endswith(" 3 GB free; full in 0 minutes at the 100 MB/s of the last 10 s")
    assert issue.commands == (("kreassign", "plan", "rebalance", "--out", "plan.json"),)
    (roomy,) = disks(3, 3, log_dir("/b", 60))
    assert "it did not fill in the last 10 s" in roomy.seen
    assert roomy.commands == (("kreassign", "plan", "disks", "--out", "plan.json"),)


@pytest.mark.parametrize(
    ("now", "before", "is_found"), [(11, 11, False), (10, 10, True), (50, 51, True), (51, 52, False)]
)
def test_a_disk_is_an_issue_when_full_or_full_within_a_day(now: int, before: int, is_found: bool) -> None:
    assert bool(disks(now, before)) is is_found


def test_without_a_second_reading_nothing_is_said_of_the_time() -> None:
    (issue,) = disk_issues(fillings({1: (log_dir("/a", 3),)}, {}, 0), 0)
    assert issue.seen.endswith(" 3 GB free")


def test_directories_with_the_same_figures_are_one_finding() -> None:
    (issue,) = disks(3, 3, log_dir("/b", 3))
    assert issue.seen.startswith("log directories /a, /b, which seem to share a disk, are 97% full, 3 GB free")


def holding(**sizes_gb: float) -> ClusterReadings:
    """Brokers b0, b1, … that hold as much."""
    held = {int(name[1:]): round(size * GB) for name, size in sizes_gb.items()}
    return ClusterReadings(tuple(held) or (0,), (part(0, 0),), held_bytes=held)


@pytest.mark.parametrize(("readings", "seen"), [
    (holding(b0=9, b1=2, b2=1), "broker 0 holds 9 GB (2.25 × the mean), broker 2 holds 1 GB"),
    (holding(b0=5, b1=5, b2=5, b3=0), "broker 0 holds 5 GB (1.33 × the mean), broker 3 holds 0 B"),
    (holding(b0=4, b1=3, b2=3), None),
    (holding(b0=0.9, b1=0), None),
    (holding(), None),
])  # fmt: skip
def test_brokers_with_uneven_bytes_are_a_note_and_no_issue(readings: ClusterReadings, seen: str | None) -> None:
    note = f"bytes are uneven: {seen}; `kreassign plan` evens them out"
    assert notes(readings) == (() if seen is None else (note,))
    assert diagnose(readings) == ()


# Moves


def stuck(**changes: Any) -> Moving:
    values: dict[str, Any] = {"run_id": "", "copied_bytes": 5, "copied_before": 5} | changes
    return Moving(tp(0), MOVE, **values)


def issues(**readings: Any) -> list[Issue]:
    return [*diagnose(ClusterReadings((0, 1, 2), (part(0, 0, 1, 2),), ongoing={tp(0): MOVE}, **readings))]


@pytest.mark.parametrize(
    ("moving", "why", "command"),
    [
        (stuck(), "no throttle holds it", "kafka-reassign-partitions --cancel"),
        (stuck(rate_bytes_per_s=1000), "the throttle there is 1 kB/s", "kafka-reassign-partitions --cancel"),
        (stuck(has_leader=False, run_id="run-1"), "it has no leader to copy from", "kreassign cancel run-1"),
    ],
)
def test_a_reassignment_without_copying_is_found_with_a_remedy(moving: Moving, why: str, command: str) -> None:
    (issue,) = issues(moving=(moving,), measured_s=5.0)
    assert (issue.kind, f"copied nothing in the last 5 s: {why}" in issue.seen) == ("stuck", True)
    assert " ".join(issue.commands[0]).startswith(command)


def test_a_progressing_reassignment_is_a_note_with_its_run() -> None:
    assert issues(moving=(stuck(copied_bytes=6),), measured_s=5.0) == []
    assert issues(moving=(stuck(copied_before=None),)) == []
    told = notes(ClusterReadings((), (part(0, 0, 1),), moving=(stuck(run_id="run-1"), stuck())))
    assert told == (
        (
            "1 partition is being reassigned, by somebody else; if they agree, `kafka-reassign-partitions --cancel "
            "--preserve-throttles --reassignment-json-file FILE` cancels what FILE lists"
        ),
        "1 partition is being reassigned, by run run-1; `kreassign cancel run-1` cancels that",
    )


# Throttles and directories


def test_a_throttle_of_an_open_run_is_a_note_without_advice() -> None:
    readings = ClusterReadings((0, 1), (part(0, 0, 1),), throttles=(RATE,), owned={RATE.key: "run-1"})
    assert diagnose(readings) == ()
    assert notes(readings) == ("1 setting of throttles is in force, of run run-1",)


def test_a_left_throttle_is_found_with_the_command_that_removes_it() -> None:
    (issue,) = diagnose(ClusterReadings((0, 1), (part(0, 0, 1),), throttles=(RATE,)))
    assert issue.commands == (("kreassign", "throttle", "--remove-left"),)


def test_one_cordoned_directory_of_several_is_a_note() -> None:
    cordoned = LogDir("/a", None, 9, 9, is_cordoned=True, replicas=())
    told = notes(ClusterReadings((0,), (part(0, 0),), log_dirs={0: (cordoned, log_dir("/b", 50))}))
    assert told == ("log directory /a of broker 0 is cordoned: it takes no new replicas",)


# Permissions


def test_who_may_do_everything_has_no_finding() -> None:
    assert [*permission_issues(AllowedOperations(EVERYTHING, {"t": EVERYTHING}))] == []
    assert [*permission_issues(AllowedOperations(None, {}))] == []


def test_each_command_is_told_with_what_it_lacks_and_each_grant_once() -> None:
    looks = frozenset({"Describe", "DescribeConfigs"})
    told = [*permission_issues(AllowedOperations(looks, {"t": looks | {"Read"}, "u": looks | {"Read"}}), "User:ann")]
    assert [issue.subject.partition(",")[0] for issue in told] == ["run", "run", "maintenance"]
    assert told[0].seen == "permission is missing: Alter on the cluster"
    assert "AlterConfigs on topics t, u" in told[1].seen
    approve((" ".join(words) for issue in told for words in issue.commands), "grants")


def test_lease_and_maintenance_rights_of_install_are_needed() -> None:
    groups = {"kreassign-lease": frozenset({"Describe"}), "kreassign-maintenance": frozenset[str]()}
    told = [*permission_issues(AllowedOperations(None, {OFFSETS_TOPIC: frozenset({"Describe"})}, groups))]
    by_name = {issue.subject.partition(",")[0]: issue.seen for issue in told}
    assert by_name["the lease of the cluster"] == "permission is missing: Read on group kreassign-lease"
    assert by_name["maintenance that other machines see"].endswith(
        "Read on group kreassign-maintenance; Read on topic __consumer_offsets"
    )
    assert by_name["runs that keep away from brokers in maintenance"].endswith(
        "Describe on group kreassign-maintenance"
    )
    grants = [" ".join(words[4:]) for issue in told for words in issue.commands]
    assert grants.count("--operation Read --topic __consumer_offsets") == 1
    assert "--operation Read --group kreassign-lease" in grants
    assert all("in place of NAME" in issue.remedy for issue in told if issue.commands)


def test_every_right_in_the_install_page_is_checked_by_the_doctor() -> None:
    (page,) = read("docs/start/install.md")
    rows = re.findall(r"^\|.*?\| ((?:[A-Z_]+ on|DESCRIBE).*?) \|$", page.text, re.MULTILINE)
    told = " ".join(rows).replace("_", "").lower()
    assert len(rows) == 10
    for need in NEEDS:
        for operation in (*need.cluster, *need.topics):
            assert operation.lower() in told or operation == "Read"
        for name, operation in filter(None, (need.group, need.topic)):
            assert f"`{name}`".replace("_", "") in told
            assert operation.lower() in told
    named = set(re.findall(r"group `([a-z-]+)`", " ".join(rows)))
    assert named == {need.group[0] for need in NEEDS if need.group}
