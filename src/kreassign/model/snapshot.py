"""Snapshots: a whole cluster as one value, and as a JSON file (docs/reference/snapshot-file.md).

A twin can be made from a snapshot. Unknown values are left out of the file. Large clusters have their partitions
in columns, and only the rest, the head, as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kreassign.errors import InputError
from kreassign.model.closures import Closure, closure_of
from kreassign.model.cluster import NO_LEADER, Broker, TopicPartition, is_topic_name
from kreassign.model.documents import KeyedTable, OtherKindError
from kreassign.model.text import LARGEST_AMOUNT, LARGEST_ID, agreeing, counted, parse_whole, shortened


@dataclass(frozen=True, slots=True)
class SnapshotLogDir:
    """A log directory: total and free bytes of its file system; None if the broker does not report them.

    An offline directory has failed. A cordoned one works, but receives nothing new unless named (Kafka 4.3); None if
    unknown.
    """

    path: str
    total_bytes: int | None = None
    usable_bytes: int | None = None
    is_offline: bool = False
    is_cordoned: bool | None = False


@dataclass(frozen=True, slots=True)
class SnapshotBroker:
    """A broker with its log directories (none if it did not answer) and its dynamic configuration.

    `in_maintenance`: whether the record of the cluster names it. `may_be_named`: whether the cluster takes changed
    lists that name it, although no log directory of it is known to be open. None if unknown, or not asked.
    """

    broker: Broker
    log_dirs: tuple[SnapshotLogDir, ...] = ()
    configs: Mapping[str, str] = field(default_factory=dict)
    in_maintenance: bool | None = None
    may_be_named: bool | None = None

    @property
    def closure(self) -> Closure:
        """Why it receives no replicas; NONE if it does, or is down."""
        if self.broker.is_fenced:
            return Closure.NONE
        cordons = [one.is_cordoned for one in self.log_dirs if not one.is_offline]
        return closure_of(cordons, in_maintenance=bool(self.in_maintenance), may_be_named=self.may_be_named)


@dataclass(frozen=True, slots=True)
class SnapshotPartition:
    """A partition and its copies.

    `log_dirs` and `sizes_bytes` correspond to `replicas` by position, None for values that a broker did not report.
    `future_log_dirs` names the directory to which a broker is moving its copy. Offsets are those of the leader, and
    `write_bytes_per_s` is the producers' rate while the snapshot was taken; None if unknown.
    """

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int
    log_dirs: tuple[str | None, ...]
    sizes_bytes: tuple[int | None, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    future_log_dirs: Mapping[int, str] = field(default_factory=dict)
    start_offset: int | None = None
    end_offset: int | None = None
    write_bytes_per_s: float | None = None

    def __post_init__(self) -> None:
        if not len(self.replicas) == len(self.log_dirs) == len(self.sizes_bytes):
            raise InputError(
                f"{counted(len(self.replicas), 'replica')} {agreeing(len(self.replicas), 'have')} "
                f"{counted(len(self.log_dirs), 'log directory', 'log directories')} and "
                f"{counted(len(self.sizes_bytes), 'size')}; there must be one of each for every replica"
            )

    @property
    def is_moving(self) -> bool:
        """True if the partition is being reassigned."""
        return bool(self.adding or self.removing)

    @property
    def size_bytes(self) -> int | None:
        """The size of the leader's copy, else of the largest; None without a reported size."""
        sizes = dict(zip(self.replicas, self.sizes_bytes, strict=True))
        known = [size for size in sizes.values() if size is not None]
        leaders = sizes.get(self.leader)
        return max(known, default=None) if leaders is None else leaders


@dataclass(frozen=True, slots=True)
class SnapshotTopic:
    """A topic: its partitions ordered by number, and its dynamic configuration.

    `topic_id` is None before Kafka 2.8.
    """

    name: str
    partitions: tuple[SnapshotPartition, ...]
    configs: Mapping[str, str] = field(default_factory=dict)
    topic_id: str | None = None


@dataclass(frozen=True, slots=True)
class ClusterSnapshot:
    """A whole cluster; `taken_ms` is the start of the snapshot by the clock of the machine that took it.

    `broker_defaults` is the dynamic configuration for all brokers. `measured_for_s` is for how long write rates were
    measured; None if unknown.
    """

    taken_ms: int
    cluster_id: str
    brokers: tuple[SnapshotBroker, ...]
    topics: tuple[SnapshotTopic, ...] = ()
    broker_defaults: Mapping[str, str] = field(default_factory=dict)
    measured_for_s: float | None = None

    @property
    def partitions(self) -> Iterator[tuple[TopicPartition, SnapshotPartition]]:
        """All partitions of all topics."""
        for topic in self.topics:
            for number, partition in enumerate(topic.partitions):
                yield TopicPartition(topic.name, number), partition


# Snapshot files.

SNAPSHOT_FORMAT = "kreassign-snapshot"
SNAPSHOT_VERSION = 1

_MAKE_ONE = "make one with `kreassign snapshot --out FILE`"
AGAIN = "correct the file, or make it again with `kreassign snapshot --out FILE`"

# Stands for an unreported value in lists parallel to the replicas.
_NO_SIZE = -1
_NO_PATH = ""


def format_snapshot(snapshot: ClusterSnapshot) -> str:
    """Format a snapshot file, with a line per partition."""
    brokers = ",\n".join(json.dumps(_broker(broker)) for broker in snapshot.brokers)
    topics = ",\n".join(map(_topic_text, snapshot.topics))
    return f'{json.dumps(_top(snapshot))[:-1]},\n"brokers": [\n{brokers}\n],\n"topics": [\n{topics}\n]}}\n'


def format_head(snapshot: ClusterSnapshot, counts: Sequence[int]) -> str:
    """Format everything but the partitions; `counts` are their numbers by topic."""
    topics = [_topic(topic) | {"partition_count": count} for topic, count in zip(snapshot.topics, counts, strict=True)]
    return json.dumps({**_top(snapshot), "brokers": list(map(_broker, snapshot.brokers)), "topics": topics})


def parse_snapshot(text: str, name: str) -> ClusterSnapshot:
    """Parse a snapshot file; `name` is used in errors. Raises InputError."""
    top = _opened(text, name)
    with top.taken_whole():
        return _snapshot(top, tuple(map(_read_topic, top.tables("topics"))))


def parse_head(text: str, name: str) -> tuple[ClusterSnapshot, tuple[int, ...]]:
    """Parse the text of `format_head`: a snapshot without partitions, and their number by topic. Raises InputError."""
    top = _opened(text, name)
    with top.taken_whole():
        topics = [_read_counted(table) for table in top.tables("topics")]
        return _snapshot(top, tuple(topic for topic, _ in topics)), tuple(count for _, count in topics)


def _opened(text: str, name: str) -> KeyedTable:
    try:
        top = KeyedTable.from_json(text, name)
    except InputError as error:
        advice = f"; {_MAKE_ONE}" if isinstance(error.__cause__, OtherKindError) else ""
        raise InputError(f"{error}{advice}") from error.__cause__
    if top.text("format", "") != SNAPSHOT_FORMAT:
        raise InputError(f"{name} is not a snapshot file; {_MAKE_ONE}")
    if (version := top.whole("version")) != SNAPSHOT_VERSION:
        raise InputError(f"{name} has version {version} of the format; this kreassign reads version {SNAPSHOT_VERSION}")
    return top


# --- writing ----------------------------------------------------------------------------------------------------------


def _top(snapshot: ClusterSnapshot) -> dict[str, Any]:
    return {
        "format": SNAPSHOT_FORMAT,
        "version": SNAPSHOT_VERSION,
        "taken_ms": snapshot.taken_ms,
        **_known({"measured_for_s": snapshot.measured_for_s}),
        "cluster_id": snapshot.cluster_id,
        "broker_defaults": dict(snapshot.broker_defaults),
    }


def _broker(seen: SnapshotBroker) -> dict[str, Any]:
    broker = seen.broker
    known = {"id": broker.id, "host": broker.host, "port": broker.port, "rack": broker.rack}
    return _known(known) | {
        "is_fenced": broker.is_fenced,
        "log_dirs": [_log_dir(log_dir) for log_dir in seen.log_dirs],
        "configs": dict(seen.configs),
        **_known({"in_maintenance": seen.in_maintenance, "may_be_named": seen.may_be_named}),
    }


def _log_dir(log_dir: SnapshotLogDir) -> dict[str, Any]:
    sizes = {"total_bytes": log_dir.total_bytes, "usable_bytes": log_dir.usable_bytes}
    cordon = {"is_cordoned": log_dir.is_cordoned}
    return {"path": log_dir.path, **_known(sizes), "is_offline": log_dir.is_offline, **_known(cordon)}


def _topic_text(topic: SnapshotTopic) -> str:
    partitions = ",\n ".join(json.dumps(_partition(partition)) for partition in topic.partitions)
    return f'{json.dumps(_topic(topic))[:-1]}, "partitions": [\n {partitions}]}}'


def _topic(topic: SnapshotTopic) -> dict[str, Any]:
    return {"name": topic.name, **_known({"topic_id": topic.topic_id}), "configs": dict(topic.configs)}


def _partition(partition: SnapshotPartition) -> dict[str, Any]:
    lists = {"isr": partition.isr, "adding": partition.adding, "removing": partition.removing}
    numbers = {
        "start_offset": partition.start_offset,
        "end_offset": partition.end_offset,
        "write_bytes_per_s": partition.write_bytes_per_s,
    }
    return {
        "leader": partition.leader,
        "leader_epoch": partition.leader_epoch,
        "replicas": partition.replicas,
        **lists,
        "log_dirs": [path or _NO_PATH for path in partition.log_dirs],
        "sizes_bytes": [_NO_SIZE if size is None else size for size in partition.sizes_bytes],
        "future_log_dirs": {str(broker): path for broker, path in partition.future_log_dirs.items()},
        **_known(numbers),
    }


def _known(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


# --- reading ----------------------------------------------------------------------------------------------------------


def _snapshot(top: KeyedTable, topics: tuple[SnapshotTopic, ...]) -> ClusterSnapshot:
    brokers = tuple(map(_read_broker, top.tables("brokers")))
    if not brokers:
        raise InputError(f"{top.where}: it has no brokers; {AGAIN}")
    _refuse_twice(top, "broker", (one.broker.id for one in brokers))
    _refuse_twice(top, "topic", (one.name for one in topics))
    return ClusterSnapshot(
        top.whole("taken_ms"),
        top.text("cluster_id"),
        brokers,
        topics,
        top.text_map("broker_defaults"),
        top.number("measured_for_s") if top.has("measured_for_s") else None,
    )


def _refuse_twice(top: KeyedTable, what: str, names: Iterable[object]) -> None:
    seen: set[object] = set()
    for name in names:
        if name in seen:
            raise InputError(f"{top.where}: {what} {shortened(str(name))} is there more than once")
        seen.add(name)


def _read_broker(table: KeyedTable) -> SnapshotBroker:
    with table.taken_whole():
        rack = table.text("rack") if table.has("rack") else None
        broker = Broker(
            table.whole("id", most=LARGEST_ID),
            table.text("host"),
            table.whole("port", most=LARGEST_ID),
            rack,
            table.flag("is_fenced", default=False),
        )
        log_dirs = tuple(map(_read_log_dir, table.tables("log_dirs")))
        _refuse_twice(table, "log directory", (one.path for one in log_dirs))
        flags = (_read_flag(table, "in_maintenance"), _read_flag(table, "may_be_named"))
        return SnapshotBroker(broker, log_dirs, table.text_map("configs"), *flags)


def _read_flag(table: KeyedTable, key: str) -> bool | None:
    """A boolean that is left out where it is unknown."""
    return table.flag(key, default=False) if table.has(key) else None


def _read_log_dir(table: KeyedTable) -> SnapshotLogDir:
    with table.taken_whole():
        return SnapshotLogDir(
            table.text("path"),
            table.whole("total_bytes") if table.has("total_bytes") else None,
            table.whole("usable_bytes") if table.has("usable_bytes") else None,
            table.flag("is_offline", default=False),
            _read_flag(table, "is_cordoned"),
        )


def _read_topic(table: KeyedTable) -> SnapshotTopic:
    with table.taken_whole():
        topic = _read_topic_with(table, tuple(map(_read_partition, table.tables("partitions"))))
        for number, partition in enumerate(topic.partitions):
            if wrong := contradiction_in(partition):
                raise InputError(f"{TopicPartition(topic.name, number)}: {wrong}; {AGAIN}")
        return topic


def contradiction_in(partition: SnapshotPartition) -> str | None:
    """Contradictions in the description of a partition that no cluster shows.

    Moves are listed before and after the replicas are read, so that those which end meanwhile name other brokers.
    """
    replicas = partition.replicas
    if not replicas:
        return "'replicas' is empty"
    if len(set(replicas)) < len(replicas):
        return f"'replicas' is {list(replicas)}, which names a broker twice"
    holders = {*replicas, *partition.adding, *partition.removing}
    if strangers := sorted(set(partition.isr) - holders):
        return f"'isr' names {strangers}, which 'replicas' does not"
    if partition.leader not in {NO_LEADER, *holders}:
        return f"'leader' is {partition.leader}, which 'replicas' does not name"
    return None


def _read_counted(table: KeyedTable) -> tuple[SnapshotTopic, int]:
    with table.taken_whole():
        return _read_topic_with(table, ()), table.whole("partition_count", most=LARGEST_ID)


def _read_topic_with(table: KeyedTable, partitions: tuple[SnapshotPartition, ...]) -> SnapshotTopic:
    name = table.text("name")
    if not is_topic_name(name):
        raise InputError(f"{table.where}: 'name' is {shortened(name)!r}, which no topic can have; {AGAIN}")
    return SnapshotTopic(
        name,
        partitions,
        table.text_map("configs"),
        table.text("topic_id") if table.has("topic_id") else None,
    )


def _read_partition(table: KeyedTable) -> SnapshotPartition:
    with table.taken_whole():
        return SnapshotPartition(
            table.wholes("replicas"),
            table.wholes("isr"),
            table.whole("leader", least=NO_LEADER, most=LARGEST_ID),
            table.whole("leader_epoch", least=-1, most=LARGEST_ID),
            tuple(path or None for path in table.texts("log_dirs")),
            tuple(
                None if size == _NO_SIZE else size
                for size in table.wholes("sizes_bytes", least=_NO_SIZE, most=LARGEST_AMOUNT)
            ),
            table.wholes("adding"),
            table.wholes("removing"),
            {_broker_id(broker): path for broker, path in table.text_map("future_log_dirs").items()},
            table.whole("start_offset") if table.has("start_offset") else None,
            table.whole("end_offset") if table.has("end_offset") else None,
            table.number("write_bytes_per_s") if table.has("write_bytes_per_s") else None,
        )


def _broker_id(text: str) -> int:
    try:
        return parse_whole(text)
    except ValueError:
        said = f"'future_log_dirs' names broker {shortened(text)!r}; it must be a whole number of at least 0"
        raise InputError(said) from None
