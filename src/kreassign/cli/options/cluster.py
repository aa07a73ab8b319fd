"""Options to reach a cluster, as one value: `cluster: ClusterOptions`.

The Kafka client is loaded only where a cluster is asked, so that commands which read journals start quickly.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from kreassign.cli.options.values import INPUT_FILE, Decorator, ReadBy, option_group, parse_duration
from kreassign.cli.profiles import ADDRESS_ENVIRONMENT, IN_FORCE, Profile, around
from kreassign.errors import ClusterError, InputError, KreassignError
from kreassign.model.authorization import error_text
from kreassign.model.load import MEASURED_S
from kreassign.operations.run_journals import NO_CLUSTER, InForce

if TYPE_CHECKING:
    from kreassign.admin import AdminClient


class AddressOption(click.Option):
    """Addresses; by default those of the client properties, as in Kafka's clients."""

    def consume_value(self, ctx: click.Context, opts: Mapping[str, Any]) -> tuple[Any, ParameterSource]:
        """The value and its source."""
        value, source = super().consume_value(ctx, opts)
        return _addresses(ctx, str(self.name), value, source), source


def _addresses(ctx: click.Context, name: str, value: Any, source: ParameterSource | None) -> Any:
    """The addresses that count: a typed file of properties wins over those of a profile."""
    is_typed = ctx.get_parameter_source("command_config") is ParameterSource.COMMANDLINE
    if source is not ParameterSource.DEFAULT and not (source is ParameterSource.DEFAULT_MAP and is_typed):
        return value
    config = ctx.params.get("command_config")
    named = _named(f"{name.replace('_', '.')}s", config if isinstance(config, Path) else None, ctx)
    return value if named is None else named


def _named(key: str, config: Path | None, ctx: click.Context) -> str | None:
    """This property of the file, or of the profile in force where no file is named. Raises InputError."""
    profile: Profile | None = ctx.meta.get(IN_FORCE)
    if config is None and (profile is None or not profile.properties):
        return None
    from kreassign.cli.options.connections import named_addresses

    return named_addresses(key, config, profile)


def _checked(text: str) -> str:
    from kreassign.cli.options.connections import checked_addresses

    return checked_addresses(text)


ASK_MS = 10_000
"""How long a cluster may take to say its id, where that only says which run is meant."""
CONTROLLER_ENVIRONMENT = "KREASSIGN_BOOTSTRAP_CONTROLLER"
ADDRESSES = ReadBy("addresses", _checked)


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """Addresses and client properties, as given.

    A command that `reads_journals` looks for addresses in the properties only when it asks the cluster: to resolve them
    may take long, or a password.
    """

    bootstrap_server: str | None
    command_config: Path | None = None
    bootstrap_controller: str | None = None
    reads_journals: bool = False

    def connect(self) -> AbstractContextManager[AdminClient]:
        """A connected client, to be used in a `with` statement. Raises InputError, Unreachable.

        A refusal that the cluster's distribution explains says so.
        """
        servers = self.resolved().bootstrap_server
        if servers is None:
            raise InputError("specify --bootstrap-server")
        from kreassign.cli.options.connections import connect_explained

        return connect_explained(servers, self.properties)

    def connect_to_resume(self, run_id: str) -> AbstractContextManager[AdminClient]:
        """A client for resuming a run, to be used in a `with` statement. Raises InputError without an address."""
        if self.bootstrap_server is None:
            raise InputError(
                f"no process executes run {run_id}; specify --bootstrap-server, so that this command can execute it"
            )
        return self.connect()

    def resolved(self) -> ClusterOptions:
        """Return these options with the addresses that the properties name."""
        if not self.reads_journals:
            return self
        context, name = click.get_current_context(), "bootstrap_server"
        servers = _addresses(context, name, self.bootstrap_server, context.get_parameter_source(name))
        return replace(self, bootstrap_server=servers, reads_journals=False)

    def in_force(self) -> InForce:
        """Ask the cluster for its id; without an address no cluster is in force."""
        here = self.resolved()
        if here.bootstrap_server is None:
            return NO_CLUSTER
        try:
            with here.connect() as client:
                return InForce(client.describe_cluster(timeout_ms=ASK_MS).cluster_id)
        except KreassignError as error:
            why = f"the cluster at {here.bootstrap_server} could not be asked ({error_text(error)})"
            return InForce(why=why, is_silent=isinstance(error, ClusterError))

    def connect_controllers(self) -> AbstractContextManager[AdminClient | None]:
        """A client of the controllers, None without their addresses. Sends nothing yet. Raises InputError."""
        if self.bootstrap_controller is None:
            return nullcontext()
        from kreassign.cli.options.connections import connect_controllers

        return connect_controllers(self.bootstrap_controller, self.properties)

    @property
    def properties(self) -> Path | Mapping[str, str] | None:
        """The named file, or the properties of the profile in force."""
        context = click.get_current_context(silent=True)
        profile: Profile | None = None if context is None else context.meta.get(IN_FORCE)
        if self.command_config is not None or profile is None or not profile.properties:
            return self.command_config
        from kreassign.cli.options.connections import with_secrets

        return with_secrets(profile.properties)


def cluster_around() -> ClusterOptions:
    """The cluster of the environment or of the profile in force, for `kreassign` alone."""
    config = around("KREASSIGN_COMMAND_CONFIG", "command-config")
    file = Path(config) if config else None
    named = around(ADDRESS_ENVIRONMENT, "bootstrap-server")
    return ClusterOptions(named or _named("bootstrap.servers", file, click.get_current_context()), file)


config_option = click.option(
    "--command-config",
    is_eager=True,  # It may name the servers.
    envvar="KREASSIGN_COMMAND_CONFIG",
    type=INPUT_FILE,
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


def bootstrap_option(default: str = "", *, reads_journals: bool = False) -> Decorator:
    """Add `--bootstrap-server`; required, there or in the properties, unless `default` says what happens without."""
    return click.option(
        "--bootstrap-server",
        cls=click.Option if reads_journals else AddressOption,
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

page_cluster_options = option_group(
    "cluster",
    (bootstrap_option("  [default: none; the page shows what journals have]"), config_option, _CONTROLLER),
    ClusterOptions,
)
"""`cluster_options` for the page, which asks a cluster only if one is given."""

of_run_options = option_group(
    "cluster",
    (
        bootstrap_option("  [default: none; it says whose run is meant without its id]", reads_journals=True),
        config_option,
    ),
    partial(ClusterOptions, reads_journals=True),
)
"""`cluster_options` for commands that need a cluster only to tell which run is meant."""
