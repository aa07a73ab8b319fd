"""Cruise Control's proposals, text → model: the answer to `POST /rebalance?json=true&verbose=true` and other dry runs.

    {"proposals": [{"topicPartition": {"hash": 7, "partition": 0, "topic": "orders"},
                    "oldLeader": 1, "oldReplicas": [1, 2], "newReplicas": [3, 2]}, ...],
     "goalSummary": [{"goal": "RackAwareGoal", "status": "FIXED", ...}, ...], "summary": {...}, ...}

Proposals are in no order. The first of `newReplicas` becomes the leader. No log directories are named, so a move
between two directories of one broker shows as two equal lists, and so does a change of leader alone. Other
fields of the answer (loads, hashes) are ignored; they may hold NaN, which the writer of these answers permits.
"""

from __future__ import annotations

from dataclasses import dataclass

from kreassign.errors import MalformedPlan
from kreassign.model.cluster import TopicPartition, is_topic_name
from kreassign.model.documents import Json, is_id, read_json
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.text import shortened

ASK_AGAIN = "ask Cruise Control with json=true&verbose=true"
_FIELDS = ("proposals", "goalSummary", "progress", "errorMessage")
"""Each field occurs in one kind of answer only, and in none of Kafka's own files."""
_PLAIN = ("oldLeader:", "Cluster load after ", "Optimized load:", "Optimization has ")
VIOLATED = "VIOLATED"


@dataclass(frozen=True, slots=True)
class Proposals:
    """A plan, and the replica lists that it was made from.

    `violated` are the goals that Cruise Control itself reports as missed. Of the partitions with an unchanged list,
    `elections` need another leader and `log_dir_moves` change an unnamed log directory.
    """

    plan: Plan
    expected: dict[TopicPartition, tuple[int, ...]]
    violated: tuple[str, ...] = ()
    elections: tuple[TopicPartition, ...] = ()
    log_dir_moves: tuple[TopicPartition, ...] = ()


def has_proposals(text: str) -> bool:
    """True if a text looks like an answer of Cruise Control rather than Kafka's reassignment JSON."""
    if not any(f'"{name}"' in text for name in _FIELDS):  # spares large plans a second parse
        return False
    try:
        document = read_json(text, takes_nan=True)
    except ValueError:
        return False
    return isinstance(document, dict) and "partitions" not in document and any(name in document for name in _FIELDS)


def is_plain_answer(text: str) -> bool:
    """True if a text looks like Cruise Control's plain answer, without `json=true`."""
    return any(words in text for words in _PLAIN) and not text.lstrip().startswith('{"')


def parse_proposals(text: str) -> Proposals:
    """Parse proposals in their order. Raises MalformedPlan, which names the entry and its wrong field."""
    try:
        document = read_json(text, takes_nan=True)
    except ValueError as error:
        raise MalformedPlan(f"not JSON: {error}") from error
    entries = document.get("proposals") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise MalformedPlan(_why_none(document))
    assignments = [_assignment(number, entry) for number, entry in enumerate(entries)]
    expected: dict[TopicPartition, tuple[int, ...]] = {}
    elections: list[TopicPartition] = []
    log_dir_moves: list[TopicPartition] = []
    for number, (assignment, entry) in enumerate(zip(assignments, entries, strict=True)):
        name, before = assignment.topic_partition, _brokers(number, entry, "oldReplicas")
        if before:
            expected[name] = before
        if before == assignment.replicas:
            leads = entry.get("oldLeader") in {None, before[0]}
            (log_dir_moves if leads else elections).append(name)
    return Proposals(Plan(tuple(assignments)), expected, _violated(document), tuple(elections), tuple(log_dir_moves))


def _why_none(document: Json) -> str:
    """Why an answer has no proposals, and what to do."""
    if isinstance(document, dict) and "errorMessage" in document:
        return f"Cruise Control answered with an error: {shortened(str(document['errorMessage']))}"
    if isinstance(document, dict) and "progress" in document:
        return (
            "Cruise Control was still computing when it gave this answer; ask again with the same User-Task-ID until "
            "the answer has `proposals`"
        )
    return f"no array `proposals` in it; {ASK_AGAIN}"


def _violated(document: dict[str, Json]) -> tuple[str, ...]:
    goals = document.get("goalSummary")
    return tuple(
        str(goal.get("goal"))
        for goal in (goals if isinstance(goals, list) else ())
        if isinstance(goal, dict) and goal.get("status") == VIOLATED
    )


def _assignment(number: int, entry: Json) -> PartitionAssignment:
    place = entry.get("topicPartition") if isinstance(entry, dict) else None
    topic, partition = (place.get("topic"), place.get("partition")) if isinstance(place, dict) else (None, None)
    if not isinstance(topic, str) or not is_topic_name(topic) or type(partition) is not int or not is_id(partition):
        raise MalformedPlan(f"proposal {number}: `topicPartition` has no topic and partition")
    replicas = _brokers(number, entry, "newReplicas")
    if not replicas:
        raise MalformedPlan(f"proposal {number} ({topic}-{partition}): `newReplicas` is missing or empty")
    return PartitionAssignment(TopicPartition(topic, partition), replicas)


def _brokers(number: int, entry: dict[str, Json], field: str) -> tuple[int, ...]:
    brokers = entry.get(field, [])
    if not isinstance(brokers, list) or not all(map(is_id, brokers)):
        raise MalformedPlan(f"proposal {number}: `{field}` is not a list of broker ids")
    return tuple(brokers)
