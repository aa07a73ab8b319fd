"""`--verify`: how far a plan is; clears throttles when nothing moves any more."""

from __future__ import annotations

from collections.abc import Mapping

from kreassign.kafka_tools.failures import ToolError
from kreassign.kafka_tools.reassign import log_dirs, messages, throttles
from kreassign.kafka_tools.reassign.client import ToolClient
from kreassign.kafka_tools.reassign.log_dirs import sentence
from kreassign.kafka_tools.reassign.messages import say
from kreassign.kafka_tools.reassign.requests import VerifyRequest
from kreassign.model import OngoingReassignment, Topic, TopicPartition
from kreassign.model.plan import Plan, partition_order


def verify(client: ToolClient, request: VerifyRequest) -> None:
    """Print the state of every partition and directory of the plan, then clear throttles if nothing is left to do.

    Throttles go when no reassignment runs in the whole cluster and no directory of the plan is being filled; whether
    the plan was reached does not matter.
    """
    plan = request.plan
    ongoing = client.reassignments()
    topics = client.topics(entry.topic_partition.topic for entry in plan.assignments
                                 if entry.topic_partition not in ongoing)  # fmt: skip
    say(partition_states(plan, ongoing, topics))
    found = log_dirs.find(client, plan.log_dirs)
    wanted = sorted(plan.log_dirs.items())
    say("\n".join(sentence(replica, directory, found.get(replica)) for replica, directory in wanted))
    are_settled = all(dirs.is_settled for dirs in found.values())
    if not ongoing and are_settled and not request.preserves_throttles:
        throttles.clear(client, plan.brokers, plan.topics)


def partition_states(
    plan: Plan, ongoing: Mapping[TopicPartition, OngoingReassignment], topics: Mapping[str, Topic | None]
) -> str:
    """A line per partition of the plan, sorted; of a partition mentioned twice, the last mention counts."""
    lines: dict[TopicPartition, str] = {}
    for entry in plan.assignments:
        partition = entry.topic_partition
        if partition in ongoing:
            lines[partition] = messages.still_moving(partition)
            continue
        current = _replicas(topics[partition.topic], partition.partition)
        same = current == entry.replicas
        lines[partition] = (
            messages.arrived(partition) if same else messages.elsewhere(partition, current, entry.replicas)
        )
    return "\n".join(["Status of partition reassignment:", *(lines[key] for key in sorted(lines, key=partition_order))])


def _replicas(topic: Topic | None, number: int) -> tuple[int, ...]:
    """The replicas of a partition, none if topic or partition is unknown.

    Kafka's tool takes the first number behind the last partition, and negative ones, for a fault of its own.
    """
    count = 0 if topic is None else len(topic.partitions)
    if topic is None or number > count:
        return ()
    if not 0 <= number < count:
        raise ToolError(f"Index {number} out of bounds for length {count}")
    return topic.partitions[number].replicas
