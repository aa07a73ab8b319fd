"""`kreassign web`: runs and plans on a web page, with an HTTP API."""

from __future__ import annotations

import os
import re
from pathlib import Path

import click

from kreassign.admin.settings import Address
from kreassign.cli.options.cluster import ClusterOptions, page_cluster_options
from kreassign.cli.options.run_id import state_dir_option
from kreassign.cli.options.values import INPUT_FILE, ReadBy, optional_data_option
from kreassign.cli.output import examples
from kreassign.cli.profiles import config_path, shared_in
from kreassign.errors import InputError, requires
from kreassign.model.documents import is_half
from kreassign.model.text import port_mistake, shortened, signed_number
from kreassign.operations.run_journals import NamedCluster
from kreassign.operations.text_files import naming, read_text
from kreassign.web.settings import DEFAULT_PORT, LOCAL_HOST, PageTls, PageToken, Reach, User, WebSettings, parse_users

WEB_VARIABLE = "KREASSIGN_WEB_TOKEN"


_PORT_SLIP = re.compile(r"[0-9]+[A-Za-z]+")
"""A port with letters behind it: as a host it would be refused for what others may see."""


def listen_address(text: str) -> Address:
    """Parse HOST:PORT, a PORT of this machine, or a HOST; port 0 takes any free one. Raises InputError."""
    host, colon, port = text.strip().rpartition(":")
    refusal = InputError(
        f"{shortened(text)!r} is neither a port nor an address{port_mistake(f':{port}')}; write for example 8085 or "
        "0.0.0.0:8443"
    )
    if not colon and _PORT_SLIP.fullmatch(port):
        raise refusal
    if not colon:
        host, port = (port, str(DEFAULT_PORT)) if signed_number(port) is None else (LOCAL_HOST, port)
    elif host.endswith(":") or port.endswith("]"):  # an IPv6 address without a port
        host, port = text.strip(), str(DEFAULT_PORT)
    try:
        address = Address.parse(f"{host or LOCAL_HOST}:{'1' if port == '0' else port}")
    except InputError:
        raise refusal from None
    return address._replace(port=0) if port == "0" else address


@examples(
    "kreassign web",
    "kreassign web --bootstrap-server localhost:9092",
    "kreassign web --plans ./plans --allow-control --token-file /etc/kreassign/web.token",
    "kreassign web --listen 0.0.0.0:8443 --host-name ops.example --certificate tls.pem --key tls.key "
    "--token-file /etc/kreassign/web.token",
)
@click.command()
@click.option(
    "--listen", type=ReadBy("address", listen_address), default=f"{LOCAL_HOST}:{DEFAULT_PORT}", show_default=True,
    metavar="[HOST:]PORT",
    help="Where to serve; port 0 takes any that is free. Elsewhere than here it needs a certificate and a token.",
)  # fmt: skip
@click.option(
    "--host-name", "names", multiple=True, metavar="NAME",
    help="A name by which browsers may ask, besides those of this machine; may be repeated.  [default: none]",
)  # fmt: skip
@click.option(
    "--plans", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="DIR",
    help="Directory of plans to show, and to approve.  [default: none]",
)  # fmt: skip
@click.option(
    "--allow-control", is_flag=True,
    help="Let whoever has the token plan, approve, start, steer and roll back; of --users those with the role.",
)  # fmt: skip
@click.option(
    "--users", "users_file", type=INPUT_FILE,
    help="File of users, a line `NAME ROLE[,ROLE] TOKEN` each; roles are viewer, operator and approver.  "
    "[default: one token for all]"
)  # fmt: skip
@click.option(
    "--token-file", type=INPUT_FILE,
    help=f"File of the token.  [default: the environment variable {WEB_VARIABLE}]"
)  # fmt: skip
@click.option("--certificate", type=INPUT_FILE, help="Certificate chain in PEM, for TLS.  [default: none]")
@click.option("--key", type=INPUT_FILE, help="Private key in PEM, for TLS.  [default: none]")
@page_cluster_options
@optional_data_option
@state_dir_option
def web(
    listen: Address,
    names: tuple[str, ...],
    plans: Path | None,
    allow_control: bool,
    users_file: Path | None,
    token_file: Path | None,
    certificate: Path | None,
    key: Path | None,
    cluster: ClusterOptions,
    data: Path | str | None,
    state_dir: Path,
) -> None:
    """Serve a page of runs, live, with their reports and history, and of plans; and an HTTP API behind it.

    It only shows, on this machine only, unless you say otherwise. Runs are those of --state-dir and of the clusters
    that have names (config.toml). With --bootstrap-server it also shows that cluster: what is wrong, and how brokers
    and topics are loaded; with --allow-control besides, plans are made and runs are started there.
    """
    if (certificate is None) != (key is None):
        raise click.UsageError("TLS needs both --certificate and --key")
    tls = PageTls(certificate, key) if certificate is not None and key is not None else None
    try:
        users = _users(users_file)
        token = None if users and token_file is None else _token(token_file)
        settings = WebSettings(
            state_dir, listen.host, listen.port, names, plans, data, token, allow_control, tls, _clusters(), users,
            None if cluster.bootstrap_server is None
            else Reach(cluster.bootstrap_server, cluster.properties, cluster.bootstrap_controller),
        )  # fmt: skip
    except InputError as error:
        raise click.UsageError(str(error)) from error
    with requires("the page", "Starlette", "web"):
        from kreassign.web.server import serve
    serve(settings, lambda address: click.echo(f"serving {address} (Ctrl-C ends)"))


def _clusters() -> tuple[NamedCluster, ...]:
    """The named clusters. Raises InputError."""
    return tuple(
        NamedCluster(
            name,
            shared.get("bootstrap-server"),
            None if (folder := shared.get("state-dir")) is None else Path(folder).resolve(),
        )
        for name, shared in shared_in(config_path()).items()
    )


def _users(file: Path | None) -> tuple[User, ...]:
    """The users of the file; none without one. Raises InputError, which names the file."""
    if file is None:
        return ()
    with naming(file):
        return parse_users(read_text(file))


def _token(file: Path | None) -> PageToken | None:
    """The token of the file, else of the environment; None without both. Raises InputError."""
    if file is not None:
        with naming(file):
            return PageToken(read_text(file).strip())
    found = os.environ.get(WEB_VARIABLE)
    return PageToken(found.strip()) if found and not is_half(found) else None
