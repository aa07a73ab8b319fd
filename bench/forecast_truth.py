"""The forecast against the truth: cohorts of partitions whose future is known, through the whole load job."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench.forecast_cohorts import AHEAD_DAYS, COHORTS, HISTORY_DAYS, HOURS_A_DAY, Cohort, Floats, cohorts
from bench.known_load import BEGIN_MS, HOUR_MS, PARTITIONS_PER_TOPIC, Shape, write_round_file, write_snapshot
from bench.process import KREASSIGN, run
from kreassign.pipeline.load.fits import DAYS_OF_TREND, LESS_THAN_A_WEEK, Fit, fit, mean_of_last_week, week_changes
from kreassign.pipeline.load.forecast import Curve, backtest, common_share, widening_of
from kreassign.pipeline.tables.arrow import arrow_schema
from kreassign.pipeline.tables.parquet import read_rows
from kreassign.pipeline.tables.schemas import FORECAST, SAMPLES, Row

_RECORD_BYTES = 500


def measure() -> None:
    """Print a row per cohort."""
    known = cohorts(PARTITIONS_PER_TOPIC)
    with tempfile.TemporaryDirectory() as folder:
        samples = _write(Path(folder), known)
        done = run([*KREASSIGN, "load", "--data", folder, "--horizon-days", str(AHEAD_DAYS)])
        rows = read_rows(Path(folder), FORECAST)
    print(
        f"{len(known)} cohorts of {PARTITIONS_PER_TOPIC} partitions, a sample an hour, {samples:,} samples; "
        f"the job took {done.cpu_s:.0f} CPU s:\n"
    )
    print(next(line for line in done.output.splitlines() if line.startswith("backtest of")) + "\n")
    print("| cohort | now → truth | now → forecast | error: median | largest | `trend` | in the interval | its ends |")
    print("|---|---|---|---|---|---|---|---|")
    for number, cohort in enumerate(known):
        print(_line(cohort, [row for row in rows if row["topic"] == f"topic-{number:04}"]))
    inside = [_is_inside(cohort, row) for number, cohort in enumerate(known) for row in rows if _of(row) == number]
    print(f"\nThe truth is in the 95% interval for {np.mean(inside):.1%} of all {len(inside)} partitions.")


OTHER_SEEDS = range(100, 110)


def measure_scores(count: int = PARTITIONS_PER_TOPIC) -> None:
    """Print the interval scores of other seeds, each cohort a cluster of its own, beside those of a naive forecast.

    The score of a 95 % interval is its width, plus 40 times the distance of the truth from it (Gneiting & Raftery 2007,
    JASA 102), of logarithms of rates: 0.7 is a factor of two. The naive forecast repeats the last week, and its
    interval comes from the changes of the weeks before, as a normal distribution. Without Spark.
    """
    print(f"{len(COHORTS)} cohorts of {count} partitions, for each of {len(OTHER_SEEDS)} seeds:\n")
    print("| cohort | error: median | largest | in the interval | score | naive: error | in the interval | score |")
    print("|---|---|---|---|---|---|---|---|")
    every: list[tuple[Floats, ...]] = []
    for number, name in enumerate(COHORTS):
        found = [_scored(cohorts(count, seed)[number]) for seed in OTHER_SEEDS]
        every += found
        print(f"| {name} | {_cells([np.concatenate(each) for each in zip(*found, strict=True)])} |", flush=True)
    print(f"| all | {_cells([np.concatenate(each) for each in zip(*every, strict=True)])} |")


def measure_totals(count: int = PARTITIONS_PER_TOPIC) -> None:
    """Print how the totals of clusters lie in their joint intervals and in the sums of their partitions' ends.

    Each cohort is a cluster, and all of them together are one; then all once more, with the same odd days for all
    partitions. Widths are upper over lower end. Without Spark.
    """
    print(f"Clusters of {count} partitions of a cohort, for each of {len(TOTAL_SEEDS)} seeds:\n")
    print("| cluster | error: median | in the interval | width: median | in the summed ends | width | in common |")
    print("|---|---|---|---|---|---|---|")
    kinds: dict[str, list[tuple[Cohort, ...]]] = {}
    for seed in TOTAL_SEEDS:
        drawn = cohorts(count, seed)
        shared = tuple(with_shared_days(each, seed) for each in drawn)
        kinds.setdefault("all together", []).append(drawn)
        kinds.setdefault("all together, sharing odd days", []).append(shared)
        for cohort, moved in zip(drawn, shared, strict=True):
            kinds.setdefault(cohort.name, []).append((cohort,))
            kinds.setdefault(f"{cohort.name}, sharing odd days", []).append((moved,))
    every = []
    for name, clusters in kinds.items():
        found = [total_of(each) for each in clusters]
        every += found
        print(_total_line(name, found), flush=True)
    print(_total_line("every cluster", every))


TOTAL_SEEDS = range(100, 120)


@dataclass(frozen=True, slots=True)
class Total:
    """Truth and forecast of a cluster's rate, with its joint interval, the sums of ends, and the common share."""

    truth: float
    then: float
    joint: tuple[float, float]
    summed: tuple[float, float]
    common: float


def total_of(cluster: Sequence[Cohort]) -> Total:
    """The total of cohorts as one cluster."""
    whole = Cohort(
        "", np.concatenate([each.rates for each in cluster], axis=1), np.concatenate([each.begins for each in cluster])
    )
    found, widening = _fitted(whole)
    curve = Curve.of(found)
    is_measured = found.days >= DAYS_OF_TREND
    changes = week_changes(whole.days, found)
    amounts = curve.level * curve.spread
    common = common_share(amounts[is_measured], np.nan_to_num(changes)[is_measured])
    then, low, high = curve.total(AHEAD_DAYS, widening, np.where(is_measured, common, 1.0))
    ends = curve.between(AHEAD_DAYS, widening)
    return Total(float(whole.truth.sum()), then, (low, high), (float(ends[0].sum()), float(ends[1].sum())), common)


def with_shared_days(cohort: Cohort, seed: int, deviation: float = 0.15) -> Cohort:
    """The cohort with the same odd days for all partitions, in the past and in the future."""
    days = np.random.default_rng([seed, 1]).normal(0, deviation, (len(cohort.rates) // HOURS_A_DAY, 1))
    factors = np.exp(np.repeat(days, HOURS_A_DAY, axis=0) - deviation**2 / 2)
    return Cohort(cohort.name, cohort.rates * factors, cohort.begins)


def _total_line(name: str, found: Sequence[Total]) -> str:
    def cells(ends: Sequence[tuple[float, float]]) -> str:
        held = np.mean([low <= each.truth <= high for each, (low, high) in zip(found, ends, strict=True)])
        return f"{held:.1%} | {np.median([high / low for low, high in ends]):.2f}"

    off = np.median([abs(each.then / each.truth - 1) for each in found])
    common = np.median([each.common for each in found])
    joint, summed = (cells([getattr(each, kind) for each in found]) for kind in ("joint", "summed"))
    return f"| {name} | {off:.1%} | {joint} | {summed} | {common:.0%} |"


def _cells(found: Sequence[Floats]) -> str:
    off, inside, score, naive_off, naive_inside, naive_score = found
    return (
        f"{np.median(off):.1%} | {off.max():.0%} | {inside.mean():.1%} | {score.mean():.2f} "
        f"| {np.median(naive_off):.1%} | {naive_inside.mean():.1%} | {naive_score.mean():.2f}"
    )


def _scored(cohort: Cohort) -> tuple[Floats, ...]:
    """Error, whether the truth is in the interval, and its score, per partition: of the forecast and of a naive one."""
    then, low, high = curve_of(cohort)
    level = mean_of_last_week(cohort.days)
    level = np.where(np.isnan(level), np.nanmean(cohort.days, axis=1), level)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        changes = np.log(cohort.days[:, :-7] / cohort.days[:, 7:])
        spread = np.nan_to_num(np.nanstd(np.where(np.isfinite(changes), changes, np.nan), axis=1), nan=LESS_THAN_A_WEEK)
    margin = np.exp(1.96 * spread * np.sqrt(AHEAD_DAYS / 7))
    return (*_score(cohort.truth, then, low, high), *_score(cohort.truth, level, level / margin, level * margin))


def _score(truth: Floats, then: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats, Floats]:
    low_log, high_log, truth_log = (np.log(np.maximum(each, 1e-9)) for each in (low, high, truth))
    missed = np.maximum(low_log - truth_log, 0) + np.maximum(truth_log - high_log, 0)
    return np.abs(then - truth) / truth, (missed == 0).astype(float), high_log - low_log + 40 * missed


def curve_of(cohort: Cohort) -> tuple[Floats, Floats, Floats]:
    """The forecast of each partition at the horizon, and both ends of its interval, as a load makes them."""
    found, widening = _fitted(cohort)
    curve = Curve.of(found)
    low, high = curve.between(AHEAD_DAYS, widening)
    return curve.at(AHEAD_DAYS), low, high


def _fitted(cohort: Cohort) -> tuple[Fit, Floats]:
    """Fit of each partition, and how much its interval is widened."""
    sigmas = backtest(cohort.days).sigmas
    tested = sigmas[~np.isnan(sigmas)]
    widening = widening_of(tested) if len(tested) else 1.0
    found = fit(cohort.days)
    return found, np.where(found.days >= DAYS_OF_TREND, widening, 1.0)


def _line(cohort: Cohort, rows: list[Row]) -> str:
    truth, now = (values[[row["partition"] for row in rows]] * _RECORD_BYTES for values in
                  (cohort.truth, cohort.last_week))  # fmt: skip
    then, low, high = (
        np.array([row[name] for row in rows])
        for name in ("write_bytes_per_s", "low_write_bytes_per_s", "high_write_bytes_per_s")
    )
    off = np.abs(then - truth) / truth
    trends = np.mean([row["basis"] == "trend" for row in rows])
    inside = np.mean([_is_inside(cohort, row) for row in rows])
    return (
        f"| {cohort.name} | {np.median(truth / now):.2f} | {np.median(then / now):.2f} | {np.median(off):.1%} "
        f"| {off.max():.1%} | {trends:.0%} | {inside:.0%} | {np.median(low / now):.2f}–{np.median(high / now):.2f} |"
    )


def _of(row: Row) -> int:
    return int(row["topic"].removeprefix("topic-"))


def _is_inside(cohort: Cohort, row: Row) -> bool:
    truth = cohort.truth[row["partition"]] * _RECORD_BYTES
    return bool(row["low_write_bytes_per_s"] <= truth <= row["high_write_bytes_per_s"])


def _write(data_dir: Path, known: tuple[Cohort, ...]) -> int:
    """The tables that `kreassign collect` writes, a round an hour; returns the rows of samples."""
    count = len(known) * PARTITIONS_PER_TOPIC
    write_snapshot(data_dir, Shape(partitions=count, days=HISTORY_DAYS, interval_s=3600))
    rates = np.concatenate([cohort.rates for cohort in known], axis=1)
    begins = np.concatenate([cohort.begins for cohort in known])
    ends, written = np.zeros(count), 0
    for hour in range(HISTORY_DAYS * HOURS_A_DAY + 1):
        table = _round(hour, ends, begins <= hour)
        write_round_file(data_dir, hour * HOUR_MS, [table])
        written += table.num_rows
        ends = np.where(begins <= hour, ends + np.round(rates[hour] * 3600), ends)
    return written


def _round(hour: int, ends: Floats, is_there: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> pa.Table:
    places = np.flatnonzero(is_there)
    topics = np.char.mod("topic-%04d", places // PARTITIONS_PER_TOPIC)
    columns = {
        "cluster_id": pa.array(np.repeat("synthetic", len(places))),
        "taken_ms": pa.array(np.full(len(places), BEGIN_MS + hour * HOUR_MS)),
        "topic": pa.array(topics),
        "topic_id": pa.array(topics),
        "partition": pa.array((places % PARTITIONS_PER_TOPIC).astype(np.int32)),
        "leader": pa.array(np.zeros(len(places), np.int32)),
        "start_offset": pa.array(np.zeros(len(places), np.int64)),
        "end_offset": pa.array(ends[places].astype(np.int64)),
        "size_bytes": pa.array((ends[places] * _RECORD_BYTES).astype(np.int64)),
    }
    return pa.table(columns, schema=arrow_schema(SAMPLES))
