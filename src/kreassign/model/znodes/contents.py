"""The contents of znodes, JSON text ↔ values. Errors name the path of the znode.

Texts are written byte for byte as by Kafka 3.9.1; texts of older releases can be read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kreassign.errors import DamagedZnode, InputError
from kreassign.model.cluster import ConfigResource, TopicPartition
from kreassign.model.reassignment import OngoingReassignment
from kreassign.model.text import parse_whole
from kreassign.model.znodes import paths

# JSON values of a znode by type.

# A JSON value as the standard library parses it; every use checks its type first.
Json = Any

_COMPACT = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)


def encode_json(document: Json) -> bytes:
    """Format compact JSON with the keys in the order given, as Kafka does."""
    return _COMPACT.encode(document).encode()


def decode_json(path: str, content: bytes) -> dict[str, Json]:
    """Parse the JSON object of a znode; raises `DamagedZnode`."""
    try:
        document = json.loads(content)
    except ValueError as error:
        raise DamagedZnode(path, f"it is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise DamagedZnode(path, "it is not a JSON object")
    return document


def required_field(path: str, fields: dict[str, Json], name: str) -> Json:
    """A required key; raises `DamagedZnode`."""
    if name not in fields:
        raise DamagedZnode(path, f"it has no {name!r}")
    return fields[name]


def whole_number(path: str, value: Json) -> int:
    """Check for a whole number; raises `DamagedZnode`."""
    if type(value) is not int:
        raise DamagedZnode(path, f"{value!r} is not a whole number")
    return value


def text_value(path: str, value: Json) -> str:
    """Check for a text; raises `DamagedZnode`."""
    if not isinstance(value, str):
        raise DamagedZnode(path, f"{value!r} is not a text")
    return value


def object_list(path: str, value: Json) -> list[dict[str, Json]]:
    """Check for a list of JSON objects; raises `DamagedZnode`."""
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise DamagedZnode(path, f"{value!r} is not a list of objects")
    return value


def broker_list(path: str, value: Json) -> tuple[int, ...]:
    """Check for a list of broker ids, order kept; raises `DamagedZnode`."""
    if not isinstance(value, list):
        raise DamagedZnode(path, f"{value!r} is not a list of brokers")
    return tuple(whole_number(path, item) for item in value)


def replica_lists(path: str, value: Json) -> dict[int, tuple[int, ...]]:
    """Replica lists by partition number, a text in JSON; raises `DamagedZnode`."""
    try:
        lists = {parse_whole(name): ids for name, ids in value.items()}
    except (AttributeError, ValueError):
        raise DamagedZnode(path, f"{value!r} does not map partitions to replicas") from None
    return {number: broker_list(path, ids) for number, ids in lists.items()}


def text_map(path: str, value: Json) -> dict[str, str]:
    """Check for texts by name; raises `DamagedZnode`."""
    if not isinstance(value, dict):
        raise DamagedZnode(path, f"{value!r} does not map names to texts")
    return {name: text_value(path, text) for name, text in value.items()}


# `/admin/reassign_partitions` and `/admin/preferred_replica_election`: orders to the controller in ZooKeeper.
#
# The controller reads the first only when it is **created**, removes finished entries, and deletes it when it is
# empty. It checks little: an entry without replicas crashes every controller that reads it, and an entry that
# cannot be fulfilled stays for ever and keeps others from creating the znode. So entries are checked here before they
# are written, and `find_poison` names existing bad ones.

_ORDER_VERSION = 1

Targets = Mapping[TopicPartition, tuple[int, ...]]


def parse_reassignments(content: bytes) -> dict[TopicPartition, tuple[int, ...]]:
    """The targets of a reassignment znode; the last mention of a partition counts. Raises `DamagedZnode`."""
    path = paths.REASSIGN_PARTITIONS
    entries = object_list(path, decode_json(path, content).get("partitions", []))
    return {_partition(path, entry): broker_list(path, required_field(path, entry, "replicas")) for entry in entries}


def format_reassignments(targets: Targets) -> bytes:
    """Format a reassignment znode, in the order given; raises `InputError` for harmful targets."""
    if poison := find_poison(targets):
        raise InputError("nothing was written to ZooKeeper:\n" + "\n".join(f"  - {line}" for line in poison))
    entries = [
        {"topic": topic, "partition": number, "replicas": replicas} for (topic, number), replicas in targets.items()
    ]
    return encode_json({"version": _ORDER_VERSION, "partitions": entries})


def find_poison(targets: Targets) -> tuple[str, ...]:
    """A sentence for each entry that crashes a ZooKeeper controller, or that it can never complete."""
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
    """Partitions to be led by their preferred replica, without duplicates; raises `DamagedZnode`."""
    path = paths.PREFERRED_REPLICA_ELECTION
    entries = object_list(path, decode_json(path, content).get("partitions", []))
    return tuple(dict.fromkeys(_partition(path, entry) for entry in entries))


def format_election(partitions: Iterable[TopicPartition]) -> bytes:
    """Format an election znode, in the order given."""
    entries = [{"topic": topic, "partition": number} for topic, number in partitions]
    return encode_json({"version": _ORDER_VERSION, "partitions": entries})


def _partition(path: str, entry: dict[str, Json]) -> TopicPartition:
    topic = text_value(path, required_field(path, entry, "topic"))
    return TopicPartition(topic, whole_number(path, required_field(path, entry, "partition")))


# `/brokers/topics/T`: the replica lists of a topic, and its moving partitions (KIP-455, ZooKeeper changes).
#
# Version 1 has replica lists only; 2 (Kafka 2.4) adds adding and removing replicas, 3 (Kafka 2.8) the topic id.
# KIP-455 writes the new keys in camel case; Kafka shipped snake case. Both are read, Kafka's is written.

_READ_VERSIONS = (1, 2, 3)
_WITH_TOPIC_ID = 3

Replicas = Mapping[int, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class TopicZnode:
    """Replica lists by partition number; `adding` and `removing` have only partitions with a non-empty list."""

    partitions: Replicas
    adding: Replicas = field(default_factory=dict)
    removing: Replicas = field(default_factory=dict)
    topic_id: str | None = None

    def ongoing(self, partition: int) -> OngoingReassignment | None:
        """The reassignment of a partition; None without one."""
        adding, removing = self.adding.get(partition, ()), self.removing.get(partition, ())
        if not adding and not removing:
            return None
        return OngoingReassignment(self.partitions[partition], adding, removing)

    def with_partition(self, partition: int, wanted: OngoingReassignment) -> TopicZnode:
        """The topic with other lists for one partition."""
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
    """Parse a topic znode of any version; raises `DamagedZnode`."""
    path = paths.topic_path(topic)
    fields = decode_json(path, content)
    version = whole_number(path, required_field(path, fields, "version"))
    if version not in _READ_VERSIONS:
        raise DamagedZnode(path, f"its version {version} is not one of {_READ_VERSIONS}")
    topic_id = fields.get("topic_id")
    return TopicZnode(
        replica_lists(path, required_field(path, fields, "partitions")),
        _lists(path, fields, "adding_replicas", "addingReplicas"),
        _lists(path, fields, "removing_replicas", "removingReplicas"),
        None if topic_id is None else text_value(path, topic_id),
    )


def _lists(path: str, fields: dict[str, Json], *names: str) -> Replicas:
    found: Json = next((fields[name] for name in names if name in fields), {})
    return {number: brokers for number, brokers in replica_lists(path, found).items() if brokers}


def format_topic(znode: TopicZnode) -> bytes:
    """Format version 3, or version 2 for a topic without an id. Raises `InputError` for a partition without replicas.

    An empty list would poison the cluster: no controller that reads it could stay active.
    """
    if empty := [number for number, brokers in znode.partitions.items() if not brokers]:
        raise InputError(f"partitions {empty} would have no replicas; nothing was written")
    lists = {
        "adding_replicas": _by_name(znode.adding),
        "removing_replicas": _by_name(znode.removing),
    }
    partitions = _by_name(znode.partitions)
    if znode.topic_id is None:
        return encode_json({"version": 2, "partitions": partitions, **lists})
    return encode_json({"partitions": partitions, "topic_id": znode.topic_id, **lists, "version": _WITH_TOPIC_ID})


def _by_name(lists: Replicas) -> dict[str, tuple[int, ...]]:
    return {str(number): lists[number] for number in sorted(lists)}


# `/brokers/topics/T/partitions/P/state`: leader and in-sync replicas of a partition.

_STATE_VERSION = 1


@dataclass(frozen=True, slots=True)
class PartitionStateZnode:
    """Leader and in-sync replicas of a partition, as written by the controller of `controller_epoch`."""

    controller_epoch: int
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]


def parse_partition_state(partition: TopicPartition, content: bytes) -> PartitionStateZnode:
    """Parse a state znode; raises `DamagedZnode`."""
    path = paths.partition_state_path(partition)
    fields = decode_json(path, content)
    return PartitionStateZnode(
        whole_number(path, required_field(path, fields, "controller_epoch")),
        whole_number(path, required_field(path, fields, "leader")),
        whole_number(path, required_field(path, fields, "leader_epoch")),
        broker_list(path, required_field(path, fields, "isr")),
    )


def format_partition_state(state: PartitionStateZnode) -> bytes:
    """Format a state znode."""
    return encode_json({
        "controller_epoch": state.controller_epoch,
        "leader": state.leader,
        "version": _STATE_VERSION,
        "leader_epoch": state.leader_epoch,
        "isr": state.isr,
    })  # fmt: skip


# `/brokers/ids/N`: a live broker and its listeners.

_BROKER_VERSION = 5
_LISTENER = "PLAINTEXT"
_NO_PORT = -1


@dataclass(frozen=True, slots=True)
class BrokerZnode:
    """A registered broker. Without a plain-text listener `host` is empty and `port` is -1, as Kafka writes them."""

    id: int
    host: str
    port: int
    rack: str | None = None
    endpoints: tuple[str, ...] = ()


def parse_broker_id(name: str) -> int:
    """Parse the name of a broker's znode; raises `DamagedZnode`."""
    try:
        return parse_whole(name)
    except ValueError as error:
        raise DamagedZnode(paths.BROKER_IDS, f"no broker has such a name: {error}") from None


def parse_broker(broker_id: int, content: bytes) -> BrokerZnode:
    """Parse versions 1 to 5; raises `DamagedZnode`."""
    path = paths.broker_path(broker_id)
    fields = decode_json(path, content)
    rack, endpoints = fields.get("rack"), fields.get("endpoints", [])
    return BrokerZnode(
        broker_id,
        text_value(path, fields.get("host") or ""),
        whole_number(path, fields.get("port", _NO_PORT)),
        None if rack is None else text_value(path, rack),
        tuple(text_value(path, endpoint) for endpoint in endpoints),
    )


def format_broker(znode: BrokerZnode, registered_ms: int) -> bytes:
    """Format version 5 for a broker with one plain-text listener; the rack is left out if there is none."""
    rack = {} if znode.rack is None else {"rack": znode.rack}
    return encode_json({
        "features": {},
        "listener_security_protocol_map": {_LISTENER: _LISTENER},
        "endpoints": znode.endpoints or (f"{_LISTENER}://{znode.host}:{znode.port}",),
        "jmx_port": _NO_PORT,
        **rack,
        "port": znode.port,
        "host": znode.host,
        "version": _BROKER_VERSION,
        "timestamp": str(registered_ms),
    })  # fmt: skip


# `/config/topics/T`, `/config/brokers/N` and the notifications below `/config/changes`.
#
# Brokers read a configuration only when a notification names its owner, so every write needs both znodes.

_CONFIG_VERSION = 1
_CHANGE_VERSION = 2


def parse_config(resource: ConfigResource, content: bytes) -> dict[str, str]:
    """The settings of a topic or broker by key; raises `DamagedZnode`."""
    path = paths.config_path(resource)
    return text_map(path, decode_json(path, content).get("config", {}))


def format_config(values: Mapping[str, str]) -> bytes:
    """Format a configuration; an empty one is kept, as by Kafka."""
    return encode_json({"version": _CONFIG_VERSION, "config": dict(values)})


def format_change(resource: ConfigResource) -> bytes:
    """Format the notification of a changed configuration."""
    return encode_json({"version": _CHANGE_VERSION, "entity_path": paths.config_entity(resource)})


# `/controller` (ephemeral: the active controller) and `/controller_epoch` (the number of its changes).

_CONTROLLER_VERSION = 2
_NO_KRAFT_EPOCH = -1


def format_controller(broker_id: int, elected_ms: int) -> bytes:
    """Format version 2: the broker that is the controller, and since when. The time is a text, as in Kafka."""
    return encode_json({
        "version": _CONTROLLER_VERSION,
        "brokerid": broker_id,
        "timestamp": str(elected_ms),
        "kraftControllerEpoch": _NO_KRAFT_EPOCH,
    })  # fmt: skip


def parse_controller_epoch(content: bytes) -> int:
    """Parse the epoch, a plain number; raises `DamagedZnode`."""
    try:
        return parse_whole(content.decode(errors="replace"))
    except ValueError:
        raise DamagedZnode(paths.CONTROLLER_EPOCH, f"{content!r} is not a number") from None


def format_controller_epoch(epoch: int) -> bytes:
    """Format the epoch."""
    return str(epoch).encode()
