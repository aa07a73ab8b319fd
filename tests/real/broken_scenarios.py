"""Scenarios for both kafka-reassign-partitions while broker 3 is down, and without the permission.

A scenario with a broker down is a generator: what comes before its `yield` happens while all brokers live.
"""

from __future__ import annotations

from collections.abc import Iterator

from testbed import Listener, Permission
from tests.real.reassign_scenarios import PLAN, TOPICS
from tests.real.tool_comparison import Tool

DEAD = 3
_IMPATIENT = {"default.api.timeout.ms": "6000", "request.timeout.ms": "5500"}
"""How long the tools wait for the dead broker; no other may take as long."""


def _impatient(tool: Tool) -> tuple[str, str]:
    return "--command-config", tool.properties(_IMPATIENT)


def execute_on_the_dead_broker(tool: Tool) -> Iterator[None]:
    tool.topic("foo", [0, 1])
    yield
    tool("--execute", PLAN, tool.plan({"foo-0": [0, DEAD]}))


def generate_and_execute_away_from_the_dead_broker(tool: Tool) -> Iterator[None]:
    tool.topic("foo", [DEAD, 0])
    yield
    tool("--generate", TOPICS, tool.topics_file("foo"), "--broker-list", "0,1,2,3")
    tool("--execute", PLAN, tool.plan({"foo-0": [1, 0]}))
    tool.settle({"foo-0": [1, 0]})
    tool("--verify", PLAN, tool.plan({"foo-0": [1, 0]}), "--preserve-throttles")


def throttle_with_a_dead_source(tool: Tool) -> Iterator[None]:
    tool.topic("foo", [DEAD, 0])
    yield
    tool("--execute", PLAN, tool.plan({"foo-0": [1, 0]}), "--throttle", "1000", *_impatient(tool))


def verify_and_cancel_a_plan_that_names_the_dead_broker(tool: Tool) -> Iterator[None]:
    tool.topic("foo", [0, DEAD])
    yield
    plan = tool.plan({"foo-0": [0, DEAD]})
    tool("--verify", PLAN, plan, *_impatient(tool))
    tool("--cancel", PLAN, plan, *_impatient(tool))


def verify_a_directory_on_the_dead_broker(tool: Tool) -> Iterator[None]:
    tool.topic("foo", [0, DEAD])
    yield
    tool("--verify", PLAN, tool.plan({"foo-0": [0, DEAD]}, {"foo-0": ["any", "/nowhere"]}), *_impatient(tool))


WITH_A_DEAD_BROKER = {
    function.__name__: function
    for function in (
        execute_on_the_dead_broker,
        generate_and_execute_away_from_the_dead_broker,
        throttle_with_a_dead_source,
        verify_and_cancel_a_plan_that_names_the_dead_broker,
        verify_a_directory_on_the_dead_broker,
    )
}


def _as(tool: Tool, user: str, password: str | None = None) -> tuple[str, ...]:
    """Words that bring a user in by SASL and TLS."""
    values = tool.cluster.client_properties(Listener.SASL_SSL, user=user, password=password, mechanism="SCRAM-SHA-256")
    addresses = tool.cluster.bootstrap(Listener.SASL_SSL)
    return "--bootstrap-server", addresses, "--command-config", tool.properties(values)


def everything_allowed(tool: Tool) -> None:
    tool.topic("foo", [0])
    plan = tool.plan({"foo-0": [1]})
    tool("--execute", PLAN, plan, "--throttle", "1000000", *_as(tool, "admin"), via=None)
    tool.settle()
    tool("--verify", PLAN, plan, *_as(tool, "admin"), via=None)


def nothing_allowed(tool: Tool) -> None:
    tool.topic("foo", [0])
    tool("--list", *_as(tool, "alice"), via=None)
    tool("--execute", PLAN, tool.plan({"foo-0": [1]}), *_as(tool, "alice"), via=None)
    tool("--generate", TOPICS, tool.topics_file("foo"), "--broker-list", "0", *_as(tool, "alice"), via=None)


def only_looking_allowed(tool: Tool) -> None:
    tool.topic("foo", [0])
    tool.cluster.allow("alice", Permission("DESCRIBE"))
    tool.cluster.allow("alice", Permission("DESCRIBE", "TOPIC", tool.real_name("foo")))
    try:
        tool("--execute", PLAN, tool.plan({"foo-0": [1]}), *_as(tool, "alice"), via=None)
        tool("--execute", PLAN, tool.plan({"foo-0": [1]}), "--throttle", "5", *_as(tool, "alice"), via=None)
        tool("--verify", PLAN, tool.plan({"foo-0": [1]}), *_as(tool, "alice"), via=None)
    finally:
        tool.cluster.withdraw("alice")


def wrong_password(tool: Tool) -> None:
    tool("--list", *_as(tool, "admin", "wrong"), via=None)


WITH_SECURITY = {
    function.__name__: function for function in (everything_allowed, nothing_allowed, only_looking_allowed)
}
