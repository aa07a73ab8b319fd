"""Streams and exit codes of the tool, as far as no cluster is needed."""

import codecs
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


@pytest.mark.parametrize(("words", "out"), [
    (("--bootstrap-server",), "Error: null\nCaused by: --bootstrap-server has no value\n"),
    (("--bootstrap-server", "localhost"),
     "Error: Failed to create new KafkaAdminClient\nCaused by: Invalid url in bootstrap.servers: localhost\n"),
    (("--bootstrap-controller", "a:1,b"),
     "Error: Failed to create new KafkaAdminClient\nCaused by: Invalid url in bootstrap.controllers: b\n"),
    (("--bootstrap-server", "a:1", "--bootstrap-server", "b:1"),
     "Error: Found multiple arguments for option bootstrap-server, but you asked for only one\n"),
])  # fmt: skip
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


PLAN = '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1]}]}'
GENERATED = f"Current partition replica assignment\n{PLAN}\n\nProposed partition reassignment configuration\n{PLAN}\n"
OTHER_FILES = {
    "the output of --generate": (
        GENERATED.encode(), "Unrecognized token 'Current': was expecting (JSON String, Number, ",
        "save the JSON below `Proposed partition reassignment configuration` alone, if that is meant",
    ),
    "a byte order mark": (
        codecs.BOM_UTF8 + PLAN.encode(), "Unexpected character ('\ufeff' (code 65279 / 0xfeff)): expected ",
        "it begins with a byte order mark; write it without (`tail -c +4`)",
    ),
    "UTF-16": (
        PLAN.encode("utf-16"), "Unexpected character ('\ufffd' (code 65533 / 0xfffd)): expected a valid value ",
        "it is UTF-16, as `>` writes it in Windows PowerShell; write it in UTF-8 (`Out-File -Encoding utf8`, or ",
    ),
    "YAML": (
        b"version: 1\npartitions:\n- topic: t\n", "Unrecognized token 'version': was expecting (JSON String, Number, ",
        "it looks like YAML; a plan is Kafka's reassignment JSON, which `kreassign plan --out FILE` writes",
    ),
    "CSV": (
        b"topic,partition,replicas\nt,0,1\n", "Unrecognized token 'topic': was expecting (JSON String, Number, ",
        "it looks like CSV; a plan is Kafka's reassignment JSON, which `kreassign plan --out FILE` writes",
    ),
    "a list of topics": (
        b'{"topics":[{"topic":"t"}],"version":1}', "Partition reassignment list cannot be empty",
        "no array `partitions` in it: these are the topics for `kafka-reassign-partitions --generate`",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", OTHER_FILES)
def test_a_file_of_another_kind_is_named_after_kafkas_text(run, tmp_path, kind):
    content, kafkas, hint = OTHER_FILES[kind]
    path = tmp_path / "plan.json"
    path.write_bytes(content)
    code, out, err = run("--bootstrap-server", "localhost:1", "--execute", "--reassignment-json-file", str(path))
    assert (code, out.startswith(f"Error: {kafkas}"), err.count("\n")) == (1, True, 1)
    assert err.startswith(f"{path}: ")
    assert hint in err


@pytest.mark.parametrize("depth", [700, 990])
def test_a_value_of_another_type_may_be_nested_deeply(run, tmp_path, depth):
    """Jackson reads a thousand levels, Python's stack is smaller."""
    path = tmp_path / "plan.json"
    nested = "[" * depth + "]" * depth
    for content in (nested, f'{{"partitions":{nested}}}', PLAN.replace('"t"', nested)):
        path.write_text(content)
        code, out, err = run("--bootstrap-server", "localhost:1", "--verify", "--reassignment-json-file", path)
        assert (code, out.count("\n"), err) == (1, 1, "")
        assert out.endswith(" a value that is nested too deeply\n")


@pytest.mark.parametrize(
    "content", ["{invalid_json", "[1]", '{"version":2}', '{"topics":[{}]}', "", PLAN.replace("[1]", "[]")]
)
def test_a_file_of_no_known_kind_gets_no_word_beside_kafkas(run, tmp_path, content):
    path = tmp_path / "topics.json"
    path.write_text(content)
    for words in (
        ("--generate", "--broker-list", "1,1", "--topics-to-move-json-file"),
        ("--execute", "--reassignment-json-file"),
    ):
        if words[0] == "--generate" or "topics" not in content:
            code, _, err = run("--bootstrap-server", "localhost:1", *words, str(path))
            assert (code, err) == (1, "")
