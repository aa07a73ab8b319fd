"""The clusters of the conformance tests: a twin without sockets, a twin over TCP, and real Kafka.

What differs between them is a `Backend`; a `Cluster` is what tests use, and is the same for all. The brokers are 0, 1,
2 and (but with 3.9) 3, on racks a, b, c in turn, with two log directories each; 100 is the (first) controller.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol, Self, TypeVar

from kreassign.admin import Address, AdminClient, Connection, TcpTransport, Transport, client_settings
from kreassign.clock import Clock, SystemClock
from kreassign.errors import ClusterError
from kreassign.model import ConfigChange, ConfigResource, NewTopic, TopicPartition
from kreassign.model.throttle import BROKER_THROTTLES, TOPIC_THROTTLES
from kreassign.twin.blueprint import small_cluster
from kreassign.twin.cluster import Twin
from kreassign.twin.controller.decision import NO_SERVER_SETTINGS, TIERED_SERVER
from kreassign.twin.core import TwinSettings
from kreassign.twin.replication.hardware import ReplicationSettings
from kreassign.twin.server import ServerThread
from kreassign.twin.transport import TwinTransport
from kreassign.twin.version import RELEASES, KafkaVersion
from kreassign.wire import api
from kreassign.wire.api import Api, Message
from kreassign.wire.codec import decode_response, encode_request
from testbed import KafkaCluster
from testbed.records import BATCH_BYTES, load_topic
from testbed.releases import DEFAULT, line
from testbed.waiting import PATIENCE_S, wait_until
from tests.wire.peer import message

T = TypeVar("T")
NEWEST = line(DEFAULT)
"""The release line of the real brokers that tests are asked of unless they name others."""
CONTROLLER = 100
HELD_BYTES = 20_000_000
"""Under any throttle a megabyte is copied in eleven seconds: so much is not there before a test has seen it moving."""
RACKS = ("a", "b", "c")
_STEP_S = 0.05  # As often as real brokers are asked, see testbed.waiting.
_CORRELATION = 7


class Backend(Protocol):
    """Differences between kinds of clusters."""

    release: str
    transport: Transport
    clock: Clock

    @property
    def nodes(self) -> Mapping[int, Address]:
        """Addresses of the brokers and the controller, by id, running or not."""
        ...

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        """Let time pass until something is so; TimeoutError if it takes too long."""
        ...

    def pass_time(self, seconds: float) -> None:
        """Let so much of the cluster's own time pass."""
        ...

    def write(self, topic_partition: TopicPartition, size_bytes: int) -> None:
        """Let a producer add records."""
        ...

    def stop(self, broker: int) -> None:
        """Shut a broker down in order, if it runs."""
        ...

    def kill(self, broker: int) -> None:
        """End a broker at once, if it runs."""
        ...

    def start(self, broker: int) -> None:
        """Start a broker, if it is down."""
        ...

    def log_dirs(self, broker: int) -> tuple[str, ...]:
        """The paths of a broker's log directories, in the order of its configuration."""
        ...


def release_of_twin(name: str) -> KafkaVersion:
    """The release for which a twin stands: the newest for a line that it does not know (`make kafka-next`)."""
    return next((release for release in RELEASES if release.name == name), RELEASES[-1])


AS_THE_TESTBED = ReplicationSettings(lag_time_max_ms=6_000)


def small_twin(
    release: str, brokers: int, replication: ReplicationSettings = AS_THE_TESTBED, *, is_tiered: bool = False
) -> Twin:
    """A twin that is set up as the testbed sets up real brokers."""
    server = NO_SERVER_SETTINGS.with_static(TIERED_SERVER, "true") if is_tiered else NO_SERVER_SETTINGS
    settings = TwinSettings(release_of_twin(release), replication=replication, server=server, session_timeout_ms=4_000)
    return Twin(small_cluster(brokers, racks=RACKS), settings)


class OfTwin(ABC):
    """A twin, in its own time."""

    clock: Clock
    of_whose_time = ""

    @abstractmethod
    def do(self, deed: Callable[[Twin], T]) -> T:
        """Do it to the twin where it lives."""

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        deadline = self.clock.monotonic_s() + PATIENCE_S
        while not condition():
            if self.clock.monotonic_s() > deadline:
                raise TimeoutError(f"{what}: not so within {PATIENCE_S:g} s{self.of_whose_time}")
            self.pass_time(_STEP_S)

    def pass_time(self, seconds: float) -> None:
        self.do(lambda twin: twin.advance(round(seconds * 1000)))

    def write(self, topic_partition: TopicPartition, size_bytes: int) -> None:
        def produce(twin: Twin) -> None:
            twin.replication.set_write_rate(topic_partition, size_bytes)
            twin.advance(1_000)
            twin.replication.set_write_rate(topic_partition, 0)

        self.do(produce)

    def stop(self, broker: int) -> None:
        self.do(lambda twin: twin.stop(broker) if twin.is_running(broker) else None)

    def kill(self, broker: int) -> None:
        self.do(lambda twin: twin.crash(broker) if twin.is_running(broker) else None)

    def start(self, broker: int) -> None:
        self.do(lambda twin: None if twin.is_running(broker) else twin.start(broker))

    def log_dirs(self, broker: int) -> tuple[str, ...]:
        return self.do(lambda twin: tuple(log_dir.path for log_dir in twin.metadata.brokers[broker].log_dirs))


class InProcess(OfTwin):
    """A twin without sockets."""

    of_whose_time = " of the twin's time"

    def __init__(self, release: str, twin: Twin) -> None:
        self.release = release
        self.twin = twin
        self.transport = self.clock = TwinTransport(twin)

    @property
    def nodes(self) -> Mapping[int, Address]:
        return {node: Address(*self.twin.address(node, self.twin.listener)) for node in self.twin.node_ids}

    def do(self, deed: Callable[[Twin], T]) -> T:
        return deed(self.twin)


class OverTcp(OfTwin):
    """A twin behind sockets of this machine, which lives faster than the machine."""

    def __init__(self, release: str, server: ServerThread) -> None:
        self.release = release
        self.clock = SystemClock()
        self.transport = TcpTransport(client_settings(bootstrap_servers="127.0.0.1:1"))
        self._server = server

    @property
    def nodes(self) -> Mapping[int, Address]:
        return {node: Address(*address) for node, address in self._server.server.addresses().items()}

    def do(self, deed: Callable[[Twin], T]) -> T:
        return self._server.do(deed)


class RealKafka:
    """Brokers of Apache Kafka on this machine."""

    def __init__(self, cluster: KafkaCluster, *, batch_bytes: int = BATCH_BYTES) -> None:
        self.release = cluster.version.rpartition(".")[0]
        self._batch_bytes = batch_bytes
        self.clock = SystemClock()
        self.transport = TcpTransport(client_settings(bootstrap_servers=cluster.bootstrap_servers))
        self._cluster = cluster

    @property
    def nodes(self) -> Mapping[int, Address]:
        brokers = {broker: Address.parse(node.address()) for broker, node in self._cluster.brokers.items()}
        controllers = self._cluster.controllers.items()
        return brokers | {controller: Address.parse(node.address("CONTROLLER")) for controller, node in controllers}

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        wait_until(condition, what=what)

    def pass_time(self, seconds: float) -> None:
        until_s = self.clock.monotonic_s() + seconds
        self.wait(lambda: self.clock.monotonic_s() > until_s, f"{seconds:g} s later")

    def write(self, topic_partition: TopicPartition, size_bytes: int) -> None:
        topic, number = topic_partition
        servers, sizes = self._cluster.bootstrap_servers, {number: size_bytes}
        load_topic(servers, topic, sizes, value_bytes=(2_000, 4_000), batch_bytes=self._batch_bytes)

    def stop(self, broker: int) -> None:
        self._cluster.brokers[broker].stop()

    def kill(self, broker: int) -> None:
        self._cluster.brokers[broker].kill()

    def start(self, broker: int) -> None:
        self._cluster.brokers[broker].start()

    def log_dirs(self, broker: int) -> tuple[str, ...]:
        return tuple(map(str, self._cluster.brokers[broker].log_dirs))


class Shown(NamedTuple):
    """A partition as a broker shows it; the ISR sorted, since its order says nothing."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class Move:
    """A reassignment in progress as the controller lists it."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


class Answered(NamedTuple):
    """Code and text of one item of an answer; a null text is None."""

    code: int
    text: str | None


class Cluster:
    """A cluster and what tests do with it. Use it in a `with` statement."""

    def __init__(self, backend: Backend, topic: str) -> None:
        self.backend = backend
        self.topic = topic
        self._connections: dict[int, Connection] = {}
        self.brokers = tuple(sorted(node for node in backend.nodes if node < CONTROLLER))
        servers = ",".join(str(backend.nodes[broker]) for broker in self.brokers)
        settings = client_settings(bootstrap_servers=servers)
        self.client = AdminClient.connect(settings, clock=backend.clock, transport=backend.transport)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()
        for connection in self._connections.values():
            connection.close()

    @property
    def release(self) -> str:
        """The release line, such as `4.4`."""
        return self.backend.release

    # --- asking -----------------------------------------------------------------------------------------------

    def ask(self, asked: Api, version: int | None = None, *, node: int = 0, **fields: object) -> Message:
        """The answer of a node to a request with these fields, in our newest version by default; see `message`."""
        version = asked.max_version if version is None else version
        frame = encode_request(version, message(asked.request, fields), _CORRELATION, "conformance")
        # The first bytes of an answer are its correlation id; what `exchange` returns begins with it.
        return decode_response(asked, version, self.exchange(frame, node), _CORRELATION)

    def exchange(self, frame: bytes, node: int = 0) -> bytes:
        """Answer of a node to a frame; `OutcomeUnknown` if it hangs up."""
        connection = self._connections.get(node)
        if connection is None or not connection.is_usable():
            self._close_connections(node)
            connection = self.backend.transport.connect(self.backend.nodes[node], PATIENCE_S)
            self._connections[node] = connection
        try:
            return connection.exchange(frame, PATIENCE_S)
        except ClusterError:
            self._close_connections(node)
            raise

    def _close_connections(self, node: int) -> None:
        if node in self._connections:
            self._connections.pop(node).close()

    def alter(
        self,
        targets: Mapping[TopicPartition, tuple[int, ...] | None],
        *,
        may_change_factor: bool = True,
        version: int | None = None,
        node: int = 0,
    ) -> dict[TopicPartition, Answered]:
        """Start, override or cancel (None) moves; code and text of each as they are on the wire."""
        answer = self.ask(
            api.ALTER_PARTITION_REASSIGNMENTS,
            self.newest(api.ALTER_PARTITION_REASSIGNMENTS) if version is None else version,
            node=node,
            timeout_ms=30_000,
            allow_replication_factor_change=may_change_factor,
            topics=[
                {"name": topic, "partitions": [{"partition_index": number, "replicas": target}]}
                for (topic, number), target in targets.items()
            ],
        )
        assert (answer.error_code, answer.error_message) == (0, None)
        return {
            TopicPartition(topic.name, one.partition_index): Answered(one.error_code, one.error_message)
            for topic in answer.responses
            for one in topic.partitions
        }

    def move(self, topic_partition: TopicPartition, *target: int) -> None:
        """Start or override a move that must be accepted."""
        assert self.alter({topic_partition: target}) == {topic_partition: Answered(0, None)}

    def cancel(self, topic_partition: TopicPartition) -> Answered:
        """Cancel the move of a partition."""
        return self.alter({topic_partition: None})[topic_partition]

    def listed(self, topic_partition: TopicPartition) -> Move | None:
        """The move of a partition as the controller lists it."""
        found = self.client.list_partition_reassignments([topic_partition]).get(topic_partition)
        return None if found is None else Move(found.replicas, found.adding, found.removing)

    def newest(self, asked: Api) -> int:
        """The newest version of an API that both we and this release speak."""
        offered = release_of_twin(self.release).versions(asked.key)
        common = asked.common_version(offered)
        assert common is not None, f"{asked} is not offered by {self.release}"
        return common

    def shown(self, topic_partition: TopicPartition, node: int | None = None) -> Shown | None:
        """A partition as a broker shows it; None if it does not know it."""
        topic, number = topic_partition
        asked = self.brokers[0] if node is None else node
        entry = {"name": topic}
        answer = self.ask(api.METADATA, 9, node=asked, topics=[entry], allow_auto_topic_creation=False)
        for one in answer.topics[0].partitions:
            if one.partition_index == number:
                isr = tuple(sorted(one.isr_nodes))
                return Shown(tuple(one.replica_nodes), isr, one.leader_id, one.leader_epoch)
        return None

    # --- doing ------------------------------------------------------------------------------------------------

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """Let time pass until something is so."""
        self.backend.wait(condition, what)

    def create(self, *replicas: tuple[int, ...], **configs: str) -> tuple[TopicPartition, ...]:
        """Create the test's topic with these replica lists, and wait until all brokers know it.

        In the names of configurations an underscore stands for a dot.
        """
        dotted = {name.replace("_", "."): value for name, value in configs.items()}
        self.client.create_topics([NewTopic(self.topic, assignments=replicas, configs=dotted)]).raise_if_any()
        keys = tuple(TopicPartition(self.topic, number) for number in range(len(replicas)))
        up = self.client.describe_cluster().broker_ids
        self.until(lambda: all(self._is_known(key, up) for key in keys), f"{self.topic} known to all brokers")
        return keys

    def create_one(self, *replicas: int, **configs: str) -> TopicPartition:
        """Create the test's topic with one partition."""
        (partition,) = self.create(replicas, **configs)
        return partition

    def _is_known(self, key: TopicPartition, brokers: tuple[int, ...]) -> bool:
        views = [self.shown(key, broker) for broker in brokers]
        return all(view is not None and set(view.isr) == set(view.replicas) & set(brokers) for view in views)

    def becomes(
        self,
        topic_partition: TopicPartition,
        replicas: tuple[int, ...],
        isr: set[int],
        leader: int,
        *,
        epoch: int | None = None,
    ) -> int:
        """Wait until a broker shows a partition so; its leader epoch.

        A partition may look the same before: only with an `epoch` is it known that the broker has heard of the end.
        """
        wanted = (replicas, tuple(sorted(isr)), leader) + (() if epoch is None else (epoch,))
        seen: list[Shown | None] = []

        def is_so() -> bool:
            seen[:] = [self.shown(topic_partition)]
            return seen[0] is not None and seen[0][: len(wanted)] == wanted

        try:
            self.until(is_so, f"{topic_partition} shown as {wanted}")
        except TimeoutError as error:
            text = f"{error}; it is shown as {seen[0]}, listed as {self.listed(topic_partition)}"
            raise AssertionError(text) from None
        assert seen[0] is not None
        return seen[0].leader_epoch

    def epoch(self, topic_partition: TopicPartition) -> int:
        """The leader epoch of a partition that is known to the brokers."""
        view = self.shown(topic_partition)
        assert view is not None
        return view.leader_epoch

    def ends(self, topic_partition: TopicPartition) -> None:
        """Wait until a partition is no longer being moved."""
        self.until(lambda: self.listed(topic_partition) is None, f"the move of {topic_partition} at its end")

    def only_down(self, *brokers: int) -> None:
        """Have just these brokers down."""
        for broker in self.brokers:
            (self.backend.stop if broker in brokers else self.backend.start)(broker)
        up = set(self.brokers) - set(brokers)
        self.until(lambda: self._listed_brokers() == up, f"brokers {sorted(up)} and no others known to all")

    def _listed_brokers(self) -> set[int]:
        """The brokers that every one of the running ones lists."""
        found = [self.client.describe_cluster().broker_ids]
        answers = (self.ask(api.METADATA, 9, node=broker, topics=[]) for broker in found[0])
        lists = [{one.node_id for one in answer.brokers} for answer in answers]
        return set.intersection(*lists) if all(one == lists[0] for one in lists) else set()

    @contextmanager
    def throttled(self, rate: int = 1) -> Iterator[None]:
        """Copy the test's topic at so many bytes per second while the block runs."""
        settings = {ConfigResource.topic(self.topic): dict.fromkeys(TOPIC_THROTTLES, "*")}
        settings |= {
            ConfigResource.broker(each): dict.fromkeys(BROKER_THROTTLES[:2], str(rate)) for each in self.brokers
        }
        self._change(settings, ConfigChange.set)
        try:
            yield
        finally:
            self._change(settings, lambda name, _: ConfigChange.delete(name))

    def _change(
        self, settings: Mapping[ConfigResource, Mapping[str, str]], step: Callable[[str, str], ConfigChange]
    ) -> None:
        changes = {owner: [step(*item) for item in values.items()] for owner, values in settings.items()}
        self.client.incremental_alter_configs(changes).raise_if_any()


def other_dir(cluster: Cluster, topic_partition: TopicPartition, broker: int) -> str:
    """A log directory of a broker in which it does not keep this partition."""
    found = cluster.client.describe_log_dirs([broker], partitions=[topic_partition])[broker]
    return next(str(Path(log_dir.path)) for log_dir in found if not log_dir.replicas)
