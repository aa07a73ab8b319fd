"""Read the planner's input as arrays: table `plan_inputs` of one cluster, with its snapshot's log directories.

Also read the basis of the loads: each verdict, the last measured hour, and how well the forecast did so far.
`doubt.py` decides what to plan with where a load is doubtful.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from kreassign.errors import DataError, InputError
from kreassign.model.load import ForecastBasis
from kreassign.model.replica_columns import ReplicaColumns
from kreassign.pipeline.load import forecast
from kreassign.pipeline.tables.parquet import (
    ColumnArray,
    Dictionary,
    Where,
    dictionary,
    has_table,
    places_of_keys,
    read_columns,
    read_rows,
)
from kreassign.pipeline.tables.schemas import BACKTESTS, FORECAST, LOAD_HOURS, PARTITIONS, PLAN_INPUTS, REPLICAS

_COLUMNS = (
    "snapshot_id", "topic", "partition", "broker", "position", "is_leader", "is_reassigning", "size_bytes",
    "write_bytes_per_s", "read_bytes_per_s", "cpu_share", "follower_cpu_share", "verdict",
)  # fmt: skip
ENOUGH = "enough"
"""Verdict of loads that are good enough to plan by; every other verdict is a reason for doubt."""
STATISTICS: dict[str, dict[str, str]] = {
    "mean": {},
    "p95": {"write_bytes_per_s": "p95_write_bytes_per_s"},
    "p99": {"write_bytes_per_s": "p99_write_bytes_per_s"},
    "peak": {"write_bytes_per_s": "peak_write_bytes_per_s"},
    "forecast": {"write_bytes_per_s": "forecast_write_bytes_per_s", "size_bytes": "forecast_size_bytes"},
}
"""Loads to plan by, and the columns that each uses in place of the mean rate and the present size."""
FORECAST_HIGH = "forecast-high"
_HIGH = {"write_bytes_per_s": "high_write_bytes_per_s", "size_bytes": "high_size_bytes"}
"""Upper ends of the forecast's intervals; only table `forecast` has them."""
JUMPED = "another level on the last day"
"""Reason for doubt in a forecast whose basis is `jumped`."""
_KEY = ("topic", "partition", "broker")


NEW = "not in the tables"
RECREATED = "of an earlier topic of that name"
"""Reasons for unknown loads: the tables do not have the partition, or have it of a topic that was deleted."""


def values_at(
    column: npt.NDArray[np.float64] | None, rows: npt.NDArray[np.int64], instead: npt.NDArray[np.float64] | None = None
) -> npt.NDArray[np.float64]:
    """Values of a column at these rows; where a row is -1 or its value unknown, those of `instead`, else NaN."""
    found = np.append(np.full(0, np.nan) if column is None else column, np.nan)
    values = np.full(len(rows), np.nan) if column is None else found[rows]
    return values if instead is None else np.where(np.isnan(values), instead, values)


@dataclass(frozen=True, slots=True, eq=False)
class PlanColumns:
    """Replicas of one cluster with their loads; see `PLAN_INPUTS`.

    `is_leader` and `reasons` have an entry per replica. `reasons` are indices into `reason_names`: why the rate is
    doubtful, -1 if it is not. One reason is that the mean replaces an unknown requested load.
    """

    cluster_id: str
    snapshot_id: str
    replicas: ReplicaColumns
    is_leader: npt.NDArray[np.bool_]
    reason_names: tuple[str, ...]
    reasons: npt.NDArray[np.int32]

    def found(
        self, placed: ReplicaColumns, recreated: Sequence[bool]
    ) -> tuple[npt.NDArray[np.int64], tuple[str, ...], npt.NDArray[np.int32]]:
        """Row of each partition `placed`, -1 if its load is unknown; names of reasons for doubt; the reason of each.

        A topic that was `recreated` since, by index into the placed names, has none of the loads under its name.
        """
        own = self.replicas
        # The first replica has the load of the partition.
        order = np.argsort(own.positions, kind="stable")
        theirs = Dictionary(tuple(own.topic_names), own.topics.astype(np.int32)).codes_in(placed.topic_names)
        places = places_of_keys((theirs << 32 | own.partitions)[order], placed.keys)
        rows = np.where(places >= 0, order[places], -1)
        is_other = np.asarray(recreated, np.bool_)[placed.topics] & (rows >= 0)
        rows = np.where(is_other, -1, rows)
        names = (*self.reason_names, NEW, RECREATED)
        unknown = np.where(is_other, len(names) - 1, len(names) - 2)
        reasons = np.where(rows >= 0, np.append(self.reasons, -1)[rows], unknown)
        return rows, names, reasons.astype(np.int32)


def read_plan_columns(where: Where, cluster: str | None, statistic: str = "mean") -> PlanColumns:
    """Read the columns of a cluster; `cluster` may be None if the tables hold only one.

    `statistic` is one of `STATISTICS`, or `FORECAST_HIGH`. Where it is unknown, the mean and the present size are used.
    Raises InputError if there are several clusters to choose from or no such statistic, DataError if the tables have
    nothing of this cluster.
    """
    if statistic not in (*STATISTICS, FORECAST_HIGH):
        raise InputError(
            f"there is no load {statistic!r} to plan by; there are {', '.join((*STATISTICS, FORECAST_HIGH))}"
        )
    chosen = _chosen(where, cluster)
    names = (*_COLUMNS, *STATISTICS.get(statistic, {}).values())
    found = read_columns(where, PLAN_INPUTS, names, only={"cluster_id": chosen})
    topics, (snapshot_id, *_) = dictionary(found["topic"]), dictionary(found["snapshot_id"]).names
    paths, log_dirs, in_sync = _of_snapshot(where, snapshot_id, topics, found)
    special, has_jumped = _special(where, chosen, statistic, topics, found)
    sizes, rates = special.get("size_bytes"), special.get("write_bytes_per_s")
    reason_names, reasons = _reasons(dictionary(found["verdict"]), statistic, rates, has_jumped)
    replicas = ReplicaColumns(
        topic_names=topics.names,
        topics=topics.codes,
        partitions=_ints(found["partition"]),
        brokers=_ints(found["broker"]),
        positions=_ints(found["position"]),
        is_reassigning=np.asarray(found["is_reassigning"], np.bool_),
        size_bytes=_instead(sizes, found["size_bytes"]),
        write_bytes_per_s=_instead(rates, found["write_bytes_per_s"]),
        paths=paths,
        log_dirs=log_dirs,
        read_bytes_per_s=_measured("read_bytes_per_s", rates, found),
        leader_cpu=_measured("cpu_share", rates, found),
        follower_cpu=_measured("follower_cpu_share", rates, found),
        in_sync=in_sync,
    )
    is_leader = np.asarray(found["is_leader"], np.bool_)
    replicas = replace(replicas, is_leaderless=~np.isin(replicas.keys, replicas.keys[is_leader]))
    return PlanColumns(chosen, snapshot_id, replicas, is_leader, reason_names, reasons)


def read_last_hour(where: Where, cluster: str) -> int | None:
    """Start of the last hour with samples of a cluster, ms; None if the tables have no hours."""
    if not has_table(where, LOAD_HOURS):
        return None
    hours = np.asarray(read_columns(where, LOAD_HOURS, ("hour_ms",), only={"cluster_id": cluster})["hour_ms"])
    return int(hours.max()) if len(hours) else None


def read_forecast_basis(where: Where, cluster: str) -> ForecastBasis | None:
    """Horizon, interval ratios and backtest of a cluster's forecast; None without a forecast."""
    if not has_table(where, FORECAST):
        return None
    names = ("horizon_days", "write_bytes_per_s", "low_write_bytes_per_s", "high_write_bytes_per_s")
    columns = read_columns(where, FORECAST, names, only={"cluster_id": cluster})
    horizon, middle, low, high = (np.asarray(columns[name], np.float64) for name in names)
    if not len(horizon):
        return None
    known = (middle > 0) & ~np.isnan(low) & ~np.isnan(high)
    low_ratio, high_ratio = (
        float(np.median(end[known] / middle[known])) if known.any() else None for end in (low, high)
    )
    tested = read_rows(where, BACKTESTS, only={"cluster_id": cluster}) if has_table(where, BACKTESTS) else []
    backtest = {
        "tested_partitions": sum(row["partition_count"] for row in tested),
        **{name: row[name] for row in tested for name in ("median_error", "covered_share")},
    }
    return ForecastBasis(float(horizon[0]), low_ratio, high_ratio, **backtest)


def _measured(
    name: str, rates: npt.NDArray[np.float64] | None, found: dict[str, ColumnArray]
) -> npt.NDArray[np.float64]:
    """Brokers' measurements; for another write rate than the mean they are scaled in proportion."""
    means, mean = np.asarray(found[name], np.float64), np.asarray(found["write_bytes_per_s"], np.float64)
    if rates is None:
        return means
    with np.errstate(divide="ignore", invalid="ignore"):
        factors = np.where((mean > 0) & ~np.isnan(rates), rates / mean, 1.0)
    return means * factors


def read_topic_ids(where: Where, snapshot_id: str) -> dict[str, str]:
    """Ids of a snapshot's topics by name, as far as brokers reported them; empty if no table has the snapshot."""
    if not has_table(where, PARTITIONS):
        return {}
    found = read_columns(where, PARTITIONS, ("topic", "topic_id"), only={"snapshot_id": snapshot_id})
    topics, ids = dictionary(found["topic"]), dictionary(found["topic_id"])
    pairs = np.unique(np.stack([topics.codes, ids.codes]), axis=1)
    return {topics.names[topic]: ids.names[topic_id] for topic, topic_id in pairs.T.tolist() if topic_id >= 0}


def planned_clusters(where: Where) -> tuple[str, ...]:
    """Cluster ids in table `plan_inputs`, sorted. Raises DataError if the table is missing."""
    return dictionary(read_columns(where, PLAN_INPUTS, ("cluster_id",))["cluster_id"]).names


def _chosen(where: Where, wanted: str | None) -> str:
    clusters = planned_clusters(where)
    if wanted is None and len(clusters) > 1:
        raise InputError(f"the tables hold several clusters; choose with --cluster one of {', '.join(clusters)}")
    if wanted not in (None, *clusters):
        raise DataError(f"the tables hold nothing of cluster {wanted}, only of {', '.join(clusters)}")
    return wanted or clusters[0]


def _of_snapshot(
    where: Where, snapshot_id: str, topics: Dictionary, found: dict[str, ColumnArray]
) -> tuple[tuple[str, ...], npt.NDArray[np.int32], npt.NDArray[np.bool_] | None]:
    """Log directory of each replica, and whether it is in sync, by its key among the replicas of the snapshot."""
    unknown = (), np.full(len(topics.codes), -1, np.int32), None
    if not has_table(where, REPLICAS):
        return unknown
    told = read_columns(where, REPLICAS, (*_KEY, "log_dir", "is_in_sync"), only={"snapshot_id": snapshot_id})
    paths = dictionary(told["log_dir"])
    if not len(paths.codes):
        return unknown
    own = topics.codes.astype(np.int64), _column(found, "partition"), _column(found, "broker")
    theirs = dictionary(told["topic"]).codes_in(topics.names), _column(told, "partition"), _column(told, "broker")
    places = places_of_keys(*_numbered(theirs, own))
    in_sync = None if (places < 0).any() else np.asarray(told["is_in_sync"], np.bool_)[places]
    return paths.names, np.append(paths.codes, np.int32(-1))[places].astype(np.int32), in_sync


_Numbers = npt.NDArray[np.int64]


def _numbered(one: Sequence[_Numbers], other: Sequence[_Numbers]) -> tuple[_Numbers, _Numbers]:
    """A number per replica of each, equal for equal keys. Ids of brokers are of any size, but there are not so many."""
    numbers = np.zeros(len(one[0]) + len(other[0]), np.int64)
    for column in map(np.concatenate, zip(one, other, strict=True)):
        _, codes = np.unique(column, return_inverse=True)
        numbers = numbers * (codes.max(initial=0) + 1) + codes
    return numbers[: len(one[0])], numbers[len(one[0]) :]


def _column(columns: dict[str, ColumnArray], name: str) -> _Numbers:
    return np.asarray(columns[name], np.int64)


def _special(
    where: Where, cluster: str, statistic: str, topics: Dictionary, found: dict[str, ColumnArray]
) -> tuple[dict[str, npt.NDArray[np.float64]], npt.NDArray[np.bool_]]:
    """Columns of the load to plan by, keyed by the column of the mean that they replace; NaN where unknown.

    And a mask of the replicas whose forecast is in doubt, if it is a forecast.
    """
    plain = {name: np.asarray(found[other], np.float64) for name, other in STATISTICS.get(statistic, {}).items()}
    if not statistic.startswith("forecast") or (statistic != FORECAST_HIGH and not has_table(where, FORECAST)):
        return plain, np.zeros(len(topics.codes), np.bool_)
    key = ("topic", "partition")
    ahead = read_columns(where, FORECAST, (*key, "basis", *_HIGH.values()), only={"cluster_id": cluster})
    theirs = dictionary(ahead["topic"]).codes_in(topics.names) << 32 | np.asarray(ahead["partition"], np.int64)
    wanted = topics.codes.astype(np.int64) << 32 | np.asarray(found["partition"], np.int64)
    places = places_of_keys(theirs, wanted)
    basis = dictionary(ahead["basis"])
    is_jump = np.array([name == forecast.JUMPED for name in basis.names], np.bool_)[basis.codes]
    high = {name: np.append(np.asarray(ahead[end], np.float64), np.nan)[places] for name, end in _HIGH.items()}
    return high if statistic == FORECAST_HIGH else plain, np.append(is_jump, [False])[places]


def _instead(special: npt.NDArray[np.float64] | None, column: ColumnArray) -> npt.NDArray[np.float64]:
    plain = np.asarray(column, np.float64)
    return plain if special is None else np.where(np.isnan(special), plain, special)


def _reasons(
    verdicts: Dictionary,
    statistic: str,
    rates: npt.NDArray[np.float64] | None,
    has_jumped: npt.NDArray[np.bool_],
) -> tuple[tuple[str, ...], npt.NDArray[np.int32]]:
    """Reasons for doubt: the verdict, else that the load to plan by is unknown, or a forecast of a new level."""
    names = (*verdicts.names, f"no {statistic}", JUMPED)
    is_enough = verdicts.codes == (names.index(ENOUGH) if ENOUGH in names else len(names))
    reasons = np.where(is_enough, np.where(has_jumped, len(names) - 1, -1), verdicts.codes)
    if rates is not None:
        reasons = np.where(is_enough & np.isnan(rates), len(names) - 2, reasons)
    return names, reasons.astype(np.int32)


def _ints(column: ColumnArray) -> npt.NDArray[np.int32]:
    return np.asarray(column, np.int32)
