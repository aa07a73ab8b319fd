"""PURE. Readings of offsets and sizes → rows of table `samples`.

kafka_exporter tells offsets of a partition, whoever leads. The JMX exporter tells offsets and sizes of each replica, on
the page of its broker; the leader's count. Who leads, one of these says:

    kafka_topic_partition_leader            kafka_exporter
    kafka_cluster_partition_replicascount   more than 0 on the leader, 0 on all others
    the end offsets                         where neither is there: no replica is ahead of the leader. That takes the
                                            series of several brokers, and the same times

Where the times of several brokers never meet, as on pages that were read one after the other, the replica that is the
furthest ahead in the end stands for all: samples of different replicas in turn would be noise.

Of a topic with segments in remote storage no exporter tells where the local log begins, of which the size is. Such
sizes are left out: by all of the records those that are on disk would come out too small.

Offsets and sizes are joined where their times are equal, as they are on one page, and in answers of `query_range` to
queries with the same start and step, which may be in several files.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from kreassign.model.whole_number import LARGEST_ID, signed_number
from kreassign.pipeline.ingest.exporters import Fact, PartitionFact, fact_of, is_future, tiered_topic
from kreassign.pipeline.ingest.metric_rows import Origin
from kreassign.pipeline.ingest.readings import BadRow, Reading
from kreassign.pipeline.tables.schemas import Row

NO_PARTITION = "has no topic or no number of a partition"
NO_OFFSET = "has no whole number from 0 to 2^63-1: the exporter does not know it, or the series has ended"
NO_START = "has an end offset but no start offset at the same time; import both together"
NO_END = "has a start offset or a size but no end offset at the same time; import both together"
NO_LEADER = (
    "has offsets of one broker and nobody says who leads; import kafka_cluster_partition_replicascount too, or the "
    "series of all brokers together"
)
NO_LOCAL_START = (
    "is tiered: its size is left out, as no exporter tells the first offset of the local log; sample it with "
    "`kreassign collect`"
)
_LARGEST_LONG = 2**63 - 1
_NOBODY = -1


@dataclass(slots=True)
class Replica:
    """What is known of one replica at one time, or of the partition itself where `broker` is None."""

    facts: dict[Fact, int] = field(default_factory=dict)
    broker: int | None = None

    @property
    def end(self) -> int:
        """The end offset."""
        return self.facts[Fact.END_OFFSET]

    @property
    def size(self) -> int | None:
        """The size of its segments, if it is known."""
        return self.facts.get(Fact.SIZE)

    @property
    def is_whole(self) -> bool:
        """Whether both offsets are known."""
        return Fact.END_OFFSET in self.facts and Fact.START_OFFSET in self.facts

    @property
    def is_follower(self) -> bool:
        """Whether its broker says that it leads nothing of it."""
        return self.facts.get(Fact.REPLICA_COUNT) == 0

    @property
    def is_leader(self) -> bool:
        """Whether its broker says that it leads."""
        return self.facts.get(Fact.REPLICA_COUNT, 0) > 0


PARTITION = ""
"""Source of what is said of a partition, whoever leads."""
Moment = dict[str, Replica]
"""What was said of a partition at one time, by source: an instance, or PARTITION."""


@dataclass(frozen=True, slots=True)
class SamplesFound:
    """Rows of table `samples`, and partitions that are none, with how often and why."""

    rows: tuple[Row, ...]
    bad: tuple[BadRow, ...]


def is_fact(one: Reading) -> bool:
    """Whether it is of use here."""
    return fact_of(one) is not None or tiered_topic(one) is not None


class PartitionReadings:
    """What the readings of one or several files say of partitions; `samples` makes rows of all together."""

    def __init__(self, cluster_id: str) -> None:
        self._cluster_id = cluster_id
        self._seen: dict[tuple[str, int], dict[int, Moment]] = defaultdict(lambda: defaultdict(dict))
        self._sources: set[str] = set()
        self._tiered: set[str] = set()

    def add(self, readings: Iterable[Reading], origin: Origin) -> Iterator[BadRow]:
        """Take in the readings of a file; those that say nothing come back."""
        for one in sorted(readings, key=is_future):  # what is said first counts
            fact = fact_of(one)
            if not origin.is_of_cluster(one):
                continue
            if fact is None:
                self._tiered.update(filter(None, [tiered_topic(one)]))
                continue
            reason = self._take(one, fact, origin)
            if reason is not None:
                yield BadRow(one.place, reason, f"{one.name}{dict(one.labels)} {one.value}")

    def samples(self) -> SamplesFound:
        """Rows, in order of topic, partition and time."""
        rows: list[Row] = []
        bad: list[BadRow] = []
        for (topic, partition), moments in sorted(self._seen.items()):
            reasons: Counter[str] = Counter()
            usable = _usable(moments)
            for taken_ms, moment in sorted(moments.items()):
                found = _leader(moment, usable, has_several=len(self._sources) > 1)
                if isinstance(found, Replica):
                    row = self._row(topic, partition, taken_ms, moment, found)
                    if topic in self._tiered and row["size_bytes"] is not None:
                        row["size_bytes"] = None
                        reasons[NO_LOCAL_START] += 1
                    rows.append(row)
                elif found is not None:
                    reasons[found] += 1
            place = f"partition {topic}-{partition}"
            bad.extend(BadRow(place, reason, f"{count} times") for reason, count in reasons.items())
        return SamplesFound(tuple(rows), tuple(bad))

    def _take(self, one: Reading, known: PartitionFact, origin: Origin) -> str | None:
        topic, partition = one.labels.get("topic"), signed_number(one.labels.get("partition", ""))
        if not topic or partition is None or not 0 <= partition <= LARGEST_ID:
            return NO_PARTITION
        if known.fact is Fact.LEADER and one.value == _NOBODY:
            return None
        if not 0 <= one.value <= _LARGEST_LONG or not one.value.is_integer():
            return NO_OFFSET
        broker = origin.broker_of(one) if known.is_of_replica else None
        source = _replica_source(one, broker, origin) if known.is_of_replica else PARTITION
        if known.is_of_replica:
            self._sources.add(source)
        replica = self._seen[topic, partition][origin.time_of(one)].setdefault(source, Replica(broker=broker))
        replica.facts.setdefault(known.fact, int(one.value))
        return None

    def _row(self, topic: str, partition: int, taken_ms: int, moment: Moment, read: Replica) -> Row:
        leader = read.facts.get(Fact.LEADER, read.broker)
        return {
            "cluster_id": self._cluster_id,
            "taken_ms": taken_ms,
            "topic": topic,
            "topic_id": None,
            "partition": partition,
            "leader": _NOBODY if leader is None else leader,
            "start_offset": read.facts[Fact.START_OFFSET],
            "end_offset": read.end,
            "size_bytes": _size(moment, read, leader),
        }


def _replica_source(one: Reading, broker: int | None, origin: Origin) -> str:
    return f"instance {origin.instance_of(one)}" if broker is None else f"broker {broker}"


def _usable(moments: Mapping[int, Moment]) -> str | None:
    """The one source to read where nobody says who leads and the sources never meet; None where all may be read."""
    last: dict[str, int] = {}
    for _, moment in sorted(moments.items()):
        silent = [
            source for source, one in moment.items() if source != PARTITION and Fact.REPLICA_COUNT not in one.facts
        ]
        if len(silent) > 1:
            return None
        last |= {source: moment[source].end for source in silent if moment[source].is_whole}
    return max(last, key=lambda source: (last[source], source)) if len(last) > 1 else None


def _leader(moment: Moment, usable: str | None, *, has_several: bool) -> Replica | str | None:
    """Whose offsets count at one time; or why nobody's do, None where only a follower was read."""
    partition = moment.get(PARTITION)
    if partition is not None and partition.is_whole:
        return partition
    replicas = {source: one for source, one in moment.items() if source != PARTITION}
    whole = [one for source, one in replicas.items() if one.is_whole and usable in (None, source)]
    told = [one for one in whole if one.is_leader]
    silent = [one for one in whole if not one.is_leader and not one.is_follower]
    if told or (silent and has_several):
        return max(told or silent, key=lambda one: (one.end, one.size or 0))
    if silent:
        return NO_LEADER
    return _what_is_missing(moment.values())


def _what_is_missing(replicas: Iterable[Replica]) -> str | None:
    there = {fact for one in replicas if not one.is_whole and not one.is_follower for fact in one.facts}
    if Fact.END_OFFSET in there:
        return NO_START
    return NO_END if there & {Fact.START_OFFSET, Fact.SIZE} else None


def _size(moment: Moment, read: Replica, leader: int | None) -> int | None:
    """The size of the replica that is read, else of the leader's, else of the largest."""
    if read.size is not None:
        return read.size
    of_leader = [one.size for one in moment.values() if one.size is not None and one.broker == leader]
    return max(of_leader or (one.size for one in moment.values() if one.size is not None), default=None)
