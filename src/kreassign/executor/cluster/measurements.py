"""Measure the cluster for guards and throttles: its health, write rates, and the traffic of brokers.

Kafka reports offsets of partitions, but no traffic and no rates; rates are computed from two readings.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import NamedTuple

from kreassign.clock import Clock
from kreassign.errors import ClusterError
from kreassign.executor.cluster import readings, requests
from kreassign.executor.cluster.changes import is_denied
from kreassign.executor.cluster.observations import leader_sizes
from kreassign.executor.cluster.port import ClusterPort
from kreassign.executor.cluster.receivers import closures_of
from kreassign.executor.events import PlannedMove
from kreassign.executor.guards import (
    OF_PARTITIONS,
    ForeignCopy,
    GuardName,
    Health,
    LogDirSpace,
    Troubled,
    Unread,
    offline,
    under_min_isr,
    under_replicated,
)
from kreassign.executor.instructions import CheckHealth
from kreassign.executor.throttle_rates import BrokerTraffic, PartitionWrites, traffic_of
from kreassign.model import (
    NO_LEADER,
    Batch,
    ConfigResource,
    LogDir,
    OffsetSpec,
    OngoingReassignment,
    Partition,
    Topic,
    TopicPartition,
)
from kreassign.model.authorization import error_text
from kreassign.model.closures import leading_nothing
from kreassign.model.disks import told_sizes
from kreassign.model.plan_facts import is_another

# Cluster health, for the guards.


def inspect_health(port: ClusterPort, question: CheckHealth, in_maintenance: Collection[int] = ()) -> Health:
    """Inspect the cluster, except for effects that the moves explain. Raises ClusterError.

    Brokers `in_maintenance` take no copies and no leadership, whatever their directories say.
    """
    moves, before = question.moves, question.before
    ongoing = readings.ongoing_moves(port)
    ours = {(move.topic_partition, broker) for move in moves for broker in move.receiving}
    concerned = {broker for move in moves for broker in (*move.original, *move.receiving, *move.target)}
    shown, silence = readings.live_or_unknown(port, concerned)
    live = tuple(sorted(shown))
    own = {move.topic_partition.topic for move in moves}
    topics = _topics_of_two(port, own, is_second=question.second_look)
    partitions = list(readings.partitions_of(topics.ok).values())
    troubled = under_replicated(partitions, ongoing, expected=ours)
    destinations = sorted({broker for move in moves for broker in move.receiving} & set(live))
    named = sorted({broker for move in moves for broker in (*move.receiving, *move.target)} & set(live))
    answers = readings.read_log_dirs(port, named, copies_of=())
    closures = closures_of(port, answers.ok, answers.ok, in_maintenance)
    spaces = _of_brokers(answers, destinations)
    striped = [broker for broker, found in spaces.ok.items() if len(found) > 1]
    counted = readings.read_log_dirs(port, striped)
    log_dirs = {**spaces.ok, **counted.ok}
    targets = {move.topic_partition: move.target for move in moves}
    of_others = question.unsent | question.left_alone
    sent = {name: target for name, target in targets.items() if name not in of_others}
    copied = {(name, broker) for name, broker in ours if name not in question.unsent}
    foreign = _foreign_copies(port, ongoing, sent, copied, log_dirs, live)
    sizeless = _without_sizes(port, answers.ok, destinations, live)
    uncounted = spaces.ok.keys() - counted.ok.keys() | counted.failed.keys()  # The fullest directory is assumed.
    # Also during a reassignment that adds replicas: brokers count those, and refuse producers until enough are in sync.
    agreed = {move.topic_partition for move in moves} if question.allows_producer_outage else set()
    short = [one for one in partitions if len(one.isr) < len(one.replicas) and one.topic_partition not in agreed]
    minima = requests.min_isr_of(port, (one.topic_partition.topic for one in short))
    throttle = requests.check_throttle(port, question.throttle, {})
    recreated = _recreated(moves, topics.ok)
    return Health(
        live=live,
        offline=Troubled.of(offline(partitions), before.offline if before else None),
        under_min_isr=Troubled.of(
            under_min_isr(short, minima.known),
            before.under_min_isr if before else None,
        ),
        under_replicated=Troubled.of(
            (partition.topic_partition for partition in under_replicated(troubled, ongoing, question.lost, ours)),
            before.under_replicated if before else None,
        ),
        log_dir_space=tuple(
            space
            for broker in sorted(log_dirs)
            for space in _space(broker, log_dirs[broker], targets.keys(), is_counted=broker not in uncounted)
        ),
        cordoned=tuple(broker for broker in sorted(log_dirs) if broker in closures),
        refused=tuple(broker for broker, closure in sorted(closures.items()) if closure.is_binding),
        to_lead_nothing=tuple(sorted(leading_nothing({move.target[0] for move in moves}, in_maintenance))),
        foreign_moves=tuple(
            sorted(name for name, move in ongoing.items() if name in targets and move.target != sent.get(name))
        ),
        foreign_copies=foreign.copies,
        foreign_configs=tuple(present for present in throttle.differ if present.key.resource not in recreated),
        unread_configs=throttle.unread,
        unread=(
            *_unread_topics(_concerning(topics.failed, own)),
            *(() if silence is None else (Unread(GuardName.BROKER, "which brokers are live", error_text(silence)),)),
            *_unread(GuardName.MIN_ISR, "min.insync.replicas of topic", _concerning(minima.unknown, own)),
            *_unread(GuardName.DISK, "the free space of broker", {**spaces.failed, **sizeless}),
            *foreign.unread,
            *_unread(GuardName.CORDONED, "the log directories of broker", answers.failed),
        ),
    )


def _of_brokers(answers: Batch[int, tuple[LogDir, ...]], brokers: Collection[int]) -> Batch[int, tuple[LogDir, ...]]:
    """The answers of these brokers."""
    ok = {broker: answers.ok[broker] for broker in answers.ok if broker in brokers}
    return Batch(ok, {broker: error for broker, error in answers.failed.items() if broker in brokers})


def _without_sizes(
    port: ClusterPort, answers: Mapping[int, tuple[LogDir, ...]], brokers: Collection[int], live: Collection[int]
) -> dict[int, ClusterError]:
    """Brokers, of these, with a directory whose size is unknown, though brokers of the cluster tell it.

    Before Kafka 3.3 none does; the preview of a run says so. Where none of those that answered does, the other live
    ones are asked.
    """
    sized = {broker: told_sizes(dirs) for broker, dirs in answers.items()}
    lacking = [broker for broker in brokers if not all(sized.get(broker, ()))]
    if lacking and not any(map(any, sized.values())):
        others = readings.read_log_dirs(port, sorted(set(live).difference(answers)), copies_of=())
        if not others.failed and not any(map(any, map(told_sizes, others.ok.values()))):
            return {}
    return dict.fromkeys(lacking, ClusterError("it does not tell that of each log directory"))


def _topics_of_two(port: ClusterPort, own: set[str], *, is_second: bool) -> Batch[str, Topic]:
    """Return all topics as two brokers show them that are asked by name.

    A broker that lags shows trouble that is over, and none where there is some: it is believed alone in neither. Topics
    that the two show differently, and one of them in trouble, are asked for again. While no two agree, each partition
    is as where it is worst, so that nothing starts; in a second look as where it is best, so that no run ends. Where no
    two answer, trouble that one shows counts, and the other `own` topics of the run are unread.
    """
    try:
        first, *others = readings.ask_by_name(port, lambda broker: port.describe_topics(None, broker=broker))
    except ClusterError as error:
        if is_second:
            raise
        seen = port.describe_topics(None)
        troubled = {name: topic for name, topic in seen.ok.items() if any(map(_is_in_trouble, topic.partitions))}
        return Batch(troubled, {**seen.failed, **dict.fromkeys(own - troubled.keys(), error)})
    shown, failed = dict(first.ok), dict(first.failed)
    disputed, lone = set[str](), set[str]()
    for other in others:
        failed |= other.failed
        lone = shown.keys() ^ other.ok.keys()
        for name, topic in other.ok.items():
            before = shown.setdefault(name, topic)
            if before != topic and any(map(_is_in_trouble, (*before.partitions, *topic.partitions))):
                disputed.add(name)
            shown[name] = _joined(before, topic, is_second=is_second)
    known, absent, unknown = readings.topics_of_two(port, {*failed, *lone, *disputed})
    shown = {name: known.get(name, topic) for name, topic in {**known, **shown}.items() if name not in absent}
    unread = {name: error for name, error in unknown.items() if name not in disputed}
    return Batch({name: topic for name, topic in shown.items() if name not in unread}, unread)


def _joined(first: Topic, second: Topic, *, is_second: bool) -> Topic:
    """A topic with each partition as that one of both shows it where it is worst, or in a second look best."""
    if first == second:
        return first
    others = {one.topic_partition: one for one in second.partitions}
    pick = max if is_second else min
    partitions = {one.topic_partition: pick(one, others.pop(one.topic_partition, one), key=_health)
                  for one in first.partitions}  # fmt: skip
    return replace(second, partitions=(*partitions.values(), *others.values()))


def _health(partition: Partition) -> tuple[bool, int]:
    return partition.leader != NO_LEADER, len(partition.isr)


def _is_in_trouble(partition: Partition) -> bool:
    return partition.leader == NO_LEADER or len(partition.isr) < len(partition.replicas)


def _unread(
    guard: GuardName, what: str, failed: Mapping[str, ClusterError] | Mapping[int, ClusterError]
) -> list[Unread]:
    return [Unread(guard, f"{what} {name}", error_text(error)) for name, error in sorted(failed.items())]


def _unread_topics(failed: Mapping[str, ClusterError]) -> list[Unread]:
    """One of each topic for every guard that judges partitions: any of them may be the only one that is on."""
    return [one for guard in OF_PARTITIONS for one in _unread(guard, "topic", failed)]


def _concerning(unknown: Mapping[str, ClusterError], own: Collection[str]) -> dict[str, ClusterError]:
    """Errors that concern the run: what this client may not read matters only of topics that it moves."""
    return {topic: error for topic, error in unknown.items() if topic in own or not is_denied(error)}


def _recreated(moves: Iterable[PlannedMove], topics: Mapping[str, Topic]) -> frozenset[ConfigResource]:
    """Topics of moves that were deleted and created again: settings of the run were deleted with the old topics."""
    names = {move.topic_partition.topic: move.topic_id for move in moves}
    found = {name: topics[name].topic_id for name in names if name in topics}
    return frozenset(ConfigResource.topic(name) for name in found if is_another(names[name], found[name]))


def _space(
    broker: int, log_dirs: Iterable[LogDir], moving: Collection[TopicPartition], *, is_counted: bool
) -> list[LogDirSpace]:
    return [
        LogDirSpace(
            broker,
            log_dir.path,
            log_dir.total_bytes,
            log_dir.usable_bytes,
            len(log_dir.replicas) if is_counted else None,
            tuple(
                sorted(
                    copy.topic_partition
                    for copy in log_dir.replicas
                    if copy.topic_partition in moving and not copy.is_future
                )
            ),
            log_dir.is_cordoned,
            log_dir.size_bytes if is_counted else None,
        )
        for log_dir in log_dirs
        if log_dir.total_bytes is not None and log_dir.usable_bytes is not None
    ]


class ForeignCopies(NamedTuple):
    """Copies in flight that other tools started, and those of unknown size."""

    copies: tuple[ForeignCopy, ...]
    unread: tuple[Unread, ...]


def _foreign_copies(
    port: ClusterPort,
    ongoing: Mapping[TopicPartition, OngoingReassignment],
    targets: Mapping[TopicPartition, tuple[int, ...]],
    ours: Collection[tuple[TopicPartition, int]],
    log_dirs: Mapping[int, tuple[LogDir, ...]],
    live: Collection[int],
) -> ForeignCopies:
    """Copies to these brokers that are not `ours`, also those from one of their directories to another.

    `targets` are those that the run has sent: others may have begun a move of its plan that still waits.
    """
    moves = {
        name: move
        for name, move in ongoing.items()
        if move.target != targets.get(name) and log_dirs.keys() & set(move.adding)
    }
    copies, unread = _foreign_rearrangements(log_dirs, ours)
    brokers = sorted({broker for move in moves.values() for broker in move.replicas} & set(live))
    answer = readings.read_log_dirs(port, brokers, copies_of=sorted(moves))
    places = {
        (copy.topic_partition, broker): (copy.size_bytes, log_dir.path)
        for broker, found in answer.ok.items()
        for log_dir in found
        for copy in log_dir.replicas
        if not copy.is_future
    }
    for name, move in sorted(moves.items()):
        sizes = [places[name, broker][0] for broker in move.sources if (name, broker) in places]
        for broker in sorted(log_dirs.keys() & set(move.adding)):
            if not sizes:
                why = next((why for one, why in answer.failed.items() if one in move.sources), "none reported one")
                unread.append(Unread(GuardName.DISK, _size_of(name, broker), str(why)))
                continue
            copied_bytes, path = places.get((name, broker), (0, None))
            copies.append(ForeignCopy(name, broker, max(0, max(sizes) - copied_bytes), path))
    return ForeignCopies(tuple(copies), tuple(unread))


def _foreign_rearrangements(
    log_dirs: Mapping[int, tuple[LogDir, ...]], ours: Collection[tuple[TopicPartition, int]]
) -> tuple[list[ForeignCopy], list[Unread]]:
    copies, unread = [], []
    for broker, found in sorted(log_dirs.items()):
        there = [(one, log_dir.path) for log_dir in found for one in log_dir.replicas]
        sizes = {one.topic_partition: one.size_bytes for one, _ in there if not one.is_future}
        for one, path in there:
            name = one.topic_partition
            if not one.is_future or (name, broker) in ours:
                continue
            if name in sizes:
                copies.append(ForeignCopy(name, broker, max(0, sizes[name] - one.size_bytes), path))
            else:
                unread.append(Unread(GuardName.DISK, _size_of(name, broker), "its directory reported none"))
    return copies, unread


def _size_of(name: TopicPartition, broker: int) -> str:
    return f"the size of {name}, which others copy to broker {broker},"


# Write rates by sampling: the end offset of each log at two times. Every write rate is computed here.
#
# Kafka reports offsets, but no rates. When the end offset goes from e to e' in t seconds, producers write
#
#     (e' - e) / t · size / (e - start)    bytes per second:
#
# the records, times the mean size of records in the log. Size and start are those of the leader's local log, while most
# records of a tiered topic (KIP-405) are in remote storage and in no size. So a rate above 0 is known only for a log
# that has records and a known size. Compaction and a change in what producers send make it wrong by as much as they
# change that mean.

Offsets = Mapping[TopicPartition, int]
NONE_KNOWN: Mapping[TopicPartition, Partition] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class OffsetSamples:
    """Start and end offsets of logs, and end offsets `seconds` later, where leaders answered.

    Start offsets are the first offsets in the leader's local log.
    """

    starts: Offsets
    ends: Offsets
    later_ends: Offsets
    seconds: float
    failed: Mapping[TopicPartition, ClusterError] = field(default_factory=dict)

    def write_rate(self, partition: TopicPartition, size_bytes: int | None) -> float | None:
        """Bytes per second that producers added, from the size of one copy; None if unknown."""
        start, end, later = (offsets.get(partition) for offsets in (self.starts, self.ends, self.later_ends))
        if start is None or end is None or later is None:
            return None
        return write_rate(later - end, self.seconds, mean_record_bytes(size_bytes, start, end))


def sample_offsets(
    port: ClusterPort,
    clock: Clock,
    partitions: Collection[TopicPartition],
    seconds: float,
    known: Mapping[TopicPartition, Partition] = NONE_KNOWN,
) -> OffsetSamples:
    """Read the offsets of these partitions at two times, `seconds` apart, each once more where it failed.

    Pass partitions described just now as `known`: describing a million takes longer than reading their offsets. Raises
    ClusterError when no broker answers.
    """
    begun_s = clock.monotonic_s()
    ends = readings.read_offsets(port, partitions, OffsetSpec.LATEST, known)
    starts = readings.read_offsets(port, partitions, OffsetSpec.EARLIEST_LOCAL, known)
    clock.sleep(max(0.0, begun_s + seconds - clock.monotonic_s()))
    ended_s = clock.monotonic_s()
    later = readings.read_offsets(port, partitions, OffsetSpec.LATEST, known)
    failed = {**starts.unknown, **ends.unknown, **later.unknown}
    return OffsetSamples(starts.known, ends.known, later.known, ended_s - begun_s, failed)


def mean_record_bytes(size_bytes: int | None, start: int, end: int) -> float | None:
    """Mean size of the records between two offsets; None without records or without a size."""
    return None if size_bytes is None or end <= start else size_bytes / (end - start)


def write_rate(records: int, seconds: float, record_bytes: float | None) -> float | None:
    """Bytes per second of so many records in `seconds`. A log that became shorter counts as not written."""
    if seconds <= 0:
        return None
    if records <= 0:
        return 0.0
    return None if record_bytes is None else records / seconds * record_bytes


# Traffic of brokers between consecutive readings. Reads by consumers are not visible this way.

SIZES_EVERY_MS = 60_000
"""Interval between size queries: the mean record size changes slowly, and reading the sizes of all copies is costly."""


@dataclass(frozen=True, slots=True)
class EndOffsets:
    """End offsets of partitions at one time."""

    at_ms: int
    ends: Offsets


class TrafficMeter:
    """Keep the last reading, so that the next one gives rates."""

    def __init__(self, port: ClusterPort) -> None:
        self._port = port
        self._last: EndOffsets | None = None
        self._record_bytes: dict[TopicPartition, float] = {}
        self._sized_ms: int | None = None

    def measure(
        self, at_ms: int, names: Iterable[TopicPartition]
    ) -> tuple[tuple[BrokerTraffic, ...], tuple[PartitionWrites, ...]]:
        """Traffic of brokers since the last reading, and write rates of these partitions; empty at the first reading.

        Raises ClusterError.
        """
        brokers = self._port.describe_cluster().broker_ids
        topics = readings.every_topic_of_two(self._port)
        if topics.unknown:  # What is written to them is traffic of brokers that are not known, so of any.
            return (), ()
        partitions = {
            name: one for name, one in readings.partitions_of(topics.known).items() if one.leader != NO_LEADER
        }
        ends = readings.read_offsets(self._port, partitions, OffsetSpec.LATEST, partitions).known
        if self._sized_ms is None or at_ms - self._sized_ms >= SIZES_EVERY_MS:
            self._record_bytes, self._sized_ms = self._sizes(partitions, ends, brokers), at_ms
        before, self._last = self._last, EndOffsets(at_ms, ends)
        if before is None or at_ms <= before.at_ms:
            return (), ()
        writes = written(before, self._last, self._record_bytes)
        known = (PartitionWrites(name, writes[name]) for name in names if name in writes)
        return traffic_of(partitions.values(), writes, brokers), tuple(known)

    def _sizes(
        self, partitions: Mapping[TopicPartition, Partition], ends: Offsets, brokers: Iterable[int]
    ) -> dict[TopicPartition, float]:
        starts = readings.read_offsets(self._port, ends, OffsetSpec.EARLIEST_LOCAL, partitions).known
        leaders = {name: one.leader for name, one in partitions.items()}
        return record_bytes(leaders, readings.read_log_dirs(self._port, brokers).ok, starts, ends)


def record_bytes(
    leaders: Mapping[TopicPartition, int],
    log_dirs: Mapping[int, tuple[LogDir, ...]],
    starts: Offsets,
    ends: Offsets,
) -> dict[TopicPartition, float]:
    """Mean record size of each partition that has records, from its leader's copy."""
    sizes = leader_sizes(log_dirs, leaders).items()
    known = {name: size_bytes for name, size_bytes in sizes if name in starts and name in ends}
    means = {name: mean_record_bytes(size_bytes, starts[name], ends[name]) for name, size_bytes in known.items()}
    return {name: mean for name, mean in means.items() if mean is not None}


def written(
    before: EndOffsets, now: EndOffsets, record_bytes: Mapping[TopicPartition, float]
) -> dict[TopicPartition, float]:
    """Bytes per second written to each partition; without new partitions and those of unknown record size."""
    seconds = (now.at_ms - before.at_ms) / 1000
    gains = {name: end - before.ends[name] for name, end in now.ends.items() if name in before.ends}
    rates = {name: write_rate(gain, seconds, record_bytes.get(name)) for name, gain in gains.items()}
    return {name: rate for name, rate in rates.items() if rate is not None}
