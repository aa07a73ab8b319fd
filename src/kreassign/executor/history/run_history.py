"""What a run did, as plain values: the fold of its journal. For status, reports and audits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kreassign.executor.events import Event, LogDirTarget, Operator
from kreassign.executor.history.snapshots import read_view
from kreassign.executor.scheduling import NO_LIMITS, Pace
from kreassign.executor.state import Machine, MoveRecord, MoveStatus, RunView
from kreassign.executor.throttle.rates import ThrottleRates


@dataclass(frozen=True, slots=True)
class MoveHistory:
    """What became of one partition. Times are ms since the epoch; `size_bytes` is of one copy before the run.

    `reached` are the replicas that it has, but for what is under way: in a move by steps, those after the last step.
    `log_dirs` are the copies of which the plan names the directory. `topic_id` is None where nobody knew it.
    `former_targets` are those that it had, in their order, before it was planned again because a destination was lost.
    """

    topic: str
    partition: int
    original: tuple[int, ...]
    target: tuple[int, ...]
    adding: tuple[int, ...]
    size_bytes: int
    submitted_ms: int | None
    completed_ms: int | None
    bytes_copied: int
    status: str
    problem: str | None
    reached: tuple[int, ...] = ()
    log_dirs: tuple[LogDirTarget, ...] = ()
    topic_id: str | None = None
    former_targets: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class RunHistory:
    """What became of a run.

    `state` is the phase it is in: `done`, `cancelled` and `failed` are ends, `paused` was left on purpose; any other
    is going on, or was when its process died. A run that `is_held` goes on, but starts nothing. `verdicts` is what
    guards say at the moment; one of them may have ended the run in such a way that it `wants_rollback`.
    `pace` is its order, limits and hours as they are now, `outlook` what
    it waits for and what will not fit into its hours.
    `was_throttle_kept` unless somebody is known to have changed the throttle while the run had it set.
    `throttle_residue` has a sentence per setting that the run still has to restore. `operators` are who started it and
    who resumed it, each once; `plan_id` is that of the plan's facts file. `lease` is how it stands with the lease of
    its cluster, "" where nobody asked for one.
    """

    run_id: str
    cluster_id: str
    started_ms: int
    ended_ms: int | None
    state: str
    rates: ThrottleRates
    moves: tuple[MoveHistory, ...]
    throttle_residue: tuple[str, ...]
    problems: tuple[str, ...]
    is_held: bool = False
    was_throttle_kept: bool = True
    wants_rollback: bool = False
    verdicts: tuple[str, ...] = ()
    pace: Pace = NO_LIMITS
    outlook: tuple[str, ...] = ()
    plan_id: str = ""
    operators: tuple[Operator, ...] = ()
    lease: str = ""

    @property
    def throttle_bytes_per_s(self) -> int | None:
        """The rate of every broker without one of its own, for reports; None for no limit."""
        return self.rates.bytes_per_s

    @property
    def bytes_copied(self) -> int:
        """Bytes that reached new brokers, all moves together."""
        return sum(move.bytes_copied for move in self.moves)


def fold(events: Iterable[Event]) -> RunView:
    """The run that these events, in this order, led to."""
    machine = Machine()
    for event in events:
        machine.replay(event)
    return machine.view


def history(run: RunView) -> RunHistory:
    """What is known of a run."""
    return RunHistory(
        run_id=run.run_id,
        cluster_id=run.cluster_id,
        started_ms=run.started_ms,
        ended_ms=run.ended_ms,
        state=run.phase.value,
        rates=run.rates,
        moves=tuple(_move(record) for record in run.records.values()),
        throttle_residue=run.residue,
        problems=(*run.problems, *run.findings),
        is_held=run.is_held,
        was_throttle_kept=run.was_throttle_kept,
        wants_rollback=run.wants_rollback,
        verdicts=tuple(map(str, run.verdicts)),
        pace=run.pace,
        outlook=run.outlook,
        plan_id=run.plan_id,
        operators=run.operators,
        lease=run.lease,
    )


def read_history(path: Path, *, is_left: bool = False) -> RunHistory:
    """What a journal says of its run. Raises JournalDamaged, or InputError when there is none.

    Where the run `is_left`, no process executes it, and what its last one saw is not told as present.
    """
    run = read_view(path)
    return history(run.as_left if is_left else run)


def _move(record: MoveRecord) -> MoveHistory:
    move = record.move
    return MoveHistory(
        topic=move.topic_partition.topic,
        partition=move.topic_partition.partition,
        original=move.original,
        target=move.target,
        adding=move.adding,
        size_bytes=move.size_bytes,
        submitted_ms=record.submitted_ms,
        completed_ms=record.completed_ms,
        bytes_copied=record.bytes_copied,
        status=record.status.value,
        problem=record.problem,
        reached=move.target if record.status is MoveStatus.COMPLETE else record.step.original,
        log_dirs=move.log_dirs,
        topic_id=move.topic_id,
        former_targets=tuple(one.before for one in record.replans),
    )
