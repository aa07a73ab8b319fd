"""`/brokers/topics/T/partitions/P/state`: leader and in-sync replicas of a partition."""

from __future__ import annotations

from dataclasses import dataclass

from kreassign.model.partition import TopicPartition
from kreassign.model.znodes import paths, text

_VERSION = 1


@dataclass(frozen=True, slots=True)
class PartitionStateZnode:
    """Who leads a partition and who is in sync, as the controller of `controller_epoch` wrote it."""

    controller_epoch: int
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]


def parse_partition_state(partition: TopicPartition, content: bytes) -> PartitionStateZnode:
    """Read a state znode; raises `DamagedZnode`."""
    path = paths.partition_state_path(partition)
    fields = text.decode(path, content)
    return PartitionStateZnode(
        text.integer(path, text.field(path, fields, "controller_epoch")),
        text.integer(path, text.field(path, fields, "leader")),
        text.integer(path, text.field(path, fields, "leader_epoch")),
        text.brokers(path, text.field(path, fields, "isr")),
    )


def format_partition_state(state: PartitionStateZnode) -> bytes:
    """Write a state znode."""
    return text.encode({
        "controller_epoch": state.controller_epoch,
        "leader": state.leader,
        "version": _VERSION,
        "leader_epoch": state.leader_epoch,
        "isr": state.isr,
    })  # fmt: skip
