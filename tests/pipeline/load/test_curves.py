from __future__ import annotations

from pathlib import Path

import pytest

from kreassign.model.load_summary import Expected, LoadCharts
from kreassign.pipeline.load.curves import charts
from kreassign.pipeline.load.summary import load_columns
from kreassign.pipeline.tables.schemas import Row
from tests.pipeline.load_tables import MB, a_cluster, fill, forecast_rows, hour_rows, leaders, load_row, skew_row, wave


def the_charts(data: Path, top: int = 5) -> LoadCharts:
    return charts(data, load_columns(data, "c.1"), top)


def near(value: float) -> object:
    return pytest.approx(value, rel=1e-3)


def test_the_day_of_a_partition_is_its_mean_in_each_hour_of_the_day(tmp_path: Path) -> None:
    fill(tmp_path, **a_cluster())
    found = the_charts(tmp_path)
    assert [curve.name for curve in found.partitions] == ["clicks-0", "orders-0", "clicks-1", "clicks-3", "orders-1"]
    assert found.partitions[1].hours == tuple(near(wave(hour, 12 * MB, 14)) for hour in range(24))


def test_the_day_of_a_broker_is_what_the_partitions_get_that_it_leads(tmp_path: Path) -> None:
    fill(tmp_path, **a_cluster())
    found = the_charts(tmp_path)
    # Partition number n of all twelve is led by broker n % 3 + 1; the busiest, clicks-0, is the fifth.
    assert [curve.name for curve in found.brokers] == ["broker 2", "broker 1", "broker 3"]
    busiest = (wave(20, 4 * MB, 14), wave(20, 27 * MB, 20), wave(20, 9 * MB, 20), wave(20, 0.1 * MB, 2))
    assert found.brokers[0].hours[20] == near(sum(busiest))


def test_what_was_not_measured_in_an_hour_counts_with_its_mean_and_hours_without_any_are_missing(
    tmp_path: Path,
) -> None:
    loads = [load_row("t", 0, 1000.0), load_row("t", 1, 500.0)]
    hours = [*hour_rows("t", 0, 1000.0, hours=10), *hour_rows("t", 1, 500.0, hours=5)]
    fill(tmp_path, loads, load_hours=hours, plan_inputs=leaders(loads, 1))
    (broker,) = the_charts(tmp_path).brokers
    assert broker.hours[9] == near(wave(9, 1500, 14))
    assert broker.hours[2] == near(wave(2, 1000, 14) + 500)
    assert broker.hours[10:] == (None,) * 14


def test_hours_before_the_log_was_reset_do_not_count(tmp_path: Path) -> None:
    before: list[Row] = [one | {"epoch": 0, "new_records": 10**9} for one in hour_rows("t", 0, 1000.0, hours=48)]
    since: list[Row] = [one | {"epoch": 1} for one in hour_rows("t", 0, 1000.0, hours=24)]
    fill(tmp_path, [load_row("t", 0, 1000.0)], load_hours=[*before[:24], *since])
    (curve,) = the_charts(tmp_path).partitions
    assert max(each for each in curve.hours if each is not None) == near(1500)


def test_a_history_has_whole_days_only_and_ends_in_the_forecast(tmp_path: Path) -> None:
    loads = [load_row("t", 0, 1000.0), load_row("t", 1, 500.0), load_row("t", 2)]
    hours = [*hour_rows("t", 0, 1000.0, hours=70), *hour_rows("t", 1, 500.0, hours=30)]
    fill(tmp_path, loads, load_hours=hours, forecast=forecast_rows(loads))
    found = the_charts(tmp_path)
    cluster, (first, second) = found.cluster, found.histories
    # 70 hours are three days of 24, 24 and 22 hours: the last is whole enough; of 30 only the last 24.
    assert [age for age, _ in first.days] == [2, 1, 0]
    assert first.days[1:] == ((1, near(1000)), (0, near(1000)))
    assert [age for age, _ in second.days] == [0]
    assert cluster.days[-1] == (0, near(1500))
    assert (first.now, cluster.now) == (1000, 1500)
    assert first.expected == Expected(near(1200), near(960), near(1440))
    assert cluster.expected == Expected(near(1800), near(1440), near(2160))
    assert cluster.horizon_days == 30


def test_skewed_topics_come_by_what_their_busiest_partition_gets_beyond_an_even_share(tmp_path: Path) -> None:
    skew = [
        skew_row("idle", None, 0.0),
        skew_row("even", 1.0, 9e9),
        skew_row("little", 3.9, 1e3),
        skew_row("much", 2.0, 1e9, verdict="hot partition"),
        skew_row("unknown", None, 0.0, write_bytes_per_s=None),
    ]
    fill(tmp_path, [load_row("t", 0, 1.0)], skew=skew)
    found = the_charts(tmp_path).skew
    assert [(topic.topic, topic.verdict) for topic in found] == [("much", "hot partition"), ("little", "even")]


def test_a_load_of_nothing_has_no_curves(tmp_path: Path) -> None:
    fill(tmp_path, [load_row("t", 0)])
    found = the_charts(tmp_path)
    assert (found.brokers, found.partitions, found.histories, found.skew) == ((), (), (), ())
    assert (found.cluster.days, found.cluster.now, found.cluster.expected) == ((), None, None)
