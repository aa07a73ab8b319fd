"""Size of a long run's journal, and the cost of reading it: a week with a hundred moves in flight.

The cluster is only played: every poll shows other bytes of every copy, every health check other free space in every
log directory, and a move that is over is followed by another one. The machine, the journal, the sampling of progress
and the snapshots are those of a run; only what a run asks of brokers is left out. But for the last minutes, polls that
show nothing new go straight into the journal, up to sixty at a time; the run would take each of them in. `status` and
resuming are measured in processes of their own.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bench.process import KREASSIGN, Run, run
from kreassign.executor.events import (
    CopyProgress,
    Event,
    HealthObserved,
    LeadersElected,
    MovesObserved,
    MovesSubmitted,
    PartitionObservation,
    PlacementState,
    PlannedMove,
    RunStarted,
    SubmissionIntended,
    TimePassed,
    VerdictsRecorded,
)
from kreassign.executor.guards import Health, LogDirSpace, guard_settings
from kreassign.executor.history.run_history import EVERY_MS, SnapshotKeeper, latest_start
from kreassign.executor.instructions import (
    CheckHealth,
    ElectLeaders,
    Instruction,
    ObserveMoves,
    RecordVerdicts,
    SubmitMoves,
    Wait,
)
from kreassign.executor.journal import Journal
from kreassign.executor.runner import ProgressSampling
from kreassign.executor.state import Machine
from kreassign.model import TopicPartition
from kreassign.model.pace import Cap, Caps, Pace
from kreassign.model.throttle import NO_THROTTLE

DAYS = (1, 7)
BROKERS, LOG_DIRS = 20, 4
IN_FLIGHT, MOVES = 100, 1_000
LASTS_S = 70_000
"""Each move: so 100 of a thousand are in flight all the time for a week, and then the last of them have begun."""
SIZE_BYTES = 3 * 10**11
DAY_S = 86_400
WHOLLY_S = 300
"""The last minutes are played poll by poll."""
MOST_SKIPPED = 60
SELDOM_MS = 3_600_000


@dataclass(slots=True)
class PlayedCluster:
    """Answers of a cluster."""

    moves: dict[TopicPartition, PlannedMove]
    journal: Journal
    ends_s: int
    now_s: int = 0
    begun_s: dict[TopicPartition, int] = field(default_factory=dict)
    sampling: ProgressSampling = field(default_factory=ProgressSampling)

    @property
    def now_ms(self) -> int:
        """The time, ms since the epoch."""
        return self.now_s * 1000

    def answer(self, machine: Machine, instruction: Instruction) -> Iterator[Event]:
        """The events that an instruction leads to."""
        match instruction:
            case Wait():
                if self.now_s < self.ends_s - WHOLLY_S:
                    for _ in range(self._skipped):
                        self.now_s += 1
                        self.journal.append(MovesObserved(self.now_ms, (), has_progress=False))
                self.now_s += 1
                yield TimePassed(self.now_ms)
            case ObserveMoves():
                yield self._poll(machine, instruction)
            case CheckHealth():
                yield HealthObserved(self.now_ms, self._health())
            case RecordVerdicts():
                yield VerdictsRecorded(self.now_ms, instruction.verdicts)
            case SubmitMoves():
                yield SubmissionIntended(self.now_ms, tuple(instruction.targets))
                spread = LASTS_S // IN_FLIGHT if not self.begun_s else 0
                for number, name in enumerate(instruction.targets):
                    self.begun_s[name] = self.now_s - spread * number
                yield MovesSubmitted(self.now_ms, tuple(instruction.targets))
            case ElectLeaders():
                yield LeadersElected(self.now_ms, instruction.partitions)
            case _:
                raise AssertionError(f"nobody plays {instruction}")

    def _poll(self, machine: Machine, asked: ObserveMoves) -> MovesObserved:
        records = machine.view.records
        known = {move.topic_partition: records[move.topic_partition].observation for move in asked.moves}
        over = [name for name in known if self._age_s(name) >= LASTS_S]
        self.sampling.chosen({}, (), float(self.now_s))
        is_written = self.sampling.left_bytes >= 0 or None in known.values() or len(over) > 0
        news = tuple(self._seen(name) for name in known) if is_written else ()
        chosen, has_progress = self.sampling.chosen(known, news, float(self.now_s))
        return MovesObserved(self.now_ms, chosen, has_progress=has_progress)

    @property
    def _skipped(self) -> int:
        """Number of polls before progress may be written again, less one."""
        return min(MOST_SKIPPED, max(0, int(-self.sampling.left_bytes / self.sampling.bytes_per_s)))

    def _age_s(self, name: TopicPartition) -> int:
        return self.now_s - self.begun_s.get(name, self.now_s)

    def _seen(self, name: TopicPartition) -> PartitionObservation:
        move = self.moves[name]
        if name not in self.begun_s:
            return PartitionObservation(name, PlacementState.UNTOUCHED, move.original, move.original, move.original[0])
        if self._age_s(name) >= LASTS_S:
            return PartitionObservation(name, PlacementState.ARRIVED, move.target, move.target, move.target[0])
        done = SIZE_BYTES * self._age_s(name) // LASTS_S + hash((name, self.now_s)) % 10_000
        copies = (CopyProgress(move.adding[0], done, SIZE_BYTES - done),)
        whole = move.reassignment.replicas
        return PartitionObservation(name, PlacementState.MOVING, whole, move.original, move.original[0], copies)

    def _health(self) -> Health:
        space = tuple(
            LogDirSpace(broker, f"/var/lib/kafka/d{number}", 8 * 10**12, 5 * 10**12 - 10**6 * self.now_s - broker)
            for broker in range(BROKERS)
            for number in range(LOG_DIRS)
        )
        return Health(tuple(range(BROKERS)), log_dir_space=space)


def play(state_dir: Path, days: int) -> Path:
    """The journal of a run that was killed after so many days."""
    moves = {TopicPartition(f"orders-{number // 10:03}", number % 10): number for number in range(MOVES)}
    planned = tuple(
        PlannedMove(name, (number % 20, (number + 1) % 20, (number + 2) % 20),
                    (number % 20, (number + 1) % 20, (number + 3) % 20), SIZE_BYTES)
        for name, number in moves.items()
    )  # fmt: skip
    pace = Pace(caps=Caps(cluster=Cap(moves=IN_FLIGHT)), is_eager=True)
    begun = RunStarted(0, "week", "bench", planned, NO_THROTTLE, tuple(range(BROKERS)), guard_settings(), pace)
    machine = Machine()
    with Journal.create(state_dir, begun) as journal:
        cluster = PlayedCluster({move.topic_partition: move for move in planned}, journal, days * DAY_S)
        keeper = SnapshotKeeper(journal, machine.snapshot, every_ms=SELDOM_MS)
        todo = deque(machine.handle(begun))
        while cluster.now_s < cluster.ends_s:
            keeper.every_ms = SELDOM_MS if cluster.now_s < cluster.ends_s - WHOLLY_S else EVERY_MS
            for event in cluster.answer(machine, todo.popleft()):
                if not isinstance(event, TimePassed):
                    journal.append(event)
                todo.extend(machine.handle(event))
                keeper.follow(event, machine.view)
        assert len(machine.view.in_flight) == IN_FLIGHT, machine.view.problems
        return journal.path


def measure() -> None:
    """One row per length."""
    print("| days | MB | MB a day | rows | polls | `status`: s | CPU s | MiB | resuming: s | CPU s | MiB |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for days in DAYS:
        with tempfile.TemporaryDirectory() as folder:
            path = play(Path(folder), days)
            size = path.stat().st_size
            status = _kreassign("status", "week", "--state-dir", folder)
            resumed = run([sys.executable, "-m", "bench.journal_week", str(path)])
            rows = json.loads(resumed.output)
            print(
                f"| {days} | {size / 1e6:.1f} | {size / 1e6 / days:.1f} | {rows:,} | {days * DAY_S:,} "
                f"| {status.wall_s:.2f} | {status.cpu_s:.2f} | {status.peak_mib:.0f} "
                f"| {resumed.wall_s:.2f} | {resumed.cpu_s:.2f} | {resumed.peak_mib:.0f} |",
                flush=True,
            )


def main() -> None:
    """Resume the run of a journal as `kreassign resume` does, as far as its first request."""
    path = Path(sys.argv[1])
    start = latest_start(path)
    journal, events = Journal.resume(path, "bench", start.position)
    with journal:
        for event in events:
            start.machine.replay(event)
    assert len(start.machine.view.in_flight) == IN_FLIGHT
    print(json.dumps(journal.position.sequence))


def _kreassign(*arguments: str) -> Run:
    return run([*KREASSIGN, *arguments])


if __name__ == "__main__":
    main()
