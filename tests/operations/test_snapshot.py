"""A whole snapshot of a twin makes the same twin again."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, cast

import pytest

from kreassign.admin import AdminClient, client_settings
from kreassign.autopilot.observation import Known
from kreassign.errors import InputError, Unreachable
from kreassign.executor.lease import OFFSETS_TOPIC
from kreassign.model import Batch, Cluster, LogDir, Topic
from kreassign.model.requests import LOOKS
from kreassign.model.snapshot import ClusterSnapshot
from kreassign.operations import autopilot_looks
from kreassign.operations.doctor import diagnose_cluster
from kreassign.operations.plan_inputs import inputs_of_snapshot_file
from kreassign.operations.snapshot import observe, overview, whole_snapshot
from kreassign.operations.snapshot_files import read_snapshot, write_snapshot
from kreassign.planner.problem.policy import PlanPolicy
from kreassign.twin import Blueprint, Twin, TwinTransport
from kreassign.twin.blueprint import Speeds, blueprint_of
from kreassign.twin.scenario import parse_scenario
from tests.executor.odd_port import OddPort, Real
from tests.executor.twin_runs import TwinRig, tp

SCENARIO = """
    cluster_id = "small"
    [[brokers]]
    count = 4
    racks = ["a", "b"]
    log_dirs = [{ count = 2, capacity = "1 GB" }]
    [[brokers]]
    down = true
    [[topics]]
    name = "t"
    partitions = 8
    size = "20 MB"
    spread = 0.5
    write_rate = "10 kB/s"
    brokers = [0, 1, 2, 4]
    configs = { "retention.ms" = "3600000" }
    [[moves]]
    topic = "t"
    from = 0
    to = 3
    copied = 0.25
    [throttle]
    rate = "100 kB/s"
"""


def look(blueprint: Blueprint) -> tuple[ClusterSnapshot, Twin]:
    """Read a new twin as a client; return that and the twin."""
    twin = Twin(blueprint)
    transport = TwinTransport(twin)
    settings = client_settings(bootstrap_servers="broker-0:9092")
    with AdminClient.connect(settings, clock=transport, transport=transport) as client:
        return whole_snapshot(client, observe(client, 0), transport, 10.0), twin


@pytest.fixture(scope="module")
def first() -> tuple[ClusterSnapshot, Twin]:
    return look(parse_scenario(SCENARIO, "small").blueprint)


def test_a_twin_of_a_twin_is_the_same(first: tuple[ClusterSnapshot, Twin]) -> None:
    seen, twin = first
    again, second = look(blueprint_of(seen, Speeds()))
    assert [one.broker for one in again.brokers] == [one.broker for one in seen.brokers]
    assert [one.configs for one in again.brokers] == [one.configs for one in seen.brokers]
    assert again.broker_defaults == seen.broker_defaults
    assert twin.metadata.reassigning == second.metadata.reassigning
    for (key, found), (_, expected) in zip(again.partitions, seen.partitions, strict=True):
        # Within 10 s producers add 0.1 MB, and a throttled copy as much.
        assert [size and round(size / 1e6) for size in found.sizes_bytes] == pytest.approx(
            [size and round(size / 1e6) for size in expected.sizes_bytes], abs=1
        ), key
        assert found.write_bytes_per_s == pytest.approx(expected.write_bytes_per_s, rel=0.02)
        assert found.end_offset == pytest.approx(expected.end_offset, rel=0.02)
        moving = ("start_offset", "end_offset", "write_bytes_per_s", "sizes_bytes")
        assert replace(found, **{name: getattr(expected, name) for name in moving}) == expected
    assert [topic.configs for topic in again.topics] == [topic.configs for topic in seen.topics]


def test_the_snapshot_has_throttles_moves_rates_and_dead_brokers(
    first: tuple[ClusterSnapshot, Twin],
) -> None:
    seen, twin = first
    assert [(one.broker.id, one.broker.is_fenced) for one in seen.brokers if one.broker.is_fenced] == [(4, True)]
    assert seen.brokers[0].configs == {
        "leader.replication.throttled.rate": "100000",
        "follower.replication.throttled.rate": "100000",
    }
    assert seen.topics[0].configs["retention.ms"] == "3600000"
    assert ":3" in seen.topics[0].configs["follower.replication.throttled.replicas"]
    moving = [partition for _, partition in seen.partitions if partition.is_moving]
    assert len(moving) == len(twin.metadata.reassigning) > 0
    rates = {key: traffic.write_bytes_per_s for key, traffic in parse_scenario(SCENARIO, "").blueprint.traffic.items()}
    assert {key: partition.write_bytes_per_s for key, partition in seen.partitions} == pytest.approx(rates, rel=0.02)


def test_a_file_may_be_compressed_or_in_columns(first: tuple[ClusterSnapshot, Twin], tmp_path: Path) -> None:
    for name in ("a.json", "a.json.gz", "a.parquet"):
        write_snapshot(tmp_path / name, first[0])
        assert read_snapshot(tmp_path / name) == first[0]
    (tmp_path / "a.parquet").rename(tmp_path / "renamed.json")
    assert read_snapshot(tmp_path / "renamed.json") == first[0]
    assert (tmp_path / "a.json.gz").stat().st_size < (tmp_path / "a.json").stat().st_size / 2


@pytest.mark.parametrize("name", ["a.json", "a.json.gz", "a.parquet"])
def test_a_file_that_is_none_is_refused_with_its_name(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"\x1f\x8b\xff")
    with pytest.raises(InputError, match=name):
        read_snapshot(tmp_path / name)


@pytest.mark.parametrize("name", ["bomb.json.gz", "bomb.json"])
def test_a_file_too_large_for_a_cluster_is_refused_compressed(name: str, tmp_path: Path) -> None:
    content = bytes(4_000_000)
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    with pytest.raises(InputError, match=rf"{name} holds more than 1 MB, which no snapshot does"):
        read_snapshot(path, most_bytes=1_000_000)


def test_a_compressed_file_that_was_cut_off_is_refused_with_its_name(
    first: tuple[ClusterSnapshot, Twin], tmp_path: Path
) -> None:
    path = tmp_path / "cluster.json.gz"
    write_snapshot(path, first[0])
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match=r"cluster.json.gz: cannot be read as a snapshot file"):
        read_snapshot(path)


@pytest.mark.parametrize("name", ["cluster.json", "cluster.parquet"])
def test_a_plan_can_be_made_from_it(name: str, first: tuple[ClusterSnapshot, Twin], tmp_path: Path) -> None:
    seen, _ = first
    write_snapshot(tmp_path / name, seen)
    found = inputs_of_snapshot_file(tmp_path / name, PlanPolicy())
    problem, lists = found.problem, found.problem.partitions
    assert (found.cluster_id, found.snapshot_id, found.taken_ms) == (seen.cluster_id, name, seen.taken_ms)
    assert set(problem.brokers.ids.tolist()) >= {one.broker.id for one in seen.brokers}
    live = dict(zip(problem.brokers.ids.tolist(), problem.brokers.is_live.tolist(), strict=True))
    assert not [one.broker.id for one in seen.brokers if live[one.broker.id] == one.broker.is_fenced]
    moving = {key for key, partition in seen.partitions if partition.is_moving}
    assert {lists.name(index) for index in range(len(lists)) if not lists.may_move[index]} == moving
    replicas = {lists.name(index): tuple(problem.brokers.ids[lists.list_of(index)]) for index in range(len(lists))}
    assert replicas == {key: partition.replicas for key, partition in seen.partitions}


def test_a_directory_fails_after_two_answers_that_say_so(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1]])
    odd, warnings = OddPort(rig.client), list[str]()

    def failed(real: Real, brokers: Sequence[int], **named: Any) -> Batch[int, tuple[LogDir, ...]]:
        answer: Batch[int, tuple[LogDir, ...]] = real(brokers, **named)
        dirs = tuple(replace(one, error="KAFKA_STORAGE_ERROR", replicas=()) for one in answer[0])
        return Batch({**answer.ok, 0: dirs}, answer.failed)

    odd.answer("describe_log_dirs", failed)
    seen = observe(cast(AdminClient, odd), 0, warnings.append)
    assert [one.error for one in seen.log_dirs[0]] == [None, None]
    assert warnings == []
    odd.answer("describe_log_dirs", failed, failed)
    seen = observe(cast(AdminClient, odd), 0, warnings.append)
    assert {one.error for one in seen.log_dirs[0]} == {"KAFKA_STORAGE_ERROR"}
    assert "what is in failed log directories is not known" in warnings[0]


def without_broker_1(topic: Topic) -> Topic:
    """The topic with broker 1 out of sync."""
    parts = (replace(one, isr=tuple(each for each in one.isr if each != 1)) for one in topic.partitions)
    return replace(topic, partitions=tuple(parts))


def test_replicas_that_two_brokers_show_out_of_sync_are_read_once(tmp_path: Path) -> None:
    """After a restart nearly every topic has some."""
    odd = OddPort(TwinRig(tmp_path, [[0, 1], [1, 2]]).client)

    def lagging(real: Real, *args: Any, **named: Any) -> Batch[str, Topic]:
        answer: Batch[str, Topic] = real(*args, **named)
        return Batch({name: without_broker_1(topic) for name, topic in answer.ok.items()}, answer.failed)

    odd.answer_always("describe_topics", lagging)
    observe(cast(AdminClient, odd), 0)
    looks = [args[0] for method, args, named in odd.calls if method == "describe_topics" and "broker" in named]
    assert [asked for asked in looks if asked != [OFFSETS_TOPIC]] == [None] * LOOKS


def behind_at_first(port: AdminClient, *, fails: bool) -> AdminClient:
    """A client whose first broker had not heard that replicas are back in sync; a second look shows it, or fails."""
    odd, after_topics = OddPort(port), count()

    def lagging(real: Real, *args: Any, **named: Any) -> Batch[str, Topic]:
        answer: Batch[str, Topic] = real(*args, **named)
        return Batch({name: without_broker_1(topic) for name, topic in answer.ok.items()}, answer.failed)

    def described(real: Real, *args: Any, **named: Any) -> Cluster:
        if [method for method, *_ in odd.calls].count("describe_topics") >= LOOKS and next(after_topics) == 1 and fails:
            raise Unreachable("could not connect")
        cluster: Cluster = real(*args, **named)
        return cluster

    odd.answer("describe_topics", lagging)
    odd.answer_always("describe_cluster", described)
    return cast(AdminClient, odd)


@pytest.mark.parametrize("fails", [True, False])
def test_a_snapshot_counts_what_two_show_in_sync_and_says_so(fails: bool, tmp_path: Path) -> None:
    client, warnings = behind_at_first(TwinRig(tmp_path, [[0, 1], [1, 2]]).client, fails=fails), list[str]()
    seen = observe(client, 0, warnings.append)
    in_sync = {one.topic_partition: set(one.isr) for topic in seen.topics for one in topic.partitions}
    assert in_sync == ({tp(0): {0}, tp(1): {2}} if fails else {tp(0): {0, 1}, tp(1): {1, 2}})
    said = "1 without known replicas in sync, so that those count that two brokers show so:\n  t: could not connect"
    assert warnings == ([said] if fails else [])


@pytest.mark.parametrize("fails", [True, False])
def test_what_one_broker_shows_out_of_sync_is_unknown_and_no_trouble(fails: bool, tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1], [1, 2]])

    def asked() -> AdminClient:
        return behind_at_first(rig.client, fails=fails)

    figures = overview(asked())
    assert (figures.under_replicated, figures.unread) == (0, int(fails))
    issues = diagnose_cluster(asked(), tmp_path, clock=rig.transport).issues
    assert [one.kind for one in issues] == (["unread"] if fails else [])
    assert all("topic t could not be read: could not connect" in str(one) for one in issues)
    looked = autopilot_looks.observe(asked(), 0)
    assert dict(looked.unread_topics) == ({"t": "could not connect"} if fails else {})
    assert isinstance(looked.partitions, Known)
    assert all(not one.under_replicated for one in looked.partitions.value)


def test_no_replica_is_out_of_sync_by_one_broker_that_lags(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1], [1, 2]])
    rig.restart_unseen(1, behind=0)
    assert overview(rig.client).under_replicated == 0
    assert "under-replicated" not in [one.kind for one in diagnose_cluster(rig.client, tmp_path).issues]


@pytest.mark.parametrize("begins", [True, False])
def test_a_partition_whose_move_begins_or_ends_meanwhile_is_moving(begins: bool, tmp_path: Path) -> None:
    """Its list has a replica too many in the middle of a move: that is no usual number of replicas."""
    rig, warnings, looks = TwinRig(tmp_path, [[0, 1], [1, 2]]), list[str](), list[int]()
    odd = OddPort(rig.client)

    def move() -> None:
        rig.client.alter_partition_reassignments({tp(0): (2, 3)}).raise_if_any()

    def described(real: Real, *args: Any, **named: Any) -> Any:
        looks.append(named["broker"])
        if begins:
            move()
        answer = real(*args, **named)
        if not begins and len(looks) == LOOKS:
            rig.transport.sleep(600)
        return answer

    if not begins:
        move()
    odd.answer("describe_topics", described)
    seen = observe(cast(AdminClient, odd), 0, warnings.append)
    lists = {one.topic_partition: one.replicas for topic in seen.topics for one in topic.partitions}
    assert set(lists[tp(0)]) == {0, 1, 2, 3}
    assert [*seen.reassignments] == [tp(0)]
