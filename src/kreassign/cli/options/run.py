"""Options of the commands that execute runs, or find them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from kreassign.cli.options.group import option_group
from kreassign.cli.options.state_dir import state_dir_option
from kreassign.cli.options.values import parse_duration
from kreassign.executor.guards import DEFAULTS, GuardName, Reaction
from kreassign.executor.lease import LeasePolicy
from kreassign.executor.throttle.originals import FoundThrottles
from kreassign.model.printable import shortened
from kreassign.operations.run import POLL_INTERVAL_S, RunContext

Command = TypeVar("Command", bound=Callable[..., Any])

LEAST_POLL_S = 0.1


def parse_poll_interval(text: str) -> float:
    """Seconds, so many that a cluster is not kept busy with questions. For `click.option(type=…)`."""
    seconds = parse_duration(text)
    if seconds < LEAST_POLL_S:
        raise click.BadParameter(f"{shortened(text)!r} is too short; the shortest is {LEAST_POLL_S * 1000:g}ms")
    return seconds


_POLL = click.option(
    "--poll-interval",
    "poll_s",
    type=parse_poll_interval,
    default=f"{POLL_INTERVAL_S:g}s",
    show_default=True,
    metavar="TIME",
    help="Poll interval; 100ms or more.",
)

_LEASE = click.option(
    "--lease",
    type=click.Choice([policy.value for policy in LeasePolicy]),
    default=LeasePolicy.AUTO.value,
    show_default=True,
    callback=lambda _, __, policy: LeasePolicy(policy),
    help="Be the only run on the cluster, whatever the machine: where the cluster can keep a lease without a side "
    "effect, always, or do not ask.",
)

run_context_options = option_group("run_context", (_POLL, _LEASE, state_dir_option), RunContext)
"""Add `--poll-interval`, `--lease` and `--state-dir`: keyword `run_context: RunContext`, which nobody watches yet."""


def read_found(adopt: str | None, alongside: bool) -> FoundThrottles:
    """The value of the options. Raises click.UsageError for both together."""
    if adopt is not None and alongside:
        raise click.UsageError("throttles of others are either adopted or run alongside; specify one of the two")
    return FoundThrottles(adopt) if adopt else FoundThrottles.ALONGSIDE if alongside else FoundThrottles.REFUSE


found_options = option_group(
    "found",
    (
        click.option(
            "--adopt",
            type=click.Choice([FoundThrottles.REMOVE.value, FoundThrottles.RESTORE.value]),
            help="Take over throttles that are set and that nobody uses: `remove` them at the end of the run, or "
            "`restore` their values then.  [default: start nothing]",
        ),
        click.option(
            "--alongside",
            is_flag=True,
            help="Run beside moves of others, which share the rate of --throttle on each broker.  "
            "[default: start nothing]",
        ),
    ),
    read_found,
)
"""Add `--adopt` and `--alongside`: keyword `found: FoundThrottles`."""


def replan_option(command: Command) -> Command:
    """Add `--replan`: parameter `replan: bool`."""
    return click.option(
        "--replan",
        is_flag=True,
        help="Choose other destinations for moves to a broker that has been down for a minute: as few changes as "
        "possible, by rack and free space.  [default: give those moves up]",
    )(command)


def guards_option(command: Command) -> Command:
    """Add `--guard NAME=REACTION`, any number of times: parameter `guards: dict[GuardName, Reaction]`."""
    names, reactions = ", ".join(GuardName), ", ".join(Reaction)
    warned = [guard for guard, reaction in DEFAULTS.items() if reaction is Reaction.WARN]
    defaults = f"{Reaction.WARN} for {', '.join(warned)}; {Reaction.HOLD} for the others"
    return click.option(
        "--guard",
        "guards",
        multiple=True,
        type=_guard,
        callback=lambda _, __, pairs: dict(pairs),
        metavar="NAME=REACTION",
        help=f"Set the reaction to a breached guard; may be repeated. Guards: {names}. Reactions: {reactions}.  "
        f"[default: {defaults}]",
    )(command)


def _guard(text: str) -> tuple[GuardName, Reaction]:
    name, _, reaction = text.partition("=")
    try:
        return GuardName(name), Reaction(reaction)
    except ValueError as error:
        raise click.BadParameter(f"{text!r} is not a guard and its reaction, such as disk=hold: {error}") from error
