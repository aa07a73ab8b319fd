"""How far a run is, move by move and in total: folds the journal's sightings into figures to show. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from kreassign.executor.eta import Estimate, Sample, estimate, recent, total
from kreassign.executor.events import ClusterSeen, Event
from kreassign.executor.machine import Execution, Phase
from kreassign.executor.moves import ACTIVE, MoveRecord, MoveStatus
from kreassign.model import TopicPartition


@dataclass(frozen=True, slots=True)
class MoveProgress:
    """One move: all its copies together."""

    topic_partition: TopicPartition
    original: tuple[int, ...]
    target: tuple[int, ...]
    status: MoveStatus
    estimate: Estimate
    problem: str | None


@dataclass(frozen=True, slots=True)
class Progress:
    """A run at one moment. `moves` has those that copy something, in the order of the plan.

    `overall` sums the moves; its `eta_s` is that of the broker that will be filled last: what is left for a broker
    comes in at that broker's rate, while single copies wait for each other. `finished_count` and `failed_count` are
    of all `move_count` moves, also those that only change an order. `outlook` is what the run waits for, and what will
    not fit into its hours.
    """

    phase: Phase
    at_ms: int
    started_ms: int
    overall: Estimate
    moves: tuple[MoveProgress, ...]
    move_count: int
    finished_count: int
    failed_count: int
    outlook: tuple[str, ...] = ()


class ProgressMeter:
    """Follows an execution. Call `follow` after each event that the execution has handled."""

    def __init__(self, execution: Execution) -> None:
        self._execution = execution
        self._samples: dict[TopicPartition, tuple[Sample, ...]] = {}
        self._totals: tuple[Sample, ...] = ()
        self._received: dict[int, tuple[Sample, ...]] = {}
        self._at_ms = 0

    def follow(self, event: Event) -> None:
        """Take in an event; only looks at the cluster bring new figures."""
        self._at_ms = event.at_ms
        if not isinstance(event, ClusterSeen):
            return
        copying = self._copying()
        now = {partition: _sample(record, event.at_ms) for partition, record in copying.items()}
        # The time before the first byte says nothing of how fast the copies go.
        begun = [partition for partition, record in copying.items() if record.copies]
        for partition in begun:
            self._samples[partition] = recent((*self._samples.get(partition, ()), now[partition]))
        if begun:
            self._totals = recent((*self._totals, total([*now.values()])))
            for broker, sample in _by_receiver(copying.values(), event.at_ms).items():
                self._received[broker] = recent((*self._received.get(broker, ()), sample))

    def progress(self) -> Progress:
        """Where the run stands."""
        records = self._execution.records.values()
        moves = tuple(self._move_progress(record) for record in self._copying().values())
        return Progress(
            phase=self._execution.phase,
            at_ms=self._at_ms,
            started_ms=self._execution.started_ms,
            overall=self._overall(moves),
            moves=moves,
            move_count=len(records),
            finished_count=sum(record.status is MoveStatus.COMPLETE for record in records),
            failed_count=sum(record.status is MoveStatus.FAILED for record in records),
            outlook=self._execution.outlook,
        )

    def _copying(self) -> dict[TopicPartition, MoveRecord]:
        return {partition: record for partition, record in self._execution.records.items() if record.move.adding}

    def _move_progress(self, record: MoveRecord) -> MoveProgress:
        move = record.move
        samples = self._samples.get(move.topic_partition) or [_sample(record, self._at_ms)]
        return MoveProgress(
            move.topic_partition, move.original, move.target, record.status, estimate(samples), record.problem
        )

    def _overall(self, moves: tuple[MoveProgress, ...]) -> Estimate:
        if not self._totals:
            return Estimate(0, sum(move.estimate.left_bytes or 0 for move in moves))
        filling = [estimate(samples) for samples in self._received.values()]
        ends = [broker.eta_s for broker in filling if broker.left_bytes != 0]
        known = [eta_s for eta_s in ends if eta_s is not None]
        together = estimate(self._totals)
        return replace(together, eta_s=max(known, default=0.0) if len(known) == len(ends) else None)


def _by_receiver(records: Iterable[MoveRecord], at_ms: int) -> dict[int, Sample]:
    """What each broker has got and still gets, over all moves."""
    received: dict[int, list[Sample]] = {}
    for record in records:
        for broker, sample in _copy_samples(record, at_ms).items():
            received.setdefault(broker, []).append(sample)
    return {broker: total(samples) for broker, samples in received.items()}


def _sample(record: MoveRecord, at_ms: int) -> Sample:
    """All copies of a move as one."""
    return replace(total([*_copy_samples(record, at_ms).values()]), at_ms=at_ms)


def _copy_samples(record: MoveRecord, at_ms: int) -> dict[int, Sample]:
    """Each new copy of a move. A move at its end has nothing left; one not begun has all before it."""
    if record.status not in ACTIVE:
        left: dict[int, int | None] = dict.fromkeys(record.move.adding, 0)
    else:
        left = dict.fromkeys(record.move.adding, record.move.size_bytes)
        left |= {copy.broker: copy.left_bytes for copy in record.copies}
    return {broker: Sample(at_ms, done, left[broker]) for broker, done in record.bytes_received.items()}
