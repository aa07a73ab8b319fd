"""How a command reaches its cluster: the options that every such command has, and the client they make."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, TypeVar

import click

from kreassign.admin import AdminClient, client_settings
from kreassign.admin.properties import read_properties

Command = TypeVar("Command", bound=Callable[..., Any])

BOOTSTRAP_ENVIRONMENT = "KREASSIGN_BOOTSTRAP_SERVER"
CONTROLLER_ENVIRONMENT = "KREASSIGN_BOOTSTRAP_CONTROLLER"


def cluster_options(command: Command) -> Command:
    """Add `--bootstrap-server` (a `str`) and `--command-config` (a `Path` or None) to a command."""
    return _cluster_options(command, is_required=True)


def cluster_options_if_needed(command: Command) -> Command:
    """The same for a command that can often do without a cluster: `bootstrap_server` may be None."""
    return _cluster_options(command, is_required=False)


def _cluster_options(command: Command, *, is_required: bool) -> Command:
    bootstrap = click.option(
        "--bootstrap-server",
        required=is_required,
        envvar=BOOTSTRAP_ENVIRONMENT,
        metavar="HOST:PORT[,…]",
        help=f"Brokers to start from (or the environment variable {BOOTSTRAP_ENVIRONMENT}).",
    )
    config = click.option(
        "--command-config",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="Client properties, as Kafka's own tools read them (security, time-outs).",
    )
    return bootstrap(config(command))


def controller_option(command: Command) -> Command:
    """Add `--bootstrap-controller`: parameter `bootstrap_controller: str | None`."""
    return click.option(
        "--bootstrap-controller",
        envvar=CONTROLLER_ENVIRONMENT,
        metavar="HOST:PORT[,…]",
        help="Controllers of a KRaft cluster, which take the throttle of brokers that are down "
        f"(or the environment variable {CONTROLLER_ENVIRONMENT}).",
    )(command)


def connect(bootstrap_server: str, command_config: Path | None) -> AdminClient:
    """A connected client, to be used in a `with` statement. Raises InputError for bad properties, Unreachable."""
    properties = read_properties(command_config) if command_config else {}
    return AdminClient.connect(client_settings(properties, bootstrap_servers=bootstrap_server))


def connect_controllers(
    bootstrap_controller: str | None, command_config: Path | None
) -> AbstractContextManager[AdminClient | None]:
    """A client of the controllers, if their addresses were given. Nothing is sent yet. Raises InputError."""
    if bootstrap_controller is None:
        return nullcontext()
    properties = read_properties(command_config) if command_config else {}
    return AdminClient.connect(client_settings(properties, bootstrap_controllers=bootstrap_controller))
