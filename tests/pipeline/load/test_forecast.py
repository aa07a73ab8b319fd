"""The forecast against partitions whose past and future are known."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from bench.forecast_cohorts import AHEAD_DAYS, HISTORY_DAYS, HOURS_A_DAY, Cohort, cohorts
from kreassign.pipeline.load.forecast import KNOWN, TESTED, backtests_of, forecasts
from kreassign.pipeline.load.hours import DAY_S, HOUR_MS, LatestHours
from kreassign.pipeline.load.partition_loads import hundredths, trends
from kreassign.pipeline.load.rates import PARTITION_KEY
from kreassign.pipeline.load.summary import backtest_results
from kreassign.pipeline.tables.arrow import arrow_schema
from kreassign.pipeline.tables.parquet import write_rows
from kreassign.pipeline.tables.schemas import BACKTESTS, FORECAST, LOAD_HOURS, Row
from tests.approved import approve
from tests.pipeline.finished_load import finish_load
from tests.pipeline.load.hours_known import HOUR, hour_table

RateOfHour = Callable[[int], float]


def hours(partition: int, day_count: float, rate: RateOfHour, first: int = 0, **columns: Any) -> list[Row]:
    """The hours of a partition, from hour `first` on; `rate` gives records per second by hour."""
    of = range(first, first + round(day_count * HOURS_A_DAY))
    own = {"partition": partition} | columns
    return [own | {"hour_ms": hour * HOUR_MS, "new_records": round(3600 * rate(hour))} for hour in of]


def loads(of_hours: pa.Table, window_days: int = 28, size_bytes: int | None = 1000) -> pa.Table:
    """Rows of table `load_model` for partitions with records of one byte."""
    hours = LatestHours.of(of_hours)
    fitted = trends(hours, window_days)
    changes = hundredths(fitted.pop("week_changes"))
    found = {name: pa.array(values, from_pandas=True) for name, values in fitted.items()}
    keys = hours.rows.select(PARTITION_KEY).take(hours.starts)
    columns = {
        **{name: keys[name] for name in PARTITION_KEY},
        **found,
        "snapshot_id": ["s"] * len(hours),
        "recent_write_bytes_per_s": found["recent_records_per_s"],
        "plain_write_bytes_per_s": found["plain_records_per_s"],
        "size_bytes": pa.array([size_bytes] * len(hours), pa.int64()),
        "week_changes": changes,
        "has_trend": pc.cast(found["has_trend"], pa.bool_()),
        "has_slowed": pc.cast(found["has_slowed"], pa.bool_()),
        "has_jumped": pc.cast(found["has_jumped"], pa.bool_()),
    }
    return pa.table(columns)


def backtested(known: pa.Table) -> dict[str, Row]:
    """Table `backtests`, by cluster, 30 days ahead."""
    clusters = known["cluster_id"].unique().to_pylist()
    each = (known.filter(pc.equal(known["cluster_id"], name)) for name in clusters)
    return dict(zip(clusters, (backtests_of(loads.select(TESTED), 30).to_pylist()[0] for loads in each), strict=True))


def forecast_of(known: pa.Table, days: float) -> list[Row]:
    """Table `forecast`."""
    widening = {name: row["widening"] for name, row in backtested(known).items()}
    widened = known.select(KNOWN).append_column(
        "widening", pa.array([widening[name] for name in known["cluster_id"].to_pylist()], pa.float64())
    )
    found = pa.Table.from_batches(forecasts(widened.combine_chunks().to_batches(), days))
    assert found.column_names == list(FORECAST.column_names)
    return found.to_pylist()


def ahead(rows: list[Row], days: float = 30, **how: Any) -> dict[int, Row]:
    """The forecast of partitions, so many days ahead."""
    return {row["partition"]: row for row in forecast_of(loads(hour_table(rows), **how), days)}


def fits(rows: list[Row], **how: Any) -> dict[int, Row]:
    return {row["partition"]: row for row in loads(hour_table(rows), **how).to_pylist()}


def weekend(hour: int, at_weekends: float = 60.0) -> float:
    return at_weekends if hour // HOURS_A_DAY % 7 >= 5 else 100.0


WEEK_OF_QUIET_WEEKENDS = (5 * 100 + 2 * 60) / 7


def test_quiet_weekends_are_no_decline_wherever_the_week_ends() -> None:
    histories = list(product((7, 14, 28), range(0, 7 * HOURS_A_DAY, 29)))
    rows = [row for number, (days, first) in enumerate(histories) for row in hours(number, days, weekend, first)]
    for number, row in ahead(rows).items():
        assert row["basis"] == "flat", histories[number]
        assert row["write_bytes_per_s"] == pytest.approx(WEEK_OF_QUIET_WEEKENDS), histories[number]
        assert row["low_write_bytes_per_s"] > 0.25 * WEEK_OF_QUIET_WEEKENDS, histories[number]


def test_growth_of_20_days_is_followed_also_under_quiet_weekends() -> None:
    def growing(hour: int) -> float:
        return 1 + 0.05 * hour / HOURS_A_DAY

    rates: Mapping[int, RateOfHour] = {
        0: lambda hour: 1000 * growing(hour),
        1: lambda hour: 10 * weekend(hour) * growing(hour),
        2: lambda hour: 1000 * 0.95 ** (hour / HOURS_A_DAY),
    }
    found = ahead([row for number, rate in rates.items() for row in hours(number, 20, rate)])
    assert [found[number]["basis"] for number in rates] == ["trend"] * 3
    then = 1000 * (1 + 0.05 * 50)
    assert found[0]["write_bytes_per_s"] == pytest.approx(then, rel=0.1)
    assert found[1]["write_bytes_per_s"] == pytest.approx(then / 100 * WEEK_OF_QUIET_WEEKENDS, rel=0.1)
    # Damped: a decline slows down. Its interval reaches from no more decline to all of it.
    now, then = 1000 * 0.95**20, 1000 * 0.95**50
    assert then < found[2]["write_bytes_per_s"] < now
    assert found[2]["low_write_bytes_per_s"] < then < now < found[2]["high_write_bytes_per_s"]


def test_the_forecast_begins_at_the_recent_rate_and_is_damped() -> None:
    rows = hours(0, 28, lambda hour: 1000 * math.exp(0.02 * hour / HOURS_A_DAY))
    fit = fits(rows)[0]
    assert fit["growth_per_day"] == pytest.approx(0.02, rel=1e-3)
    now = 1000 * math.exp(0.02 * 28)
    assert ahead(rows, days=0)[0]["write_bytes_per_s"] == pytest.approx(now, rel=0.01)
    in_30_days = now * math.exp(0.02 * sum(0.95**day for day in range(1, 31)))
    assert ahead(rows, days=30)[0]["write_bytes_per_s"] == pytest.approx(in_30_days, rel=0.01)


def test_a_step_is_no_trend_and_its_new_height_is_in_the_interval() -> None:
    def up(days: int, days_ago: int) -> RateOfHour:
        return lambda hour: 200 if hour >= (days - days_ago) * HOURS_A_DAY else 100

    histories = [(days, ago) for days, ago in product((18, 21, 28), (2, 5, 9, 10, 12, 15, 20)) if ago < days]
    rows = [row for number, (days, ago) in enumerate(histories) for row in hours(number, days, up(days, ago))]
    for number, row in ahead(rows).items():
        assert row["basis"] == "flat", histories[number]
        assert row["low_write_bytes_per_s"] <= 200 <= row["high_write_bytes_per_s"], histories[number]


def test_a_trend_needs_14_days_and_less_history_says_less() -> None:
    def rate(hour: int) -> float:
        return 10_000 * math.exp(0.01 * hour / HOURS_A_DAY)

    found = ahead([row for days in (0.5, 3, 7, 13, 14) for row in hours(int(days), days, rate)])
    assert {days: row["basis"] for days, row in found.items()} == {
        0: "flat",
        3: "flat",
        7: "flat",
        13: "flat",
        14: "trend",
    }
    widths = [row["high_write_bytes_per_s"] / row["low_write_bytes_per_s"] for _, row in sorted(found.items())]
    assert widths[0] > widths[1] > widths[2] > widths[4]
    assert widths[3] == pytest.approx(widths[2])
    assert widths[2] > 4


def test_only_the_days_of_the_window_count() -> None:
    def rate(hour: int) -> float:
        return 1000.0 if hour >= 20 * HOURS_A_DAY else 10.0 + hour

    rows = hours(0, 40, rate)
    within = fits(rows, window_days=20)[0]
    assert (within["day_count"], within["growth_per_day"], within["has_trend"]) == (20, 0.0, False)
    assert within["week_spread"] == 0.02
    assert fits(rows, window_days=40)[0]["week_spread"] > 0.2
    assert fits(rows, window_days=7)[0]["growth_per_day"] is None


def test_a_day_that_was_not_measured_is_the_same_weekday_before() -> None:
    a_sunday = range(20 * HOURS_A_DAY, 21 * HOURS_A_DAY)
    rows = [row for row in hours(0, 27, weekend) if row["hour_ms"] // HOUR_MS not in a_sunday]
    half = hours(1, 0.5, lambda _: 70.0)
    found = fits([*rows, *half])
    assert (found[0]["day_count"], found[1]["day_count"]) == (26, 0)
    assert found[0]["recent_records_per_s"] == pytest.approx(WEEK_OF_QUIET_WEEKENDS)
    assert found[1]["recent_records_per_s"] == pytest.approx(70)


def test_an_odd_day_does_not_move_the_trend() -> None:
    def rate(hour: int) -> float:
        odd = 10 if hour // HOURS_A_DAY == 16 else 1
        return odd * 1000 * math.exp(0.03 * hour / HOURS_A_DAY)

    assert fits(hours(0, 28, rate))[0]["growth_per_day"] == pytest.approx(0.03, rel=0.05)


def test_peak_and_percentile_are_of_the_hours_of_a_week_then() -> None:
    def rate(hour: int) -> float:
        of_week = hour % (7 * HOURS_A_DAY)
        return 500.0 if of_week == 61 else 300.0 if of_week % HOURS_A_DAY in {9, 10} else 100.0

    growing = hours(1, 28, lambda hour: 1000 * math.exp(0.03 * hour / HOURS_A_DAY))
    found = ahead([*hours(0, 21, rate), *growing, *hours(2, 0.9, rate)])
    mean = (500 + 14 * 300 + (168 - 15) * 100) / 168
    row = found[0]
    assert row["write_bytes_per_s"] == pytest.approx(mean)
    assert (row["peak_write_bytes_per_s"], row["p95_write_bytes_per_s"]) == pytest.approx((500, 300))
    # Nothing but the trend makes its hours differ.
    assert found[1]["peak_write_bytes_per_s"] == pytest.approx(found[1]["write_bytes_per_s"], rel=0.01)
    assert found[2]["peak_write_bytes_per_s"] is None


def test_a_partition_that_rests_is_forecast_to_rest() -> None:
    found = ahead(hours(0, 28, lambda _: 0.0))[0]
    assert (found["write_bytes_per_s"], found["high_write_bytes_per_s"], found["basis"]) == (0, 0, "flat")


def test_a_size_grows_on_while_it_fills_and_stays_at_its_retention() -> None:
    def sized(partition: int, days: float, size: Callable[[float], float]) -> list[Row]:
        rows = hours(partition, days, lambda _: 1.0)
        return [row | {"mean_size_bytes": size(row["hour_ms"] / HOUR_MS / HOURS_A_DAY)} for row in rows]

    rows = [
        *sized(0, 21, lambda day: 1e6 + 1000 * day),
        *sized(1, 28, lambda day: 1e6 * min(day, 7)),
        *sized(2, 6, lambda day: 1e6 + 1000 * day),
        *hours(3, 28, lambda _: 1.0),
    ]
    found = ahead(rows, days=10, size_bytes=7_000_000)
    assert found[0]["size_bytes"] == pytest.approx(7_010_000, rel=1e-6)
    assert found[0]["low_size_bytes"] <= 7_000_000
    assert found[0]["high_size_bytes"] >= found[0]["size_bytes"]
    assert found[1]["size_bytes"] == 7_000_000
    # Too few days: it may keep all that is written.
    assert found[2]["size_bytes"] == 7_000_000
    assert found[2]["high_size_bytes"] >= 7_000_000 + 10 * DAY_S
    unknown = ahead(rows, size_bytes=None)[0]
    assert [unknown[name] for name in ("size_bytes", "low_size_bytes", "high_size_bytes")] == [None] * 3


def test_a_size_of_which_nothing_else_is_known_has_no_upper_end() -> None:
    measured, unmeasured = (loads(hour_table(hours(number, 28, lambda _: 1.0))) for number in (0, 1))
    for place, field in enumerate(unmeasured.schema):
        if field.name.startswith(("recent_", "plain_", "week_", "growth_", "size_growth_", "size_spread_")):
            unmeasured = unmeasured.set_column(place, field, pa.nulls(1, field.type))
    known = pa.concat_tables([measured, unmeasured])
    bounded, unbounded = forecast_of(known, 30)
    assert bounded["high_size_bytes"] == pytest.approx(1000 + 30 * DAY_S, rel=0.2)
    assert (unbounded["size_bytes"], unbounded["high_size_bytes"], unbounded["basis"]) == (1000, None, "unknown")
    total = backtested(known)["c"]
    assert (total["size_bytes"], total["high_size_bytes"]) == (pytest.approx(1000 + bounded["size_bytes"]), None)
    assert total["low_size_bytes"] < 2000
    assert backtested(loads(hour_table(hours(0, 28, lambda _: 1.0))))["c"]["high_size_bytes"] is not None


def test_no_size_is_forecast_to_grow_by_more_than_what_is_written() -> None:
    """A purge of 10 TB ten days ago, and a size that grew faster before: the log takes a byte a second."""
    now = 1_000_000

    def sized(partition: int, size: Callable[[float], float]) -> list[Row]:
        rows = hours(partition, 28, lambda _: 1.0)
        return [row | {"mean_size_bytes": size(row["hour_ms"] / HOUR_MS / HOURS_A_DAY)} for row in rows]

    rows = [*sized(0, lambda day: 1e13 if day < 18 else now), *sized(1, lambda day: 1e7 * day)]
    known = loads(hour_table(rows), size_bytes=now)
    for row in forecast_of(known, 10):
        most = now + 10 * DAY_S * row["high_write_bytes_per_s"]
        assert row["low_size_bytes"] <= now <= row["size_bytes"] <= row["high_size_bytes"]
        assert row["high_size_bytes"] == pytest.approx(most)
    total = backtests_of(known.select(TESTED), 10).to_pylist()[0]
    assert total["high_size_bytes"] == pytest.approx(2 * most)


def test_the_backtest_says_how_the_last_week_was_forecast(tmp_path: Path) -> None:
    def jump(hour: int) -> float:
        return 200.0 if hour >= 14 * HOURS_A_DAY else 100.0

    steady = [row for number in range(9) for row in hours(number, 21, lambda _: 100.0)]
    known = loads(hour_table([*steady, *hours(9, 21, jump), *hours(10, 13, lambda _: 100.0)]))
    found = {row["partition"]: row for row in known.to_pylist()}
    assert (found[0]["backtest_error"], found[0]["backtest_sigmas"]) == (pytest.approx(0), 0)
    assert found[9]["backtest_error"] == pytest.approx(0.5)
    # The spread of 14 equal days is 0.02, and its reach to the middle of the next week the root of 1.5.
    assert found[9]["backtest_sigmas"] == pytest.approx(4 * 2.447)
    assert found[10]["backtest_error"] is None
    row = backtested(known)["c"]
    assert row.keys() == set(BACKTESTS.column_names)
    assert (row["partition_count"], row["median_error"], row["covered_share"]) == (10, pytest.approx(0), 0.9)
    assert 1 < row["widening"] <= 4

    none = backtested(loads(hour_table(hours(0, 3, lambda _: 1.0, cluster_id="d"))))["d"]
    assert (none["partition_count"], none["median_error"], none["widening"]) == (0, None, 1.0)
    write_rows(tmp_path, BACKTESTS, [none, row], file_stem="a")
    finish_load(tmp_path)
    tested_c, tested_d = backtest_results(tmp_path)
    approve([tested_c, tested_d], "backtests", ERROR=f"{row['p95_error']:.1%}", WIDENING=f"{row['widening']:.2f}")


def test_intervals_are_as_wide_as_past_forecasts_were_wrong() -> None:
    """Of two similar clusters, the one with other jumps has the wider intervals."""
    calm = [row for number in range(5) for row in hours(number, 28, lambda _: 100.0, cluster_id="calm")]
    restless = [row | {"cluster_id": "restless"} for row in hours(0, 28, lambda _: 100.0)]
    for number in range(1, 5):
        restless += hours(number, 28, lambda hour: 150.0 if hour >= 21 * HOURS_A_DAY else 100.0, cluster_id="restless")
    found = [row for row in forecast_of(loads(hour_table([*calm, *restless])), 30) if row["partition"] == 0]
    width = {row["cluster_id"]: row["high_write_bytes_per_s"] / row["low_write_bytes_per_s"] for row in found}
    assert width["restless"] > width["calm"] > 1


def hours_of(known: Iterable[Cohort]) -> pa.Table:
    """Table `load_hours` of every partition of the cohorts: one topic each."""
    columns: dict[str, list[Any]] = {name: [] for name in ("topic", "partition", "hour_ms", "new_records")}
    for cohort in known:
        for partition, begin in enumerate(cohort.begins):
            of = np.arange(begin, HISTORY_DAYS * HOURS_A_DAY)
            columns["topic"] += [cohort.name] * len(of)
            columns["partition"] += [partition] * len(of)
            columns["hour_ms"] += (of * HOUR_MS).tolist()
            columns["new_records"] += np.round(cohort.rates[of, partition] * 3600).astype(int).tolist()
    count = len(columns["topic"])
    constant = {name: [HOUR[name]] * count for name in LOAD_HOURS.column_names if name not in columns}
    return pa.table(columns | constant, schema=arrow_schema(LOAD_HOURS))


def test_95_percent_holds_at_least_90_of_every_cohort() -> None:
    known = cohorts(20)
    rows = forecast_of(loads(hours_of(known)), AHEAD_DAYS)
    inside = {cohort.name: 0.0 for cohort in known}
    truth = {cohort.name: cohort.truth for cohort in known}
    for row in rows:
        then = truth[row["topic"]][row["partition"]]
        inside[row["topic"]] += (row["low_write_bytes_per_s"] <= then <= row["high_write_bytes_per_s"]) / 20
    assert {name: share for name, share in inside.items() if share < 0.9 - 1e-9} == {}


def test_a_jump_on_the_last_day_is_named_and_the_interval_reaches_to_it() -> None:
    def jumping(hour: int) -> float:
        return 1000.0 if hour >= 27 * HOURS_A_DAY else 100.0

    found = ahead([*hours(0, 28, jumping), *hours(1, 28, lambda _: 100.0)])
    assert [found[number]["basis"] for number in (0, 1)] == ["jumped", "flat"]
    assert found[0]["write_bytes_per_s"] == pytest.approx(100)
    assert found[0]["low_write_bytes_per_s"] < 100
    assert found[0]["high_write_bytes_per_s"] > 1000 > 5 * found[1]["high_write_bytes_per_s"]
