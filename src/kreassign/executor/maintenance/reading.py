"""Read the record of maintenance from the cluster, beside offsets that the group `kreassign-maintenance` commits.

So runs of any machine are held off a broker that cannot be cordoned (before Kafka 4.3). Without a topic
`__consumer_offsets` there is no record.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from kreassign.errors import ClusterError
from kreassign.executor.cluster.port import TopicsPort
from kreassign.executor.cluster.readings import seen_in_two_looks
from kreassign.executor.lease import CALL_TIMEOUT_MS, offsets_topic
from kreassign.executor.maintenance.record import Entered, MaintenanceRecord, parse_record, text_of_pieces
from kreassign.model import Batch, TopicPartition
from kreassign.model.error_codes import GROUP_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED, has_code
from kreassign.model.requests import LOOKS, CommittedOffset

GROUP_ID = "kreassign-maintenance"


class OffsetsPort(TopicsPort, Protocol):
    """Calls that read the record. `AdminClient` fits them by its shape."""

    def fetch_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition], *, timeout_ms: int | None
    ) -> Batch[TopicPartition, CommittedOffset]:
        """Committed offsets of a group."""
        ...


def record_places(port: OffsetsPort) -> list[TopicPartition]:
    """Partitions beside whose offsets a record is kept; empty without a topic `__consumer_offsets`.

    Raises ClusterError where it is not known whether there is one: there may be a record then.
    """
    topic = offsets_topic(port)
    return [] if topic is None else sorted(partition.topic_partition for partition in topic.partitions)


def read_maintenance_record(port: OffsetsPort) -> MaintenanceRecord | None:
    """Read the record; None if there is none. Raises ClusterError, and ValueError if it is unreadable."""
    places = record_places(port)
    if not places:
        return None

    def record() -> str | None:
        offsets = port.fetch_offsets(GROUP_ID, places, timeout_ms=CALL_TIMEOUT_MS).raise_if_any()
        return text_of_pieces({place.partition: offset.metadata for place, offset in offsets.items()})

    text = seen_in_two_looks(record)
    return None if text is None else parse_record(text)


def brokers_in_maintenance(port: OffsetsPort) -> Mapping[int, Entered]:
    """Brokers that the record of the cluster names. Raises ClusterError, also where the record is unreadable."""
    try:
        record = read_maintenance_record(port)
    except ValueError as error:
        raise ClusterError(f"the record of maintenance in group {GROUP_ID} is unreadable: {error}") from error
    return {} if record is None else record.brokers


class InMaintenance:
    """Brokers in maintenance, queried repeatedly by a run."""

    def __init__(self, port: OffsetsPort) -> None:
        self._port = port

    def __call__(self) -> frozenset[int]:
        """Ids of the brokers in maintenance. Raises ClusterError if they are unknown.

        None for a principal that may not read the group, by two answers: it can keep no lease either, and its run says
        so.
        """
        for _ in range(LOOKS):
            try:
                return frozenset(brokers_in_maintenance(self._port))
            except ClusterError as error:
                if not has_code(error, GROUP_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED):
                    raise
        return frozenset()


def none_in_maintenance() -> frozenset[int]:
    """For runs that do not query the cluster."""
    return frozenset()
