"""The words for how a run is."""

from __future__ import annotations

import pytest

from kreassign.report.text import run_state


@pytest.mark.parametrize(
    ("state", "is_active", "is_held", "in_flight", "words"),
    [
        ("moving", True, False, 3, "moving"),
        ("moving", True, True, 0, "paused"),
        ("moving", True, True, 1, "paused, 1 move in flight goes on"),
        ("moving", False, True, 2, "paused, 2 moves in flight go on"),
        ("moving", False, False, 2, "moving (its process is gone)"),
        ("paused", False, False, 0, "paused"),
        ("awaiting lease", False, False, 0, "awaiting lease"),
        ("unreadable", False, False, 0, "unreadable"),
    ],
)
def test_a_run_that_goes_on_is_as_its_operator_left_it(
    state: str, is_active: bool, is_held: bool, in_flight: int, words: str
) -> None:
    found = run_state(state, is_active=is_active, is_held=is_held, has_ended=False, in_flight=in_flight)
    assert found == words


@pytest.mark.parametrize("state", ["done", "failed", "cancelled"])
def test_a_run_that_has_ended_is_as_it_ended(state: str) -> None:
    assert run_state(state, is_active=False, is_held=True, has_ended=True, in_flight=0) == state
