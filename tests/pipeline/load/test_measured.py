"""Measurements of brokers, shared out to partitions: a small world whose every byte is known, in one job."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from kreassign.pipeline.load.measured import (
    BROKER,
    READINGS,
    SPREADS,
    broker_loads,
    metric_counts,
    metric_hours,
    metric_sums,
    unknown_brokers,
    unknown_topics,
    with_measured,
    with_topic_names,
)
from kreassign.pipeline.load.rules import AFTER_GAP, ANOTHERS, FIRST, METRIC_HOUR_RULES, TOO_FAST, TWICE, WENT_BACK
from kreassign.pipeline.tables.schemas import BROKER_LOADS, LOAD_MODEL, METRIC_HOURS, METRICS, Row
from kreassign.pipeline.tables.spark_io import struct_type

pytestmark = pytest.mark.spark

HOUR_MS, MINUTE_MS = 3_600_000, 60_000
BEGIN_MS = 490_000 * HOUR_MS
HOURS = 2
EVERY_MS = 10 * MINUTE_MS

# Topic, partition, its leader in each hour (0: none), bytes per second written (None: unknown size), replicas.
PARTITIONS: tuple[tuple[str, int, tuple[int, int], float | None, tuple[int, ...]], ...] = (
    ("orders", 0, (1, 1), 100.0, (1, 2)),
    ("orders", 1, (1, 1), 200.0, (1, 2)),
    ("alone", 0, (1, 1), 50.0, (1,)),
    ("told by partition", 0, (2, 2), 10.0, (2,)),
    ("told by partition", 1, (2, 2), 10.0, (2,)),
    ("rest", 0, (1, 1), 30.0, (1,)),
    ("rest", 1, (1, 1), 10.0, (1,)),
    ("moved", 0, (1, 2), 40.0, (2, 1)),
    ("only read", 0, (4, 4), 0.0, (4,)),
    ("only read", 1, (4, 4), 0.0, (4,)),
    ("reset", 0, (5, 5), 60.0, (5,)),
    ("lately", 0, (6, 6), 70.0, (6,)),
    ("unmeasured", 0, (3, 3), 80.0, (3,)),
    ("partly sized", 0, (7, 7), 60.0, (7,)),
    ("partly sized", 1, (7, 7), None, (7,)),
)


def rates(broker: int, name: str, topic: str | None, partition: int | None, *of_hours: float | None) -> Iterator[Row]:
    """A reading every ten minutes, of these rates in the hours; None is an hour without readings."""
    for number in range(6 * len(of_hours) + 1):
        rate = of_hours[max(number - 1, 0) // 6]
        if rate is not None:
            at_ms = BEGIN_MS - 5 * MINUTE_MS + number * EVERY_MS
            yield metric(broker, name, topic, partition, at_ms, rate)


def counter(broker: int, name: str, topic: str | None, per_s: float, reset_at: int | None = None) -> Iterator[Row]:
    """Turn the values into a counter of two hours, which restarts at a reading."""
    for number in range(6 * HOURS + 1):
        since = number if reset_at is None or number < reset_at else number - reset_at
        yield metric(broker, name, topic, None, BEGIN_MS - 5 * MINUTE_MS + number * EVERY_MS, since * per_s * 600)


def metric(broker: int, name: str, topic: str | None, partition: int | None, at_ms: int, value: float) -> Row:
    return {"cluster_id": "c", "taken_ms": at_ms, "broker": broker, "topic": topic, "partition": partition,
            "name": name, "value": value}  # fmt: skip


def all_metrics() -> Iterator[Row]:
    yield from counter(1, "bytes_out_total", "orders", 900.0)
    yield from rates(1, "bytes_out_per_s", "alone", None, 75.0, 75.0)
    yield from rates(2, "bytes_out_per_s", "told by partition", 0, 5.0, 15.0)
    yield from rates(2, "bytes_out_per_s", "told by partition", None, 25.0, 25.0)
    yield from rates(1, "bytes_out_per_s", "moved", None, 120.0, 0.0)
    yield from rates(2, "bytes_out_per_s", "moved", None, 0.0, 80.0)
    # 900 + 75 + 120 are of topics that are told, in the second hour 900 + 75.
    yield from rates(1, "bytes_out_per_s", None, None, 1135.0, 1015.0)
    yield from rates(4, "bytes_out_per_s", None, None, 8.0, 8.0)
    yield from counter(5, "bytes_out_total", "reset", 30.0, reset_at=4)
    yield from rates(6, "bytes_out_per_s", None, None, None, 35.0)
    yield from rates(7, "bytes_out_per_s", "partly sized", None, 90.0, 90.0)
    yield from rates(7, "cpu_share", None, None, 0.3, 0.3)
    for broker, used in ((1, 0.5), (2, 0.2)):
        yield from rates(broker, "cpu_share", None, None, used, used)
        yield from rates(broker, "bytes_in_per_s", None, None, 430.0, 350.0)
        yield from rates(broker, "replication_bytes_out_per_s", None, None, 340.0, 300.0)
    yield from rates(1, "produce_requests_per_s", None, None, 20.0, 20.0)
    # The same once more, as a counter.
    yield from counter(1, "produce_requests_total", None, 20.0)
    yield from rates(1, "fetch_requests_per_s", None, None, 23.0, 15.0)
    for row in rates(-1, "bytes_out_per_s", "orders", None, 600.0, 600.0):
        yield row | {"cluster_id": "cloud"}


def world(spark: SparkSession) -> tuple[DataFrame, DataFrame, DataFrame, DataFrame]:
    """Loads, hours, replicas and what was measured; `cloud` is another cluster with topic `orders` only."""
    parts = [("c", *part) for part in PARTITIONS] + [("cloud", *part) for part in PARTITIONS[:2]]
    loads = spark.createDataFrame(
        [
            (cluster, "s", topic, number, rate, None if rate is None else 10.0)
            for cluster, topic, number, _, rate, _ in parts
        ],
        "cluster_id string, snapshot_id string, topic string, partition int, write_bytes_per_s double, "
        "bytes_per_record double",
    )
    hours = spark.createDataFrame(
        [
            (
                cluster,
                topic,
                number,
                BEGIN_MS + hour * HOUR_MS,
                3600.0,
                int(rate * 360) if rate is not None else 3600,
                leaders[hour],
                hour,
            )
            for cluster, topic, number, leaders, rate, _ in parts
            for hour in range(HOURS)
        ],
        "cluster_id string, topic string, partition int, hour_ms bigint, seconds double, new_records bigint, "
        "last_leader int, last_ms int",
    )
    replicas = spark.createDataFrame(
        [
            (cluster, "s", topic, number, broker, broker == leaders[-1])
            for cluster, topic, number, leaders, _, brokers in parts
            for broker in brokers
        ],
        "cluster_id string, snapshot_id string, topic string, partition int, broker int, is_leader boolean",
    )
    rest = [field for field in struct_type(LOAD_MODEL) if field.name not in loads.columns]
    full = loads.withColumns({field.name: sql.lit(None).cast(field.dataType) for field in rest})
    metrics = spark.createDataFrame(
        [tuple(row[name] for name in METRICS.column_names) for row in all_metrics()], struct_type(METRICS)
    )
    # As the job has it: from a table, not computed again for each use.
    measured = spark.createDataFrame(metric_hours(metric_sums(metrics)).collect(), struct_type(METRIC_HOURS))
    return full.select(*LOAD_MODEL.column_names), hours, replicas, measured


def test_every_reading_is_counted_once_and_says_what_is_not_measured(spark: SparkSession) -> None:
    def at(minutes: int, value: float, name: str = "bytes_in_total", broker: int = 1) -> Row:
        return metric(broker, name, None, None, BEGIN_MS + minutes * MINUTE_MS, value)

    rows = [
        at(0, 0.0), at(10, 600.0), at(10, 600.0), at(20, 1200.0),
        at(30, 60.0), at(40, 660.0),  # the broker was restarted
        at(120, 9000.0), at(130, 9600.0), at(190, 13200.0),  # nobody looked for 80 minutes, and then for one hour
        at(0, 5.0, "bytes_in_per_s", broker=2),
        at(0, 7.0, "cpu_share", broker=3), at(61, 7.0, "cpu_share", broker=3),
    ]  # fmt: skip
    values = [tuple(row[name] for name in METRICS.column_names) for row in rows]
    sums = metric_sums(spark.createDataFrame(values, struct_type(METRICS)))
    counts = metric_counts(sums)
    assert counts == {READINGS: 12, TWICE: 1, FIRST: 3, AFTER_GAP: 2, WENT_BACK: 1, ANOTHERS: 0, TOO_FAST: 0}
    hours = sorted((row["broker"], row["hour_ms"] - BEGIN_MS, row["value"], row["measured_share"] * 60)
                   for row in metric_hours(sums).collect())  # fmt: skip
    assert hours == [(1, 0, 1.0, 30.0), (1, 2 * HOUR_MS, 1.0, 10.0), (1, 3 * HOUR_MS, 1.0, 60.0)]
    # Good ones that are not counted for another reason stand for the time before them: five that are in the hours.
    assert counts[READINGS] - sum(counts[rule.reason] for rule in METRIC_HOUR_RULES) == 5


def test_a_step_to_the_counter_of_another_broker_is_no_traffic(spark: SparkSession) -> None:
    """Pages of two brokers under one id, one by one and two by two, and a counter that nobody can have filled."""
    alternating = (1e12, 5e12, 1e12 + 60, 5e12 + 60, 1e12 + 120)
    in_pairs = (1e12, 1e12 + 60, 5e12, 5e12 + 60, 1e12 + 120, 1e12 + 180)
    series = {1: alternating, 2: in_pairs, 3: (0.0, 9e17)}
    rows = [
        metric(broker, "bytes_out_total", None, None, BEGIN_MS + number * 5 * MINUTE_MS, value)
        for broker, values in series.items()
        for number, value in enumerate(values)
    ]
    values = [tuple(row[name] for name in METRICS.column_names) for row in rows]
    sums = metric_sums(spark.createDataFrame(values, struct_type(METRICS)))
    counts = metric_counts(sums)
    assert [counts[reason] for reason in (FIRST, WENT_BACK, ANOTHERS, TOO_FAST)] == [3, 3, 3, 1]
    assert {row["broker"]: row["value"] for row in metric_hours(sums).collect()} == {2: pytest.approx(60 / 300)}


def test_topics_are_found_by_the_scope_of_their_metrics(spark: SparkSession) -> None:
    topics = ("shop.orders.v1", "shop_orders_v1", None, "orders_v1", "plain_name", "gone", "gone")
    rows = [metric(1, "bytes_out_per_s", topic, None, BEGIN_MS + place, 1.0) for place, topic in enumerate(topics)]
    values = [tuple(row[name] for name in METRICS.column_names) for row in rows]
    snapshot = [("c", "shop.orders.v1"), ("other", "orders.v1"), ("c", "plain_name"), ("c", "plain_name")]
    partitions = spark.createDataFrame(snapshot, "cluster_id string, topic string")
    named = with_topic_names(spark.createDataFrame(values, struct_type(METRICS)), partitions)
    found = [row["topic"] for row in named.orderBy("taken_ms").collect()]
    assert found == ["shop.orders.v1", "shop.orders.v1", None, "orders_v1", "plain_name", "gone", "gone"]
    assert list(unknown_topics(metric_sums(named), partitions).items()) == [("gone", 2), ("orders_v1", 1)]


def test_a_broker_that_the_snapshot_lacks_is_counted(spark: SparkSession) -> None:
    rows = [metric(broker, "bytes_out_per_s", None, None, BEGIN_MS, 1.0) for broker in (1, 2, 11, -1)]
    values = [tuple(row[name] for name in METRICS.column_names) for row in rows]
    brokers = spark.createDataFrame([("c", 1), ("c", 1), ("other", 2)], "cluster_id string, broker int")
    sums = metric_sums(spark.createDataFrame(values, struct_type(METRICS)))
    assert unknown_brokers(sums, brokers) == {2: 1, 11: 1}, "no broker is that of a whole cluster"


def test_what_brokers_can_hold_is_unknown_where_a_part_of_it_is(spark: SparkSession) -> None:
    """Broker 1 leads a partition of unknown writes with a follower; that of broker 2 has none; of 3 a metric lacks."""
    writes = {("a", 0): 100.0, ("a", 1): None, ("b", 0): 50.0, ("b", 1): None}
    copies = {("a", 0): (1, 2), ("a", 1): (1, 2), ("b", 0): (2, 1), ("b", 1): (2,)}
    loads = spark.createDataFrame(
        [("c", "s", *name, rate) for name, rate in writes.items()],
        "cluster_id string, snapshot_id string, topic string, partition int, write_bytes_per_s double",
    )
    replicas = spark.createDataFrame(
        [("c", "s", *name, broker, broker == brokers[0]) for name, brokers in copies.items() for broker in brokers],
        "cluster_id string, snapshot_id string, topic string, partition int, broker int, is_leader boolean",
    )
    told = {"bytes_in": 150.0, "bytes_out": 300.0, "cpu_share": 0.5}
    of_all = [(broker, name, 0, value, 1.0) for broker in (1, 2, 3) for name, value in told.items()]
    copied = [(broker, "replication_bytes_out", 0, value, 1.0) for broker, value in ((1, 250.0), (2, 50.0))]
    rows = [*of_all, *copied, (2, "bytes_out", 1, 9000.0, 0.01)]
    measured = spark.createDataFrame(
        [("c", broker, None, None, name, hour, value, share) for broker, name, hour, value, share in rows],
        struct_type(METRIC_HOURS),
    )
    dirs = spark.createDataFrame([], "cluster_id string, broker int, total_bytes bigint, usable_bytes bigint")
    found = {row["broker"]: row for row in broker_loads(loads, replicas, measured, dirs).collect()}
    assert [found[broker]["replication_out_ratio"] for broker in (1, 2)] == [None, 1.0]
    assert [found[broker]["cpu_capacity_bytes_per_s"] for broker in (1, 3)] == [pytest.approx(700 / 0.5), None]
    # Half a minute of an hour is neither its peak nor a half of two hours.
    assert found[2]["peak_bytes_out_per_s"] == 300
    assert found[2]["bytes_out_per_s"] == pytest.approx((300 + 90) / 1.01)
    assert found[2]["hour_count"] == 2


# Read bytes per second, basis, error, and the part of the hours that was measured.
EXPECTED: dict[tuple[str, str, int], tuple[float | None, str | None, float | None, float | None]] = {
    ("c", "orders", 0): (300.0, "topic", 0.2 * 2 / 3, 1.0),
    ("c", "orders", 1): (600.0, "topic", 0.2 * 1 / 3, 1.0),
    ("c", "alone", 0): (75.0, "topic", 0.0, 1.0),
    ("c", "told by partition", 0): (10.0, "partition", 0.0, 1.0),
    # The rest of its topic: 20 in the first hour, 10 in the second.
    ("c", "told by partition", 1): (15.0, "topic", 0.0, 1.0),
    # The rest of its broker: 40 in each hour, as 3 to 1.
    ("c", "rest", 0): (30.0, "broker", 0.25, 1.0),
    ("c", "rest", 1): (10.0, "broker", 0.75, 1.0),
    ("c", "moved", 0): (100.0, "topic", 0.0, 1.0),
    ("c", "only read", 0): (4.0, "broker", 0.5, 1.0),
    ("c", "only read", 1): (4.0, "broker", 0.5, 1.0),
    # Of twelve intervals the one with the reset is not known.
    ("c", "reset", 0): (30.0, "topic", 1 / 12, 11 / 12),
    # Measured in the second of two hours, from its second reading on.
    ("c", "lately", 0): (35.0, "broker", 1 - 5 / 12, 5 / 12),
    ("c", "unmeasured", 0): (None, None, None, None),
    # Of one nobody knows the bytes that were written, so that it counts as the other does.
    ("c", "partly sized", 0): (45.0, "topic", 0.2 / 2, 1.0),
    ("c", "partly sized", 1): (45.0, "topic", 1 / 2, 1.0),
    ("cloud", "orders", 0): (200.0, "topic", 0.2 * 2 / 3, 1.0),
    ("cloud", "orders", 1): (400.0, "topic", 0.2 * 1 / 3, 1.0),
}


def test_measured_traffic_is_shared_out_by_the_finest_metric(spark: SparkSession) -> None:
    loads, hours, replicas, measured = world(spark)
    told = with_measured(loads, hours, replicas, measured)
    assert told.columns == list(LOAD_MODEL.column_names)
    rows = {(row["cluster_id"], row["topic"], row["partition"]): row for row in told.collect()}
    found = {
        key: (row["read_bytes_per_s"], row["read_basis"], row["read_error_share"], row["read_measured_share"])
        for key, row in rows.items()
    }
    assert found.keys() == EXPECTED.keys()
    for key, expected in EXPECTED.items():
        assert found[key] == pytest.approx(expected), key
    assert [rows["c", "partly sized", number]["cpu_share"] for number in (0, 1)] == [pytest.approx(0.3), None]
    assert rows["c", "partly sized", 0]["cpu_error_share"] == pytest.approx(SPREADS[BROKER])
    _expect_the_cpu_and_the_requests_of_broker_1(rows)
    _expect_windows_with_their_completeness(measured)
    _expect_what_brokers_can_hold(spark, loads, replicas, measured)


def _expect_the_cpu_and_the_requests_of_broker_1(rows: dict[tuple[str, str, int], Row]) -> None:
    led = [rows["c", topic, number] for topic, number in (("orders", 0), ("orders", 1), ("alone", 0), ("rest", 0),
                                                          ("rest", 1))]  # fmt: skip
    # It follows partition 0 of `moved`, too.
    used = sum(row["cpu_share"] for row in led) + rows["c", "moved", 0]["follower_cpu_share"]
    assert used == pytest.approx(0.5)
    # The leader of `orders` 1 receives 200, and sends 600 to consumers and 200 to its follower.
    one, other = rows["c", "orders", 1], rows["c", "alone", 0]
    assert one["cpu_share"] / other["cpu_share"] == pytest.approx((0.7 * 200 + 0.15 * 800) / (0.7 * 50 + 0.15 * 75))
    nothing = rows["c", "unmeasured", 0]
    assert [nothing[name] for name in ("cpu_share", "cpu_error_share", "requests_error_share")] == [None] * 3
    # What costs little of what its broker does may be off by nearly all of itself, and all of it by nothing.
    assert one["cpu_error_share"] == pytest.approx(1 - one["cpu_share"] / 0.5)
    assert other["cpu_error_share"] > one["cpu_error_share"]
    # Of 43 requests per second in the first hour, while broker 1 led all 430 bytes, and 35 while it led 390.
    assert one["requests_per_s"] == pytest.approx((43 * 200 / 430 + 35 * 200 / 390) / 2)
    assert one["requests_error_share"] == pytest.approx(1 - (200 / 430 + 200 / 390) / 2)


def _expect_windows_with_their_completeness(measured: DataFrame) -> None:
    told_hours = measured.where("cluster_id = 'c' AND topic IS NULL").collect()
    by_hour = {
        (row["broker"], row["name"], row["hour_ms"]): (row["value"], row["measured_share"]) for row in told_hours
    }
    assert by_hour[1, "bytes_out", BEGIN_MS] == pytest.approx((1135.0, 1.0))
    assert by_hour[1, "requests", BEGIN_MS] == pytest.approx((43.0, 1.0))
    assert by_hour[6, "bytes_out", BEGIN_MS + HOUR_MS] == pytest.approx((35.0, 5 / 6))
    assert (6, "bytes_out", BEGIN_MS) not in by_hour


def _expect_what_brokers_can_hold(
    spark: SparkSession, loads: DataFrame, replicas: DataFrame, measured: DataFrame
) -> None:
    dirs = spark.createDataFrame(
        [
            ("c", 1, 500, 20),
            ("c", 1, 500, 30),
            ("c", 2, 500, 20),
            ("c", 2, None, None),
            ("c", 4, 500, 20),
            ("c", 4, 500, 20),
        ],
        "cluster_id string, broker int, total_bytes bigint, usable_bytes bigint",
    )
    told = broker_loads(loads, replicas, measured, dirs)
    assert told.columns == list(BROKER_LOADS.column_names)
    whole = {row["broker"]: row for row in told.collect()}
    # The two directories of broker 4 are on one disk; nothing was told of those of broker 6.
    assert [whole[broker]["disk_bytes"] for broker in (1, 2, 4, 6)] == [1000, None, 500, None]
    assert (whole[1]["bytes_out_per_s"], whole[1]["peak_bytes_out_per_s"]) == pytest.approx((1075.0, 1135.0))
    # Followers of what it leads now copy 300; it sent them 320.
    assert whole[1]["replication_out_ratio"] == pytest.approx(320 / 300)
    assert whole[1]["cpu_capacity_bytes_per_s"] == pytest.approx((390 + 1075 + 320) / 0.5)
    assert (whole[6]["hour_count"], whole[6]["replication_out_ratio"]) == (1, None)
