"""Options that select a run: the directory of journals, and the optional run ID.

Kept apart from the options of commands that execute runs: these need neither a client nor a cluster.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kreassign.cli.options.cluster import ClusterOptions
from kreassign.cli.options.values import DIRECTORY, WholeRange
from kreassign.cli.profiles import typed_words
from kreassign.errors import InputError
from kreassign.operations.run_journals import (
    LAST,
    NO_CLUSTER,
    InForce,
    all_journals,
    cluster_of,
    default_state_dir,
    find_journal,
    is_active,
    refuse_run_of_other_cluster,
    runs_meant,
)

STATE_ENVIRONMENT = "KREASSIGN_STATE_DIR"


state_dir_option = click.option(
    "--state-dir",
    type=DIRECTORY,
    default=default_state_dir,
    envvar=STATE_ENVIRONMENT,
    metavar="DIR",
    help="Directory of the journals of runs (or the environment variable KREASSIGN_STATE_DIR).  "
    "[default: ~/.local/state/kreassign]",
)
"""Add `--state-dir DIR`: parameter `state_dir: Path`."""


# Most often there is only one run.


def _known_runs(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Runs whose IDs begin with the text, latest first, for shell completion."""
    state_dir = context.params.get("state_dir") or default_state_dir()
    found = [LAST, *(path.stem for path in reversed(all_journals(Path(state_dir))))]
    return [run_id for run_id in dict.fromkeys(found) if run_id.startswith(incomplete)]


run_id_argument = click.argument("run_id", required=False, shell_complete=_known_runs)
"""Add `[RUN_ID]`: parameter `run_id: str | None`, for `meant_journal`, which resolves `last` and None."""


_NAMES_A_CLUSTER = ("--bootstrap-server", "--command-config", "--cluster")


def meant_journal(state_dir: Path, run_id: str | None, cluster: ClusterOptions) -> Path:
    """The journal of the run that is named, or of the cluster in force; on a terminal, ask which of several is meant.

    A run that is named must be of a cluster that is named beside it. Raises InputError.
    """
    if _is_named(run_id):
        path = find_journal(state_dir, run_id)
        if any(word.partition("=")[0] in _NAMES_A_CLUSTER for word in typed_words()):
            here = cluster.in_force()
            if here.why is not None:
                # A process that executes the run needs no address; another one cannot go on without.
                way = "leave it out" if is_active(path) else "what only shows the run needs none"
                raise InputError(
                    f"{here.why}, so whether run {path.stem} is of it is not known; correct the address ({way})"
                )
            refuse_run_of_other_cluster(path, here.cluster_id or "")
        return path
    return _of_cluster(state_dir, run_id, _in_force(state_dir, cluster))


def shown_journals(state_dir: Path, run_id: str | None, cluster: ClusterOptions) -> tuple[Path, ...]:
    """Journals to read: of `meant_journal`, or of each cluster with runs where the one in force cannot be asked.

    That it cannot is told. Only for what changes no run. Raises InputError.
    """
    if _is_named(run_id):
        return (meant_journal(state_dir, run_id, cluster),)
    here = _in_force(state_dir, cluster)
    if not here.is_silent:
        return (_of_cluster(state_dir, run_id, here),)
    found = runs_meant(state_dir, NO_CLUSTER, is_last=run_id == LAST)
    shown = f"that of cluster {cluster_of(found[0])}, the only one" if len(found) == 1 else "one of each cluster"
    told = f"{here.why}, so which run is meant is not known; shown is {shown} with runs in {state_dir}"
    click.echo(told, err=True)
    return found


def shown_journal(state_dir: Path, run_id: str | None, cluster: ClusterOptions) -> Path:
    """Return the only one of `shown_journals`. Raises InputError if there are several."""
    path, *others = shown_journals(state_dir, run_id, cluster)
    if others:
        raise InputError("name the run that is meant: `kreassign status` shows them")
    return path


def _is_named(run_id: str | None) -> bool:
    return run_id is not None and run_id != LAST


def _in_force(state_dir: Path, cluster: ClusterOptions) -> InForce:
    return cluster.in_force() if all_journals(state_dir) else NO_CLUSTER


def _of_cluster(state_dir: Path, run_id: str | None, here: InForce) -> Path:
    candidates = runs_meant(state_dir, here, is_last=run_id == LAST)
    if len(candidates) == 1 or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return find_journal(state_dir, run_id, here)
    click.echo("no cluster is named, and each of these has a run:", err=True)
    for number, path in enumerate(candidates, start=1):
        active = ", which a process executes" if is_active(path) else ""
        click.echo(f"  {number}  {path.stem} of cluster {cluster_of(path)}{active}", err=True)
    try:
        chosen: int = click.prompt("which run?", type=WholeRange(1, len(candidates)), err=True)
    except click.Abort:  # Ctrl-C or Ctrl-D, after which the cursor is still on the line of the question
        click.echo("\nno run was chosen", err=True)
        raise click.exceptions.Exit(1) from None
    return candidates[chosen - 1]
