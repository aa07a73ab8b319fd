"""A row of the table of transitions."""

from __future__ import annotations

from kreassign.executor.events import TimePassed
from kreassign.executor.state.phases import New, Paused, RunState
from kreassign.executor.state.run import Run
from kreassign.executor.state.transition import Next, Row, row


def stay(_: Run, state: RunState, __: TimePassed) -> Next:
    return Next(state)


def test_a_row_is_a_handler_and_the_states_to_which_it_may_lead() -> None:
    assert row(stay, New, Paused) == Row(stay, frozenset({New, Paused}))
    assert row(stay) == Row(stay, frozenset())


def test_nothing_is_ordered_unless_a_handler_says_so() -> None:
    assert stay(Run(), New(), TimePassed(0)) == (New(), ())
