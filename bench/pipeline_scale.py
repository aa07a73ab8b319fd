"""One day of samples through the load job: time and memory, and the same by DuckDB from the same files.

The whole job reads samples and snapshot, makes rates, hours, load model, forecast, skew and plan inputs and writes them
all. DuckDB is given two tasks: `load_tables.sql`, which makes the same tables by the same rules, but for what its head
says, part by part of the partitions, so that its memory does not grow with the rows; and the heart of it, in one query
whose result is written as Parquet: duplicates, epochs, rates, percentiles and the peak hour per partition.
"""

from __future__ import annotations

import math
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from operator import ne
from pathlib import Path

import pyarrow.parquet as pq

from bench.known_load import Shape, known_load, write_samples
from bench.process import TreeRun, run_kreassign, run_tree
from kreassign.errors import InvariantBroken
from kreassign.pipeline.load.rates import EPOCH_KEY
from kreassign.pipeline.tables.delta import open_log
from kreassign.pipeline.tables.schemas import LOAD_HOURS

_TABLES = Path(__file__).with_name("load_tables.sql")
_LATER_MS = "1900000000000"
_QUERY = """
COPY (
WITH once AS (
    SELECT cluster_id, topic, partition, taken_ms, max(end_offset) AS end_offset,
           max_by(topic_id, end_offset) AS topic_id, max_by(size_bytes, end_offset) AS size_bytes
    FROM read_parquet('{data}/samples/date=*/*.parquet', hive_partitioning = false) GROUP BY ALL),
paired AS (
    SELECT *, (taken_ms - lag(taken_ms) OVER history) / 1000.0 AS seconds,
           end_offset - lag(end_offset) OVER history AS grown, size_bytes - lag(size_bytes) OVER history AS bytes,
           topic_id IS DISTINCT FROM lag(topic_id) OVER history AS is_new
    FROM once WINDOW history AS (PARTITION BY cluster_id, topic, partition ORDER BY taken_ms)),
counted AS (
    SELECT *, sum((is_new OR grown < 0)::INT) OVER so_far AS epoch
    FROM paired WINDOW so_far AS (PARTITION BY cluster_id, topic, partition ORDER BY taken_ms)),
hours AS (
    SELECT cluster_id, topic, partition, epoch, taken_ms // 3600000 % 24 AS hour, sum(grown) / sum(seconds) AS rate
    FROM counted WHERE NOT is_new AND grown >= 0 GROUP BY ALL),
peaks AS (
    SELECT cluster_id, topic, partition, epoch, max(rate) AS peak, max_by(hour, rate) AS peak_hour
    FROM hours GROUP BY ALL),
figures AS (
    SELECT cluster_id, topic, partition, epoch, sum(grown) / sum(seconds) AS mean, count(*) AS samples,
           sum(bytes) / sum(grown) AS record_bytes, quantile_cont(grown / seconds, [0.5, 0.95, 0.99]) AS percentiles
    FROM counted WHERE NOT is_new AND grown >= 0 GROUP BY ALL)
SELECT * FROM figures JOIN peaks USING (cluster_id, topic, partition, epoch)
) TO '{data}/by_duckdb.parquet' (FORMAT parquet)
"""


ROWS_AT_ONCE = 1_000_000
"""Rows of samples in a part of the partitions that DuckDB is given."""


def measure(partitions: int, interval_s: int, *, runs: int = 3) -> None:
    """Print the table of one size: medians of runs by turns, and the least and the most."""
    shape = Shape(partitions=partitions, days=1, interval_s=interval_s)
    with tempfile.TemporaryDirectory() as folder:
        rows = write_samples(Path(folder), known_load(shape))
        size = sum(file.stat().st_size for file in (Path(folder) / "samples").rglob("*.parquet"))
        print(
            f"{partitions:,} partitions, a round every {interval_s} s for a day: {rows:,} rows, {size / 1e6:,.0f} MB\n"
        )
        engines: dict[str, Callable[[], TreeRun]] = {
            "kreassign load": lambda: run_kreassign("load", "--full", "--data", folder),
            "DuckDB, all tables": lambda: _duckdb(Path(folder), all_tables(Path(folder), rows)),
            "DuckDB, the heart of it": lambda: _duckdb(Path(folder), [_QUERY.format(data=folder)]),
        }
        taken: dict[str, list[TreeRun]] = {name: [] for name in engines}
        for _ in range(runs):
            for name, run in engines.items():
                taken[name].append(run())
        if apart := hours_apart(Path(folder)):
            raise InvariantBroken(f"hours of the load and of DuckDB differ: {apart}")
        print("| engine | s | least to most | CPU s | least to most | rows/s | peak MiB |")
        print("|---|---|---|---|---|---|---|")
        for name, found in taken.items():
            print(_line(name, rows, found))


_SAME = ("hour_ms", "seconds", "good_seconds", "squared_seconds", "good_records", "rate_sum", "new_records",
         "most_new_records", "sized_records", "new_bytes", "mean_size_bytes", "sample_count", "first_ms", "last_ms",
         "last_leader", "last_start_offset", "last_end_offset", "last_size_bytes", "rate_bins", "rate_counts",
         "is_open")  # fmt: skip
_NEARLY = 1
"""Millionths by which reversals may differ: sums of doubles depend on their order."""


def hours_apart(data: Path) -> dict[str, int]:
    """Number of hours in which the load and DuckDB differ, by column; empty if they are equal."""
    log = open_log(data, LOAD_HOURS)
    ours, theirs = (
        pq.read_table(files).sort_by([(name, "ascending") for name in (*EPOCH_KEY, "hour_ms")])
        for files in (
            [log.place_of(file) for file in log.files()],
            sorted(map(str, (data / "by_duckdb" / "load_hours").glob("*.parquet"))),
        )
    )
    if len(ours) != len(theirs):
        return {"hour_ms": abs(len(ours) - len(theirs))}
    found = {name: sum(map(ne, ours[name].to_pylist(), theirs[name].to_pylist())) for name in (*EPOCH_KEY, *_SAME)}
    reversals = zip(ours["reversal_sum"].to_pylist(), theirs["reversal_sum"].to_pylist(), strict=True)
    found["reversal_sum"] = sum(abs(one - other) > _NEARLY for one, other in reversals)
    return {name: count for name, count in found.items() if count}


def all_tables(data: Path, rows: int) -> list[str]:
    """Statements that make all tables: for each part of the partitions, then for all."""
    for name in ("load_hours", "open_samples", "quarantine"):
        (data / "by_duckdb" / name).mkdir(parents=True, exist_ok=True)
    script = _TABLES.read_text(encoding="utf-8").replace("{data}", str(data)).replace("{now_ms}", _LATER_MS)
    each, _, once = script.partition("\n-------\n")
    buckets = math.ceil(rows / ROWS_AT_ONCE)
    each = each.replace("{buckets}", str(buckets))
    return [*(each.replace("{bucket}", str(bucket)) for bucket in range(buckets)), once]


def _duckdb(data: Path, statements: Sequence[str]) -> TreeRun:
    program = data / "by_duckdb.py"
    program.write_text("\n".join(["import duckdb", *(f"duckdb.sql({each!r})" for each in statements)]))
    return run_tree([sys.executable, str(program)])


def _line(engine: str, rows: int, runs: Sequence[TreeRun]) -> str:
    def told(values: Sequence[float]) -> str:
        return f"{statistics.median(values):.1f} | {min(values):.1f} to {max(values):.1f}"

    wall = [run.wall_s for run in runs]
    cpu, peak = told([run.cpu_s for run in runs]), max(run.peak_mib for run in runs)
    return f"| {engine} | {told(wall)} | {cpu} | {rows / statistics.median(wall):,.0f} | {peak:,.0f} |"
