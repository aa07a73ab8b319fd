"""Loads that a plan may not rest on where loads are required."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kreassign.errors import InputError
from kreassign.model.cluster import TopicPartition
from kreassign.model.load import LEAST_MEASURED_S, DoubtfulLoad, LoadBasis
from kreassign.model.text import HOUR_MS

NOW_MS = 100 * HOUR_MS
FRESH = LoadBasis("mean", taken_ms=NOW_MS, partitions=9)
COLLECT = "collect samples for a whole day without gaps, run `kreassign load` and plan again"
SNAPSHOT = "take the snapshot again with `--measure-for 60`"
MEASURE = "measure for longer, with `--measure-for 60`"
LEAVE_OUT = "or leave out --require-load (`require_load`)"
FIRST = "t-0 (why 0), t-1 (why 1), t-2 (why 2)"
PRIORS = f"{LEAVE_OUT} to plan with priors"


def doubtful(count: int, *, named: int | None = None) -> LoadBasis:
    """Loads of which so many are doubtful, half of them for another reason."""
    names = tuple(
        DoubtfulLoad(TopicPartition("t", number), f"why {number}", "topic", 1.5)
        for number in range(count if named is None else named)
    )
    return replace(FRESH, reasons={"short": count // 2, "gaps": count - count // 2}, doubtful=names)


@pytest.mark.parametrize(("basis", "said"), [
    (replace(FRESH, taken_ms=0), f"the loads are 100 hours old; {COLLECT}, or allow it with --max-load-age"),
    (replace(FRESH, last_hour_ms=NOW_MS - 28 * HOUR_MS),
     f"the loads are 28 hours old; {COLLECT}, or allow it with --max-load-age"),
    (replace(FRESH, source="snapshot", taken_ms=NOW_MS - 3 * HOUR_MS),
     f"the loads are 3 hours old; {SNAPSHOT}, or allow it with --max-load-age"),
    (replace(FRESH, unsized=1), f"the sizes of 1 of 9 partitions are unknown; {COLLECT}"),
    (replace(FRESH, source="snapshot", unsized=9), f"the sizes of 9 of 9 partitions are unknown; {SNAPSHOT}"),
    (replace(FRESH, source="cluster", measured_for_s=7.0),
     f"the loads were measured for 7 s only; {MEASURE}, {LEAVE_OUT}"),
    (replace(FRESH, source="cluster", measured_for_s=59.5),
     f"the loads were measured for 59.5 s only; {MEASURE}, {LEAVE_OUT}"),
    (doubtful(1), f"the loads of 1 of 9 partitions are doubtful: t-0 (why 0); {COLLECT}, {PRIORS}"),
    (doubtful(3), f"the loads of 3 of 9 partitions are doubtful: {FIRST}; {COLLECT}, {PRIORS}"),
    (doubtful(4), f"the loads of 4 of 9 partitions are doubtful: {FIRST} and 1 more; {COLLECT}, {PRIORS}"),
    (replace(doubtful(9, named=5), source="cluster"),
     f"the loads of 9 of 9 partitions are doubtful: {FIRST} and 6 more; {MEASURE}, {PRIORS}"),
])  # fmt: skip
def test_what_is_wrong_with_loads_is_told_with_what_to_do(basis: LoadBasis, said: str) -> None:
    with pytest.raises(InputError) as refused:
        basis.require(NOW_MS, 3_600)
    assert str(refused.value) == said


def test_of_several_faults_the_age_comes_first_and_doubt_last() -> None:
    basis = replace(doubtful(1), taken_ms=0, unsized=1, measured_for_s=1.0)
    for cure, word in (
        (basis, "hours old"),
        (replace(basis, taken_ms=NOW_MS), "sizes"),
        (replace(basis, taken_ms=NOW_MS, unsized=0), "measured for 1 s"),
        (replace(basis, taken_ms=NOW_MS, unsized=0, measured_for_s=None), "doubtful"),
    ):
        with pytest.raises(InputError, match=word):
            cure.require(NOW_MS, 3_600)


@pytest.mark.parametrize("basis", [
    FRESH,
    replace(FRESH, taken_ms=NOW_MS - HOUR_MS),
    replace(FRESH, taken_ms=0, last_hour_ms=NOW_MS - HOUR_MS),
    replace(FRESH, source="cluster", measured_for_s=LEAST_MEASURED_S),
    replace(FRESH, reasons={"short": 0}, assumed_reads=3),
])  # fmt: skip
def test_loads_that_are_known_and_new_enough_are_taken(basis: LoadBasis) -> None:
    basis.require(NOW_MS, 3_600)


def test_loads_may_be_of_any_age_unless_somebody_says_otherwise() -> None:
    replace(FRESH, taken_ms=0).require(NOW_MS)


@pytest.mark.parametrize(("taken_ms", "last_hour_ms", "oldest_s", "is_stale"), [
    (40_000, None, 60, False), (39_999, None, 60, True), (0, 40_000, 60, False), (90_000, 39_999, 60, True),
    (0, 0, None, False), (99_000, 0, 60, True), (99_999, None, 0, True), (100_000, None, 0, False),
])  # fmt: skip
def test_loads_are_as_old_as_the_last_that_was_measured(
    taken_ms: int, last_hour_ms: int | None, oldest_s: float | None, is_stale: bool
) -> None:
    basis = LoadBasis("mean", taken_ms, 9, last_hour_ms)
    assert basis.measured_ms == (taken_ms if last_hour_ms is None else last_hour_ms)
    assert basis.is_stale(100_000, oldest_s) is is_stale


@pytest.mark.parametrize(("measured_for_s", "is_glimpse"), [(None, False), (0.0, True), (59.9, True), (60.0, False)])
def test_rates_of_less_than_a_minute_are_a_glimpse(measured_for_s: float | None, is_glimpse: bool) -> None:
    assert replace(FRESH, measured_for_s=measured_for_s).is_glimpse is is_glimpse


def test_doubtful_loads_are_counted_over_all_reasons() -> None:
    assert [doubtful(count).doubtful_count for count in (0, 1, 5)] == [0, 1, 5]


def test_a_doubtful_load_is_named_as_far_as_a_message_has_room() -> None:
    assert str(DoubtfulLoad(TopicPartition("t" * 50, 0), "short", "topic", 1.5)) == f"{'t' * 40}… (short)"
