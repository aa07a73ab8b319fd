from pathlib import Path

import pytest

from kreassign.errors import DataError, InputError
from kreassign.pipeline.load.plan_inputs import STATISTICS, read_plan_columns
from kreassign.pipeline.tables.parquet import write_rows
from kreassign.pipeline.tables.schemas import PLAN_INPUTS, REPLICAS
from tests.pipeline.clusters import UNKNOWN_LOADS

INPUT = {"topic": "t", "partition": 0, "position": 0, "is_leader": True, "is_reassigning": False, "size_bytes": 5,
         "write_bytes_per_s": None, "coverage": "no samples", **UNKNOWN_LOADS}  # fmt: skip
COPY = {"taken_ms": 0, "topic": "t", "partition": 0, "position": 0, "is_leader": True, "is_in_sync": True,
        "is_adding": False, "is_removing": False, "size_bytes": 5, "future_log_dir": None,
        "future_size_bytes": None}  # fmt: skip


def inputs(data: Path, cluster: str, *brokers: int) -> None:
    snapshot = {"snapshot_id": f"s-{cluster}", "cluster_id": cluster}
    rows = [{**snapshot, **INPUT, "broker": broker, "position": place} for place, broker in enumerate(brokers)]
    write_rows(data, PLAN_INPUTS, rows, file_stem=cluster)


def copies(data: Path, snapshot: str, dirs: dict[int, str | None]) -> None:
    rows = [
        {"snapshot_id": snapshot, "cluster_id": "c", **COPY, "broker": broker, "log_dir": path}
        for broker, path in dirs.items()
    ]
    write_rows(data, REPLICAS, rows, file_stem=snapshot)


def test_one_entry_per_replica_with_the_directory_of_its_snapshot(tmp_path: Path) -> None:
    inputs(tmp_path, "c", 3, 1, 2)
    copies(tmp_path, "s-c", {1: "/b", 2: None, 3: "/a", 9: "/z"})
    copies(tmp_path, "s-older", {1: "/old", 2: "/old", 3: "/old"})
    found = read_plan_columns(tmp_path, None)
    assert (found.cluster_id, found.snapshot_id, found.topic_names) == ("c", "s-c", ("t",))
    assert found.brokers.tolist() == [3, 1, 2]
    assert found.positions.tolist() == [0, 1, 2]
    assert [found.paths[code] if code >= 0 else None for code in found.log_dirs] == ["/a", "/b", None]
    assert found.size_bytes.tolist() == [5.0] * 3


def test_without_a_table_of_replicas_no_directory_is_known(tmp_path: Path) -> None:
    inputs(tmp_path, "c", 1, 2)
    assert read_plan_columns(tmp_path, None).log_dirs.tolist() == [-1, -1]
    copies(tmp_path, "s-older", {1: "/old"})
    assert read_plan_columns(tmp_path, None).log_dirs.tolist() == [-1, -1]


def test_one_of_several_clusters_must_be_chosen(tmp_path: Path) -> None:
    inputs(tmp_path, "c", 1)
    inputs(tmp_path, "d", 2, 1)
    assert read_plan_columns(tmp_path, "d").brokers.tolist() == [2, 1]
    with pytest.raises(InputError, match="choose with --cluster one of c, d"):
        read_plan_columns(tmp_path, None)
    with pytest.raises(DataError, match="nothing of cluster e, only of c, d"):
        read_plan_columns(tmp_path, "e")


def test_the_load_to_plan_by_stands_in_for_the_mean_where_it_is_known(tmp_path: Path) -> None:
    def row(partition: int, **known: float) -> dict[str, object]:
        key = {"snapshot_id": "s", "cluster_id": "c", "broker": 1, "partition": partition}
        return {**INPUT, "write_bytes_per_s": 10.0, **key, **known}

    rows = [row(0, p95_write_bytes_per_s=20.0, forecast_size_bytes=7.0, forecast_write_bytes_per_s=12.0), row(1)]
    write_rows(tmp_path, PLAN_INPUTS, rows, file_stem="a")
    rates = {by: read_plan_columns(tmp_path, None, by).write_bytes_per_s.tolist() for by in STATISTICS}
    assert rates == {"mean": [10, 10], "p95": [20, 10], "p99": [10, 10], "peak": [10, 10], "forecast": [12, 10]}
    assert read_plan_columns(tmp_path, None, "forecast").size_bytes.tolist() == [7, 5]
    assert read_plan_columns(tmp_path, None, "p95").size_bytes.tolist() == [5, 5]
