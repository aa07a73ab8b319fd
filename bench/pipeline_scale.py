"""One day of samples through the load job: time and memory, and the same by DuckDB from the same files.

The whole job reads samples and snapshot, makes rates, hours, load model, forecast, skew and plan inputs and writes them
all. DuckDB is given two tasks: `load_tables.sql`, which makes the same tables by the same rules, but for what its head
says; and the heart of it, in one query whose result is written as Parquet: duplicates, epochs, rates, percentiles and
the peak hour per partition.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from bench.known_load import Shape, known_load, write_samples
from bench.process import TreeRun, run_kreassign, run_tree

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


def measure(partitions: int, interval_s: int, *, runs: int = 1) -> None:
    """Print the table of one size."""
    shape = Shape(partitions=partitions, days=1, interval_s=interval_s)
    with tempfile.TemporaryDirectory() as folder:
        rows = write_samples(Path(folder), known_load(shape))
        size = sum(file.stat().st_size for file in (Path(folder) / "samples").rglob("*.parquet"))
        print(
            f"{partitions:,} partitions, a round every {interval_s} s for a day: {rows:,} rows, {size / 1e6:,.0f} MB\n"
        )
        print("| engine | s | CPU s | rows/s | peak MiB |")
        print("|---|---|---|---|---|")
        for _ in range(runs):
            print(_line("kreassign load", rows, run_kreassign("load", "--data", folder)), flush=True)
            (Path(folder) / "by_duckdb").mkdir(exist_ok=True)
            tables = _TABLES.read_text(encoding="utf-8").replace("{data}", folder).replace("{now_ms}", _LATER_MS)
            whole = f"import duckdb; duckdb.sql({tables!r})"
            print(_line("DuckDB, all tables", rows, run_tree([sys.executable, "-c", whole])), flush=True)
            query = f"import duckdb; duckdb.sql({_QUERY.format(data=folder)!r})"
            print(_line("DuckDB, the heart of it", rows, run_tree([sys.executable, "-c", query])), flush=True)


def _line(engine: str, rows: int, run: TreeRun) -> str:
    return f"| {engine} | {run.wall_s:.1f} | {run.cpu_s:.1f} | {rows / run.wall_s:,.0f} | {run.peak_mib:,.0f} |"
