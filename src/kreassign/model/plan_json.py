"""Kafka's reassignment JSON and topics JSON, text ↔ model.

What is wrong with a text is said in the words of Kafka's own tool (and of Jackson, the parser behind it), because
that is what operators search for. Unknown fields and anything after the closing brace are ignored, as there.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from kreassign.errors import MalformedPlan
from kreassign.model.jackson import explain, quote
from kreassign.model.partition import TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan, check_log_dirs, partition_order

VERSION = 1

# A JSON value as the standard library reads it; every use checks its type first.
Json = Any


@dataclass(frozen=True, slots=True)
class _Missing:
    """Stands for a text of blanks, which Jackson reads as no value rather than as an error."""


_MISSING = _Missing()


def parse_plan(text: str) -> Plan:
    """Read a reassignment file: every entry in its order, duplicates too.

    Raises `MalformedPlan`, or `InputError` for directories that do not match the replicas.
    """
    document = _object(_decode(text))
    _check_version(document)
    entries = _array(document.get("partitions", []))
    return Plan(tuple(_assignment(_object(entry)) for entry in entries))


def format_plan(plan: Plan) -> str:
    """Write a reassignment file: compact, sorted by topic and partition, a directory for every replica."""
    wishes = sorted(plan.assignments, key=lambda wish: partition_order(wish.topic_partition))
    partitions = [
        {
            "topic": wish.topic_partition.topic,
            "partition": wish.topic_partition.partition,
            "replicas": wish.replicas,
            "log_dirs": wish.log_dirs,
        }
        for wish in wishes
    ]
    return json.dumps({"version": VERSION, "partitions": partitions}, separators=(",", ":"), ensure_ascii=False)


def parse_topics(text: str) -> tuple[str, ...]:
    """Read a topics file: the names in their order, duplicates too.

    Raises `MalformedPlan`; for text that is not JSON its words are not the parser's, unlike for a plan.
    """
    try:
        decoded = _decode(text)
    except MalformedPlan as error:
        raise MalformedPlan("The input string is not a valid JSON") from error
    document = _object(decoded)
    _check_version(document)
    return tuple(_string(_field(_object(entry), "topic")) for entry in _array(document.get("topics", [])))


def _decode(text: str) -> Json:
    if not text:
        raise MalformedPlan("The input string shouldn't be empty\n at [Source: UNKNOWN; byte offset: #UNKNOWN]")
    start = len(text) - len(text.lstrip(" \t\r\n"))
    if start == len(text):
        return _MISSING
    try:
        value, _end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError) as error:
        raise MalformedPlan(explain(text) or f"{error}") from error
    if not isinstance(value, dict | list | str) and (problem := explain(text)):
        raise MalformedPlan(problem)  # a bare number must be followed by a blank, which only the slow scan looks at
    return value


def _refuse_constant(name: str) -> Json:
    raise ValueError(name)


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def _check_version(document: dict[str, Json]) -> None:
    version = _integer(document.get("version", VERSION))
    if version != VERSION:
        raise MalformedPlan(f"Not supported version field value {version}")


def _assignment(fields: dict[str, Json]) -> PartitionAssignment:
    partition = TopicPartition(_string(_field(fields, "topic")), _integer(_field(fields, "partition")))
    replicas = tuple(map(_integer, _list(_field(fields, "replicas"))))
    if "log_dirs" not in fields:
        return PartitionAssignment(partition, replicas)
    log_dirs = tuple(map(_string, _list(fields["log_dirs"])))
    check_log_dirs(partition, replicas, log_dirs)
    return PartitionAssignment(partition, replicas, log_dirs)


def _field(fields: dict[str, Json], name: str) -> Json:
    if name not in fields:
        raise MalformedPlan(f"No such field exists: `{name}`")
    return fields[name]


def _object(value: Json) -> dict[str, Json]:
    if isinstance(value, dict):
        return value
    raise MalformedPlan(f"Expected JSON object, received {_shown(value)}")


def _array(value: Json) -> list[Json]:
    if isinstance(value, list):
        return value
    raise MalformedPlan(f"Expected JSON array, received {_shown(value)}")


def _list(value: Json) -> list[Json]:
    if isinstance(value, list):
        return value
    raise MalformedPlan(f"Expected `JSON array` value, received {_shown(value)}")


def _string(value: Json) -> str:
    if isinstance(value, str):
        return value
    raise MalformedPlan(f"Expected `String` value, received {_shown(value)}")


def _integer(value: Json) -> int:
    if type(value) is int and -(2**31) <= value < 2**31:
        return value
    raise MalformedPlan(f"Expected `Integer` value, received {_shown(value)}")


def _shown(value: Json) -> str:
    return "" if value is _MISSING else quote(value)
