"""Options to reach a cluster, as one value: `cluster: ClusterOptions`."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from kreassign.admin import AdminClient
from kreassign.admin.properties import PROVIDER_CLASSES, PROVIDERS_KEY, addresses_of, read_properties
from kreassign.admin.settings import Address
from kreassign.cli.options.values import Decorator, ReadBy, checked, option_group, parse_duration
from kreassign.cli.profiles import ADDRESS_ENVIRONMENT, IN_FORCE, Profile
from kreassign.errors import InputError, KreassignError
from kreassign.model.authorization import error_text
from kreassign.model.load import MEASURED_S
from kreassign.operations.connect import connect, connect_controllers
from kreassign.operations.run_journals import NO_CLUSTER, InForce

# Client properties of a profile, with the output of `${command:…}` inserted and Kafka's providers declared.
#
# Only the user's own configuration may name commands: a properties file may come from anywhere.

_COMMAND = re.compile(r"\$\{command:([^}]*)\}")
_PATIENCE_S = 60


def with_secrets(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties with secrets inserted. Raises InputError, which names the property, if a command fails."""
    found = {key: _resolved(key, text) for key, text in properties.items()}
    if not found or PROVIDERS_KEY in found:
        return found
    classes = {f"{PROVIDERS_KEY}.{name}.class": kind for name, kind in PROVIDER_CLASSES.items()}
    return {PROVIDERS_KEY: ",".join(PROVIDER_CLASSES), **classes, **found}


def _resolved(key: str, text: str) -> str:
    def printed(match: re.Match[str]) -> str:
        return _printed(key, match[1])

    return _COMMAND.sub(printed, text)


def _printed(key: str, command: str) -> str:
    """The first line of a command's output; its stderr stays on the terminal, where it may also ask."""
    try:
        done = subprocess.run(shlex.split(command), stdout=subprocess.PIPE, text=True, timeout=_PATIENCE_S, check=True)
        return done.stdout.splitlines()[0]
    except (OSError, ValueError, subprocess.SubprocessError, IndexError) as error:
        what = "printed nothing" if isinstance(error, IndexError) else f"failed: {type(error).__name__}"
        raise InputError(f"{key} refers to the command {command!r}, which {what}") from None


def named_addresses(key: str, config: Path | None, profile: Profile | None) -> str | None:
    """This property of the file, or of the profile where no file is named. Raises InputError."""
    if config is not None:
        return addresses_of(key, read_properties(config))
    return None if profile is None else addresses_of(key, with_secrets(profile.properties))


class AddressOption(click.Option):
    """Addresses; by default those of the client properties, as in Kafka's clients."""

    def consume_value(self, ctx: click.Context, opts: Mapping[str, Any]) -> tuple[Any, ParameterSource]:
        """The value and its source: a typed file of properties wins over the addresses of a profile."""
        value, source = super().consume_value(ctx, opts)
        is_typed = ctx.get_parameter_source("command_config") is ParameterSource.COMMANDLINE
        if source is not ParameterSource.DEFAULT and not (source is ParameterSource.DEFAULT_MAP and is_typed):
            return value, source
        config = ctx.params.get("command_config")
        key = f"{str(self.name).replace('_', '.')}s"
        named = named_addresses(key, config if isinstance(config, Path) else None, ctx.meta.get(IN_FORCE))
        return (value if named is None else named), source


CONTROLLER_ENVIRONMENT = "KREASSIGN_BOOTSTRAP_CONTROLLER"
ADDRESSES = ReadBy("addresses", checked(Address.parse_list))


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """Addresses and client properties, as given."""

    bootstrap_server: str | None
    command_config: Path | None = None
    bootstrap_controller: str | None = None

    def connect(self) -> AdminClient:
        """A connected client, to be used in a `with` statement. Raises InputError, Unreachable."""
        if self.bootstrap_server is None:
            raise InputError("specify --bootstrap-server")
        return connect(self.bootstrap_server, self._properties)

    def connect_to_resume(self, run_id: str) -> AdminClient:
        """A client for resuming a run, to be used in a `with` statement. Raises InputError without an address."""
        if self.bootstrap_server is None:
            raise InputError(
                f"no process executes run {run_id}; specify --bootstrap-server, so that this command can execute it"
            )
        return self.connect()

    def in_force(self) -> InForce:
        """Ask the cluster for its id; without an address no cluster is in force."""
        if self.bootstrap_server is None:
            return NO_CLUSTER
        try:
            with self.connect() as client:
                return InForce(client.describe_cluster().cluster_id)
        except KreassignError as error:
            return InForce(why=f"the cluster at {self.bootstrap_server} could not be asked ({error_text(error)})")

    def connect_controllers(self) -> AbstractContextManager[AdminClient | None]:
        """A client of the controllers, None without their addresses. Sends nothing yet. Raises InputError."""
        if self.bootstrap_controller is None:
            return nullcontext()
        return connect_controllers(self.bootstrap_controller, self._properties)

    @property
    def _properties(self) -> Path | Mapping[str, str] | None:
        """The named file, or the properties of the profile in force."""
        context = click.get_current_context(silent=True)
        profile: Profile | None = None if context is None else context.meta.get(IN_FORCE)
        if self.command_config is not None or profile is None or not profile.properties:
            return self.command_config
        return with_secrets(profile.properties)


config_option = click.option(
    "--command-config",
    is_eager=True,  # It may name the servers.
    envvar="KREASSIGN_COMMAND_CONFIG",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Client properties, in the format of Kafka's own tools (servers, security, timeouts).  "
    "[default: Kafka's defaults, in plain text]",
)
_CONTROLLER = click.option(
    "--bootstrap-controller",
    cls=AddressOption,
    type=ADDRESSES,
    envvar=CONTROLLER_ENVIRONMENT,
    metavar="HOST:PORT[,…]",
    help="Controllers of a KRaft cluster, to set the throttle of brokers that are down "
    f"(or the environment variable {CONTROLLER_ENVIRONMENT}, or bootstrap.controllers of --command-config).  "
    "[default: none]",
)


def measure_for_option(what: str) -> Decorator:
    """Add `--measure-for`: parameter `measure_for: float`, seconds to measure. Its help text is `what`."""
    return click.option(
        "--measure-for", type=parse_duration, default=f"{MEASURED_S:g}s", show_default=True, metavar="TIME", help=what
    )


def bootstrap_option(default: str = "") -> Decorator:
    """Add `--bootstrap-server`; required, there or in the properties, unless `default` says what happens without."""
    return click.option(
        "--bootstrap-server",
        cls=AddressOption,
        required=not default,
        type=ADDRESSES,
        envvar=ADDRESS_ENVIRONMENT,
        metavar="HOST:PORT[,…]",
        help=f"Brokers to connect to first (or the environment variable {ADDRESS_ENVIRONMENT}, or "
        f"bootstrap.servers of --command-config).{default}",
    )


cluster_options = option_group("cluster", (bootstrap_option(), config_option), ClusterOptions)
"""Add `--bootstrap-server` and `--command-config`."""

run_cluster_options = option_group("cluster", (bootstrap_option(), config_option, _CONTROLLER), ClusterOptions)
"""`cluster_options` for commands that execute runs, with `--bootstrap-controller`."""

interrupted_run_cluster_options = option_group(
    "cluster",
    (
        bootstrap_option("  [default: none; only a run that no process executes needs it]"),
        config_option,
        _CONTROLLER,
    ),
    ClusterOptions,
)
"""`run_cluster_options` for commands that need a cluster only if no process executes the run."""
