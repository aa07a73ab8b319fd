"""The load job: its session and the order of its steps."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException, PySparkRuntimeError
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from kreassign.errors import DataError
from kreassign.pipeline.checks import Screened, all_bad_rows, counts, screen
from kreassign.pipeline.load_model import in_snapshots, latest_snapshots, load_model
from kreassign.pipeline.plan_inputs import plan_inputs
from kreassign.pipeline.schemas import (
    CLUSTERS,
    LOAD_MODEL,
    PARTITIONS,
    PLAN_INPUTS,
    QUARANTINE,
    REPLICAS,
    SAMPLES,
    Table,
)
from kreassign.pipeline.tables import read_table, write_table

_SOURCES = (CLUSTERS, PARTITIONS, REPLICAS, SAMPLES)
_STDERR = 2
_Settings = dict[str, bool | float | int | str | None]

_SETTINGS: _Settings = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
# On one machine: nothing listens to the outside, and small data is not cut into two hundred pieces.
_LOCAL_SETTINGS: _Settings = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "4",
}


@dataclass(frozen=True, slots=True)
class StepCount:
    """Rows of a table that a step read or made; `bad` were set aside."""

    table: Table
    good: int
    bad: int = 0

    def __str__(self) -> str:
        bad = f", {self.bad} bad (see table {QUARANTINE.name})" if self.bad else ""
        return f"{self.table.name}: {self.good} rows{bad}"


@contextmanager
def spark_session(log_file: Path, master: str | None = None) -> Iterator[SparkSession]:
    """A Spark session whose log goes to a file.

    `master` is local[*] by default; under spark-submit, which decides that itself, it is left alone. DataError
    when Spark cannot start, or fails at anything later.
    """
    log_file.parent.mkdir(parents=True, exist_ok=True)
    builder = SparkSession.builder.appName("kreassign load").config(map=_SETTINGS)
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        builder = builder.master(master or "local[*]").config(map=_LOCAL_SETTINGS if _is_local(master) else {})
    try:
        with _stderr_to(log_file):
            session = builder.getOrCreate()
    except PySparkRuntimeError as error:
        raise DataError(f"Spark did not start; it needs Java 17. Its own words are in {log_file}") from error
    try:
        with failures_told(log_file):
            yield session
    finally:
        session.stop()


@contextmanager
def failures_told(log_file: Path) -> Iterator[None]:
    """Turn what Spark raises, and the pages of Java's trace in it, into a DataError of one line."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise DataError(f"Spark failed: {_first_words(error)} The whole of it is in {log_file}") from error


def run_load(spark: SparkSession, data_dir: Path, on_step: Callable[[StepCount], None]) -> None:
    """Make `load_model`, `plan_inputs` and `quarantine` from snapshots and samples; tell the counts of each step.

    DataError when a table is missing or has no good row. Doing it again gives the same tables.
    """
    screened = {table.name: screen(table, read_table(spark, data_dir, table)) for table in _SOURCES}
    write_table(all_bad_rows(screened.values()), data_dir, QUARANTINE)
    for step in _counted(screened):
        on_step(step)
        _require_good(step, data_dir)
    snapshots = latest_snapshots(screened[CLUSTERS.name].good)
    partitions = in_snapshots(screened[PARTITIONS.name].good, snapshots)
    replicas = in_snapshots(screened[REPLICAS.name].good, snapshots)
    write_table(load_model(partitions, replicas, screened[SAMPLES.name].good), data_dir, LOAD_MODEL)
    loads = read_table(spark, data_dir, LOAD_MODEL)
    on_step(StepCount(LOAD_MODEL, loads.count()))
    write_table(plan_inputs(partitions, replicas, loads), data_dir, PLAN_INPUTS)
    on_step(StepCount(PLAN_INPUTS, read_table(spark, data_dir, PLAN_INPUTS).count()))


def coverage_counts(spark: SparkSession, data_dir: Path) -> dict[str, int]:
    """Partitions of table `load_model` by what their rates rest on."""
    told = read_table(spark, data_dir, LOAD_MODEL).groupBy("coverage").agg(sql.count("*").alias("partitions"))
    return {row["coverage"]: row["partitions"] for row in told.orderBy("coverage").collect()}


def _first_words(error: Exception) -> str:
    """The line of Spark's message that says what happened; Java's are buried below a line of py4j's."""
    lines = str(error).splitlines() or [type(error).__name__]
    return lines[1].removeprefix(": ") if isinstance(error, Py4JJavaError) and len(lines) > 1 else lines[0]


def _is_local(master: str | None) -> bool:
    return (master or "local[*]").startswith("local")


def _counted(screened: Mapping[str, Screened]) -> Iterator[StepCount]:
    told = {row["table_name"]: row for row in counts(screened.values()).collect()}
    for name, part in screened.items():
        yield StepCount(part.table, told[name]["good"], told[name]["bad"]) if name in told else StepCount(part.table, 0)


def _require_good(step: StepCount, data_dir: Path) -> None:
    if not step.good:
        raise DataError(
            f"table {step.table.name} in {data_dir} has no good row ({step.bad} bad, see table {QUARANTINE.name}); "
            f"make it anew with `{step.table.made_by}`"
        )


@contextmanager
def _stderr_to(file: Path) -> Iterator[None]:
    """Send what this process, and any it starts meanwhile, writes to its error stream to a file.

    The Java process inherits the stream when it is started and keeps it. Only so do its first lines, which no
    setting of Spark's reaches, stay off the terminal.
    """
    kept = os.dup(_STDERR)
    with file.open("ab") as stream:
        os.dup2(stream.fileno(), _STDERR)
    try:
        yield
    finally:
        os.dup2(kept, _STDERR)
        os.close(kept)
