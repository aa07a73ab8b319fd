from dataclasses import replace

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

PAUSES_MS = [1_039, 1_606, 3_944, 16_790, 24_309, 29_324, 29_760]
"""Of the run `run-1`, after these attempts: 1, 2, 3, 5, 6, 7 and the millionth."""


@given(st.integers(1, 10_000), st.text(max_size=30))
def test_a_pause_doubles_with_each_attempt_within_bounds_and_is_spread_a_little(attempt: int, seed: str) -> None:
    whole = min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** (attempt - 1))
    assert (1 - JITTER) * whole - 1 <= delay_ms(attempt, seed) <= (1 + JITTER) * whole + 1
    assert delay_ms(attempt, seed) == delay_ms(attempt, seed)


def test_two_runs_do_not_pause_alike() -> None:
    assert len({delay_ms(5, f"run-{number}") for number in range(20)}) > 10


def test_the_next_attempt_is_due_after_the_pause() -> None:
    attempts = Attempts()
    attempts.begin(1_000, "run-1")
    assert not attempts.is_due(1_000)
    assert attempts.is_due(1_000 + delay_ms(1, "run-1"))


def test_attempts_are_in_vain_only_after_enough_of_them_over_enough_time_and_when_the_last_one_had_its_time() -> None:
    attempts = Attempts()
    for _ in range(LEAST_ATTEMPTS):
        attempts.begin(0, "run-1")
    assert not attempts.is_in_vain(PATIENCE_MS - 1)
    assert attempts.is_in_vain(PATIENCE_MS)
    attempts.begin(PATIENCE_MS, "run-1")
    assert not attempts.is_in_vain(PATIENCE_MS + LAST_WORD_MS - 1)
    assert attempts.is_in_vain(PATIENCE_MS + LAST_WORD_MS)
    once = Attempts()
    once.begin(0, "run-1")
    assert not once.is_in_vain(10 * PATIENCE_MS)


def test_pauses_are_the_same_in_every_version_for_the_same_run_and_attempt() -> None:
    """A journal is read back with them."""
    assert [delay_ms(attempt, "run-1") for attempt in (1, 2, 3, 5, 6, 7, 1_000_000)] == PAUSES_MS
    assert delay_ms(1, "run-2") == 1_042


def test_an_attempt_changes_its_own_times_and_the_first_one_begins_them() -> None:
    attempts = Attempts(answer="no")
    attempts.begin(1_000, "run-1")
    assert attempts == Attempts(1, 1_000, 1_000, 1_000 + PAUSES_MS[0], 1, "no")
    attempts.begin(9_000, "run-1")
    assert attempts == Attempts(2, 1_000, 9_000, 9_000 + PAUSES_MS[1], 2, "no")
    attempts.restart(20_000)
    assert attempts == Attempts(2, 20_000, 20_000, 20_000, 2, "no")


def test_of_more_answers_than_attempts_the_last_words_are_kept() -> None:
    attempts = Attempts()
    attempts.answered("no")
    assert attempts == Attempts(answer="no")


def test_an_attempt_is_in_vain_after_so_many_and_so_long_and_not_one_or_one_ms_less() -> None:
    enough = Attempts(LEAST_ATTEMPTS, 0, PATIENCE_MS - LAST_WORD_MS)
    assert enough.is_in_vain(PATIENCE_MS)
    assert not enough.is_in_vain(PATIENCE_MS - 1)
    assert not replace(enough, count=LEAST_ATTEMPTS - 1).is_in_vain(PATIENCE_MS)
    assert not replace(enough, first_ms=1).is_in_vain(PATIENCE_MS)
    assert not replace(enough, last_ms=enough.last_ms + 1).is_in_vain(PATIENCE_MS)


def test_an_attempt_is_open_until_an_answer_tells_what_became_of_it() -> None:
    attempts = Attempts()
    attempts.begin(0, "run-1")
    attempts.begin(5_000, "run-1")
    attempts.answered("no")
    assert (attempts.unanswered, attempts.answer) == (1, "no")
