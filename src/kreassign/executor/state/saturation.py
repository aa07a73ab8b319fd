"""When a broker has enough in flight: known by what the brokers of this run got done between two looks.

A broker must not run dry before the next look, or it stands idle while moves wait; more than that only makes all its
copies slower. How fast brokers are shows by itself, whatever limits them: a throttle, a network, a disk.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from kreassign.executor.scheduling import Candidate, Saturation, SaturationThreshold
from kreassign.executor.state.execution import Execution
from kreassign.executor.state.move import MoveRecord
from kreassign.executor.state.move_index import source_of

COPIES = 2
"""Of two copies that end one after the other, one goes on at the full rate until the next look."""

LOOKS = 4
"""What is in flight lasts for so many looks: sizes differ, and a copy may wait for its other end."""

LEAST_BYTES = 128_000_000
"""Where nothing has been measured yet."""

FADING = 0.9
"""Of the most that was ever done between two looks, so much counts at the next one: rates may fall."""


def note(run: Execution, before: Iterable[tuple[MoveRecord, dict[int, int]]]) -> None:
    """Take in how far the copies came since the look before, given what each broker had received then."""
    done: Counter[tuple[str, int]] = Counter()
    for record, had in before:
        source, has = source_of(record), record.bytes_received
        for broker in record.move.adding:
            gained = max(0, has[broker] - had.get(broker, 0))
            done["source", source] += gained
            done["destination", broker] += gained
    run.most_done_bytes = max(FADING * run.most_done_bytes, *done.values(), 0)


def busy(run: Execution, in_flight: Iterable[Candidate]) -> Saturation | None:
    """Which brokers have enough to do now; None if nobody cares."""
    if run.pace.is_eager:
        return None
    return Saturation.of(SaturationThreshold(COPIES, max(LEAST_BYTES, int(LOOKS * run.most_done_bytes))), in_flight)
