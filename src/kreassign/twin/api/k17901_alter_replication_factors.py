"""AlterReplicationFactors: gives topics so many replicas, and chooses where (KIP-179; no Kafka has it).

Versions: 0, if the twin was started with KIP-179.
Permission: ALTER on the cluster; without it CLUSTER_AUTHORIZATION_FAILED.

Behaviour:
- New replicas go to racks that have none yet, there to the brokers with the fewest bytes; of those that go, the leader
  is never one, and those out of sync go first.
- An unknown topic is INVALID_TOPIC_EXCEPTION, a factor that cannot be reached or is below min.insync.replicas
  INVALID_REPLICATION_FACTOR, a topic that moves REASSIGNMENT_IN_PROGRESS, one that comes twice INVALID_REQUEST.

Left out:
- Nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from kreassign.model import TopicPartition
from kreassign.model.error_codes import CLUSTER_AUTHORIZATION_FAILED
from kreassign.model.topic_changes import Refusal, decide_replication_factors
from kreassign.twin.access.permissions import Operation
from kreassign.twin.api.handler import Handler
from kreassign.twin.api.request import Request
from kreassign.twin.api.topics_seen import topics_seen
from kreassign.twin.controller.decision import DONE, TIMED_OUT, Outcome, has_expired
from kreassign.twin.controller.reassignments import AlterReassignments, Target, TopicOutcomes, TopicTargets
from kreassign.wire import kip_179
from kreassign.wire.api import Message

_RESPONSE = kip_179.ALTER_REPLICATION_FACTORS.response


def _handle(request: Request) -> Message:
    message = request.message
    if not request.allows(Operation.ALTER):
        return _RESPONSE(error_code=CLUSTER_AUTHORIZATION_FAILED, topics=[])
    if has_expired(message.timeout_ms):
        return _RESPONSE(error_code=TIMED_OUT.code, error_message=TIMED_OUT.message, topics=[])
    decided = decide_replication_factors(
        topics_seen(request, {topic.name for topic in message.topics}),
        [(topic.name, topic.replication_factor) for topic in message.topics],
        may_undercut_min_in_sync=message.may_undercut_min_in_sync,
    )
    outcomes = {
        name: Outcome(targets.code, targets.message) if isinstance(targets, Refusal) else DONE
        for name, targets in decided.items()
    }
    if not message.validate_only:
        answer = request.cluster.controller.alter_reassignments(_command(decided))
        if answer.outcome.is_failure:
            return _RESPONSE(error_code=answer.outcome.code, error_message=answer.outcome.message, topics=[])
        outcomes |= {topic.topic: _first_failure(topic) for topic in answer.topics}
    return _RESPONSE(topics=[_topic(name, outcomes[name]) for name in decided])


def _command(decided: Mapping[str, dict[TopicPartition, tuple[int, ...]] | Refusal]) -> AlterReassignments:
    return AlterReassignments(
        tuple(
            TopicTargets(name, tuple(Target(key.partition, replicas) for key, replicas in targets.items()))
            for name, targets in decided.items()
            if not isinstance(targets, Refusal)
        )
    )


def _first_failure(topic: TopicOutcomes) -> Outcome:
    """A topic fails with the first refusal, if the controller refuses any of its partitions after all."""
    return next((outcome for _partition, outcome in topic.outcomes if outcome.is_failure), DONE)


def _topic(name: str, outcome: Outcome) -> Message:
    return _RESPONSE.TopicOutcome(name=name, error_code=outcome.code, error_message=outcome.message)


HANDLERS = (Handler(kip_179.ALTER_REPLICATION_FACTORS, _handle),)
