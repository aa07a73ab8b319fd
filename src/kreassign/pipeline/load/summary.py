"""The tables of a load → what they say of each cluster, in a few figures. Needs no Spark.

Rules:

- Sums are of what is known, and say of how many partitions.
- A partition is doubtful when its `verdict` is not `enough`; why, is told with the figure that decided.
- Doubtful partitions come by their weight: the larger of their shares of the cluster's size and rate.
- Brokers come by the CPU of their busiest hour, those that do not tell it by the bytes of theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from kreassign.errors import DataError
from kreassign.model.load_summary import (
    Doubtful,
    Expected,
    LoadBefore,
    LoadSummary,
    LoadTotals,
    MeasuredBroker,
    Outlook,
    PartitionLoad,
    TopicLoad,
)
from kreassign.pipeline.tables.parquet import ColumnArray, Dictionary, Where, has_table, read_columns, read_rows
from kreassign.pipeline.tables.schemas import BROKER_LOADS, CLUSTERS, FORECAST, LOAD_MODEL, PLAN_INPUTS

ENOUGH = "enough"
MOST_COVERED = 0.9
"""With more of the time covered it is not gaps in time that make a rate doubtful: `load_model.py`."""
_COLUMNS = (
    "snapshot_id", "topic", "partition", "size_bytes", "bytes_per_record", "write_bytes_per_s",
    "recent_write_bytes_per_s", "p95_write_bytes_per_s", "peak_write_bytes_per_s", "peak_hour", "span_s",
    "covered_share", "coverage", "verdict",
)  # fmt: skip
EXPECTED = {name: (name, f"low_{name}", f"high_{name}") for name in ("size_bytes", "write_bytes_per_s")}
"""Figures of table `forecast`, and their columns: the figure, and both ends of its interval."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class LoadColumns:
    """Table `load_model` of one cluster as arrays: one entry per partition, by topic and number; NaN for NULL."""

    cluster_id: str
    snapshot_id: str
    topic_names: tuple[str, ...]
    topics: npt.NDArray[np.int32]
    partitions: npt.NDArray[np.int64]
    figures: Mapping[str, Floats]
    words: Mapping[str, Dictionary]

    def name(self, place: int) -> str:
        """The partition at this place, as `topic-number`."""
        return f"{self.topic_names[self.topics[place]]}-{self.partitions[place]}"


def loaded_clusters(where: Where) -> tuple[str, ...]:
    """The clusters that table `load_model` is about, sorted. Raises DataError when it is missing."""
    return dictionary(read_columns(where, LOAD_MODEL, ("cluster_id",))["cluster_id"]).names


def load_columns(where: Where, cluster_id: str) -> LoadColumns:
    """Table `load_model` of a cluster. Raises DataError when it is missing, or holds nothing of this cluster."""
    found = read_columns(where, LOAD_MODEL, _COLUMNS, only={"cluster_id": cluster_id})
    topics, snapshots = dictionary(found["topic"]), dictionary(found["snapshot_id"])
    if not snapshots.names:
        others = ", ".join(loaded_clusters(where))
        raise DataError(f"the tables hold nothing of cluster {cluster_id}, only of {others}")
    order = np.lexsort((ints(found["partition"]), topics.codes))
    words = {name: dictionary(found[name]) for name in ("coverage", "verdict")}
    numbers = [name for name, column in found.items() if not isinstance(column, Dictionary) and name != "partition"]
    return LoadColumns(
        cluster_id,
        snapshots.names[-1],
        topics.names,
        topics.codes[order],
        ints(found["partition"])[order],
        {name: floats(found[name])[order] for name in numbers},
        {name: Dictionary(each.names, each.codes[order]) for name, each in words.items()},
    )


def summary(
    where: Where, loads: LoadColumns, top: int, *, load_ms: int | None = None, before: LoadBefore | None = None
) -> LoadSummary:
    """What the tables say of a cluster; lists have `top` entries at most. `load_ms` and `before` are passed on."""
    only = {"cluster_id": loads.cluster_id}
    size, rate = loads.figures["size_bytes"], loads.figures["write_bytes_per_s"]
    by_topic, brokers = _topics(loads), _measured_brokers(where, only)
    return LoadSummary(
        cluster_id=loads.cluster_id,
        snapshot_id=loads.snapshot_id,
        taken_ms=_taken_ms(where, loads.snapshot_id),
        load_ms=load_ms,
        totals=totals(where, loads),
        before=before,
        outlook=_outlook(where, only),
        coverage=_counts(loads.words["coverage"]),
        verdicts=_counts(loads.words["verdict"]),
        busiest=partition_loads(loads, largest(rate, top)),
        largest=partition_loads(loads, largest(size, top)),
        busiest_topics=_largest_topics(by_topic, "write_bytes_per_s", top),
        largest_topics=_largest_topics(by_topic, "size_bytes", top),
        doubtful=_doubtful(loads, top),
        measured_broker_count=len(brokers),
        measured_brokers=tuple(brokers[:top]),
    )


def partition_loads(loads: LoadColumns, places: npt.NDArray[np.intp]) -> tuple[PartitionLoad, ...]:
    """The partitions at these places."""
    return tuple(_partition_load(loads, place) for place in places.tolist())


def busiest_partitions(loads: LoadColumns, top: int | None = None) -> tuple[PartitionLoad, ...]:
    """All partitions, or `top`: the busiest first, then those that are idle or whose rate is not known."""
    rate = loads.figures["write_bytes_per_s"]
    return partition_loads(loads, np.argsort(np.where(np.isnan(rate), np.inf, -rate), kind="stable")[:top])


def largest(amounts: Floats, top: int) -> npt.NDArray[np.intp]:
    """The places of the largest amounts that are more than 0, the largest first; of equal ones the first."""
    order = np.argsort(-np.nan_to_num(amounts), kind="stable")[:top]
    return order[np.nan_to_num(amounts[order]) > 0]


def doubt(verdict: str, coverage: str, span_s: float, covered_share: float) -> str | None:
    """Why there is not enough data to plan with, from a row of `load_model`; None if there is."""
    match verdict:
        case "enough":
            return None
        case "short":
            return f"measured for {_span(span_s)}, less than a day"
        case "gaps" if covered_share < MOST_COVERED:
            return f"{1 - covered_share:.0%} of the time is missing"
        case "gaps":
            return "sizes or good samples are missing"
        case "unknown":
            return f"no rate: {coverage}"
        case _:
            return verdict


def _span(seconds: float) -> str:
    """A time of less than a day."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def dictionary(column: ColumnArray) -> Dictionary:
    """A column of texts."""
    assert isinstance(column, Dictionary)
    return column


def ints(column: ColumnArray) -> npt.NDArray[np.int64]:
    """A column of whole numbers, none of which is NULL."""
    return np.asarray(column, np.int64)


def floats(column: ColumnArray) -> Floats:
    """A column of numbers, NaN for NULL."""
    return np.asarray(column, np.float64)


def known(value: float) -> float | None:
    """NaN as None."""
    return None if np.isnan(value) else float(value)


def _partition_load(loads: LoadColumns, place: int) -> PartitionLoad:
    figures = {name: known(column[place]) for name, column in loads.figures.items()}
    words = {name: each.names[each.codes[place]] for name, each in loads.words.items()}
    hour = figures["peak_hour"]
    return PartitionLoad(
        topic=loads.topic_names[loads.topics[place]],
        partition=int(loads.partitions[place]),
        size_bytes=figures["size_bytes"],
        write_bytes_per_s=figures["write_bytes_per_s"],
        p95_write_bytes_per_s=figures["p95_write_bytes_per_s"],
        peak_write_bytes_per_s=figures["peak_write_bytes_per_s"],
        peak_hour=None if hour is None else int(hour),
        coverage=words["coverage"],
        verdict=words["verdict"],
        doubt=doubt(words["verdict"], words["coverage"], figures["span_s"] or 0.0, figures["covered_share"] or 0.0),
    )


def totals(where: Where, loads: LoadColumns) -> LoadTotals:
    """A cluster as a whole."""
    size, rate = loads.figures["size_bytes"], loads.figures["write_bytes_per_s"]
    return LoadTotals(
        partition_count=len(loads.partitions),
        topic_count=len(loads.topic_names),
        known_size_count=int((~np.isnan(size)).sum()),
        known_rate_count=int((~np.isnan(rate)).sum()),
        size_bytes=float(np.nansum(size)),
        replica_bytes=_replica_bytes(where, {"cluster_id": loads.cluster_id}),
        write_bytes_per_s=_sum(rate),
        recent_write_bytes_per_s=_sum(loads.figures["recent_write_bytes_per_s"]),
    )


def _sum(amounts: Floats) -> float | None:
    """The sum of those that are known; None without any."""
    return None if np.isnan(amounts).all() else float(np.nansum(amounts))


def _counts(column: Dictionary) -> dict[str, int]:
    counts = np.bincount(column.codes, minlength=len(column.names))
    return dict(zip(column.names, counts.tolist(), strict=True))


def _topics(loads: LoadColumns) -> tuple[TopicLoad, ...]:
    size, rate = loads.figures["size_bytes"], loads.figures["write_bytes_per_s"]
    count = len(loads.topic_names)

    def sums(amounts: Floats) -> tuple[Floats, npt.NDArray[np.int64]]:
        amount = np.bincount(loads.topics, np.nan_to_num(amounts), count).astype(np.float64)
        return amount, np.bincount(loads.topics, ~np.isnan(amounts), count).astype(np.int64)

    (sizes, known_sizes), (rates, known_rates) = sums(size), sums(rate)
    partitions = np.bincount(loads.topics, minlength=count)
    return tuple(
        TopicLoad(
            name,
            int(partitions[place]),
            int(known_rates[place]),
            float(sizes[place]) if known_sizes[place] else None,
            float(rates[place]) if known_rates[place] else None,
        )
        for place, name in enumerate(loads.topic_names)
    )


def _largest_topics(topics: tuple[TopicLoad, ...], figure: str, top: int) -> tuple[TopicLoad, ...]:
    amounts = np.array([getattr(topic, figure) or 0.0 for topic in topics])
    return tuple(topics[place] for place in largest(amounts, top).tolist())


def _doubtful(loads: LoadColumns, top: int) -> Doubtful:
    verdicts = loads.words["verdict"]
    is_doubtful = np.array([name != ENOUGH for name in verdicts.names], np.bool_)[verdicts.codes]
    size, rate = (_shares(loads.figures[name]) for name in ("size_bytes", "write_bytes_per_s"))
    weight = np.where(is_doubtful, np.fmax(np.nan_to_num(size), np.nan_to_num(rate)), -1.0)
    order = np.argsort(-weight, kind="stable")[: min(top, int(is_doubtful.sum()))]
    shares = [float(np.nansum(each[is_doubtful])) if np.nansum(each) else None for each in (size, rate)]
    return Doubtful(int(is_doubtful.sum()), shares[0], shares[1], partition_loads(loads, order))


def _shares(amounts: Floats) -> Floats:
    total = np.nansum(amounts)
    return amounts / total if total > 0 else np.zeros_like(amounts)


def _outlook(where: Where, only: Mapping[str, object]) -> Outlook | None:
    if not has_table(where, FORECAST):
        return None
    names = ("horizon_days", *(name for three in EXPECTED.values() for name in three))
    columns = read_columns(where, FORECAST, names, only=only)
    found = {name: np.asarray(each, np.float64) for name, each in columns.items()}
    if not len(found["horizon_days"]):
        return None
    of = {name: expected(*(_sum(found[each]) for each in three)) for name, three in EXPECTED.items()}
    return Outlook(float(found["horizon_days"][0]), of["size_bytes"], of["write_bytes_per_s"])


def _measured_brokers(where: Where, only: Mapping[str, object]) -> list[MeasuredBroker]:
    """What brokers measured of themselves, those with most to do first; none where no metrics came."""
    if not has_table(where, BROKER_LOADS):
        return []
    names = [field.name for field in fields(MeasuredBroker)]
    found = [MeasuredBroker(**{name: row[name] for name in names}) for row in read_rows(where, BROKER_LOADS, only=only)]
    return sorted(found, key=lambda one: (-(one.peak_cpu_share or 0.0), -_peak_bytes_per_s(one), one.broker))


def _peak_bytes_per_s(broker: MeasuredBroker) -> float:
    return (broker.peak_bytes_in_per_s or 0.0) + (broker.peak_bytes_out_per_s or 0.0)


def expected(value: float | None, low: float | None, high: float | None) -> Expected | None:
    """A forecast with its interval, if all of it is known."""
    return None if value is None or low is None or high is None else Expected(value, low, high)


def _replica_bytes(where: Where, only: Mapping[str, object]) -> float | None:
    if not has_table(where, PLAN_INPUTS):
        return None
    return _sum(np.asarray(read_columns(where, PLAN_INPUTS, ("size_bytes",), only=only)["size_bytes"], np.float64))


def _taken_ms(where: Where, snapshot_id: str) -> int | None:
    if not has_table(where, CLUSTERS):
        return None
    rows = read_rows(where, CLUSTERS, only={"snapshot_id": snapshot_id})
    return rows[0]["taken_ms"] if rows else None
