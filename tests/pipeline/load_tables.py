"""The tables of a load, written as values: what a load of four weeks leaves, without the load."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from kreassign.pipeline.load.rules import GOOD, Judged, Treatment, quality_rows
from kreassign.pipeline.tables import schemas
from kreassign.pipeline.tables.parquet import write_rows
from tests.pipeline import finished_load
from tests.pipeline.finished_load import finish_load

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
TAKEN_MS = 1_762_250_400_000
"""2025-11-04 10:00 UTC."""
MB = 1_000_000
_EMPTY: dict[str, Any] = {
    schemas.STRING: "",
    schemas.INT: 0,
    schemas.BIGINT: 0,
    schemas.DOUBLE: 0.0,
    schemas.BOOLEAN: False,
    schemas.INTS: [],
}


def row(table: schemas.Table, **values: Any) -> schemas.Row:
    """A row of a table with these values; the others are NULL, or nothing where they may not be NULL."""
    return {c.name: None if c.nullable else _EMPTY[c.type] for c in table.columns} | values


def write_brokers(data: Path, count: int, file_stem: str, **values: Any) -> None:
    """Brokers from 0 on in the tables of a snapshot, each with one log directory that is open."""
    hosts = [row(schemas.BROKERS, host="h", port=9092, broker=broker, **values) for broker in range(count)]
    dirs = [row(schemas.LOG_DIRS, path="/d", broker=broker, **values) for broker in range(count)]
    finished_load.write_rows(data, schemas.BROKERS, hosts, file_stem=file_stem)
    finished_load.write_rows(data, schemas.LOG_DIRS, dirs, file_stem=file_stem)


def load_row(topic: str, partition: int, rate: float | None = None, **values: Any) -> schemas.Row:
    """A row of `load_model`: measured for four weeks if it has a rate, else never."""
    known = {"coverage": "measured", "verdict": "enough", "span_s": 28 * 86_400.0, "covered_share": 1.0,
             "write_bytes_per_s": rate, "recent_write_bytes_per_s": rate, "bytes_per_record": 100.0}  # fmt: skip
    unknown = {"coverage": "no samples", "verdict": "unknown"}
    name = {"cluster_id": "c.1", "snapshot_id": "s-2", "topic": topic, "partition": partition}
    return row(schemas.LOAD_MODEL, **name, **(unknown if rate is None else known)) | values


def wave(hour: int, mean: float, peak_hour: int) -> float:
    """A rate that is largest at one hour of the day."""
    return mean * (1 + 0.5 * math.cos(2 * math.pi * (hour - peak_hour) / 24))


def hour_rows(
    topic: str, partition: int, mean: float, *, hours: int = 28 * 24, peak_hour: int = 14
) -> list[schemas.Row]:
    """Rows of `load_hours` up to 10:00 on the day of the snapshot, of records of 100 bytes."""
    last = TAKEN_MS // HOUR_MS - 1
    key = {"cluster_id": "c.1", "topic": topic, "partition": partition}
    return [
        row(schemas.LOAD_HOURS, **key, hour_ms=hour * HOUR_MS, seconds=3600.0,
            new_records=round(36 * wave(hour % 24, mean, peak_hour)))
        for hour in range(last - hours + 1, last + 1)
    ]  # fmt: skip


def fill(data: Path, loads: list[schemas.Row], *, load_ms: int = TAKEN_MS, **others: list[schemas.Row]) -> None:
    """A finished load: table `load_model`, the snapshot that it is of, and other tables by name."""
    snapshot = {"snapshot_id": "s-2", "cluster_id": "c.1", "taken_ms": TAKEN_MS}
    write_rows(data, schemas.CLUSTERS, [row(schemas.CLUSTERS, **snapshot)], file_stem="s-2")
    write_rows(data, schemas.LOAD_MODEL, loads, file_stem="load")
    if ahead := others.get(schemas.FORECAST.name):
        others = {schemas.BACKTESTS.name: [total_row(ahead)], **others}
    for table in (
        schemas.LOAD_HOURS,
        schemas.FORECAST,
        schemas.BACKTESTS,
        schemas.SKEW,
        schemas.PLAN_INPUTS,
        schemas.BROKER_LOADS,
        schemas.LOAD_QUALITY,
    ):
        if rows := others.get(table.name):
            write_rows(data, table, rows, file_stem="load")
    finish_load(data, load_ms)


def leaders(loads: list[schemas.Row], brokers: int) -> list[schemas.Row]:
    """Rows of `plan_inputs`: each partition on two brokers, led by them in turn."""
    names = ("cluster_id", "snapshot_id", "topic", "partition", "size_bytes", "write_bytes_per_s")
    return [
        row(schemas.PLAN_INPUTS, **{name: one[name] for name in names}, broker=(number + position) % brokers + 1,
            position=position, is_leader=position == 0)
        for number, one in enumerate(loads)
        for position in range(2)
    ]  # fmt: skip


def forecast_rows(loads: list[schemas.Row], *, factor: float = 1.2) -> list[schemas.Row]:
    """Rows of `forecast`: sizes and rates grow by a factor in 30 days, within a fifth."""
    rows = []
    for one in loads:
        values: dict[str, Any] = {}
        for figure in ("size_bytes", "write_bytes_per_s"):
            if one[figure] is not None:
                ahead = one[figure] * factor
                values |= {figure: ahead, f"low_{figure}": ahead * 0.8, f"high_{figure}": ahead * 1.2}
        key = {name: one[name] for name in ("cluster_id", "snapshot_id", "topic", "partition")}
        rows.append(row(schemas.FORECAST, **key, horizon_days=30.0, basis="trend") | values)
    return rows


def total_row(ahead: list[schemas.Row]) -> schemas.Row:
    """The row of `backtests` of rows of `forecast`, with totals whose errors are all alike."""
    names = [f"{end}{figure}" for figure in ("size_bytes", "write_bytes_per_s") for end in ("", "low_", "high_")]
    known = {name: [one[name] for one in ahead if one[name] is not None] for name in names}
    sums = {name: sum(values) if values else None for name, values in known.items()}
    return row(schemas.BACKTESTS, cluster_id=ahead[0]["cluster_id"], horizon_days=ahead[0]["horizon_days"], **sums)


def quality(*quarantined: int, begun_ms: int = TAKEN_MS) -> list[schemas.Row]:
    """Rows of `load_quality` of one load a day, with so many samples in quarantine."""
    return [
        one
        for day, count in enumerate(quarantined)
        for one in quality_rows(
            begun_ms + day * DAY_MS,
            [
                Judged("samples", GOOD, None, 10_000 - count),
                Judged("samples", Treatment.QUARANTINED, "end_offset is below start_offset", count),
                Judged("replicas", GOOD, None, 9_990),
                Judged("replicas", Treatment.LATE, "another row has the same time", 10),
                Judged("replicas", Treatment.COUNTED, "its partition is not in the snapshot", 7),
            ],
        )
    ]


def skew_row(topic: str, ratio: float | None, rate: float, **values: Any) -> schemas.Row:
    """A row of `skew` of a topic with four partitions."""
    name = {"cluster_id": "c.1", "snapshot_id": "s-2", "topic": topic}
    figures = {"partition_count": 4, "known_count": 4, "write_bytes_per_s": rate, "hottest_ratio": ratio}
    spread = {"hottest_partition": 1, "leader_broker_count": 2, "most_leaders_on_a_broker": 3, "evenness": 0.7}
    return row(schemas.SKEW, **name, **figures, **spread, verdict="even") | values


def a_cluster() -> dict[str, list[schemas.Row]]:
    """Three topics with twelve partitions, of which one was never measured and one has gaps; 28 days of hours."""
    loads = [
        load_row(topic, number, rate * (3 if number == 0 else 1), size_bytes=size,
                 p95_write_bytes_per_s=2 * rate, peak_write_bytes_per_s=1.5 * rate, peak_hour=hour)
        for topic, rate, size, hour in (
            ("orders", 4.0 * MB, 9_000 * MB, 14),
            ("clicks", 9.0 * MB, 2_000 * MB, 20),
            ("audit", 0.1 * MB, 50_000 * MB, 2),
        )
        for number in range(4)
    ]  # fmt: skip
    loads[5] |= {"verdict": "gaps", "covered_share": 0.75}
    loads[6] = load_row("clicks", 2, size_bytes=1_500 * MB)
    hours = [
        each
        for one in loads
        if one["write_bytes_per_s"] is not None
        for each in hour_rows(one["topic"], one["partition"], one["write_bytes_per_s"], peak_hour=one["peak_hour"])
    ]
    skew = [
        skew_row("orders", 2.0, 24.0 * MB),
        skew_row("clicks", 3.1, 40.0 * MB, verdict="hot partition", known_count=3),
        skew_row("audit", 1.0, 0.4 * MB, evenness=1.0),
    ]
    return {
        "loads": loads, "load_hours": hours, "forecast": forecast_rows(loads), "skew": skew,
        "plan_inputs": leaders(loads, 3), "load_quality": quality(0, 3, 0, 120, 4),
    }  # fmt: skip
