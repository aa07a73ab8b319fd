"""What the planner reads, as arrays: table `plan_inputs` of one cluster, with the log directories of its snapshot."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from kreassign.errors import DataError, InputError
from kreassign.pipeline.tables.parquet import ColumnArray, Dictionary, has_table, read_columns
from kreassign.pipeline.tables.schemas import PARTITIONS, PLAN_INPUTS, REPLICAS

_COLUMNS = (
    "snapshot_id", "topic", "partition", "broker", "position", "is_reassigning", "size_bytes", "write_bytes_per_s",
)  # fmt: skip
STATISTICS: dict[str, dict[str, str]] = {
    "mean": {},
    "p95": {"write_bytes_per_s": "p95_write_bytes_per_s"},
    "p99": {"write_bytes_per_s": "p99_write_bytes_per_s"},
    "peak": {"write_bytes_per_s": "peak_write_bytes_per_s"},
    "forecast": {"write_bytes_per_s": "forecast_write_bytes_per_s", "size_bytes": "forecast_size_bytes"},
}
"""What to plan by, and the columns that it has in place of the mean rate and the present size."""
_KEY = ("topic", "partition", "broker")


@dataclass(frozen=True, slots=True, eq=False)
class PlanColumns:
    """One entry per replica of one cluster; NaN where a size or rate is unknown. See `PLAN_INPUTS`.

    `log_dirs` are indices into `paths`, -1 where the directory is unknown.
    """

    cluster_id: str
    snapshot_id: str
    topic_names: tuple[str, ...]
    topics: npt.NDArray[np.int32]
    partitions: npt.NDArray[np.int32]
    brokers: npt.NDArray[np.int32]
    positions: npt.NDArray[np.int32]
    is_reassigning: npt.NDArray[np.bool_]
    size_bytes: npt.NDArray[np.float64]
    write_bytes_per_s: npt.NDArray[np.float64]
    paths: tuple[str, ...]
    log_dirs: npt.NDArray[np.int32]


def read_plan_columns(data_dir: Path, cluster: str | None, statistic: str = "mean") -> PlanColumns:
    """The columns of a cluster; `cluster` may be None if the tables hold only one.

    `statistic` is one of `STATISTICS`. Where it is unknown, the mean and the present size stand in.
    Raises InputError when there are several to choose from, DataError when there is nothing of this one.
    """
    chosen = _chosen(data_dir, cluster)
    names = (*_COLUMNS, *STATISTICS[statistic].values())
    found = read_columns(data_dir, PLAN_INPUTS, names, only={"cluster_id": chosen})
    topics, (snapshot_id, *_) = _dictionary(found["topic"]), _dictionary(found["snapshot_id"]).names
    paths, log_dirs = _log_dirs(data_dir, snapshot_id, topics, found)
    return PlanColumns(
        cluster_id=chosen,
        snapshot_id=snapshot_id,
        topic_names=topics.names,
        topics=topics.codes,
        partitions=_ints(found["partition"]),
        brokers=_ints(found["broker"]),
        positions=_ints(found["position"]),
        is_reassigning=np.asarray(found["is_reassigning"], np.bool_),
        size_bytes=_by(statistic, "size_bytes", found),
        write_bytes_per_s=_by(statistic, "write_bytes_per_s", found),
        paths=paths,
        log_dirs=log_dirs,
    )


def read_topic_ids(data_dir: Path, snapshot_id: str) -> dict[str, str]:
    """The ids of the topics of a snapshot, by name, as far as brokers told them; none where it is in no table."""
    if not has_table(data_dir, PARTITIONS):
        return {}
    found = read_columns(data_dir, PARTITIONS, ("topic", "topic_id"), only={"snapshot_id": snapshot_id})
    topics, ids = _dictionary(found["topic"]), _dictionary(found["topic_id"])
    pairs = np.unique(np.stack([topics.codes, ids.codes]), axis=1)
    return {topics.names[topic]: ids.names[topic_id] for topic, topic_id in pairs.T.tolist() if topic_id >= 0}


def planned_clusters(data_dir: Path) -> tuple[str, ...]:
    """The clusters that table `plan_inputs` is about, sorted. Raises DataError when it is missing."""
    return _dictionary(read_columns(data_dir, PLAN_INPUTS, ("cluster_id",))["cluster_id"]).names


def _chosen(data_dir: Path, wanted: str | None) -> str:
    clusters = planned_clusters(data_dir)
    if wanted is None and len(clusters) > 1:
        raise InputError(f"the tables hold several clusters; choose with --cluster one of {', '.join(clusters)}")
    if wanted not in (None, *clusters):
        raise DataError(f"the tables hold nothing of cluster {wanted}, only of {', '.join(clusters)}")
    return wanted or clusters[0]


def _log_dirs(
    data_dir: Path, snapshot_id: str, topics: Dictionary, found: dict[str, ColumnArray]
) -> tuple[tuple[str, ...], npt.NDArray[np.int32]]:
    """The directory of each replica, looked up by its key among the replicas of the snapshot."""
    nowhere = np.full(len(topics.codes), -1, np.int32)
    if not has_table(data_dir, REPLICAS):
        return (), nowhere
    told = read_columns(data_dir, REPLICAS, (*_KEY, "log_dir"), only={"snapshot_id": snapshot_id})
    paths, theirs = _dictionary(told["log_dir"]), _dictionary(told["topic"])
    if not len(paths.codes):
        return (), nowhere
    number = {name: code for code, name in enumerate(topics.names)}
    codes = np.array([number.get(name, -1) for name in theirs.names], np.int64)[theirs.codes]
    keys = _key(codes, told)
    order = np.argsort(keys, kind="stable")
    wanted = _key(topics.codes.astype(np.int64), found)
    place = order[np.minimum(np.searchsorted(keys, wanted, sorter=order), len(keys) - 1)]
    return paths.names, np.where(keys[place] == wanted, paths.codes[place], -1).astype(np.int32)


def _key(topics: npt.NDArray[np.int64], columns: dict[str, ColumnArray]) -> npt.NDArray[np.int64]:
    """One number per replica; partitions and broker ids stay below 2^20, which Kafka's own tools need too."""
    partitions, brokers = (np.asarray(columns[name], np.int64) for name in ("partition", "broker"))
    return (topics << 40) + (partitions << 20) + brokers


def _by(statistic: str, name: str, found: dict[str, ColumnArray]) -> npt.NDArray[np.float64]:
    plain = np.asarray(found[name], np.float64)
    wanted = STATISTICS[statistic].get(name)
    if wanted is None:
        return plain
    special = np.asarray(found[wanted], np.float64)
    return np.where(np.isnan(special), plain, special)


def _dictionary(column: ColumnArray) -> Dictionary:
    assert isinstance(column, Dictionary)
    return column


def _ints(column: ColumnArray) -> npt.NDArray[np.int32]:
    return np.asarray(column, np.int32)
