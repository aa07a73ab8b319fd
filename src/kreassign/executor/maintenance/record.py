"""The record of maintenance: brokers, and the original order of the replica lists that they led; and where it is kept.

The cluster shows neither: a changed order looks like any other. So the order is recorded before it is changed, with
the order that it is changed to. A list with neither of the two was changed by others, and is left alone.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from kreassign.errors import ClusterError, InputError
from kreassign.executor.cluster.port import ClusterPort
from kreassign.executor.cluster.readings import seen_in_two_looks
from kreassign.executor.journal.file import decompressed
from kreassign.executor.lease import CALL_TIMEOUT_MS, offsets_topic
from kreassign.model import TopicPartition
from kreassign.model.error_codes import GROUP_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED, has_code
from kreassign.model.plan_facts import is_another
from kreassign.model.text import LARGEST_ID, LAST_MS, parse_whole

_FORM = 5


@dataclass(frozen=True, slots=True)
class Entered:
    """Start of a broker's maintenance, its operator, whether it cordoned the broker, and whether its end has begun."""

    since_ms: int
    by: str
    is_cordoned: bool
    is_leaving: bool = False

    def __str__(self) -> str:
        leaving = ", and its end has begun" if self.is_leaving else ""
        return f"since {datetime.fromtimestamp(self.since_ms / 1000, tz=UTC):%Y-%m-%d %H:%M} UTC, by {self.by}{leaving}"


@dataclass(frozen=True, slots=True)
class Reordering:
    """A replica list before the maintenance, and as the maintenance changes it: the same brokers.

    `former` is what maintenance of another broker made of it before, () if nothing: a process that records the change
    may die before it sends it, and the list is still that. `topic_id` is None where topics have none (before Kafka
    2.8).
    """

    original: tuple[int, ...]
    ours: tuple[int, ...]
    former: tuple[int, ...] = ()
    topic_id: str | None = None

    def is_changed(self, present: tuple[int, ...]) -> bool:
        """True if maintenance, and nobody else, has made this of the original."""
        return present != self.original and present in {self.ours, self.former}


@dataclass(frozen=True, slots=True)
class MaintenanceRecord:
    """Record at this time: brokers in maintenance, and changed lists by partition.

    `cluster_ms` is the time of the cluster's record that it is, or from which it was made: 0 if it was made from none.
    Clocks of machines differ, so which of two records is the later one does not say which one knows of the other.
    """

    at_ms: int = 0
    brokers: Mapping[int, Entered] = field(default_factory=dict)
    orders: Mapping[TopicPartition, Reordering] = field(default_factory=dict)
    cluster_ms: int = 0

    @property
    def is_here_only(self) -> bool:
        """True if the cluster could not keep it when it was written, so that only one machine has it."""
        return self.at_ms != self.cluster_ms

    @property
    def leaving(self) -> frozenset[int]:
        """Brokers in maintenance whose end has begun."""
        return frozenset(broker for broker, one in self.brokers.items() if one.is_leaving)

    @property
    def staying(self) -> frozenset[int]:
        """Brokers in maintenance whose end has not begun."""
        return frozenset(self.brokers).difference(self.leaving)

    def entered(self, brokers: Collection[int], at_ms: int, by: str, cordoned: Collection[int]) -> MaintenanceRecord:
        """Add these brokers, some of which are cordoned now. Start and operator of earlier entries stay."""
        begun = {broker: self.brokers.get(broker, Entered(at_ms, by, is_cordoned=False)) for broker in brokers}
        new = {
            broker: replace(one, is_cordoned=one.is_cordoned or broker in cordoned, is_leaving=False)
            for broker, one in begun.items()
        }
        return replace(self, at_ms=self._after(at_ms), brokers={**self.brokers, **new})

    def reordered(
        self,
        present: Mapping[TopicPartition, tuple[int, ...]],
        ours: Mapping[TopicPartition, tuple[int, ...]],
        at_ms: int,
        topic_ids: Mapping[str, str],
    ) -> MaintenanceRecord:
        """Add the lists that are about to be changed. A list changed by an earlier step keeps its first original."""
        orders = dict(self.orders)
        for name, target in ours.items():
            known, topic_id = orders.get(name), topic_ids.get(name.topic)
            if known is not None and known.is_changed(present[name]) and not is_another(known.topic_id, topic_id):
                orders[name] = Reordering(known.original, target, present[name], topic_id)
            else:
                orders[name] = Reordering(present[name], target, topic_id=topic_id)
        return replace(self, at_ms=self._after(at_ms), orders=orders)

    def with_end_begun(self, brokers: Collection[int], at_ms: int) -> MaintenanceRecord:
        """Record that the end of the maintenance of these brokers begins, before anything of it is done.

        So a command that enters them sees it, and one that ends them sees that they were entered again.
        """
        leaving = {broker: replace(self.brokers[broker], is_leaving=True) for broker in brokers}
        return replace(self, at_ms=self._after(at_ms), brokers={**self.brokers, **leaving})

    def uncordoned(self, brokers: Collection[int], at_ms: int) -> MaintenanceRecord:
        """Record that the cordon of these brokers is over: a later one is not that of their maintenance."""
        ended = {broker: replace(self.brokers[broker], is_cordoned=False) for broker in brokers}
        return replace(self, at_ms=self._after(at_ms), brokers={**self.brokers, **ended})

    def left(
        self, brokers: Collection[int], at_ms: int, restored: Collection[TopicPartition] = ()
    ) -> MaintenanceRecord:
        """Remove these brokers, the lists that name none of the others, and those that are `restored`.

        A list that names others may go back with the last of them.
        """
        remaining = {broker: one for broker, one in self.brokers.items() if broker not in brokers}
        orders = {
            name: one
            for name, one in self.orders.items()
            if name not in restored and not remaining.keys().isdisjoint(one.original)
        }
        return replace(self, at_ms=self._after(at_ms), brokers=remaining, orders=orders)

    def only(self, brokers: Collection[int]) -> MaintenanceRecord:
        """The part about these brokers."""
        return self.left(self.brokers.keys() - set(brokers), self.at_ms)

    def beside(self, other: MaintenanceRecord) -> MaintenanceRecord:
        """Add what another record has besides."""
        return replace(self, brokers={**other.brokers, **self.brokers}, orders={**other.orders, **self.orders})

    def _after(self, at_ms: int) -> int:
        """A time later than this record, whatever the clock of the machine says."""
        return max(at_ms, self.at_ms + 1)


def format_record(record: MaintenanceRecord) -> str:
    """A record as JSON."""
    brokers = [
        [broker, one.since_ms, one.by, one.is_cordoned, one.is_leaving]
        for broker, one in sorted(record.brokers.items())
    ]
    orders: dict[tuple[str, str | None], list[list[object]]] = {}
    for (topic, partition), order in sorted(record.orders.items()):
        former = [order.former] if order.former else []
        orders.setdefault((topic, order.topic_id), []).append([partition, order.original, order.ours, *former])
    topics = [[*topic, lists] for topic, lists in orders.items()]
    return json.dumps([_FORM, record.at_ms, brokers, topics, record.cluster_ms], separators=(",", ":"))


def _reordering(topic_id: object, original: object, ours: object, former: object = ()) -> Reordering:
    was, becomes, before = (tuple(map(_whole, _array(one))) for one in (original, ours, former))
    return Reordering(was, becomes, before, None if topic_id is None else str(topic_id))


def _whole(value: object, most: int = LARGEST_ID) -> int:
    return parse_whole(str(value), most=most)


def _array(value: object) -> Iterable[object]:
    if not isinstance(value, list | tuple):
        raise TypeError(f"{value!r} is no array")
    return value


def parse_record(text: str) -> MaintenanceRecord:
    """Parse a record. Raises ValueError if the text is none: anyone who may commit offsets can commit anything."""
    try:
        form, at_ms, brokers, topics, cluster_ms = json.loads(text)
        if form != _FORM:
            raise ValueError("it is not in the form that this version of kreassign writes")
        return MaintenanceRecord(
            _whole(at_ms, LAST_MS),
            {
                _whole(broker): Entered(_whole(since, LAST_MS), str(by), bool(cordoned), bool(leaving))
                for broker, since, by, cordoned, leaving in brokers
            },
            {
                TopicPartition(topic, _whole(number)): _reordering(topic_id, *lists)
                for topic, topic_id, partitions in topics
                for number, *lists in partitions
            },
            _whole(cluster_ms, LAST_MS),
        )
    except (TypeError, AttributeError, RecursionError) as error:
        raise ValueError(str(error)) from error


# One truth: which of two records counts, that of the cluster or that of this machine.
#
#     the cluster has   this machine has              what counts                 doubtful
#     a record          one that the cluster kept     the cluster's               nothing
#     a record          one made from it, here only   this machine's              nothing
#     a record          another one, here only        the cluster's               brokers that only this machine names
#     none              one here only                 this machine's              nothing
#     none              one that the cluster kept     nothing                     all brokers of this machine's record
#
# A cluster forgets its record some time after the last write (`offsets.retention.minutes`, 7 days by default): what a
# machine still has may have been ended elsewhere since. Doubtful maintenance is decided by the operator, who names
# the broker, and is never written back unasked.


@dataclass(frozen=True, slots=True)
class KnownMaintenance:
    """The record that counts, and what this machine wrote down besides, which may be over."""

    record: MaintenanceRecord = field(default_factory=MaintenanceRecord)
    doubtful: MaintenanceRecord = field(default_factory=MaintenanceRecord)

    def decided(self, brokers: Collection[int]) -> MaintenanceRecord:
        """The record for a command about these brokers, which decides what is doubtful of them.

        Raises InputError if that of others stays doubtful.
        """
        if not self.doubtful.brokers.keys() <= set(brokers):
            ids = ",".join(map(str, sorted(self.doubtful.brokers)))
            raise InputError(
                f"{self.doubt}. Say first what holds: `kreassign maintenance exit {ids}` ends it and puts back what is "
                f"still as the maintenance left it, `kreassign maintenance enter {ids}` goes on"
            )
        return self.record.beside(self.doubtful.only(brokers))

    @property
    def doubt(self) -> str:
        """A sentence about doubtful maintenance; "" without any."""
        if not self.doubtful.brokers:
            return ""
        known = "; ".join(f"broker {broker} {one}" for broker, one in sorted(self.doubtful.brokers.items()))
        return (
            f"this machine wrote down maintenance ({known}) of which the cluster has no record any more, or is not "
            "asked (--lease off), so that it may have been ended elsewhere"
        )


def known_maintenance(here: MaintenanceRecord | None, cluster: MaintenanceRecord | None) -> KnownMaintenance:
    """Decide by the table above."""
    if here is None:
        return KnownMaintenance(cluster or MaintenanceRecord())
    if cluster is None:
        if here.is_here_only:
            return KnownMaintenance(here)
        return KnownMaintenance(replace(here, brokers={}, orders={}), doubtful=here)
    if not here.is_here_only:
        return KnownMaintenance(cluster)
    if here.cluster_ms == cluster.at_ms:
        return KnownMaintenance(here)
    return KnownMaintenance(cluster, here.left(cluster.brokers, here.at_ms))


# Store the record as texts beside committed offsets.
#
# A broker keeps up to `offset.metadata.max.bytes` (4,096) characters with each offset that a group commits, so a text
# is compressed and cut into pieces, one per partition of `__consumer_offsets`, each with its number, the count, and the
# whole's CRC.

PIECE_CHARACTERS = 4_000
"""Size of a piece beside one offset, with room for the head of the piece."""

MOST_BYTES = 1 << 26
"""Largest record; a million replica lists take less. Anyone who may commit offsets can commit anything."""

NO_PIECE = ""
"""Text of a partition without a piece."""

_MARK = "kreassign-1"
_WORDS = 5
"""Words of a piece: mark, number, count, CRC, text."""


def cut_into_pieces(text: str) -> tuple[str, ...]:
    """Cut a text into pieces of at most `PIECE_CHARACTERS` plus a head each."""
    data = zlib.compress(text.encode(), 9)
    packed = base64.b64encode(data).decode()
    parts = [packed[at : at + PIECE_CHARACTERS] for at in range(0, len(packed), PIECE_CHARACTERS)]
    return tuple(f"{_MARK} {number} {len(parts)} {zlib.crc32(data):08x} {part}" for number, part in enumerate(parts))


def text_of_pieces(pieces: Mapping[int, str]) -> str | None:
    """Join these pieces by partition; None if there is none. Raises ValueError if the text is incomplete."""
    if not pieces.get(0):
        return None
    head = pieces[0].split(" ")
    if head[0] != _MARK or len(head) != _WORDS:
        raise ValueError("it is not in the form that this version of kreassign writes")
    count, crc = parse_whole(head[2]), head[3]
    packed = []
    for number in range(count):
        *words, text = pieces.get(number, NO_PIECE).split(" ")
        if words != [_MARK, str(number), str(count), crc]:
            raise ValueError(f"piece {number + 1} of {count} is missing")
        packed.append(text)
    data = base64.b64decode("".join(packed), validate=True)
    if f"{zlib.crc32(data):08x}" != crc:
        raise ValueError("its checksum is another one")
    return decompressed(data, MOST_BYTES, f"it has more than {MOST_BYTES} bytes")


# Read the record from the cluster, beside offsets that the group `kreassign-maintenance` commits.
#
# So runs of any machine are held off a broker that cannot be cordoned (before Kafka 4.3). Without a topic
# `__consumer_offsets` there is no record.

GROUP_ID = "kreassign-maintenance"


def record_places(port: ClusterPort) -> list[TopicPartition]:
    """Partitions beside whose offsets a record is kept; empty without a topic `__consumer_offsets`.

    Raises ClusterError where it is not known whether there is one: there may be a record then.
    """
    topic = offsets_topic(port)
    return [] if topic is None else sorted(partition.topic_partition for partition in topic.partitions)


def read_maintenance_record(port: ClusterPort) -> MaintenanceRecord | None:
    """Read the record; None if there is none. Raises ClusterError, and ValueError if it is unreadable."""
    places = record_places(port)
    if not places:
        return None

    def record() -> str | None:
        offsets = port.fetch_offsets(GROUP_ID, places, timeout_ms=CALL_TIMEOUT_MS).raise_if_any()
        return text_of_pieces({place.partition: offset.metadata for place, offset in offsets.items()})

    text = seen_in_two_looks(record)
    return None if text is None else parse_record(text)


def is_record_denied(error: ClusterError) -> bool:
    """True if this principal may not read the record."""
    return has_code(error, GROUP_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED)


def brokers_in_maintenance(port: ClusterPort) -> Mapping[int, Entered]:
    """Brokers that the record of the cluster names. Raises ClusterError, also where the record is unreadable.

    That it may not be read is believed after two answers.
    """
    try:
        try:
            record = read_maintenance_record(port)
        except ClusterError as error:
            if not is_record_denied(error):
                raise
            record = read_maintenance_record(port)
    except ValueError as error:
        raise ClusterError(f"the record of maintenance in group {GROUP_ID} is unreadable: {error}") from error
    return {} if record is None else record.brokers


def ids_in_maintenance(port: ClusterPort) -> frozenset[int]:
    """Ids of the brokers in maintenance. Raises ClusterError if they are unknown.

    None for a principal that may not read the group: it can keep no lease either, and its run says so.
    """
    try:
        return frozenset(brokers_in_maintenance(port))
    except ClusterError as error:
        if not is_record_denied(error):
            raise
    return frozenset()
