"""The configuration files of controllers, brokers and ZooKeeper."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from testbed.ports import HOST
from testbed.spec import ClusterSpec, Listener

# How long a silent broker is taken for alive. A broker that is started again at once waits for that long, too.
SESSION_TIMEOUT_MS = "4000"
ZOOKEEPER_SESSION_TIMEOUT_MS = "9000"
"""Longer, since a broker that loses its session for a busy machine answers what is asked meanwhile with code -1."""
# Small and quick: little memory, few threads, no waiting for group members, nothing moves or vanishes by itself.
_SMALL_BROKER = {
    "auto.create.topics.enable": "false",
    "auto.leader.rebalance.enable": "false",
    "background.threads": "2",
    "broker.heartbeat.interval.ms": "1000",
    "controlled.shutdown.enable": "true",
    "group.initial.rebalance.delay.ms": "0",
    "log.cleaner.dedupe.buffer.size": "4194304",
    "log.index.size.max.bytes": "1048576",
    "log.retention.ms": "-1",
    "log.segment.delete.delay.ms": "1000",
    "num.io.threads": "4",
    "num.network.threads": "2",
    "offsets.topic.num.partitions": "3",
    "replica.lag.time.max.ms": "6000",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "3",
}


@dataclass(frozen=True, slots=True)
class Place:
    """Identity of one node: its id, its folder, and its ports by listener name.

    `advertised` are the ports at which clients find those listeners that they reach by another one than it has.
    """

    node_id: int
    folder: Path
    ports: Mapping[str, int]
    advertised: Mapping[str, int] = field(default_factory=dict)

    @property
    def addresses(self) -> dict[str, str]:
        """Addresses of each listener for clients, as `host:port`."""
        return {name: f"{HOST}:{port}" for name, port in {**self.ports, **self.advertised}.items()}

    @property
    def metadata_dir(self) -> Path:
        """Folder of a KRaft node's metadata log."""
        return self.folder / "metadata"

    @property
    def config_file(self) -> Path:
        """The node's configuration file."""
        return self.folder / "server.properties"

    def log_dirs(self, count: int) -> tuple[Path, ...]:
        """Folders of a broker's partitions."""
        return tuple(self.folder / f"data-{index}" for index in range(count))


def render(settings: Mapping[str, object]) -> str:
    """A Java properties file. Values must not contain line ends or begin with a space."""
    return "".join(f"{key}={str(value).replace(chr(92), chr(92) * 2)}\n" for key, value in settings.items())


def quorum_voters(controllers: tuple[Place, ...]) -> str:
    """The value of `controller.quorum.voters`."""
    return ",".join(f"{place.node_id}@{HOST}:{place.ports['CONTROLLER']}" for place in controllers)


def controller_settings(place: Place, controllers: tuple[Place, ...]) -> dict[str, str]:
    """A KRaft controller that is nothing else."""
    return {
        "process.roles": "controller",
        "node.id": str(place.node_id),
        "listeners": f"CONTROLLER://{HOST}:{place.ports['CONTROLLER']}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": quorum_voters(controllers),
        "log.dirs": str(place.metadata_dir),
        "broker.session.timeout.ms": SESSION_TIMEOUT_MS,
        # Records that say nothing wake every node: twice a second they cost a cluster a tenth of what it takes at rest.
        "metadata.max.idle.interval.ms": "5000",
        # In KRaft mode it is the controller that would move leaders back, five minutes after it became active.
        "auto.leader.rebalance.enable": _SMALL_BROKER["auto.leader.rebalance.enable"],
    }


def broker_settings(place: Place, spec: ClusterSpec, *, rack: str | None) -> dict[str, str]:
    """Settings of every broker in both modes; callers add the way to the controllers and the spec's own settings."""
    copies = str(min(3, spec.brokers))
    settings = {
        "listeners": ",".join(f"{name}://{HOST}:{port}" for name, port in place.ports.items()),
        "advertised.listeners": ",".join(f"{name}://{address}" for name, address in place.addresses.items()),
        "inter.broker.listener.name": str(Listener.LINK if spec.has_links else Listener.PLAINTEXT),
        "log.dirs": ",".join(map(str, place.log_dirs(spec.log_dirs))),
        "offsets.topic.replication.factor": copies,
        "transaction.state.log.replication.factor": copies,
        **_SMALL_BROKER,
    }
    if rack is not None:
        settings["broker.rack"] = rack
    return settings


# The controller judges whether a topic may be tiered, by its own settings.
TIERED_SERVER = {"remote.log.storage.system.enable": "true"}


def tiered_broker_settings(jar: Path, remote: Path) -> dict[str, str]:
    """Settings of a broker that keeps older segments in the folder `remote`, by Kafka's own stand-in in `jar`.

    Segments are copied there as soon as they are closed, and deleted here soon after.
    """
    topic = "rlmm.config.remote.log.metadata.topic"
    return {
        **TIERED_SERVER,
        "remote.log.storage.manager.class.name": "org.apache.kafka.server.log.remote.storage.LocalTieredStorage",
        "remote.log.storage.manager.class.path": str(jar),
        "rsm.config.dir": str(remote),
        "remote.log.metadata.manager.listener.name": str(Listener.PLAINTEXT),
        f"{topic}.num.partitions": "1",
        # Of one replica, so that no broker fetches from another because of it.
        f"{topic}.replication.factor": "1",
        f"{topic}.min.isr": "1",
        "remote.log.manager.task.interval.ms": "500",
        "remote.log.manager.copier.thread.pool.size": "1",
        "remote.log.manager.expiration.thread.pool.size": "1",
        "remote.log.manager.follower.thread.pool.size": "1",
        "remote.log.reader.threads": "1",
        "log.initial.task.delay.ms": "500",
        "log.retention.check.interval.ms": "500",
    }


def kraft_broker_settings(place: Place, controllers: tuple[Place, ...]) -> dict[str, str]:
    """Settings with which a broker finds KRaft controllers."""
    names = ("CONTROLLER", *place.ports)
    return {
        "process.roles": "broker",
        "node.id": str(place.node_id),
        "listener.security.protocol.map": ",".join(f"{name}:{_protocol(name)}" for name in names),
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": quorum_voters(controllers),
        "metadata.log.dir": str(place.metadata_dir),
    }


def zookeeper_broker_settings(place: Place, zookeeper: Place) -> dict[str, str]:
    """Settings with which a broker finds ZooKeeper."""
    return {
        "broker.id": str(place.node_id),
        "zookeeper.connect": f"{HOST}:{zookeeper.ports['CLIENT']}",
        "zookeeper.session.timeout.ms": ZOOKEEPER_SESSION_TIMEOUT_MS,
    }


def zookeeper_settings(place: Place) -> dict[str, str]:
    """A single ZooKeeper server."""
    return {
        "dataDir": str(place.metadata_dir),
        "clientPort": str(place.ports["CLIENT"]),
        "clientPortAddress": HOST,
        "admin.enableServer": "false",
        "tickTime": "1000",
        "maxClientCnxns": "0",
        "4lw.commands.whitelist": "srvr, dump",
        # A disk that others keep busy took 7 s to sync: brokers lost their sessions. Here only processes die.
        "forceSync": "no",
    }


def _protocol(listener: str) -> str:
    return "PLAINTEXT" if listener in ("CONTROLLER", Listener.PROXIED, Listener.LINK) else listener
