"""Changes of log directories: requests to brokers, and the cancelling of moves between directories."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kreassign.errors import ClusterError, Rejected
from kreassign.executor.cluster import queries
from kreassign.executor.cluster.port import ClusterPort
from kreassign.executor.events import PlannedMove, Refusal
from kreassign.model import TopicPartition, TopicPartitionReplica
from kreassign.model.authorization import error_text
from kreassign.model.error_codes import REPLICA_NOT_AVAILABLE, has_code


@dataclass(frozen=True, slots=True)
class LogDirAnswer:
    """Partitions for which a broker refused a directory, or gave no answer."""

    refused: tuple[Refusal, ...] = ()
    unknown: tuple[TopicPartition, ...] = ()

    @property
    def failed(self) -> frozenset[TopicPartition]:
        """All of them."""
        return frozenset((*self.unknown, *(refusal.topic_partition for refusal in self.refused)))


def request(port: ClusterPort, targets: Mapping[TopicPartitionReplica, str]) -> LogDirAnswer:
    """Ask brokers to have copies in these directories, also those copies that are still to be made."""
    if not targets:
        return LogDirAnswer()
    failed = {
        replica: error
        for replica, error in port.alter_replica_log_dirs(targets).failed.items()
        if not _is_remembered(error)
    }
    refused = {
        replica.topic_partition: f"{targets[replica]} on broker {replica.broker}: {error_text(error)}"
        for replica, error in failed.items()
        if isinstance(error, Rejected)
    }
    unknown = {replica.topic_partition for replica in failed} - refused.keys()
    return LogDirAnswer(tuple(Refusal(name, text) for name, text in sorted(refused.items())), tuple(sorted(unknown)))


def cancel(port: ClusterPort, moves: Iterable[PlannedMove]) -> None:
    """Cancel moves between directories that are under way: the present directory as the target does that (KIP-113).

    What a broker does not answer to is seen at the next poll. Raises ClusterError when nobody answers.
    """
    moves = tuple(moves)
    named = {replica for move in moves for replica in move.log_dir_paths}
    found, _ = queries.read_locations(port, moves)
    present = {
        replica: place.current
        for replica, place in found.items()
        if replica in named and place.future is not None and place.current is not None
    }
    if present:
        port.alter_replica_log_dirs(present)


def _is_remembered(error: ClusterError) -> bool:
    """Whether the broker has no such copy yet; it keeps the directory for when it gets one."""
    return has_code(error, REPLICA_NOT_AVAILABLE)
