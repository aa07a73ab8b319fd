"""Asking the cluster how it is, for the guards."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from kreassign.executor.cluster import queries
from kreassign.executor.cluster.observations import is_another
from kreassign.executor.cluster.port import ClusterPort
from kreassign.executor.events import PlannedMove
from kreassign.executor.guards import Health, LogDirSpace, Troubled
from kreassign.executor.guards.health import offline, under_min_isr, under_replicated
from kreassign.executor.instructions import CheckHealth
from kreassign.model import ConfigResource, LogDir, Topic


def inspect(port: ClusterPort, question: CheckHealth, in_maintenance: Collection[int] = ()) -> Health:
    """How the cluster is, but for what the moves explain. Raises ClusterError.

    Brokers `in_maintenance` take no copies, whatever their directories say.
    """
    moves, before = question.moves, question.before
    live = port.describe_cluster().broker_ids
    ongoing = port.list_partition_reassignments(None)
    topics = port.describe_topics(None)
    partitions = [partition for topic in topics.ok.values() for partition in topic.partitions]
    troubled = under_replicated(partitions, ongoing)
    destinations = sorted({broker for move in moves for broker in move.receiving} & set(live))
    log_dirs = port.describe_log_dirs(destinations, partitions=()).ok if destinations else {}
    targets = {move.topic_partition: move.target for move in moves}
    differ, unread, _ = queries.check_throttle(port, question.throttle, {})
    recreated = _recreated(moves, topics.ok)
    return Health(
        live=live,
        offline=Troubled.of(offline(partitions), before.offline if before else None),
        under_min_isr=Troubled.of(
            under_min_isr(troubled, queries.min_isr_of(port, (one.topic_partition.topic for one in troubled))),
            before.under_min_isr if before else None,
        ),
        under_replicated=Troubled.of(
            (partition.topic_partition for partition in under_replicated(troubled, ongoing, question.lost)),
            before.under_replicated if before else None,
        ),
        log_dir_space=tuple(space for broker in sorted(log_dirs) for space in _space(broker, log_dirs[broker])),
        cordoned=tuple(
            broker for broker in sorted(log_dirs) if broker in in_maintenance or _takes_nothing(log_dirs[broker])
        ),
        foreign_moves=tuple(
            sorted(name for name, move in ongoing.items() if name in targets and move.target != targets[name])
        ),
        foreign_configs=tuple(present for present in differ if present.key.resource not in recreated),
        unread_configs=unread,
    )


def _recreated(moves: Iterable[PlannedMove], topics: Mapping[str, Topic]) -> frozenset[ConfigResource]:
    """Topics of moves that are others now: what the run had set went with the old ones."""
    names = {move.topic_partition.topic: move.topic_id for move in moves}
    found = {name: topics[name].topic_id for name in names if name in topics}
    return frozenset(ConfigResource.topic(name) for name in found if is_another(names[name], found[name]))


def _space(broker: int, log_dirs: Iterable[LogDir]) -> list[LogDirSpace]:
    return [
        LogDirSpace(broker, log_dir.path, log_dir.total_bytes, log_dir.usable_bytes)
        for log_dir in log_dirs
        if log_dir.total_bytes is not None and log_dir.usable_bytes is not None
    ]


def _takes_nothing(log_dirs: Sequence[LogDir]) -> bool:
    return bool(log_dirs) and all(log_dir.is_cordoned or log_dir.error for log_dir in log_dirs)
