"""`kreassign audit run`: what a run promised against what happened."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from kreassign.cli.options.data_dir import data_option
from kreassign.cli.output import format_option, print_json
from kreassign.cli.runs import find_journal, state_dir_option
from kreassign.cli.spark_jobs import spark_jobs
from kreassign.executor.history.audit_trail import Chronicle, chronicle
from kreassign.executor.history.run_history import MoveHistory, RunHistory
from kreassign.executor.journal import read_events
from kreassign.pipeline.tables.audit_schemas import RUN_MOVES, RUN_TABLES, RUNS
from kreassign.pipeline.tables.parquet import write_rows
from kreassign.pipeline.tables.schemas import Row
from kreassign.report.text import format_bytes, format_duration, format_rate


@click.command("run")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@data_option
@state_dir_option
@click.option("--master", metavar="URL", help="Spark master; local[*] by default, or what spark-submit decides.")
@format_option
@click.pass_context
def audit_run(
    context: click.Context, runs: tuple[str, ...], data: Path, state_dir: Path, master: str | None, output_format: str
) -> None:
    """Compare what each RUN promised with what happened.

    Reads the journals, and the snapshots in DIR: the last one from before each run, the first from after its end.
    Makes tables `audit_runs`, `audit_moves` and `audit_brokers` of these runs and of those audited before. Exit code 0
    if the runs did what they were to do and kept to their throttles, 1 if not.
    """
    told = [chronicle(read_events(find_journal(state_dir, run))) for run in runs]
    for one in told:
        write_chronicle(one, data)
    jobs = spark_jobs("an audit")
    with jobs.session.spark_session(data / "spark.log", master, name="kreassign audit") as spark:
        tables = jobs.run_audit.write_run_audit(spark, data)
    names = {one.history.run_id for one in told}
    found = [found_of(row, tables["audit_brokers"]) for row in tables["audit_runs"] if row["run_id"] in names]
    if output_format == "json":
        print_json({"ok": not any(run["findings"] for run in found), "runs": found})
    else:
        for run in found:
            click.echo("\n".join(lines(run)))
    context.exit(1 if any(run["findings"] for run in found) else 0)


def write_chronicle(told: Chronicle, data: Path) -> None:
    """Write what a journal tells into the tables of runs: one file in each; `runs` comes last and seals the others."""
    head = {"run_id": told.history.run_id, "cluster_id": told.history.cluster_id}
    parts: list[list[Row]] = [
        [_run_row(told.history)],
        [_move_row(move, head) for move in told.history.moves],
        *([_row(one, head) for one in part] for part in (told.arrivals, told.promises, told.calls, told.breaches)),
    ]
    for table, rows in reversed(list(zip(RUN_TABLES, parts, strict=True))):
        write_rows(data, table, rows, file_stem=told.history.run_id)


def _run_row(run: RunHistory) -> Row:
    known = {name: getattr(run, name) for name in RUNS.column_names if hasattr(run, name)}
    return known | {"residue_count": len(run.throttle_residue), "problem": "; ".join(run.problems) or None}


def _move_row(move: MoveHistory, head: Row) -> Row:
    known = _row(move, head) | {"rearranging": [wish.broker for wish in move.log_dirs if wish.is_move]}
    return {name: known[name] for name in RUN_MOVES.column_names}


def _row(value: Any, head: Row) -> Row:
    """A dataclass as a row: its fields are named as the columns are."""
    return head | {name: list(one) if isinstance(one, tuple) else one for name, one in asdict(value).items()}


def found_of(row: Row, brokers: Iterable[Row]) -> Row:
    """The row of a run with its brokers and with what is wrong, in sentences."""
    its = [broker for broker in brokers if broker["run_id"] == row["run_id"]]
    return {**row, "brokers": its, "findings": [*_findings(row, its)]}


def _findings(row: Row, brokers: Iterable[Row]) -> Iterator[str]:
    if row["state"] != "done":
        yield f"the run is {row['state']}: {row['complete_count']} of {row['move_count']} moves are complete"
    if row["off_target_count"]:
        yield f"{row['off_target_count']} complete moves are elsewhere in the snapshot after: table audit_moves"
    if row["residue_count"]:
        yield f"{row['residue_count']} settings of the throttle were not restored: see `kreassign doctor`"
    for broker in brokers:
        if broker["is_throttle_respected"] is False:
            yield f"broker {broker['broker']} used {broker['throttle_use']:.0%} of its throttle over a minute"


def lines(run: Row) -> Iterator[str]:
    """What is told of a run as `found_of` gives it."""
    moves = f"{run['complete_count']} of {run['move_count']} moves complete"
    yield f"run {run['run_id']} of cluster {run['cluster_id']}: {run['state']}, {moves}"
    yield f"  bytes: {format_bytes(run['copied_bytes'])} copied, {format_bytes(run['predicted_bytes'])} predicted"
    yield f"  time: {_seconds(run['copying_s'])} of copying, {_seconds(run['predicted_s'])} predicted at the throttle"
    error = run["eta_error"]
    yield f"  expected ends: {'none to judge' if error is None else f'{error:.1%} off on average'}"
    peak = max((broker["peak_in_bytes_per_s"] or 0 for broker in run["brokers"]), default=0)
    use = [broker["throttle_use"] for broker in run["brokers"] if broker["throttle_use"] is not None]
    throttle = f"{max(use):.0%} of the throttle used at most" if use else "no throttle"
    yield f"  rate: at most {format_rate(peak)} into one broker; {throttle}"
    yield f"  fullest broker over the mean: {_balance(run)}"
    yield (
        f"  calls: {run['call_count']}, {run['troubled_call_count']} with trouble; "
        f"verdicts of guards: {run['verdict_count']}"
    )
    for sentence in run["findings"]:
        yield f"  finding: {sentence}"


def _seconds(seconds: float | None) -> str:
    return "unknown" if seconds is None else format_duration(seconds)


def _balance(run: Row) -> str:
    parts = {when: run[f"imbalance_{when}"] for when in ("before", "planned", "after")}
    return ", ".join(f"{'unknown' if part is None else f'{part:+.1%}'} {when}" for when, part in parts.items())
