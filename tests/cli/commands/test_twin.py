"""`kreassign twin start`: a process that serves a twin until it is told to stop."""

from __future__ import annotations

import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from kreassign.admin import AdminClient, client_settings
from kreassign.cli.commands.twin import from_snapshot, parse_speed, start
from kreassign.cli.main import kreassign
from kreassign.errors import KreassignError, Rejected
from kreassign.model import ConfigChange, ConfigResource, NewTopic
from kreassign.operations.plan_files import read_plan_file
from kreassign.wire import api
from kreassign.wire.codec import encode_request
from testbed.certificates import make_certificates
from testbed.fork_server import Forked, fork_server
from testbed.ports import HOST, reserved_ports
from testbed.waiting import PATIENCE_S, wait_until
from tests.checks import whole
from tests.checks.source import read

LOGIN = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="mover" password="mover-secret";',
}


class Served:
    """A running `kreassign twin …`, and what it printed."""

    def __init__(self, *options: str, what: tuple[str, ...] = ("start",), ignoring: str | None = None) -> None:
        self.process = _started(("twin", *what, *options), ignoring)
        assert self.process.stdout is not None
        self.lines = [self.process.stdout.readline().strip() for _ in range(3)]

    def bootstrap(self, kind: str = "servers") -> str:
        (line,) = [line for line in self.lines if line.startswith(f"bootstrap {kind}: ")]
        return line.partition(": ")[2]

    def admin(self) -> AdminClient:
        return AdminClient.connect(client_settings(bootstrap_servers=self.bootstrap()))

    def end(self, how: signal.Signals = signal.SIGINT) -> tuple[int, str]:
        """Exit code and standard error after a signal."""
        self.process.send_signal(how)
        _, errors = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, errors


def _started(words: tuple[str, ...], ignoring: str | None) -> Forked | subprocess.Popen[str]:
    if ignoring is None:
        return fork_server().start("kreassign", *words, imports=["kreassign.cli.commands.twin"])
    # As a shell without job control starts what is in the background.
    command = ["sh", "-c", f'trap "" {ignoring}; exec "$@"', "sh", sys.executable, "-m", "kreassign", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@contextmanager
def serving(*options: str, what: tuple[str, ...] = ("start",), ignoring: str | None = None) -> Iterator[Served]:
    served = Served("--port", "0", *options, what=what, ignoring=ignoring)
    try:
        yield served
    finally:
        served.process.kill()
        served.process.communicate()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_twin_started_with_ignored_signals_ends_on_them(how: signal.Signals) -> None:
    with serving("--brokers", "1", ignoring=how.name.removeprefix("SIG")) as served:
        assert served.end(how) == (0, "")


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_cluster_is_served_until_it_is_interrupted(how: signal.Signals) -> None:
    with serving("--brokers", "4", "--racks", "a,b", "--kafka-version", "3.9.1", "--speed", "max") as served:
        assert served.lines[0] == "Kafka 3.9 twin with 4 brokers; Ctrl-C ends it"
        with served.admin() as admin:
            assert [broker.rack for broker in admin.describe_cluster().brokers] == ["a", "b", "a", "b"]
        controllers = client_settings(bootstrap_controllers=served.bootstrap("controllers"))
        with AdminClient.connect(controllers) as admin:
            assert admin.list_partition_reassignments() == {}
        assert served.end(how) == (0, "")


# Strikes where the exception of a handler is lost, as it is in libraries that catch whatever is raised (kazoo does).
STRUCK_IN_A_CALLBACK = """
import gc, signal, sys
import kreassign.cli.commands.twin
from kreassign.cli.main import main

def strike(phase, info):
    if gc.isenabled() and signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL and phase == "start":
        gc.callbacks.remove(strike)
        signal.raise_signal(signal.SIGTERM)
        sum(range(1000))

gc.freeze()
gc.callbacks.append(strike)
gc.set_threshold(1)
main()
"""


def test_a_signal_ends_a_cluster_also_where_exceptions_are_lost() -> None:
    command = [sys.executable, "-c", STRUCK_IN_A_CALLBACK, "twin", "start", "--port", "0"]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (finished.returncode, finished.stderr) == (0, "")
    assert "bootstrap servers: " in finished.stdout


def test_clients_beyond_the_descriptor_limit_are_refused_and_reported() -> None:
    with serving("--brokers", "1") as served, ExitStack() as stack:
        resource.prlimit(served.process.pid, resource.RLIMIT_NOFILE, (40, 40))
        host, port = served.bootstrap().split(":")
        hello = encode_request(0, api.API_VERSIONS.request(), 1, "tests")
        clients = [stack.enter_context(socket.create_connection((host, int(port)), PATIENCE_S)) for _ in range(60)]
        kept = [client for client in clients if _answered(client, hello)]
        assert 0 < len(kept) < 40
        assert all(_answered(client, hello) for client in kept)
        for client in clients:
            client.close()

        def is_answered_again() -> bool:
            with socket.create_connection((host, int(port)), PATIENCE_S) as client:
                return _answered(client, hello)

        wait_until(is_answered_again, what="a client to be let in again")
        code, errors = served.end()
    assert (code, errors.count("\n")) == (0, 1)
    assert "40 files and connections open" in errors
    assert "ulimit -n" in errors


def _answered(client: socket.socket, request: bytes) -> bool:
    """True if a request has an answer; else the connection was closed."""
    try:
        client.sendall(request)
        return bool(client.recv(1 << 16))
    except ConnectionError:
        return False


def test_a_cluster_goes_on_where_it_was(tmp_path: Path) -> None:
    for _ in range(2):
        with serving("--data-dir", str(tmp_path / "twin")) as served:
            with served.admin() as admin:
                before = admin.list_topics()
                admin.create_topics([NewTopic(f"orders{len(before)}", 2, 2)]).raise_if_any()
            assert served.end() == (0, "")
    with serving("--data-dir", str(tmp_path / "twin")) as served, served.admin() as admin:
        assert sorted(admin.list_topics()) == ["orders0", "orders1"]


def test_a_scenario_is_served_as_it_is_described(tmp_path: Path) -> None:
    file = tmp_path / "small.toml"
    file.write_text("""
        cluster_id = "small"
        kafka_version = "3.9"
        [[brokers]]
        count = 2
        [[brokers]]
        down = true
        [[topics]]
        name = "orders"
        replication_factor = 3
        size = "3 MB"
    """)
    with serving("--scenario", str(file)) as served:
        assert " with 3 brokers;" in served.lines[0]
        assert len(served.bootstrap().split(",")) == 2
        with served.admin() as admin:
            assert admin.describe_cluster().cluster_id == "small"
            (partition,) = admin.describe_topics().ok["orders"].partitions
            assert sorted(partition.isr) == [0, 1]
            sizes = [
                copy.size_bytes for dirs in admin.describe_log_dirs().ok.values() for d in dirs for copy in d.replicas
            ]
            assert sizes == [3_000_000, 3_000_000]


def test_a_snapshot_of_a_served_cluster_is_served_again_and_planned_for(tmp_path: Path) -> None:
    file, plan = str(tmp_path / "cluster.json.gz"), str(tmp_path / "plan.json")
    with serving("--scenario", "skewed") as served:
        call = ["snapshot", "--bootstrap-server", served.bootstrap(), "--out", file, "--measure-for", "0"]
        said = CliRunner().invoke(kreassign, call, catch_exceptions=False).stdout
        assert "5 brokers, 3 topics, 36 partitions" in said
        assert said.endswith(f"in {file}\n")
        with served.admin() as admin:
            before = admin.describe_topics().ok
    planned = CliRunner().invoke(kreassign, ["plan", "--snapshot", file, "--out", plan], catch_exceptions=False)
    assert "partitions change" in planned.stdout
    with serving(what=("from-snapshot", file)) as served, served.admin() as admin:
        after = admin.describe_topics().ok
        assert {name: topic.partitions for name, topic in after.items()} == {
            name: topic.partitions for name, topic in before.items()
        }
        moved = read_plan_file(Path(plan)).plan.replicas
        admin.alter_partition_reassignments(moved).raise_if_any()


def test_a_scenario_file_wins_and_an_unknown_name_lists_scenarios(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    other = CliRunner().invoke(kreassign, ["twin", "start", "--scenario", "skew", "--port", "0"])
    assert other.exit_code == 2
    assert "'skew' is neither a file nor one of the scenarios adversary/broker-unregistered" in other.stderr
    assert "skewed" in other.stderr
    Path("skewed").write_text("seed = 'of my own'")
    own = CliRunner().invoke(kreassign, ["twin", "start", "--scenario", "skewed", "--port", "0"])
    assert own.exit_code == 2
    assert "skewed: " in own.stderr


@pytest.mark.parametrize(("words", "complaint"), [
    (["snapshot", "--bootstrap-server", "x:1"], "specify --data DIR, --out FILE, or both"),
    (["plan"], "specify --bootstrap-server for the cluster as it is, or --snapshot FILE for an earlier placement"),
])  # fmt: skip
def test_what_was_not_said_is_asked_for(words: list[str], complaint: str) -> None:
    outcome = CliRunner().invoke(kreassign, words, env={"KREASSIGN_DATA": None, "KREASSIGN_BOOTSTRAP_SERVER": None})
    assert outcome.exit_code == 2
    assert complaint in outcome.stderr


def test_a_locked_down_scenario_lets_in_who_knows_the_password() -> None:
    with serving("--scenario", "locked-down") as served:
        assert served.process.stdout is not None
        assert served.process.stdout.readline() == "clients need security.protocol=SASL_PLAINTEXT\n"
        with AdminClient.connect(client_settings(LOGIN, bootstrap_servers=served.bootstrap())) as admin:
            assert sorted(admin.list_topics()) == ["orders"]
            with pytest.raises(Rejected, match="Cluster authorization failed"):
                admin.incremental_alter_configs(
                    {ConfigResource.broker(0): [ConfigChange.set("leader.replication.throttled.rate", "1")]}
                ).raise_if_any()


def test_certificates_are_found_beside_the_scenario(tmp_path: Path) -> None:
    certificates = make_certificates(tmp_path / "pem", ())
    file = tmp_path / "tls.toml"
    file.write_text(f"""
        [[brokers]]
        [security]
        certificate = "pem/{certificates.broker_key_store.name}"
        key = "pem/{certificates.broker_key_store.name}"
    """)
    settings = {"security.protocol": "SSL", "ssl.truststore.type": "PEM"}
    with serving("--scenario", str(file)) as served:
        properties = settings | {"ssl.truststore.location": str(certificates.trust_store)}
        with AdminClient.connect(client_settings(properties, bootstrap_servers=served.bootstrap())) as admin:
            assert admin.describe_cluster().broker_ids == (0,)


@pytest.mark.parametrize(("options", "complaint"), [
    (("--scenario", "{file}", "--brokers", "3"), "leave out --brokers and --racks"),
    (("--scenario", "{file}"), "error: {file}: [security]: 'certificate' and 'key' belong together"),
    (("--scenario", "{latin}"), "error: {latin}: not a text in UTF-8"),
])  # fmt: skip
def test_what_cannot_be_served_is_said_in_one_line(options: tuple[str, ...], complaint: str, tmp_path: Path) -> None:
    names = {"file": str(tmp_path / "x.toml"), "latin": str(tmp_path / "latin.toml")}
    Path(names["file"]).write_text("[[brokers]]\n[security]\nkey = 'k.pem'\n")
    Path(names["latin"]).write_bytes(b"# caf\xe9")
    outcome = CliRunner().invoke(kreassign, ["twin", "start", *(option.format(**names) for option in options)])
    assert outcome.exit_code == 2
    assert complaint.format(**names) in outcome.stderr


def test_things_break_on_command(tmp_path: Path) -> None:
    file = tmp_path / "faults.toml"
    file.write_text('[[faults]]\nkind = "stop"\nat = 0\nbroker = 1\n')
    with serving("--faults", str(file), "--fault", "failover@0", "--controllers", "3", "--check") as served:
        assert served.lines[0].endswith("with 3 brokers; Ctrl-C ends it")
        with served.admin() as admin:
            assert admin.describe_cluster().broker_ids == (0, 2)
        controllers = client_settings(bootstrap_controllers=served.bootstrap("controllers"))
        with AdminClient.connect(controllers) as admin:
            found = admin.describe_cluster()
            assert (found.broker_ids, found.controller_id) == ((100, 101, 102), 101)


@pytest.mark.parametrize(("options", "text"), [
    (("--fault", "crash:7@1s"), "a fault names broker 7; the cluster has 0,1,2"),
    (("--fault", "crash:1"), "fault 'crash:1' does not say when; write for example crash:2@60s or crash:2@60s+30s"),
    (("--faults", "{dir}/none.toml"), "{dir}/none.toml has no tables [[faults]]"),
    (("--faults", "{dir}/bad.toml"),
     "{dir}/bad.toml is not TOML: Expected '=' after a key in a key/value pair (at end of document)"),
])  # fmt: skip
def test_faults_that_make_no_sense_are_refused(tmp_path: Path, options: tuple[str, str], text: str) -> None:
    (tmp_path / "none.toml").write_text("")
    (tmp_path / "bad.toml").write_text("bad")
    served = CliRunner().invoke(start, [option.format(dir=tmp_path) for option in ("--port", "0", *options)])
    assert text.format(dir=tmp_path) in (str(served.exception), served.stderr.partition("--fault': ")[2].strip())


def test_a_port_that_is_taken_is_said_to_be(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        served = Served("--port", str(port))
        _, errors = served.process.communicate(timeout=PATIENCE_S)
    assert served.process.returncode == 2
    where = f"cannot listen on 127.0.0.1:{port} for node 0: address already in use"
    assert errors == f"error: {where}. Specify another --port, or 0 for any that is free\n"


@pytest.mark.parametrize(("text", "speed"), [("max", None), ("1", 1.0), ("0.5", 0.5), ("1e3", 1000.0)])
def test_a_speed_is_a_number_or_max(text: str, speed: float | None) -> None:
    assert parse_speed(text) == speed


@pytest.mark.parametrize("text", ["0", "-1", "inf", "nan", "fast", ""])
def test_anything_else_is_no_speed(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not a speed"):
        parse_speed(text)


@pytest.mark.parametrize("command", [start, from_snapshot], ids=lambda command: command.name)
def test_the_reference_names_every_option(command: click.Command) -> None:
    (page,) = read("docs/reference/kreassign.md")
    real = {name for parameter in command.params if isinstance(parameter, click.Option) for name in parameter.opts}
    dashed = {name for name in real if name.startswith("--")}
    findings = list(whole.options_that_differ(f"twin {command.name}", dashed, page))
    assert not findings, findings


def test_the_requests_of_kip_179_are_offered_when_asked_for() -> None:
    with serving("--kip-179") as served, served.admin() as admin:
        admin.create_topics([NewTopic("orders", 1, 2)]).raise_if_any()
        denied = admin.alter_partition_counts({"orders": 1}).failed["orders"]
        assert isinstance(denied, Rejected)
        assert (denied.api, denied.code) == ("AlterPartitionCounts", 37)
        admin.alter_partition_counts({"orders": 3}).raise_if_any()
        assert len(admin.describe_topics(["orders"])["orders"].partitions) == 3


def test_nothing_can_be_traced_where_no_controller_tells_brokers_anything() -> None:
    done = CliRunner().invoke(kreassign, ["twin", "start", "--port", "0", "--trace", "-"])
    assert done.exit_code != 0
    assert "only a controller in ZooKeeper mode has anything to trace; specify --zookeeper too" in done.output


# By hand


def ordered(served: Served, *words: str) -> tuple[int, str]:
    """Exit code and output of `kreassign twin` with these words, about a twin that was just started."""
    assert served.process.stdout is not None
    if len(served.lines) == 3:
        served.lines.append(served.process.stdout.readline().strip())
    control = served.lines[3].removeprefix("control port: ")
    result = CliRunner().invoke(kreassign, ["twin", *words, "--control", control])
    return result.exit_code, str(result.exception) if isinstance(result.exception, KreassignError) else result.output


def test_a_twin_takes_orders_while_it_runs() -> None:
    with serving("--brokers", "3", "--speed", "50") as served:
        assert ordered(served, "kill", "1") == (0, "kill 1: done\n")
        code, said = ordered(served, "kill", "1")
        assert (code != 0, "down already" in said) == (True, True)
        assert ordered(served, "restart", "1") == (0, "restart 1: done\n")
        assert ordered(served, "isolate", "2", "--lasts", "30s") == (0, "isolate 2: done, for 30s\n")
        assert ordered(served, "inject", "drop:DescribeCluster") == (0, "drop:DescribeCluster injected\n")
        assert ordered(served, "recover", "isolate:2") == (0, "isolate:2 recovered\n")
        with served.admin() as admin:
            wait_until(lambda: admin.describe_cluster().broker_ids == (0, 1, 2), what="all brokers back")


def test_nobody_takes_orders_where_no_twin_is() -> None:
    with reserved_ports() as ports:
        control = f"{HOST}:{ports.take()}"
        result = CliRunner().invoke(kreassign, ["twin", "kill", "1", "--control", control])
    assert result.exit_code != 0
    assert "no twin takes orders at" in f"{result.exception}{result.output}"


def test_a_control_port_of_nobodys_choice_that_is_taken_is_done_without() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, serving("--brokers", "1") as served:
        del served
        chosen = str(taken.getsockname()[1])
        process = _started(("twin", "start", "--port", "0", "--control-port", chosen), None)
        _, errors = process.communicate(timeout=PATIENCE_S)
        assert process.returncode != 0
        assert "the port is taken; specify --control-port" in errors
