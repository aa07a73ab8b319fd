"""The option of the commands that find runs. Apart from those that execute them: it needs no client, nor a cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from kreassign.cli.options.values import DIRECTORY
from kreassign.operations.journals import default_state_dir

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
