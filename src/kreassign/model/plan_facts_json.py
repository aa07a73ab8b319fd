"""The facts file of a plan, text ↔ model. Every field: docs/reference/plan-files.md."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from kreassign.errors import MalformedPlan
from kreassign.model import strict_json
from kreassign.model.partition import TopicPartition
from kreassign.model.plan import partition_order
from kreassign.model.plan_facts import PlanFacts, PlannedBroker, PlannedPartition, Prediction, Reason, Totals

VERSION = 1

# A JSON value as the standard library reads it.
Json = Any


def format_facts(facts: PlanFacts) -> str:
    """Write a facts file: a line per broker and partition, in the order of the plan. The same facts, the same text."""
    partitions = sorted(facts.partitions, key=lambda fact: partition_order(fact.topic_partition))
    head = {
        "version": VERSION,
        "plan_id": facts.plan_id,
        "input_hash": facts.input_hash,
        "task": facts.task,
        "cluster_id": facts.cluster_id,
        "snapshot_id": facts.snapshot_id,
        "topic_ids": dict(sorted(facts.topic_ids.items())),
        "totals": {**_fields(facts.totals), "gap": facts.totals.gap},
        "prediction": None if facts.prediction is None else _fields(facts.prediction),
        "remaining": list(facts.remaining),
    }
    parts = [f"{_text(name)}: {_text(value)}" for name, value in head.items()]
    parts.append(f'"brokers": {_lines(_fields(broker) for broker in facts.brokers)}')
    parts.append(f'"partitions": {_lines(map(_partition, partitions))}')
    return "{" + ",\n ".join(parts) + "}"


def parse_facts(text: str) -> PlanFacts:
    """Read a facts file. Raises MalformedPlan; fields that this version does not know are ignored."""
    try:
        document = strict_json.loads(text)
        if document["version"] != VERSION:
            raise MalformedPlan(f"a facts file of version {document['version']}; this kreassign reads {VERSION}")
        return _facts(document)
    except (ValueError, TypeError, AttributeError) as error:
        raise MalformedPlan(f"not the facts file of a plan: {error}") from error
    except KeyError as error:
        raise MalformedPlan(f"not the facts file of a plan: it has no {error}") from error


def _facts(document: dict[str, Json]) -> PlanFacts:
    prediction = document["prediction"]
    return PlanFacts(
        plan_id=document["plan_id"],
        input_hash=document["input_hash"],
        task=document["task"],
        cluster_id=document["cluster_id"],
        snapshot_id=document["snapshot_id"],
        topic_ids=_texts(document.get("topic_ids", {})),
        totals=Totals(**{name: value for name, value in document["totals"].items() if name != "gap"}),
        prediction=None if prediction is None else Prediction(**{k: _number(v) for k, v in prediction.items()}),
        remaining=tuple(document["remaining"]),
        brokers=tuple(PlannedBroker(**broker) for broker in document["brokers"]),
        partitions=tuple(map(_read_partition, document["partitions"])),
    )


def _partition(fact: PlannedPartition) -> dict[str, Json]:
    topic, partition = fact.topic_partition
    return {
        "topic": topic,
        "partition": partition,
        "replicas": fact.replicas,
        **({"log_dirs": fact.log_dirs} if fact.log_dirs else {}),
        "size_bytes": fact.size_bytes,
        "reasons": [_fields(reason) for reason in fact.reasons],
    }


def _read_partition(entry: dict[str, Json]) -> PlannedPartition:
    return PlannedPartition(
        topic_partition=TopicPartition(entry["topic"], entry["partition"]),
        replicas=tuple(entry["replicas"]),
        log_dirs=tuple(entry.get("log_dirs", ())),
        size_bytes=entry["size_bytes"],
        reasons=tuple(Reason(**reason) for reason in entry["reasons"]),
    )


def _texts(value: Json) -> dict[str, str]:
    if not all(isinstance(text, str) for entry in value.items() for text in entry):
        raise TypeError("topic_ids is not an object of texts")
    return dict(value)


def _fields(record: Reason | PlannedBroker | Prediction | Totals) -> dict[str, Json]:
    return {name: _written(getattr(record, name)) for name in record.__dataclass_fields__}


def _written(value: Json) -> Json:
    """JSON has no infinity, and the last digits of a sum of floats say nothing."""
    if isinstance(value, float):
        return None if math.isinf(value) else float(f"{value:.12g}")
    if isinstance(value, Mapping):
        return {name: _written(one) for name, one in value.items()}
    return value


def _number(value: float | None) -> float:
    return math.inf if value is None else value


def _lines(entries: Any) -> str:
    lines = ",\n  ".join(map(_text, entries))
    return f"[\n  {lines}]" if lines else "[]"


def _text(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
