"""Inspect the cluster: `kreassign` alone, `doctor`, `verify` and `snapshot`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from itertools import groupby
from pathlib import Path

import click

from kreassign.cli.next_command import CLUSTER, DATA, STATE, next_command, pasted, print_next
from kreassign.cli.options.cluster import ClusterOptions, cluster_around, cluster_options, measure_for_option
from kreassign.cli.options.run_id import STATE_ENVIRONMENT, state_dir_option
from kreassign.cli.options.values import Place, optional_data_option
from kreassign.cli.output import console, examples, format_option, print_json, warn
from kreassign.cli.profiles import ADDRESS_ENVIRONMENT, IN_FORCE, Profile, around, config_path, names_in
from kreassign.cli.run_text import state_text
from kreassign.cli.streams import uncollected
from kreassign.errors import InputError, KreassignError
from kreassign.model.authorization import error_text
from kreassign.model.cluster import listed_ids
from kreassign.model.run import RunHistory
from kreassign.model.text import counted, some_of
from kreassign.operations import run_journals
from kreassign.operations.doctor import Diagnosis, diagnose_cluster
from kreassign.operations.plan_files import read_plan_file
from kreassign.operations.run_journals import (
    NO_CLUSTER,
    InForce,
    all_journals,
    default_state_dir,
    find_journal,
    is_file,
    is_journal,
)
from kreassign.operations.snapshot import (
    SECOND_LOOK,
    Overview,
    SnapshotAnswers,
    SnapshotOutputs,
    overview,
    store_snapshot,
)
from kreassign.operations.verify import Verification, verify_plan, verify_run
from kreassign.report.text import format_bytes

# `kreassign` alone: the steps from a first look to a verified run, the state of the cluster, and the next command.

JOURNEY = (
    ("look", "kreassign doctor", "what is wrong, what to do"),
    ("plan", "kreassign plan --out plan.json", "from the cluster as it is"),
    ("look again", "kreassign run plan.json --dry-run", "what the run would do"),
    ("run", "kreassign run plan.json", "asks before it begins"),
    ("steer", "kreassign watch", "or pause, throttle, cancel"),
    ("check", "kreassign verify plan.json", "or back: kreassign rollback"),
)


NAMED_CLUSTERS = 3


def show_home_of(profile: Profile | None) -> None:
    """`show_home` for the cluster of the environment or of a profile."""
    if profile is not None:
        click.get_current_context().meta[IN_FORCE] = profile
    state = around(STATE_ENVIRONMENT, "state-dir")
    show_home(cluster_around(), Path(state) if state else default_state_dir())


def show_home(cluster: ClusterOptions, state_dir: Path) -> None:
    """Print the steps at once, then what needs a request to the cluster."""
    for number, (step, command, about) in enumerate(JOURNEY, start=1):
        click.echo(f"  {number}  {step:<12}{command:<35}{about}")
    click.echo()
    seen = _cluster(cluster)
    found = _latest(cluster, seen, state_dir)
    if found is not None:
        click.echo(f"run {found.run_id}: {state_text(found)}")
    elif others := all_journals(state_dir):
        click.echo(f"{counted(len(others), 'run')} of other clusters or unknown ones: kreassign status --all")
    print_next(*_next(cluster, seen, found))
    click.echo("all commands: kreassign --help")


def _cluster(cluster: ClusterOptions) -> Overview | None:
    """Print the state of the cluster."""
    if cluster.bootstrap_server is None:
        click.echo(f"no cluster is named: set {ADDRESS_ENVIRONMENT},")
        click.echo("or give --bootstrap-server to a command")
        if names := sorted(names_in(config_path())):
            click.echo(f"or --cluster with a name of {config_path()}: {some_of(names, NAMED_CLUSTERS)}")
        return None
    try:
        with cluster.connect() as client:
            seen = overview(client)
    except KreassignError as error:
        click.echo(f"cluster at {cluster.bootstrap_server}: {error_text(error)}")
        return None
    click.echo(f"cluster {seen.cluster_id} at {cluster.bootstrap_server}")
    for figures in _figures(seen):
        click.echo(f"  {figures}")
    return seen


def _figures(seen: Overview) -> Iterator[str]:
    down = f", down: {listed_ids(seen.fenced)}" if seen.fenced else ""
    full = "" if seen.fullest_dir is None else f", fullest log directory {seen.fullest_dir:.0%}"
    yield f"{counted(seen.brokers, 'broker')}{down}{full}"
    states = (
        f"{seen.reassigned:,} being reassigned, {seen.under_replicated:,} under-replicated, {seen.offline:,} offline"
    )
    yield f"{counted(seen.partitions, 'partition')} of {counted(seen.topics, 'topic')}: {states}"
    if seen.unread:
        yield f"{counted(seen.unread, 'broker or topic', 'brokers or topics')} could not be read and are not counted"
    if seen.alone is not None:
        yield f"{SECOND_LOOK} could not be read: {seen.alone}"


def _latest(cluster: ClusterOptions, seen: Overview | None, state_dir: Path) -> RunHistory | None:
    """The active or latest run of the cluster in force.

    None if there is none, if it is unreadable, or if it is not known whose run is meant.
    """
    here = NO_CLUSTER if cluster.bootstrap_server is None else InForce(why="the cluster does not answer")
    try:
        return run_journals.status(find_journal(state_dir, here=here if seen is None else InForce(seen.cluster_id)))
    except KreassignError:
        return None


def _next(cluster: ClusterOptions, seen: Overview | None, found: RunHistory | None) -> Iterator[str]:
    """Next commands: for an unfinished run first, then for the cluster, then for planning."""
    if found is not None and found.ended_ms is None:
        if found.is_active:
            yield next_command("watch", found.run_id, takes=STATE)
        else:
            yield next_command("resume", found.run_id, takes=(*CLUSTER, *STATE), of=found)
            yield next_command("cancel", found.run_id, takes=(*CLUSTER, *STATE), of=found)
    elif cluster.bootstrap_server is None and (names := sorted(names_in(config_path()))):
        yield from (next_command("doctor", "--cluster", name) for name in names[:NAMED_CLUSTERS])
    elif cluster.bootstrap_server is None:
        yield "kreassign twin start"
        yield "kreassign doctor --bootstrap-server HOST:PORT"
    elif seen is None or seen.is_troubled:
        yield next_command("doctor", takes=CLUSTER)
    else:
        yield next_command("plan", "--out", "plan.json", takes=CLUSTER)


@examples(
    "kreassign doctor --bootstrap-server localhost:9092",
    "kreassign doctor --bootstrap-server localhost:9092 --measure-for 60s",
)
@click.command()
@cluster_options
@state_dir_option
@measure_for_option("How long to measure how fast disks fill and whether copies get on; 0 to skip.")
@format_option
def doctor(
    cluster: ClusterOptions,
    state_dir: Path,
    measure_for: float,
    output_format: str,
) -> None:
    """Diagnose the cluster as far as reassignments go and say what to do; change nothing.

    Finds brokers and racks that are down and what is at risk, partitions without leader or with too few replicas in
    sync, disks that are full or soon will be, odd replication factors and racks, reassignments that can never complete
    or do not get on, throttles that nobody needs, interrupted runs, cordoned directories, and missing permissions.
    Each with the commands that remedy it. Exit code 0 if there are no findings, 1 if there are.
    """
    with cluster.connect() as client:
        if measure_for and output_format == "text":
            click.echo(f"looking at the cluster for {measure_for:g} s", err=True)
        found = diagnose_cluster(client, state_dir, measure_for_s=measure_for)
    if output_format == "json":
        print_json(_diagnosis_document(found, cluster))
    else:
        _tell_diagnosis(found, cluster)
    raise click.exceptions.Exit(1 if found.issues else 0)


def _diagnosis_document(found: Diagnosis, cluster: ClusterOptions) -> dict[str, object]:
    issues = [
        asdict(issue) | {"commands": [pasted(words, cluster) for words in issue.commands]} for issue in found.issues
    ]
    lease = None if found.lease is None else asdict(found.lease)
    kind, sign = found.distribution.distribution, found.distribution.sign
    distribution = {"name": kind and kind.name, "sign": sign and sign.value, "text": str(found.distribution)}
    return {
        "ok": not found.issues,
        "lease": lease,
        "distribution": distribution,
        "issues": issues,
        "notes": list(found.notes),
    }


def _tell_diagnosis(found: Diagnosis, cluster: ClusterOptions) -> None:
    terminal = console()
    terminal.print(f"distribution: {found.distribution}")
    if found.lease is not None:
        terminal.print(f"{found.lease} holds the lease of the cluster")
    for note in found.notes:
        terminal.print(note)
    for commands, issues in groupby(found.issues, key=lambda issue: issue.commands):
        for issue in issues:
            terminal.print(f"{issue.kind.upper()}  {issue}")
        for words in commands:
            click.echo(f"    {pasted(words, cluster)}")
    if found.issues:
        terminal.print(counted(len(found.issues), "finding"))
        remedies = (pasted(words, cluster) for issue in found.issues for words in issue.commands)
        print_next(next(remedies, None) or next_command("doctor", takes=(*CLUSTER, *STATE)))
        return
    terminal.print("no faults" if found.notes else "all is well")
    print_next(next_command("plan", "--out", "plan.json", takes=CLUSTER))


SHOWN_FINDINGS = 10


@examples(
    "kreassign verify plan.json --bootstrap-server localhost:9092",
    "kreassign verify 20270131T220000Z-1a2b3c4d --bootstrap-server localhost:9092",
)
@click.command()
@click.argument("plan_or_run", metavar="PLAN|RUN_ID")
@cluster_options
@click.option("--ignore-throttles", is_flag=True, help="Ignore active throttles.")
@state_dir_option
@format_option
def verify(
    plan_or_run: str,
    cluster: ClusterOptions,
    ignore_throttles: bool,
    state_dir: Path,
    output_format: str,
) -> None:
    """Verify that the cluster matches PLAN, or what run RUN_ID was to leave; change nothing.

    Compares the replicas and their order, the ISR, the leaders, the sizes of copies, log directories that the plan
    names, and throttles: with a plan there must be none on its topics and on any broker, with a run nothing may be left
    of what it ever set. Exit code 0 if everything matches, 1 if not.
    """
    plan = read_plan_file(Path(plan_or_run)) if _is_plan(plan_or_run) else None
    if plan is None and not is_journal(plan_or_run) and ("." in plan_or_run or "/" in plan_or_run):
        problem = f"{plan_or_run} is a directory" if Path(plan_or_run).is_dir() else f"there is no file {plan_or_run}"
        raise InputError(f"{problem}; a plan is a file of JSON, a run is named by its id")
    with cluster.connect() as client:
        if plan is not None:
            found = verify_plan(client, plan, ignore_throttles=ignore_throttles)
        else:
            journal = find_journal(state_dir, plan_or_run, InForce(client.describe_cluster().cluster_id))
            found = verify_run(client, journal, ignore_throttles=ignore_throttles)
    if output_format == "json":
        print_json(_verification_document(found, cluster))
    else:
        if plan is not None and found.is_untouched:
            count = counted(len(found.findings), "partition")
            click.echo(
                f"none of the {count} is where the plan puts it: it was not run, or was cancelled or rolled back"
            )
        else:
            _tell_verification(found, cluster)
        _print_next(found, plan_or_run, state_dir)
    raise click.exceptions.Exit(0 if found.is_ok else 1)


def _is_plan(plan_or_run: str) -> bool:
    return is_file(plan_or_run) and not is_journal(plan_or_run)


def _print_next(found: Verification, plan_or_run: str, state_dir: Path) -> None:
    """Suggest the report of the run, or of the latest one; `doctor` if the cluster does not match."""
    if found.is_untouched and _is_plan(plan_or_run):
        print_next(next_command("run", plan_or_run, "--dry-run", takes=CLUSTER))
    elif not found.is_ok:
        print_next(next_command("doctor", takes=CLUSTER))
    elif not _is_plan(plan_or_run):
        print_next(next_command("report", "--run", plan_or_run, takes=STATE))
    elif all_journals(state_dir):
        print_next(next_command("report", takes=STATE))


def _verification_document(found: Verification, cluster: ClusterOptions) -> dict[str, object]:
    copies = [
        {"topic": copy.topic, "partition": copy.partition, "broker": copy.broker, "size_bytes": size}
        for copy, size in sorted(found.facts.sizes.items())
    ]
    return {
        "ok": found.is_ok,
        "factors": list(found.factors),
        "partitions": len(found.expected.replicas),
        "findings": [asdict(one) for one in found.findings],
        "remedies": [pasted(words, cluster) for words in found.remedies],
        "copies": copies,
    }


def _tell_verification(found: Verification, cluster: ClusterOptions) -> None:
    for sentence in (*found.factors, *found.lines(SHOWN_FINDINGS)):
        console().print(sentence, soft_wrap=True)
    for words in found.remedies:
        click.echo(f"  to restore it: {pasted(words, cluster)}")
    sizes = found.facts.sizes
    held = (
        f"{counted(len(found.expected.replicas), 'partition')}, {format_bytes(sum(sizes.values()))} in "
        f"{counted(len(sizes), 'copy', 'copies')}"
    )
    console().print(f"{held}: " + ("all as planned" if found.is_ok else counted(len(found.findings), "finding")))


@examples(
    "kreassign snapshot --bootstrap-server localhost:9092 --out cluster.json.gz",
    "kreassign snapshot --bootstrap-server localhost:9092 --data ./data",
)
@click.command()
@cluster_options
@optional_data_option
@click.option(
    "--out",
    type=Place(is_file=True, needs_directory=False),
    metavar="FILE",
    help="Write the whole cluster to one file, for `kreassign twin from-snapshot` and `plan --snapshot`: JSON, or with "
    "a name ending in .parquet columns, which large clusters need.  "
    "[default: no file]",
)
@measure_for_option("With --out: how long to measure write rates; 0 to skip.")
def snapshot(cluster: ClusterOptions, data: Path | str | None, out: Path | None, measure_for: float) -> None:
    """Take a snapshot of the cluster: as tables, as one file, or both.

    Brokers, log directories, partitions, replicas and active reassignments go to tables in DIR (Delta Lake); every
    snapshot adds its own rows. FILE also has the configuration overrides (throttles, for example), offsets and write
    rates; with a name ending in .gz or .parquet it is compressed. Prints the id of the snapshot.
    """
    if out is not None and out.parent != data:  # creating the tables creates their directory
        Place.check_directory(out, "--out")
    if data is None and out is None:
        raise click.UsageError("specify --data DIR, --out FILE, or both")
    with uncollected(), cluster.connect() as client:
        seen = store_snapshot(client, SnapshotOutputs(data, out, measure_for), warn=warn)
    click.echo(summary(seen, " and ".join(str(place) for place in (data, out) if place is not None)))
    if out is not None:
        print_next(next_command("plan", "--snapshot", out, "--out", "plan.json"))
    else:
        print_next(next_command("collect", takes=(*CLUSTER, *DATA)))


def summary(seen: SnapshotAnswers, where: str) -> str:
    """One line about the stored snapshot."""
    sizes = (replica.size_bytes for dirs in seen.log_dirs.ok.values() for dir_ in dirs for replica in dir_.replicas)
    partitions = sum(len(topic.partitions) for topic in seen.topics)
    unread = sorted({broker.id for broker in seen.cluster.brokers} - seen.log_dirs.ok.keys())
    without = f" without broker {listed_ids(unread)}" if unread else ""
    amounts = (
        counted(len(seen.cluster.brokers), "broker"),
        counted(len(seen.topics), "topic"),
        counted(partitions, "partition"),
        f"{format_bytes(sum(sizes))} on disk{without}",
        counted(len(seen.reassignments), "active reassignment"),
    )
    return f"snapshot {seen.snapshot_id}: {', '.join(amounts)}; in {where}"
