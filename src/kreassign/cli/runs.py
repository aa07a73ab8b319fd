"""Where the journals of runs are kept, and how the commands find one."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from kreassign.errors import InputError
from kreassign.executor.guards import GuardName, Reaction
from kreassign.executor.journal import active_run, find_journals
from kreassign.executor.runner import POLL_S

Command = TypeVar("Command", bound=Callable[..., Any])


def default_state_dir() -> Path:
    """`kreassign` below XDG_STATE_HOME, or below `~/.local/state`."""
    state_home = os.environ.get("XDG_STATE_HOME")
    return (Path(state_home) if state_home else Path.home() / ".local" / "state") / "kreassign"


def state_dir_option(command: Command) -> Command:
    """Add `--state-dir DIR`: parameter `state_dir: Path`."""
    return click.option(
        "--state-dir",
        type=click.Path(file_okay=False, path_type=Path),
        default=default_state_dir,
        envvar="KREASSIGN_STATE_DIR",
        metavar="DIR",
        help="Where the journals of runs are kept  [default: ~/.local/state/kreassign]",
    )(command)


def poll_option(command: Command) -> Command:
    """Add `--poll-interval SECONDS`: parameter `poll_s: float`."""
    return click.option(
        "--poll-interval",
        "poll_s",
        type=click.FloatRange(min=0.1),
        default=POLL_S,
        show_default=True,
        metavar="SECONDS",
        help="Time between two looks at the cluster.",
    )(command)


def guards_option(command: Command) -> Command:
    """Add `--guard NAME=REACTION`, any number of times: parameter `guards: tuple[tuple[GuardName, Reaction], ...]`."""
    names, reactions = ", ".join(GuardName), ", ".join(Reaction)
    return click.option(
        "--guard",
        "guards",
        multiple=True,
        type=_guard,
        metavar="NAME=REACTION",
        help=f"What a guard does when it is breached. Guards: {names}. Reactions: {reactions}.",
    )(command)


def _guard(text: str) -> tuple[GuardName, Reaction]:
    name, _, reaction = text.partition("=")
    try:
        return GuardName(name), Reaction(reaction)
    except ValueError as error:
        raise click.BadParameter(f"{text!r} is no guard and reaction, such as disk=hold: {error}") from error


def is_active(path: Path) -> bool:
    """Whether a process is writing this journal now."""
    return active_run(path.parent.parent, path.parent.name) == path.stem


def find_journal(state_dir: Path, run: str) -> Path:
    """The journal of a run, given its id or the path of the journal. Raises InputError."""
    if run.endswith(".sqlite") and Path(run).is_file():
        return Path(run)
    found = find_journals(state_dir, run)
    if len(found) == 1:
        return found[0]
    if found:
        raise InputError(f"run {run} has journals of {len(found)} clusters in {state_dir}; name the file of one")
    known = ", ".join(path.stem for path in find_journals(state_dir)[-5:]) or "none"
    raise InputError(f"there is no run {run} in {state_dir}; the latest runs are: {known}")
