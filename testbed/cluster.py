"""A real Kafka cluster on this machine."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from testbed import permissions, probe, security
from testbed.assembly import Assembly
from testbed.certificates import Certificates
from testbed.errors import DoneBefore, NotController, Refused
from testbed.jars import class_path, tiered_storage_jar
from testbed.java import java_binary, tool_command
from testbed.node import Node
from testbed.permissions import Permission
from testbed.ports import ReservedPorts
from testbed.processes import Finished, ProcessGroup
from testbed.properties import Place
from testbed.proxy import Proxy
from testbed.spec import ClusterSpec, Listener
from testbed.tokens import Issuer
from testbed.tool_host import is_hosted, run_hosted
from testbed.waiting import wait_until

REMOTE_LOG_METADATA = "__remote_log_metadata"
FOLDER_VARIABLE = "KREASSIGN_TESTBED_DIR"
MEMORY = Path("/dev/shm")
LEAST_MEMORY = 8 << 30
"""Free bytes there from which nodes keep their data in memory: on a busy disk a controller waits seconds for a sync."""


class KafkaCluster:
    """Brokers with their controllers or their ZooKeeper server, started together and ended together.

    Made by `KafkaCluster.start`. `brokers` and `controllers` hold the nodes by id, `zookeeper` the ZooKeeper server,
    None in KRaft mode, `proxy` what stands before the brokers' listeners of that name, None if nothing does, `links`
    what stands before each broker where brokers reach each other through proxies.
    """

    def __init__(self, spec: ClusterSpec) -> None:
        self.spec = spec
        self.folder = _new_folder()
        self.brokers: dict[int, Node] = {}
        self.controllers: dict[int, Node] = {}
        self.zookeeper: Node | None = None
        self.proxy = Proxy() if spec.is_proxied else None
        self.links: dict[int, Proxy] = {}
        self._group = ProcessGroup()
        self._ports = ReservedPorts()
        self._assembly = Assembly(spec, self.folder, self._group, self._ports)
        self._closed = False

    @classmethod
    def start(cls, spec: ClusterSpec) -> Self:
        """Start a cluster and wait until every broker knows all of them.

        JarsMissing or JavaMissing if there is nothing to start, NodeFailed or TimeoutError if it does not get ready.
        """
        java_binary()
        class_path(spec.version)
        if spec.is_tiered:
            tiered_storage_jar()
        cluster = cls(spec)
        try:
            cluster._make_all()
            cluster._start(cluster._nodes())
        except BaseException:
            cluster.close(keep_logs=True)
            raise
        return cluster

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close(keep_logs=kind is not None)

    @property
    def version(self) -> str:
        """The version of Kafka that runs."""
        return self.spec.version

    @property
    def bootstrap_servers(self) -> str:
        """All brokers' PLAINTEXT listeners, separated by commas."""
        return self.bootstrap(Listener.PLAINTEXT)

    @property
    def bootstrap_controllers(self) -> str:
        """All KRaft controllers, separated by commas; empty in ZooKeeper mode."""
        return ",".join(node.address("CONTROLLER") for node in self.controllers.values())

    @property
    def zookeeper_connect(self) -> str:
        """`host:port` of the ZooKeeper server; empty in KRaft mode."""
        return self.zookeeper.address("CLIENT") if self.zookeeper else ""

    @property
    def certificates(self) -> Certificates | None:
        """The PEM files of a secure cluster."""
        return self._assembly.certificates

    @property
    def issuer(self) -> Issuer | None:
        """Issuer of the bearer tokens that a secure cluster accepts."""
        return self._assembly.issuer

    def bootstrap(self, listener: Listener) -> str:
        """All brokers' addresses on one listener, separated by commas."""
        return ",".join(node.address(listener) for node in self.brokers.values())

    def client_properties(
        self, listener: Listener, *, user: str = "admin", password: str | None = None, mechanism: str = "PLAIN"
    ) -> dict[str, str]:
        """Client properties (Java) for a login at that listener as that user."""
        return security.client_properties(
            listener, self.certificates, user=user, password=password, mechanism=mechanism
        )

    def allow(self, user: str, permission: Permission) -> None:
        """Let a user of a secure cluster do something from now on: wait until every running broker knows the ACL."""
        permissions.allow(self._any_port(), user, permission)
        for node in self._awake().values():
            permissions.wait_known(node.place.ports["PLAINTEXT"], user, permission)

    def withdraw(self, user: str) -> None:
        """Take all of a user's ACLs away."""
        permissions.withdraw(self._any_port(), user)

    def create_topic(
        self, name: str, replicas: Sequence[Sequence[int]], *, config: Mapping[str, str] | None = None
    ) -> None:
        """Create a topic with one partition per replica list.

        Returns when every running broker knows its leaders and has made its own replicas.
        """
        self._ask_controller(lambda port: probe.create_topic(port, name, replicas, config=config))
        wait_until(lambda: self._has_leaders(name, len(replicas)), what=f"topic {name} with leaders")
        wait_until(lambda: self._has_replicas(name, replicas), what=f"topic {name} with replicas")

    def delete_topic(self, name: str) -> None:
        """Delete a topic."""
        self._ask_controller(lambda port: probe.delete_topic(port, name))

    def describe_topic(self, name: str) -> tuple[probe.SeenPartition, ...]:
        """The partitions of a topic as the first running broker knows them."""
        return self.seen(name).topics[name]

    def seen(self, *topics: str) -> probe.Seen:
        """The live brokers, the controller and these topics as the first running broker knows them."""
        return probe.metadata(self._any_port(), topics)

    def add_broker(self, rack: str | None = None) -> Node:
        """Start one more broker, with the next id and, unless given, the next rack in turn."""
        node = self._make_broker(max(self.brokers) + 1, rack)
        node.start()
        self.wait_ready()
        return node

    def heal(self, without: Collection[int] = ()) -> None:
        """Thaw and start every node that does not run, without these brokers; wait until all know each other."""
        left = [self.brokers[broker] for broker in without]
        nodes = [node for node in self._nodes() if node not in left]
        for node in nodes:
            node.thaw()
        self._start(nodes)

    def wait_ready(self) -> None:
        """Wait until every running broker lists all running brokers and an active controller."""
        wait_until(self._is_ready, what=f"brokers {sorted(self._awake())} known to each other")

    def close(self, *, keep_logs: bool = False) -> None:
        """End all processes at once and remove all files, but for logs and configuration if asked to (says where)."""
        if self._closed:
            return
        self._closed = True
        for proxy in (*([self.proxy] if self.proxy else ()), *self.links.values()):
            proxy.close()
        self._group.close()
        for node in self._nodes():
            node.kill()
        self._ports.release()
        if keep_logs:
            _remove_data(self.folder)
            print(f"testbed: the logs of the nodes are kept in {self.folder}", file=sys.stderr)
        else:
            shutil.rmtree(self.folder)

    def java_command(
        self, main_class: str, *arguments: str, version: str | None = None, quick: bool = True
    ) -> tuple[str, ...]:
        """The command line of one of Kafka's own tools, from the jars of the cluster's version or another."""
        return tool_command(version or self.version, main_class, *arguments, quick=quick)

    def java_tool(
        self,
        main_class: str,
        *arguments: str,
        timeout_s: float = 120,
        version: str | None = None,
        in_own_java: bool = False,
    ) -> Finished:
        """Run one of Kafka's own tools; TimeoutError when it takes longer than `timeout_s` seconds.

        It runs in a Java that stays for the next tool, unless that is not possible or `in_own_java`.
        """
        if is_hosted(main_class) and not in_own_java:
            return run_hosted(version or self.version, main_class, *arguments, timeout_s=timeout_s)
        return self._group.run(self.java_command(main_class, *arguments, version=version), timeout_s=timeout_s)

    def _make_all(self) -> None:
        if self.spec.mode == "zookeeper":
            self.zookeeper = self._assembly.zookeeper()
        else:
            self.controllers = {node.id: node for node in self._assembly.controllers()}
        for broker_id in range(self.spec.brokers):
            self._make_broker(broker_id, None)

    def _start(self, nodes: Collection[Node]) -> None:
        if self.zookeeper is not None:
            # Before the brokers: without it they give up at once, while KRaft brokers go on looking for controllers.
            self.zookeeper.start()
        for node in nodes:
            node.spawn()
        for node in nodes:
            node.wait_ready()
        self.wait_ready()
        if self.spec.is_tiered:
            # Brokers make it by themselves, which should disturb no test.
            wait_until(self._has_remote_log_metadata, what=f"topic {REMOTE_LOG_METADATA}")

    def _make_broker(self, broker_id: int, rack: str | None) -> Node:
        node = self._assembly.broker(broker_id, rack or self.spec.rack(broker_id), self._is_broker_ready)
        self.brokers[broker_id] = node
        if self.proxy is not None:
            self.proxy.stand_before(node.place.ports[Listener.PROXIED], node.place.advertised[Listener.PROXIED])
        if self.spec.has_links:
            self.links[broker_id] = Proxy()
            self.links[broker_id].stand_before(node.place.ports[Listener.LINK], node.place.advertised[Listener.LINK])
        return node

    def _nodes(self) -> tuple[Node, ...]:
        others = (self.zookeeper,) if self.zookeeper else ()
        return (*others, *self.controllers.values(), *self.brokers.values())

    def _awake(self) -> dict[int, Node]:
        return {node.id: node for node in self.brokers.values() if node.is_running and not node.is_frozen}

    def _any_port(self) -> int:
        return next(iter(self._awake().values())).place.ports["PLAINTEXT"]

    def _ask_controller(self, ask: Callable[[int], None]) -> None:
        """Give a request to the controller, again where that has just become another one.

        In ZooKeeper mode only the controller itself executes requests; with KRaft the broker named forwards them.
        """
        was_lost = False

        def is_taken() -> bool:
            nonlocal was_lost
            controller = self.brokers.get(probe.metadata(self._any_port()).controller)
            if controller is None:
                return False
            try:
                ask(controller.place.ports["PLAINTEXT"])
            except NotController:
                was_lost = True
                return False
            except DoneBefore:
                if not was_lost:
                    raise
            return True

        wait_until(is_taken, what="a controller that takes requests")

    def _is_ready(self) -> bool:
        return all(self._is_broker_ready(node.place) for node in self._awake().values())

    def _is_broker_ready(self, place: Place) -> bool:
        try:
            seen = probe.metadata(place.ports["PLAINTEXT"])
        except OSError:
            return False
        return seen.controller >= 0 and seen.brokers.keys() >= {place.node_id, *self._awake()}

    def _has_leaders(self, topic: str, partitions: int) -> bool:
        return all(_leaders(node.place, topic) == partitions for node in self._awake().values())

    def _has_remote_log_metadata(self) -> bool:
        dirs = (log_dir for node in self.brokers.values() for log_dir in node.log_dirs)
        return any((log_dir / f"{REMOTE_LOG_METADATA}-0").is_dir() for log_dir in dirs)

    def _has_replicas(self, topic: str, replicas: Sequence[Sequence[int]]) -> bool:
        awake = self._awake()
        return all(
            any((log_dir / f"{topic}-{index}").is_dir() for log_dir in awake[broker].log_dirs)
            for index, brokers in enumerate(replicas)
            for broker in brokers
            if broker in awake
        )


def _leaders(place: Place, topic: str) -> int:
    try:
        seen = probe.metadata(place.ports["PLAINTEXT"], (topic,)).topics[topic]
    except Refused:
        return 0
    return sum(partition.leader >= 0 for partition in seen)


def _new_folder() -> Path:
    has_room = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free >= LEAST_MEMORY
    parent = os.environ.get(FOLDER_VARIABLE) or (str(MEMORY) if has_room else None)
    if parent:
        Path(parent).mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix="kreassign-testbed-", dir=parent))


def _remove_data(folder: Path) -> None:
    for data in (*folder.glob("*/data-*"), *folder.glob("*/metadata")):
        shutil.rmtree(data)
