"""Scenarios for both kafka-reassign-partitions with `--zookeeper`, on a cluster of three brokers."""

from __future__ import annotations

from tests.real.reassign_scenarios import PLAN, SLOW, TOPICS
from tests.real.tool_comparison import Tool

THROUGH = "--zookeeper"


def _hold(tool: Tool) -> str:
    """Start a move that does not end: foo-0 from 0,1 to 2,1. Returns its plan."""
    tool.topic("foo", [0, 1], [1, 0], megabytes=12)
    tool.throttle("foo", 1)
    plan = tool.plan({"foo-0": [2, 1]})
    tool("--execute", PLAN, plan, *SLOW, via=THROUGH)
    return plan


def execute_and_verify(tool: Tool) -> None:
    tool.topic("foo", [0, 1], [1, 2])
    plan = tool.plan({"foo-0": [2, 1], "foo-1": [2, 1]})
    tool("--execute", PLAN, plan, via=THROUGH)
    tool.settle()
    tool("--verify", PLAN, plan, via=THROUGH)


def execute_with_a_throttle_that_verify_clears(tool: Tool) -> None:
    tool.topic("foo", [0, 1])
    plan = tool.plan({"foo-0": [2, 1]})
    tool("--execute", PLAN, plan, "--throttle", "1000000", via=THROUGH)
    tool.settle()
    tool("--verify", PLAN, plan, "--preserve-throttles", via=THROUGH)
    tool("--verify", PLAN, plan, via=THROUGH)


def verify_while_it_moves(tool: Tool) -> None:
    plan = _hold(tool)
    tool("--verify", PLAN, plan, via=THROUGH)


def execute_while_another_moves(tool: Tool) -> None:
    _hold(tool)
    tool("--execute", PLAN, tool.plan({"foo-1": [1, 2]}), via=THROUGH)


def verify_what_was_never_started(tool: Tool) -> None:
    tool.topic("foo", [0, 1])
    tool("--verify", PLAN, tool.plan({"foo-0": [1, 0], "foo-7": [1]}), via=THROUGH)


def execute_what_is_already_so(tool: Tool) -> None:
    tool.topic("foo", [0, 1])
    tool("--execute", PLAN, tool.plan({"foo-0": [0, 1]}), via=THROUGH)


def generate(tool: Tool) -> None:
    tool.topic("foo", [0, 1], [1, 2])
    tool("--generate", TOPICS, tool.topics_file("foo"), "--broker-list", "0,1,2", via=THROUGH)


def bad_plans(tool: Tool) -> None:
    """An unknown partition and topic, unknown brokers, nothing, a duplicate, no replicas, log directories."""
    tool.topic("foo", [0, 1])
    for requested in (
        {"foo-9": [0], "nope-0": [0]},
        {"foo-0": [7, 8]},
        {},
        [("foo-0", [1]), ("foo-0", [2])],
        {"foo-0": [1, 1]},
        {"foo-0": []},
        {"foo-0": [-1]},
    ):
        tool("--execute", PLAN, tool.plan(requested), via=THROUGH)
    in_a_directory = tool.plan({"foo-0": [0, 1]}, {"foo-0": ["/somewhere", "any"]})
    tool("--execute", PLAN, in_a_directory, via=THROUGH)
    tool("--verify", PLAN, in_a_directory, via=THROUGH)


def what_needs_brokers(tool: Tool) -> None:
    plan = tool.plan({"foo-0": [0]})
    for option in (
        ("--additional",),
        ("--command-config", "nowhere"),
        ("--timeout", "1"),
        ("--replica-alter-log-dirs-throttle", "5"),
    ):
        tool("--execute", PLAN, plan, *option, via=THROUGH)


SCENARIOS = {
    scenario.__name__: scenario
    for scenario in (
        execute_and_verify,
        execute_with_a_throttle_that_verify_clears,
        verify_while_it_moves,
        execute_while_another_moves,
        verify_what_was_never_started,
        execute_what_is_already_so,
        generate,
        bad_plans,
        what_needs_brokers,
    )
}
