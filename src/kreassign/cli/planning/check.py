"""`kreassign plan check`: is the cluster as the files of a repository declare it."""

from __future__ import annotations

from pathlib import Path

import click

from kreassign.cli.next_command import CLUSTER, next_command, print_next
from kreassign.cli.options.cluster import ClusterOptions, bootstrap_option, config_option
from kreassign.cli.options.group import option_group
from kreassign.cli.options.values import FILE_OR_DIRECTORY, REGEX
from kreassign.cli.output import MARKDOWN, console, counted, examples, markdown_format_option, print_json, warn
from kreassign.cli.typed import was_typed
from kreassign.errors import InputError
from kreassign.model.placement import DriftKind
from kreassign.model.plan import Plan
from kreassign.operations.placement import (
    PlacedPartitions,
    PlacementCheck,
    check_placement,
    placement_of_cluster,
    placement_of_snapshot,
    read_placement,
    write_placement,
)
from kreassign.operations.snapshot_files import read_snapshot
from kreassign.report.markdown import drift_markdown

CHECK = "check"
SHOWN = 200
SHOWN_TOPICS = 10

_cluster_options = option_group(
    "cluster", (bootstrap_option("  [default: none; --snapshot needs no cluster]"), config_option), ClusterOptions
)


@click.command(
    CHECK,
    epilog=examples(
        "kreassign plan check placement.json --bootstrap-server localhost:9092",
        "kreassign plan check placement.json --update --bootstrap-server localhost:9092",
        "kreassign plan check placements/ --snapshot cluster.json.gz -o markdown",
    ),
)
@click.argument("files", nargs=-1, required=True, type=FILE_OR_DIRECTORY, metavar="FILE|DIRECTORY...")
@_cluster_options
@click.option("--snapshot", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE",
              help="Compare with a snapshot file, instead of the cluster.  [default: none]")  # fmt: skip
@click.option("--topics", type=REGEX, multiple=True, metavar="REGEX",
              help="Only topics that match; may be repeated.  [default: all that are declared]")  # fmt: skip
@click.option("--strict", is_flag=True, help="Fail for topics of which nothing is declared, too.  [default: name them]")
@click.option("--update", is_flag=True, help="Write to FILE where the cluster has its partitions now.  "
              "[default: compare]")  # fmt: skip
@markdown_format_option
@click.pass_context
def check(
    context: click.Context,
    /,
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
        _update(files, _found(cluster, snapshot, None), topics)
        return
    _refuse_missing(files)
    declared = read_placement(files)
    found = check_placement(declared, _found(cluster, snapshot, declared), topics)
    is_ok = found.is_ok and not (strict and found.undeclared_topics)
    if output_format == "json":
        print_json(_document(found, is_ok=is_ok))
    elif output_format == MARKDOWN:
        click.echo(drift_markdown(found.drifts, len(found.declared)))
    else:
        _tell(found, strict=strict)
        if found.drifts:
            _print_next(found, files)
        else:
            print_next(next_command("doctor", takes=CLUSTER))
    context.exit(0 if is_ok else 1)


def _found(cluster: ClusterOptions, snapshot: Path | None, declared: Plan | None) -> PlacedPartitions:
    if snapshot is not None and was_typed("--bootstrap-server"):
        raise click.UsageError("a placement is compared with one of --snapshot and --bootstrap-server; leave out one")
    if snapshot is not None:
        return placement_of_snapshot(read_snapshot(snapshot))
    if cluster.bootstrap_server is None:
        raise click.UsageError("specify --bootstrap-server for the cluster as it is, or --snapshot FILE")
    with cluster.connect() as client:
        return placement_of_cluster(client, declared, warn)


def _update(files: tuple[Path, ...], found: PlacedPartitions, topics: tuple[str, ...]) -> None:
    if len(files) != 1 or files[0].is_dir():
        raise InputError("--update writes one file; name one FILE, and with --topics which topics belong in it")
    count = write_placement(files[0], found, topics)
    click.echo(f"placement of {counted(count, 'partition')} written to {files[0]}")


def _refuse_missing(files: tuple[Path, ...]) -> None:
    for path in files:
        if not path.exists():
            raise InputError(f"there is no file {path}; `kreassign plan check {path} --update` writes one")


def _document(found: PlacementCheck, *, is_ok: bool) -> dict[str, object]:
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
    for drift in found.drifts[:SHOWN]:
        terminal.print(str(drift), soft_wrap=True)
    if (more := len(found.drifts) - SHOWN) > 0:
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
    """Bring the cluster back, if all that is declared is there, or declare it as it is."""
    update = next_command("plan", CHECK, *files, "--update", takes=CLUSTER)
    if any(one.kind is DriftKind.MISSING for one in found.drifts):
        print_next(update)
    else:
        print_next(next_command("plan", "import", *files, "--out", "plan.json", takes=CLUSTER), update)
