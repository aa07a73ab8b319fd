"""Kafka's reassignment JSON and topics JSON, text ↔ model.

What is wrong with a text is said in the words of Kafka's own tool (and of Jackson, the parser behind it), because
that is what operators search for. Unknown fields and anything after the closing brace are ignored, as there.
"""

from __future__ import annotations

import json

from kreassign.errors import MalformedPlan
from kreassign.model.kafka_json import Json, array, decode, field, integer, json_list, json_object, string
from kreassign.model.partition import TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan, check_log_dirs, partition_order

VERSION = 1
_COMPACT = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)


def parse_plan(text: str) -> Plan:
    """Read a reassignment file: every entry in its order, duplicates too.

    Raises `MalformedPlan`, or `InputError` for directories that do not match the replicas.
    """
    document = json_object(decode(text))
    _check_version(document)
    entries = array(document.get("partitions", []))
    return Plan(tuple(_assignment(json_object(entry)) for entry in entries))


def format_plan(plan: Plan) -> str:
    """Write a reassignment file: compact, sorted by topic and partition, a directory for every replica."""
    assignments = sorted(plan.assignments, key=lambda assignment: partition_order(assignment.topic_partition))
    partitions = [
        {
            "topic": assignment.topic_partition.topic,
            "partition": assignment.topic_partition.partition,
            "replicas": assignment.replicas,
            "log_dirs": assignment.log_dirs,
        }
        for assignment in assignments
    ]
    return _COMPACT.encode({"version": VERSION, "partitions": partitions})


def parse_topics(text: str) -> tuple[str, ...]:
    """Read a topics file: the names in their order, duplicates too.

    Raises `MalformedPlan`; for text that is not JSON its words are not the parser's, unlike for a plan.
    """
    try:
        decoded = decode(text)
    except MalformedPlan as error:
        raise MalformedPlan("The input string is not a valid JSON") from error
    document = json_object(decoded)
    _check_version(document)
    return tuple(string(field(json_object(entry), "topic")) for entry in array(document.get("topics", [])))


def _check_version(document: dict[str, Json]) -> None:
    version = integer(document.get("version", VERSION))
    if version != VERSION:
        raise MalformedPlan(f"Not supported version field value {version}")


def _assignment(fields: dict[str, Json]) -> PartitionAssignment:
    partition = TopicPartition(string(field(fields, "topic")), integer(field(fields, "partition")))
    replicas = tuple(map(integer, json_list(field(fields, "replicas"))))
    if "log_dirs" not in fields:
        return PartitionAssignment(partition, replicas)
    log_dirs = tuple(map(string, json_list(fields["log_dirs"])))
    check_log_dirs(partition, replicas, log_dirs)
    return PartitionAssignment(partition, replicas, log_dirs)
