"""States of a finding, and where what a look shows leads from each. Pure.

    seen ──▶ told ──▶ proposed ──▶ running ──▶ settling ──▶ closed
                ▲         │           │            │
                └─────────┴───────────┴────────────┴──▶ given up

Results of what was asked for (a plan, a run) come as events, which `memory.py` folds.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple


class State(StrEnum):
    """How far a finding has come."""

    SEEN = "seen"  # it may pass
    TOLD = "told"  # it lasts, and people know
    PROPOSED = "proposed"  # a repair is planned
    RUNNING = "running"  # the repair runs
    SETTLING = "settling"  # the repair has run; whether it helped shows after a while
    CLOSED = "closed"  # it is over
    GIVEN_UP = "given up"  # it outlasted its repair: people look into it


class Evidence(StrEnum):
    """The part of a look that moves a finding."""

    GONE = "gone"  # it is not there
    UNKNOWN = "unknown"  # what shows it could not be read
    FRESH = "fresh"  # too young to be told
    LASTING = "lasting"  # told, and too young to be proposed
    RIPE = "ripe"  # due for a proposal


class NextAction(StrEnum):
    """Acts that follow besides the new state."""

    NOTHING = "nothing"
    TELL = "tell"  # that it is there
    TELL_LESS = "tell that nothing is to be repaired now"
    TELL_OVER = "tell that it is over"
    PLAN = "plan a repair, where the level says so"
    ACT = "run the repair, where the level says so and all gates are open"
    END_RUN = "end the repair, where that copies less than going on"
    MEASURE = "write down what was gained when the settling time is over, whether the finding is over or not"
    JUDGE = "plan again for what the repair did not move, else give up when the settling time is over"
    RECONSIDER = "plan a repair again when people had a day, where it is about the whole cluster"


class Step(NamedTuple):
    """Where evidence leads from a state."""

    to: State
    action: NextAction = NextAction.NOTHING


STEPS: Mapping[tuple[State, Evidence], Step] = MappingProxyType({
    **{(state, evidence): Step(state) for state in State for evidence in Evidence},
    (State.SEEN, Evidence.GONE): Step(State.CLOSED),
    (State.SEEN, Evidence.LASTING): Step(State.TOLD, NextAction.TELL),
    (State.SEEN, Evidence.RIPE): Step(State.TOLD, NextAction.TELL),
    (State.TOLD, Evidence.GONE): Step(State.CLOSED, NextAction.TELL_OVER),
    (State.TOLD, Evidence.RIPE): Step(State.TOLD, NextAction.PLAN),
    (State.PROPOSED, Evidence.GONE): Step(State.CLOSED, NextAction.TELL_OVER),
    (State.PROPOSED, Evidence.FRESH): Step(State.TOLD, NextAction.TELL_LESS),
    (State.PROPOSED, Evidence.LASTING): Step(State.TOLD, NextAction.TELL_LESS),
    (State.PROPOSED, Evidence.RIPE): Step(State.PROPOSED, NextAction.ACT),
    (State.RUNNING, Evidence.GONE): Step(State.RUNNING, NextAction.END_RUN),
    (State.SETTLING, Evidence.GONE): Step(State.CLOSED, NextAction.TELL_OVER),
    (State.SETTLING, Evidence.UNKNOWN): Step(State.SETTLING, NextAction.MEASURE),
    (State.SETTLING, Evidence.FRESH): Step(State.TOLD, NextAction.TELL_LESS),
    (State.SETTLING, Evidence.LASTING): Step(State.TOLD, NextAction.TELL_LESS),
    (State.SETTLING, Evidence.RIPE): Step(State.SETTLING, NextAction.JUDGE),
    (State.CLOSED, Evidence.FRESH): Step(State.SEEN),
    (State.CLOSED, Evidence.LASTING): Step(State.SEEN),
    (State.CLOSED, Evidence.RIPE): Step(State.SEEN),
    (State.GIVEN_UP, Evidence.GONE): Step(State.CLOSED, NextAction.TELL_OVER),
    (State.GIVEN_UP, Evidence.RIPE): Step(State.GIVEN_UP, NextAction.RECONSIDER),
})  # fmt: skip
"""Steps by state and evidence: a finding stays as it is unless a row says otherwise."""

OPEN = frozenset(State) - {State.CLOSED}
