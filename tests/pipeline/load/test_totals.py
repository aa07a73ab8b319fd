"""Totals of clusters whose partitions vary together, or each by itself."""

from __future__ import annotations

import numpy as np
import pytest

from bench.forecast_cohorts import COHORTS, Cohort, Floats, cohorts
from bench.forecast_truth import total_of, with_shared_days
from kreassign.pipeline.load.forecast import common_share, joint_margin, joint_range


def clusters() -> tuple[Cohort, ...]:
    return cohorts(12, 5)


def drawn(count: int, together: float) -> Floats:
    chance = np.random.default_rng(3)
    of_all = chance.normal(0, 1, 21)
    return np.asarray(together * of_all + np.sqrt(1 - together**2) * chance.normal(0, 1, (count, 21)))


@pytest.mark.parametrize(("together", "least", "most"), [(0.0, 0.0, 0.1), (0.7, 0.3, 0.7), (1.0, 0.99, 1.0)])
def test_what_partitions_do_together_shows_in_their_changes(together: float, least: float, most: float) -> None:
    assert least <= common_share(np.full(200, 5.0), drawn(200, together)) <= most


def test_changes_that_show_nothing_count_as_all_in_common() -> None:
    one, none, still = drawn(1, 0.0), np.zeros((0, 21)), np.zeros((9, 21))
    assert [common_share(np.ones(len(each)), each) for each in (one, none, still)] == [1.0, 1.0, 1.0]


def test_errors_of_independent_partitions_cancel_out_in_their_total() -> None:
    def width(share: float, count: int = 400) -> float:
        rates = np.full(count, 10.0)
        low, high = joint_range(rates, rates, np.full(count, 0.2), np.full(count, share), 5.0)
        assert low < 10 * count < high
        return high / low

    assert width(0.0) < 1.1
    assert width(0.0) < width(0.3) < width(1.0)
    # All as one: the interval of a single partition, up to its mean.
    assert width(1.0) == pytest.approx(np.exp(2 * 2.447 * 0.2), rel=0.1)
    assert width(1.0) == pytest.approx(width(1.0, 1), rel=0.05)


def test_thousands_of_partitions_are_drawn_in_groups_of_like_ones() -> None:
    rates = np.full(5000, 1.0)
    low, high = joint_range(rates, rates, np.linspace(0.1, 0.3, 5000), np.zeros(5000), 5.0)
    assert 0.97 * 5000 < low < 5000 < high < 1.03 * 5000
    assert joint_range(rates[:0], rates[:0], rates[:0], rates[:0], 5.0) == (0.0, 0.0)


def test_margins_of_a_total_add_up_only_as_far_as_they_are_in_common() -> None:
    margins = np.array([3.0, 4.0])
    assert joint_margin(margins, np.zeros(2)) == pytest.approx(5)
    assert joint_margin(margins, np.ones(2)) == pytest.approx(7)
    assert joint_margin(margins[:0], margins[:0]) == 0


def test_a_total_is_in_its_interval_which_is_far_narrower_than_the_ends() -> None:
    total = total_of(clusters())
    (low, high), (lowest, highest) = total.joint, total.summed
    assert lowest <= low <= total.truth <= high <= highest
    assert low <= total.then <= high
    assert high / low < highest / lowest / 3
    assert total.common < 0.2


@pytest.mark.parametrize("number", range(len(COHORTS)))
def test_a_total_that_the_ends_hold_is_in_its_joint_interval(number: int) -> None:
    alone = clusters()[number]
    for cluster in (alone, with_shared_days(alone, 5)):
        total = total_of([cluster])
        assert total.summed[0] <= total.joint[0] <= total.then <= total.joint[1] <= total.summed[1]
        # A decline that goes on behind odd days is below the ends of all partitions, too.
        if total.summed[0] <= total.truth:
            assert total.joint[0] <= total.truth <= total.joint[1]


def test_odd_days_that_all_share_widen_the_total() -> None:
    plain = clusters()[list(COHORTS).index("quiet weekends, 28 days")]
    alone, together = total_of([plain]), total_of([with_shared_days(plain, 5)])
    assert alone.common < 0.1
    assert together.common > 0.9
    assert together.joint[1] / together.joint[0] > 3 * alone.joint[1] / alone.joint[0]
