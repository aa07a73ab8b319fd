"""One page about a run, from its journal and the snapshots before and after it."""

from __future__ import annotations

from pathlib import Path

from kreassign.errors import DataError
from kreassign.model import TopicPartition
from kreassign.operations import steer
from kreassign.operations.warnings import Warn, warn_program
from kreassign.pipeline.tables.parquet import read_rows
from kreassign.pipeline.tables.schemas import BROKERS, CLUSTERS, LOAD_MODEL, PARTITIONS, REPLICAS, Row
from kreassign.report.html import render
from kreassign.report.records import RunRecord, SnapshotRows
from kreassign.report.view import report_view


def report_page(journal: Path, data: Path | str, warn: Warn = warn_program) -> str:
    """The page in HTML. Before and after come from the snapshots in `data`; warns of what it cannot show."""
    run = steer.status(journal)
    before, after = snapshots_around(run, _snapshots_of(run.cluster_id, data, warn))
    rates = write_rates(data, run.cluster_id, warn)
    return render(report_view(run, _snapshot(data, before), _snapshot(data, after), rates))


def snapshots_around(run: RunRecord, clusters: list[Row]) -> tuple[Row | None, Row | None]:
    """The last snapshot from before the run began and the first from after its end (the last, if it goes on)."""
    ordered = sorted(clusters, key=lambda row: (row["taken_ms"], row["snapshot_id"]))
    before = [row for row in ordered if row["taken_ms"] <= run.started_ms]
    since = [row for row in ordered if row["taken_ms"] > run.started_ms]
    after = [row for row in since if run.ended_ms is not None and row["taken_ms"] >= run.ended_ms] or since[-1:]
    return before[-1] if before else None, after[0] if after else None


def write_rates(data: Path | str, cluster_id: str, warn: Warn) -> dict[TopicPartition, float | None]:
    """Bytes per second per partition, from the load model; empty without one."""
    try:
        rows = read_rows(data, LOAD_MODEL, only={"cluster_id": cluster_id})
    except DataError as error:
        warn(f"the report will not show write rates: {error}")
        return {}
    return {TopicPartition(row["topic"], row["partition"]): row["write_bytes_per_s"] for row in rows}


def _snapshots_of(cluster_id: str, data: Path | str, warn: Warn) -> list[Row]:
    try:
        return read_rows(data, CLUSTERS, only={"cluster_id": cluster_id})
    except DataError as error:
        warn(f"the report will not show brokers before and after: {error}")
        return []


def _snapshot(data: Path | str, cluster: Row | None) -> SnapshotRows | None:
    if cluster is None:
        return None
    only = {"snapshot_id": cluster["snapshot_id"]}
    brokers, partitions, replicas = (
        tuple(read_rows(data, table, only=only)) for table in (BROKERS, PARTITIONS, REPLICAS)
    )
    return SnapshotRows(cluster["taken_ms"], brokers, partitions, replicas)
