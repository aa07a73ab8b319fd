"""Options of the commands that execute runs, and of their monitoring: `monitoring: Monitoring`."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import click
from click.core import ParameterSource

from kreassign.cli.options import values
from kreassign.cli.options.run_id import state_dir_option
from kreassign.errors import InputError
from kreassign.executor.client_guard import ClientGuard, ClientQuery, check_address
from kreassign.executor.guards import DEFAULTS, GuardName, Reaction, parse_guard
from kreassign.executor.lease import LeasePolicy
from kreassign.executor.throttle_ledger import FoundThrottles
from kreassign.model.documents import is_half
from kreassign.model.text import LARGEST_PORT, shortened
from kreassign.monitoring.client_signals import check_files
from kreassign.monitoring.webhooks import Webhook, checked_secret, checked_url
from kreassign.operations.mirrors import checked_destination
from kreassign.operations.monitoring import Monitoring
from kreassign.operations.run import POLL_INTERVAL_S, RunContext
from kreassign.operations.text_files import naming, read_text

LEAST_POLL_S = 0.1


def parse_poll_interval(text: str) -> float:
    """Seconds between polls, with a minimum that spares the cluster. For `click.option(type=…)`."""
    seconds = values.parse_duration(text)
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
    help="Lock the cluster against runs of other machines: if that creates no topic (auto), always (require), or never "
    "(off).",
)

JOURNAL_ENVIRONMENT = "KREASSIGN_JOURNAL_TO"
DESTINATION = values.ReadBy("destination", checked_destination)
_KEPT = f"a folder, s3://bucket/prefix or topic:NAME (or the environment variable {JOURNAL_ENVIRONMENT})."

_JOURNAL_TO = click.option(
    "--journal-to",
    envvar=JOURNAL_ENVIRONMENT,
    type=DESTINATION,
    metavar="DEST",
    help="Keep the journal there, too, so that another host can resume the run, and send nothing that is not there: "
    f"{_KEPT}  [default: only in --state-dir]",
)
_JOURNAL_FROM = click.option(
    "--journal-to",
    "--journal-from",
    "journal_to",
    envvar=JOURNAL_ENVIRONMENT,
    type=DESTINATION,
    metavar="DEST",
    help="Use the journal that another host kept there, and keep it there: "
    f"{_KEPT} `none` ends that.  [default: where it was kept]",
)

run_context_options = values.option_group("run_context", (_POLL, _LEASE, state_dir_option, _JOURNAL_TO), RunContext)
"""Add `--poll-interval`, `--lease`, `--state-dir` and `--journal-to`: keyword `run_context: RunContext`."""
taken_run_options = values.option_group("run_context", (_POLL, _LEASE, state_dir_option, _JOURNAL_FROM), RunContext)
"""`run_context_options` for commands about a run that another host may have begun."""


def read_found(adopt: str | None, alongside: bool) -> FoundThrottles:
    """Build FoundThrottles. Raises click.UsageError if both options are given."""
    if adopt is not None and alongside:
        raise click.UsageError("throttles of others are either adopted or run alongside; specify one of the two")
    return FoundThrottles(adopt) if adopt else FoundThrottles.ALONGSIDE if alongside else FoundThrottles.REFUSE


found_options = values.option_group(
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


replan_option = click.option(
    "--replan",
    is_flag=True,
    help="Choose other destinations for moves to a broker that is lost, which is down for --give-up-after, or for a "
    "minute: as few changes as possible, by rack and free space.  [default: wait for the broker]",
)
give_up_option = click.option(
    "--give-up-after",
    type=values.parse_interval,
    metavar="DURATION",
    help="Cancel moves to a broker that is down for so long, which throws away what was copied.  "
    "[default: wait for the broker]",
)
"""In seconds: parameter `give_up_after: float | None`."""
producer_outage_option = click.option(
    "--allow-producer-outage",
    is_flag=True,
    help="Start moves although producers with acks=all are refused until they are over: fewer replicas in sync than "
    "min.insync.replicas, since those that are added count.  [default: refuse such a plan]",
)
factor_change_option = click.option(
    "--allow-factor-change",
    is_flag=True,
    help="Allow that replication factors fall, or change to one below min.insync.replicas.  "
    "[default: refuse such a plan]",
)


guards_option = click.option(
    "--guard",
    "guards",
    multiple=True,
    type=values.ReadBy("guard", parse_guard),
    callback=lambda _, __, pairs: dict(pairs),
    metavar="NAME=REACTION",
    help=f"Set the reaction to a breached guard; may be repeated. Guards: {', '.join(GuardName)}. Reactions: "
    f"{', '.join(Reaction)}.  [default: {Reaction.WARN} for "
    f"{', '.join(guard for guard, reaction in DEFAULTS.items() if reaction is Reaction.WARN)}; {Reaction.HOLD} for the "
    "others]",
)
"""Any number of times: parameter `guards: dict[GuardName, Reaction]`."""


def read_clients(
    guard_queries: tuple[ClientQuery, ...],
    guard_url: str | None,
    guard_login: Path | None,
    guard_ca: Path | None,
    guard_command: tuple[str, ...] | None,
) -> ClientGuard | None:
    """Build a ClientGuard, None without a query and a command. Raises click.UsageError for what does not fit."""
    if not (guard_queries or guard_command or guard_url or guard_login or guard_ca):
        return None
    login_file, ca_file = (None if path is None else str(path.absolute()) for path in (guard_login, guard_ca))
    try:
        guard = ClientGuard(guard_queries, guard_url, login_file, ca_file, guard_command or ())
        check_files(guard, lambda path: read_text(Path(path)))
    except InputError as error:
        raise click.UsageError(str(error)) from error
    return guard


def _words(text: str) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise InputError(f"{shortened(text)!r} is no command: {error}") from error
    if not words:
        raise InputError(f"{shortened(text)!r} is no command")
    return words


clients_options = values.option_group(
    "clients",
    (
        click.option(
            "--guard-query",
            "guard_queries",
            multiple=True,
            type=values.ReadBy("condition", ClientQuery.parse),
            metavar="CONDITION",
            help="Hold and slow the run unless this holds: PromQL with one value, then <, <=, > or >= and a number; "
            "may be repeated. Needs --guard-url.  [default: none]",
        ),
        click.option(
            "--guard-url",
            type=values.ReadBy("address", values.checked(check_address)),
            metavar="URL",
            help="Prometheus for --guard-query, such as https://prometheus:9090.  [default: none]",
        ),
        click.option(
            "--guard-login",
            type=values.INPUT_FILE,
            help="Login for Prometheus: a file with the line `basic USER:PASSWORD` or `bearer TOKEN`.  "
            "[default: no login]",
        ),
        click.option(
            "--guard-ca",
            type=values.INPUT_FILE,
            help="Certificates (PEM) that Prometheus is trusted by.  [default: those of the system]",
        ),
        click.option(
            "--guard-command",
            type=values.ReadBy("command", _words),
            metavar="COMMAND",
            help="Hold and slow the run unless this command exits with 0; 1 and 2 are bad, anything else unknown. It "
            "runs every 15s, without a shell, for at most 10s.  [default: none]",
        ),
    ),
    read_clients,
)
"""Add the options that tell what clients feel: keyword `clients: ClientGuard | None`."""


# Options for monitoring a run.

WEBHOOK_VARIABLE = "KREASSIGN_WEBHOOK"
SIGNING_FILE_VARIABLE = "KREASSIGN_WEBHOOK_SECRET_FILE"
SIGNING_VARIABLE = "KREASSIGN_WEBHOOK_SECRET"
_NAMES = ("metrics_port", "webhook", "webhook_secret_file")


def announce(address: str) -> None:
    """Print the address of the metrics on stderr."""
    click.echo(f"metrics: {address}", err=True)


def refuse_monitoring_of_others(run_id: str) -> None:
    """Raise InputError if the command line (not the environment) has monitoring options for another process's run."""
    context = click.get_current_context()
    if any(context.get_parameter_source(name) is ParameterSource.COMMANDLINE for name in _NAMES):
        raise InputError(
            f"a process executes run {run_id}, and only that one can be monitored by --metrics-port and --webhook; "
            "leave them out"
        )


def read_monitoring(metrics_port: int | None, webhook: str | None, webhook_secret_file: Path | None) -> Monitoring:
    """Build Monitoring. Raises click.UsageError for a webhook without a secret, or a secret without a webhook."""
    if webhook is None:
        if click.get_current_context().get_parameter_source("webhook_secret_file") is ParameterSource.COMMANDLINE:
            raise click.UsageError("a secret is for a webhook; specify --webhook too, or leave it out")
        return Monitoring(metrics_port)
    try:
        return Monitoring(metrics_port, Webhook(webhook, _secret(webhook_secret_file)))
    except InputError as error:
        raise click.UsageError(str(error)) from error


def _secret(file: Path | None) -> bytes:
    if file is not None:
        with naming(file):
            return checked_secret(read_text(file))
    found = os.environ.get(SIGNING_VARIABLE)
    if not found or is_half(found):
        raise InputError(
            "messages to a webhook are signed; give the secret in a file (--webhook-secret-file) or in the "
            f"environment variable {SIGNING_VARIABLE}"
        )
    return checked_secret(found)


metrics_port_option = click.option(
    "--metrics-port",
    type=values.WholeRange(min=0, max=LARGEST_PORT),
    metavar="PORT",
    help="Serve metrics of the run for Prometheus at http://127.0.0.1:PORT/metrics while the command runs; 0 "
    "for any free port.  [default: none]",
)
"""Parameter `metrics_port: int | None`."""

monitoring_options = values.option_group(
    "monitoring",
    (
        metrics_port_option,
        click.option(
            "--webhook",
            type=values.ReadBy("address", checked_url),
            envvar=WEBHOOK_VARIABLE,
            metavar="URL",
            help="Tell this address, in signed messages, when the run is held, done, cancelled, paused or has failed "
            f"(or the environment variable {WEBHOOK_VARIABLE}, which no journal keeps).  [default: nobody]",
        ),
        click.option(
            "--webhook-secret-file",
            type=values.INPUT_FILE,
            envvar=SIGNING_FILE_VARIABLE,
            help="Sign messages to the webhook with the secret in FILE.  "
            f"[default: that of the environment variable {SIGNING_VARIABLE}]",
        ),
    ),
    read_monitoring,
)
"""Add `--metrics-port`, `--webhook` and `--webhook-secret-file`: keyword `monitoring: Monitoring`."""
