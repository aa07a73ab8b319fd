#!/usr/bin/env python3
"""Write docs/reference/run-states.md from the tables of the executor.

python scripts/run_states_page.py
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kreassign.executor.events import (
    BrokersForgotten,
    CancelRequested,
    ClockStepped,
    Event,
    HoldRequested,
    PaceRequested,
    PartitionObservation,
    PlacementState,
    PlannedMove,
    ReleaseRequested,
    RunResumed,
    StopRequested,
    ThrottleRequested,
)
from kreassign.executor.state import STATES, TRANSITIONS
from kreassign.executor.state.attempts import LEAST_ATTEMPTS, PATIENCE_MS, Attempts
from kreassign.executor.state.move import MoveRecord, NextAction
from kreassign.executor.state.move_rules import DOUBT_MS, RULES, conclude
from kreassign.executor.state.phases import RunState
from kreassign.executor.state.setting import OPEN, PROPAGATION_MS, READINGS, Conclusion, SettingEvent, SettingState
from kreassign.executor.state.setting import RULES as RULES_OF_SETTINGS
from kreassign.model import TopicPartition
from kreassign.model.run import AT_REST, MoveStatus

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "run-states.md"

_HEAD = """\
# States of a run, of a move, of a setting

This page is written by `python scripts/run_states_page.py` from the tables in `src/kreassign/executor/state/`: those of
`move.py` and `setting.py`, and the rows of a run; change those instead.

The journal of a run holds its events. Folding them, in order, through these tables gives the state of the run: that is
what a process does that resumes the run after a crash, and what `kreassign status` and `kreassign watch` do.
"""


def states_page() -> str:
    """The page in Markdown."""
    return "\n".join([_HEAD, *_run(), *_move(), *_setting()])


def main() -> None:
    """Write the page."""
    PAGE.write_text(states_page() + "\n", encoding="utf-8")


def _run() -> list[str]:
    order = {state: number for number, state in enumerate(STATES)}
    rows = [
        (
            state.phase.value,
            state.__name__,
            event.__name__,
            _names(sorted(TRANSITIONS[state, event].leads_to, key=STATES.index)),
        )
        for state, event in sorted(TRANSITIONS, key=lambda key: (order[key[0]], key[1].__name__))
        if not _is_common(state, event)
    ]
    arrows = {
        (state.__name__, to.__name__)
        for (state, event), row in TRANSITIONS.items()
        for to in row.leads_to
        if event not in _COMMON and to is not state
    }
    words = [(f"`{state.__name__}`", state.phase.value, first_line(state)) for state in STATES]
    rest = ", ".join(f"`{state.__name__}`" for state in STATES if state.phase in AT_REST)
    text = (
        f"{rest} are at rest. Not drawn: from every state but `New`, `Done` and `Cancelled`, resuming (`RunResumed`) "
        "leads to the first state that has something to do; stopping leads to `Paused` or `Restoring`; a new throttle "
        "is set by way of `Preparing` while moves are left. Other requests change only what is decided next, and no "
        "state."
    )
    table = _table(("Phase", "In", "when", "the run may go to"), rows)
    states = _table(("State", "phase", "meaning"), words)
    return ["## A run", "", *_diagram(arrows), "", text, "", *states, "", *table, ""]


_COMMON = (
    BrokersForgotten,
    RunResumed,
    StopRequested,
    HoldRequested,
    ReleaseRequested,
    CancelRequested,
    PaceRequested,
    ThrottleRequested,
    ClockStepped,
)


def _is_common(state: type[RunState], event: type[Event]) -> bool:
    """True for a row that every state has, and that changes none."""
    return event is RunResumed or (event in _COMMON and TRANSITIONS[state, event].leads_to == {state})


def first_line(state: type[RunState]) -> str:
    """First line of a state's docstring."""
    return (state.__doc__ or "").splitlines()[0]


def _names(states: Iterable[type[RunState]]) -> str:
    return ", ".join(state.__name__ for state in states)


def _move() -> list[str]:
    rows, arrows = [], set()
    for (status, where), _ in sorted(RULES.items(), key=lambda item: _order(*item[0])):
        outcomes = _outcomes(status, where)
        rows.append((status.value, where.value, "; ".join(dict.fromkeys(_told(*outcome) for outcome in outcomes))))
        arrows |= {(status.value, to.value) for to, _ in outcomes if to is not status}
    sent = {(MoveStatus.PLANNED.value, MoveStatus.SENT.value), (MoveStatus.SENT.value, MoveStatus.MOVING.value)}
    ended = {(MoveStatus.MOVING.value, MoveStatus.CANCELLING.value), (MoveStatus.PLANNED.value, "cancelled")}
    text = (
        "Beside what a poll shows, three things move it on: it is `sent` or `cancelling` when that was written down, "
        "`moving` or `failed` when the controller accepts or refuses it, and `cancelled` when its run is cancelled "
        f"before it began. What is strange is believed after {DOUBT_MS // 1000} s. What had no effect is sent again "
        f"with growing pauses: a submission for {PATIENCE_MS // 1000} s, a cancellation until the move is over, or the "
        "controller has accepted it: what leads the partition to the target after that is of others, and left alone."
    )
    head = ("A move that is", "and seen", "is then, or needs")
    return ["## A move", "", *_diagram(arrows | sent | ended), "", text, "", *_table(head, rows), ""]


def _outcomes(status: MoveStatus, where: PlacementState) -> list[tuple[MoveStatus, NextAction]]:
    """Outcomes in the table of a fresh move, of one after many attempts, and of one after a long doubt."""
    found = []
    for tries, doubtful_ms in ((0, None), (LEAST_ATTEMPTS, None), (0, 0)):
        move = PlannedMove(TopicPartition("t", 0), (0, 1), (2, 1), 0)
        attempts = (Attempts(tries, due_ms=PATIENCE_MS) for _ in ("sent", "cancelled"))
        record = MoveRecord(move, status, *attempts, doubtful_since_ms=doubtful_ms)
        record.see(PartitionObservation(move.topic_partition, where, (), (), 0), 0)
        found.append((conclude(record, PATIENCE_MS), record))
    return [(record.status, action) for action, record in found]


def _told(status: MoveStatus, action: NextAction) -> str:
    return status.value if action is NextAction.NOTHING else f"{status.value}, {action.value} again"


def _order(status: MoveStatus, where: PlacementState) -> tuple[int, int]:
    return list(MoveStatus).index(status), list(PlacementState).index(where)


def _setting() -> list[str]:
    steps = [
        (event.value, *(RULES_OF_SETTINGS[event].get(state, state).value for state in _IN_ORDER))
        for event in SettingEvent
    ]
    arrows = {
        (start.value.replace(" ", "_"), end.value.replace(" ", "_"))
        for steps in RULES_OF_SETTINGS.values()
        for start, end in steps.items()
        if start is not end and (start in OPEN or start is SettingState.UNCHANGED)
    }
    readings = [
        (seen.value, *row[:-1], row.certain if Conclusion.DOUBT in row[2:] else "") for seen, row in READINGS.items()
    ]
    columns = ("in force", "intended or restoring", "in force, at the end", "intended or restoring, at the end")
    ended = ", ".join(
        f"`{state}`" for state in SettingState if state not in OPEN and state is not SettingState.UNCHANGED
    )
    text = (
        f"A setting is to be restored while it is {', '.join(f'`{state}`' for state in _IN_ORDER[:-1])} or "
        f"`{_IN_ORDER[-1]}`. One that has ended ({ended}) begins again when another change of it is written down."
    )
    doubts = (
        "A doubt stops new moves, and passes with a value as set. Once the value is read so again "
        f"{PROPAGATION_MS // 1000} s later, others have certainly changed it: that is reported, and at the end the "
        "last column says what follows. A value that could not be read changes nothing: at the end it is tried again "
        "for a minute, then the setting is named; `kreassign resume` tries once more."
    )
    return [
        *("## A setting of the throttle", "", *_diagram(arrows), "", text, ""),
        *_table(("What happens", *(f"to a setting {state}" for state in _IN_ORDER)), steps),
        *("", doubts, ""),
        *_table(("Value read", *columns, "once certain"), readings),
    ]


_IN_ORDER = tuple(state for state in SettingState if state in OPEN)


def _diagram(arrows: Iterable[tuple[str, str]]) -> list[str]:
    return ["```mermaid", "stateDiagram-v2", *(f"    {start} --> {end}" for start, end in sorted(arrows)), "```"]


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    return [_line(head), "|" + "---|" * len(head), *map(_line, rows)]


def _line(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()
