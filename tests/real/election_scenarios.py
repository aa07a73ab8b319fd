"""Scenarios for both election tools, Kafka's and ours."""

from __future__ import annotations

import json
from collections.abc import Callable

from kreassign.model import TopicPartition
from testbed import Listener
from testbed.waiting import wait_until
from tests.real.tool_comparison import Tool

FILE, ALL = "--path-to-json-file", "--all-topic-partitions"
PREFERRED, UNCLEAN = ("--election-type", "preferred"), ("--election-type", "UNCLEAN")
Scenario = Callable[[Tool], None]


def prepare(tool: Tool) -> None:
    """Topic a: 0 and 1 are led by another replica than the preferred one, 2 by that one; topic b likewise."""
    tool.topic("a", [0, 1], [1, 2], [2, 0])
    tool.topic("b", [1, 0])
    requested = {"a-0": (1, 0), "a-1": (2, 1), "b-0": (0, 1)}
    targets = {TopicPartition.parse(tool.real_name(name)): replicas for name, replicas in requested.items()}
    tool.admin.alter_partition_reassignments(targets).raise_if_any()
    tool.settle()


def partitions(tool: Tool, *names: str) -> str:
    """A file that names these partitions; its path."""
    keys = [TopicPartition.parse(tool.real_name(name)) for name in names]
    return tool.file(json.dumps({"partitions": [{"topic": key.topic, "partition": key.partition} for key in keys]}))


def elect_those_of_a_file(tool: Tool) -> None:
    prepare(tool)
    tool(*PREFERRED, FILE, partitions(tool, "a-0", "a-1", "a-2", "b-0"))
    tool.note_leaders()
    tool(*PREFERRED, FILE, partitions(tool, "a-0", "a-1", "a-2", "b-0"))


def elect_some_and_fail_with_others(tool: Tool) -> None:
    prepare(tool)
    unknown = [{"topic": tool.real_name("a"), "partition": number} for number in (7, -1, 0, 2)]
    nowhere = [{"topic": tool.real_name("nowhere"), "partition": 0}]
    tool(*PREFERRED, FILE, tool.file(json.dumps({"partitions": unknown + nowhere})))
    tool.note_leaders()


def elect_one(tool: Tool) -> None:
    prepare(tool)
    topic = ("--topic", tool.real_name("a"))
    tool(*PREFERRED, *topic, "--partition", "0")
    tool(*PREFERRED, *topic, "--partition", "0")
    tool(*PREFERRED, *topic, "--partition", "99")
    tool(*PREFERRED, *topic, "--partition", "-5")
    tool(*PREFERRED, "--topic", tool.real_name("nowhere"), "--partition", "0")
    tool(*PREFERRED, "--topic", "", "--partition", "0")
    tool.note_leaders()


def elect_all(tool: Tool) -> None:
    tool.admin.elect_leaders(None)
    prepare(tool)
    tool(*PREFERRED, ALL)
    tool.note_leaders()
    tool(*PREFERRED, ALL)


def unclean_elections_that_nobody_needs(tool: Tool) -> None:
    prepare(tool)
    tool(*UNCLEAN, FILE, partitions(tool, "a-0", "a-1"))
    tool("--election-type", "unClean", "--topic", tool.real_name("a"), "--partition", "2")
    tool(*UNCLEAN, FILE, partitions(tool, "a-9"))
    tool.note_leaders()


def no_partitions(tool: Tool) -> None:
    tool(*PREFERRED, FILE, partitions(tool))


def files_that_are_none(tool: Tool) -> None:
    tool(*PREFERRED, FILE, tool.file(""))
    tool(*PREFERRED, FILE, tool.file(" \n"))
    tool(*PREFERRED, FILE, tool.file('{"partitions":'))
    tool(*PREFERRED, FILE, tool.file("{}"))
    tool(*PREFERRED, FILE, tool.file('{"partitions": {"topic": "a"}}'))
    tool(*PREFERRED, FILE, tool.file('{"partitions": [[1]]}'))
    tool(*PREFERRED, FILE, tool.file('{"partitions": [{"topic": 5, "partition": 0}]}'))
    tool(*PREFERRED, FILE, tool.file('{"partitions": [{"topic": "a", "partition": 1.5}]}'))
    tool(*PREFERRED, FILE, partitions(tool, "a-0", "b-1", "a-0", "b-1", "c-0"))
    tool(*PREFERRED, FILE, tool.file("{}") + "-missing")


def options_that_make_no_sense(tool: Tool) -> None:
    tool(*PREFERRED)
    tool(ALL)
    tool(*PREFERRED, ALL, via=None)
    tool(*PREFERRED, ALL, "--topic", "a")
    tool(*PREFERRED, ALL, "--partition", "0")
    tool(*PREFERRED, ALL, FILE, "x")
    tool(*PREFERRED, "--topic", "a")
    tool("--election-type", "nice", ALL)
    tool(*PREFERRED, *UNCLEAN, ALL)
    tool(*PREFERRED, "--topic", "a", "--partition", "many")
    tool(*PREFERRED, ALL, "--nonsense")
    tool(*PREFERRED, ALL, "-x")
    tool(*PREFERRED, ALL, "--topic")


def configuration_files(tool: Tool) -> None:
    prepare(tool)
    one = ("--topic", tool.real_name("a"), "--partition")
    config = tool.properties({"client.id": "elector"})
    tool(*PREFERRED, *one, "0", "--command-config", config)
    tool(*PREFERRED, *one, "1", "--admin.config", config)
    tool(*PREFERRED, *one, "1", "--admin.config", config, "--command-config", config)
    tool(*PREFERRED, *one, "1", "--command-config", f"{config}-missing")
    tool(*PREFERRED, *one, "1", "--admin.config", f"{config}-missing")
    tool("--admin.config", config)
    tool(*PREFERRED, "--admin.config", config)
    tool("--admin.config", config, "--command-config", config)


def addresses_that_are_none(tool: Tool) -> None:
    for address in ("nowhere", "", ","):
        tool(*PREFERRED, ALL, "--bootstrap-server", address, via=None)


def help_and_version(tool: Tool) -> None:
    tool(via=None)
    tool("--help")
    tool("--version", via=None)
    tool("--help", "--version", *PREFERRED)


SCENARIOS: dict[str, Scenario] = {
    function.__name__: function
    for function in (
        elect_those_of_a_file,
        elect_some_and_fail_with_others,
        elect_one,
        elect_all,
        unclean_elections_that_nobody_needs,
        no_partitions,
        files_that_are_none,
        options_that_make_no_sense,
        configuration_files,
        addresses_that_are_none,
        help_and_version,
    )
}


# The older tool


def elect_preferred_of_a_file(tool: Tool) -> None:
    prepare(tool)
    tool(FILE, partitions(tool, "a-0", "a-1", "a-2", "b-0"))
    tool.note_leaders()
    tool(FILE, partitions(tool, "a-0", "a-1"))
    tool(FILE, partitions(tool, "a-0", "a-9", "nowhere-0"))


def elect_preferred_of_all(tool: Tool) -> None:
    tool.admin.elect_leaders(None)
    prepare(tool)
    tool()
    tool.note_leaders()
    tool()


def older_files_that_are_none(tool: Tool) -> None:
    tool(FILE, tool.file(""))
    tool(FILE, tool.file('{"partitions":'))
    tool(FILE, tool.file("{}"))
    tool(FILE, tool.file('{"partitions": {"topic": "a"}}'))
    tool(FILE, tool.file('{"partitions": [{"topic": "a", "partition": "0"}]}'))
    tool(FILE, partitions(tool, "a-0", "a-0", "c-0"))
    tool(FILE, partitions(tool))
    tool(FILE, tool.file("{}") + "-missing")


def older_options_that_make_no_sense(tool: Tool) -> None:
    tool("--nonsense")
    tool("--admin.config", tool.file("") + "-missing")
    tool("--bootstrap-server", "nowhere", via=None)


PREFERRED_SCENARIOS: dict[str, Scenario] = {
    function.__name__: function
    for function in (
        elect_preferred_of_a_file,
        elect_preferred_of_all,
        older_files_that_are_none,
        older_options_that_make_no_sense,
    )
}


def without_the_right(tool: Tool) -> None:
    tool.topic("a", [0, 1])
    values = tool.cluster.client_properties(Listener.SASL_SSL, user="alice", password=None, mechanism="SCRAM-SHA-256")
    reached = ("--bootstrap-server", tool.cluster.bootstrap(Listener.SASL_SSL), "--command-config")
    tool(*PREFERRED, ALL, *reached, tool.properties(values), via=None)
    one = ("--topic", tool.real_name("a"), "--partition", "0")
    tool(*PREFERRED, *one, *reached, tool.properties(values), via=None)


def through_zookeeper(tool: Tool) -> None:
    prepare(tool)
    tool(FILE, partitions(tool, "a-0", "a-1", "a-9", "nowhere-0"), via="--zookeeper")
    wait_until(lambda: _leader(tool, "a-1") == 2, what="the preferred leader")
    tool.note_leaders()


def _leader(tool: Tool, name: str) -> int:
    key = TopicPartition.parse(tool.real_name(name))
    return tool.admin.describe_topics([key.topic])[key.topic].partitions[key.partition].leader
