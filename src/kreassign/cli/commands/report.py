"""`kreassign report` and `audit`: a page about a run or plan; audits of runs and of records."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from kreassign.cli.next_command import CLUSTER, DATA, STATE, next_command, print_next
from kreassign.cli.options import values
from kreassign.cli.options.cluster import ClusterOptions, cluster_options, of_run_options
from kreassign.cli.options.run_id import shown_journal, state_dir_option
from kreassign.cli.output import examples, format_option, print_json, warn
from kreassign.cli.profiles import typed_words
from kreassign.cli.run_text import commands_after
from kreassign.cli.streams import working
from kreassign.errors import InputError
from kreassign.model import TopicPartition
from kreassign.model.load import SparkOptions
from kreassign.model.text import counted, shortened
from kreassign.operations import run_journals
from kreassign.operations.plan_files import read_plan_file
from kreassign.operations.report import (
    ReadingRequest,
    audit_page,
    audit_runs,
    compare_readings,
    labels_of_readings,
    plan_page,
    read_records,
    report_page,
)
from kreassign.operations.whole_file import write_page
from kreassign.report.text import format_bytes, format_duration, format_rate


@examples(
    "kreassign report --run 20270131T220000Z-1a2b3c4d --data ./data",
    "kreassign report --plan plan.json --out plan.html",
)
@click.command()
@values.optional_data_option
@state_dir_option
@click.option(
    "--run",
    "run_name",
    metavar="RUN_ID|JOURNAL",
    help="Id of the run, its journal, or `last`.  [default: the active or latest one of the cluster in force]",
)
@click.option(
    "--plan",
    type=values.INPUT_FILE,
    help="Report the plan in FILE instead, for those who approve it.  [default: a run is reported]",
)
@click.option(
    "--out",
    type=values.OUTPUT_FILE,
    help="Page to write.  [default: RUN_ID.html; beside a plan plan.html for plan.json]",
)
@of_run_options
def report(
    data: Path | str | None,
    state_dir: Path,
    run_name: str | None,
    plan: Path | None,
    out: Path | None,
    cluster: ClusterOptions,
) -> None:
    """Write an HTML report of a run, or of a plan.

    Of a run: brokers before and after, who copied when and how fast, planned against achieved, guards, log,
    verification. Before and after come from the snapshots in DIR, if it is given: the last one from before the run, and
    the first one from after its end. Of a plan: brokers before and after, what is copied, the lower bound, and the
    reason of each change. The page is one self-contained file.
    """
    if run_name is not None and plan is not None:
        raise InputError("specify either --run RUN_ID or --plan FILE")
    if plan is not None:
        out = out or plan.with_name(f"{plan.name.removesuffix('.json')}.html")
        write_page(out, plan_page(read_plan_file(plan), plan.name))
        click.echo(f"report of plan {plan.name}: {out}")
        print_next(next_command("approve", plan), next_command("run", plan, "--dry-run", takes=CLUSTER))
        return
    journal = shown_journal(state_dir, run_name, cluster)
    out = out or Path(f"{journal.stem}.html")
    write_page(out, report_page(journal, data, warn))
    click.echo(f"report of run {journal.stem}: {out}")
    found = run_journals.status(journal)
    if found.state == "done" and not found.throttle_residue:
        print_next(next_command("doctor", takes=CLUSTER, of=found))
    else:
        print_next(*commands_after(found))


Row = dict[str, Any]

_LABEL = re.compile(r"[A-Za-z0-9._-]{1,100}")
SECOND = "after"
_COUNTS = ("expired", "compacted", "appended")


@examples(
    "kreassign audit run 20270131T220000Z-1a2b3c4d --data ./data",
    "kreassign audit compare before after --data ./data",
)
@click.group()
def audit() -> None:
    """Audit a run against its promises, or records before and after a move."""


def _label(_: click.Context, __: click.Parameter, text: str) -> str:
    if not _LABEL.fullmatch(text):
        raise click.BadParameter(
            f"{shortened(text)!r}: a label has letters, digits, dots, dashes and underscores, 100 at most"
        )
    return text


@examples(
    "kreassign audit run 20270131T220000Z-1a2b3c4d --data ./data",
    "kreassign audit run 20270131T220000Z-1a2b3c4d --data ./data --report audit.html",
)
@audit.command("run")
@click.argument("runs", nargs=-1, required=True, metavar="RUN_ID...")
@values.data_option
@of_run_options
@state_dir_option
@values.master_option
@click.option("--report", type=values.OUTPUT_FILE, help="Also write an HTML report; of one run only.  [default: none]")
@format_option
def audit_run(
    runs: tuple[str, ...],
    data: Path | str,
    cluster: ClusterOptions,
    state_dir: Path,
    master: str | None,
    conf: tuple[tuple[str, str], ...],
    report: Path | None,
    output_format: str,
) -> None:
    """Compare what each run RUN_ID promised with what happened.

    Reads the journals, and the snapshots in DIR: the last one from before each run, the first from after its end.
    Makes tables `audit_runs`, `audit_moves` and `audit_brokers` of these runs and of those audited before. Exit code 0
    if the runs did what they were to do and kept to their throttles, 1 if not.
    """
    journals = [shown_journal(state_dir, run, cluster) for run in runs]
    if report is not None and len(journals) > 1:
        raise InputError(f"--report is of one run, and {len(journals)} were named; audit them one by one")
    if output_format == "text":
        click.echo("auditing with Spark, which takes a while to start", err=True)
    with working("auditing with Spark"):
        found = audit_runs(journals, data, SparkOptions(master, dict(conf)))
    if report is not None:
        write_page(report, audit_page(found[0], journals[0], data, warn))
    is_bad = any(run["findings"] for run in found)
    if output_format == "json":
        print_json({"ok": not is_bad, "runs": found})
    else:
        for run in found:
            click.echo("\n".join(lines(run)))
        bad = next((run["run_id"] for run in found if run["findings"]), None)
        if bad is None:
            print_next(next_command("report", "--run", found[-1]["run_id"], takes=(*DATA, *STATE)))
        else:
            print_next(next_command("rollback", bad, "--dry-run", takes=(*CLUSTER, *STATE)))
    raise click.exceptions.Exit(1 if is_bad else 0)


@examples("kreassign audit records --label before --bootstrap-server localhost:9092 --data ./data --topics 'orders.*'")
@audit.command()
@values.data_option
@click.option("--label", required=True, callback=_label, metavar="NAME", help="Name of this reading, such as `before`.")
@click.option(
    "--topics",
    type=values.REGEX,
    multiple=True,
    metavar="REGEX",
    help="Topics to read; may be repeated.  [default: all]",
)
@click.option(
    "--jars",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Jars of Spark's Kafka source.  [default: those that Spark has]",
)
@values.master_option
@cluster_options
def records(
    data: Path | str,
    label: str,
    topics: tuple[str, ...],
    jars: Path | None,
    master: str | None,
    conf: tuple[tuple[str, str], ...],
    cluster: ClusterOptions,
) -> None:
    """Read every record of topics and store its hash under a name.

    Takes all records between the first and the last offset of the moment. A reading of the same name is replaced.
    """
    request = ReadingRequest(label, str(cluster.bootstrap_server), cluster.command_config, topics, jars)
    with cluster.connect() as client, working("reading records with Spark"):
        found = read_records(client, request, data, SparkOptions(master, dict(conf)), warn)
    click.echo(f"{label}: {counted(found.records, 'record')} of {counted(found.partitions, 'partition')}")
    print_next(_after_reading(label, data))


def _after_reading(label: str, data: Path | str) -> str:
    """Suggest comparing with the previous reading; after a first one, the second reading, after the move."""
    stored = labels_of_readings(data)
    earlier = stored[: stored.index(label)]
    if earlier:
        return next_command("audit", "compare", earlier[-1], label, takes=DATA)
    second = {label: SECOND, f"--label={label}": f"--label={SECOND}"}
    return next_command(*(second.get(word, word) for word in typed_words()))


@examples("kreassign audit compare before after --data ./data")
@audit.command()
@click.argument("before")
@click.argument("after")
@values.data_option
@values.master_option
@format_option
def compare(
    before: str,
    after: str,
    data: Path | str,
    master: str | None,
    conf: tuple[tuple[str, str], ...],
    output_format: str,
) -> None:
    """Compare the readings BEFORE and AFTER.

    Lists every partition that lost, gained, changed or displaced a record, with the first offset. What retention and
    compaction remove, and what was written since, is no difference. Exit code 0 if all is the same, 1 if not.
    """
    with working(f"comparing {before} and {after} with Spark"):
        rows = compare_readings(before, after, data, SparkOptions(master, dict(conf)))
    wrong = [row for row in rows if row["verdict"] != "same"]
    if output_format == "json":
        print_json({"ok": not wrong, "partitions": rows})
    else:
        for row in wrong:
            click.echo(_sentence(row))
        click.echo(_summary(rows, len(wrong)))
        # If records differ, suggest undoing the run that moved them; if not, its report.
        print_next(
            next_command("rollback", "--dry-run", takes=CLUSTER) if wrong else next_command("report", takes=DATA)
        )
    raise click.exceptions.Exit(1 if wrong else 0)


def lines(run: Row) -> Iterator[str]:
    """A run as `audit_runs` returns it, as text."""
    moves = f"{run['complete_count']} of {run['move_count']} moves complete"
    yield f"run {run['run_id']} of cluster {run['cluster_id']}: {run['state']}, {moves}"
    if run.get("plan_id"):
        yield f"  plan: {run['plan_id']}"
    for one in run.get("operators", ()):
        yield f"  executed by: {one['user']}@{one['host']}: {' '.join(one['command'])}"
    yield f"  bytes: {format_bytes(run['copied_bytes'])} copied, {format_bytes(run['predicted_bytes'])} predicted"
    yield f"  time: {_seconds(run['copying_s'])} of copying, {_seconds(run['predicted_s'])} predicted at the throttle"
    error = run["eta_error"]
    yield f"  ETA error: {'nothing to compare' if error is None else f'{error:.1%} on average'}"
    peak = max((broker["peak_in_bytes_per_s"] or 0 for broker in run["brokers"]), default=0)
    use = [broker["throttle_use"] for broker in run["brokers"] if broker["throttle_use"] is not None]
    throttle = f"{max(use):.0%} of the throttle used at most" if use else "no throttle"
    yield f"  rate: at most {format_rate(peak)} into one broker; {throttle}"
    yield f"  fullest broker above the mean: {_balance(run)}"
    yield (
        f"  calls: {run['call_count']}, {run['failed_call_count']} with problems; "
        f"verdicts of guards: {run['breach_count']}"
    )
    for sentence in run["findings"]:
        yield f"  finding: {sentence}"


def _seconds(seconds: float | None) -> str:
    return "unknown" if seconds is None else format_duration(seconds)


def _balance(run: Row) -> str:
    parts = {when: run[f"imbalance_{when}"] for when in ("before", "planned", "after")}
    return ", ".join(f"{'unknown' if part is None else f'{part:+.1%}'} {when}" for when, part in parts.items())


def _sentence(row: Row) -> str:
    names = ("lost", "duplicated", "added", "altered", "displaced")
    counts = ", ".join(f"{row[name]} {name}" for name in names if row[name])
    first = "" if row["first_offset"] is None else f", first at offset {row['first_offset']}"
    return (
        f"{TopicPartition(row['topic'], row['partition'])}: {row['verdict']} ({counts or 'no record differs'}{first})"
    )


def _summary(rows: list[Row], wrong: int) -> str:
    compared = sum(row["record_count"] for row in rows)
    others = ", ".join(f"{sum(row[name] for row in rows)} {name}" for name in _COUNTS)
    result = f"{wrong} differ" if wrong else "all the same"
    return f"{counted(len(rows), 'partition')}, {counted(compared, 'record')} compared: {result}; {others}"
