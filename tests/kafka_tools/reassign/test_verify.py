"""The sentences about partitions and directories, and which states are settled."""

import pytest

from kreassign import model
from kreassign.errors import Rejected
from kreassign.kafka_tools.command_line import ToolError
from kreassign.kafka_tools.reassign import messages
from kreassign.kafka_tools.reassign.actions import partition_states, targets_to_cancel
from kreassign.kafka_tools.reassign.tool_client import (
    ReplicaDirs,
    directory_move_sentence,
    find_replicas,
    plan_with_dirs,
    replicas_of,
)
from kreassign.model.plan import PartitionAssignment, Plan, format_plan
from tests.approved import approve

OFFLINE = "There is likely an offline log directory on the broker."
FOO_0, FOO_1, BAR_0 = model.TopicPartition("foo", 0), model.TopicPartition("foo", 1), model.TopicPartition("bar", 0)


def topic(name, *replica_lists):
    partitions = tuple(
        model.Partition(model.TopicPartition(name, number), replicas, replicas, replicas[0])
        for number, replicas in enumerate(replica_lists)
    )
    return model.Topic(name, None, is_internal=False, partitions=partitions)


def plan(*rows):
    return Plan(tuple(PartitionAssignment(partition, replicas) for partition, replicas in rows))


def test_partitions_are_in_progress_completed_or_elsewhere_and_sorted():
    asked = plan((FOO_1, (1, 2, 4)), (FOO_0, (0, 1, 2)), (BAR_0, (2, 3, 0)))
    ongoing = {BAR_0: model.OngoingReassignment((2, 3, 1), (1,), ())}
    approve([partition_states(asked, ongoing, {"foo": topic("foo", (0, 1, 2), (2, 1, 4))})], "verify")


def test_an_unknown_topic_or_partition_has_no_replicas():
    asked = plan((model.TopicPartition("quux", 0), (0, 1, 3)), (model.TopicPartition("foo", 3), (1,)))
    there = {"quux": None, "foo": topic("foo", (0,), (1,))}
    approve([partition_states(asked, {}, there)], "verify-what-is-not-there")


@pytest.mark.parametrize("number", [2, -1])
def test_a_number_just_off_the_partitions_is_an_error_as_in_kafkas_tool(number):
    with pytest.raises(ToolError) as caught:
        partition_states(plan((model.TopicPartition("foo", number), (1,))), {}, {"foo": topic("foo", (0,), (1,))})
    assert str(caught.value) == f"Error: Index {number} out of bounds for length 2"


def test_of_a_partition_mentioned_twice_the_last_mention_counts():
    states = partition_states(plan((FOO_0, (5,)), (FOO_0, (0,))), {}, {"foo": topic("foo", (0,))})
    assert states.endswith("\nReassignment of partition foo-0 is completed.")


def test_an_empty_plan_has_only_a_heading():
    assert partition_states(Plan(), {}, {}) == "Status of partition reassignment:"


REPLICA = model.TopicPartitionReplica(1, "foo", 0)


@pytest.mark.parametrize(("dirs", "is_settled", "expected"), [
    (ReplicaDirs("/t"), True, "Reassignment of replica foo-0-1 completed successfully."),
    (ReplicaDirs("/c", "/t"), False, "Reassignment of replica foo-0-1 is still in progress."),
    (ReplicaDirs("/c", "/f"), False, "Partition foo-0 on broker 1 is being moved to log dir /f instead of /t."),
    (ReplicaDirs("/c"), True, "Partition foo-0 on broker 1 is not being moved from log dir /c to /t."),
    (ReplicaDirs(), False, f"Partition foo-0 is not found in any live log dir on broker 1. {OFFLINE}"),
])  # fmt: skip
def test_directories_have_five_states(dirs, is_settled, expected):
    assert directory_move_sentence(REPLICA, "/t", dirs) == expected
    assert dirs.is_settled is is_settled


def test_a_replica_of_which_the_broker_said_nothing_cannot_be_found():
    expected = "Partition foo-0 cannot be found in any live log directory on broker 1."
    assert directory_move_sentence(REPLICA, "/t", None) == expected


def test_replicas_sort_by_broker_first():
    replicas = replicas_of(
        {
            model.TopicPartition("abc", 0): (1,),
            model.TopicPartition("def", 0): (0,),
            model.TopicPartition("def", 1): (0,),
        }
    )
    assert list(map(str, sorted(replicas))) == ["def-0-0", "def-1-0", "abc-0-1"]


def log_dir(path, *copies):
    replicas = tuple(model.LogDirReplica(partition, 5, 0, is_future) for partition, is_future in copies)
    return model.LogDir(path, None, None, None, is_cordoned=False, replicas=replicas)


@pytest.mark.parametrize("order", [1, -1])
def test_the_two_copies_of_a_moving_replica_are_brought_together(order):
    directories = (log_dir("/a", (FOO_0, False), (FOO_1, False)), log_dir("/b", (FOO_0, True)))
    found = find_replicas({7: directories[::order]})
    assert found == {
        model.TopicPartitionReplica(7, "foo", 0): ReplicaDirs("/a", "/b"),
        model.TopicPartitionReplica(7, "foo", 1): ReplicaDirs("/a", None),
    }
    assert targets_to_cancel(found) == {model.TopicPartitionReplica(7, "foo", 0): "/a"}


def test_the_rollback_text_is_sorted_and_names_known_directories():
    current = plan_with_dirs({FOO_0: (0, 1), BAR_0: (2,)}, {model.TopicPartitionReplica(1, "foo", 0): "/d1"})
    approve([messages.rollback(format_plan(current))], "rollback")


def test_the_list_is_sorted_and_leaves_empty_parts_out():
    ongoing = {
        FOO_1: model.OngoingReassignment((1, 2, 3), (), (3,)),
        FOO_0: model.OngoingReassignment((0, 1, 4, 2), (4,), (2,)),
        BAR_0: model.OngoingReassignment((2, 3, 0), (0,), ()),
    }
    approve([messages.reassignments(ongoing)], "list")


def test_an_empty_list_says_so():
    assert messages.reassignments({}) == "No partition reassignments found."


def rejected(message):
    return Rejected(message, api="AlterPartitionReassignments", code=38, name="INVALID_REPLICATION_FACTOR")


@pytest.mark.parametrize(("text", "expected"), [
    (messages.started([FOO_0]), "Successfully started partition reassignment for foo-0"),
    (messages.started([FOO_0, BAR_0]), "Successfully started partition reassignments for bar-0,foo-0"),
    (messages.cancelled([FOO_0]), "Successfully cancelled partition reassignment for: foo-0"),
    (messages.cancelled([FOO_1, FOO_0]), "Successfully cancelled partition reassignments for: foo-0,foo-1"),
    (messages.not_started({FOO_1: rejected("b"), BAR_0: rejected("a")}),
     "Error reassigning partition(s):\nbar-0: a\nfoo-1: b"),
    (messages.not_cancelled({FOO_1: rejected("b")}), "Error cancelling partition reassignment for:\nfoo-1: b"),
    (messages.not_cancelled({FOO_1: rejected("b"), BAR_0: rejected("a")}),
     "Error cancelling partition reassignments for:\nbar-0: a\nfoo-1: b"),
    (messages.rate_set("inter-broker", 1000), "The inter-broker throttle limit was set to 1000 B/s"),
    (messages.clearing("broker", "broker", [3]), "Clearing broker-level throttles on broker 3"),
    (messages.clearing("topic", "topic", ["a", "b"]), "Clearing topic-level throttles on topics a,b"),
    (messages.clearing("topic", "topic", []), "Clearing topic-level throttles on topics "),
    (messages.directory_move_started(REPLICA, "/d1"),
     "Successfully started moving log directory to /d1 for replica foo-0 with broker 1 "),
    (messages.directory_moves_timed_out([REPLICA]),
     "Timed out before log directory move could be started for: foo-0-1"),
    (messages.directory_moves_timed_out([REPLICA, model.TopicPartitionReplica(0, "foo", 1)]),
     "Timed out before log directory moves could be started for: foo-1-0,foo-0-1"),
])  # fmt: skip
def test_sentences_know_singular_and_plural_and_sort(text, expected):
    assert text == expected
