"""`kafka-preferred-replica-election`: streams, exit codes, bad input, and what it does to a twin (KIP-183)."""

import pytest

from kreassign.kafka_tools import preferred_replica_election
from kreassign.twin.access import Permissions
from tests.kafka_tools.served_twin import leaders, served, twin

DEPRECATED = "This tool is deprecated. Please use kafka-leader-election tool. Tracking issue: KAFKA-8405\n"
TOOL = preferred_replica_election.main
SERVER = ("--bootstrap-server", "localhost:9092")
ESCAPED = 'Exception in thread "main" '
EMPTY = "kafka.admin.AdminOperationException: Preferred replica election data is empty"
UNAVAILABLE = (
    "org.apache.kafka.common.errors.PreferredLeaderNotAvailableException: The preferred leader was not available."
)
JACKSON = "com.fasterxml.jackson.databind.JsonMappingException: "


@pytest.fixture
def run(run):
    def run_with(*words):
        code, out, err = run(*words)
        assert out.startswith(DEPRECATED)
        return code, out.removeprefix(DEPRECATED), err

    return run_with


# Command line


@pytest.mark.parametrize("words", [(), ("--help",)])
def test_help_explains_the_preferred_replica_and_when_to_run_it(run, words):
    code, out, err = run(*words)
    assert (code, out) == (1, "")
    text, _, table = err.partition("Option  ")
    assert "preferred replica of a partition is the first in its list of replicas" in text
    assert "not necessary if the brokers have auto.leader.rebalance.enable=true" in text
    assert "\n--zookeeper <String: urls>" in table


def test_version_is_that_of_the_last_kafka_that_had_it(run):
    assert run("--version") == (0, "2.8.2\n", "")


@pytest.mark.parametrize("words", [(*SERVER, "--zookeeper", "localhost:2181"), ("--path-to-json-file", "x")])
def test_brokers_and_zookeeper_exclude_each_other_and_one_is_needed(run, words):
    code, out, err = run(*words)
    assert (code, out) == (1, "")
    assert err.startswith("Exactly one of '[bootstrap-server]' or '[zookeeper]' must be provided\nOption  ")


def test_both_options_together_change_nothing(run, cluster):
    asked, server = cluster
    assert run(*server, "--zookeeper", "localhost:2181")[0] == 1
    assert leaders(asked) == [0, 2, 0, 1]


def test_an_unreadable_command_line_is_told_on_stderr(run):
    said = f"{ESCAPED}joptsimple.UnrecognizedOptionException: bogus is not a recognized option\n"
    assert run("--bogus") == (1, "", said)


@pytest.mark.parametrize(("content", "said"), [
    ("", EMPTY),
    ('{"partitions":', EMPTY),
    ({"x": 1}, EMPTY),
    ({"partitions": 5}, f"{JACKSON}Expected JSON array, received 5"),
    ({"partitions": [{"partition": 0}]}, f"{JACKSON}No such field exists: `topic`"),
    ({"partitions": [{"topic": "foo"}]}, f"{JACKSON}No such field exists: `partition`"),
    ({"partitions": [{"topic": "foo", "partition": "0"}]}, f'{JACKSON}Expected `Int` value, received "0"'),
    ({"partitions": [{"topic": "foo", "partition": 0}] * 2},
     "kafka.admin.AdminOperationException: Preferred replica election data contains duplicate partitions: foo-0"),
])  # fmt: skip
def test_a_bad_file_is_one_line_on_stderr(run, file, content, said):
    assert run(*SERVER, "--path-to-json-file", file(content)) == (1, "", f"{ESCAPED}{said}\n")


def test_files_that_cannot_be_read_are_named(run, tmp_path):
    missing = tmp_path / "missing"
    said = f"{ESCAPED}java.io.IOException: Unable to read file {missing}\n"
    assert run(*SERVER, "--path-to-json-file", missing) == (1, "", said)
    code, out, err = run(*SERVER, "--admin.config", missing)
    assert (code, out) == (1, "")
    assert err.startswith(f"{ESCAPED}java.nio.file.NoSuchFileException: {missing}\n")


def test_an_address_that_is_none_is_told(run):
    said = "org.apache.kafka.common.KafkaException: Failed to create new KafkaAdminClient"
    code, out, err = run("--bootstrap-server", "foo")
    assert (code, out, err) == (1, "", f"{ESCAPED}{said}\nCaused by: Invalid url in bootstrap.servers: foo\n")


def test_a_server_that_nobody_reaches_is_a_time_out(run, unreached):
    code, out, err = run("--bootstrap-server", unreached.address, "--admin.config", unreached.config)
    assert (code, out) == (1, "Timeout waiting for election results\n")
    assert err.startswith(f"{ESCAPED}kafka.common.AdminCommandFailedException: Timeout waiting for election results\n")


# Elections


def test_partitions_of_a_file_are_elected_and_told_by_what_became_of_them(run, file, cluster):
    asked, server = cluster
    wanted = file({"partitions": [{"topic": "t", "partition": number} for number in (2, 1, 0)]})
    said = (
        "Successfully completed preferred leader election for partitions t-1\n"
        "Preferred replica already elected for partitions t-0\n"
        f"Error completing preferred leader election for partition: t-2: {UNAVAILABLE}\n"
    )
    failure = "kafka.common.AdminCommandFailedException: 1 preferred replica(s) could not be elected"
    assert run(*server, "--path-to-json-file", wanted) == (1, said, f"{ESCAPED}{failure}\n")
    assert leaders(asked) == [0, 1, 0, 1]


def test_without_a_file_all_partitions_are_elected(run, cluster):
    asked, server = cluster
    _, out, _ = run(*server)
    assert out.startswith("Successfully completed preferred leader election for partitions t-1, t-3\nError ")
    assert leaders(asked) == [0, 1, 0, 2]


def test_who_may_not_is_told_so_and_nothing_changes(run):
    asked = twin(Permissions(frozenset()))
    with served(asked) as address:
        code, out, err = run("--bootstrap-server", address)
    assert (code, out) == (1, "Not authorized to perform leader election\n")
    assert err.startswith(f"{ESCAPED}kafka.common.AdminCommandFailedException: Not authorized")
    assert leaders(asked) == [0, 2, 0, 1]


def test_a_zookeeper_that_nobody_reaches_is_told_after_the_warning(run, unreached, monkeypatch):
    monkeypatch.setattr("kreassign.kafka_tools.zookeeper.CONNECT_TIMEOUT_S", 0.3)
    code, out, err = run("--zookeeper", unreached.address)
    assert (code, out) == (1, "")
    warning, _, failure = err.partition("\nUse --bootstrap-server instead to specify a broker to connect to.\n")
    assert warning.startswith("Warning: --zookeeper is deprecated")
    assert failure.startswith(f"No ZooKeeper answered at {unreached.address}")
