"""Error of a rate: hours of known partitions, and the intervals and verdicts of the load model."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pytest

from kreassign.pipeline.load.accuracy import TOLD_ERROR, UNSEEN, evidence
from kreassign.pipeline.load.hours import LatestHours
from kreassign.pipeline.tables.schemas import Row
from tests.approved import approve
from tests.pipeline.load.hours_known import hour_table, loads

HOUR_MS = 3_600_000
BEGIN_MS = 489_600 * HOUR_MS
HOURS = 48
RATE = 10.0
RECORD_BYTES = 100
IN_AN_HOUR = 60
_GAMMA = 1.005 / 0.995


def hour(number: int, factor: float = 1.0) -> Row:
    """An hour with a sample a minute, so many times the usual rate, in which all went well."""
    records = round(RATE * factor * 3600)
    begin_ms = BEGIN_MS + number * HOUR_MS
    return {
        "hour_ms": begin_ms,
        "new_records": records,
        "good_records": records,
        "rate_sum": round(RATE * factor * 1e6) * IN_AN_HOUR,
        "squared_seconds": 60.0**2 * IN_AN_HOUR,
        "sized_records": records,
        "new_bytes": records * RECORD_BYTES,
        "sample_count": IN_AN_HOUR,
        "first_ms": begin_ms,
        "last_ms": begin_ms + HOUR_MS,
        "last_leader": 1,
        "last_start_offset": 0,
        "last_end_offset": (number + 1) * records,
        "last_size_bytes": (number + 1) * records * RECORD_BYTES,
        "rate_bins": [math.ceil(math.log(RATE * factor) / math.log(_GAMMA))],
        "rate_counts": [IN_AN_HOUR],
    }


def daily(number: int) -> Row:
    """By day half as much again as by night."""
    return hour(number, 1.2 if 8 <= number % 24 < 20 else 0.8)


def all_with(change: Callable[[int, Row], Row], base: Callable[[int], Row] = daily) -> list[Row]:
    return [row | change(number, row) for number, row in ((number, base(number)) for number in range(HOURS))]


def only(which: Iterable[int]) -> list[Row]:
    return [daily(number) for number in which]


def no_size(_: int, __: Row) -> Row:
    return {"sized_records": 0, "new_bytes": 0}


def larger_by_day(number: int, row: Row) -> Row:
    factor = 5 if 8 <= number % 24 < 20 else 1
    return {"new_bytes": row["new_bytes"] * factor}


def larger_by_day_and_half_unknown(number: int, row: Row) -> Row:
    return larger_by_day(number, row) if number % 2 else no_size(number, row)


def unknown_by_day(number: int, row: Row) -> Row:
    return no_size(number, row) if 10 <= number % 24 < 18 else {}


def unknown_in_all_but_two_hours(number: int, row: Row) -> Row:
    return no_size(number, row) if number >= 2 else {}


def one_jump_in_hourly_samples(number: int, row: Row) -> Row:
    return {"sample_count": 1, "new_bytes": row["new_bytes"] * (9 if number == 20 else 1)}


def bad_clock(_: int, row: Row) -> Row:
    return {"rate_sum": round(row["rate_sum"] * 1.02)}


def rounds_an_hour(row: Row, count: int, error: float = 0.0) -> Row:
    """So many rounds in the hour; wrong times make the mean of their rates too high by this share."""
    return {
        "squared_seconds": 3600.0**2 / count,
        "rate_sum": round(row["rate_sum"] / IN_AN_HOUR * count * (1 + error)),
        "rate_counts": [count],
    }


def rarer(by_day: bool, error: float = 0.0) -> Callable[[int, Row], Row]:
    return lambda number, row: rounds_an_hour(row, 20 if (8 <= number % 24 < 20) == by_day else 60, error)


def hourly_by_a_bad_clock(number: int, row: Row) -> Row:
    """Each second round comes six minutes late by the clock that stamps it."""
    seconds = 3600 + (360 if number % 2 else -360)
    rate = row["new_records"] / seconds
    return {
        "seconds": seconds,
        "good_seconds": seconds,
        "squared_seconds": seconds**2,
        "last_ms": row["last_ms"] + (360_000 if number % 2 else 0),
        "rate_sum": round(rate * 1e6),
        "rate_bins": [math.ceil(math.log(rate) / math.log(_GAMMA))],
        "rate_counts": [1],
    }


BURST, QUIET = 10.0, 0.35


def bursts_by_a_bad_clock(_: int, row: Row) -> Row:
    """In four of sixty rounds ten times as much is written. Half of the rates are a tenth too high, half too low."""
    rates = [RATE * factor * off for factor in (QUIET, BURST) for off in (0.9, 1.1)]
    counts = [28, 28, 2, 2]
    records = round(60 * RATE * (56 * QUIET + 4 * BURST) * 0.99)
    return {
        **dict.fromkeys(("new_records", "good_records", "sized_records"), records),
        "new_bytes": records * RECORD_BYTES,
        "rate_sum": round(sum(rate * count for rate, count in zip(rates, counts, strict=True)) * 1e6),
        "rate_bins": [math.ceil(math.log(rate) / math.log(_GAMMA)) for rate in rates],
        "rate_counts": counts,
    }


def lost_rounds(_: int, row: Row) -> Row:
    """Sixty intervals, of which every second one is merged with its neighbour."""
    return {"squared_seconds": 20 * (60.0**2 + 120.0**2), "rate_sum": row["rate_sum"] * 40 // 60, "rate_counts": [40]}


@dataclass(frozen=True)
class Case:
    """Hours, the verdict, and the true mean and 95th percentile in bytes per second, which the intervals must hold."""

    hours: list[Row]
    verdict: str
    mean: float = RATE * RECORD_BYTES
    p95: float = 1.2 * RATE * RECORD_BYTES


CASES: Mapping[str, Case] = {
    "all is known": Case(all_with(lambda *_: {}), "enough"),
    "nothing is written": Case(all_with(lambda *_: {}, lambda number: hour(number) | {
        "new_records": 0, "good_records": 0, "rate_sum": 0, "rate_bins": [-1_000_000], **no_size(0, {})}),
        "enough", 0.0, 0.0),
    "two hours of the night": Case(only(range(2, 4)), "short"),
    "two hours of the day": Case(only(range(10, 12)), "short"),
    "a night was missed that was seen the day before": Case(only([*range(24), *range(32, 48)]), "enough"),
    "a night was missed of a day that wrote more than the one before": Case(
        [*only(range(24)), *(hour(number, 1.5 if 8 <= number % 24 < 20 else 1.0)
                             for number in range(24, HOURS) if not 32 <= number < 44)],
        "gaps", p95=1.5 * RATE * RECORD_BYTES),
    "nobody ever looked by day": Case(only([h for h in range(HOURS) if not 8 <= h % 24 < 20]), "gaps"),
    "the time of a gap is known only in sum": Case(
        all_with(lambda number, _: {"good_seconds": 0.0, "rate_bins": [], "rate_counts": []}
                 if 8 <= number % 24 < 20 else {}), "gaps"),
    "sizes are known only of the whole log": Case(all_with(no_size), "gaps"),
    "records are larger by day": Case(
        all_with(larger_by_day), "enough", (0.8 + 5 * 1.2) / 2 * RATE * RECORD_BYTES, 6 * RATE * RECORD_BYTES),
    "they are, and the size of half is not known": Case(
        all_with(larger_by_day_and_half_unknown), "gaps", (0.8 + 5 * 1.2) / 2 * RATE * RECORD_BYTES,
        6 * RATE * RECORD_BYTES),
    "sizes are not known by day": Case(
        all_with(unknown_by_day, hour), "gaps", p95=1000),
    "sizes are known in two hours only": Case(all_with(unknown_in_all_but_two_hours, hour), "gaps", p95=1000),
    "a size is not known in one hour": Case(
        all_with(lambda number, row: no_size(number, row) if number == 30 else {}, hour), "enough", p95=1000),
    "a size jumped in one of the hourly samples": Case(
        all_with(one_jump_in_hourly_samples, hour), "gaps", p95=1000),
    "half of the samples were odd": Case(all_with(lambda *_: {"odd_count": IN_AN_HOUR}), "gaps"),
    "one sample in a hundred was odd": Case(all_with(lambda number, _: {"odd_count": number % 2}), "enough"),
    "the clock of the collector errs": Case(all_with(bad_clock), "gaps", p95=RATE * RECORD_BYTES),
    "rounds were lost": Case(all_with(lost_rounds), "enough"),
    "rounds are rarer by night": Case(all_with(rarer(by_day=False)), "enough"),
    "rounds are rarer by day, and their clock errs": Case(all_with(rarer(by_day=True, error=0.02)), "gaps"),
    "the clock errs, and the percentile is the least of the bursts": Case(
        all_with(bursts_by_a_bad_clock, hour), "gaps", 0.99 * (56 * QUIET + 4 * BURST) / 60 * RATE * RECORD_BYTES,
        0.99 * BURST * RATE * RECORD_BYTES),
    "the clock of hourly rounds errs": Case(
        all_with(hourly_by_a_bad_clock, hour), "gaps", p95=RATE * RECORD_BYTES),
}  # fmt: skip


def test_intervals_hold_the_truth_and_a_tenth_is_enough() -> None:
    told = {
        row["topic"]: row
        for row in loads([row | {"topic": name} for name, case in CASES.items() for row in case.hours])
    }
    assert {name: row["verdict"] for name, row in told.items()} == {name: case.verdict for name, case in CASES.items()}
    for name, case in CASES.items():
        row = told[name]
        assert row["low_write_bytes_per_s"] <= case.mean <= row["high_write_bytes_per_s"], name
        assert row["low_p95_write_bytes_per_s"] <= case.p95 <= row["high_p95_write_bytes_per_s"], name
        if case.verdict == "enough":
            assert row["write_bytes_per_s"] == pytest.approx(case.mean, rel=TOLD_ERROR), name
            assert row["p95_write_bytes_per_s"] == pytest.approx(case.p95, rel=TOLD_ERROR), name
    # Who saw two hours of a day says so: the other 22 may have written nothing, or four times as much.
    two = told["two hours of the night"]
    assert two["high_write_bytes_per_s"] == pytest.approx(
        (1 + 22 / 24 * (UNSEEN - 1)) * two["write_bytes_per_s"], rel=0.01
    )
    assert two["low_write_bytes_per_s"] == pytest.approx(2 / 24 * two["write_bytes_per_s"], rel=0.01)
    # Sizes that are not known of half of the time may be those of the peak.
    sized, half = (told[name] for name in ("records are larger by day", "they are, and the size of half is not known"))
    assert half["high_p95_write_bytes_per_s"] / half["p95_write_bytes_per_s"] > 1.5 * (
        sized["high_p95_write_bytes_per_s"] / sized["p95_write_bytes_per_s"]
    )


def test_intervals_are_as_wide_as_what_is_unknown_makes_them() -> None:
    told = loads([row | {"topic": name} for name, case in CASES.items() for row in case.hours])
    figures = [("mean", "write_bytes_per_s"), ("p95", "p95_write_bytes_per_s")]
    lines = [
        f"{row['topic']}: {name} {row[key]:.1f}, {row[f'low_{key}']:.1f} to {row[f'high_{key}']:.1f}"
        for row in sorted(told, key=lambda row: [*CASES].index(row["topic"]))
        for name, key in figures
    ]
    approve(lines, "intervals")


def scatter(rows: list[Row]) -> float:
    """Scatter of the rates of neighbouring intervals, which a wrong clock makes."""
    hours = LatestHours.of(hour_table(rows))
    none = np.zeros(len(hours), np.bool_)
    return float(evidence(hours, none, none, none).scatter[0])


def rounds(number: int, seconds: float, records: int, count: int = 1) -> Row:
    """An hour whose so many rounds reach back over these seconds; without any it ends a gap."""
    good = seconds if count else 0.0
    at_ms = BEGIN_MS + number * HOUR_MS
    return {
        "hour_ms": at_ms,
        "first_ms": at_ms,
        "last_ms": at_ms,
        "seconds": seconds,
        "new_records": records,
        "good_seconds": good,
        "good_records": records if count else 0,
        "rate_sum": round(records / seconds * 1e6) * count,
        "rate_bins": [1] * bool(count),
        "rate_counts": [count] * bool(count),
    }


def test_hours_by_day_are_no_neighbours_of_the_night_before_a_gap() -> None:
    """By day there are more rounds than by night, and more is written in each second."""
    rows = []
    for begin in (0, 24):
        rows += [rounds(begin, 5 * 3600, 18_000, 0), *(rounds(begin + hour, 3600, 3600) for hour in range(1, 8))]
        rows += [rounds(begin + 12, 5 * 3600, 18_000, 0)]
        rows += [rounds(begin + hour, 3600, 36_000, 2) for hour in range(13, 20)]
    assert scatter(rows) == 0


def test_a_wrong_clock_shows_in_rounds_that_are_hours_apart() -> None:
    late = [7200 + (720 if number % 2 else -720) for number in range(12)]
    rows = [rounds(2 * number, seconds, 1000) for number, seconds in enumerate(late)]
    stamped = [row | {"last_ms": row["last_ms"] + (720_000 if number % 2 else 0)} for number, row in enumerate(rows)]
    assert scatter(stamped) == pytest.approx(0.1, rel=0.1)


def test_hours_without_reversals_leave_the_scatter_to_the_others() -> None:
    """Hours of earlier versions have none."""
    now = [rounds(number, 3600, 3600, 10) | {"reversal_sum": 2_000_000} for number in range(0, 24, 2)]
    before = [rounds(-number, 3600, 3600, 10) for number in range(2, 100, 2)]
    assert scatter(before + now) == pytest.approx(scatter(now))
    assert scatter(now) > 0


def kept_half_a_day(share: float, *, is_compacted: bool | None = None, **sizes: int) -> Row:
    """Load of a log with half a day of records, which holds this share of their bytes; `sizes` at `h0`, `h1`, …"""
    records = round(RATE * 3600)
    rows = [
        hour(number)
        | {
            "is_compacted": is_compacted,
            "last_start_offset": max(0, number + 1 - 12) * records,
            "last_size_bytes": sizes.get(f"h{number}", round(min(12, number + 1) * records * RECORD_BYTES * share)),
        }
        for number in range(HOURS)
    ]
    (load,) = loads(rows)
    return load


def test_a_log_that_holds_less_than_its_growth_is_doubtful() -> None:
    """Steps up counted as growth, and steps down were hidden by retention."""
    whole, less = kept_half_a_day(0.95), kept_half_a_day(0.8)
    assert (whole["verdict"], whole["record_size_basis"], whole["write_bytes_per_s"]) == ("enough", "growth", 1000)
    assert (less["verdict"], less["record_size_basis"], less["write_bytes_per_s"]) == ("doubtful", "log", 800)
    cleaned = kept_half_a_day(0.8, h3=5)
    assert (cleaned["verdict"], cleaned["record_size_basis"]) == ("enough", "growth")


def test_a_contradiction_makes_sizes_that_were_not_measured_no_surer() -> None:
    def verdict(seen: float, contradicted: int) -> str:
        records = [round(RATE * 3600 * share) for share in (1, seen)]
        (load,) = loads(
            [
                hour(number)
                | {"sized_records": records[1], "new_bytes": records[1] * RECORD_BYTES}
                | {"contradicted_count": contradicted * (number == 20)}
                for number in range(HOURS)
            ]
        )
        return str(load["verdict"])

    assert [verdict(0.6, contradicted) for contradicted in (0, 1)] == ["enough", "enough"]
    assert [verdict(0.4, contradicted) for contradicted in (0, 1)] == ["gaps", "doubtful"]


def test_a_compacted_log_that_holds_less_counts_by_growth_in_doubt() -> None:
    """Where the start moves each hour, no sample shows that the cleaner shrank the log."""
    compacted = kept_half_a_day(0.4, is_compacted=True)
    assert (compacted["verdict"], compacted["record_size_basis"], compacted["write_bytes_per_s"]) == (
        "doubtful", "growth", 1000)  # fmt: skip
    unknown = kept_half_a_day(0.4, is_compacted=None)
    assert (unknown["verdict"], unknown["record_size_basis"]) == ("doubtful", "log")


def test_a_cleaner_that_takes_less_than_comes_is_doubted() -> None:
    """In one hour of three a compacted log grows by a fifth of what is written."""
    rows = [row | {"new_bytes": row["new_bytes"] // (5 if number % 3 == 0 else 1), "last_size_bytes": None}
            for number, row in enumerate(map(hour, range(HOURS)))]  # fmt: skip
    (compacted,) = loads([row | {"is_compacted": True} for row in rows])
    assert compacted["verdict"] == "doubtful"
    assert compacted["high_write_bytes_per_s"] >= RATE * RECORD_BYTES
    (deleted,) = loads(rows)
    assert deleted["verdict"] == "enough"
