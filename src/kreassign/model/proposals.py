"""Cruise Control's proposals, text → model: what `GET /proposals?json=true&verbose=true` and its dry runs answer.

    {"proposals": [{"topicPartition": {"topic": "orders", "partition": 0},
                    "oldLeader": 1, "oldReplicas": [1, 2], "newReplicas": [3, 2]}, ...], ...}

The first of `newReplicas` becomes the leader. Proposals name no log directories. Other fields of the answer (summaries,
loads, hashes) are ignored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kreassign.errors import MalformedPlan
from kreassign.model import strict_json
from kreassign.model.partition import TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.whole_number import LARGEST_ID

# A JSON value as the standard library reads it; every use checks its type first.
Json = Any


@dataclass(frozen=True, slots=True)
class Proposals:
    """A plan, and the replica lists from which it was made."""

    plan: Plan
    expected: dict[TopicPartition, tuple[int, ...]]


def has_proposals(text: str) -> bool:
    """Whether a text looks like proposals rather than like Kafka's reassignment JSON."""
    if '"proposals"' not in text:  # spares large plans a second reading
        return False
    try:
        document = strict_json.loads(text)
    except ValueError:
        return False
    return isinstance(document, dict) and "proposals" in document and "partitions" not in document


def parse_proposals(text: str) -> Proposals:
    """Read proposals in their order. Raises MalformedPlan, which names the entry and the field that is wrong."""
    try:
        document = strict_json.loads(text)
    except ValueError as error:
        raise MalformedPlan(f"not JSON: {error}") from error
    entries = document.get("proposals") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise MalformedPlan("no array `proposals` in it; ask Cruise Control with json=true and verbose=true")
    assignments = [_assignment(number, entry) for number, entry in enumerate(entries)]
    expected = {
        assignment.topic_partition: _brokers(number, entry, "oldReplicas")
        for number, (assignment, entry) in enumerate(zip(assignments, entries, strict=True))
        if entry.get("oldReplicas")
    }
    return Proposals(Plan(tuple(assignments)), expected)


def _assignment(number: int, entry: Json) -> PartitionAssignment:
    place = entry.get("topicPartition") if isinstance(entry, dict) else None
    topic, partition = (place.get("topic"), place.get("partition")) if isinstance(place, dict) else (None, None)
    if not isinstance(topic, str) or type(partition) is not int or not _is_id(partition):
        raise MalformedPlan(f"proposal {number}: `topicPartition` has no topic and partition")
    replicas = _brokers(number, entry, "newReplicas")
    if not replicas:
        raise MalformedPlan(f"proposal {number} ({topic}-{partition}): `newReplicas` is missing or empty")
    return PartitionAssignment(TopicPartition(topic, partition), replicas)


def _is_id(value: Json) -> bool:
    return type(value) is int and 0 <= value <= LARGEST_ID


def _brokers(number: int, entry: dict[str, Json], field: str) -> tuple[int, ...]:
    brokers = entry.get(field, [])
    if not isinstance(brokers, list) or not all(map(_is_id, brokers)):
        raise MalformedPlan(f"proposal {number}: `{field}` is not a list of broker ids")
    return tuple(brokers)
