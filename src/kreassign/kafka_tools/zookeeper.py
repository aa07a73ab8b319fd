"""A session with the ZooKeeper of a cluster, for the deprecated `--zookeeper` of the drop-in tools.

Reads and writes what `kreassign.model.znodes` describes. What would harm the cluster is refused before it is written;
a damaged znode is reported with its path (`DamagedZnode`).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NodeExistsError, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError

from kreassign.admin.settings import Address
from kreassign.errors import InputError, InvariantBroken
from kreassign.kafka_tools.failures import ToolError
from kreassign.model import (
    NO_LEADER,
    Broker,
    ConfigChange,
    ConfigOperation,
    ConfigResource,
    Partition,
    Topic,
    TopicPartition,
)
from kreassign.model.znodes import (
    TopicZnode,
    format_change,
    format_config,
    format_election,
    format_reassignments,
    parse_broker,
    parse_config,
    parse_election,
    parse_reassignments,
    parse_topic,
    paths,
)

CONNECT_TIMEOUT_S = 15.0
_SESSION_TIMEOUT_S = 10.0


@contextmanager
def zookeeper(address: str) -> Iterator[ZooKeeper]:
    """A session with `host:port[,host:port…][/chroot]`; raises `ToolError` if no server, or no cluster, is there."""
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)  # we report failures ourselves, once
    try:
        Address.parse_list(address.partition("/")[0])
    except InputError as error:
        raise ToolError(f"Invalid ZooKeeper connection string {address}", reason=str(error)) from error
    client = KazooClient(hosts=address, timeout=_SESSION_TIMEOUT_S)
    try:
        client.start(timeout=CONNECT_TIMEOUT_S)
        if client.exists(paths.BROKER_IDS) is None:
            raise ToolError(
                f"There is no Kafka cluster in the ZooKeeper at {address}: it has no {paths.BROKER_IDS}",
                reason="a wrong address or chroot, or a cluster in KRaft mode, which needs --bootstrap-server",
            )
        yield ZooKeeper(client)
    except KazooTimeoutError as error:
        raise ToolError(f"No ZooKeeper answered at {address} within {CONNECT_TIMEOUT_S:.0f} s") from error
    except KazooException as error:
        raise ToolError(f"ZooKeeper at {address} failed: {type(error).__name__} {error}".rstrip()) from error
    finally:
        client.stop()
        client.close()


class ZooKeeper:
    """The reads and writes that the tools need. Every method may raise `DamagedZnode`."""

    def __init__(self, client: KazooClient) -> None:
        self._client = client

    def brokers(self) -> tuple[Broker, ...]:
        """The live brokers, ascending."""
        return tuple(sorted(self._broker(int(name)) for name in self._client.get_children(paths.BROKER_IDS)))

    def _broker(self, broker_id: int) -> Broker:
        found = parse_broker(broker_id, self._client.get(paths.broker_path(broker_id))[0])
        return Broker(broker_id, found.host, found.port, found.rack)

    def topic_names(self) -> tuple[str, ...]:
        """Every topic, sorted."""
        return tuple(sorted(self._client.get_children(paths.TOPICS)))

    def topic_znodes(self, names: Iterable[str]) -> dict[str, TopicZnode | None]:
        """The znodes of these topics; None for one that does not exist. All are asked for at once."""
        asked = {name: self._client.get_async(paths.topic_path(name)) for name in dict.fromkeys(names)}
        found: dict[str, TopicZnode | None] = {}
        for name, answer in asked.items():
            try:
                found[name] = parse_topic(name, answer.get()[0])
            except NoNodeError:
                found[name] = None
        return found

    def topics(self, names: Iterable[str]) -> dict[str, Topic | None]:
        """The replica lists of these topics, as a `Topic` without anything else; None if there is no such topic."""
        return {
            name: None if znode is None else _topic(name, znode) for name, znode in self.topic_znodes(names).items()
        }

    def reassignments(self) -> dict[TopicPartition, tuple[int, ...]] | None:
        """The targets that wait in the reassignment znode; None if there is no such znode."""
        content = self._content(paths.REASSIGN_PARTITIONS)
        return None if content is None else parse_reassignments(content)

    def start_reassignments(self, targets: Mapping[TopicPartition, tuple[int, ...]]) -> bool:
        """Create the reassignment znode; False if there is one already. Raises `InputError` for harmful targets."""
        return self._create(paths.REASSIGN_PARTITIONS, format_reassignments(targets))

    def start_election(self, partitions: Iterable[TopicPartition]) -> bool:
        """Create the election znode; False if there is one already."""
        return self._create(paths.PREFERRED_REPLICA_ELECTION, format_election(partitions))

    def elections(self) -> tuple[TopicPartition, ...]:
        """The partitions whose preferred leaders the controller has still to elect."""
        content = self._content(paths.PREFERRED_REPLICA_ELECTION)
        return () if content is None else parse_election(content)

    def _create(self, path: str, content: bytes) -> bool:
        try:
            self._client.create(path, content, makepath=True)
        except NodeExistsError:
            return False
        return True

    def change_configs(self, changes: Mapping[ConfigResource, Sequence[ConfigChange]]) -> None:
        """Change configurations, each with the notification that brokers wait for."""
        for resource, steps in changes.items():
            path = paths.config_path(resource)
            present = self._content(path)
            values = {} if present is None else parse_config(resource, present)
            wanted = _changed(values, steps)
            if wanted == values:
                continue
            self._client.ensure_path(path)
            self._client.set(path, format_config(wanted))
            self._client.create(paths.CONFIG_CHANGE_PREFIX, format_change(resource), sequence=True, makepath=True)

    def _content(self, path: str) -> bytes | None:
        try:
            return bytes(self._client.get(path)[0])
        except NoNodeError:
            return None


def _topic(name: str, znode: TopicZnode) -> Topic:
    partitions = (
        Partition(TopicPartition(name, number), znode.partitions[number], (), NO_LEADER)
        for number in sorted(znode.partitions)
    )
    return Topic(name, znode.topic_id, is_internal=False, partitions=tuple(partitions))


def _changed(values: Mapping[str, str], steps: Iterable[ConfigChange]) -> dict[str, str]:
    changed = dict(values)
    for step in steps:
        match step.operation:
            case ConfigOperation.SET if step.value is not None:
                changed[step.name] = step.value
            case ConfigOperation.DELETE:
                changed.pop(step.name, None)
            case _:
                raise InvariantBroken(f"the tools never {step.operation.name} a key through ZooKeeper")
    return changed
