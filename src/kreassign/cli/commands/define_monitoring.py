"""`kreassign define-monitoring`: alert rules for Prometheus, and a dashboard for Grafana."""

from __future__ import annotations

import click

from kreassign.cli.next_command import next_command, print_next
from kreassign.cli.output import examples
from kreassign.operations.monitoring_files import MonitoringFile, monitoring_file

PORT = 9464
"""Where the example of `kreassign run` serves its metrics."""


@click.command(
    "define-monitoring",
    epilog=examples(
        "kreassign define-monitoring alerts",
        "kreassign define-monitoring dashboard",
    ),
)
@click.argument("what", type=click.Choice([kind.name.lower() for kind in MonitoringFile]))
def command(what: str) -> None:
    """Write alert rules for Prometheus, or a dashboard for Grafana, of what `kreassign run --metrics-port` serves.

    Nothing is read and nothing is changed.
    """
    click.echo(monitoring_file(MonitoringFile[what.upper()]), nl=False)
    print_next(next_command("run", "plan.json", "--metrics-port", PORT))
