"""Each rule of a sample among its neighbours at both sides of its bounds."""

from __future__ import annotations

import math
from dataclasses import fields

import numpy as np
import pytest

from kreassign.pipeline.load import rates

NAN = math.nan
USUAL: dict[str, float] = {
    "is_twice": False, "is_other_topic": False, "end_offset": 50, "size_bytes": 100,
    "end_before": 50, "end_after": 50, "has_two_after": True, "median_before": 50, "median_after": 50,
    "rise_before": 0, "rise_after": 0, "step_before": 0, "step_after": 0, "size_before": 100, "size_after": 100,
    "start_before": 0,
}  # fmt: skip
"""A sample of a log to which nothing is written."""
USUAL_CLEAN: dict[str, float] = {
    "taken_ms": 2000, "end_offset": 50, "size_bytes": 100, "ms_before": 1000, "end_before": 50, "size_before": 100,
    "end_after": 50, "end_after_next": 50,
}  # fmt: skip
TWICE, TOPIC, BEHIND, AHEAD, JUMPS, LARGER, SMALLER, ROUNDED = range(1, 9)
BEHIND_ONE, AHEAD_OF_TWO, BEHIND_LAST, FAST, GROWS = range(9, 14)


def first(*samples: dict[str, float]) -> list[int]:
    """The codes of the first rules that are broken by samples that are usual but for these values."""
    rows = [USUAL | changes for changes in samples]
    columns = {
        each.name: np.array(
            [row[each.name] for row in rows], bool if "_two_" in each.name or "is_" in each.name else float
        )
        for each in fields(rates.Neighbours)
    }
    with np.errstate(all="ignore"):
        codes = rates.first_broken(rates.FIRST_SERIES_RULES, rates.Neighbours(**columns), len(rows), 1)
    return [int(code) for code in codes]


def second(**changes: float) -> int:
    """The code of the first of the second rules that is broken."""
    columns = {name: np.array([value], float) for name, value in (USUAL_CLEAN | changes).items()}
    (code,) = rates.first_broken(rates.SECOND_SERIES_RULES, rates.CleanNeighbours(**columns), 1, BEHIND_ONE).tolist()
    return int(code)


def test_the_first_rule_that_is_broken_gives_the_code_of_each_sample() -> None:
    behind: dict[str, float] = {"end_offset": 40, "rise_after": 10}
    twice: dict[str, float] = {"is_twice": True}
    other: dict[str, float] = {"is_other_topic": True}
    assert first({}, twice, behind | other, behind, behind | twice) == [0, TWICE, TOPIC, BEHIND, TWICE]
    assert len(rates.FIRST_SERIES_RULES) == ROUNDED
    assert len(rates.SECOND_SERIES_RULES) == GROWS - ROUNDED


@pytest.mark.parametrize(("rise_after", "code"), [(13, BEHIND), (12.9, 0), (NAN, 0)])
def test_what_is_behind_comes_back_by_as_much_and_a_usual_step(rise_after: float, code: int) -> None:
    assert first({"end_offset": 40, "step_before": 3, "rise_after": rise_after}) == [code]


def test_what_is_not_below_the_median_is_not_behind() -> None:
    assert first({"end_offset": 50, "rise_after": 9}, {"end_offset": 49, "rise_after": 9}) == [0, BEHIND]


@pytest.mark.parametrize(("changes", "code"), [
    ({}, AHEAD),
    ({"rise_before": 12.9}, 0),  # it did not go ahead by as much as it comes back, and a usual step
    ({"rise_before": 13, "end_offset": 60.5}, 0),
    ({"median_after": 49.9}, 0),  # what comes after is behind what was before
    ({"median_before": NAN}, 0),
    ({"end_offset": 50, "rise_before": 13}, 0),
    ({"end_offset": 50.5, "rise_before": 3.5}, AHEAD),
    # With one sample after it, it has to be ahead by more than three times the usual growth, and one.
    ({"has_two_after": False, "end_offset": 51, "rise_before": 99}, 0),
    ({"has_two_after": False, "end_offset": 51.5, "rise_before": 99}, AHEAD),
    ({"has_two_after": False, "median_before": 48, "end_offset": 57, "rise_before": 99}, 0),
    ({"has_two_after": False, "median_before": 48, "end_offset": 57.5, "rise_before": 99}, AHEAD),
    ({"median_before": 48, "end_offset": 57, "rise_before": 99}, AHEAD),
])  # fmt: skip
def test_what_is_ahead_went_there_in_one_step_and_comes_back(changes: dict[str, float], code: int) -> None:
    assert first({"end_offset": 60, "step_after": 3, "rise_before": 13} | changes) == [code]


@pytest.mark.parametrize(("changes", "code"), [
    ({}, JUMPS),
    ({"end_after": 2_002}, 0),
    ({"end_before": 999.5, "median_before": 999.5}, 0),  # nothing was written before: any growth is the first
    ({"median_before": 998, "end_offset": 1_100}, 0),  # fifty times what came before, which is 2
    ({"median_before": 998, "end_offset": 1_100.5}, JUMPS),
    ({"median_before": NAN}, 0),
])  # fmt: skip
def test_a_last_reading_that_jumps_is_not_confirmed(changes: dict[str, float], code: int) -> None:
    usual = {"end_before": 1_000, "median_before": 999.5, "end_after": NAN, "median_after": NAN, "end_offset": 1_026}
    assert first(usual | changes) == [code]


@pytest.mark.parametrize(("changes", "code"), [
    ({"size_bytes": 1_001}, LARGER),
    ({"size_bytes": 1_000}, 0),
    ({"size_bytes": 1_001, "size_after": 101}, 0),
    ({"size_bytes": 1_011, "size_after": 101}, LARGER),
    ({"size_bytes": 1_011, "size_after": NAN}, LARGER),
    # Records weigh 2 bytes: 45 of them and one more, ten times, are 920.
    ({"size_bytes": 1_020, "end_offset": 95, "end_after": 95, "median_after": 95}, 0),
    ({"size_bytes": 1_021, "end_offset": 95, "end_after": 95, "median_after": 95}, LARGER),
    ({"size_bytes": 1_920, "end_offset": 95, "end_after": 95, "median_after": 95, "start_before": 25}, 0),
    ({"size_bytes": 1_941, "end_offset": 95, "end_after": 95, "median_after": 95, "start_before": 25}, LARGER),
    # Of nothing it is not known what a record weighs.
    ({"size_bytes": 1_001, "start_before": 50}, 0),
])  # fmt: skip
def test_a_size_jumps_by_more_than_its_records_weigh(changes: dict[str, float], code: int) -> None:
    assert first(changes) == [code]


def test_a_size_that_jumps_while_records_go_back_counts_them_too() -> None:
    back: dict[str, float] = {"end_before": 95, "median_before": 50, "size_bytes": 1_001, "start_before": 45}
    # 45 fewer, of 2 bytes each: 901 more bytes are less than 920.
    assert first(back, back | {"size_bytes": 1_021}) == [0, LARGER]


@pytest.mark.parametrize(("changes", "code"), [
    ({"size_bytes": 9.9}, SMALLER),
    ({"size_bytes": 10}, 0),
    ({"size_bytes": 9.9, "size_before": 99}, 0),
    ({"size_bytes": 9.9, "size_after": 99}, 0),
    ({"size_bytes": 9.9, "size_after": NAN}, 0),  # it does not come back
    # Records weigh 2 bytes: 4 of them and one more, ten times, are 100.
    ({"size_bytes": 9.5, "size_after": 109.5, "end_after": 54, "median_after": 54}, 0),
    ({"size_bytes": 9.5, "size_after": 110, "end_after": 54, "median_after": 54}, SMALLER),
    ({"size_bytes": 9.5, "size_after": 109.5, "end_after": 46, "median_after": 50}, 0),
    ({"size_bytes": 9.5, "size_after": 110, "end_after": 46, "median_after": 50}, SMALLER),
    ({"size_bytes": 9.5, "size_after": 209, "end_after": 54, "median_after": 54, "start_before": 25}, 0),
    ({"size_bytes": 9.5, "size_after": 210, "end_after": 54, "median_after": 54, "start_before": 25}, SMALLER),
])  # fmt: skip
def test_a_size_collapses_and_comes_back_by_more_than_its_records_weigh(changes: dict[str, float], code: int) -> None:
    assert first(changes) == [code]


@pytest.mark.parametrize(("changes", "code"), [
    ({}, 0),
    ({"end_offset": 49}, BEHIND_ONE),
    ({"end_offset": 49, "end_after": 49.9}, 0),
    ({"end_offset": 49, "end_after": NAN}, BEHIND_LAST),
    ({"end_offset": 50, "end_after": NAN}, 0),
    ({"end_offset": 51, "end_after": 50, "end_after_next": 50}, AHEAD_OF_TWO),
    ({"end_offset": 51, "end_after": 51, "end_after_next": 50}, 0),
    ({"end_offset": 51, "end_after": 50, "end_after_next": 51}, 0),
    ({"end_offset": 51, "end_after": 49, "end_after_next": 50}, 0),
    ({"end_offset": 51, "end_after": 50, "end_after_next": NAN}, 0),
    ({"end_offset": 50 + 1e8, "end_after": NAN}, 0),
    ({"end_offset": 51 + 1e8, "end_after": NAN}, FAST),
    ({"end_offset": 50 + 5e7, "end_after": NAN, "ms_before": 1_500}, 0),
    ({"end_offset": 51 + 5e7, "end_after": NAN, "ms_before": 1_500}, FAST),
    ({"size_bytes": 100 + 5e10}, 0),
    ({"size_bytes": 101 + 5e10}, GROWS),
    ({"size_bytes": 100 + 25e9, "ms_before": 1_500}, 0),
    ({"size_bytes": 101 + 25e9, "ms_before": 1_500}, GROWS),
    ({"size_bytes": 101 + 5e10, "ms_before": NAN}, 0),
])  # fmt: skip
def test_rules_among_clean_samples_at_their_bounds(changes: dict[str, float], code: int) -> None:
    assert second(**changes) == code
