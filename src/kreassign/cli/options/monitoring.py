"""How a run is monitored, as options: `monitoring: Monitoring`."""

from __future__ import annotations

import os
from pathlib import Path

import click
from click.core import ParameterSource

from kreassign.cli.options.group import option_group
from kreassign.cli.options.values import ReadBy, WholeRange
from kreassign.errors import InputError
from kreassign.model.strict_json import is_half
from kreassign.model.whole_number import LARGEST_PORT
from kreassign.monitoring.messages import checked_secret
from kreassign.monitoring.webhooks import Webhook, checked_url
from kreassign.operations.monitoring import Monitoring

WEBHOOK_VARIABLE = "KREASSIGN_WEBHOOK"
SIGNING_FILE_VARIABLE = "KREASSIGN_WEBHOOK_SECRET_FILE"
SIGNING_VARIABLE = "KREASSIGN_WEBHOOK_SECRET"
_NAMES = ("metrics_port", "webhook", "webhook_secret_file")


def announce(address: str) -> None:
    """Say on stderr where the metrics are."""
    click.echo(f"metrics: {address}", err=True)


def refuse_monitoring_of_others(run_id: str) -> None:
    """Raise InputError where the command line, not only the environment, says how to monitor another process's run."""
    context = click.get_current_context()
    if any(context.get_parameter_source(name) is ParameterSource.COMMANDLINE for name in _NAMES):
        raise InputError(
            f"a process executes run {run_id}, and only that one can be monitored by --metrics-port and --webhook; "
            "leave them out"
        )


def read_monitoring(metrics_port: int | None, webhook: str | None, webhook_secret_file: Path | None) -> Monitoring:
    """The value of the options. Raises click.UsageError for a webhook without a secret, or a secret without one."""
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
        try:
            return checked_secret(file.read_text(encoding="utf-8"))
        except UnicodeDecodeError as error:
            raise InputError(f"{file} is not a text in UTF-8: {error}") from error
        except InputError as error:
            raise InputError(f"{file}: {error}") from error
    found = os.environ.get(SIGNING_VARIABLE)
    if not found or is_half(found):
        raise InputError(
            "messages to a webhook are signed; give the secret in a file (--webhook-secret-file) or in the "
            f"environment variable {SIGNING_VARIABLE}"
        )
    return checked_secret(found)


monitoring_options = option_group(
    "monitoring",
    (
        click.option(
            "--metrics-port",
            type=WholeRange(min=0, max=LARGEST_PORT),
            metavar="PORT",
            help="Serve metrics of the run for Prometheus at http://127.0.0.1:PORT/metrics while the command runs; 0 "
            "for any free port.  [default: none]",
        ),
        click.option(
            "--webhook",
            type=ReadBy("address", checked_url),
            envvar=WEBHOOK_VARIABLE,
            metavar="URL",
            help="Tell this address, in signed messages, when the run is held, done, cancelled, paused or has failed "
            f"(or the environment variable {WEBHOOK_VARIABLE}, which no journal keeps).  [default: nobody]",
        ),
        click.option(
            "--webhook-secret-file",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            envvar=SIGNING_FILE_VARIABLE,
            metavar="FILE",
            help="Sign messages to the webhook with the secret in FILE.  "
            f"[default: that of the environment variable {SIGNING_VARIABLE}]",
        ),
    ),
    read_monitoring,
)
"""Add `--metrics-port`, `--webhook` and `--webhook-secret-file`: keyword `monitoring: Monitoring`."""
