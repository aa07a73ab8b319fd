"""Brokers and their log directories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kreassign.model.log_dir_replicas import LogDirReplica, LogDirReplicas


@dataclass(frozen=True, slots=True, order=True)
class Broker:
    """A node that clients can talk to. `rack` is None where the broker names none."""

    id: int
    host: str
    port: int
    rack: str | None = None
    is_fenced: bool = False

    def __str__(self) -> str:
        rack = f", rack {self.rack}" if self.rack else ""
        return f"broker {self.id} ({self.host}:{self.port}{rack})"


@dataclass(frozen=True, slots=True)
class Cluster:
    """Which nodes there are, as one of them reports it.

    In KRaft mode `controller_id` is a random live broker that forwards to the controller, not the controller.
    """

    cluster_id: str
    controller_id: int
    brokers: tuple[Broker, ...]

    @property
    def broker_ids(self) -> tuple[int, ...]:
        """Ids of the brokers, ascending."""
        return tuple(sorted(broker.id for broker in self.brokers))

    def broker(self, broker_id: int) -> Broker | None:
        """The broker with this id, if the cluster has it."""
        return next((broker for broker in self.brokers if broker.id == broker_id), None)


@dataclass(frozen=True, slots=True)
class LogDir:
    """One log directory of one broker. An offline one has an `error` and no replicas.

    `total_bytes` and `usable_bytes` of the file system are None on brokers before 3.3; `is_cordoned` (KIP-1066)
    is False where the broker does not report it.
    """

    path: str
    error: str | None
    total_bytes: int | None
    usable_bytes: int | None
    is_cordoned: bool
    replicas: Sequence[LogDirReplica]

    def __str__(self) -> str:
        return f"{self.path} ({self.error})" if self.error else self.path

    @property
    def topics(self) -> frozenset[str]:
        """The topics of its replicas."""
        if isinstance(self.replicas, LogDirReplicas):  # a cluster may have a million, which are packed by topic
            return frozenset(self.replicas.topics)
        return frozenset(copy.topic_partition.topic for copy in self.replicas)
