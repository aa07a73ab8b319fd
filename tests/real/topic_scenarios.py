"""Scenarios for both `kafka-topics`, Kafka's and ours."""

from __future__ import annotations

from collections.abc import Callable

from kreassign.model import ConfigChange, ConfigResource, TopicPartition
from kreassign.model.throttle import rate_changes
from tests.real.tool_comparison import Tool

Scenario = Callable[[Tool], None]


def _topic(tool: Tool, name: str) -> tuple[str, str]:
    return "--topic", tool.real_name(name)


def list_topics(tool: Tool) -> None:
    for name in ("b", "a", "ab"):
        tool.topic(name, [0])
    tool("--list", *_topic(tool, "a"))
    tool("--list", *_topic(tool, "(a|b)"))
    tool("--list", "--topic", f"{tool.real_name('a')},{tool.real_name('b')}")
    tool("--list", *_topic(tool, "a.*"), "--exclude-internal")
    tool("--list", *_topic(tool, "nowhere"))
    tool("--list", "--topic", "[")


def create_and_delete(tool: Tool) -> None:
    tool("--create", *_topic(tool, "a"), "--partitions", "2", "--replication-factor", "3")
    tool("--create", *_topic(tool, "a"), "--partitions", "2", "--replication-factor", "3")
    tool("--create", *_topic(tool, "a"), "--if-not-exists")
    configs = ("--config", "retention.ms=5", "--config", "max.message.bytes = 7")
    tool("--create", *_topic(tool, "b"), "--replica-assignment", "0:1, 1:2 ,2:3", *configs)
    tool("--describe", *_topic(tool, "b"))
    tool("--create", *_topic(tool, "c"), "--config", "nonsense=1")
    tool("--create", *_topic(tool, "c"), "--config", "nonsense")
    tool("--create", *_topic(tool, "c"), "--partitions", "0")
    tool("--create", *_topic(tool, "c"), "--partitions", "many")
    tool("--create", *_topic(tool, "c"), "--replication-factor", "0")
    tool("--create", *_topic(tool, "c"), "--replication-factor", "40000")
    tool("--create", *_topic(tool, "c"), "--replication-factor", "9")
    tool("--create", *_topic(tool, "c"), "--replica-assignment", "0:1,2")
    tool("--create", *_topic(tool, "c"), "--replica-assignment", "0:0")
    tool("--create", *_topic(tool, "c"), "--replica-assignment", "0:77")
    tool("--create", *_topic(tool, "c"), "--replica-assignment", "0:x")
    tool("--create", "--topic", "not/a/name")
    tool("--delete", *_topic(tool, "(a|b)"))
    tool("--delete", *_topic(tool, "a"))
    tool("--delete", *_topic(tool, "a"), "--if-exists")
    tool("--list", *_topic(tool, ".*"))


def alter(tool: Tool) -> None:
    tool.topic("a", [0, 1])
    tool("--alter", *_topic(tool, "a"), "--partitions", "2", "--replica-assignment", "0:1,2:3")
    tool("--describe", *_topic(tool, "a"))
    tool("--alter", *_topic(tool, "a"), "--partitions", "1")
    tool("--alter", *_topic(tool, "a"), "--partitions", "2")
    tool("--alter", *_topic(tool, "a"), "--partitions", "4", "--replica-assignment", "0:1,2:3,3:0")
    tool("--alter", *_topic(tool, "a"))
    tool("--alter", *_topic(tool, "a"), "--partitions", "3", "--replication-factor", "2")
    tool("--alter", *_topic(tool, "nowhere"), "--partitions", "3")
    tool("--alter", *_topic(tool, "nowhere"), "--partitions", "3", "--if-exists")


def describe(tool: Tool) -> None:
    tool.topic("a", [0, 1], [2, 3])
    tool("--describe", *_topic(tool, "a"))
    settings = (ConfigChange.set("min.insync.replicas", "2"), ConfigChange.set("segment.bytes", "1048576"))
    tool.admin.incremental_alter_configs({ConfigResource.topic(tool.real_name("a")): settings}).raise_if_any()
    for filters in (
        (),
        ("--under-replicated-partitions",),
        ("--under-min-isr-partitions",),
        ("--at-min-isr-partitions",),
        ("--unavailable-partitions",),
        ("--under-min-isr-partitions", "--at-min-isr-partitions"),
        ("--topics-with-overrides",),
        ("--exclude-internal",),
        ("--partition-size-limit-per-response", "1"),
    ):
        tool("--describe", *_topic(tool, "a"), *filters)
    tool("--describe", *_topic(tool, "nowhere"))
    tool("--describe", *_topic(tool, "nowhere"), "--if-exists")


def describe_a_move(tool: Tool) -> None:
    tool.topic("a", [0, 1], [1, 2], megabytes=12)
    lists = (ConfigChange.set("leader.replication.throttled.replicas", "*"),)
    tool.admin.incremental_alter_configs({ConfigResource.topic(tool.real_name("a")): lists}).raise_if_any()
    tool.admin.incremental_alter_configs(rate_changes(range(4), 1_000)).raise_if_any()
    tool.admin.alter_partition_reassignments({TopicPartition(tool.real_name("a"), 0): (3, 1, 0)}).raise_if_any()
    tool("--describe", *_topic(tool, "a"))
    tool("--describe", *_topic(tool, "a"), "--under-replicated-partitions")
    tool.admin.alter_partition_reassignments({TopicPartition(tool.real_name("a"), 0): None}).raise_if_any()


def options_that_make_no_sense(tool: Tool) -> None:
    tool("--list", via=None)
    tool()
    tool("--list", "--describe")
    tool("--create")
    tool("--delete")
    tool("--alter", "--partitions", "2")
    tool("--list", "--partitions", "2")
    tool("--describe", "--config", "a=b")
    tool("--describe", "--replication-factor", "2")
    tool("--describe", "--if-exists")
    tool("--describe", "--if-not-exists")
    tool("--create", "--topic", "a", "--if-exists")
    tool("--create", "--topic", "a", "--replica-assignment", "0", "--partitions", "1")
    tool("--create", "--topic", "a", "--replica-assignment", "0", "--replication-factor", "1")
    tool("--describe", "--under-replicated-partitions", "--topics-with-overrides")
    tool("--list", "--unavailable-partitions")
    tool("--delete", "--topic", "a", "--exclude-internal")
    tool("--list", "--nonsense")
    tool("--list", "--topic")
    tool("--list", "--command-config", "/nowhere/at/all")


def help_and_version(tool: Tool) -> None:
    tool(via=None)
    tool("--help")
    tool("--version", via=None)


SCENARIOS: dict[str, Scenario] = {
    function.__name__: function
    for function in (
        list_topics,
        create_and_delete,
        alter,
        describe,
        describe_a_move,
        options_that_make_no_sense,
        help_and_version,
    )
}
