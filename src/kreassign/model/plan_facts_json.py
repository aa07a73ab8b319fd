"""The facts file of a plan, text ↔ model. Every field: docs/reference/plan-files.md.

The classes are the format: a dataclass is an object of its fields, in their order; a partition is the two keys of its
name.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kreassign.errors import MalformedPlan
from kreassign.model import plan_facts
from kreassign.model.cluster import TopicPartition
from kreassign.model.documents import Json, read_json
from kreassign.model.load import LoadBasis
from kreassign.model.plan import partition_order
from kreassign.model.text import LARGEST_AMOUNT
from kreassign.model.typed_json import Reader, hints_of, refuse

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
        known = hints_of(plan_facts.PlanFacts)
        facts: plan_facts.PlanFacts = _FactsReader().record(
            {name: value for name, value in document.items() if name in known}, plan_facts.PlanFacts
        )
    except (ValueError, TypeError, AttributeError) as error:
        raise MalformedPlan(f"not the facts file of a plan: {error}") from error
    except KeyError as error:
        raise MalformedPlan(f"not the facts file of a plan: it has no {error}") from error
    if len(facts.expected) < len(facts.partitions):
        raise MalformedPlan("not the facts file of a plan: it has a partition twice")
    return facts


class _FactsReader(Reader):
    def record(self, values: Mapping[str, Json], kind: Any) -> Any:
        """Read an object, with the keys of a partition. Without its partitions a plan would expect nothing."""
        hints, fields = hints_of(kind), {name: one for name, one in values.items() if name != _GAP}
        if "topic_partition" in hints:
            fields["topic_partition"] = [fields.pop(name) for name in TopicPartition._fields]
        if kind is plan_facts.PlanFacts and (missing := [*(hints.keys() - fields.keys() - _LEFT_OUT)]):
            raise KeyError(min(missing))
        return super().record(fields, kind)

    def plain(self, value: Json, wanted: type, name: str) -> Any:
        """Read null as infinity, and no number that Kafka cannot have."""
        if wanted is float and value is None:
            return math.inf
        if type(value) is int and abs(value) > LARGEST_AMOUNT:
            refuse(value, wanted, name)
        return super().plain(value, wanted, name)
