"""Plans start from the placement that the cluster has now; tables give the loads of the partitions that they know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import kreassign
from kreassign.errors import DataError, InputError
from kreassign.model import Broker, TopicPartition
from kreassign.model.load import LoadBasis
from kreassign.model.snapshot import ClusterSnapshot, SnapshotBroker, SnapshotLogDir, SnapshotPartition, SnapshotTopic
from kreassign.operations.plan import PlanRequest
from kreassign.operations.plan_files import Assignments, PlanFile
from kreassign.operations.plan_tasks import Import
from kreassign.pipeline.tables.schemas import LOAD_HOURS, PARTITIONS, PLAN_INPUTS
from tests.pipeline.clusters import UNKNOWN_LOADS
from tests.pipeline.finished_load import write_rows
from tests.pipeline.load_tables import row, write_brokers

LOADED_MS, NOW_MS = 1_767_225_600_000, 1_767_225_600_000 + 60_000
MEGABYTE = 1_000_000
Lists = Mapping[str, Sequence[tuple[int, ...]]]
UNEVEN: Lists = {"t": [(0,), (0,), (0,), (1,), (1,), (1,)]}
EVEN: Lists = {"t": [(0,), (2,), (0,), (1,), (2,), (1,)]}


def tables(data: Path, lists: Lists, cluster: str = "c", *, knows_ids: bool = True, **loads: Any) -> Path:
    """A load of brokers 0 to 2, in which partition n of each topic is written at n + 1 MB/s."""
    snapshot = {"snapshot_id": f"s-{cluster}", "cluster_id": cluster}
    write_brokers(data, 3, cluster, **snapshot, taken_ms=LOADED_MS)
    known = [(topic, number, brokers) for topic, all_of in lists.items() for number, brokers in enumerate(all_of)]
    write_rows(data, PARTITIONS, [
        {**row(PARTITIONS), **snapshot, "topic": topic, "topic_id": f"id-{topic}" if knows_ids else None,
         "partition": number}
        for topic, number, _ in known
    ], file_stem=cluster)  # fmt: skip
    write_rows(data, PLAN_INPUTS, [
        {**snapshot, **UNKNOWN_LOADS, "topic": topic, "partition": number, "broker": broker, "position": position,
         "is_leader": position == 0, "is_reassigning": False, "size_bytes": 10 * MEGABYTE,
         "write_bytes_per_s": (number + 1.0) * MEGABYTE, "coverage": "measured", "verdict": "enough", **loads}
        for topic, number, brokers in known for position, broker in enumerate(brokers)
    ], file_stem=cluster)  # fmt: skip
    hour = row(LOAD_HOURS, cluster_id=cluster, topic="t", partition=0, hour_ms=LOADED_MS - 3_600_000)
    write_rows(data, LOAD_HOURS, [hour], file_stem=cluster)
    return data


def now(lists: Lists, brokers: int = 3, topic_ids: Mapping[str, str] | None = None) -> ClusterSnapshot:
    """The cluster as it is, without rates of its own."""
    topics = tuple(
        SnapshotTopic(topic, tuple(
            SnapshotPartition(each, each, each[0], 0, ("/d",) * len(each), (10 * MEGABYTE,) * len(each))
            for each in all_of
        ), {}, (topic_ids or {}).get(topic, f"id-{topic}"))
        for topic, all_of in lists.items()
    )  # fmt: skip
    hosts = tuple(SnapshotBroker(Broker(one, "h", 9092), (SnapshotLogDir("/d"),)) for one in range(brokers))
    return ClusterSnapshot(NOW_MS, "c", hosts, topics, {})


def basis(outcome: Any) -> LoadBasis:
    loads = outcome.facts.loads
    assert isinstance(loads, LoadBasis)
    return loads


def test_what_was_moved_since_the_load_is_not_planned_again(tmp_path: Path) -> None:
    data = tables(tmp_path, UNEVEN)
    first = kreassign.plan(now(UNEVEN), loads=data)
    assert len(first.plan) > 0
    targets = {name.partition: replicas for name, replicas in first.plan.replicas.items()}
    moved = now({"t": [targets.get(number, before) for number, before in enumerate(UNEVEN["t"])]})
    assert len(kreassign.plan(moved, loads=data).plan) == 0
    again = kreassign.plan(moved, Import(Assignments(PlanFile(first.plan), "plan.json")), loads=data)
    assert len(again.plan) == 0
    assert kreassign.plan(data, as_of="last").plan == first.plan


def test_both_ages_are_told(tmp_path: Path) -> None:
    data = tables(tmp_path, UNEVEN)
    present, past = basis(kreassign.plan(now(EVEN), loads=data)), basis(kreassign.plan(data, as_of="last"))
    assert (present.placed_ms, present.taken_ms, present.measured_ms) == (NOW_MS, LOADED_MS, LOADED_MS - 3_600_000)
    assert (past.placed_ms, past.taken_ms) == (None, LOADED_MS)
    assert (present.source, present.gone, present.doubtful_count) == ("mean", 0, 0)


def test_partitions_missing_in_the_tables_are_named_and_left_out(tmp_path: Path) -> None:
    data = tables(tmp_path, {"t": UNEVEN["t"], "gone": [(0,), (1,)], "again": [(0,), (1,)]})
    lists = {"again": [(2, 0)], "new": [(2,)], "t": [*EVEN["t"], (1,)]}
    found = kreassign.plan(now(lists, 4, {"again": "another"}), loads=data)
    loads = basis(found)
    assert loads.reasons == {"not in the tables": 2, "of an earlier topic of that name": 1}
    assert sorted(str(one.topic_partition) for one in loads.doubtful) == ["again-0", "new-0", "t-6"]
    assert (loads.partitions, loads.gone) == (9, 4)
    assert found.problem.partitions.name(2) == TopicPartition("t", 0)
    assert found.problem.partitions.write_bytes_per_s.tolist()[2:8] == [number * MEGABYTE for number in range(1, 7)]
    assert found.problem.brokers.ids.tolist() == [0, 1, 2, 3]
    with pytest.raises(InputError, match="the loads of 3 of 9 partitions are doubtful"):
        kreassign.plan(now(lists, 4, {"again": "another"}), loads=data, request=PlanRequest(require_load=True))


def test_cpu_and_reads_follow_the_partition_to_its_new_brokers(tmp_path: Path) -> None:
    data = tables(tmp_path, {"t": [(0, 1), (1, 0)]}, cpu_share=0.2, follower_cpu_share=0.1, read_bytes_per_s=5.0)
    partitions = kreassign.plan(now({"t": [(2, 1), (2, 0)]}), loads=data).problem.partitions
    assert partitions.leader_cpu.tolist() == [0.2, 0.2]
    assert partitions.follower_cpu.tolist() == [0.1, 0.1]
    assert partitions.read_bytes_per_s.tolist() == [MEGABYTE + 5.0, 2 * MEGABYTE + 5.0]


def test_a_directory_of_tables_is_no_placement_unless_a_load_is_named(tmp_path: Path) -> None:
    data = tables(tmp_path, UNEVEN)
    for ask in (kreassign.plan, kreassign.pareto, kreassign.brokers_needed):
        with pytest.raises(InputError, match="they have loads, and a placement of the past"):
            ask(data)
    with pytest.raises(InputError, match="`as_of` selects a load of tables"):
        kreassign.plan(now(EVEN), as_of="last")
    with pytest.raises(DataError, match="the tables hold nothing of cluster c, only of other"):
        kreassign.plan(now(EVEN), loads=tables(tmp_path / "other", UNEVEN, "other"))
