"""`kreassign twin start`: a process that serves a twin until it is told to stop."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import pytest

from kreassign.admin import AdminClient, client_settings
from kreassign.cli.commands.twin import parse_speed, start
from kreassign.model import NewTopic
from tests.checks import whole
from tests.checks.source import read

PATIENCE_S = 20


class Served:
    """A running `kreassign twin start`, and what it printed."""

    def __init__(self, *options: str) -> None:
        main = "from kreassign.cli.main import main; main()"
        command = [sys.executable, "-c", main, "twin", "start", *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.lines = [self.process.stdout.readline().strip() for _ in range(3)]

    def bootstrap(self, kind: str = "servers") -> str:
        (line,) = [line for line in self.lines if line.startswith(f"bootstrap {kind}: ")]
        return line.partition(": ")[2]

    def admin(self) -> AdminClient:
        return AdminClient.connect(client_settings({}, bootstrap_servers=self.bootstrap()))

    def end(self, how: signal.Signals = signal.SIGINT) -> tuple[int, str]:
        """Exit code and standard error after a signal."""
        self.process.send_signal(how)
        _, errors = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, errors


@contextmanager
def serving(*options: str) -> Iterator[Served]:
    served = Served("--port", "0", *options)
    try:
        yield served
    finally:
        served.process.kill()
        served.process.communicate()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_cluster_is_served_until_it_is_interrupted(how: signal.Signals) -> None:
    with serving("--brokers", "4", "--racks", "a,b", "--kafka-version", "3.9.1", "--speed", "max") as served:
        assert served.lines[0] == "Kafka 3.9 twin with 4 brokers; Ctrl-C ends it"
        with served.admin() as admin:
            assert [broker.rack for broker in admin.describe_cluster().brokers] == ["a", "b", "a", "b"]
        controllers = client_settings({}, bootstrap_controllers=served.bootstrap("controllers"))
        with AdminClient.connect(controllers) as admin:
            assert admin.list_partition_reassignments() == {}
        assert served.end(how) == (0, "")


def test_a_cluster_goes_on_where_it_was(tmp_path: Path) -> None:
    for _ in range(2):
        with serving("--data-dir", str(tmp_path / "twin")) as served:
            with served.admin() as admin:
                before = admin.list_topics()
                admin.create_topics([NewTopic(f"orders{len(before)}", 2, 2)]).raise_if_any()
            assert served.end() == (0, "")
    with serving("--data-dir", str(tmp_path / "twin")) as served, served.admin() as admin:
        assert sorted(admin.list_topics()) == ["orders0", "orders1"]


def test_a_port_that_is_taken_is_said_to_be(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        served = Served("--port", str(port))
        _, errors = served.process.communicate(timeout=PATIENCE_S)
    assert served.process.returncode == 2
    assert errors == f"error: cannot listen on 127.0.0.1:{port} for node 0: address already in use\n"


@pytest.mark.parametrize(("text", "speed"), [("max", None), ("1", 1.0), ("0.5", 0.5), ("1e3", 1000.0)])
def test_a_speed_is_a_number_or_max(text: str, speed: float | None) -> None:
    assert parse_speed(text) == speed


@pytest.mark.parametrize("text", ["0", "-1", "inf", "nan", "fast", ""])
def test_anything_else_is_no_speed(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is no speed"):
        parse_speed(text)


def test_the_reference_names_every_option() -> None:
    (page,) = read("docs/reference/kreassign.md")
    real = {name for parameter in start.params if isinstance(parameter, click.Option) for name in parameter.opts}
    dashed = {name for name in real if name.startswith("--")}
    findings = list(whole.options_that_differ("twin start", dashed, page))
    assert not findings, findings
