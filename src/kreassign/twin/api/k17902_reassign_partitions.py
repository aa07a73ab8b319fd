"""ReassignPartitions: starts to move partitions (KIP-179; no Kafka has it, AlterPartitionReassignments came instead).

Versions: 0, if the twin was started with KIP-179.
Permission: ALTER on the cluster; without it CLUSTER_AUTHORIZATION_FAILED.

Behaviour:
- An unknown topic is INVALID_TOPIC_EXCEPTION, an unknown broker UNKNOWN_MEMBER_ID, an unknown partition or an illegal
  list INVALID_REPLICA_ASSIGNMENT, a partition that moves already REASSIGNMENT_IN_PROGRESS, one that comes twice
  INVALID_REQUEST.
- What is legal goes the way of AlterPartitionReassignments.

Left out:
- Nothing.
"""

from __future__ import annotations

from kreassign.model import TopicPartition
from kreassign.model.error_codes import CLUSTER_AUTHORIZATION_FAILED
from kreassign.model.topic_changes import Refusal, decide_reassignments
from kreassign.twin.access.permissions import Operation
from kreassign.twin.api.handler import Handler
from kreassign.twin.api.request import Request
from kreassign.twin.api.topics_seen import topics_seen
from kreassign.twin.controller.decision import DONE, TIMED_OUT, Outcome, has_expired
from kreassign.twin.controller.reassignments import AlterReassignments, Target, TopicTargets
from kreassign.wire import kip_179
from kreassign.wire.api import Message

_RESPONSE = kip_179.REASSIGN_PARTITIONS.response
_TOPIC = _RESPONSE.ReassignedTopicOutcome

Targets = dict[TopicPartition, tuple[int, ...]]


def _handle(request: Request) -> Message:
    message = request.message
    if not request.allows(Operation.ALTER):
        return _RESPONSE(error_code=CLUSTER_AUTHORIZATION_FAILED, topics=[])
    if has_expired(message.timeout_ms):
        return _RESPONSE(error_code=TIMED_OUT.code, error_message=TIMED_OUT.message, topics=[])
    wanted = [
        (TopicPartition(topic.name, entry.partition_index), tuple(entry.replicas))
        for topic in message.topics
        for entry in topic.partitions
    ]
    decided = decide_reassignments(topics_seen(request, {key.topic for key, _replicas in wanted}), wanted)
    legal = {key: target for key, target in decided.items() if not isinstance(target, Refusal)}
    outcomes = dict.fromkeys(legal, DONE)
    if not message.validate_only:
        answer = request.cluster.controller.alter_reassignments(_command(legal))
        if answer.outcome.is_failure:
            return _RESPONSE(error_code=answer.outcome.code, error_message=answer.outcome.message, topics=[])
        for topic in answer.topics:
            outcomes |= {TopicPartition(topic.topic, number): outcome for number, outcome in topic.outcomes}
    for key, target in decided.items():
        if isinstance(target, Refusal):
            outcomes[key] = Outcome(target.code, target.message)
    return _RESPONSE(topics=_by_topic({key: outcomes[key] for key in decided}))


def _command(targets: Targets) -> AlterReassignments:
    return AlterReassignments(
        tuple(TopicTargets(key.topic, (Target(key.partition, target),)) for key, target in targets.items())
    )


def _by_topic(outcomes: dict[TopicPartition, Outcome]) -> list[Message]:
    topics: dict[str, list[Message]] = {}
    for (topic, number), outcome in outcomes.items():
        entry = _TOPIC.ReassignedPartitionOutcome(
            partition_index=number, error_code=outcome.code, error_message=outcome.message
        )
        topics.setdefault(topic, []).append(entry)
    return [_TOPIC(name=topic, partitions=entries) for topic, entries in topics.items()]


HANDLERS = (Handler(kip_179.REASSIGN_PARTITIONS, _handle),)
