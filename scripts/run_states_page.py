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
from kreassign.executor.state import AT_REST, STATES, TRANSITIONS
from kreassign.executor.state.move import (
    DOUBT_MS,
    LEAST_ATTEMPTS,
    PATIENCE_MS,
    RULES,
    Attempts,
    MoveRecord,
    MoveStatus,
    NextAction,
    conclude,
)
from kreassign.executor.state.phases import RunState
from kreassign.executor.throttle_ledger import ConfigKey, ConfigOverride, ConfigValue, restoration
from kreassign.model import ConfigResource, TopicPartition

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "run-states.md"

_HEAD = """\
# States of a run, of a move, of a setting to restore

This page is written by `python scripts/run_states_page.py` from the tables in `src/kreassign/executor/state/` and
`src/kreassign/executor/state/move.py`; change those instead.

The journal of a run holds its events. Folding them, in order, through these tables gives the state of the run: that is
what a process does that resumes the run after a crash, and what `kreassign status` and `kreassign watch` do.
"""


def states_page() -> str:
    """The page in Markdown."""
    return "\n".join([_HEAD, *_run(), *_move(), *_override()])


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
    """Whether the row is one of those that every state has, and that changes none."""
    return event is RunResumed or (event in _COMMON and TRANSITIONS[state, event].leads_to == {state})


def first_line(state: type[RunState]) -> str:
    """What the state is, from its docstring."""
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
        f"with growing pauses: a submission for {PATIENCE_MS // 1000} s, a cancellation until the move is over."
    )
    head = ("A move that is", "and seen", "is then, or needs")
    return ["## A move", "", *_diagram(arrows | sent | ended), "", text, "", *_table(head, rows), ""]


def _outcomes(status: MoveStatus, where: PlacementState) -> list[tuple[MoveStatus, NextAction]]:
    """What the table says of a fresh move, of one that was tried often and for long, and after a long doubt."""
    found = []
    for tries, doubtful_ms in ((0, None), (LEAST_ATTEMPTS, None), (0, 0)):
        move = PlannedMove(TopicPartition("t", 0), (0, 1), (2, 1), 0)
        record = MoveRecord(move, status, Attempts(tries), Attempts(tries), doubtful_since_ms=doubtful_ms)
        record.see(PartitionObservation(move.topic_partition, where, (), (), 0), 0)
        found.append((conclude(record, PATIENCE_MS), record))
    return [(record.status, action) for action, record in found]


def _told(status: MoveStatus, action: NextAction) -> str:
    return status.value if action is NextAction.NOTHING else f"{status.value}, {action.value} again"


def _order(status: MoveStatus, where: PlacementState) -> tuple[int, int]:
    return list(MoveStatus).index(status), list(PlacementState).index(where)


def _override() -> list[str]:
    key = ConfigKey(ConfigResource.broker(1), "leader.replication.throttled.rate")
    override = ConfigOverride(key, "before", "ours", ("earlier",))
    cases = (
        ("the value before the run", "before"),
        ("the value that the run set", "ours"),
        ("an earlier value of the run, whose successor got no answer", "earlier"),
        ("any other", "another"),
    )
    rows = [(told, _fate(override, ConfigValue(key, value))) for told, value in cases]
    rows.append(("not known, because its broker does not answer", _fate(override)))
    rows.append(
        (
            "not known, because its broker is down, and controllers were given",
            "restored: the active controller took the old value, and the broker loads it when it starts",
        )
    )
    text = (
        "A setting is to be restored from the moment that the intention to change it was written down. The run "
        "reads the present value:"
    )
    return ["## A setting to restore", "", text, "", *_table(("Present value", "what follows"), rows)]


def _fate(override: ConfigOverride, *present: ConfigValue) -> str:
    found = restoration([override], present)
    if found.restored:
        return "restored"
    if found.foreign:
        return "set by someone else: it is kept and reported, and no longer to be restored"
    if found.changes:
        return "pending: the old value is written, and read again"
    return "pending: it is tried again for a minute, then named at the end; `kreassign resume` tries once more"


def _diagram(arrows: Iterable[tuple[str, str]]) -> list[str]:
    return ["```mermaid", "stateDiagram-v2", *(f"    {start} --> {end}" for start, end in sorted(arrows)), "```"]


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    return [_line(head), "|" + "---|" * len(head), *map(_line, rows)]


def _line(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()
