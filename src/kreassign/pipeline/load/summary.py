"""Summarize the tables of a load: figures of each cluster, curves, completeness of the last day, results at its end.

Needs no Spark.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt
import pyarrow.dataset as ds

from kreassign.errors import DataError
from kreassign.model import load
from kreassign.model.text import HOUR_MS, counted
from kreassign.pipeline.tables import schemas
from kreassign.pipeline.tables.parquet import (
    ColumnArray,
    Dictionary,
    Where,
    column_arrays,
    dictionary,
    has_table,
    log_of,
    places_of_keys,
    read_columns,
    read_rows,
    read_table,
    rows_in,
)

# Figures of each cluster.
#
# Rules:
#
# - Sums are over known values, and give the number of their partitions.
# - A partition is doubtful if its `verdict` is not `enough`; the deciding figure is shown with the reason.
# - Doubtful partitions are sorted by weight: the larger of their shares of the cluster's size and rate.
# - Brokers are sorted by the CPU of their busiest hour; those without CPU metrics by its bytes.

ENOUGH = "enough"
MOST_COVERED = 0.9
"""With a larger covered share, the doubt does not come from gaps in time: `load_model.py`."""
_LOAD_COLUMNS = (
    "snapshot_id", "topic", "partition", "size_bytes", "bytes_per_record", "write_bytes_per_s",
    "recent_write_bytes_per_s", "p95_write_bytes_per_s", "peak_write_bytes_per_s", "peak_hour", "span_s",
    "covered_share", "coverage", "verdict",
)  # fmt: skip
EXPECTED = {name: (name, f"low_{name}", f"high_{name}") for name in ("size_bytes", "write_bytes_per_s")}
"""Figures of tables `forecast` and `backtests`, and their columns: the figure, and both ends of its interval."""

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
        """Name of the partition at this index, as `topic-number`."""
        return f"{self.topic_names[self.topics[place]]}-{self.partitions[place]}"


def loaded_clusters(where: Where) -> tuple[str, ...]:
    """Cluster ids in table `load_model`, sorted. Raises DataError if the table is missing."""
    return dictionary(read_columns(where, schemas.LOAD_MODEL, ("cluster_id",))["cluster_id"]).names


def load_columns(where: Where, cluster_id: str) -> LoadColumns:
    """Read table `load_model` of a cluster. Raises DataError if it is missing, or has nothing of this cluster."""
    found = read_columns(where, schemas.LOAD_MODEL, _LOAD_COLUMNS, only={"cluster_id": cluster_id})
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
    where: Where, loads: LoadColumns, top: int, *, load_ms: int | None = None, before: load.LoadBefore | None = None
) -> load.LoadSummary:
    """Summarize the tables of a cluster; lists have up to `top` entries. `load_ms` and `before` are passed on."""
    only = {"cluster_id": loads.cluster_id}
    size, rate = loads.figures["size_bytes"], loads.figures["write_bytes_per_s"]
    by_topic, brokers = _topics(loads), _measured_brokers(where, only)
    return load.LoadSummary(
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


def partition_loads(loads: LoadColumns, places: npt.NDArray[np.intp]) -> tuple[load.PartitionLoad, ...]:
    """Loads of the partitions at these indices."""
    return tuple(_partition_load(loads, place) for place in places.tolist())


def busiest_partitions(loads: LoadColumns, top: int | None = None) -> tuple[load.PartitionLoad, ...]:
    """All partitions, or `top`: the busiest first, idle ones and those of unknown rate last."""
    rate = loads.figures["write_bytes_per_s"]
    return partition_loads(loads, np.argsort(np.where(np.isnan(rate), np.inf, -rate), kind="stable")[:top])


def largest(amounts: Floats, top: int) -> npt.NDArray[np.intp]:
    """Indices of up to `top` amounts above 0, the largest first; of equal ones the first."""
    order = np.argsort(-np.nan_to_num(amounts), kind="stable")[:top]
    return order[np.nan_to_num(amounts[order]) > 0]


def doubt(verdict: str, coverage: str, span_s: float, covered_share: float) -> str | None:
    """Why the data is not enough to plan with, from a row of `load_model`; None if it is enough."""
    match verdict:
        case "enough":
            return None
        case "short":
            return f"measured for {_span(span_s)}, less than a day"
        case "gaps" if covered_share < MOST_COVERED:
            return f"{1 - covered_share:.0%} of the time is missing"
        case "unknown":
            return f"no rate: {coverage}"
        case _:
            return _DOUBTS.get(verdict, verdict)


_DOUBTS = {
    "gaps": "sizes or good samples are missing",
    "doubtful": "sizes contradict the records written: they may be those of another replica",
}


def _span(seconds: float) -> str:
    """Text of a time of less than a day."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def ints(column: ColumnArray) -> npt.NDArray[np.int64]:
    """A column of whole numbers without NULL, as int64."""
    return np.asarray(column, np.int64)


def floats(column: ColumnArray) -> Floats:
    """A column of numbers as float64, NaN for NULL."""
    return np.asarray(column, np.float64)


def known(value: float) -> float | None:
    """Return None for NaN."""
    return None if np.isnan(value) else float(value)


def _partition_load(loads: LoadColumns, place: int) -> load.PartitionLoad:
    figures = {name: known(column[place]) for name, column in loads.figures.items()}
    words = {name: each.names[each.codes[place]] for name, each in loads.words.items()}
    hour = figures["peak_hour"]
    return load.PartitionLoad(
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


def totals(where: Where, loads: LoadColumns) -> load.LoadTotals:
    """Totals of a cluster."""
    size, rate = loads.figures["size_bytes"], loads.figures["write_bytes_per_s"]
    return load.LoadTotals(
        partition_count=len(loads.partitions),
        topic_count=len(loads.topic_names),
        known_size_count=int((~np.isnan(size)).sum()),
        known_rate_count=int((~np.isnan(rate)).sum()),
        size_bytes=_sum(size),
        replica_bytes=_replica_bytes(where, {"cluster_id": loads.cluster_id}),
        write_bytes_per_s=_sum(rate),
        recent_write_bytes_per_s=_sum(loads.figures["recent_write_bytes_per_s"]),
        sampled_s=float(np.nan_to_num(loads.figures["span_s"]).max(initial=0.0)),
    )


def _sum(amounts: Floats) -> float | None:
    """Sum of the known amounts; None if all are unknown."""
    return None if np.isnan(amounts).all() else float(np.nansum(amounts))


def _counts(column: Dictionary) -> dict[str, int]:
    counts = np.bincount(column.codes, minlength=len(column.names))
    return dict(zip(column.names, counts.tolist(), strict=True))


def _topics(loads: LoadColumns) -> tuple[load.TopicLoad, ...]:
    size, rate = loads.figures["size_bytes"], loads.figures["write_bytes_per_s"]
    count = len(loads.topic_names)

    def sums(amounts: Floats) -> tuple[Floats, npt.NDArray[np.int64]]:
        amount = np.bincount(loads.topics, np.nan_to_num(amounts), count).astype(np.float64)
        return amount, np.bincount(loads.topics, ~np.isnan(amounts), count).astype(np.int64)

    (sizes, known_sizes), (rates, known_rates) = sums(size), sums(rate)
    partitions = np.bincount(loads.topics, minlength=count)
    return tuple(
        load.TopicLoad(
            name,
            int(partitions[place]),
            int(known_rates[place]),
            float(sizes[place]) if known_sizes[place] else None,
            float(rates[place]) if known_rates[place] else None,
        )
        for place, name in enumerate(loads.topic_names)
    )


def _largest_topics(topics: tuple[load.TopicLoad, ...], figure: str, top: int) -> tuple[load.TopicLoad, ...]:
    amounts = np.array([getattr(topic, figure) or 0.0 for topic in topics])
    return tuple(topics[place] for place in largest(amounts, top).tolist())


def _doubtful(loads: LoadColumns, top: int) -> load.Doubtful:
    verdicts = loads.words["verdict"]
    is_doubtful = np.array([name != ENOUGH for name in verdicts.names], np.bool_)[verdicts.codes]
    size, rate = (_shares(loads.figures[name]) for name in ("size_bytes", "write_bytes_per_s"))
    weight = np.where(is_doubtful, np.fmax(np.nan_to_num(size), np.nan_to_num(rate)), -1.0)
    order = np.argsort(-weight, kind="stable")[: min(top, int(is_doubtful.sum()))]
    shares = [float(np.nansum(each[is_doubtful])) if np.nansum(each) else None for each in (size, rate)]
    return load.Doubtful(int(is_doubtful.sum()), shares[0], shares[1], partition_loads(loads, order))


def _shares(amounts: Floats) -> Floats:
    total = np.nansum(amounts)
    return amounts / total if total > 0 else np.zeros_like(amounts)


def _outlook(where: Where, only: Mapping[str, object]) -> load.Outlook | None:
    rows = read_rows(where, schemas.BACKTESTS, only=only) if has_table(where, schemas.BACKTESTS) else []
    if not rows:
        return None
    of = {name: expected(*(rows[0][each] for each in three)) for name, three in EXPECTED.items()}
    return load.Outlook(rows[0]["horizon_days"], of["size_bytes"], of["write_bytes_per_s"])


def _measured_brokers(where: Where, only: Mapping[str, object]) -> list[load.MeasuredBroker]:
    """Brokers' own metrics, the busiest first; empty without metrics."""
    if not has_table(where, schemas.BROKER_LOADS):
        return []
    names = [field.name for field in fields(load.MeasuredBroker)]
    found = [
        load.MeasuredBroker(**{name: row[name] for name in names})
        for row in read_rows(where, schemas.BROKER_LOADS, only=only)
    ]
    return sorted(found, key=lambda one: (-(one.peak_cpu_share or 0.0), -_peak_bytes_per_s(one), one.broker))


def _peak_bytes_per_s(broker: load.MeasuredBroker) -> float:
    return (broker.peak_bytes_in_per_s or 0.0) + (broker.peak_bytes_out_per_s or 0.0)


def expected(value: float | None, low: float | None, high: float | None) -> load.Expected | None:
    """A forecast with its interval; None unless all of it is known."""
    return None if value is None or low is None or high is None else load.Expected(value, low, high)


def _replica_bytes(where: Where, only: Mapping[str, object]) -> float | None:
    if not has_table(where, schemas.PLAN_INPUTS):
        return None
    return _sum(
        np.asarray(read_columns(where, schemas.PLAN_INPUTS, ("size_bytes",), only=only)["size_bytes"], np.float64)
    )


def _taken_ms(where: Where, snapshot_id: str) -> int | None:
    if not has_table(where, schemas.CLUSTERS):
        return None
    rows = read_rows(where, schemas.CLUSTERS, only={"snapshot_id": snapshot_id})
    return rows[0]["taken_ms"] if rows else None


# Curves: by hour of the day, by day with the forecast, and the skew of topics.
#
# Needs no Spark. Rules:
#
# - Rates are records per second of `load_hours` times the `bytes_per_record` of the partition, as in `load_model`;
#   only hours since the log was last reset count.
# - A partition unmeasured in an hour of the day, or for a whole day, counts there with its mean when partitions are
#   added up, so that a gap of one partition does not look like a drop of the sum.
# - Days are counted back from the last measured hour of the cluster, as in `forecast.py`. A day is whole when nine
#   tenths of it were measured. A sum has a point for a day when partitions with half of all writes have it.

HOURS_A_DAY = 24
SHOWN_DAYS = 28
_WHOLE_DAY_S = 0.9 * 86_400
_HALF = 0.5
_HOUR_COLUMNS = ("topic", "partition", "epoch", "hour_ms", "seconds", "new_records")
_RATE = "write_bytes_per_s"


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """Mean rates by partition, bytes per second: by hour of the day, and by age in days; NaN where unmeasured."""

    hours: Floats
    days: Floats


def charts(where: Where, loads: LoadColumns, top: int) -> load.LoadCharts:
    """Curves of a cluster, with up to `top` brokers, partitions and topics."""
    rate = loads.figures[_RATE]
    measured = _measured(where, loads)
    busiest = largest(rate, top)
    ahead, horizon_days = _forecast(where, loads)
    total = _outlook(where, {"cluster_id": loads.cluster_id})
    everything = np.arange(len(loads.partitions))
    return load.LoadCharts(
        brokers=_broker_curves(where, loads, measured, top),
        partitions=tuple(
            load.DailyCurve(loads.name(place), _values(measured.hours[place])) for place in busiest.tolist()
        ),
        cluster=_history(
            "all partitions", loads, measured, everything, total.write_bytes_per_s if total else None, horizon_days
        ),
        histories=tuple(
            _history(loads.name(place), loads, measured, np.array([place]),
                     expected(*(known(column[place]) for column in ahead.values())), horizon_days)
            for place in busiest.tolist()
        ),
        skew=_skew(where, loads, top),
    )  # fmt: skip


def _measured(where: Where, loads: LoadColumns) -> Measured:
    count = len(loads.partitions)
    if not has_table(where, schemas.LOAD_HOURS):
        nothing = np.full((count, HOURS_A_DAY), np.nan), np.full((count, SHOWN_DAYS), np.nan)
        return Measured(*nothing)
    found = read_columns(where, schemas.LOAD_HOURS, _HOUR_COLUMNS, only={"cluster_id": loads.cluster_id})
    places = places_of(loads, found)
    epoch = ints(found["epoch"])
    latest = np.full(count + 1, -1)
    np.maximum.at(latest, places, epoch)
    counts = (places >= 0) & (epoch == latest[places])
    place, hour = places[counts], (ints(found["hour_ms"]) // HOUR_MS)[counts]
    seconds = floats(found["seconds"])[counts]
    per_record = loads.figures["bytes_per_record"][place]
    records = floats(found["new_records"])[counts]
    written = np.where(records == 0, 0.0, records * per_record)
    age = (hour.max() - hour) // HOURS_A_DAY if len(hour) else hour
    is_recent = age < SHOWN_DAYS
    days = _sums(place[is_recent], age[is_recent], written[is_recent], seconds[is_recent], (count, SHOWN_DAYS))
    return Measured(
        hours=_rates(*_sums(place, hour % HOURS_A_DAY, written, seconds, (count, HOURS_A_DAY)), least_s=0.0),
        days=_rates(*days, least_s=_WHOLE_DAY_S),
    )


def places_of(loads: LoadColumns, rows: dict[str, ColumnArray]) -> npt.NDArray[np.intp]:
    """Index of each row's partition in `loads`; -1 for partitions that the load lacks."""
    keys = (loads.topics.astype(np.int64) << 32) + loads.partitions
    codes = dictionary(rows["topic"]).codes_in(loads.topic_names)
    return places_of_keys(keys, (codes << 32) + ints(rows["partition"]))


def _sums(
    places: npt.NDArray[np.intp],
    slots: npt.NDArray[np.int64],
    written: Floats,
    seconds: Floats,
    shape: tuple[int, int],
) -> tuple[Floats, Floats]:
    """Sum up bytes and seconds by partition and slot."""
    flat, total = places * shape[1] + slots, shape[0] * shape[1]
    sums = [np.bincount(flat, each, total).astype(np.float64).reshape(shape) for each in (written, seconds)]
    return sums[0], sums[1]


def _rates(written: Floats, seconds: Floats, *, least_s: float) -> Floats:
    is_measured = (seconds > 0) & (seconds >= least_s)
    rates: Floats = np.divide(written, seconds, out=np.full(seconds.shape, np.nan), where=is_measured)
    return rates


def _broker_curves(where: Where, loads: LoadColumns, measured: Measured, top: int) -> tuple[load.DailyCurve, ...]:
    """Producers' writes to the partitions that each broker leads, for the `top` brokers."""
    if not has_table(where, schemas.PLAN_INPUTS):
        return ()
    only = {"cluster_id": loads.cluster_id, "is_leader": True}
    found = read_columns(where, schemas.PLAN_INPUTS, ("topic", "partition", "broker"), only=only)
    places, brokers = places_of(loads, found), ints(found["broker"])
    leading = [(int(broker), places[(brokers == broker) & (places >= 0)]) for broker in np.unique(brokers)]
    rates = np.array([np.nansum(loads.figures[_RATE][led]) for _, led in leading])
    return tuple(
        load.DailyCurve(
            f"broker {leading[place][0]}", _values(_rate_sum(loads, measured.hours, leading[place][1], least=0.0))
        )
        for place in largest(rates, top).tolist()
    )


def _rate_sum(loads: LoadColumns, rates: Floats, places: npt.NDArray[np.intp], *, least: float) -> Floats:
    """Sum of these partitions' rates; NaN where the measured ones have a smaller share than `least`."""
    mean = np.nan_to_num(loads.figures[_RATE][places])[:, None]
    is_measured = ~np.isnan(rates[places])
    measured_share = (mean * is_measured).sum(axis=0) / (mean.sum() or 1.0)
    total = np.where(is_measured, rates[places], mean).sum(axis=0)
    return np.where(is_measured.any(axis=0) & (measured_share >= least), total, np.nan)


def _history(
    name: str,
    loads: LoadColumns,
    measured: Measured,
    places: npt.NDArray[np.intp],
    ahead: load.Expected | None,
    horizon_days: float,
) -> load.History:
    days = _rate_sum(loads, measured.days, places, least=_HALF)
    recent = loads.figures["recent_write_bytes_per_s"][places]
    return load.History(
        name=name,
        days=tuple((age, float(days[age])) for age in reversed(range(SHOWN_DAYS)) if not np.isnan(days[age])),
        now=known(np.nan if np.isnan(recent).all() else np.nansum(recent)),
        horizon_days=horizon_days,
        expected=ahead,
    )


def _forecast(where: Where, loads: LoadColumns) -> tuple[dict[str, Floats], float]:
    """Forecast of the rate by partition index, and its horizon in days; NaN and 0 without one."""
    columns = {name: np.full(len(loads.partitions), np.nan) for name in EXPECTED[_RATE]}
    if not has_table(where, schemas.FORECAST):
        return columns, 0.0
    names = ("topic", "partition", "horizon_days", *columns)
    found = read_columns(where, schemas.FORECAST, names, only={"cluster_id": loads.cluster_id})
    places = places_of(loads, found)
    for name, column in columns.items():
        column[places[places >= 0]] = floats(found[name])[places >= 0]
    horizon = floats(found["horizon_days"])
    return columns, float(horizon[0]) if len(horizon) else 0.0


def _skew(where: Where, loads: LoadColumns, top: int) -> tuple[load.TopicSkew, ...]:
    """Topics with the most writes beyond an even share, the most first."""
    if not has_table(where, schemas.SKEW):
        return ()
    rows = read_rows(where, schemas.SKEW, only={"cluster_id": loads.cluster_id})
    excess = np.array([_excess(row["write_bytes_per_s"], row["hottest_ratio"], row["known_count"]) for row in rows])
    fields = load.TopicSkew.__slots__
    return tuple(
        load.TopicSkew(**{name: rows[place][name] for name in fields}) for place in largest(excess, top).tolist()
    )


def _excess(rate: float | None, ratio: float | None, count: int) -> float:
    """Rate of a topic's hottest partition beyond the mean, bytes per second."""
    return 0.0 if rate is None or ratio is None or not count else rate / count * (ratio - 1)


def _values(row: Floats) -> tuple[float | None, ...]:
    return tuple(known(value) for value in row.tolist())


# Completeness of each hour of the last day.
#
# Rules:
#
# - The last day is the 24 hours before the last hour of the tables, which is not over.
# - Each partition of the load counts alike in each hour; if it did not exist yet, or has no sample, it is unmeasured.
#   So a stopped collector shows, and so does a broker that is not queried.
# - A window is complete when nine tenths of it were measured, like a whole day (`forecast.py`).

_HOUR_S = 3600.0
_WINDOW_COLUMNS = ("topic", "partition", "hour_ms", "seconds")


def windows(where: Where, loads: LoadColumns) -> tuple[load.MeasuredHour, ...]:
    """The hours of the last day, oldest first; empty if the tables have no hours."""
    if not has_table(where, schemas.LOAD_HOURS):
        return ()
    log = log_of(where, schemas.LOAD_HOURS)
    ends = [int(file.highs["hour_ms"]) for file in log.files() if file.highs.get("hour_ms") is not None]
    if not ends:
        return ()
    end_ms = max(ends)
    begin_ms = end_ms - HOURS_A_DAY * HOUR_MS
    hour = ds.field("hour_ms")
    wanted = (ds.field("cluster_id") == loads.cluster_id) & (hour >= begin_ms) & (hour < end_ms)
    files = log.files(time="hour_ms", begin_ms=begin_ms, end_ms=end_ms)
    found = column_arrays(rows_in(log, files, wanted, _WINDOW_COLUMNS))
    is_known = places_of(loads, found) >= 0
    hours = ((ints(found["hour_ms"]) - begin_ms) // HOUR_MS)[is_known]
    parts = np.minimum(floats(found["seconds"])[is_known] / _HOUR_S, 1.0)
    shares = np.bincount(hours, parts, HOURS_A_DAY) / len(loads.partitions)
    return tuple(
        load.MeasuredHour(begin_ms + place * HOUR_MS, min(float(share), 1.0))
        for place, share in enumerate(shares.tolist())
    )


# Results that a load prints at its end.


def partition_counts(where: Where, column: str) -> dict[str, int]:
    """Number of partitions of table `load_model` by the value of a column."""
    counted = read_table(where, schemas.LOAD_MODEL, columns=[column]).group_by(column).aggregate([([], "count_all")])
    counts = Counter({row[column]: row["count_all"] for row in counted.to_pylist()})
    return dict(sorted(counts.items()))


def backtest_results(where: Where) -> list[str]:
    """Results of table `backtests`, one sentence per cluster."""
    return [
        _backtest_sentence(row)
        for row in sorted(read_rows(where, schemas.BACKTESTS), key=lambda row: row["cluster_id"])
    ]


def _backtest_sentence(tested: schemas.Row) -> str:
    name = f"backtest of {tested['cluster_id']}"
    if not tested["partition_count"]:
        return f"{name}: none, no partition has two whole weeks of samples"
    return (
        f"{name}: {counted(tested['partition_count'], 'partition')}, their last week as forecast from the days before "
        f"it: median error {tested['median_error']:.1%}, 95th percentile {tested['p95_error']:.1%}; "
        f"{tested['covered_share']:.1%} were in the 95% interval, which was widened {tested['widening']:.2f} times"
    )
