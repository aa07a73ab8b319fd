"""Number of attempts, the time of the next, and the end of trying."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kreassign.executor.state.attempts import (
    FIRST_DELAY_MS,
    JITTER,
    LAST_WORD_MS,
    LEAST_ATTEMPTS,
    LONGEST_DELAY_MS,
    PATIENCE_MS,
    Attempts,
    delay_ms,
)


@given(st.integers(1, 10_000), st.text(max_size=30))
def test_pauses_double_up_to_half_a_minute_and_are_spread_a_little(attempt: int, seed: str) -> None:
    whole = min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** (attempt - 1))
    assert (1 - JITTER) * whole - 1 <= delay_ms(attempt, seed) <= (1 + JITTER) * whole + 1


def test_pauses_are_those_of_every_earlier_version() -> None:
    """A journal is read back with them."""
    pauses_ms = {1: 1_039, 2: 1_606, 3: 3_944, 5: 16_790, 6: 24_309, 7: 29_324, 1_000_000: 29_760}
    assert {attempt: delay_ms(attempt, "run-1") for attempt in pauses_ms} == pauses_ms
    assert delay_ms(1, "run-2") == 1_042


def test_two_runs_do_not_pause_alike() -> None:
    assert len({delay_ms(5, f"run-{number}") for number in range(20)}) > 10


def test_only_the_first_attempt_starts_the_patience() -> None:
    attempts = Attempts()
    for count, at_ms in ((1, 1_000), (2, 9_000)):
        attempts.begin(at_ms, "run-1")
        due_ms = at_ms + delay_ms(count, "run-1")
        assert (attempts.is_due(due_ms - 1), attempts.is_due(due_ms)) == (False, True)
        assert (attempts.count, attempts.first_ms, attempts.unanswered) == (count, 1_000, count)
        assert (attempts.had_time(at_ms + LAST_WORD_MS - 1), attempts.had_time(at_ms + LAST_WORD_MS)) == (False, True)


def test_resume_restarts_the_patience_of_attempts() -> None:
    attempts = Attempts(2, 1_000, 9_000, 12_000, 2, "no")
    attempts.restart(20_000)
    assert attempts == Attempts(2, 20_000, 20_000, 20_000, 2, "no")


@pytest.mark.parametrize(("unanswered", "tried_ms"), [(0, 13_000), (1, 60_000)])
def test_time_in_which_a_refused_attempt_is_held_back_is_not_in_vain(unanswered: int, tried_ms: int) -> None:
    """Without an answer an attempt may still take effect all that time."""
    attempts = Attempts(2, 1_000, 9_000, 14_000, unanswered, "not now")
    assert (attempts.tried_ms(12_000), attempts.tried_ms(61_000)) == (11_000, tried_ms)
    attempts.begin(61_000, "run-1")
    assert attempts.tried_ms(62_000) == tried_ms + 1_000


def test_an_attempt_is_open_until_it_is_answered() -> None:
    attempts = Attempts(unanswered=2)
    for unanswered in (1, 0, 0):
        attempts.answered(f"no, {unanswered}")
        assert (attempts.unanswered, attempts.answer) == (unanswered, f"no, {unanswered}")


ENOUGH = Attempts(LEAST_ATTEMPTS, 0, PATIENCE_MS - LAST_WORD_MS, PATIENCE_MS)


@pytest.mark.parametrize(("attempts", "at_ms", "is_in_vain"), [
    (ENOUGH, PATIENCE_MS, True),
    (ENOUGH, PATIENCE_MS - 1, False),
    (replace(ENOUGH, count=LEAST_ATTEMPTS - 1), 10 * PATIENCE_MS, False),
    (replace(ENOUGH, first_ms=1), PATIENCE_MS, False),
    (replace(ENOUGH, last_ms=ENOUGH.last_ms + 1), PATIENCE_MS, False),
])  # fmt: skip
def test_attempts_are_in_vain_after_three_in_two_minutes(attempts: Attempts, at_ms: int, is_in_vain: bool) -> None:
    assert attempts.is_in_vain(at_ms) == is_in_vain
