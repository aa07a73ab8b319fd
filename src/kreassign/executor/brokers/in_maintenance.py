"""Who is in maintenance, by what the cluster keeps for all machines: beside offsets that a group commits.

So runs of any machine can be held off a broker that cannot be cordoned, before Kafka 4.3. Without a topic
`__consumer_offsets` the cluster keeps nothing.
"""

from __future__ import annotations

from kreassign.errors import ClusterError
from kreassign.executor.brokers.maintenance_record import MaintenanceRecord, parse_record
from kreassign.executor.lease.lease import CALL_TIMEOUT_MS, OFFSETS_TOPIC
from kreassign.executor.lease.pieces import whole
from kreassign.executor.lease.port import GroupPort
from kreassign.model import TopicPartition

GROUP_ID = "kreassign-maintenance"


def record_places(port: GroupPort) -> list[TopicPartition]:
    """The partitions beside whose offsets a record is kept; none where the cluster keeps nothing."""
    topic = port.describe_topics([OFFSETS_TOPIC]).ok.get(OFFSETS_TOPIC)
    return [] if topic is None else [partition.topic_partition for partition in topic.partitions]


def read_kept(port: GroupPort) -> MaintenanceRecord | None:
    """What the cluster keeps; None if that is nothing. Raises ClusterError, and ValueError if it cannot be read."""
    places = record_places(port)
    if not places:
        return None
    found = port.fetch_offsets(GROUP_ID, places, timeout_ms=CALL_TIMEOUT_MS).raise_if_any()
    text = whole({place.partition: one.metadata for place, one in found.items()})
    return None if text is None else parse_record(text)


class InMaintenance:
    """The brokers in maintenance as a run asks for them again and again.

    Where the cluster does not answer, those that it named last: nobody is taken for done who was not.
    """

    def __init__(self, port: GroupPort) -> None:
        self._port = port
        self._known: frozenset[int] = frozenset()

    def __call__(self) -> frozenset[int]:
        """Their ids."""
        try:
            record = read_kept(self._port)
        except (ClusterError, ValueError):
            return self._known
        self._known = frozenset() if record is None else frozenset(record.brokers)
        return self._known


def nobody() -> frozenset[int]:
    """For runs that do not ask the cluster."""
    return frozenset()
