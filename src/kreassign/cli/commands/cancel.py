"""`kreassign cancel`: ends a run before all its moves are made."""

from __future__ import annotations

import click

from kreassign.cli.options.cluster import ClusterOptions, interrupted_run_cluster_options
from kreassign.cli.options.monitoring import announce, monitoring_options, refuse_monitoring_of_others
from kreassign.cli.options.run import run_context_options
from kreassign.cli.options.run_id import run_id_argument
from kreassign.cli.output import examples, format_option
from kreassign.cli.run_text import exit_code, in_flight, print_accepted, print_end
from kreassign.cli.signals import on_terminal
from kreassign.operations import steer
from kreassign.operations.journals import find_journal, is_active
from kreassign.operations.monitoring import Monitoring, monitored
from kreassign.operations.run import RunContext, cancel_interrupted_run


@click.command(
    epilog=examples(
        "kreassign cancel",
        "kreassign cancel 20270131T220000Z-1a2b --drain",
        "kreassign cancel 20270131T220000Z-1a2b --bootstrap-server localhost:9092",
    )
)
@run_id_argument
@click.option("--drain", "drains", is_flag=True, help="Let moves in flight finish; start no new ones.")
@interrupted_run_cluster_options
@run_context_options
@monitoring_options
@format_option
@click.pass_context
def cancel(
    context: click.Context,
    /,
    run_id: str | None,
    drains: bool,
    cluster: ClusterOptions,
    run_context: RunContext,
    monitoring: Monitoring,
    output_format: str,
) -> None:
    """Cancel run RUN_ID, or the only or latest one: cancel moves in flight, start no new ones, restore the throttle.

    Copies that are not complete are discarded, as Kafka does when a reassignment is cancelled; moves that are complete
    stay. If no process executes the run any more, this one does, and needs --bootstrap-server.
    """
    path = find_journal(run_context.state_dir, run_id)
    if is_active(path):
        refuse_monitoring_of_others(path.stem)
        flying = in_flight(steer.status(path))
        sentence = (
            f"draining: {flying} moves in flight finish, then it ends"
            if drains
            else f"cancelling {flying} moves in flight"
        )
        print_accepted(path, steer.cancel(path, is_now=not drains), sentence, output_format, then=("watch", path.stem))
        return
    is_quiet = output_format == "json"
    with (
        cluster.connect_to_resume(path.stem) as client,
        on_terminal(cluster, run_context, is_quiet=is_quiet) as shown,
        monitored(shown, monitoring, announce) as watched,
    ):
        found = cancel_interrupted_run(client, path, watched, is_now=not drains)
        print_end(found, is_quiet=is_quiet)
    context.exit(exit_code(found))
