from __future__ import annotations

from pathlib import Path

import pytest

from kreassign.model.load import Expected, History, LoadCharts, TopicSkew
from kreassign.pipeline.load.summary import charts, load_columns
from kreassign.pipeline.tables.schemas import LOAD_HOURS, Row
from tests.pipeline.load_tables import (
    HOUR_MS,
    MB,
    TAKEN_MS,
    a_cluster,
    fill,
    forecast_rows,
    hour_rows,
    leaders,
    load_row,
    row,
    skew_row,
    wave,
)


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


def test_unmeasured_hours_count_with_their_mean_or_are_missing(
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


def test_skewed_topics_come_by_the_excess_of_their_busiest_partition(tmp_path: Path) -> None:
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


def test_without_hours_and_forecast_what_is_known_is_told(tmp_path: Path) -> None:
    fill(tmp_path, [load_row("t", 0, 1000.0), load_row("t", 1, 500.0)])
    found = the_charts(tmp_path)
    assert [(curve.name, curve.hours) for curve in found.partitions] == [("t-0", (None,) * 24), ("t-1", (None,) * 24)]
    assert found.cluster == History("all partitions", (), 1500.0, 0.0, None)
    assert (found.brokers, found.skew) == ((), ())


def at(ago_hours: int, partition: int = 0, records: int = 36_000, **values: object) -> Row:
    """A row of hours of topic t, so many hours before the last one: usually 10 records of 100 bytes a second."""
    hour_ms = (TAKEN_MS // HOUR_MS - 1 - ago_hours) * HOUR_MS
    key = {"cluster_id": "c.1", "topic": "t", "partition": partition, "hour_ms": hour_ms}
    return row(LOAD_HOURS, **key, seconds=3600.0, new_records=records) | values


def test_hours_of_others_change_nothing(tmp_path: Path) -> None:
    others = [at(0, 7, 9_999, epoch=3), at(0, topic="a"), at(0, topic="z"), at(0, cluster_id="c.2", epoch=9)]
    fill(tmp_path, [load_row("s", 0, 1.0), load_row("t", 0, 1000.0)], load_hours=[at(0), at(2, records=0), *others])
    busiest, idle = the_charts(tmp_path).partitions
    # The last hour begins at 9:00.
    assert (busiest.name, busiest.hours) == ("t-0", (None,) * 7 + (0.0, None, 1000.0) + (None,) * 14)
    assert (idle.name, idle.hours) == ("s-0", (None,) * 24)


def test_a_load_without_any_hour_of_its_cluster_has_no_curves(tmp_path: Path) -> None:
    fill(tmp_path, [load_row("t", 0, 1000.0)], load_hours=[at(0, cluster_id="c.2")])
    found = the_charts(tmp_path)
    assert (found.partitions[0].hours, found.cluster.days) == ((None,) * 24, ())


def test_what_is_idle_writes_nothing_however_large_its_records_are(tmp_path: Path) -> None:
    loads = [load_row("t", 0, 1000.0), load_row("t", 1, 0.0, bytes_per_record=None)]
    fill(tmp_path, loads, load_hours=[at(0), at(0, 1, records=0)], plan_inputs=leaders(loads, 1))
    (broker,) = the_charts(tmp_path).brokers
    assert broker.hours[9] == 1000.0


@pytest.mark.parametrize(("seconds", "days"), [(2160.0, ((0, 1000.0),)), (2159.0, ())])
def test_a_day_is_whole_with_nine_tenths_of_it(tmp_path: Path, seconds: float, days: tuple[object, ...]) -> None:
    """21 hours, and 36 minutes of another one."""
    part = at(21, records=int(seconds * 10), seconds=seconds)
    fill(tmp_path, [load_row("t", 0, 1000.0)], load_hours=[*(at(ago) for ago in range(21)), part])
    (history,) = the_charts(tmp_path).histories
    assert history.days == days


def test_four_weeks_are_shown_back_from_the_last_measured_hour(tmp_path: Path) -> None:
    loads = [load_row("t", 0, 1000.0), load_row("t", 1, 500.0)]
    hours = [at(ago) for ago in range(29 * 24)] + [at(ago, 1, records=18_000) for ago in range(24, 48)]
    fill(tmp_path, loads, load_hours=hours)
    first, second = the_charts(tmp_path).histories
    assert first.days == tuple((age, 1000.0) for age in reversed(range(28)))
    assert second.days == ((1, 500.0),)
    # Hours of the day are those of all days, also of the twenty-ninth.
    assert the_charts(tmp_path).partitions[0].hours == (1000.0,) * 24


@pytest.mark.parametrize(("second", "days"), [(1000.0, ((0, 2000.0),)), (1001.0, ())])
def test_a_day_of_all_is_told_when_half_of_their_writes_were_measured(
    tmp_path: Path, second: float, days: tuple[object, ...]
) -> None:
    loads = [load_row("t", 0, 1000.0), load_row("t", 1, second)]
    fill(tmp_path, loads, load_hours=[at(ago) for ago in range(24)])
    assert the_charts(tmp_path).cluster.days == days


def test_of_brokers_partitions_and_topics_the_first_are_told(tmp_path: Path) -> None:
    loads = [load_row("t", number, 100.0 * (number + 1)) for number in range(4)]
    skew = [skew_row("a", 2.0, 1e3), skew_row("b", 3.0, 1e3), skew_row("c", 9.0, 1e9, known_count=0)]
    hours = [at(0, number) for number in range(4)]
    fill(tmp_path, loads, load_hours=hours, plan_inputs=leaders(loads, 3), skew=skew)
    found = the_charts(tmp_path, top=2)
    # Broker 1 leads t-0 and t-3, broker 2 t-1, broker 3 t-2.
    assert [curve.name for curve in found.brokers] == ["broker 1", "broker 3"]
    assert [curve.hours[9] for curve in found.brokers] == [2000.0, 1000.0]
    assert [curve.name for curve in found.partitions] == [one.name for one in found.histories] == ["t-3", "t-2"]
    assert [one.topic for one in found.skew] == ["b", "a"]


def test_a_skewed_topic_is_told_as_its_row_says(tmp_path: Path) -> None:
    fill(tmp_path, [load_row("t", 0, 1.0)], skew=[skew_row("a", 2.0, 1e3, verdict="hot partition")])
    (found,) = the_charts(tmp_path).skew
    expected = skew_row("a", 2.0, 1e3, verdict="hot partition")
    assert {name: getattr(found, name) for name in TopicSkew.__slots__} == {
        name: expected[name] for name in TopicSkew.__slots__
    }


def test_a_forecast_is_that_of_the_partitions_of_the_load(tmp_path: Path) -> None:
    loads = [load_row("t", 0, 1000.0), load_row("t", 1, 500.0)]
    rows = [*forecast_rows(loads[1:]), *forecast_rows([load_row("a", 0, 9e9), load_row("u", 0, 9e9)])]
    fill(tmp_path, loads, forecast=[one | {"horizon_days": 7.0} for one in rows])
    first, second = the_charts(tmp_path).histories
    assert (first.expected, second.expected) == (None, Expected(600.0, 480.0, 720.0))
    assert (first.now, first.horizon_days, second.horizon_days) == (1000.0, 7.0, 7.0)
