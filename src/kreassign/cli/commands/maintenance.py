"""`kreassign maintenance`: move leaders off brokers for their restart, and restore everything afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import click

from kreassign.cli.next_command import CLUSTER, STATE, again, next_command, print_next
from kreassign.cli.options.cluster import ClusterOptions, cluster_options
from kreassign.cli.options.plan import parse_brokers
from kreassign.cli.options.run import run_context_options
from kreassign.cli.options.values import option_group, parse_duration, yes_option
from kreassign.cli.output import examples, format_option, print_json, warn
from kreassign.cli.terminal import ask, refuse_unless_asked
from kreassign.errors import ExecutionError
from kreassign.executor.brokers import Blocked, Finished
from kreassign.executor.maintenance.decisions import Step
from kreassign.operations import maintenance as operation
from kreassign.operations.connect import tell_nobody
from kreassign.operations.maintenance import WAIT_S, MaintenancePreview, Way
from kreassign.operations.run import RunContext

BROKERS = click.argument("brokers", callback=parse_brokers, metavar="IDS")


@dataclass(frozen=True, slots=True)
class HowFar:
    """Options: how long to wait, whether this is a dry run, and whether to skip the question."""

    wait_s: float
    is_dry: bool
    is_agreed: bool


how_far_options = option_group(
    "how_far",
    (
        click.option(
            "--wait",
            "wait_s",
            type=parse_duration,
            default=f"{WAIT_S:g}s",
            show_default=True,
            metavar="TIME",
            help="How long to wait for replicas to be in sync and for moves to end.",
        ),
        click.option("--dry-run", "is_dry", is_flag=True, help="Show what is due; change nothing."),
        yes_option,
    ),
    HowFar,
)


@examples(
    "kreassign maintenance enter 3 --bootstrap-server localhost:9092",
    "kreassign maintenance exit 3 --bootstrap-server localhost:9092",
)
@click.group()
def maintenance() -> None:
    """Take leading off brokers while they are restarted, and bring everything back."""


@examples(
    "kreassign maintenance enter 3 --bootstrap-server localhost:9092",
    "kreassign maintenance enter 3,4 --bootstrap-server localhost:9092 --dry-run",
)
@maintenance.command()
@BROKERS
@cluster_options
@how_far_options
@run_context_options
@format_option
def enter(
    brokers: tuple[int, ...],
    cluster: ClusterOptions,
    how_far: HowFar,
    run_context: RunContext,
    output_format: str,
) -> None:
    """Take leading off brokers IDS, until every partition keeps min.insync.replicas without them.

    They are cordoned, too, so that runs and the controller place nothing on them (Kafka 4.3). Where a partition would
    lose min.insync.replicas, it is named, and nothing is changed. What is due is shown first, and it begins when you
    agree; without a terminal, --yes is needed.
    """
    raise click.exceptions.Exit(_go(Way.ENTER, brokers, cluster, how_far, run_context, output_format))


@examples("kreassign maintenance exit 3 --bootstrap-server localhost:9092")
@maintenance.command("exit")
@BROKERS
@cluster_options
@how_far_options
@run_context_options
@format_option
def leave(
    brokers: tuple[int, ...],
    cluster: ClusterOptions,
    how_far: HowFar,
    run_context: RunContext,
    output_format: str,
) -> None:
    """Restore brokers IDS once they are in sync: orders of replicas, preferred leaders, log directories."""
    raise click.exceptions.Exit(_go(Way.EXIT, brokers, cluster, how_far, run_context, output_format))


def _go(
    way: Way,
    brokers: tuple[int, ...],
    cluster: ClusterOptions,
    how_far: HowFar,
    context: RunContext,
    output_format: str,
) -> int:
    """Enter or leave maintenance, print the result, and return the exit code."""
    refuse_unless_asked(f"to {way} maintenance", is_agreed=how_far.is_agreed or how_far.is_dry)
    is_quiet = output_format == "json"
    context = replace(context, warn=warn)
    with cluster.connect() as client:
        if how_far.is_dry:
            seen = operation.preview_maintenance(client, brokers, way, context)
            _print_preview(seen, is_quiet=is_quiet)
            if not is_quiet:
                _print_next(way, brokers, seen.next_step)
            return ExecutionError.exit_code if isinstance(seen.next_step, Blocked) else 0
        is_agreed = how_far.is_agreed
        if not is_agreed:
            seen = operation.preview_maintenance(client, brokers, way, replace(context, warn=tell_nobody))
            if seen.due:
                ask(_lines(seen))
            is_agreed = bool(seen.due)
        tell = tell_nobody if is_quiet else click.echo
        done = operation.maintain(client, brokers, way, context, tell, wait_s=how_far.wait_s, is_agreed=is_agreed)
    if is_quiet:
        print_json({"is_finished": done.is_finished, "steps": list(done.steps), "next": str(done.next_step)})
    else:
        click.echo(str(done.next_step))
        _print_next(way, brokers, done.next_step)
    return 0 if done.is_finished else ExecutionError.exit_code


def _print_next(way: Way, brokers: tuple[int, ...], step: Step) -> None:
    """Suggest the command itself after a dry run, `exit` after entering, `doctor` after leaving.

    Nothing while it is blocked: what unblocks it is in the reason, and the command alone would be blocked again.
    """
    if isinstance(step, Blocked):
        return
    if not isinstance(step, Finished):
        print_next(again(but="--dry-run"))
    elif way is Way.ENTER:
        print_next(next_command("maintenance", "exit", ",".join(map(str, brokers)), takes=(*CLUSTER, *STATE)))
    else:
        print_next(next_command("doctor", takes=(*CLUSTER, *STATE)))


def _print_preview(seen: MaintenancePreview, *, is_quiet: bool) -> None:
    if is_quiet:
        print_json({"next": str(seen.next_step), "due": list(map(str, seen.due))})
        return
    for line in _lines(seen):
        click.echo(line)


def _lines(seen: MaintenancePreview) -> Iterator[str]:
    words: dict[type, str] = {Blocked: "blocked", Finished: "finished"}
    yield f"{words.get(type(seen.next_step), 'first')}: {seen.next_step}"
    for step in seen.due[1:]:
        yield f"then: {step}"
