from __future__ import annotations

from pathlib import Path

import pytest

from kreassign.errors import DataError
from kreassign.model.load import Expected, LoadSummary
from kreassign.pipeline.load.summary import busiest_partitions, doubt, load_columns, loaded_clusters, summary
from kreassign.pipeline.tables.schemas import BROKER_LOADS
from tests.pipeline.load_tables import MB, TAKEN_MS, a_cluster, fill, load_row, row


def the_summary(data: Path, top: int = 5, cluster: str = "c.1") -> LoadSummary:
    return summary(data, load_columns(data, cluster), top)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> LoadSummary:
    data = tmp_path_factory.mktemp("load")
    fill(data, **a_cluster())
    return the_summary(data)


def test_totals_are_sums_of_what_is_known_and_say_of_how_many_partitions(found: LoadSummary) -> None:
    totals = found.totals
    assert (found.snapshot_id, found.taken_ms) == ("s-2", TAKEN_MS)
    assert (totals.partition_count, totals.topic_count, totals.known_size_count, totals.known_rate_count) == (
        12, 3, 12, 11,
    )  # fmt: skip
    assert totals.size_bytes == (4 * 9_000 + 3 * 2_000 + 1_500 + 4 * 50_000) * MB
    assert totals.replica_bytes == 2 * totals.size_bytes
    assert totals.write_bytes_per_s == pytest.approx((6 * 4 + 5 * 9 + 6 * 0.1) * MB)
    assert found.outlook is not None
    assert found.outlook.horizon_days == 30
    rate = totals.write_bytes_per_s
    assert found.outlook.write_bytes_per_s == Expected(*(pytest.approx(rate * 1.2 * each) for each in (1, 0.8, 1.2)))
    assert found.coverage == {"measured": 11, "no samples": 1}
    assert found.verdicts == {"enough": 10, "gaps": 1, "unknown": 1}


def test_lists_begin_with_the_busiest_and_with_the_largest(found: LoadSummary) -> None:
    assert [str(one) for one in found.busiest] == ["clicks-0", "orders-0", "clicks-1", "clicks-3", "orders-1"]
    assert [str(one) for one in found.largest] == ["audit-0", "audit-1", "audit-2", "audit-3", "orders-0"]
    assert [one.topic for one in found.busiest_topics] == ["clicks", "orders", "audit"]
    assert [(one.topic, one.partition_count, one.known_count) for one in found.largest_topics] == [
        ("audit", 4, 4), ("orders", 4, 4), ("clicks", 4, 3),
    ]  # fmt: skip
    assert (found.busiest[1].peak_hour, found.busiest[1].peak_write_bytes_per_s) == (14, 6 * MB)


def test_a_whole_list_begins_with_the_busiest_and_ends_with_the_unknown(tmp_path: Path) -> None:
    fill(tmp_path, **a_cluster())
    loads = load_columns(tmp_path, "c.1")
    names = [str(one) for one in busiest_partitions(loads)]
    assert (names[:3], names[-1], len(names)) == (["clicks-0", "orders-0", "clicks-1"], "clicks-2", 12)
    assert [str(one) for one in busiest_partitions(loads, 2)] == names[:2]


def test_doubtful_partitions_come_by_weight_with_reason_and_share(found: LoadSummary) -> None:
    assert found.doubtful.count == 2
    assert [(str(one), one.doubt) for one in found.doubtful.first] == [
        ("clicks-1", "25% of the time is missing"), ("clicks-2", "no rate: no samples"),
    ]  # fmt: skip
    assert found.doubtful.size_share == pytest.approx(3_500 / 243_500)
    assert found.doubtful.write_share == pytest.approx(9 / 69.6)


def test_brokers_come_by_peak_cpu_and_then_by_bytes(tmp_path: Path) -> None:
    named = {"cluster_id": "c.1", "hour_count": 24, "measured_share": 0.75}
    brokers = [
        row(BROKER_LOADS, **named, broker=1, bytes_in_per_s=1.0 * MB, peak_bytes_in_per_s=2.0 * MB),
        row(BROKER_LOADS, **named, broker=2, peak_bytes_out_per_s=3.0 * MB, disk_bytes=500 * MB),
        row(BROKER_LOADS, **named, broker=3, cpu_share=0.2, peak_cpu_share=0.4, cpu_capacity_bytes_per_s=9.0 * MB),
        row(BROKER_LOADS, **named | {"cluster_id": "c.2"}, broker=4),
    ]
    fill(tmp_path, [load_row("t", 0, 1.0)], broker_loads=brokers)
    found = the_summary(tmp_path, top=2)
    assert (found.measured_broker_count, [one.broker for one in found.measured_brokers]) == (3, [3, 2])
    first, second = found.measured_brokers
    assert (first.hour_count, first.measured_share, first.peak_cpu_share) == (24, 0.75, 0.4)
    assert (first.cpu_capacity_bytes_per_s, first.disk_bytes, second.disk_bytes) == (9.0 * MB, None, 500 * MB)
    assert the_summary(tmp_path).measured_brokers[2].bytes_in_per_s == 1.0 * MB


def test_of_brokers_that_measure_nothing_nothing_is_told(found: LoadSummary) -> None:
    assert (found.measured_broker_count, found.measured_brokers) == (0, ())


@pytest.mark.parametrize(("span_s", "told"), [(8, "8 s"), (600, "10 min"), (86_000, "23.9 h")])
def test_a_short_span_is_told_in_its_unit(span_s: float, told: str) -> None:
    assert doubt("short", "measured", span_s, 1.0) == f"measured for {told}, less than a day"


def test_gaps_of_a_time_that_is_covered_are_none_of_time() -> None:
    assert doubt("gaps", "measured", 1e6, 0.95) == "sizes or good samples are missing"


@pytest.mark.parametrize(("verdict", "coverage", "told"), [
    ("enough", "measured", None),
    ("short", "measured", "measured for 3.5 h, less than a day"),
    ("gaps", "measured", "40% of the time is missing"),
    ("unknown", "no size", "no rate: no size"),
    ("a verdict of later", "measured", "a verdict of later"),
])  # fmt: skip
def test_a_doubt_is_told_with_the_figure_that_decided(verdict: str, coverage: str, told: str | None) -> None:
    assert doubt(verdict, coverage, 3.5 * 3600, 0.6) == told


def test_a_load_without_knowledge_makes_every_partition_doubtful(tmp_path: Path) -> None:
    fill(tmp_path, [load_row("t", number) for number in range(3)])
    found = the_summary(tmp_path)
    assert (found.totals.size_bytes, found.totals.write_bytes_per_s, found.totals.replica_bytes) == (None, None, None)
    assert found.outlook is None
    assert found.busiest + found.largest == ()
    assert found.busiest_topics + found.largest_topics == ()
    assert (found.doubtful.count, found.doubtful.size_share, found.doubtful.write_share) == (3, None, None)
    assert [str(one) for one in found.doubtful.first] == ["t-0", "t-1", "t-2"]


def test_each_cluster_is_summed_alone_and_one_that_is_not_there_is_told(tmp_path: Path) -> None:
    other = load_row("t", 0, 5.0, size_bytes=7) | {"cluster_id": "c.2", "snapshot_id": "s-1"}
    fill(tmp_path, [load_row("t", 0, 1.0), other])
    assert loaded_clusters(tmp_path) == ("c.1", "c.2")
    found = the_summary(tmp_path, cluster="c.2")
    assert (found.totals.write_bytes_per_s, found.totals.size_bytes, found.snapshot_id) == (5, 7, "s-1")
    assert found.taken_ms is None
    with pytest.raises(DataError, match=r"hold nothing of cluster c\.3, only of c\.1, c\.2"):
        load_columns(tmp_path, "c.3")
    with pytest.raises(DataError, match=r"no folder .*/nowhere; .*kreassign collect"):
        loaded_clusters(tmp_path / "nowhere")
