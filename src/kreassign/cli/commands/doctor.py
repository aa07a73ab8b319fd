"""`kreassign doctor`: finds what is wrong with a cluster as far as reassignments go, and says what to do."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from kreassign.cli.next_command import CLUSTER, STATE, next_command, print_next
from kreassign.cli.options.cluster import ClusterOptions, cluster_options, measure_for_option
from kreassign.cli.options.state_dir import state_dir_option
from kreassign.cli.output import console, counted, examples, format_option, print_json
from kreassign.cli.remedies import pasted
from kreassign.operations.doctor import Diagnosis, diagnose_cluster


@click.command(
    epilog=examples(
        "kreassign doctor --bootstrap-server localhost:9092",
        "kreassign doctor --bootstrap-server localhost:9092 --measure-for 60s",
    )
)
@cluster_options
@state_dir_option
@measure_for_option("How long to measure how fast disks fill and whether copies get on; 0 to skip.")
@format_option
@click.pass_context
def doctor(
    context: click.Context,
    /,
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
        print_json(_document(found, cluster))
    else:
        _tell(found, cluster)
    context.exit(1 if found.issues else 0)


def _document(found: Diagnosis, cluster: ClusterOptions) -> dict[str, object]:
    issues = [
        asdict(issue) | {"commands": [pasted(words, cluster) for words in issue.commands]} for issue in found.issues
    ]
    lease = None if found.lease is None else asdict(found.lease)
    return {"ok": not found.issues, "lease": lease, "issues": issues, "notes": list(found.notes)}


def _tell(found: Diagnosis, cluster: ClusterOptions) -> None:
    terminal = console()
    if found.lease is not None:
        terminal.print(f"{found.lease} holds the lease of the cluster")
    for note in found.notes:
        terminal.print(note)
    for issue in found.issues:
        terminal.print(f"{issue.kind.upper()}  {issue}")
        for words in issue.commands:
            click.echo(f"    {pasted(words, cluster)}")
    if found.issues:
        terminal.print(counted(len(found.issues), "finding"))
        print_next(next_command("doctor", takes=(*CLUSTER, *STATE)))
        return
    terminal.print("all is well")
    print_next(next_command("plan", "--out", "plan.json", takes=CLUSTER))
