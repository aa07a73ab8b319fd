"""Bins of rates, and quantiles that are read from them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from kreassign.pipeline.load.hours import ERROR, ZERO_BIN, Histograms, bins_of, counted, shifts, value_of

GAMMA = 1.005 / 0.995
NAN = math.nan


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def test_a_bin_holds_what_is_between_two_powers() -> None:
    rates = np.array([0.0, 1.0, GAMMA * 0.999, GAMMA * 1.001, GAMMA**2 * 0.999, 0.999, 1 / GAMMA * 0.999])
    assert bins_of(rates).tolist() == [ZERO_BIN, 0, 1, 2, 2, 0, -1]
    assert bins_of(rates).dtype == np.int64


@pytest.mark.parametrize("rate", [5e-324, 1e-300, 1e-9, 0.3, 1.0, 2.0, 12_345.6, 1e12, 1e300])
def test_a_bin_is_read_as_a_rate_that_is_off_by_half_a_percent_at_most(rate: float) -> None:
    (found,) = value_of(bins_of(np.array([rate])))
    assert found == pytest.approx(rate, rel=ERROR * 1.0001, abs=5e-324)


def test_a_bin_is_read_as_the_value_that_is_as_far_from_both_its_ends() -> None:
    (found,) = value_of(ints(5))
    low, high = GAMMA**4, GAMMA**5
    assert (found - low) / low == pytest.approx((high - found) / high)
    assert value_of(ints(ZERO_BIN, ZERO_BIN + 400_000)).tolist() == [0.0, 0.0]
    assert value_of(ints(ZERO_BIN // 2, 0))[0] == 0.0
    assert value_of(ints(200_000)).tolist() == [math.inf]


def test_factors_shift_bins_by_whole_numbers() -> None:
    factors = np.array([1.0, GAMMA, GAMMA**3, GAMMA**1.4, GAMMA**1.6, 1 / GAMMA, 0.0, -2.0, NAN, math.inf])
    assert shifts(factors).tolist() == [0, 1, 3, 1, 2, -1, 0, 0, 0, 0]
    assert shifts(factors).dtype == np.int64


def test_bins_of_an_owner_are_added_up_in_their_order() -> None:
    owners, bins, counts = counted(ints(1, 0, 1, 1, 0), ints(5, -3, ZERO_BIN, 5, 7), ints(1, 2, 4, 8, 16))
    assert (owners.tolist(), bins.tolist(), counts.tolist()) == ([0, 0, 1, 1], [-3, 7, ZERO_BIN, 5], [2, 16, 4, 9])
    most = 2**31 - 1
    owners, bins, counts = counted(ints(most, most, 0), ints(most, -(2**31), most), ints(1, 1, 1))
    assert (owners.tolist(), bins.tolist()) == ([0, most, most], [most, -(2**31), most])
    assert [each.tolist() for each in counted(ints(), ints(), ints())] == [[], [], []]


def of(*entries: tuple[int, int, int], count: int = 3) -> Histograms:
    """Histograms of entries of an owner, a bin and a count."""
    owners, bins, counts = (ints(*column) for column in zip(*entries, strict=True)) if entries else (ints(),) * 3
    return Histograms.of(count, owners, bins, counts)


def test_each_owner_has_its_own_bins() -> None:
    found = of((2, 9, 1), (0, 4, 2), (0, 1, 3), (2, 9, 5))
    assert (found.begins.tolist(), found.bins.tolist(), found.counts.tolist()) == ([0, 2, 2, 3], [1, 4, 9], [3, 2, 6])


def read(found: Histograms, share: float) -> list[float]:
    """The bins of the quantiles of each owner; NaN where there is none."""
    values = found.quantile(share).tolist()
    return [NAN if math.isnan(one) else round(math.log(one * (GAMMA + 1) / 2) / math.log(GAMMA)) for one in values]


@pytest.mark.parametrize(("share", "first", "last"), [
    # Five entries: three of bin 1, two of bin 4. The place is share * 4, rounded, a half up.
    (0.0, 1, 9), (0.5, 1, 9), (0.62, 1, 9), (0.625, 4, 9), (0.63, 4, 9), (1.0, 4, 9),
])  # fmt: skip
def test_a_quantile_is_the_bin_of_its_place(share: float, first: int, last: int) -> None:
    assert read(of((2, 9, 1), (0, 4, 2), (0, 1, 3)), share) == pytest.approx([first, NAN, last], nan_ok=True)


def test_each_owner_may_be_asked_for_a_share_of_its_own() -> None:
    found = of((0, 1, 1), (0, 5, 1), (1, 2, 1), (1, 6, 1), (2, 3, 1))
    values = found.quantile(np.array([1.0, 0.0, NAN]))
    assert values[:2].tolist() == value_of(ints(5, 2)).tolist()
    assert math.isnan(values[2])


def test_without_rates_there_is_no_quantile() -> None:
    assert np.isnan(of().quantile(0.5)).tolist() == [True] * 3
    assert of(count=0).quantile(0.5).tolist() == []
    assert of((0, ZERO_BIN, 3), count=1).quantile(0.9).tolist() == [0.0]
