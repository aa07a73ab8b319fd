"""`kreassign plan import`: a plan that another tool made, checked and priced as our own."""

from __future__ import annotations

from pathlib import Path

import click

from kreassign.cli.options.plan import PlanOptions, planning_options
from kreassign.cli.output import examples
from kreassign.cli.planning.finish import finish
from kreassign.operations.assignment_files import read_assignments
from kreassign.operations.plan_tasks import Import


@click.command(
    "import",
    epilog=examples(
        "kreassign plan import proposals.json --snapshot cluster.json.gz --out plan.json",
        "kreassign plan import maps/ --bootstrap-server localhost:9092 --out plan.json",
    ),
)
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path), metavar="FILE|DIRECTORY..."
)
@planning_options
def import_plan(options: PlanOptions, files: tuple[Path, ...]) -> None:
    """Import a plan of Cruise Control, topicmappr or any tool that writes Kafka's JSON.

    Checks it against the cluster: every partition, broker and log directory must be there, and where the file says what
    it was made from, the same brokers must hold it still. Shows what it costs and brings, as of a plan of our own.
    """
    finish(options, Import(read_assignments(files)))
