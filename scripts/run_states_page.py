#!/usr/bin/env python3
"""Write docs/reference/run-states.md from the tables of the executor.

python scripts/run_states_page.py
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kreassign.executor.events import PartitionObservation, PlacementState, PlannedMove, RunResumed
from kreassign.executor.state import AT_REST, TRANSITIONS, Phase
from kreassign.executor.state.move import (
    DOUBT_MS,
    MAXIMUM_SUBMISSIONS,
    RULES,
    MoveRecord,
    MoveStatus,
    NextAction,
    conclude,
)
from kreassign.executor.throttle.ledger import ConfigKey, ConfigOverride, ConfigValue, restoration
from kreassign.model import ConfigResource, TopicPartition

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "run-states.md"

_HEAD = """\
# States of a run, of a move, of an owed setting

This page is written by `python scripts/run_states_page.py` from the tables in `src/kreassign/executor/state/` and
`src/kreassign/executor/state/move.py`; change those instead.

The journal of a run holds its events. Folding them, in order, through these tables gives the state of the run: that is
what a process does that takes the run up after a crash, and what `kreassign status` and `kreassign watch` do.
"""


def states_page() -> str:
    """The page in Markdown."""
    return "\n".join([_HEAD, *_run(), *_move(), *_debt()])


def main() -> None:
    """Write the page."""
    PAGE.write_text(states_page() + "\n", encoding="utf-8")


def _run() -> list[str]:
    rows = [
        (phase.value, event.__name__, ", ".join(sorted(to.value for to in TRANSITIONS[phase, event].leads_to)))
        for phase, event in sorted(TRANSITIONS, key=lambda key: (list(Phase).index(key[0]), key[1].__name__))
        if event is not RunResumed
    ]
    arrows = {
        (phase.value, to.value)
        for (phase, event), row in TRANSITIONS.items()
        for to in row.leads_to
        if event is not RunResumed and to is not phase
    }
    rest = ", ".join(f"`{phase.value}`" for phase in Phase if phase in AT_REST)
    text = (
        f"{rest} are at rest. From every phase but `new`, taking the run up (`RunResumed`) leads back to the first "
        "phase that has something to do; that is not drawn."
    )
    return ["## A run", "", *_diagram(arrows), "", text, "", *_table(("In", "when", "the run may go to"), rows), ""]


def _move() -> list[str]:
    rows, arrows = [], set()
    for (status, where), _ in sorted(RULES.items(), key=lambda item: _order(*item[0])):
        outcomes = _outcomes(status, where)
        rows.append((status.value, where.value, "; ".join(dict.fromkeys(_told(*outcome) for outcome in outcomes))))
        arrows |= {(status.value, to.value) for to, _ in outcomes if to is not status}
    sent = {(MoveStatus.PLANNED.value, MoveStatus.SENT.value), (MoveStatus.SENT.value, MoveStatus.MOVING.value)}
    ended = {(MoveStatus.MOVING.value, MoveStatus.CANCELLING.value), (MoveStatus.PLANNED.value, "cancelled")}
    text = (
        "Beside what a look shows, three things move it on: it is `sent` or `cancelling` when that was written down, "
        "`moving` or `failed` when the controller accepts or refuses it, and `cancelled` when its run is cancelled "
        f"before it began. What looks strange is believed after {DOUBT_MS // 1000} s."
    )
    head = ("A move that is", "and seen", "is then, or needs")
    return ["## A move", "", *_diagram(arrows | sent | ended), "", text, "", *_table(head, rows), ""]


def _outcomes(status: MoveStatus, where: PlacementState) -> list[tuple[MoveStatus, NextAction]]:
    """What the table says of a fresh move, of one that was tried as often as allowed, and after a long doubt."""
    found = []
    for tries, doubtful_ms in ((0, None), (MAXIMUM_SUBMISSIONS, None), (0, 0)):
        move = PlannedMove(TopicPartition("t", 0), (0, 1), (2, 1), 0)
        record = MoveRecord(move, status, submissions=tries, recalls=tries, doubtful_since_ms=doubtful_ms)
        record.see(PartitionObservation(move.topic_partition, where, (), (), 0), 0)
        found.append((conclude(record, DOUBT_MS), record))
    return [(record.status, wish) for wish, record in found]


def _told(status: MoveStatus, wish: NextAction) -> str:
    return status.value if wish is NextAction.NOTHING else f"{status.value}, {wish.value} again"


def _order(status: MoveStatus, where: PlacementState) -> tuple[int, int]:
    return list(MoveStatus).index(status), list(PlacementState).index(where)


def _debt() -> list[str]:
    key = ConfigKey(ConfigResource.broker(1), "leader.replication.throttled.rate")
    override = ConfigOverride(key, "before", "ours", ("earlier",))
    cases = (
        ("the value before the run", "before"),
        ("ours", "ours"),
        ("one of ours that a later one was to replace, with no answer", "earlier"),
        ("any other", "another"),
    )
    rows = [(told, _fate(override, ConfigValue(key, value))) for told, value in cases]
    rows.append(("not known, because its broker does not answer", _fate(override)))
    rows.append(
        (
            "not known, because its broker is down, and controllers were given",
            "settled: the active controller took the old value, and the broker finds it when it starts",
        )
    )
    text = (
        "A setting is owed from the moment that the intention to change it was written down. While the run restores, "
        "it reads what is there:"
    )
    return ["## An owed setting", "", text, "", *_table(("What is there", "what follows"), rows)]


def _fate(override: ConfigOverride, *present: ConfigValue) -> str:
    found = restoration([override], present)
    if found.restored:
        return "settled: nothing is owed any more"
    if found.foreign:
        return "somebody else's: it stays and is told; nothing is owed any more"
    if found.changes:
        return "owed: the old value is written, and read again"
    return "owed: it is tried again for a minute, then named at the end; `kreassign resume` tries once more"


def _diagram(arrows: Iterable[tuple[str, str]]) -> list[str]:
    return ["```mermaid", "stateDiagram-v2", *(f"    {start} --> {end}" for start, end in sorted(arrows)), "```"]


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    return [_line(head), "|" + "---|" * len(head), *map(_line, rows)]


def _line(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()
