"""Loads of a day of rounds: as `kreassign collect` leaves it, and as hourly files and one snapshot.

A twin of 250 partitions is sampled every 30 seconds, and a load is made after the first rounds. Then the rest of the
day is collected, in files as `collect` writes and compacts them; the same rows are put into hourly files in a second
directory. Both are loaded again: only what is new, and all of it.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from bench.collecting import twin_to_sample
from bench.process import TreeRun, run_kreassign
from kreassign.admin import AdminClient, client_settings
from kreassign.operations.ingest import collect
from kreassign.pipeline.load.job import rows_to_read
from kreassign.pipeline.tables.delta import commit, log_to_write, open_log
from kreassign.pipeline.tables.parquet import read_table, write_files
from kreassign.pipeline.tables.schemas import BROKERS, CLUSTERS, LOG_DIRS, PARTITIONS, REPLICAS, SAMPLES, Table

SAMPLED, ROUNDS, INTERVAL_S, FIRST = 250, 2880, 30, 4
RUNS = 3
_HOUR_MS = 3_600_000
_OF_SNAPSHOTS = (BROKERS, CLUSTERS, LOG_DIRS, PARTITIONS, REPLICAS)


def measure() -> None:
    """Print the table."""
    print(f"{SAMPLED} partitions, {ROUNDS} rounds; medians of {RUNS} runs, with the least and the most CPU s\n")
    print("| load of | files of samples | rows | s | CPU s | |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        left, hourly = Path(folder) / "left", Path(folder) / "hourly"
        _collect(left, hourly)
        for told, arguments in (("what is new", ()), ("all", ("--full",))):
            for name, data in (("as collected", left), ("hourly", hourly)):
                files = len(open_log(data, SAMPLES).files())
                rows = rows_to_read(data, is_full=bool(arguments))
                runs = [_run(data, arguments) for _ in range(RUNS)]
                print(f"| {told}, {name} | {files} | {rows:,} | {_told(runs)} |", flush=True)


def _run(data: Path, arguments: tuple[str, ...]) -> TreeRun:
    """A load of a copy of the tables."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "data"
        shutil.copytree(data, copy)
        return run_kreassign("load", *arguments, "--data", str(copy))


def _told(runs: list[TreeRun]) -> str:
    wall, cpu = ([getattr(run, name) for run in runs] for name in ("wall_s", "cpu_s"))
    return f"{statistics.median(wall):.1f} | {statistics.median(cpu):.1f} | {min(cpu):.1f} to {max(cpu):.1f}"


def _collect(left: Path, hourly: Path) -> None:
    transport = twin_to_sample(SAMPLED, 6)
    settings = client_settings(bootstrap_servers="broker-0:9092")
    with AdminClient.connect(settings, clock=transport, transport=transport) as client:
        rounds = collect(client, left, rounds=ROUNDS, interval_s=INTERVAL_S, clock=transport)
        for _ in islice(rounds, FIRST):
            pass
        shutil.copytree(left, hourly)
        run_kreassign("load", "--data", str(left))
        run_kreassign("load", "--data", str(hourly))
        for _ in rounds:
            pass
    _hourly(left, hourly)


def _hourly(left: Path, hourly: Path) -> None:
    """Samples after the first rounds: a file per hour, and the last snapshot."""
    samples = read_table(left, SAMPLES)
    known = pc.max(read_table(hourly, SAMPLES)["taken_ms"])
    new = samples.filter(pc.greater(samples["taken_ms"], known))
    hours = pc.divide(new["taken_ms"], pa.scalar(_HOUR_MS))
    for hour in sorted(pc.unique(hours).to_pylist()):
        _add(hourly, SAMPLES, new.filter(pc.equal(hours, pa.scalar(hour))), str(hour))
    last = pc.max(read_table(left, CLUSTERS)["taken_ms"])
    for table in _OF_SNAPSHOTS:
        rows = read_table(left, table)
        _add(hourly, table, rows.filter(pc.equal(rows["taken_ms"], last)), "last")


def _add(data: Path, table: Table, rows: pa.Table, stem: str) -> None:
    commit(log_to_write(data, table), write_files(data, table, rows, stem))
