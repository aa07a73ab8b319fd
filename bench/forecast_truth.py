"""The forecast against the truth: cohorts of partitions whose future is known, through the whole load job."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench.forecast_cohorts import AHEAD_DAYS, HISTORY_DAYS, HOURS_A_DAY, Cohort, Floats, cohorts
from bench.known_load import BEGIN_MS, HOUR_MS, PARTITIONS_PER_TOPIC, Shape, write_round_file, write_snapshot
from bench.process import KREASSIGN, run
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
