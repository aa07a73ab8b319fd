"""`/admin/reassign_partitions` and `/admin/preferred_replica_election`: orders to the controller, left in ZooKeeper.

The controller reads the first only when it is **created**, takes away what it has done, and deletes it when nothing is
left. It checks little: an entry without replicas brings down every controller that reads it, and an entry that can
never be fulfilled stays for ever and keeps others from creating the znode. So what is written is checked here, and
`find_poison` names what is found.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kreassign.errors import InputError
from kreassign.model.partition import TopicPartition
from kreassign.model.znodes import paths, text

_VERSION = 1

Targets = Mapping[TopicPartition, tuple[int, ...]]


def parse_reassignments(content: bytes) -> dict[TopicPartition, tuple[int, ...]]:
    """The targets of a reassignment znode; of a partition named twice the last counts. Raises `DamagedZnode`."""
    path = paths.REASSIGN_PARTITIONS
    entries = text.objects(path, text.decode(path, content).get("partitions", []))
    return {_partition(path, entry): text.brokers(path, text.field(path, entry, "replicas")) for entry in entries}


def format_reassignments(targets: Targets) -> bytes:
    """Write a reassignment znode, in the order given; raises `InputError` for what would harm the cluster."""
    if poison := find_poison(targets):
        raise InputError("nothing was written to ZooKeeper:\n" + "\n".join(f"  - {line}" for line in poison))
    entries = [
        {"topic": topic, "partition": number, "replicas": replicas} for (topic, number), replicas in targets.items()
    ]
    return text.encode({"version": _VERSION, "partitions": entries})


def find_poison(targets: Targets) -> tuple[str, ...]:
    """A sentence for each entry that a ZooKeeper controller would choke on or never get rid of."""
    return tuple(
        f"{partition}: {reason}" for partition, replicas in targets.items() if (reason := _poison(replicas)) is not None
    )


def _poison(replicas: tuple[int, ...]) -> str | None:
    if not replicas:
        return "an empty list of replicas, after which no controller stays in office"
    if len(set(replicas)) != len(replicas):
        return f"{list(replicas)} names a broker twice, so that it is never fulfilled and stays in the znode for ever"
    if min(replicas) < 0:
        return f"{list(replicas)} has a negative broker id, so that it is never fulfilled and stays for ever"
    return None


def parse_election(content: bytes) -> tuple[TopicPartition, ...]:
    """The partitions whose preferred replica shall lead, each once; raises `DamagedZnode`."""
    path = paths.PREFERRED_REPLICA_ELECTION
    entries = text.objects(path, text.decode(path, content).get("partitions", []))
    return tuple(dict.fromkeys(_partition(path, entry) for entry in entries))


def format_election(partitions: Iterable[TopicPartition]) -> bytes:
    """Write an election znode, in the order given."""
    entries = [{"topic": topic, "partition": number} for topic, number in partitions]
    return text.encode({"version": _VERSION, "partitions": entries})


def _partition(path: str, entry: dict[str, text.Json]) -> TopicPartition:
    topic = text.string(path, text.field(path, entry, "topic"))
    return TopicPartition(topic, text.integer(path, text.field(path, entry, "partition")))
