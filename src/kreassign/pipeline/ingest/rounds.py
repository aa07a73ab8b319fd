"""PURE. What one round of `kreassign collect` saw → rows of every table that it adds to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kreassign.model import ConfigEntry, ConfigResource, ConfigSource
from kreassign.pipeline.ingest.snapshots import Observation, SampleRound, sample_rows, snapshot_tables
from kreassign.pipeline.tables.schemas import SAMPLES, THROTTLES, Row, Table

# What somebody set; a broker that has no throttle shows a default without a source of its own.
_SET = frozenset({ConfigSource.DYNAMIC_TOPIC, ConfigSource.DYNAMIC_BROKER, ConfigSource.DYNAMIC_DEFAULT_BROKER})


@dataclass(frozen=True, slots=True)
class CollectedRound:
    """One round: the cluster as it was, offsets and sizes, and the throttles by resource."""

    seen: Observation
    samples: SampleRound
    throttles: Mapping[ConfigResource, Mapping[str, ConfigEntry]]


def round_tables(collected: CollectedRound) -> Iterator[tuple[Table, list[Row]]]:
    """Rows of every table of a round, in the order in which to write them: `clusters`, the seal, comes last."""
    yield SAMPLES, sample_rows(collected.samples)
    yield THROTTLES, throttle_rows(collected)
    yield from snapshot_tables(collected.seen)


def throttle_rows(collected: CollectedRound) -> list[Row]:
    """Rows of table `throttles`: only what somebody set."""
    head = {"cluster_id": collected.samples.cluster_id, "taken_ms": collected.samples.taken_ms}
    return [
        head | {"resource_type": resource.type.name.lower(), "resource": resource.name, "name": name, "value": value}
        for resource, entries in collected.throttles.items()
        for name, value in _set_values(entries)
    ]


def _set_values(entries: Mapping[str, ConfigEntry]) -> Iterator[tuple[str, str]]:
    # An empty list of replicas throttles nothing; Kafka shows it where a list was set and emptied.
    return ((name, entry.value) for name, entry in sorted(entries.items()) if entry.value and entry.source in _SET)
