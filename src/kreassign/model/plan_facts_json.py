"""The facts file of a plan, text ↔ model. Every field: docs/reference/plan-files.md.

The classes are the format: a dataclass is an object of its fields, in their order; a partition is the two keys of its
name.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass, replace
from functools import cache
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from kreassign.errors import MalformedPlan
from kreassign.model import plan_facts
from kreassign.model.cluster import TopicPartition
from kreassign.model.documents import Json, read_json
from kreassign.model.load import LoadBasis
from kreassign.model.plan import partition_order
from kreassign.model.text import LARGEST_AMOUNT, shortened

VERSION = 1
_JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False)
_LEFT_OUT = frozenset({
    "factors", "leader_racks", "limits", "log_dirs", "losses", "means", "racks", "topic_leaders", "uneven_topics",
    "unknown_goals",
})  # fmt: skip
"""Fields that are left out where they are empty, or nothing is known."""

_GAP = "gap"
"""Key of the totals that follows from others: it is written, and not read."""


def format_facts(facts: plan_facts.PlanFacts) -> str:
    """Format a facts file: a line per broker and partition, in the order of the plan. Equal facts give equal text."""
    partitions = sorted(facts.partitions, key=lambda fact: partition_order(fact.topic_partition))
    facts = replace(facts, partitions=tuple(partitions), topic_ids=dict(sorted(facts.topic_ids.items())))
    document = {"version": VERSION, **_written(facts)}
    document["totals"][_GAP] = facts.totals.gap
    return _lines(document, 1)


def load_fields(basis: LoadBasis) -> dict[str, Json]:
    """The basis of loads, as field `loads` of a facts file."""
    return _object(basis)


def _written(value: Any) -> Json:
    """Round to 12 digits, as the last digits of float sums mean nothing; infinity becomes null, as JSON has none."""
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return None if math.isinf(value) else float(f"{value:.12g}")
    if isinstance(value, Mapping):
        return {name: _written(one) for name, one in value.items()}
    return [*map(_written, value)] if isinstance(value, tuple) else _object(value)


def _object(record: Any) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for name in record.__dataclass_fields__:
        value = getattr(record, name)
        if isinstance(value, TopicPartition):
            found |= value._asdict()
        elif value or name not in _LEFT_OUT:
            found[name] = _written(value)
    return found


def _lines(value: Json, indent: int) -> str:
    """A line per object of a list, and per key of an object with lists; anything else in one line."""
    if isinstance(value, dict) and any(isinstance(one, list) for one in value.values()):
        parts = (f"{_JSON.encode(name)}: {_lines(one, indent + 1)}" for name, one in value.items())
        return "{" + f",\n{' ' * indent}".join(parts) + "}"
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "[\n  " + ",\n  ".join(map(_JSON.encode, value)) + "]"
    return _JSON.encode(value)


def parse_facts(text: str) -> plan_facts.PlanFacts:
    """Parse a facts file. Raises MalformedPlan; fields unknown to this version are ignored."""
    try:
        document = read_json(text)
        if document["version"] != VERSION:
            raise MalformedPlan(f"a facts file of version {document['version']}; this kreassign reads {VERSION}")
        known = _hints(plan_facts.PlanFacts)
        facts: plan_facts.PlanFacts = _made(
            plan_facts.PlanFacts, {name: value for name, value in document.items() if name in known}
        )
    except (ValueError, TypeError, AttributeError) as error:
        raise MalformedPlan(f"not the facts file of a plan: {error}") from error
    except KeyError as error:
        raise MalformedPlan(f"not the facts file of a plan: it has no {error}") from error
    if len(facts.expected) < len(facts.partitions):
        raise MalformedPlan("not the facts file of a plan: it has a partition twice")
    return facts


def _made(kind: Any, entry: Mapping[str, Json]) -> Any:
    """Build a value of this class. Raises TypeError for an unknown field or another type, KeyError for a missing one.

    Of the facts themselves only fields that are left out may be missing: without its partitions a plan expects nothing.
    """
    hints, values = _hints(kind), {name: value for name, value in entry.items() if name != _GAP}
    made: dict[str, Any] = {}
    if "topic_partition" in hints:
        topic, partition = values.pop("topic"), values.pop("partition")
        made["topic_partition"] = TopicPartition(_read("topic", topic, str), _read("partition", partition, int))
    if strange := sorted(values.keys() - hints.keys()):
        raise TypeError(f"there is no field {strange[0]!r}")
    may_be_missing = _LEFT_OUT if kind is plan_facts.PlanFacts else _with_default(kind)
    for name, wanted in hints.items():
        if name not in made and (name in values or name not in may_be_missing):
            made[name] = _read(name, values[name], wanted)
    return kind(**made)


def _read(name: str, value: Json, wanted: Any) -> Any:
    """Read the value of a field, with null for infinity. Raises TypeError, which names the field."""
    origin, inner = get_origin(wanted), get_args(wanted)
    if origin is UnionType:
        return None if value is None else _read(name, value, inner[0])
    if origin is tuple:
        return tuple(_read(name, one, inner[0]) for one in _checked(name, value, list))
    if origin is Mapping:
        return {key: _read(name, one, inner[1]) for key, one in _checked(name, value, dict).items()}
    if is_dataclass(wanted):
        return _made(wanted, _checked(name, value, dict))
    found = _checked(name, value, wanted)
    return math.inf if found is None else found


def _checked(name: str, value: Json, kind: type[Any]) -> Any:
    is_whole = type(value) is int and abs(value) <= LARGEST_AMOUNT
    is_number = value is None or type(value) is float or is_whole
    fits = is_number if kind is float else is_whole if kind is int else type(value) is kind
    if not fits:
        raise TypeError(f"{name} is {shortened(repr(value))}, which is no {kind.__name__}")
    return value


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


@cache
def _with_default(kind: Any) -> frozenset[str]:
    defaults = ((one.name, one.default, one.default_factory) for one in fields(kind))
    return frozenset(name for name, *default in defaults if default != [MISSING, MISSING])
