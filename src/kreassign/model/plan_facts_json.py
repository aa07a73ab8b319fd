"""The facts file of a plan, text ↔ model. Every field: docs/reference/plan-files.md."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any, ClassVar, Protocol, TypeVar

from kreassign.errors import MalformedPlan
from kreassign.model import plan_facts
from kreassign.model.cluster import TopicPartition
from kreassign.model.documents import Json, read_json
from kreassign.model.load import DoubtfulLoad, DoubtfulShare, ForecastBasis, LoadBasis
from kreassign.model.plan import partition_order
from kreassign.model.text import LARGEST_AMOUNT, shortened

VERSION = 1
_JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False)
Record = TypeVar("Record", bound="Fielded")


class Fielded(Protocol):
    """A dataclass whose fields are the keys of its object in the file."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


_OPTIONAL: dict[str, type[Fielded] | None] = {
    "factors": None,
    "leader_racks": plan_facts.LeaderRacks,
    "topic_leaders": plan_facts.TopicLeaders,
    "losses": plan_facts.WorstLoss,
    "limits": plan_facts.GoalLimit,
    "unknown_goals": None,
    "uneven_topics": plan_facts.UnevenTopic,
    "racks": plan_facts.RackBytes,
    "means": plan_facts.GoalMean,
}
"""Fields left out where nothing is known: lists of records of this class, or of texts (None)."""

_SINGLE = ("leader_racks", "topic_leaders")
"""Fields of facts that hold one record."""


def format_facts(facts: plan_facts.PlanFacts) -> str:
    """Format a facts file: a line per broker and partition, in the order of the plan. Equal facts give equal text."""
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
    parts.append(f'"loads": {"null" if facts.loads is None else _load_lines(load_fields(facts.loads))}')
    for name, kind in _OPTIONAL.items():
        if value := getattr(facts, name):
            is_list = kind is not None and name not in _SINGLE
            parts.append(f"{_text(name)}: {_lines(map(_fields, value)) if is_list else _text(_plain(value))}")
    parts.append(f'"brokers": {_lines(_fields(broker) for broker in facts.brokers)}')
    parts.append(f'"partitions": {_lines(map(_partition, partitions))}')
    return "{" + ",\n ".join(parts) + "}"


def _plain(value: Fielded | tuple[str, ...]) -> Json:
    return value if isinstance(value, tuple) else _fields(value)


def load_fields(basis: LoadBasis) -> dict[str, Json]:
    """The basis of loads, as field `loads` of a facts file."""
    return _fields(basis) | {
        "doubtful": [
            {
                "topic": one.topic_partition.topic,
                "partition": one.topic_partition.partition,
                "reason": one.reason,
                "prior": one.prior,
                "write_bytes_per_s": _written(one.write_bytes_per_s),
            }
            for one in basis.doubtful
        ],
        "brokers": [_fields(one) for one in basis.brokers],
        "forecast": None if basis.forecast is None else _fields(basis.forecast),
    }


def parse_facts(text: str) -> plan_facts.PlanFacts:
    """Parse a facts file. Raises MalformedPlan; fields unknown to this version are ignored."""
    try:
        document = read_json(text)
        if document["version"] != VERSION:
            raise MalformedPlan(f"a facts file of version {document['version']}; this kreassign reads {VERSION}")
        facts = _facts(document)
    except (ValueError, TypeError, AttributeError) as error:
        raise MalformedPlan(f"not the facts file of a plan: {error}") from error
    except KeyError as error:
        raise MalformedPlan(f"not the facts file of a plan: it has no {error}") from error
    if len(facts.expected) < len(facts.partitions):
        raise MalformedPlan("not the facts file of a plan: it has a partition twice")
    return facts


def _facts(document: dict[str, Json]) -> plan_facts.PlanFacts:
    totals = {name: value for name, value in document["totals"].items() if name != "gap"}
    return plan_facts.PlanFacts(
        plan_id=_fit("plan_id", document["plan_id"], "str"),
        input_hash=_fit("input_hash", document["input_hash"], "str"),
        task=_fit("task", document["task"], "str"),
        cluster_id=_fit("cluster_id", document["cluster_id"], "str | None"),
        snapshot_id=_fit("snapshot_id", document["snapshot_id"], "str | None"),
        topic_ids=_texts(document.get("topic_ids", {})),
        loads=None if document.get("loads") is None else _read_loads(document["loads"]),
        totals=_made(plan_facts.Totals, totals),
        prediction=None if document["prediction"] is None else _made(plan_facts.Prediction, document["prediction"]),
        remaining=_all_fit("remaining", document["remaining"], "str"),
        brokers=tuple(_made(plan_facts.PlannedBroker, broker) for broker in document["brokers"]),
        partitions=tuple(map(_read_partition, document["partitions"])),
        **{name: _read_optional(name, document[name]) for name in _OPTIONAL if name in document},
    )


def _read_optional(name: str, value: Json) -> Any:
    kind = _OPTIONAL[name]
    if kind is None:
        return _all_fit(name, value, "str")
    if name in _SINGLE:
        return None if value is None else _made(kind, value)
    return tuple(_made(kind, one) for one in value)


def _partition(fact: plan_facts.PlannedPartition) -> dict[str, Json]:
    topic, partition = fact.topic_partition
    return {
        "topic": topic,
        "partition": partition,
        "replicas": fact.replicas,
        **({"log_dirs": fact.log_dirs} if fact.log_dirs else {}),
        "size_bytes": fact.size_bytes,
        "reasons": [_fields(reason) for reason in fact.reasons],
    }


def _read_partition(entry: dict[str, Json]) -> plan_facts.PlannedPartition:
    return plan_facts.PlannedPartition(
        topic_partition=TopicPartition(
            _fit("topic", entry["topic"], "str"), _fit("partition", entry["partition"], "int")
        ),
        replicas=_all_fit("replicas", entry["replicas"], "int"),
        log_dirs=_all_fit("log_dirs", entry.get("log_dirs", []), "str"),
        size_bytes=_fit("size_bytes", entry["size_bytes"], "int"),
        reasons=tuple(_made(plan_facts.Reason, reason) for reason in entry["reasons"]),
    )


def _read_loads(entry: dict[str, Json]) -> LoadBasis:
    parts = {"doubtful", "brokers", "forecast"}
    plain = _made(LoadBasis, {name: value for name, value in entry.items() if name not in parts})
    forecast = entry["forecast"]
    return replace(
        plain,
        doubtful=tuple(map(_read_doubtful, entry["doubtful"])),
        brokers=tuple(_made(DoubtfulShare, one) for one in entry["brokers"]),
        forecast=None if forecast is None else _made(ForecastBasis, forecast),
    )


def _read_doubtful(entry: dict[str, Json]) -> DoubtfulLoad:
    return DoubtfulLoad(
        TopicPartition(_fit("topic", entry["topic"], "str"), _fit("partition", entry["partition"], "int")),
        _fit("reason", entry["reason"], "str"),
        _fit("prior", entry["prior"], "str"),
        _fit("write_bytes_per_s", entry["write_bytes_per_s"], "float"),
    )


def _made(kind: type[Record], values: Json) -> Record:
    """Build a value of this class, with null for infinity. Raises TypeError for an unknown field or another type."""
    kinds = {field.name: str(field.type) for field in fields(kind)}
    made = {name: _fit(name, value, kinds.get(name, "")) for name, value in values.items()}
    return kind(
        **{name: math.inf if value is None and kinds[name] == "float" else value for name, value in made.items()}
    )


def _all_fit(name: str, values: Json, kind: str) -> tuple[Any, ...]:
    return tuple(_fit(name, value, kind) for value in _fit(name, values, "list"))


def _fit(name: str, value: Json, kind: str) -> Any:
    """Check the type of a value. Raises TypeError, which names the field."""
    if kind not in _FITS:
        raise TypeError(f"there is no field {name!r}")
    if not _FITS[kind](value):
        raise TypeError(f"{name} is {shortened(repr(value))}, which is no {kind}")
    return value


def _is_whole(value: Json) -> bool:
    return type(value) is int and abs(value) <= LARGEST_AMOUNT


def _is_number(value: Json) -> bool:
    """True for a number, or null for an unknown or infinite one."""
    return value is None or type(value) is float or _is_whole(value)


_FITS: dict[str, Callable[[Json], bool]] = {
    "bool": lambda value: type(value) is bool,
    "float": _is_number,
    "float | None": _is_number,
    "int": _is_whole,
    "int | None": lambda value: value is None or _is_whole(value),
    "list": lambda value: type(value) is list,
    "Mapping[str, int]": lambda value: type(value) is dict and all(map(_is_whole, value.values())),
    "Mapping[str, float]": lambda value: type(value) is dict and all(map(_is_number, value.values())),
    "str": lambda value: type(value) is str,
    "str | None": lambda value: value is None or type(value) is str,
}
"""Checks by annotated type of a field."""


def _texts(value: Json) -> dict[str, str]:
    if not all(isinstance(text, str) for entry in value.items() for text in entry):
        raise TypeError("topic_ids is not an object of texts")
    return dict(value)


def _fields(record: Fielded) -> dict[str, Json]:
    return {name: _written(getattr(record, name)) for name in record.__dataclass_fields__}


def _written(value: Json) -> Json:
    """Round to 12 digits, as the last digits of float sums mean nothing; infinity becomes null, as JSON has none."""
    if isinstance(value, float):
        return None if math.isinf(value) else float(f"{value:.12g}")
    if isinstance(value, Mapping):
        return {name: _written(one) for name, one in value.items()}
    return value


def _load_lines(found: dict[str, Json]) -> str:
    lists = {"doubtful", "brokers"}
    parts = [f"{_text(name)}: {_text(value)}" for name, value in found.items() if name not in lists]
    return "{" + ",\n  ".join([*parts, *(f"{_text(name)}: {_lines(found[name])}" for name in sorted(lists))]) + "}"


def _lines(entries: Any) -> str:
    lines = ",\n  ".join(map(_text, entries))
    return f"[\n  {lines}]" if lines else "[]"


def _text(value: Json) -> str:
    return _JSON.encode(value)
