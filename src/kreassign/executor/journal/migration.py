"""Journals of earlier versions: their events in today's words. Pure.

A version is read as it is, by the steps from it to the current one, each a function of one row. Version 1 was never
released.

- 3 renamed events and fields to Kafka's and the field's terms, and made the throttle of a run one value.
- 4 renamed the free space of log directories in a health check.
- 5 only adds: the plan's id and who executes the run.
- 6 adds snapshots, compresses long rows, and has one row for many polls that showed nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

CURRENT_VERSION = 6
READABLE_VERSIONS = (2, 3, 4, 5, CURRENT_VERSION)

EVENTS_OF_2: Mapping[str, str] = MappingProxyType({
    "ClusterSeen": "MovesObserved",
    "HealthSeen": "HealthObserved",
    "RateRequested": "ThrottleRequested",
    "TrafficSeen": "TrafficMeasured",
    "VerdictsNoted": "VerdictsRecorded",
})  # fmt: skip
"""Events by the name that version 2 gave them; all others kept theirs."""

FIELDS_OF_2: Mapping[str, str] = MappingProxyType({
    "auto": "adaptive",
    "debts": "overrides",
    "earlier": "unconfirmed",
    "ours": "value",
    "sightings": "observations",
    "single": "per_broker",
    "unplaced": "misplaced",
    "whereabouts": "placement",
})  # fmt: skip
"""Fields by the name that version 2 gave them, wherever they occur."""

PLACEMENTS_OF_2: Mapping[str, str] = MappingProxyType({
    "returned": "reordered",
    "elsewhere": "diverged",
    "gone": "deleted",
})  # fmt: skip
"""Values of `placement`."""

Fields = dict[str, Any]


def migrated(version: int, kind: str, body: str) -> tuple[str, str]:
    """Kind and body of a row as the current version writes them. Raises ValueError for a body that is none of its."""
    if version > LAST_RENAMED:
        return kind, body
    try:
        fields = json.loads(body)
        for step in STEPS[version - READABLE_VERSIONS[0] :]:
            kind, fields = step(kind, fields)
        return kind, json.dumps(fields, separators=(",", ":"), ensure_ascii=False)
    except (TypeError, AttributeError, LookupError, RecursionError) as error:
        raise ValueError(f"a {kind} of version {version} cannot be read: {error}") from error


def _from_2(kind: str, fields: Fields) -> tuple[str, Fields]:
    fields = _renamed(fields)
    if kind == "RunStarted":
        fields["rates"] = {
            "bytes_per_s": fields.pop("throttle_bytes_per_s", None),
            "per_broker": fields.pop("broker_rates", []),
            "adaptive": fields.pop("adaptive", None),
        }
    return EVENTS_OF_2.get(kind, kind), fields


def _from_3(kind: str, fields: Fields) -> tuple[str, Fields]:
    health = fields.get("health", {})
    if kind == "HealthObserved" and "room" in health:
        fields = fields | {"health": {"log_dir_space" if name == "room" else name: health[name] for name in health}}
    return kind, fields


STEPS: tuple[Callable[[str, Fields], tuple[str, Fields]], ...] = (_from_2, _from_3)
"""From each readable version to the next one, but for those that only add."""

LAST_RENAMED = READABLE_VERSIONS[0] + len(STEPS) - 1


def _renamed(value: Any) -> Any:
    if isinstance(value, list):
        return [_renamed(item) for item in value]
    if not isinstance(value, dict):
        return value
    fields = {FIELDS_OF_2.get(name, name): _renamed(item) for name, item in value.items()}
    if "placement" in fields:
        fields["placement"] = PLACEMENTS_OF_2.get(fields["placement"], fields["placement"])
    return fields
