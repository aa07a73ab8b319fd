"""Streams and exit codes of the tool, as far as no cluster is needed."""

import socket

import pytest

from kreassign.kafka_tools import reassign_partitions

TOOL = reassign_partitions.main


@pytest.mark.parametrize("words", [(), ("--help",), ("--version", "--help")])
def test_help_goes_to_stderr_and_fails(run, words):
    code, out, err = run(*words)
    assert (code, out) == (1, "")
    assert err.startswith("This tool helps to move topic partitions between replicas.\nOption   ")
    assert "\n--version  " in err


def test_version_is_kafkas(run):
    assert run("--version", "--list", "anything") == (0, "4.4.0\n", "")


def test_wrong_usage_is_told_with_the_help_on_stderr(run):
    code, out, err = run("--list")
    assert (code, out) == (1, "")
    assert err.startswith("Please specify either --bootstrap-server or --bootstrap-controller\nOption  ")


def test_an_unreadable_command_line_is_told_on_stderr_without_help(run):
    expected = 'Exception in thread "main" joptsimple.UnrecognizedOptionException: exec is not a recognized option\n'
    assert run("--exec") == (1, "", expected)


@pytest.mark.parametrize(
    ("words", "out"),
    [
        (("--bootstrap-server",), "Error: null\nCaused by: --bootstrap-server has no value\n"),
        (
            ("--bootstrap-server", "localhost"),
            "Error: Failed to create new KafkaAdminClient\nCaused by: Invalid url in bootstrap.servers: localhost\n",
        ),
        (
            ("--bootstrap-controller", "a:1,b"),
            "Error: Failed to create new KafkaAdminClient\nCaused by: Invalid url in bootstrap.controllers: b\n",
        ),
        (
            ("--bootstrap-server", "a:1", "--bootstrap-server", "b:1"),
            "Error: Found multiple arguments for option bootstrap-server, but you asked for only one\n",
        ),
    ],
)
def test_wrong_addresses_are_failures_on_stdout(run, words, out):
    assert run("--list", *words) == (1, out, "")


def test_a_missing_properties_file_is_named_like_in_java(run):
    code, out, err = run("--list", "--bootstrap-server", "a:1", "--command-config", "/no/such")
    assert (code, out.split("\n")[0], err) == (1, "Error: /no/such", "")


def test_input_is_read_before_the_cluster_is_asked(run, tmp_path):
    path = tmp_path / "plan.json"
    path.write_text('{"version":2}')
    words = ("--execute", "--bootstrap-server", "192.0.2.1:9092", "--reassignment-json-file", str(path))
    assert run(*words) == (1, "Error: Not supported version field value 2\n", "")


def test_a_missing_cluster_is_reported_with_the_java_call_and_a_reason(run, tmp_path):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        config = tmp_path / "client.properties"
        config.write_text("default.api.timeout.ms=200\nrequest.timeout.ms=200\n")
        code, out, err = run("--list", "--bootstrap-server", address, "--command-config", str(config))
    first, second, *rest = out.split("\n")
    waiting = "Timed out waiting for a node assignment. Call: listPartitionReassignments"
    assert (code, first, rest, err) == (
        1,
        f"Error: org.apache.kafka.common.errors.TimeoutException: {waiting}",
        [""],
        "",
    )
    assert second.startswith("Caused by: no node of the cluster can be reached: ")
