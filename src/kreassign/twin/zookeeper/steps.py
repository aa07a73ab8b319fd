"""What a controller in ZooKeeper mode lets brokers know of a partition, before it is made into messages."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PartitionMessage:
    """A partition as the brokers in `recipients` shall take it over, and who of them shall give up its replica.

    `topic_id` is a UUID in its usual text form. `partition_epoch` is the version of the state znode. `new_replicas`
    are those of the brokers told that have no replica yet. `stopped` names brokers and whether they delete what they
    have. Without `recipients` no leader and ISR is told, but the change is still known to all (UpdateMetadata).
    """

    topic: str
    topic_id: str
    partition: int
    controller_epoch: int
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int
    replicas: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    is_new: bool = False
    recipients: tuple[int, ...] = ()
    stopped: tuple[tuple[int, bool], ...] = ()
