"""Samples of several partitions in one array: before, after and so far."""

from __future__ import annotations

import math

import numpy as np
import pytest

from kreassign.pipeline.load.rates import Series, known_at, run_starts

NAN = math.nan
THREE = Series.of(np.array([7, 7, 7, 2, 9, 9]))
"""Partitions of three samples, one and two."""
VALUES = np.array([1.0, 2.0, NAN, 4.0, 5.0, 6.0])
NONE = Series.of(np.zeros(0, np.int64))


def same(found: np.ndarray, expected: list[float]) -> None:
    np.testing.assert_array_equal(found, np.array(expected))


def test_a_series_says_where_each_partition_begins_and_ends() -> None:
    same(THREE.begin, [0, 0, 0, 3, 4, 4])
    same(THREE.end, [3, 3, 3, 4, 6, 6])
    same(THREE.starts, [0, 3, 4])
    of_two = THREE.only(np.array([True, False, True, False, True, True]))
    same(of_two.begin, [0, 0, 2, 2])
    same(of_two.end, [2, 2, 4, 4])
    same(of_two.starts, [0, 2])


@pytest.mark.parametrize(("place", "before", "after"), [
    (1, [NAN, 1, 2, NAN, NAN, 5], [2, NAN, NAN, NAN, 6, NAN]),
    (2, [NAN, NAN, 1, NAN, NAN, NAN], [NAN] * 6),
    (3, [NAN] * 6, [NAN] * 6),
    (9, [NAN] * 6, [NAN] * 6),
])  # fmt: skip
def test_neighbours_are_those_of_the_same_partition(place: int, before: list[float], after: list[float]) -> None:
    same(THREE.before(VALUES, place), before)
    same(THREE.after(VALUES, place), after)
    long = Series.of(np.zeros(6, np.int64))
    same(long.before(VALUES, place), [NAN] * min(place, 6) + VALUES[: max(6 - place, 0)].tolist())
    same(long.after(VALUES, place), VALUES[place:].tolist() + [NAN] * min(place, 6))


def test_the_nearest_neighbour_is_meant_where_no_other_is_named() -> None:
    same(THREE.before(VALUES), THREE.before(VALUES, 1).tolist())
    same(THREE.after(VALUES), THREE.after(VALUES, 1).tolist())
    chosen = np.array([False, True, True, False, True, True])
    same(THREE.after_among(chosen, VALUES), [2, NAN, NAN, NAN, 6, NAN])


@pytest.mark.parametrize(("chosen", "first", "second"), [
    ([0, 1, 2, 3, 4, 5], [20, 30, NAN, NAN, 60, NAN], [30, NAN, NAN, NAN, NAN, NAN]),
    ([2, 5], [30, 30, NAN, NAN, 60, NAN], [NAN] * 6),
    ([0, 2, 3, 4], [30, 30, NAN, NAN, NAN, NAN], [NAN] * 6),
    ([1, 2], [20, 30, NAN, NAN, NAN, NAN], [30, NAN, NAN, NAN, NAN, NAN]),
    ([], [NAN] * 6, [NAN] * 6),
])  # fmt: skip
def test_of_chosen_samples_those_after_each_are_counted(
    chosen: list[int], first: list[float], second: list[float]
) -> None:
    values, mask = np.arange(10.0, 70.0, 10.0), np.isin(np.arange(6), chosen)
    same(THREE.after_among(mask, values), first)
    same(THREE.after_among(mask, values, 2), second)
    same(THREE.after_among(mask, values, 3), [NAN] * 6)


def test_sums_and_maxima_begin_again_with_each_partition() -> None:
    same(THREE.sum_so_far(np.array([1, 2, 3, 10, 100, 200])), [1, 3, 6, 10, 100, 300])
    same(THREE.largest_so_far(np.array([5, 2, 7, 1, 2**31, 0])), [5, 5, 7, 1, 2**31, 2**31])


def test_extremes_of_a_partition_are_over_all_its_samples() -> None:
    values = np.array([3.0, NAN, 1.0, NAN, 2.0, 8.0])
    same(THREE.largest(values), [3, 3, 3, NAN, 8, 8])
    same(THREE.least(values), [1, 1, 1, NAN, 2, 2])


def test_without_samples_there_is_nothing() -> None:
    nothing, none = np.zeros(0), np.zeros(0, np.int64)
    assert NONE.starts.tolist() == []
    for found in (
        NONE.before(nothing), NONE.after(nothing), NONE.after_among(none.astype(bool), nothing), NONE.sum_so_far(none),
        NONE.largest_so_far(none), NONE.largest(nothing), NONE.least(nothing), NONE.only(none.astype(bool)).begin,
    ):  # fmt: skip
        assert found.tolist() == []


def test_a_run_begins_where_any_of_its_keys_is_another() -> None:
    one, two = np.array([1, 1, 1, 2, 2]), np.array([5, 5, 6, 6, 6])
    assert run_starts(one).tolist() == [True, False, False, True, False]
    assert run_starts(one, two).tolist() == run_starts(two, one).tolist() == [True, False, True, True, False]
    assert run_starts(np.zeros(0, np.int64)).tolist() == []


def test_values_of_chosen_samples_are_put_at_their_places() -> None:
    same(known_at(np.array([False, True, True, False]), np.array([1.5, 2.5])), [NAN, 1.5, 2.5, NAN])
