"""Every option of the drop-in tools with values that it cannot mean: Kafka's words and exit code, and nothing is sent.

At the address of each command line nobody listens: whoever comes so far has accepted the value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import pytest

from kreassign.kafka_tools import leader_election, preferred_replica_election, reassign_partitions, topics
from kreassign.kafka_tools.command_line import Option
from kreassign.kafka_tools.reassign.options import OPTIONS as REASSIGN_OPTIONS
from kreassign.kafka_tools.topic_options import OPTIONS as TOPIC_OPTIONS
from kreassign.model.text import printable

ESCAPE = "\x1b]0;title\x07"
NO_NUMBERS = {"nan": "nan", "inf": "inf", "-inf": "-inf", "1e400": "1e400", "5,000 digits": "9" * 5_000,
              "25 digits": "9" * 25, "superscript": "²", "empty": "", "half": "\udc80", "ESC": ESCAPE,
              "NUL": "a\0b"}  # fmt: skip
ODD = {**NO_NUMBERS, "negative": "-1", "zero": "0", "directory": "{folder}", "nowhere": "/nowhere/at/all"}
REACHED = re.compile("Timed out waiting|Timeout waiting|No ZooKeeper answered")
"""What is said of an address at which nobody listens."""

PLAN = '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1]}]}'
TOPICS = '{"version":1,"topics":[{"topic":"t"}]}'
THERE = "--bootstrap-server localhost:1"
EXECUTE = f"--execute --reassignment-json-file {{plan}} {THERE}"
ELECT = f"--election-type preferred {THERE}"


class Tool(NamedTuple):
    """A tool, and for each option that takes a value the command line to which it is added."""

    main: Callable[[list[str]], int]
    options: Iterable[Option]
    lines: dict[str, str]


TOOLS = {
    "kafka-reassign-partitions": Tool(reassign_partitions.main, REASSIGN_OPTIONS, {
        "bootstrap-controller": "--list",
        "bootstrap-server": "--list",
        "broker-list": f"--generate --topics-to-move-json-file {{topics}} {THERE}",
        "command-config": f"--list {THERE}",
        "expect-current": EXECUTE,
        "format": f"--progress {THERE}",
        "interval-ms": f"--progress {THERE}",
        "output": f"--cancel --all {THERE}",
        "reassignment-batch-size": EXECUTE,
        "reassignment-json-file": f"--verify {THERE}",
        "reassignment-poll-interval-ms": f"{EXECUTE} --reassignment-batch-size 1",
        "reassignment-wait-timeout-ms": f"{EXECUTE} --reassignment-batch-size 1",
        "replica-alter-log-dirs-throttle": EXECUTE,
        "throttle": EXECUTE,
        "timeout": EXECUTE,
        "topics-to-move-json-file": f"--generate --broker-list 1 {THERE}",
    }),
    "kafka-topics": Tool(topics.main, TOPIC_OPTIONS, {
        "bootstrap-server": "--list",
        "command-config": f"--list {THERE}",
        "config": f"--create --topic t {THERE}",
        "delete-config": f"--list {THERE}",
        "partition-size-limit-per-response": f"--describe {THERE}",
        "partitions": f"--create --topic t {THERE}",
        "replica-assignment": f"--create --topic t {THERE}",
        "replication-factor": f"--create --topic t {THERE}",
        "topic": f"--describe {THERE}",
        "topic-id": f"--describe {THERE}",
    }),
    "kafka-leader-election": Tool(leader_election.main, leader_election.OPTIONS, {
        "admin.config": f"--all-topic-partitions {ELECT}",
        "bootstrap-server": "--all-topic-partitions --election-type preferred",
        "command-config": f"--all-topic-partitions {ELECT}",
        "election-type": f"--all-topic-partitions {THERE}",
        "partition": f"--topic t {ELECT}",
        "path-to-json-file": ELECT,
        "topic": f"--partition 0 {ELECT}",
    }),
    "kafka-preferred-replica-election": Tool(preferred_replica_election.main, preferred_replica_election.OPTIONS, {
        "admin.config": THERE,
        "bootstrap-server": "",
        "path-to-json-file": THERE,
    }),
}  # fmt: skip
LINES = [(tool, name) for tool, each in TOOLS.items() for name in each.lines]
FILES = {"admin.config", "command-config", "expect-current", "path-to-json-file", "reassignment-json-file",
         "topics-to-move-json-file"}  # fmt: skip
HAS_CONFIG = {"admin.config", "command-config"}


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.chdir(tmp_path)
    found = {"plan": PLAN, "topics": TOPICS, "quick": "default.api.timeout.ms=50\nrequest.timeout.ms=50\n"}
    for name, text in found.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "folder").mkdir()
    return {name: str(tmp_path / name) for name in (*found, "folder")}


def test_every_option_that_takes_a_value_is_tried() -> None:
    for tool in TOOLS.values():
        taking = {option.name for option in tool.options if option.value_name}
        # A ZooKeeper that is not there is waited for too long; its addresses have a test of their own.
        assert taking - {"zookeeper"} == tool.lines.keys()


def said_of(tool: Tool, words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    code = tool.main(words)
    out, err = capsys.readouterr()
    assert code == 1, (words, out, err)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]", out + err), words
    assert "Traceback" not in out + err
    assert (out + err).strip()
    return out + err


@pytest.mark.thorough
@pytest.mark.parametrize(("tool_name", "name"), LINES)
def test_what_an_option_cannot_mean_is_refused_before_anything_is_sent(
    tool_name: str, name: str, places: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    tool = TOOLS[tool_name]
    (option,) = [one for one in tool.options if one.name == name]
    config = (
        [] if name in HAS_CONFIG else [f"--{'admin.' if 'preferred' in tool_name else 'command-'}config", "{quick}"]
    )
    for odd, text in ODD.items():
        value = text.format(**places)
        words = [word.format(**places) for word in (*tool.lines[name].split(), *config)]
        said = said_of(tool, [*words, f"--{name}", value], capsys)
        if (option.value_type in {"Integer", "Long"} and odd in NO_NUMBERS) or name in FILES:
            assert not REACHED.search(said), (odd, said)
            shown = printable(value.replace("\udc80", "\N{REPLACEMENT CHARACTER}"))
            assert name in said or shown in said, (odd, said)


@pytest.mark.parametrize("text", ["localhost:nan", "localhost:" + "9" * 5_000, "localhost:0", "", "a b:1", "²:²"])
@pytest.mark.parametrize("tool", ["kafka-reassign-partitions", "kafka-preferred-replica-election"])
def test_what_is_no_address_of_zookeeper_is_refused_at_once(
    tool: str, text: str, places: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--verify", "--reassignment-json-file", places["plan"]] if "reassign" in tool else []
    said = said_of(TOOLS[tool], [*words, "--zookeeper", text], capsys)
    assert f"Invalid ZooKeeper connection string {text}" in said


@pytest.mark.parametrize("tool", ["kafka-reassign-partitions", "kafka-topics"])
def test_a_byte_that_is_no_text_is_read_as_java_reads_it(
    tool: str, places: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    said = said_of(TOOLS[tool], ["--list", "--bootstrap-server", "localhost:1", "--command-config", "\udc80"], capsys)
    assert "\N{REPLACEMENT CHARACTER}" in said
