"""`kafka-leader-election`: streams, exit codes, bad input, and what it does to a twin."""

import pytest

from kreassign.kafka_tools import leader_election
from kreassign.kafka_tools.leader_election import CONFIG_IS_DEPRECATED
from kreassign.twin.access import Permissions
from tests.kafka_tools.served_twin import leaders, served, twin

TOOL = leader_election.main
SERVER = ("--bootstrap-server", "localhost:9092")
PREFERRED = ("--election-type", "preferred")
ALL = "--all-topic-partitions"
UNAVAILABLE = (
    "org.apache.kafka.common.errors.PreferredLeaderNotAvailableException: The preferred leader was not available."
)
JACKSON = "com.fasterxml.jackson.databind.JsonMappingException: "


# Command line


@pytest.mark.parametrize("words", [(), ("--help",), ("--version", "--help")])
def test_help_goes_to_stderr_and_fails(run, words):
    code, out, err = run(*words)
    assert (code, out) == (1, "")
    assert err.startswith("This tool attempts to elect a new leader for a set of topic partitions.")
    assert "\n--path-to-json-file <String: Path to    The JSON file" in err


def test_version_is_kafkas(run):
    assert run("--version", *SERVER) == (0, "4.4.0\n", "")


@pytest.mark.parametrize(("words", "said"), [
    (("--topic", "a"), "Missing required option(s): bootstrap-server, election-type"),
    (SERVER, "Missing required option(s): election-type"),
    (PREFERRED, "Missing required option(s): bootstrap-server"),
    ((*SERVER, *PREFERRED),
     "One and only one of the following options is required: topic, all-topic-partitions, path-to-json-file"),
    ((*SERVER, *PREFERRED, "--topic", "a", "--partition", "0", ALL),
     "One and only one of the following options is required: topic, all-topic-partitions, path-to-json-file"),
    ((*SERVER, *PREFERRED, "--topic", "a"), "Missing required option(s): partition"),
    ((*SERVER, *PREFERRED, ALL, "--partition", "1"), "Option partition is only allowed if topic is used"),
    ((*SERVER, *PREFERRED, "--topic", "a", "--partition", "x"), "Cannot parse argument 'x' of option partition"),
    ((*SERVER, *PREFERRED, "--topic", "a", "--partition", "2147483648"),
     "Cannot parse argument '2147483648' of option partition"),
    ((*SERVER, "--election-type", "foo", ALL), "Cannot parse argument 'foo' of option election-type"),
    ((*SERVER, *PREFERRED, "--topic", "a", "--topic", "b", "--partition", "0"),
     "Found multiple arguments for option topic, but you asked for only one"),
    ((*SERVER, "--bogus"), "bogus is not a recognized option"),
    (("-h",), "h is not a recognized option"),
    ((*SERVER, *PREFERRED, "--topic"), "Option topic requires an argument"),
])  # fmt: skip
def test_a_command_line_that_makes_no_sense_is_one_line_on_stderr(run, words, said):
    assert run(*words) == (1, "", f"{said}\n")


def test_both_names_of_one_option_are_refused_with_the_help(run):
    code, out, err = run(*SERVER, *PREFERRED, ALL, "--admin.config", "x", "--command-config", "y")
    assert (code, out) == (1, "")
    assert err.startswith('Option "[admin.config]" can\'t be used with option "[command-config]"\nOption  ')


@pytest.mark.parametrize(("content", "said"), [
    ("", "Replica election data is empty"),
    ('{"partitions":', "Replica election data is empty"),
    ({"x": 1}, 'Replica election data is missing "partitions" field'),
    ([1], f"{JACKSON}Expected JSON object, received [1]"),
    ("null", f"{JACKSON}Expected JSON object, received null"),
    ({"partitions": 5}, f"{JACKSON}Expected JSON array, received 5"),
    ({"partitions": [{"partition": 0}]}, f"{JACKSON}No such field exists: `topic`"),
    ({"partitions": [{"topic": "foo"}]}, f"{JACKSON}No such field exists: `partition`"),
    ({"partitions": [{"topic": "foo", "partition": "0"}]}, f'{JACKSON}Expected `Integer` value, received "0"'),
    ({"partitions": [{"topic": "foo", "partition": 0}] * 2},
     "Replica election data contains duplicate partitions: [foo-0]"),
])  # fmt: skip
def test_a_bad_file_is_one_line_on_stderr(run, file, content, said):
    assert run(*SERVER, *PREFERRED, "--path-to-json-file", file(content)) == (1, "", f"{said}\n")


def test_a_file_in_utf_16_is_called_empty_as_kafka_does_and_named(run, tmp_path):
    path = tmp_path / "elections.json"
    path.write_bytes('{"partitions":[]}'.encode("utf-16"))
    code, out, err = run(*SERVER, *PREFERRED, "--path-to-json-file", path)
    assert (code, out) == (1, "")
    assert err.startswith(f"Replica election data is empty\n{path}: it is UTF-16, ")


def test_files_that_cannot_be_read_are_named(run, tmp_path):
    missing = tmp_path / "missing"
    said = "java.io.IOException: Unable to read file"
    for path, why in ((missing, "No such file or directory"), (tmp_path, "Is a directory")):
        told = run(*SERVER, *PREFERRED, "--path-to-json-file", path)
        assert told == (1, "", f"{said} {path}\nCaused by: {why}\n")
    code, out, err = run(*SERVER, *PREFERRED, ALL, "--admin.config", missing)
    assert (code, out) == (1, f"{CONFIG_IS_DEPRECATED}\n")
    assert err.startswith(f"{missing}\nCaused by: ")


@pytest.mark.parametrize(("address", "reason"), [
    ("foo", "Invalid url in bootstrap.servers: foo"),
    ("", "You must set either bootstrap.servers or bootstrap.controllers"),
])  # fmt: skip
def test_an_address_that_is_none_is_told(run, address, reason):
    said = f"Failed to create new KafkaAdminClient\nCaused by: {reason}\n"
    assert run("--bootstrap-server", address, *PREFERRED, ALL) == (1, "", said)


def test_addresses_that_are_only_commas_are_told(run):
    said = "Configuration 'bootstrap.servers' values must not be empty.\n"
    assert run("--bootstrap-server", ",", *PREFERRED, ALL) == (1, "", said)


@pytest.mark.parametrize("which", [(ALL,), ("--path-to-json-file",)])
def test_a_server_that_nobody_reaches_is_a_time_out(run, file, unreached, which):
    address, config = unreached
    words = which if which == (ALL,) else (*which, file({"partitions": []}))
    code, out, err = run("--bootstrap-server", address, *PREFERRED, *words, "--command-config", config)
    assert (code, out) == (1, "Timeout waiting for election results\n")
    assert err.startswith("Timeout waiting for election results\nCaused by: ")


# Elections


def test_partitions_of_a_file_are_elected_and_told_by_what_became_of_them(run, file, cluster):
    asked, server = cluster
    wanted = file({"partitions": [{"topic": "t", "partition": number} for number in (3, 2, 1, 0, -1)]})
    failed = "Error completing leader election (PREFERRED) for partition:"
    nowhere = "org.apache.kafka.common.errors.UnknownTopicOrPartitionException: No such partition as t--1"
    said = (
        "Successfully completed leader election (PREFERRED) for partitions t-1, t-3\n"
        "Valid replica already elected for partitions t-0\n"
        f"{failed} t--1: {nowhere}\n{failed} t-2: {UNAVAILABLE}\n"
    )
    assert run(*server, *PREFERRED, "--path-to-json-file", wanted) == (1, said, "2 replica(s) could not be elected\n")
    assert leaders(asked) == [0, 1, 0, 2]


def test_one_partition_is_elected(run, cluster):
    asked, server = cluster
    words = (*server, "--election-type", "PREFERRED", "--topic", "t", "--partition", "1")
    done = "Successfully completed leader election (PREFERRED) for partitions t-1\n"
    assert run(*words) == (0, done, "")
    assert leaders(asked) == [0, 1, 0, 1]
    assert run(*words) == (0, "Valid replica already elected for partitions t-1\n", "")


def test_all_partitions_tell_only_of_those_that_needed_it(run, cluster):
    _, server = cluster
    code, out, _ = run(*server, *PREFERRED, ALL)
    assert code == 1
    assert "already" not in out
    assert out.startswith("Successfully completed leader election (PREFERRED) for partitions t-1, t-3\n")


def test_an_unclean_election_is_for_partitions_without_a_leader(run, cluster):
    asked, server = cluster
    code, out, err = run(*server, "--election-type", "Unclean", "--topic", "t", "--partition", "1")
    assert (code, out, err) == (0, "Valid replica already elected for partitions t-1\n", "")
    assert leaders(asked) == [0, 2, 0, 1]


def test_no_partitions_are_no_election(run, file, cluster):
    asked, server = cluster
    assert run(*server, *PREFERRED, "--path-to-json-file", file({"partitions": []})) == (0, "", "")
    assert leaders(asked) == [0, 2, 0, 1]


def test_who_may_not_is_told_so_and_nothing_changes(run):
    asked = twin(Permissions(frozenset()))
    with served(asked) as address:
        code, out, err = run("--bootstrap-server", address, *PREFERRED, "--topic", "t", "--partition", "1")
    assert (code, out) == (1, "Not authorized to perform leader election\n")
    assert err.startswith("Not authorized to perform leader election\nCaused by: ")
    assert leaders(asked) == [0, 2, 0, 1]
