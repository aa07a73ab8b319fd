"""A run as text and back, as it is between two events: so that it need not be folded from its beginning.

A snapshot only saves time. What it says follows from the events before it, and where it cannot be read, because another
version wrote it or it is damaged, the events are read instead. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kreassign.executor import tagged_json
from kreassign.executor.state.move_index import MoveIndex, candidate
from kreassign.executor.state.run import Run
from kreassign.model import TopicPartition


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A run without its index, and the moves in each place of that: the index shares its records with the run."""

    run: Run
    is_waiting: bool
    at_ms: int
    queued: tuple[TopicPartition, ...]
    in_flight: tuple[TopicPartition, ...]
    unsettled: tuple[TopicPartition, ...]
    beside: dict[str, object]


def text_of(run: Run, *, is_waiting: bool, at_ms: int, beside: dict[str, object]) -> str:
    """The text of a run, whether it waits between two polls, when its last event was, and what its reader wants too."""
    index = run.moves.index
    bare = replace(run, moves=replace(run.moves, index=MoveIndex()))
    return tagged_json.dumps(
        Snapshot(bare, is_waiting, at_ms, tuple(index.queue), tuple(index.in_flight), tuple(index.unsettled), beside)
    )


def snapshot_of(text: str) -> Snapshot:
    """The snapshot of a text, whose run has its index. Raises ValueError when this version cannot read it."""
    found: Snapshot = tagged_json.loads(text, Snapshot)
    records, index = found.run.moves.records, found.run.moves.index
    try:
        for name in found.queued:
            index.queue.add(candidate(records[name]))
        index.in_flight |= {name: records[name] for name in found.in_flight}
        index.unsettled |= {name: records[name] for name in found.unsettled}
    except LookupError as error:
        raise ValueError(f"a snapshot of a run without its move {error}") from error
    return found
