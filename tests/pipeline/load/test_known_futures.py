"""Partitions whose future is known: no odd week, stopped growth or new level makes a forecast that cannot be."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from bench.forecast_cohorts import AHEAD_DAYS, COHORTS, Cohort, cohorts
from bench.forecast_truth import curve_of
from kreassign.pipeline.load.fits import fit
from kreassign.pipeline.load.forecast import Curve, backtest, widening_of


@cache
def known(name: str) -> Cohort:
    return cohorts(40, 5)[list(COHORTS).index(name)]


def median_error(name: str) -> float:
    then, _, _ = curve_of(known(name))
    return float(np.median(np.abs(then / known(name).truth - 1)))


@pytest.mark.parametrize("name", COHORTS)
def test_the_truth_is_in_the_interval_and_ends_grow_slowly(name: str) -> None:
    cohort = known(name)
    then, low, high = curve_of(cohort)
    assert np.mean((low <= cohort.truth) & (cohort.truth <= high)) >= 0.9
    # A level, its growth of a doubling a week at most, and as much again for what is not known.
    largest_day = np.nanmax(cohort.days, axis=1)
    assert (high <= largest_day * 2 ** (2 * (1 + AHEAD_DAYS / 7))).all()
    assert (low <= then).all()


@pytest.mark.parametrize("name", ["a launch among plain weeks", "a holiday among plain weeks"])
def test_one_odd_week_among_plain_ones_widens_no_interval_much(name: str) -> None:
    plain, odd = known("quiet weekends, 28 days"), known(name)
    few = np.arange(40) < 2
    mixed = replace(plain, rates=np.where(few, odd.rates, plain.rates))
    then, _, high = curve_of(mixed)
    assert (high[2:] <= 1.5 * then[2:]).all()
    assert (high[:2] <= 3 * np.asarray(np.median(odd.days, axis=1))[:2]).all()


def test_one_odd_day_among_equal_days_widens_no_interval() -> None:
    days = np.full((2, 28), 100.0)
    days[1, 9] = 1e5
    plain, odd = np.transpose(Curve.of(fit(days)).between(AHEAD_DAYS, 1.0))
    assert odd == pytest.approx(plain, rel=0.05)


@pytest.mark.parametrize("days", [2, 3, 6, 7, 10, 20])
@pytest.mark.parametrize("growth", [1.0, 1.03])
def test_a_stopped_partition_is_forecast_to_rest_or_go_on(days: int, growth: float) -> None:
    rates = 100.0 * growth ** np.arange(28)[::-1][None, :] * np.exp(np.random.default_rng(1).normal(0, 0.02, (5, 28)))
    rates[:, :days] = 0.0
    curve = Curve.of(fit(rates))
    low, high = curve.between(AHEAD_DAYS, 1.0)
    assert (curve.at(AHEAD_DAYS) == 0).all()
    assert (low == 0).all()
    assert (high >= 0.9 * rates[:, days : days + 7].mean(axis=1)).all()


def test_weekends_without_writes_are_no_stop() -> None:
    rates = np.where(np.arange(28) % 7 < 2, 0.0, 100.0 * 1.03 ** np.arange(28)[::-1])[None, :]
    found = fit(rates)
    assert found.has_trend.all()
    assert found.level == pytest.approx(rates[:, :7].mean(axis=1))


def test_a_partition_that_begins_to_write_is_forecast_to_go_on() -> None:
    rates = np.zeros((2, 28))
    rates[0, :1] = rates[1, :3] = 100.0
    assert fit(rates).level == pytest.approx([100 / 7, 100])


@pytest.mark.parametrize(("name", "most"), [
    ("+5 % a day that stopped 4 to 10 days ago", 0.1),
    ("another level since 2 to 6 days, with weekends", 0.05),
    ("a launch among plain weeks", 0.05),
    ("a holiday among plain weeks", 0.05),
    ("+5 % a day for 20 days, and on", 0.1),
])  # fmt: skip
def test_stopped_growth_new_levels_and_odd_days_are_recognised(name: str, most: float) -> None:
    assert median_error(name) <= most


@pytest.mark.parametrize("days", [10, 14, 18, 21, 28])
@pytest.mark.parametrize("growth", [1.0, 1.03])
@pytest.mark.parametrize("factor", [0.0, 0.1, 2.0, 10.0])
def test_a_jump_on_the_last_day_is_neither_followed_nor_ignored(days: int, growth: float, factor: float) -> None:
    rates = (
        100.0 * growth ** np.arange(days)[::-1][None, :] * np.exp(np.random.default_rng(1).normal(0, 0.02, (9, days)))
    )
    level, before = fit(rates).level, rates[:, 0].copy()
    rates[:, 0] *= factor
    found = fit(rates)
    curve = Curve.of(found)
    low, high = curve.between(AHEAD_DAYS, 1.0)
    assert found.has_jumped.all()
    assert found.level == pytest.approx(level, rel=0.2)
    assert (curve.at(AHEAD_DAYS) <= 2 * before).all()
    for goes_on in (before, before * factor):
        assert (low <= goes_on).all()
        assert (goes_on <= high).all()


def test_days_without_a_jump_and_levels_of_two_days_are_no_jump() -> None:
    rates = 100.0 * np.exp(np.random.default_rng(1).normal(0, 0.02, (50, 28)))
    assert not fit(rates).has_jumped.any()
    rates[:, :2] *= 3
    assert not fit(rates).has_jumped.any()


@pytest.mark.parametrize("name", COHORTS)
def test_no_level_is_above_the_largest_day_however_days_are_missing(name: str) -> None:
    cohort, chance = known(name), np.random.default_rng(2)
    days = np.where(chance.random(cohort.days.shape) < 0.25, np.nan, cohort.days)
    found, sigmas = fit(days), backtest(days).sigmas
    assert (found.level <= np.nanmax(days, axis=1) * (1 + 1e-9)).all()
    tested = sigmas[~np.isnan(sigmas)]
    low, high = Curve.of(found).between(AHEAD_DAYS, widening_of(tested) if len(tested) else 1.0)
    assert np.mean((low <= cohort.truth) & (cohort.truth <= high)) >= 0.8


def test_unmeasured_days_after_a_step_are_at_the_new_level() -> None:
    days = np.full((1, 28), 100.0)
    days[0, :4], days[0, [1, 5, 12]] = 400.0, np.nan
    assert fit(days).level == pytest.approx([400])


@pytest.mark.parametrize("last", [0.0, 50.0])
@pytest.mark.parametrize("measured", [1, 2])
def test_one_odd_day_of_the_few_measured_decides_no_level(last: float, measured: int) -> None:
    days = np.full((1, 35), 5.0)
    days[0, 0], days[0, measured:7] = last, np.nan
    found = fit(days)
    assert found.has_jumped.all()
    assert (*found.level, *found.plain_level) == pytest.approx((5, last))


@pytest.mark.parametrize("last", [0.0, 1.0, 50.0])
@pytest.mark.parametrize("beside", [[], [5.0], [5.0, 5.0, 5.0]])
@pytest.mark.parametrize("missed", [1, 3])
def test_the_latest_measured_day_jumps_whatever_was_missed_since(missed: int, beside: list[float], last: float) -> None:
    days = np.full((1, 35), 5.0)
    days[0, :7] = np.nan
    days[0, missed : missed + 1 + len(beside)] = [last, *beside]
    found = fit(days)
    assert found.has_jumped.all()
    assert (*found.level, *found.plain_level) == pytest.approx((5, last))


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("missed", [0, 2])
def test_the_level_of_two_measured_days_is_what_both_reach(missed: int, order: int) -> None:
    less = np.geomspace(0.5, 50.0, 400)
    days = np.full((400, 35), 5.0)
    days[:, :7] = np.nan
    days[:, missed : missed + 2] = np.transpose([np.full(400, 50.0), less])[:, ::order]
    level = fit(days).level
    assert (level >= 0.99 * np.minimum(np.maximum(less, 4.0), 40.0)).all()
    assert (np.abs(np.diff(np.log(level))) < 0.1).all(), "a little more on one day makes no other level"


@pytest.mark.parametrize("yesterday", [0.0, 1.0, 3.9, 4.1])
def test_a_last_day_that_makes_up_for_a_low_one_jumps(yesterday: float) -> None:
    days = np.full((1, 35), 5.0)
    days[0, :2] = 50.0, yesterday
    found = fit(days)
    assert found.has_jumped.all()
    assert (*found.level, *found.plain_level) == pytest.approx((5, 50), rel=0.15)


@pytest.mark.parametrize("measured", [3, 4, 7])
def test_days_that_scatter_are_no_jump_however_few_were_measured(measured: int) -> None:
    days = np.full((1, 35), 5.0)
    days[0, :7] = [8.5, 6.0, 4.0, 6.5, 4.5, 7.0, 3.5]
    days[0, measured:7] = np.nan
    assert not fit(days).has_jumped.any()


def test_a_level_of_two_measured_days_leaves_the_one_before_possible() -> None:
    days = np.full((1, 35), 5.0)
    days[0, :2], days[0, 2:7] = 50.0, np.nan
    found = fit(days)
    assert (*found.level, *found.plain_level) == pytest.approx((50, (2 * 50 + 5 * 5) / 7))


def test_a_day_that_is_at_a_new_level_already_is_not_lifted_to_it() -> None:
    """Writes began within the sixth day from the last; the fifth was not measured."""
    days = np.concatenate([[38.2, 38.1, 39.4, 38.8, np.nan, 24.0], np.zeros(22)])[None, :]
    assert fit(days).level == pytest.approx([37], rel=0.1)


def test_a_straight_decline_may_end_at_nothing() -> None:
    noise = np.exp(np.random.default_rng(1).normal(0, 0.02, (20, 28)))
    straight, slowing = 100.0 * (5 + np.arange(28)) / 33 * noise, 100.0 * 0.95 ** np.arange(28)[::-1] * noise
    ends, goes_on = (Curve.of(fit(days)).between(AHEAD_DAYS, 1.0)[0] for days in (straight, slowing))
    assert (ends == 0).all()
    assert (goes_on > 0).all()


def test_a_partition_that_paused_for_a_week_may_pause_again() -> None:
    days = np.where(np.random.default_rng(4).random((200, 28)) < 0.15, 30.0, 0.0)
    days[:, 0], days[:, 5:12] = 30.0, 0.0
    low, high = Curve.of(fit(days)).between(AHEAD_DAYS, 1.0)
    assert (low == 0).all()
    assert (high > 0).all()
