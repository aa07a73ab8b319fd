"""`kreassign doctor`: finds what is wrong with reassignments on a cluster, and says what to do."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from kreassign.cli.options.cluster import ClusterOptions, cluster_options
from kreassign.cli.options.state_dir import state_dir_option
from kreassign.cli.output import console, counted, examples, format_option, print_json
from kreassign.operations.doctor import diagnose_cluster


@click.command(
    epilog=examples(
        "kreassign doctor --bootstrap-server localhost:9092",
    )
)
@cluster_options
@state_dir_option
@format_option
@click.pass_context
def doctor(context: click.Context, /, cluster: ClusterOptions, state_dir: Path, output_format: str) -> None:
    """Diagnose reassignments on the cluster and say what to do; change nothing.

    Finds reassignments that can never complete, destinations that are gone, throttles that nobody needs any more,
    interrupted runs, unreadable journals, and partitions and directories in trouble. Names the run that holds the
    lease of the cluster. Exit code 0 if there are no findings, 1 if there are.
    """
    with cluster.connect() as client:
        diagnosis = diagnose_cluster(client, state_dir)
    found, holder = diagnosis.issues, diagnosis.lease
    if output_format == "json":
        lease = None if holder is None else asdict(holder)
        print_json({"ok": not found, "lease": lease, "issues": [asdict(issue) for issue in found]})
    else:
        if holder is not None:
            console().print(f"{holder} holds the lease of the cluster", soft_wrap=True)
        for issue in found:
            console().print(str(issue), soft_wrap=True)
        console().print(counted(len(found), "finding") if found else "all is well")
    context.exit(1 if found else 0)
