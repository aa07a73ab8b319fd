"""Partitions whose rates are known in the past and in the future, in cohorts: weekends, growth, steps, noise, new ones.

Each cohort is one topic. Rates are per hour, from `HISTORY_DAYS` before the end of the history to `AHEAD_DAYS` after.
All is drawn with a seed. Day 0 is a Tuesday.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

HISTORY_DAYS = 28
AHEAD_DAYS = 30
HOURS_A_DAY = 24
WEEK_HOURS = 7 * HOURS_A_DAY
_ALL_DAYS = HISTORY_DAYS + AHEAD_DAYS + 4
_FIRST_WEEKDAY = 1
Floats = npt.NDArray[np.float64]
_Draw = Callable[[np.random.Generator, Floats, int], Floats]


@dataclass(frozen=True, slots=True, eq=False)
class Cohort:
    """`rates`: one row per hour of history and future, one column per partition. `begins`: the first hour of each."""

    name: str
    rates: Floats
    begins: npt.NDArray[np.int64]

    @property
    def truth(self) -> Floats:
        """The mean rate of the week around the horizon, of each partition."""
        middle = (HISTORY_DAYS + AHEAD_DAYS) * HOURS_A_DAY
        return np.asarray(self.rates[middle - WEEK_HOURS // 2 : middle + WEEK_HOURS // 2].mean(axis=0))

    @property
    def last_week(self) -> Floats:
        """The mean rate of the last week of the history."""
        end = HISTORY_DAYS * HOURS_A_DAY
        return np.asarray(self.rates[end - WEEK_HOURS : end].mean(axis=0))

    @property
    def days(self) -> Floats:
        """Mean rates of the days of the history, the last day first, (P, D); NaN before a partition began."""
        rates = self.rates[: HISTORY_DAYS * HOURS_A_DAY].reshape(HISTORY_DAYS, HOURS_A_DAY, -1).mean(axis=1)
        is_before = np.arange(HISTORY_DAYS)[:, None] * HOURS_A_DAY < self.begins[None, :]
        return np.asarray(np.where(is_before, np.nan, rates)[::-1].T)


def cohorts(count: int, seed: int = 7) -> tuple[Cohort, ...]:
    """Every cohort with so many partitions."""
    return tuple(
        _cohort(name, draw, days, count, np.random.default_rng([seed, number]))
        for number, (name, (days, draw)) in enumerate(COHORTS.items())
    )


def _cohort(name: str, draw: _Draw, days: tuple[int, int], count: int, chance: np.random.Generator) -> Cohort:
    at = np.arange(_ALL_DAYS * HOURS_A_DAY) / HOURS_A_DAY
    base = 20 * chance.lognormal(1.0, 0.8, count)
    begins = (HISTORY_DAYS - chance.integers(days[0], days[1] + 1, count)) * HOURS_A_DAY
    return Cohort(name, base * draw(chance, at[:, None], count), begins)


def _weekends(chance: np.random.Generator, at: Floats, count: int) -> Floats:
    is_weekend = (np.floor(at).astype(int) + _FIRST_WEEKDAY) % 7 >= 5
    return np.where(is_weekend, chance.uniform(0.3, 0.8, count), 1.0) * _noise(chance, at, count, 0.02)


def _daily(chance: np.random.Generator, at: Floats, count: int) -> Floats:
    swing, phase = chance.uniform(0.3, 0.9, count), chance.uniform(0, 1, count)
    return (1 + swing * np.sin(2 * np.pi * (at - phase))) * _noise(chance, at, count, 0.02)


def _weekends_and_nights(chance: np.random.Generator, at: Floats, count: int) -> Floats:
    return _daily(chance, at, count) * _weekends(chance, at, count)


def _noise(chance: np.random.Generator, at: Floats, count: int, day: float, hour: float = 0.05) -> Floats:
    """Factors of mean 1 by day, and by hour."""
    days = np.repeat(chance.normal(0, day, (len(at) // HOURS_A_DAY, count)), HOURS_A_DAY, axis=0)
    hours = chance.normal(0, hour, (len(at), count))
    return np.asarray(np.exp(days + hours - (day**2 + hour**2) / 2))


def _linear(chance: np.random.Generator, at: Floats, count: int) -> Floats:
    return (1 + 0.05 * np.maximum(at - (HISTORY_DAYS - 20), 0)) * _noise(chance, at, count, 0.02)


def _linear_with_weekends(chance: np.random.Generator, at: Floats, count: int) -> Floats:
    return (1 + 0.05 * np.maximum(at - (HISTORY_DAYS - 20), 0)) * _weekends(chance, at, count)


def _growth_that_ends(chance: np.random.Generator, at: Floats, count: int) -> Floats:
    growing = np.clip(at - (HISTORY_DAYS - 20), 0, 20)
    return (1 + 0.05 * growing) * _noise(chance, at, count, 0.02)


def _decline(chance: np.random.Generator, at: Floats, count: int) -> Floats:
    return np.asarray(0.95 ** np.maximum(at - (HISTORY_DAYS - 20), 0) * _noise(chance, at, count, 0.02))


def _steps(chance: np.random.Generator, at: Floats, count: int) -> Floats:
    step_at = HISTORY_DAYS - chance.uniform(0, 21, count)
    return np.where(at < step_at, 1.0, chance.choice([0.5, 0.7, 1.5, 2.0], count)) * _noise(chance, at, count, 0.02)


def _noisy(chance: np.random.Generator, at: Floats, count: int) -> Floats:
    return _noise(chance, at, count, 0.2, 0.3)


def _drifting(chance: np.random.Generator, at: Floats, count: int) -> Floats:
    """A random walk, of which nobody can know the way."""
    steps = np.repeat(chance.normal(0, 0.03, (len(at) // HOURS_A_DAY, count)), HOURS_A_DAY, axis=0) / HOURS_A_DAY
    return np.asarray(np.exp(np.cumsum(steps, axis=0)) * _noise(chance, at, count, 0.02))


def _launch(chance: np.random.Generator, at: Floats, count: int) -> Floats:
    """One to three days of the past wrote five to forty times as much."""
    since = chance.uniform(5, HISTORY_DAYS - 4, count)
    is_launch = (at >= since) & (at < since + chance.integers(1, 4, count))
    return np.where(is_launch, chance.uniform(5, 40, count), 1.0) * _noise(chance, at, count, 0.02)


def _holiday(chance: np.random.Generator, at: Floats, count: int) -> Floats:
    """One to four days of the past wrote nearly nothing."""
    since = np.floor(chance.uniform(3, HISTORY_DAYS - 4, count))
    is_holiday = (at >= since) & (at < since + chance.integers(1, 5, count))
    return np.where(is_holiday, chance.uniform(0.01, 0.2, count), 1.0) * _weekends(chance, at, count)


def _growth_that_stopped(chance: np.random.Generator, at: Floats, count: int) -> Floats:
    """Growth of 5 % a day that ended some days ago."""
    until = HISTORY_DAYS - chance.uniform(4, 10, count)
    growing = np.clip(at - (until - 18), 0, 18)
    return (1 + 0.05 * growing) * _noise(chance, at, count, 0.02)


def _new_level(chance: np.random.Generator, at: Floats, count: int) -> Floats:
    """Two to six days ago the rate went to another level, and stays there."""
    step_at = HISTORY_DAYS - chance.integers(2, 7, count)
    return np.where(at < step_at, 1.0, chance.choice([0.3, 0.5, 2.0, 4.0], count)) * _weekends(chance, at, count)


def _outages(chance: np.random.Generator, at: Floats, count: int) -> Floats:
    """On some days nothing is written for hours."""
    days = np.repeat(chance.random((len(at) // HOURS_A_DAY, count)) < 0.1, HOURS_A_DAY, axis=0)
    is_out = days & ((np.arange(len(at)) % HOURS_A_DAY)[:, None] < 12)
    return np.where(is_out, 0.0, 1.0) * _noise(chance, at, count, 0.02)


def _heavy(chance: np.random.Generator, at: Floats, count: int) -> Floats:
    """Days differ as Student's t with three degrees of freedom does."""
    days = np.repeat(0.1 * chance.standard_t(3, (len(at) // HOURS_A_DAY, count)), HOURS_A_DAY, axis=0)
    return np.asarray(np.exp(days) * _noise(chance, at, count, 0.02))


def _growth_that_saturates(chance: np.random.Generator, at: Floats, count: int) -> Floats:
    """A curve of S from a fifth to four, whose middle was 5 to 20 days ago."""
    middle, width = HISTORY_DAYS - chance.uniform(5, 20, count), chance.uniform(1.5, 4, count)
    return (0.2 + 4 / (1 + np.exp((middle - at) / width))) * _noise(chance, at, count, 0.02)


def _begun_lately(chance: np.random.Generator, at: Floats, count: int) -> Floats:
    """Nothing was written until one to six days ago."""
    return np.where(at < HISTORY_DAYS - chance.uniform(1, 6, count), 0.0, 1.0) * _noise(chance, at, count, 0.02)


def _odd_every_other_week(chance: np.random.Generator, at: Floats, count: int) -> Floats:
    """One day in fourteen writes ten times as much."""
    return np.where(np.floor(at) % 14 == chance.integers(0, 14, count), 10.0, 1.0) * _noise(chance, at, count, 0.02)


COHORTS: Mapping[str, tuple[tuple[int, int], _Draw]] = {
    "quiet weekends, 7 days": ((7, 7), _weekends),
    "quiet weekends, 14 days": ((14, 14), _weekends),
    "quiet weekends, 28 days": ((28, 28), _weekends),
    "daily curve, 7 to 28 days": ((7, 28), _daily),
    "+5 % a day for 20 days, and on": ((20, 20), _linear),
    "the same with quiet weekends": ((20, 20), _linear_with_weekends),
    "+5 % a day for 20 days, then no more": ((20, 20), _growth_that_ends),
    "-5 % a day for 20 days, and on": ((20, 20), _decline),
    "a step in the last 21 days": ((28, 28), _steps),
    "noise of 20 % a day": ((28, 28), _noisy),
    "random walk of 3 % a day": ((28, 28), _drifting),
    "new: 2 to 6 days, weekends and daily curve": ((2, 6), _weekends_and_nights),
    "a launch among plain weeks": ((28, 28), _launch),
    "a holiday among plain weeks": ((28, 28), _holiday),
    "+5 % a day that stopped 4 to 10 days ago": ((28, 28), _growth_that_stopped),
    "another level since 2 to 6 days, with weekends": ((28, 28), _new_level),
    "half a day without writes, every tenth day": ((28, 28), _outages),
    "days with heavy tails": ((28, 28), _heavy),
    "growth that saturates": ((28, 28), _growth_that_saturates),
    "writes since 1 to 6 days": ((28, 28), _begun_lately),
    "a day of ten every other week": ((28, 28), _odd_every_other_week),
}
"""How many days of history each partition has, and its rates."""
