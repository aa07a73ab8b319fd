"""The tables of a load → its curves: by hour of the day, by day with the forecast, and the skew of topics.

Needs no Spark. Rules:

- Rates are records per second of `load_hours` times the one `bytes_per_record` of the partition, as in `load_model`;
  only hours since the log was last reset count.
- A partition that was not measured in an hour of the day, or for a whole day, counts there with its mean when it is
  added to others, so that a gap of one does not look like a fall of all.
- Days are counted back from the last hour that was measured in the cluster, as `trend.py` counts them. A day is whole
  when nine tenths of it were measured. A sum has a point for it when partitions with half of all writes have the day.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kreassign.model.load_summary import DailyCurve, Expected, History, LoadCharts, TopicSkew
from kreassign.pipeline.load.summary import (
    EXPECTED,
    Floats,
    LoadColumns,
    dictionary,
    expected,
    floats,
    ints,
    known,
    largest,
)
from kreassign.pipeline.tables.parquet import ColumnArray, Where, has_table, read_columns, read_rows
from kreassign.pipeline.tables.schemas import FORECAST, LOAD_HOURS, PLAN_INPUTS, SKEW

HOUR_MS = 3_600_000
HOURS_A_DAY = 24
SHOWN_DAYS = 28
_WHOLE_DAY_S = 0.9 * 86_400
_HALF = 0.5
_HOURS = ("topic", "partition", "epoch", "hour_ms", "seconds", "new_records")
_RATE = "write_bytes_per_s"


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """Mean rates by partition, bytes per second: by hour of the day, and by age in days; NaN where unmeasured."""

    hours: Floats
    days: Floats


def charts(where: Where, loads: LoadColumns, top: int) -> LoadCharts:
    """The curves of a cluster; of `top` brokers, partitions and topics."""
    rate = loads.figures[_RATE]
    measured = _measured(where, loads)
    busiest = largest(rate, top)
    ahead, horizon_days = _forecast(where, loads)
    everything = np.arange(len(loads.partitions))
    return LoadCharts(
        brokers=_broker_curves(where, loads, measured, top),
        partitions=tuple(
            DailyCurve(loads.name(place), _values(measured.hours[place])) for place in busiest.tolist()
        ),
        cluster=_history("all partitions", loads, measured, everything, ahead, horizon_days),
        histories=tuple(
            _history(loads.name(place), loads, measured, np.array([place]), ahead, horizon_days)
            for place in busiest.tolist()
        ),
        skew=_skew(where, loads, top),
    )  # fmt: skip


def _measured(where: Where, loads: LoadColumns) -> Measured:
    count = len(loads.partitions)
    if not has_table(where, LOAD_HOURS):
        nothing = np.full((count, HOURS_A_DAY), np.nan), np.full((count, SHOWN_DAYS), np.nan)
        return Measured(*nothing)
    found = read_columns(where, LOAD_HOURS, _HOURS, only={"cluster_id": loads.cluster_id})
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
    """The place of each row's partition in `loads`; -1 for a partition that the load does not have."""
    theirs = dictionary(rows["topic"])
    number = {name: code for code, name in enumerate(loads.topic_names)}
    codes = np.array([number.get(name, -1) for name in theirs.names], np.int64)[theirs.codes]
    keys = (loads.topics.astype(np.int64) << 32) + loads.partitions
    wanted = (codes << 32) + ints(rows["partition"])
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[place] == wanted, place, -1)


def _sums(
    places: npt.NDArray[np.intp],
    slots: npt.NDArray[np.int64],
    written: Floats,
    seconds: Floats,
    shape: tuple[int, int],
) -> tuple[Floats, Floats]:
    """Bytes and seconds by partition and slot."""
    flat, total = places * shape[1] + slots, shape[0] * shape[1]
    sums = [np.bincount(flat, each, total).astype(np.float64).reshape(shape) for each in (written, seconds)]
    return sums[0], sums[1]


def _rates(written: Floats, seconds: Floats, *, least_s: float) -> Floats:
    is_measured = (seconds > 0) & (seconds >= least_s)
    rates: Floats = np.divide(written, seconds, out=np.full(seconds.shape, np.nan), where=is_measured)
    return rates


def _broker_curves(where: Where, loads: LoadColumns, measured: Measured, top: int) -> tuple[DailyCurve, ...]:
    """What producers write to the partitions that each broker leads, of the brokers with most of it."""
    if not has_table(where, PLAN_INPUTS):
        return ()
    only = {"cluster_id": loads.cluster_id, "is_leader": True}
    found = read_columns(where, PLAN_INPUTS, ("topic", "partition", "broker"), only=only)
    places, brokers = places_of(loads, found), ints(found["broker"])
    leading = [(int(broker), places[(brokers == broker) & (places >= 0)]) for broker in np.unique(brokers)]
    rates = np.array([np.nansum(loads.figures[_RATE][led]) for _, led in leading])
    return tuple(
        DailyCurve(f"broker {leading[place][0]}", _values(_sum(loads, measured.hours, leading[place][1], least=0.0)))
        for place in largest(rates, top).tolist()
    )


def _sum(loads: LoadColumns, rates: Floats, places: npt.NDArray[np.intp], *, least: float) -> Floats:
    """The rates of these partitions together; NaN where those that were measured have a smaller share than `least`."""
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
    ahead: dict[str, Floats],
    horizon_days: float,
) -> History:
    days = _sum(loads, measured.days, places, least=_HALF)
    recent = loads.figures["recent_write_bytes_per_s"][places]
    return History(
        name=name,
        days=tuple((age, float(days[age])) for age in reversed(range(SHOWN_DAYS)) if not np.isnan(days[age])),
        now=known(np.nan if np.isnan(recent).all() else np.nansum(recent)),
        horizon_days=horizon_days,
        expected=_expected(ahead, places),
    )


def _expected(ahead: dict[str, Floats], places: npt.NDArray[np.intp]) -> Expected | None:
    def total(column: str) -> float | None:
        found = ahead[column][places]
        return None if np.isnan(found).all() else float(np.nansum(found))

    return expected(*map(total, EXPECTED[_RATE]))


def _forecast(where: Where, loads: LoadColumns) -> tuple[dict[str, Floats], float]:
    """The forecast of the rate by place, and how many days it looks ahead; NaN and 0 without one."""
    columns = {name: np.full(len(loads.partitions), np.nan) for name in EXPECTED[_RATE]}
    if not has_table(where, FORECAST):
        return columns, 0.0
    names = ("topic", "partition", "horizon_days", *columns)
    found = read_columns(where, FORECAST, names, only={"cluster_id": loads.cluster_id})
    places = places_of(loads, found)
    for name, column in columns.items():
        column[places[places >= 0]] = floats(found[name])[places >= 0]
    horizon = floats(found["horizon_days"])
    return columns, float(horizon[0]) if len(horizon) else 0.0


def _skew(where: Where, loads: LoadColumns, top: int) -> tuple[TopicSkew, ...]:
    """The topics in which most is written beyond an even share, the most first."""
    if not has_table(where, SKEW):
        return ()
    rows = read_rows(where, SKEW, only={"cluster_id": loads.cluster_id})
    excess = np.array([_excess(row["write_bytes_per_s"], row["hottest_ratio"], row["known_count"]) for row in rows])
    fields = TopicSkew.__slots__
    return tuple(TopicSkew(**{name: rows[place][name] for name in fields}) for place in largest(excess, top).tolist())


def _excess(rate: float | None, ratio: float | None, count: int) -> float:
    """What the hottest partition of a topic gets beyond the mean, bytes per second."""
    return 0.0 if rate is None or ratio is None or not count else rate / count * (ratio - 1)


def _values(row: Floats) -> tuple[float | None, ...]:
    return tuple(known(value) for value in row.tolist())
