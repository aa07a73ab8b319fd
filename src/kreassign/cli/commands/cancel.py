"""`kreassign cancel`: ends a run before all its moves are made."""

from __future__ import annotations

import click

from kreassign.cli.options.cluster import ClusterOptions, interrupted_run_cluster_options
from kreassign.cli.options.run import run_context_options
from kreassign.cli.output import examples, format_option
from kreassign.cli.run_text import exit_code, print_accepted, print_end
from kreassign.cli.signals import on_terminal
from kreassign.operations import steer
from kreassign.operations.journals import find_journal, is_active
from kreassign.operations.run import RunContext, cancel_interrupted_run


@click.command(
    epilog=examples(
        "kreassign cancel 20270131T220000Z-1a2b",
        "kreassign cancel 20270131T220000Z-1a2b --now --bootstrap-server localhost:9092",
    )
)
@click.argument("run_id")
@click.option("--now", "is_now", is_flag=True, help="Cancel moves in flight too, and discard their copies.")
@interrupted_run_cluster_options
@run_context_options
@format_option
@click.pass_context
def cancel(
    context: click.Context,
    /,
    run_id: str,
    is_now: bool,
    cluster: ClusterOptions,
    run_context: RunContext,
    output_format: str,
) -> None:
    """Cancel run RUN_ID: finish moves in flight, start no new ones, restore the throttle.

    If no process executes it any more, this one does, and needs --bootstrap-server.
    """
    path = find_journal(run_context.state_dir, run_id)
    if is_active(path):
        sentence = "cancelling moves in flight" if is_now else "finishing moves in flight, then ending"
        print_accepted(path, steer.cancel(path, is_now=is_now), sentence, output_format)
        return
    is_quiet = output_format == "json"
    with (
        cluster.connect_to_resume(path.stem) as client,
        on_terminal(cluster, run_context, is_quiet=is_quiet) as watched,
    ):
        found = cancel_interrupted_run(client, path, watched, is_now=is_now)
        print_end(found, is_quiet=is_quiet)
    context.exit(exit_code(found))
