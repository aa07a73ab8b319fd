"""Options that select a run: the directory of journals, and the optional run ID.

Kept apart from the options of commands that execute runs: these need neither a client nor a cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from kreassign.cli.options.values import DIRECTORY
from kreassign.operations.run_journals import LAST, all_journals, default_state_dir

Command = TypeVar("Command", bound=Callable[..., Any])


STATE_ENVIRONMENT = "KREASSIGN_STATE_DIR"


def state_dir_option(command: Command) -> Command:
    """Add `--state-dir DIR`: parameter `state_dir: Path`."""
    return click.option(
        "--state-dir",
        type=DIRECTORY,
        default=default_state_dir,
        envvar=STATE_ENVIRONMENT,
        metavar="DIR",
        help="Directory of the journals of runs (or the environment variable KREASSIGN_STATE_DIR).  "
        "[default: ~/.local/state/kreassign]",
    )(command)


# Most often there is only one run.


def run_id_argument(command: Command) -> Command:
    """Add `[RUN_ID]`: parameter `run_id: str | None`, for `find_journal`, which resolves `last` and None."""
    return click.argument("run_id", required=False, shell_complete=_known_runs)(command)


def _known_runs(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Runs whose IDs begin with the text, latest first, for shell completion."""
    state_dir = context.params.get("state_dir") or default_state_dir()
    found = [LAST, *(path.stem for path in reversed(all_journals(Path(state_dir))))]
    return [run_id for run_id in dict.fromkeys(found) if run_id.startswith(incomplete)]
