"""Planning commands about placement: `new-topic` and `partitions` place, `check` compares with declared files.

`kreassign plan check` compares the cluster with the placement files of a repository.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from kreassign.cli.next_command import CLUSTER, next_command, print_next
from kreassign.cli.options.cluster import ClusterOptions, bootstrap_option, config_option
from kreassign.cli.options.plan import PlanOptions, comparing_options, refuse_ignored
from kreassign.cli.options.values import FILE_OR_DIRECTORY, INPUT_FILE, REGEX, WholeRange, option_group, parse_quantity
from kreassign.cli.output import MARKDOWN, console, examples, markdown_format_option, print_json, print_verbatim, warn
from kreassign.cli.plan_text import evaluated_tables, goals_table, print_loads, spreads_of
from kreassign.cli.profiles import typed_words, was_typed
from kreassign.cli.streams import working
from kreassign.errors import InputError
from kreassign.model.load import LoadBasis
from kreassign.model.placement import DriftKind
from kreassign.model.plan import format_plan
from kreassign.model.plan_facts_json import load_fields
from kreassign.model.text import MOST_REPLICAS, counted
from kreassign.operations import plan_tasks
from kreassign.operations.plan_files import PlanFile, write_plan
from kreassign.operations.snapshot_files import read_snapshot
from kreassign.operations.verify import (
    PlacedPartitions,
    PlacementCheck,
    check_placement,
    placement_of_cluster,
    placement_of_snapshot,
    read_placement,
    write_placement,
)
from kreassign.report.plan_page import drift_markdown
from kreassign.report.text import format_bytes, format_rate

SHOWN_MISSES = 10


@examples(
    "kreassign plan new-topic clicks --partitions 12 --replication-factor 3 --like orders --data ./data",
    "kreassign plan new-topic clicks --partitions 12 --replication-factor 3 --size 20GB --write-rate 1MB/s "
    "--snapshot cluster.json.gz",
)
@click.command("new-topic")
@click.argument("name")
@click.option("--partitions", type=WholeRange(min=1), required=True,
              help="Number of partitions.")  # fmt: skip
@click.option("--replication-factor", type=WholeRange(min=1, max=MOST_REPLICAS), required=True,
              help="Number of replicas of each.")  # fmt: skip
@click.option("--like", metavar="TOPIC", help="Expect the load that this topic has per partition.  [default: none]")
@click.option("--size", type=parse_quantity, metavar="BYTES", help="Expect a partition to hold so much.  [default: 0]")
@click.option("--write-rate", type=parse_quantity, metavar="RATE", help="Expect so much to be written to a partition.  "
              "[default: 0]")  # fmt: skip
@click.option("--read-rate", type=parse_quantity, metavar="RATE", help="Expect consumers to read so much of each.  "
              "[default: 0]")  # fmt: skip
@comparing_options
def new_topic(
    options: PlanOptions,
    name: str,
    partitions: int,
    replication_factor: int,
    like: str | None,
    size: int | None,
    write_rate: int | None,
    read_rate: int | None,
) -> None:
    """Place the partitions of a new topic so that brokers level without a copy."""
    rates = (size, write_rate, read_rate)
    if like is not None and rates != (None, None, None):
        raise click.UsageError("--like says what to expect; leave out --size, --write-rate and --read-rate")
    expected = (
        like if like is not None else plan_tasks.ExpectedRates(size or 0, float(write_rate or 0), float(read_rate or 0))
    )
    refuse_ignored("new-topic")
    wanted = (options.policy(), name, partitions, replication_factor, expected)
    inputs = options.inputs(lambda present: plan_tasks.pose_topic(present, *wanted))
    options.request.check_loads(inputs)
    with working(f"searching places for {counted(partitions, 'partition')}, and what a rebalance saves by them"):
        found = plan_tasks.place_topic(inputs, *wanted)
    _show(found, options, inputs.loads)


@examples("kreassign plan partitions orders 24 --snapshot cluster.json.gz")
@click.command()
@click.argument("topic")
@click.argument("total", type=WholeRange(min=1), metavar="N")
@comparing_options
def partitions(options: PlanOptions, topic: str, total: int) -> None:
    """Place more partitions of a topic, N in all, so that brokers level without a copy."""
    refuse_ignored("new-topic")
    inputs = options.inputs(lambda present: plan_tasks.pose_partitions(present, topic, total))
    options.request.check_loads(inputs)
    with working(f"searching places for partitions of {topic}, and what a rebalance saves by them"):
        found = plan_tasks.place_partitions(inputs, topic, total)
    _show(found, options, inputs.loads)


def savings_text(savings: plan_tasks.Savings, what: str) -> str:
    """One sentence about what a later rebalance saves."""
    if savings.saved is None:
        return "what a rebalance would copy is not known: there is no plan that keeps the rules"
    less = f"{format_bytes(abs(savings.saved))} {'less' if savings.saved >= 0 else 'more'}"
    return f"a rebalance copies {format_bytes(savings.before)} now, {format_bytes(savings.after)} {what}: {less}"


def _show(found: plan_tasks.NewPlacement, options: PlanOptions, loads: LoadBasis) -> None:
    if options.out:
        write_plan(options.out, found.plan, found.cluster_id)
    if options.output_format == "json":
        print_json(_document(found, loads))
        return
    if not options.out:
        print_verbatim(format_plan(found.plan, found.cluster_id))
    terminal = console(stderr=options.out is None)
    _summary(terminal, found, loads, options.max_load_age_s, is_wide=options.is_wide)
    # Print it unwrapped at any terminal width, for copying.
    click.echo(f"create with: {found.command}", err=options.out is None)
    if options.out:
        terminal.print(f"where they go written to {options.out}, for a topic that was created otherwise and is empty")
        print_next(next_command("verify", options.out, takes=CLUSTER))
    else:
        print_next(next_command(*typed_words(), "--out", "placement.json"))


def _summary(
    terminal: Console, found: plan_tasks.NewPlacement, loads: LoadBasis, max_age_s: float | None, *, is_wide: bool
) -> None:
    count, replicas = len(found.lists), sum(map(len, found.lists))
    kind = "more partitions of" if found.first else "new topic"
    new = f"{counted(count, 'partition')}, {counted(replicas, 'replica')}"
    terminal.print(f"{kind} {found.topic}: {new}; nothing that is there moves")
    expected = f"{format_bytes(found.load.size_bytes)}, {format_rate(found.load.write_bytes_per_s)} written"
    known = found.load.size_bytes or found.load.write_bytes_per_s
    terminal.print(f"expected of each: {expected}" if known else "nothing is expected of them: only counts decide")
    print_loads(terminal, loads, max_age_s)
    terminal.print(savings_text(found.savings, "with them"))
    if found.evaluation.goals:
        terminal.print(goals_table(found.evaluation))
    for part in evaluated_tables(found.evaluation, is_wide=is_wide):
        terminal.print(part)
    misses = found.evaluation.misses()
    for miss in misses[:SHOWN_MISSES]:
        terminal.print(f"remains: {miss}")
    if len(misses) > SHOWN_MISSES:
        terminal.print(f"remains: {len(misses) - SHOWN_MISSES} more")


def _document(found: plan_tasks.NewPlacement, loads: LoadBasis) -> dict[str, Any]:
    load, savings = found.load, found.savings
    return {
        "topic": found.topic,
        "first": found.first,
        "expected": {"size_bytes": load.size_bytes, "write_bytes_per_s": load.write_bytes_per_s,
                     "read_bytes_per_s": load.read_bytes_per_s},
        "rebalance_bytes": {"before": savings.before, "after": savings.after, "saved": savings.saved},
        "goals": spreads_of(found.evaluation),
        "remaining": [str(miss) for miss in found.evaluation.misses()],
        "command": found.command,
        "loads": load_fields(loads),
        "plan": json.loads(format_plan(found.plan, found.cluster_id)),
    }  # fmt: skip


CHECK = "check"
SHOWN = 200
SHOWN_TOPICS = 10

_cluster_options = option_group(
    "cluster", (bootstrap_option("  [default: none; --snapshot needs no cluster]"), config_option), ClusterOptions
)


@examples(
    "kreassign plan check placement.json --bootstrap-server localhost:9092",
    "kreassign plan check placement.json --update --bootstrap-server localhost:9092",
    "kreassign plan check placements/ --snapshot cluster.json.gz -o markdown",
)
@click.command(CHECK)
@click.argument("files", nargs=-1, required=True, type=FILE_OR_DIRECTORY, metavar="FILE|DIRECTORY...")
@_cluster_options
@click.option("--snapshot", type=INPUT_FILE,
              help="Compare with a snapshot file, instead of the cluster.  [default: none]")  # fmt: skip
@click.option("--topics", type=REGEX, multiple=True, metavar="REGEX",
              help="Only topics that match; may be repeated.  [default: all that are declared]")  # fmt: skip
@click.option("--strict", is_flag=True, help="Fail for topics of which nothing is declared, too.  [default: name them]")
@click.option("--update", is_flag=True, help="Write to FILE where the cluster has its partitions now.  "
              "[default: compare]")  # fmt: skip
@markdown_format_option
def check(
    files: tuple[Path, ...],
    cluster: ClusterOptions,
    snapshot: Path | None,
    topics: tuple[str, ...],
    strict: bool,
    update: bool,
    output_format: str,
) -> None:
    """Check that the cluster is as FILE declares it; change nothing. Also: `kreassign plan --check FILE`.

    FILE is Kafka's reassignment JSON, made for example by --update and kept in a repository. Compares replicas, their
    order, and log directories that are named. Exit code 0 if all is as declared, 1 if not.
    """
    if update:
        _update(files, cluster, snapshot, topics)
        return
    _refuse_missing(files)
    declared = read_placement(files)
    placed, cluster_id = _found(cluster, snapshot, declared, topics)
    found = check_placement(declared.plan, placed, topics, cluster_id=cluster_id)
    is_ok = found.is_ok and not (strict and found.undeclared_topics)
    if output_format == "json":
        print_json(_check_document(found, is_ok=is_ok))
    elif output_format == MARKDOWN:
        print_verbatim(drift_markdown(found.drifts, len(found.declared)))
    else:
        _tell(found, strict=strict)
        if found.drifts:
            _print_next(found, files)
        else:
            print_next(next_command("doctor", takes=CLUSTER))
    raise click.exceptions.Exit(0 if is_ok else 1)


def _found(
    cluster: ClusterOptions,
    snapshot: Path | None,
    declared: PlanFile | None,
    topics: tuple[str, ...],
    *,
    is_written: bool = False,
) -> tuple[PlacedPartitions, str]:
    """The placement, and the id of its cluster; the last three as for `placement_of_cluster`."""
    if snapshot is not None and was_typed("--bootstrap-server"):
        raise click.UsageError("a placement is compared with one of --snapshot and --bootstrap-server; leave out one")
    if snapshot is not None:
        seen = read_snapshot(snapshot)
        return placement_of_snapshot(seen, declared), seen.cluster_id
    if cluster.bootstrap_server is None:
        raise click.UsageError("specify --bootstrap-server for the cluster as it is, or --snapshot FILE")
    with cluster.connect() as client:
        placed = placement_of_cluster(client, declared, warn, topics, is_written=is_written)
        return placed, client.describe_cluster().cluster_id


def _update(files: tuple[Path, ...], cluster: ClusterOptions, snapshot: Path | None, topics: tuple[str, ...]) -> None:
    if len(files) != 1 or files[0].is_dir():
        raise InputError("--update writes one file; name one FILE, and with --topics which topics belong in it")
    try:
        declared = read_placement(files) if files[0].is_file() else None
    except InputError:  # a file that is damaged is replaced: that is its remedy
        declared = None
    found = _found(cluster, snapshot, declared, topics, is_written=True)[0]
    count = write_placement(files[0], found, topics, declared)
    click.echo(f"placement of {counted(count, 'partition')} written to {files[0]}")


def _refuse_missing(files: tuple[Path, ...]) -> None:
    for path in files:
        if path.is_fifo():
            raise InputError(f"{path} is a pipe; write its content to a file first")
        if not path.exists():
            raise InputError(f"there is no file {path}; `kreassign plan check {path} --update` writes one")


def _check_document(found: PlacementCheck, *, is_ok: bool) -> dict[str, object]:
    return {
        "ok": is_ok,
        "partitions": len(found.declared),
        "findings": [
            {
                "topic": one.topic_partition.topic,
                "partition": one.topic_partition.partition,
                "kind": one.kind.value,
                "declared": one.declared,
                "found": one.found,
                "how": one.how,
            }
            for one in found.drifts
        ],
        "undeclared_topics": list(found.undeclared_topics),
    }


def _tell(found: PlacementCheck, *, strict: bool) -> None:
    terminal = console()
    lines = tuple(map(str, found.drifts)) if found.strange is None else (found.strange,)
    for line in lines[:SHOWN]:
        terminal.print(line, soft_wrap=True)
    if (more := len(lines) - SHOWN) > 0:
        terminal.print(f"and {more:,} more; -o json has all")
    if found.undeclared_topics:
        names = ", ".join(found.undeclared_topics[:SHOWN_TOPICS])
        rest = len(found.undeclared_topics) - SHOWN_TOPICS
        names += f" and {rest:,} more" if rest > 0 else ""
        names += ", which --strict does not allow" if strict else ""
        of = counted(len(found.undeclared_topics), "topic")
        terminal.print(f"nothing is declared of {of}: {names}", soft_wrap=True)
    end = "all as declared" if found.is_ok else f"{counted(len(found.drifts), 'partition')} not as declared"
    terminal.print(f"{counted(len(found.declared), 'declared partition')}: {end}")


def _print_next(found: PlacementCheck, files: tuple[Path, ...]) -> None:
    """Suggest restoring the cluster if all declared partitions exist, or declaring its present state.

    Nothing where the cluster may be another one: its placement would replace the declared one.
    """
    if found.strange is not None:
        return
    update = next_command("plan", CHECK, *files, "--update", takes=CLUSTER)
    if any(one.kind is DriftKind.MISSING for one in found.drifts):
        print_next(update)
    else:
        print_next(next_command("plan", "import", *files, "--out", "plan.json", takes=CLUSTER), update)
