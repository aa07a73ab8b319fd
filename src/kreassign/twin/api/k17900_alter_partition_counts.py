"""AlterPartitionCounts: gives topics so many partitions in all (KIP-179; no Kafka has it).

Versions: 0, if the twin was started with KIP-179.
Permission: ALTER on the cluster; without it CLUSTER_AUTHORIZATION_FAILED.

Behaviour:
- An unknown topic is INVALID_TOPIC_EXCEPTION, a count that is no increase INVALID_PARTITIONS, a topic that comes twice
  INVALID_REQUEST.
- What is legal goes the way of CreatePartitions, with its refusals.

Left out:
- Quotas on how much may be created.
"""

from __future__ import annotations

from kreassign.model.error_codes import CLUSTER_AUTHORIZATION_FAILED
from kreassign.model.topic_changes import Refusal, decide_partition_counts
from kreassign.twin.access.permissions import Operation
from kreassign.twin.api.handler import Handler
from kreassign.twin.api.request import Request
from kreassign.twin.api.topics_seen import topics_seen
from kreassign.twin.controller.decision import TIMED_OUT, Outcome, has_expired
from kreassign.twin.controller.partitions import CreatePartitions, MorePartitions
from kreassign.wire import kip_179
from kreassign.wire.api import Message

_RESPONSE = kip_179.ALTER_PARTITION_COUNTS.response


def _handle(request: Request) -> Message:
    message = request.message
    if not request.allows(Operation.ALTER):
        return _RESPONSE(error_code=CLUSTER_AUTHORIZATION_FAILED, topics=[])
    if has_expired(message.timeout_ms):
        return _RESPONSE(error_code=TIMED_OUT.code, error_message=TIMED_OUT.message, topics=[])
    view = topics_seen(request, {topic.name for topic in message.topics})
    decided = decide_partition_counts(view, [(topic.name, topic.partition_count) for topic in message.topics])
    wanted = tuple(MorePartitions(name, count) for name, count in decided.items() if not isinstance(count, Refusal))
    command = CreatePartitions(wanted, message.validate_only, message.timeout_ms)
    made = dict(request.cluster.controller.create_partitions(command))
    refused = {
        name: Outcome(refusal.code, refusal.message)
        for name, refusal in decided.items()
        if isinstance(refusal, Refusal)
    }
    return _RESPONSE(topics=[_topic(name, (made | refused)[name]) for name in decided])


def _topic(name: str, outcome: Outcome) -> Message:
    return _RESPONSE.TopicOutcome(name=name, error_code=outcome.code, error_message=outcome.message)


HANDLERS = (Handler(kip_179.ALTER_PARTITION_COUNTS, _handle),)
