"""Scenarios for both kafka-reassign-partitions on a live cluster of four brokers with racks a, b, c, a.

A scenario is a function of a `Tool`; its name is shown by the test. Moves are held open by a throttle of 1 B/s on
partitions with 12 MB of data: what a broker fetches before it hears of the throttle does not complete them.
"""

from __future__ import annotations

from tests.real.tool_comparison import Tool

CONTROLLER = "--bootstrap-controller"
PLAN, TOPICS = "--reassignment-json-file", "--topics-to-move-json-file"
SLOW = ("--throttle", "1")


def _hold(tool: Tool, *options: str, megabytes: int = 12) -> str:
    """Start a move that does not end: foo-0 from 0,1 to 2,1. Returns its plan."""
    tool.topic("foo", [0, 1], [1, 0], megabytes=megabytes)
    plan = tool.plan({"foo-0": [2, 1]})
    tool("--execute", PLAN, plan, *SLOW, *options)
    return plan


# --- list ---------------------------------------------------------------------------------------------------------


def list_nothing(tool: Tool) -> None:
    tool("--list")
    tool("--list", via=CONTROLLER)


def list_running_moves(tool: Tool) -> None:
    tool.topic("foo", [0, 1], [0, 1], [0, 1], megabytes=12)
    tool("--execute", PLAN, tool.plan({"foo-0": [2, 3], "foo-1": [0, 1, 2], "foo-2": [3, 0, 1]}), *SLOW)
    tool("--list")
    tool("--list", via=CONTROLLER)


def list_at_a_broker_called_a_controller(tool: Tool) -> None:
    tool("--list", CONTROLLER, tool.cluster.bootstrap_servers, via=None)


# --- generate -----------------------------------------------------------------------------------------------------


def generate_for_two_topics(tool: Tool) -> None:
    tool.topic("foo", [0, 1, 2], [1, 2, 3])
    tool.topic("bar", [2, 3])
    tool("--generate", TOPICS, tool.topics_file("foo", "bar"), "--broker-list", "0,1,2,3")


def generate_on_fewer_brokers_without_racks(tool: Tool) -> None:
    tool.topic("foo", [0, 1], [1, 2], [3, 0])
    tool("--generate", TOPICS, tool.topics_file("foo"), "--broker-list", "3,1", "--disable-rack-aware")


def generate_for_no_topic(tool: Tool) -> None:
    tool("--generate", TOPICS, tool.topics_file(), "--broker-list", "0")


def generate_for_an_unknown_topic(tool: Tool) -> None:
    tool.topic("foo", [0])
    tool("--generate", TOPICS, tool.topics_file("foo", "quux"), "--broker-list", "0,1")


def generate_on_too_few_brokers(tool: Tool) -> None:
    tool.topic("foo", [0, 1, 2])
    tool("--generate", TOPICS, tool.topics_file("foo"), "--broker-list", "0,1")
    tool("--generate", TOPICS, tool.topics_file("foo"), "--broker-list", "0,1,77")


def generate_on_unknown_brokers(tool: Tool) -> None:
    tool.topic("foo", [0])
    tool("--generate", TOPICS, tool.topics_file("foo"), "--broker-list", "77,78")


# --- execute ------------------------------------------------------------------------------------------------------


def execute_a_move(tool: Tool) -> None:
    tool.topic("foo", [0, 1], [1, 2])
    tool.topic("bar", [3, 0])
    plan = tool.plan({"foo-0": [2, 3], "bar-0": [1, 0]})
    tool("--execute", PLAN, plan)
    tool.settle()
    tool("--verify", PLAN, plan)


def execute_a_pure_reorder(tool: Tool) -> None:
    tool.topic("foo", [0, 1, 2])
    plan = tool.plan({"foo-0": [2, 0, 1]})
    tool("--execute", PLAN, plan)
    tool("--verify", PLAN, plan, "--preserve-throttles")


def execute_an_addition(tool: Tool) -> None:
    tool.topic("foo", [0])
    tool("--execute", PLAN, tool.plan({"foo-0": [0, 3, 1]}))
    tool.settle()


def execute_a_removal(tool: Tool) -> None:
    tool.topic("foo", [0, 1, 2])
    tool("--execute", PLAN, tool.plan({"foo-0": [2]}))
    tool.settle()


def execute_what_is_so_already(tool: Tool) -> None:
    tool.topic("foo", [0, 1])
    tool("--execute", PLAN, tool.plan({"foo-0": [0, 1]}), "--throttle", "1000")


def execute_on_an_unknown_broker(tool: Tool) -> None:
    tool.topic("foo", [0])
    tool("--execute", PLAN, tool.plan({"foo-0": [9, 0, 8]}))


def execute_an_unknown_topic(tool: Tool) -> None:
    tool.topic("foo", [0])
    tool("--execute", PLAN, tool.plan({"foo-0": [1], "quux-0": [1]}), *SLOW)


def execute_unknown_partitions(tool: Tool) -> None:
    tool.topic("foo", [0])
    tool("--execute", PLAN, tool.plan({"foo-0": [1], "foo-10": [1], "foo-2": [1], "foo--1": [1]}))


def execute_an_empty_topic_name(tool: Tool) -> None:
    tool("--execute", PLAN, tool.file('{"partitions":[{"topic":"","partition":0,"replicas":[1]}]}'))


def execute_while_another_runs(tool: Tool) -> None:
    _hold(tool)
    tool("--execute", PLAN, tool.plan({"foo-1": [3, 0]}))


def execute_in_addition_to_another(tool: Tool) -> None:
    _hold(tool)
    tool("--execute", PLAN, tool.plan({"foo-1": [3, 0]}), "--additional")
    tool.wait_for("foo-1")  # Nothing slows this one.
    tool("--list")


def execute_over_a_running_move(tool: Tool) -> None:
    _hold(tool)
    tool("--execute", PLAN, tool.plan({"foo-0": [3, 1]}), "--additional")
    tool("--list")


def execute_with_one_replication_factor_refused(tool: Tool) -> None:
    tool.topic("foo", [0, 1], [1, 2])
    plan = tool.plan({"foo-0": [2, 3], "foo-1": [1]}, {"foo-0": ["any", "/nowhere"]})
    tool("--execute", PLAN, plan, "--disallow-replication-factor-change", "--throttle", "100000")
    tool.settle()


def execute_with_every_replication_factor_refused(tool: Tool) -> None:
    tool.topic("foo", [0, 1, 2], [1, 2, 3])
    tool.topic("bar", [2, 3, 0])
    plan = tool.plan({"foo-0": [0, 1], "foo-1": [0, 1, 2, 3], "bar-0": [3]})
    tool("--execute", PLAN, plan, "--disallow-replication-factor-change")


# --- throttles ----------------------------------------------------------------------------------------------------


def throttle_a_move_and_raise_the_limit(tool: Tool) -> None:
    # With ZooKeeper a throttle reaches brokers a moment after its answer; until then followers fetch 10 MB at a time.
    plan = _hold(tool, megabytes=60)
    tool("--execute", PLAN, plan, "--additional", "--throttle", "100000000")
    tool.settle()
    tool("--verify", PLAN, plan, "--preserve-throttles")
    tool("--verify", PLAN, plan)


def throttle_beside_a_running_move(tool: Tool) -> None:
    _hold(tool)
    tool.topic("bar", *([[0]] * 11))
    tool(
        "--execute", PLAN, tool.plan({"foo-1": [3, 0], "bar-2": [1], "bar-10": [0]}), "--additional", "--throttle", "2"
    )
    tool.wait_for("bar-2")


def throttle_of_zero(tool: Tool) -> None:
    tool.topic("foo", [0])
    tool("--execute", PLAN, tool.plan({"foo-0": [0]}), "--throttle", "0", "--replica-alter-log-dirs-throttle", "0")


def throttle_of_directories_without_directories(tool: Tool) -> None:
    tool.topic("foo", [0])
    tool("--execute", PLAN, tool.plan({"foo-0": [0]}), "--replica-alter-log-dirs-throttle", "1000")


# --- directories --------------------------------------------------------------------------------------------------


def move_between_directories(tool: Tool) -> None:
    tool.topic("foo", [0, 1])
    here, there = tool.dir_of("foo-0", 0), tool.other_dir("foo-0", 1)
    plan = tool.plan({"foo-0": [0, 1]}, {"foo-0": [here, there]})
    tool("--execute", PLAN, plan, "--replica-alter-log-dirs-throttle", "100000000")
    tool.settle()
    tool("--verify", PLAN, plan)
    tool.note_dir("foo-0", 1)


def move_to_a_directory_of_another_broker(tool: Tool) -> None:
    tool.topic("foo", [0])
    tool.topic("guide", [3])
    there = tool.other_dir("guide-0", 3)
    plan = tool.plan({"foo-0": [3]}, {"foo-0": [there]})
    tool("--execute", PLAN, plan)
    tool.settle()
    tool("--verify", PLAN, plan, "--preserve-throttles")
    tool.note_dir("foo-0", 3)


def move_to_a_directory_that_is_none(tool: Tool) -> None:
    tool.topic("foo", [0, 1])
    tool("--execute", PLAN, tool.plan({"foo-0": [0, 2]}, {"foo-0": ["any", "/nowhere"]}))
    tool.settle()


def slow_directory_move(tool: Tool) -> None:
    tool.topic("foo", [0, 1], megabytes=20)
    here, there = tool.dir_of("foo-0", 1), tool.other_dir("foo-0", 1)
    onward = tool.plan({"foo-0": [0, 1]}, {"foo-0": ["any", there]})
    back = tool.plan({"foo-0": [0, 1]}, {"foo-0": ["any", here]})
    tool("--execute", PLAN, onward, "--replica-alter-log-dirs-throttle", "1")
    tool("--verify", PLAN, onward)
    tool("--verify", PLAN, back)
    tool("--list")
    tool("--cancel", PLAN, onward, "--preserve-throttles")
    tool("--verify", PLAN, onward)
    tool("--cancel", PLAN, onward)


def verify_directories_of_replicas_that_are_not_there(tool: Tool) -> None:
    tool.topic("foo", [0, 1])
    plan = tool.plan({"foo-0": [3, 2]}, {"foo-0": ["/nowhere", "any"]})
    tool("--verify", PLAN, plan)


# --- verify -------------------------------------------------------------------------------------------------------


def verify_before_during_and_of_another_target(tool: Tool) -> None:
    tool.topic("foo", [0, 1], [1, 0], megabytes=12)
    plan = tool.plan({"foo-0": [2, 1], "foo-1": [1, 0]})
    tool("--verify", PLAN, plan)
    tool("--execute", PLAN, plan, *SLOW)
    tool("--verify", PLAN, plan)
    tool("--verify", PLAN, tool.plan({"foo-0": [3], "foo-1": [0, 1]}))


def verify_an_unknown_topic(tool: Tool) -> None:
    plan = tool.plan({"quux-0": [0, 1]})
    tool("--verify", PLAN, plan, "--preserve-throttles")
    tool("--verify", PLAN, plan)


def verify_partitions_that_do_not_exist(tool: Tool) -> None:
    tool.topic("foo", [0], [1])
    for name in ("foo-3", "foo-2", "foo--1"):
        tool("--verify", PLAN, tool.plan({"foo-0": [0], name: [1]}), "--preserve-throttles")


def verify_nothing(tool: Tool) -> None:
    tool("--verify", PLAN, tool.file("{}"))


def verify_partitions_named_twice(tool: Tool) -> None:
    tool.topic("foo", [0])
    tool("--verify", PLAN, tool.plan([("foo-0", [1, 1]), ("foo-0", [0])]))


# --- cancel -------------------------------------------------------------------------------------------------------


def cancel_twice(tool: Tool) -> None:
    plan = _hold(tool)
    tool("--cancel", PLAN, plan, "--preserve-throttles")
    tool.settle()
    tool("--cancel", PLAN, plan)


def cancel_several_among_idle_ones(tool: Tool) -> None:
    tool.topic("foo", [0, 1], [1, 0], [2, 3], megabytes=12)
    tool("--execute", PLAN, tool.plan({"foo-0": [2, 1], "foo-1": [1, 0, 2, 3]}), *SLOW)
    tool("--cancel", PLAN, tool.plan({"foo-2": [2], "foo-1": [], "foo-0": [0]}))
    tool.settle()


def cancel_one_of_two(tool: Tool) -> None:
    tool.topic("foo", [0, 1], [1, 0], megabytes=12)
    tool("--execute", PLAN, tool.plan({"foo-0": [2, 1], "foo-1": [3, 0]}), *SLOW)
    tool("--cancel", PLAN, tool.plan({"foo-1": [3, 0]}), "--preserve-throttles")
    tool("--list")


def cancel_a_pure_addition(tool: Tool) -> None:
    tool.topic("foo", [0], megabytes=12)
    plan = tool.plan({"foo-0": [0, 1, 2]})
    tool("--execute", PLAN, plan, *SLOW)
    tool("--cancel", PLAN, plan)
    tool.settle()


def cancel_at_the_controller(tool: Tool) -> None:
    plan = _hold(tool)
    tool("--cancel", PLAN, plan, via=CONTROLLER)
    tool.settle()
    tool("--cancel", PLAN, plan, via=CONTROLLER)


def cancel_directories_at_the_controller(tool: Tool) -> None:
    tool.topic("foo", [0])
    tool("--cancel", PLAN, tool.plan({"foo-0": [0]}, {"foo-0": ["/nowhere"]}), via=CONTROLLER)


def cancel_an_unknown_topic(tool: Tool) -> None:
    plan = tool.plan({"quux-0": [0]})
    tool("--cancel", PLAN, plan, "--preserve-throttles")
    tool("--cancel", PLAN, plan)


def cancel_nothing(tool: Tool) -> None:
    tool("--cancel", PLAN, tool.file("{}"))
    tool("--cancel", PLAN, tool.file("{}"), "--preserve-throttles", "--timeout", "1")


def cancel_a_negative_partition(tool: Tool) -> None:
    tool.topic("foo", [0])
    tool("--cancel", PLAN, tool.plan({"foo--1": [0]}))


SCENARIOS = {
    name: function
    for name, function in list(globals().items())
    if callable(function) and not name.startswith("_") and function.__module__ == __name__
}
