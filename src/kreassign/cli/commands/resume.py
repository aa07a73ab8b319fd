"""`kreassign resume`: continues a run that was paused, interrupted or killed."""

from __future__ import annotations

import click

from kreassign.cli.commands.rollback import report_end
from kreassign.cli.options.cluster import ClusterOptions, interrupted_run_cluster_options
from kreassign.cli.options.monitoring import announce, monitoring_options, refuse_monitoring_of_others
from kreassign.cli.options.run import replan_option, run_context_options
from kreassign.cli.options.run_id import run_id_argument
from kreassign.cli.output import examples, format_option
from kreassign.cli.run_text import print_accepted
from kreassign.cli.signals import on_terminal
from kreassign.errors import InputError
from kreassign.operations import steer
from kreassign.operations.journals import find_journal, is_active
from kreassign.operations.monitoring import Monitoring, monitored
from kreassign.operations.run import RunContext, resume_run


@click.command(
    epilog=examples(
        "kreassign resume",
        "kreassign resume 20270131T220000Z-1a2b --bootstrap-server localhost:9092",
    )
)
@run_id_argument
@interrupted_run_cluster_options
@replan_option
@run_context_options
@monitoring_options
@format_option
@click.pass_context
def resume(
    context: click.Context,
    /,
    run_id: str | None,
    cluster: ClusterOptions,
    replan: bool,
    run_context: RunContext,
    monitoring: Monitoring,
    output_format: str,
) -> None:
    """Resume run RUN_ID, or the only or latest one, after `kreassign pause`, Ctrl-C or a crash.

    If no process executes it any more, this one does, and needs --bootstrap-server: it checks the cluster before it
    sends anything. A run that was begun with --replan keeps doing so.
    """
    path = find_journal(run_context.state_dir, run_id)
    if is_active(path):
        refuse_monitoring_of_others(path.stem)
        if replan:
            raise InputError(
                f"a process executes run {path.stem}; --replan is for a run that is resumed: end that process "
                "(Ctrl-C), then resume the run with --replan"
            )
        print_accepted(path, steer.release(path), "starts moves again", output_format)
        return
    is_quiet = output_format == "json"
    with (
        cluster.connect_to_resume(path.stem) as client,
        on_terminal(cluster, run_context, is_quiet=is_quiet) as shown,
        monitored(shown, monitoring, announce) as watched,
    ):
        code = report_end(client, resume_run(client, path, watched, replan=replan), watched, is_quiet=is_quiet)
    context.exit(code)
