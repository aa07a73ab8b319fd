"""Pages for people: of a plan, of a rehearsal, of a run, and of what an audit found. One HTML file each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from kreassign.errors import DataError, InputError, MalformedPlan
from kreassign.executor.events import Event, RunStarted
from kreassign.executor.history.audit_trail import audit_trail
from kreassign.executor.history.timeline import timeline
from kreassign.executor.journal import read_events
from kreassign.model import TopicPartition
from kreassign.model.plan_facts import PlanFacts
from kreassign.model.snapshot import ClusterSnapshot
from kreassign.operations import steer
from kreassign.operations.plan_files import PlanFile, facts_path
from kreassign.operations.rehearse import Recording, Rehearsal
from kreassign.operations.run_facts import kept_facts
from kreassign.operations.warnings import Warn, warn_program
from kreassign.pipeline.ingest.snapshots import Observation, broker_rows, partition_rows, replica_rows
from kreassign.pipeline.tables.parquet import read_rows
from kreassign.pipeline.tables.schemas import BROKERS, CLUSTERS, LOAD_MODEL, PARTITIONS, REPLICAS, Row
from kreassign.report.html import AuditView, render
from kreassign.report.plan_page import render_plan
from kreassign.report.records import RunRecord, RunTrail, SnapshotRows
from kreassign.report.text import format_bytes, format_duration
from kreassign.report.view import report_view


def plan_page(plan: PlanFile, name: str) -> str:
    """The page of a plan that was read from the file `name`. Raises InputError without its facts file."""
    if plan.facts is None:
        raise InputError(
            f"{name} has no facts file ({facts_path(Path(name)).name}) beside it, which says what the plan brings and "
            "costs; `kreassign plan --out` writes both"
        )
    return render_plan(plan.facts, plan.plan.replicas, name)


def report_page(
    journal: Path, data: Path | str | None, warn: Warn = warn_program, audit: AuditView | None = None
) -> str:
    """The page in HTML. Before and after come from the snapshots in `data`, if any; warns of what it cannot show.

    With what an `audit` found of the run, it says that, too. Bound and reasons come from the facts of the run's plan.
    """
    run, events = steer.status(journal), read_events(journal)
    before, after, rates = (None, None, {}) if data is None else _around(run, data, warn)
    view = report_view(run, before, after, rates, trail_of(events), _facts(journal, run.plan_id, warn))
    return render(view, f"Audit of reassignment {run.run_id}" if audit else None, audit)


def rehearsal_page(
    shown: Rehearsal, recording: Recording, snapshot: ClusterSnapshot, name: str, facts: PlanFacts | None = None
) -> str:
    """The page of a rehearsal of the plan in the file `name`: as of a run, on the twin of the cluster in a snapshot.

    With the plan's `facts` it says the lower bound and the reasons of moves.
    """
    rates = {name: one.write_bytes_per_s for name, one in snapshot.partitions}
    known = rates if any(rate is not None for rate in rates.values()) else {}
    before, after = _observed(recording.before), _observed(recording.after)
    view = report_view(shown.history, before, after, known, trail_of(recording.events), facts)
    return render(view, f"Rehearsal of {name}")


def audit_page(row: Row, journal: Path, data: Path | str, warn: Warn = warn_program) -> str:
    """The page of a run with what an audit found of it: a row as `audit_runs` returns it."""
    peak = max((broker["throttle_use"] or 0.0 for broker in row["brokers"]), default=0.0)
    error = row["eta_error"]
    promised = (
        ("moves", f"{row['move_count']:,}", f"{row['complete_count']:,} complete"),
        ("bytes copied", format_bytes(row["predicted_bytes"]), format_bytes(row["copied_bytes"])),
        ("time of copying", format_duration(row["predicted_s"]), format_duration(row["copying_s"])),
        ("ETA", "right", "-" if error is None else f"wrong by {error:.1%} on average"),
        ("fullest broker above the mean", _percent(row["imbalance_planned"]), _percent(row["imbalance_after"])),
        ("throttle used over a minute, at most", "100%", f"{peak:.0%}" if peak else "-"),
        ("calls with problems", "0", f"{row['failed_call_count']:,} of {row['call_count']:,}"),
        ("verdicts of guards", "0", f"{row['breach_count']:,}"),
    )
    return report_page(journal, data, warn, AuditView(promised, tuple(row["findings"])))


def _percent(part: float | None) -> str:
    return "-" if part is None else f"{part:+.1%}"


def _observed(seen: Observation | None) -> SnapshotRows | None:
    if seen is None:
        return None
    return SnapshotRows(seen.taken_ms, *(tuple(rows(seen)) for rows in (broker_rows, partition_rows, replica_rows)))


def _facts(journal: Path, plan_id: str, warn: Warn) -> PlanFacts | None:
    try:
        return kept_facts(journal, plan_id)
    except MalformedPlan as error:
        warn(f"the report will not show why moves are made: {error}")
        return None


def trail_of(events: Sequence[Event]) -> RunTrail:
    """All that pictures of a run show, from its events."""
    trail, happened = audit_trail(events), timeline(events)
    return RunTrail(
        arrivals=trail.copy_progress,
        etas=trail.eta_history,
        breaches=trail.breaches,
        marks=happened.marks,
        throttle=happened.throttle,
        in_sync=happened.in_sync,
        log=happened.log,
        more_lines=happened.more_lines,
        planned_s=next((planned_s(event) for event in events if isinstance(event, RunStarted)), None),
    )


def planned_s(started: RunStarted) -> float | None:
    """How long the busiest broker takes at its throttle for what was to be copied; None where one has no throttle."""
    sent, received = Counter[int](), Counter[int]()
    for move in started.moves:
        for broker in move.adding:
            received[broker] += move.size_bytes
            sent[move.original[0]] += move.size_bytes
    seconds = [0.0]
    for broker, size in (*sent.items(), *received.items()):
        rate = started.rates.of(broker)
        if rate is None:
            return None
        seconds.append(size / rate)
    return max(seconds)


def _around(
    run: RunRecord, data: Path | str, warn: Warn
) -> tuple[SnapshotRows | None, SnapshotRows | None, dict[TopicPartition, float | None]]:
    """The snapshots before and after a run, and what is written to each partition."""
    before, after = snapshots_around(run, _snapshots_of(run.cluster_id, data, warn))
    return _snapshot(data, before), _snapshot(data, after), write_rates(data, run.cluster_id, warn)


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
