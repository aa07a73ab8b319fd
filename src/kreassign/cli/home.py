"""`kreassign` alone: the journey from a look at a cluster to a verified run, how the cluster is, and what is next."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import click

from kreassign.cli.next_command import CLUSTER, STATE, next_command, print_next
from kreassign.cli.options.cluster import ClusterOptions
from kreassign.cli.options.state_dir import STATE_ENVIRONMENT
from kreassign.cli.output import counted
from kreassign.cli.profiles import ADDRESS_ENVIRONMENT, IN_FORCE, Profile
from kreassign.cli.run_text import state_text
from kreassign.errors import KreassignError
from kreassign.executor.history.run_history import RunHistory
from kreassign.model.authorization import error_text
from kreassign.operations import steer
from kreassign.operations.journals import default_state_dir, find_journal, is_active
from kreassign.operations.overview import Overview, overview

JOURNEY = (
    ("look", "kreassign doctor", "what is wrong, and what to do"),
    ("plan", "kreassign plan --out plan.json", "from the cluster as it is"),
    ("look again", "kreassign run plan.json --dry-run", "what the run would do"),
    ("run", "kreassign run plan.json", "asks before it begins"),
    ("steer", "kreassign watch", "or pause, throttle, cancel"),
    ("check", "kreassign verify plan.json", "or go back: kreassign rollback"),
)


def show_home_of(profile: Profile | None) -> None:
    """The same for the cluster that the environment or a profile names."""

    def value(variable: str, option: str) -> str | None:
        shared = {} if profile is None else profile.shared
        return os.environ.get(variable) or shared.get(option)

    config = value("KREASSIGN_COMMAND_CONFIG", "command-config")
    state = value(STATE_ENVIRONMENT, "state-dir")
    cluster = ClusterOptions(value(ADDRESS_ENVIRONMENT, "bootstrap-server"), Path(config) if config else None)
    if profile is not None:
        click.get_current_context().meta[IN_FORCE] = profile
    show_home(cluster, Path(state) if state else default_state_dir())


def show_home(cluster: ClusterOptions, state_dir: Path) -> None:
    """Print the journey at once, and then what takes a look at the cluster."""
    for number, (step, command, about) in enumerate(JOURNEY, start=1):
        click.echo(f"  {number}  {step:<11}{command:<34}{about}")
    click.echo()
    found = _latest(state_dir)
    seen = _cluster(cluster)
    if found is not None:
        history, is_executed = found
        click.echo(f"run {history.run_id}: {state_text(history, is_active=is_executed)}")
    print_next(*_next(seen, found))
    click.echo("all commands: kreassign --help")


def _cluster(cluster: ClusterOptions) -> Overview | None:
    """Say how the cluster is."""
    if cluster.bootstrap_server is None:
        click.echo(f"no cluster is named: set {ADDRESS_ENVIRONMENT},")
        click.echo("or give --bootstrap-server to a command")
        return None
    try:
        with cluster.connect() as client:
            seen = overview(client)
    except KreassignError as error:
        click.echo(f"cluster at {cluster.bootstrap_server}: {error_text(error)}")
        return None
    click.echo(f"cluster {seen.cluster_id} at {cluster.bootstrap_server}")
    for figures in _figures(seen):
        click.echo(f"  {figures}")
    return seen


def _figures(seen: Overview) -> Iterator[str]:
    down = f", down: {', '.join(map(str, seen.fenced))}" if seen.fenced else ""
    full = "" if seen.fullest_dir is None else f", fullest log directory {seen.fullest_dir:.0%}"
    yield f"{counted(seen.brokers, 'broker')}{down}{full}"
    states = (
        f"{seen.reassigned:,} being reassigned, {seen.under_replicated:,} under-replicated, {seen.offline:,} offline"
    )
    yield f"{counted(seen.partitions, 'partition')} of {counted(seen.topics, 'topic')}: {states}"


def _latest(state_dir: Path) -> tuple[RunHistory, bool] | None:
    """The run that is executed, or the latest, and whether a process executes it; None where that cannot be told."""
    try:
        path = find_journal(state_dir)
        return steer.status(path), is_active(path)
    except KreassignError:
        return None


def _next(seen: Overview | None, found: tuple[RunHistory, bool] | None) -> Iterator[str]:
    """What to do: see to a run that is not at its end, then to the cluster, then plan."""
    if found is not None and found[0].ended_ms is None:
        history, is_executed = found
        if is_executed:
            yield next_command("watch", takes=STATE)
        else:
            yield next_command("resume", history.run_id, takes=(*CLUSTER, *STATE), of=history)
            yield next_command("cancel", history.run_id, takes=(*CLUSTER, *STATE), of=history)
    elif seen is None:
        yield "kreassign twin start"
        yield "kreassign doctor --bootstrap-server HOST:PORT"
    elif seen.is_troubled:
        yield next_command("doctor", takes=CLUSTER)
    else:
        yield next_command("plan", "--out", "plan.json", takes=CLUSTER)
