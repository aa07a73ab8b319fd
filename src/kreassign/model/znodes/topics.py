"""`/brokers/topics/T`: the replica lists of a topic, and which of them are on their way (KIP-455, ZooKeeper changes).

Version 1 knows replica lists only; 2 (Kafka 2.4) adds what is being added and removed, 3 (Kafka 2.8) the topic id.
KIP-455 writes the new keys in camel case; Kafka shipped snake case. Both are read, Kafka's is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kreassign.errors import DamagedZnode, InputError
from kreassign.model.reassignment import OngoingReassignment
from kreassign.model.znodes import paths, text

_READ_VERSIONS = (1, 2, 3)
_WITH_TOPIC_ID = 3

Replicas = Mapping[int, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class TopicZnode:
    """Replica lists by partition number; `adding` and `removing` hold only partitions where they are not empty."""

    partitions: Replicas
    adding: Replicas = field(default_factory=dict)
    removing: Replicas = field(default_factory=dict)
    topic_id: str | None = None

    def ongoing(self, partition: int) -> OngoingReassignment | None:
        """The reassignment of a partition, None if it has none."""
        adding, removing = self.adding.get(partition, ()), self.removing.get(partition, ())
        if not adding and not removing:
            return None
        return OngoingReassignment(self.partitions[partition], adding, removing)

    def with_partition(self, partition: int, wanted: OngoingReassignment) -> TopicZnode:
        """The same topic with other lists for one partition."""
        return replace(
            self,
            partitions={**self.partitions, partition: wanted.replicas},
            adding=_with(self.adding, partition, wanted.adding),
            removing=_with(self.removing, partition, wanted.removing),
        )


def _with(lists: Replicas, partition: int, brokers: tuple[int, ...]) -> Replicas:
    others = {number: ids for number, ids in lists.items() if number != partition}
    return {**others, partition: brokers} if brokers else others


def parse_topic(topic: str, content: bytes) -> TopicZnode:
    """Read a topic znode of any version; raises `DamagedZnode`."""
    path = paths.topic_path(topic)
    fields = text.decode(path, content)
    version = text.integer(path, text.field(path, fields, "version"))
    if version not in _READ_VERSIONS:
        raise DamagedZnode(path, f"its version {version} is not one of {_READ_VERSIONS}")
    topic_id = fields.get("topic_id")
    return TopicZnode(
        text.replica_lists(path, text.field(path, fields, "partitions")),
        _lists(path, fields, "adding_replicas", "addingReplicas"),
        _lists(path, fields, "removing_replicas", "removingReplicas"),
        None if topic_id is None else text.string(path, topic_id),
    )


def _lists(path: str, fields: dict[str, text.Json], *names: str) -> Replicas:
    found: text.Json = next((fields[name] for name in names if name in fields), {})
    return {number: brokers for number, brokers in text.replica_lists(path, found).items() if brokers}


def format_topic(znode: TopicZnode) -> bytes:
    """Write version 3, or version 2 for a topic without an id. Raises `InputError` for a partition without replicas.

    An empty list would poison the cluster: no controller could stay in office that reads it.
    """
    if empty := [number for number, brokers in znode.partitions.items() if not brokers]:
        raise InputError(f"partitions {empty} would have no replicas; nothing was written")
    lists = {
        "adding_replicas": _by_name(znode.adding),
        "removing_replicas": _by_name(znode.removing),
    }
    partitions = _by_name(znode.partitions)
    if znode.topic_id is None:
        return text.encode({"version": 2, "partitions": partitions, **lists})
    return text.encode({"partitions": partitions, "topic_id": znode.topic_id, **lists, "version": _WITH_TOPIC_ID})


def _by_name(lists: Replicas) -> dict[str, tuple[int, ...]]:
    return {str(number): lists[number] for number in sorted(lists)}
