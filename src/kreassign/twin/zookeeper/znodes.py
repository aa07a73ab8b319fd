"""Znodes of a twin in ZooKeeper mode: read, cached with their versions, written all or nothing.

`Znodes` has the operations on ZooKeeper that a controller needs. `ZnodeCache` keeps values and versions, so that a
controller changes only what it has read. `ZooKeeperLog` takes the place of the metadata log: ZooKeeper has no log, only
the current state.
"""

from __future__ import annotations

import base64
import json
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

from kreassign.errors import ControllerMoved, InputError, StaleZnode
from kreassign.model import ConfigResource, OngoingReassignment, TopicPartition
from kreassign.model.cluster import ResourceType
from kreassign.model.topic_changes import short_id
from kreassign.model.znodes import paths
from kreassign.model.znodes.contents import (
    BrokerZnode,
    PartitionStateZnode,
    TopicZnode,
    format_broker,
    format_change,
    format_config,
    format_partition_state,
    format_topic,
    parse_config,
    parse_controller_epoch,
    parse_partition_state,
    parse_topic,
)
from kreassign.twin import metadata
from kreassign.twin.access import HostPort
from kreassign.twin.blueprint import Blueprint, seeded_random
from kreassign.twin.core import TwinCore


class Znode(NamedTuple):
    """A znode as it was read. `created` is the id of the transaction that created it, unique per creation."""

    content: bytes
    version: int
    created: int


@dataclass(frozen=True, slots=True)
class Create:
    """Create a child of an existing znode. A sequential one gets a number appended to its path."""

    path: str
    content: bytes = b""
    is_ephemeral: bool = False
    is_sequential: bool = False


@dataclass(frozen=True, slots=True)
class Set:
    """Set the content of a znode, if it has this version."""

    path: str
    content: bytes
    version: int


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete a znode without children."""

    path: str


Write = Create | Set | Delete


class Znodes(Protocol):
    """The tree below the chroot of a cluster, seen by one candidate for controller.

    `on_news` is called, from any thread, when a watched znode may have changed.
    """

    on_news: Callable[[], None]

    def get(self, path: str) -> Znode | None:
        """The znode at a path; None if there is none."""
        ...

    def children(self, path: str) -> tuple[str, ...]:
        """The sorted names of a znode's children; empty if there is no such znode."""
        ...

    def elect(self, broker_id: int, now_ms: int) -> int | None:
        """Become the controller; return the next epoch, or None if there is a controller."""
        ...

    def resign(self) -> None:
        """Resign as controller, if this candidate is the controller."""
        ...

    def write(self, writes: tuple[Write, ...]) -> None:
        """Write as the elected controller, all or nothing. Raises `ControllerMoved`, `StaleZnode`."""
        ...

    def watch(self, path: str) -> bool:
        """Call `on_news` once when a znode (of `paths.LISTS`: its children) changes.

        False if it is watched already, so there is no need to read it.
        """
        ...

    def has_new_session(self) -> bool:
        """True if the session and its ephemeral znodes were replaced by a new session since the last call."""
        ...


# The cache of a controller: values and versions of znodes as last read or written.

_STATE = re.compile(r"/brokers/topics/([^/]+)/partitions/(\d+)/state")
_TOPIC = re.compile(r"/brokers/topics/([^/]+)")
_CONFIG = re.compile(r"/config/(topics|brokers)/([^/]+)")
_OWNERS = {"topics": ResourceType.TOPIC, "brokers": ResourceType.BROKER}


@dataclass(slots=True)
class ZnodeCache:
    """Topics, partition states and configurations as last read or written, and versions by path."""

    topics: dict[str, TopicZnode] = field(default_factory=dict)
    states: dict[TopicPartition, PartitionStateZnode] = field(default_factory=dict)
    configs: dict[ConfigResource, dict[str, str]] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)

    # --- reading ----------------------------------------------------------------------------------------------

    def load(self, znodes: Znodes) -> None:
        """Read everything again."""
        for known in (self.topics, self.states, self.configs, self.versions):
            known.clear()
        for path in _paths(znodes):
            self.read(znodes, path)

    def load_configs(self, znodes: Znodes) -> None:
        """Read the configurations again."""
        self.configs.clear()
        for path in _config_paths(znodes):
            self.read(znodes, path)

    def read(self, znodes: Znodes, path: str) -> None:
        """Read one znode again."""
        found = znodes.get(path)
        if found is not None:
            self._note(path, found.content, found.version)

    def read_topic(self, znodes: Znodes, name: str) -> None:
        """Read a topic again: its lists, its configuration, and whether it has the parent znode of partition states."""
        topic = paths.topic_path(name)
        for path in (topic, f"{topic}/partitions", paths.config_path(ConfigResource.topic(name))):
            self.read(znodes, path)

    def forget_topic(self, name: str) -> None:
        """Drop the deleted znodes of a topic from the cache."""
        topic = paths.topic_path(name)
        for path in [one for one in self.versions if one == topic or one.startswith(f"{topic}/")]:
            self._forget(path)

    def lists(self, key: TopicPartition) -> OngoingReassignment:
        """The lists of a partition; empty if it does not exist."""
        topic = self.topics.get(key.topic)
        if topic is None:
            return OngoingReassignment((), (), ())
        number = key.partition
        return OngoingReassignment(
            topic.partitions.get(number, ()), topic.adding.get(number, ()), topic.removing.get(number, ())
        )

    @property
    def reassigning(self) -> tuple[TopicPartition, ...]:
        """The partitions with a move in progress, sorted."""
        every = ((name, {*znode.adding, *znode.removing}) for name, znode in sorted(self.topics.items()))
        return tuple(TopicPartition(name, number) for name, numbers in every for number in sorted(numbers))

    def records(self) -> Iterator[metadata.Record]:
        """Records that produce the metadata of a cluster with these znodes; its brokers are left out."""
        for resource, values in sorted(self.configs.items()):
            if resource.type is ResourceType.BROKER or resource.name in self.topics:
                yield from (metadata.ConfigChanged(resource, name, value) for name, value in values.items())
        for name, znode in sorted(self.topics.items()):
            yield self.topic_created(name)
            keys = (TopicPartition(name, number) for number in sorted(znode.partitions))
            yield from (self.created(key) for key in keys if key in self.states)

    def topic_created(self, name: str) -> metadata.TopicCreated:
        """The record of a topic from its znode."""
        return metadata.TopicCreated(name, _uuid(name, self.topics[name].topic_id))

    def created(self, key: TopicPartition) -> metadata.PartitionCreated:
        """The record of a partition from its znodes, without directories, which only brokers know."""
        lists, state = self.lists(key), self.states[key]
        return metadata.PartitionCreated(
            key,
            lists.replicas,
            state.isr,
            state.leader,
            state.leader_epoch,
            self.versions.get(paths.partition_state_path(key), 0),
            (metadata.UNASSIGNED,) * len(lists.replicas),
            lists.adding,
            lists.removing,
        )

    # --- writing ----------------------------------------------------------------------------------------------

    def writes(self, records: Iterable[metadata.Record], controller_epoch: int) -> tuple[Write, ...]:
        """The writes that store records. Lists of existing partitions are left as they are: see `lists_written`."""
        writes: list[Write] = []
        configs: dict[ConfigResource, dict[str, str]] = {}
        topics: dict[str, TopicZnode] = {}
        for record in records:
            match record:
                case metadata.PartitionChanged():
                    writes += self._state_written(record, controller_epoch)
                case metadata.TopicCreated(name, topic_id):
                    topics[name] = replace(self.topics.get(name, TopicZnode({})), topic_id=short_id(topic_id))
                case metadata.PartitionCreated(key):
                    topic = topics.get(key.topic, self.topics.get(key.topic))
                    assert topic is not None
                    lists = OngoingReassignment(record.replicas, record.adding, record.removing)
                    topics[key.topic] = topic.with_partition(key.partition, lists)
                    writes += _state_created(record, controller_epoch)
                case metadata.TopicDeleted(name):
                    writes += self._topic_deleted(name)
                case metadata.ConfigChanged(resource, name, value):
                    metadata.configure(configs.setdefault(resource, dict(self.configs.get(resource, {}))), name, value)
                case _:
                    pass  # Brokers depend on sessions, not on written znodes.
        changed = [self._config_written(resource, values) for resource, values in configs.items()]
        return (*self._topics_written(topics), *writes, *(write for pair in changed for write in pair))

    def lists_written(self, key: TopicPartition, lists: OngoingReassignment) -> tuple[Write, ...]:
        """The writes that change the lists of a partition."""
        topic = self.topics[key.topic].with_partition(key.partition, lists)
        return self._topics_written({key.topic: topic})

    def note_written(self, writes: Iterable[Write]) -> None:
        """Apply completed writes to the cache."""
        for write in writes:
            match write:
                case Create(path, content):
                    self._note(path, content, 0)
                case Set(path, content, version):
                    self._note(path, content, version + 1)
                case Delete(path):
                    self._forget(path)

    def _note(self, path: str, content: bytes, version: int) -> None:
        self.versions[path] = version
        if found := _STATE.fullmatch(path):
            key = TopicPartition(found[1], int(found[2]))
            self.states[key] = parse_partition_state(key, content)
        elif found := _TOPIC.fullmatch(path):
            self.topics[found[1]] = parse_topic(found[1], content)
        elif found := _CONFIG.fullmatch(path):
            resource = _resource(found[1], found[2])
            self.configs[resource] = parse_config(resource, content)

    def _forget(self, path: str) -> None:
        self.versions.pop(path, None)
        if found := _STATE.fullmatch(path):
            self.states.pop(TopicPartition(found[1], int(found[2])), None)
        elif found := _TOPIC.fullmatch(path):
            self.topics.pop(found[1], None)
        elif found := _CONFIG.fullmatch(path):
            self.configs.pop(_resource(found[1], found[2]), None)

    def _state_written(self, record: metadata.PartitionChanged, controller_epoch: int) -> tuple[Write, ...]:
        path, old = paths.partition_state_path(record.topic_partition), self.states[record.topic_partition]
        new = PartitionStateZnode(
            controller_epoch,
            old.leader if record.leader is None else record.leader,
            old.leader_epoch + (record.leader is not None),
            old.isr if record.isr is None else record.isr,
        )
        return (Set(path, format_partition_state(new), self.versions[path]),)

    def _topics_written(self, topics: dict[str, TopicZnode]) -> tuple[Write, ...]:
        writes: list[Write] = []
        for name, znode in topics.items():
            path = paths.topic_path(name)
            if path not in self.versions:
                writes.append(Create(path, format_topic(znode)))
            elif znode != self.topics[name]:
                writes.append(Set(path, format_topic(znode), self.versions[path]))
            if f"{path}/partitions" not in self.versions:
                writes.append(Create(f"{path}/partitions"))
        return tuple(writes)

    def _topic_deleted(self, name: str) -> Iterator[Write]:
        for number in sorted(self.topics[name].partitions):
            state = paths.partition_state_path(TopicPartition(name, number))
            if state in self.versions:
                yield from (Delete(state), Delete(state.removesuffix("/state")))
        path = paths.topic_path(name)
        if f"{path}/partitions" in self.versions:
            yield Delete(f"{path}/partitions")
        yield Delete(path)
        config = paths.config_path(ConfigResource.topic(name))
        if config in self.versions:
            yield Delete(config)

    def _config_written(self, resource: ConfigResource, values: dict[str, str]) -> tuple[Write, Write]:
        path, content = paths.config_path(resource), format_config(values)
        known = self.versions.get(path)
        written = Create(path, content) if known is None else Set(path, content, known)
        return written, Create(paths.CONFIG_CHANGE_PREFIX, format_change(resource), is_sequential=True)


def first_znodes() -> tuple[str, ...]:
    """Paths that every cluster has before anything else, from the root on."""
    return (
        "/brokers", paths.BROKER_IDS, paths.TOPICS, "/admin", paths.DELETE_TOPICS, paths.CONFIG,
        f"{paths.CONFIG}/topics", f"{paths.CONFIG}/brokers", paths.CONFIG_CHANGES, "/cluster",
        paths.ISR_CHANGES, paths.LOG_DIR_EVENTS,
    )  # fmt: skip


def _config_paths(znodes: Znodes) -> Iterator[str]:
    for kind in _OWNERS:
        yield from (f"{paths.CONFIG}/{kind}/{name}" for name in znodes.children(f"{paths.CONFIG}/{kind}"))


def _paths(znodes: Znodes) -> Iterator[str]:
    yield from _config_paths(znodes)
    for topic in znodes.children(paths.TOPICS):
        yield from (paths.topic_path(topic), f"{paths.topic_path(topic)}/partitions")
        for number in znodes.children(f"{paths.topic_path(topic)}/partitions"):
            yield paths.partition_state_path(TopicPartition(topic, int(number)))


def _state_created(record: metadata.PartitionCreated, controller_epoch: int) -> tuple[Write, ...]:
    path = paths.partition_state_path(record.topic_partition)
    state = PartitionStateZnode(controller_epoch, record.leader, record.leader_epoch, record.isr)
    return Create(path.removesuffix("/state")), Create(path, format_partition_state(state))


def _resource(kind: str, name: str) -> ConfigResource:
    return ConfigResource(_OWNERS[kind], "" if name == paths.ALL_BROKERS else name)


def _uuid(name: str, topic_id: str | None) -> str:
    if topic_id is None:  # Written before Kafka 2.8. All readers must derive the same id.
        return str(uuid.uuid5(uuid.NAMESPACE_OID, name))
    return str(uuid.UUID(bytes=base64.urlsafe_b64decode(topic_id + "==")))


# Metadata records as znodes, written by the active controller.


class ZooKeeperLog(metadata.MetadataLog):
    """Records as znodes, written by the active controller. Call `become_controller` before the twin is created."""

    def __init__(self, znodes: Znodes, blueprint: Blueprint) -> None:
        self.znodes = znodes
        self.cache = ZnodeCache()
        self.controller_id = -1
        self.controller_epoch = 0
        self.is_active_controller = False
        self._blueprint = blueprint

    def become_controller(self, broker_id: int, now_ms: int) -> bool:
        """Let a broker of this twin become the controller and read everything; False if there is another controller."""
        self.znodes.has_new_session()  # Reset: only a session after this one counts as new.
        self.znodes.resign()
        epoch = self.znodes.elect(broker_id, now_ms)
        self.is_active_controller = epoch is not None
        if epoch is None:
            return False
        self.controller_id, self.controller_epoch = broker_id, epoch
        self._prepare()
        self.cache.load(self.znodes)
        return True

    def check_epoch(self) -> None:
        """Notice the election of another controller, or the deletion of this one's znode by hand."""
        has_new_session, epoch = self.znodes.has_new_session(), self.znodes.get(paths.CONTROLLER_EPOCH)
        is_latest = epoch is not None and parse_controller_epoch(epoch.content) == self.controller_epoch
        if has_new_session or not is_latest or self.znodes.get(paths.CONTROLLER) is None:
            self.is_active_controller = False

    def read(self) -> Iterator[metadata.Record]:
        """Records that produce the present metadata; none if ZooKeeper has no topics or settings yet.

        Brokers and their directories come from the blueprint, their only source.
        """
        if not self.controller_epoch:
            raise InputError("this ZooKeeper has another active controller; end that twin first")
        if self.cache.topics or self.cache.configs:
            for record in self._blueprint.records(seeded_random(self._blueprint.cluster_id)):
                if isinstance(record, metadata.BrokerRegistered | metadata.BrokerUnfenced | metadata.BrokerFenced):
                    yield record
            yield from self.cache.records()

    def append(self, records: Iterable[metadata.Record]) -> None:
        """Write the records of one decision, all of them or none. Raises `ControllerMoved`."""
        kept = tuple(records)
        try:
            self.write(self.cache.writes(kept, self.controller_epoch))
        except StaleZnode:  # An operator or a tool wrote there, too; the last writer wins.
            self.cache.load(self.znodes)
            self.write(self.cache.writes(kept, self.controller_epoch))

    def write(self, writes: tuple[Write, ...]) -> None:
        """Write znodes, all or none. Raises `ControllerMoved` and `StaleZnode`."""
        if not self.is_active_controller:
            raise ControllerMoved("this controller has resigned; nothing was written")
        if not writes:
            return
        try:
            self.znodes.write(writes)
        except ControllerMoved:
            self.is_active_controller = False
            raise
        self.cache.note_written(writes)

    def write_lists(self, key: TopicPartition, lists: OngoingReassignment) -> None:
        """Write the lists of a partition, if they changed. Raises `ControllerMoved`."""
        if lists == self.cache.lists(key):
            return
        try:
            self.write(self.cache.lists_written(key, lists))
        except StaleZnode:  # As above.
            self.cache.read(self.znodes, paths.topic_path(key.topic))
            self.write(self.cache.lists_written(key, lists))

    def resign_controller(self) -> None:
        """Resign, so that another can be elected."""
        self.is_active_controller = False
        self.znodes.resign()

    def _prepare(self) -> None:
        """Create the znodes that every cluster has and this one lacks."""
        cluster_id = json.dumps({"version": "1", "id": self._blueprint.cluster_id}, separators=(",", ":"))
        contents = {**dict.fromkeys(first_znodes(), b""), paths.CLUSTER_ID: cluster_id.encode()}
        missing = tuple(Create(path, content) for path, content in contents.items() if self.znodes.get(path) is None)
        if missing:
            self.znodes.write(missing)


# Brokers of a twin: each has a znode that lasts as long as its session.


class Registrations:
    """`/brokers/ids`: brokers in service, with the address for clients."""

    def __init__(self, core: TwinCore, log: ZooKeeperLog) -> None:
        self._core = core
        self._log = log
        self._addresses: Mapping[int, HostPort] = {}

    def renew(self, addresses: Mapping[int, HostPort] | None = None) -> None:
        """Register all brokers in service again, at other addresses if any are given."""
        self._addresses = self._addresses if addresses is None else dict(addresses)
        for broker_id in sorted(self._core.metadata.brokers):
            self.unregister(broker_id)
            if self._core.metadata.is_active(broker_id):
                self.register(broker_id)

    def address_of(self, broker_id: int) -> HostPort:
        """The address at which a broker is, or will be, registered."""
        known = self._core.metadata.brokers[broker_id]
        return self._addresses.get(broker_id) or HostPort(known.host, known.port)

    def register(self, broker_id: int) -> None:
        """Register a broker that came into service."""
        known = self._core.metadata.brokers[broker_id]
        host, port = self.address_of(broker_id)
        content = format_broker(BrokerZnode(broker_id, host, port, known.rack), self._core.now_ms)
        path = paths.broker_path(broker_id)
        if self._log.znodes.get(path) is None:
            self._log.znodes.write((Create(path, content, is_ephemeral=True),))

    def unregister(self, broker_id: int) -> None:
        """Unregister a broker that went out of service."""
        path = paths.broker_path(broker_id)
        if self._log.znodes.get(path) is not None:
            self._log.znodes.write((Delete(path),))
