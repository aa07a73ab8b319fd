"""The load model against the truth: a synthetic cluster whose every rate is known, with gaps, restarts, new topics."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from bench.known_load import PARTITIONS_PER_TOPIC, Floats, KnownLoad, Shape, known_load, write_samples
from bench.process import run_kreassign
from kreassign.pipeline.tables.parquet import read_rows
from kreassign.pipeline.tables.schemas import LOAD_MODEL, Row

SHAPE = Shape(partitions=200, days=7, interval_s=300, is_troubled=True)
_QUANTILES = {"p50_write_bytes_per_s": 0.5, "p95_write_bytes_per_s": 0.95, "p99_write_bytes_per_s": 0.99}


def measure() -> None:
    """Print the table."""
    load = known_load(SHAPE)
    with tempfile.TemporaryDirectory() as folder:
        samples = write_samples(Path(folder), load)
        run_kreassign("load", "--data", folder)
        model = read_rows(Path(folder), LOAD_MODEL)
    print(
        f"{SHAPE.partitions} partitions, {SHAPE.days} days, a round every {SHAPE.interval_s} s, {samples:,} samples\n"
    )
    print("| statistic | partitions told | error: median | 95th percentile | largest |")
    print("|---|---|---|---|---|")
    places = np.array([_place(row) for row in model])
    for name, truth in true_statistics(load).items():
        print(_line(name, truth[places], np.array([_number(row[name]) for row in model])))


def true_statistics(load: KnownLoad) -> dict[str, Floats]:
    """Statistics of a perfect observer of the intensity, over the time since the log last restarted."""
    days = np.arange(0, load.shape.days, 1 / 1440)
    flow = load.intensity(days)
    flow = np.where(days[:, None] >= np.maximum(load.recreated_at, 0.0), flow, np.nan)
    found = {"bytes_per_record": load.record_bytes, "write_bytes_per_s": np.nanmean(flow, axis=0) * load.record_bytes}
    for name, quantile in _QUANTILES.items():
        found[name] = np.nanquantile(flow, quantile, axis=0) * load.record_bytes
    by_hour = np.array([np.nanmean(flow[np.floor(days * 24 + 1e-9) % 24 == hour], axis=0) for hour in range(24)])
    return found | {"peak_write_bytes_per_s": by_hour.max(axis=0) * load.record_bytes}


def _line(name: str, truth: Floats, told: Floats) -> str:
    known = ~np.isnan(told)
    off = np.abs(told - truth)[known] / truth[known]
    return f"| `{name}` | {known.sum()} | {np.median(off):.2%} | {np.quantile(off, 0.95):.2%} | {off.max():.2%} |"


def _place(row: Row) -> int:
    return int(row["topic"].removeprefix("topic-")) * PARTITIONS_PER_TOPIC + int(row["partition"])


def _number(value: float | None) -> float:
    return np.nan if value is None else float(value)
