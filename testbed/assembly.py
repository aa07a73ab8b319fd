"""Making the nodes of a cluster: folders, ports, configuration files, formatted storage."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from testbed import probe, properties, security, storage
from testbed.certificates import Certificates, make_certificates
from testbed.jars import tiered_storage_jar
from testbed.java import node_command
from testbed.node import Node
from testbed.ports import ReservedPorts
from testbed.processes import ProcessGroup
from testbed.properties import Place
from testbed.spec import FIRST_CONTROLLER_ID, ClusterSpec, Security
from testbed.tokens import Issuer
from testbed.waiting import wait_until

REMOTE_FOLDER = "remote"
_BROKER_HEAP = "512m"
_CONTROLLER_HEAP = "256m"
_KAFKA = "kafka.Kafka"
_ZOOKEEPER = "org.apache.zookeeper.server.quorum.QuorumPeerMain"


class Assembly:
    """Makes the nodes of one cluster under one folder. Nothing is started here but Kafka's storage tool."""

    def __init__(self, spec: ClusterSpec, folder: Path, group: ProcessGroup, ports: ReservedPorts) -> None:
        self._spec = spec
        self._folder = folder
        self._group = group
        self._ports = ports
        self._controllers: tuple[Place, ...] = ()
        self._zookeeper: Place | None = None
        self._template = folder / "formatted"
        self.certificates = self._certificates()
        self.issuer = self._issuer()

    def zookeeper(self) -> Node:
        """A ZooKeeper server."""
        place = Place(0, self._folder / "zookeeper", {"CLIENT": self._ports.take()})
        self._zookeeper = place
        _write(place, properties.zookeeper_settings(place))
        return self._node(place, _ZOOKEEPER, _CONTROLLER_HEAP, _is_zookeeper_ready)

    def controllers(self) -> tuple[Node, ...]:
        """The KRaft controllers, formatted."""
        ids = range(FIRST_CONTROLLER_ID, FIRST_CONTROLLER_ID + self._spec.controllers)
        places = self._controllers = tuple(self._controller_place(node_id) for node_id in ids)
        for place in places:
            _write(place, self._controller_settings(place))
        scram = security.scram_credentials() if self._is_secure else ()
        storage.format_template(self._group, self._spec.version, places[0], self._template, scram=scram)
        for place in places:
            storage.copy_format(self._template, place)
        return tuple(self._node(place, _KAFKA, _CONTROLLER_HEAP, _is_controller_ready) for place in places)

    def broker(self, broker_id: int, rack: str | None, is_ready: Callable[[Place], bool]) -> Node:
        """A broker, formatted; the controllers or the ZooKeeper server must have been made."""
        ports = {str(listener): self._ports.take() for listener in self._spec.listeners}
        advertised = {str(listener): self._ports.take() for listener in self._spec.proxied}
        place = Place(broker_id, self._folder / f"broker-{broker_id}", ports, advertised)
        log_dirs = place.log_dirs(self._spec.log_dirs)
        for log_dir in log_dirs:
            log_dir.mkdir(parents=True)
        if self._controllers:
            storage.copy_format(self._template, place, log_dirs)
        _write(place, self._broker_settings(place, rack))
        return self._node(place, _KAFKA, _BROKER_HEAP, is_ready)

    @property
    def _is_secure(self) -> bool:
        return self._spec.security is Security.SECURE

    def _certificates(self) -> Certificates | None:
        return make_certificates(self._folder / "certificates", security.USERS) if self._is_secure else None

    @property
    def _token_keys(self) -> Path:
        return self._folder / "token-keys.json"

    def _issuer(self) -> Issuer | None:
        if not self._is_secure:
            return None
        issuer = Issuer()
        issuer.write_keys(self._token_keys)
        return issuer

    def _controller_place(self, node_id: int) -> Place:
        return Place(node_id, self._folder / f"controller-{node_id}", {"CONTROLLER": self._ports.take()})

    def _controller_settings(self, place: Place) -> dict[str, str]:
        settings = properties.controller_settings(place, self._controllers)
        if self._is_secure:
            settings |= security.authorizer_settings()
        if self._spec.is_tiered:
            settings |= properties.TIERED_SERVER
        return settings | dict(self._spec.broker_config)

    def _broker_settings(self, place: Place, rack: str | None) -> dict[str, str]:
        settings = properties.broker_settings(place, self._spec, rack=rack)
        if self._zookeeper is not None:
            settings |= properties.zookeeper_broker_settings(place, self._zookeeper)
        else:
            settings |= properties.kraft_broker_settings(place, self._controllers)
        if self.certificates is not None:
            settings |= security.broker_security_settings(self.certificates, self._token_keys)
        if self._spec.is_tiered:
            jar = tiered_storage_jar()
            settings |= properties.tiered_broker_settings(jar, self._folder / REMOTE_FOLDER)
        return settings | dict(self._spec.broker_config)

    def _node(self, place: Place, main_class: str, heap: str, is_ready: Callable[[Place], bool]) -> Node:
        flags = security.java_flags(self._token_keys) if self.issuer else ()

        def command(version: str) -> tuple[str, ...]:
            return node_command(version, main_class, place.config_file, heap=heap, own_flags=flags)

        return Node(place, self._spec.version, command, self._group, is_ready, self._wait_forgotten)

    def _wait_forgotten(self, place: Place) -> None:
        """Wait until ZooKeeper has forgotten an earlier life of a broker; one that finds itself registered gives up."""
        zookeeper = self._zookeeper
        if zookeeper is None or place is zookeeper:
            return
        port = zookeeper.ports["CLIENT"]
        registration = re.compile(rf"/brokers/ids/{place.node_id}\b")
        wait_until(
            lambda: registration.search(probe.ask_zookeeper(port, "dump")) is None,
            what=f"broker {place.node_id} forgotten by ZooKeeper",
        )


def _write(place: Place, settings: Mapping[str, str]) -> None:
    place.folder.mkdir(parents=True, exist_ok=True)
    place.config_file.write_text(properties.render(settings))


def _is_zookeeper_ready(place: Place) -> bool:
    return "Mode:" in probe.ask_zookeeper(place.ports["CLIENT"], "srvr")


def _is_controller_ready(place: Place) -> bool:
    try:
        return probe.active_controller(place.ports["CONTROLLER"]) >= 0
    except OSError:
        return False
