"""Where every unfinished move stands: waiting, in flight, or neither because it has still to be observed.

Kept beside the records, so that a poll of the cluster costs what is in flight and not what the plan is long.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from kreassign.executor.events import PlannedMove
from kreassign.executor.scheduling import Candidate, Queue
from kreassign.executor.scheduling.candidate import LogDirKey, named_log_dirs
from kreassign.executor.state.move import ACTIVE, IN_FLIGHT, MoveRecord, MoveStatus, NextAction
from kreassign.model import TopicPartition

Records = dict[TopicPartition, MoveRecord]


@dataclass(slots=True)
class MoveIndex:
    """Three places; an unfinished move is in exactly one of them.

    `queue` has what a poll has shown untouched, `in_flight` what was sent or is under way, `unsettled` what is planned
    and was not seen yet, or was strange.
    """

    queue: Queue = field(default_factory=Queue)
    in_flight: Records = field(default_factory=dict)
    unsettled: Records = field(default_factory=dict)

    @classmethod
    def unseen(cls, records: Iterable[MoveRecord]) -> MoveIndex:
        """Before any of them was observed."""
        index = cls()
        for record in records:
            index.sort(record)
        return index

    def sort(self, record: MoveRecord, action: NextAction = NextAction.NOTHING) -> None:
        """Put a move where it belongs now; one at its end is nowhere."""
        name = record.name
        self.queue.remove(name)
        self.in_flight.pop(name, None)
        self.unsettled.pop(name, None)
        if record.status in IN_FLIGHT:
            self.in_flight[name] = record
        elif record.status is MoveStatus.PLANNED and action is NextAction.SUBMIT:
            self.queue.add(candidate(record))
        elif record.status is MoveStatus.PLANNED:
            self.unsettled[name] = record

    @property
    def destinations(self) -> set[int]:
        """Brokers that still have to get a copy."""
        seen = (record for place in (self.in_flight, self.unsettled) for record in place.values())
        return self.queue.destinations.union(broker for record in seen for broker in record.lagging)

    @property
    def named_log_dirs(self) -> dict[int, frozenset[str]]:
        """Of the brokers all of whose copies go into directories that are named: those directories."""
        seen = (record for place in (self.in_flight, self.unsettled) for record in place.values())
        return named_log_dirs((*self.queue.endpoints, *(left_of(record).endpoints for record in seen)))

    @property
    def to_observe(self) -> Iterator[TopicPartition]:
        """Moves that may have gone on, or of which nothing is known."""
        replica_locations = (self.in_flight, self.unsettled)
        return (name for place in replica_locations for name, record in place.items() if record.status in ACTIVE)


def candidate(record: MoveRecord) -> Candidate:
    """What pacing wants to know of a move: new replicas copy from the leader."""
    move = record.step
    return Candidate(
        record.name,
        move.size_bytes,
        record.source,
        move.adding,
        _log_dirs(move),
        write_bytes_per_s=move.write_bytes_per_s,
        is_urgent=move.is_urgent,
        left_bytes=sum(record.left_bytes.values()),
    )


def left_of(record: MoveRecord) -> Candidate:
    """The same of a move in flight: the copies that lag, with what is left of the largest; all if unknown."""
    whole = candidate(record)
    left = max(record.left_bytes.values(), default=0)
    destinations = tuple(broker for broker in whole.destinations if broker in record.lagging)
    log_dirs = tuple(place for place in whole.log_dirs if place[0] in record.lagging)
    return replace(whole, size_bytes=left, destinations=destinations, log_dirs=log_dirs)


def left_by_destination(records: Iterable[MoveRecord]) -> dict[int, int]:
    """Bytes still to come in, by broker, for all copies of these moves."""
    left: Counter[int] = Counter()
    for record in records:
        left.update(record.left_bytes)
    return dict(left)


def _log_dirs(move: PlannedMove) -> tuple[LogDirKey, ...]:
    return tuple((target.broker, target.path) for target in move.log_dirs if target.broker in move.receiving)
