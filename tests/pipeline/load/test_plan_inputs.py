from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kreassign.errors import DataError, InputError
from kreassign.model.load import ForecastBasis
from kreassign.pipeline.load.plan_inputs import (
    FORECAST_HIGH,
    STATISTICS,
    read_forecast_basis,
    read_last_hour,
    read_plan_columns,
)
from kreassign.pipeline.tables.schemas import BACKTESTS, FORECAST, LOAD_HOURS, PLAN_INPUTS, REPLICAS
from tests.pipeline.clusters import UNKNOWN_LOADS
from tests.pipeline.finished_load import write_rows
from tests.pipeline.load_tables import row as row_of

INPUT = {"topic": "t", "partition": 0, "position": 0, "is_leader": True, "is_reassigning": False, "size_bytes": 5,
         "write_bytes_per_s": None, "coverage": "no samples", **UNKNOWN_LOADS}  # fmt: skip
COPY = {"taken_ms": 0, "topic": "t", "partition": 0, "position": 0, "is_leader": True, "is_in_sync": True,
        "is_adding": False, "is_removing": False, "size_bytes": 5, "future_log_dir": None,
        "future_size_bytes": None}  # fmt: skip


def inputs(data: Path, cluster: str, *brokers: int) -> None:
    snapshot = {"snapshot_id": f"s-{cluster}", "cluster_id": cluster}
    rows = [{**snapshot, **INPUT, "broker": broker, "position": place} for place, broker in enumerate(brokers)]
    write_rows(data, PLAN_INPUTS, rows, file_stem=cluster)


def copies(data: Path, snapshot: str, dirs: dict[int, str | None]) -> None:
    rows = [
        {"snapshot_id": snapshot, "cluster_id": "c", **COPY, "broker": broker, "log_dir": path}
        for broker, path in dirs.items()
    ]
    write_rows(data, REPLICAS, rows, file_stem=snapshot)


def test_one_entry_per_replica_with_the_directory_of_its_snapshot(tmp_path: Path) -> None:
    inputs(tmp_path, "c", 3, 1, 2)
    copies(tmp_path, "s-c", {1: "/b", 2: None, 3: "/a", 9: "/z"})
    copies(tmp_path, "s-older", {1: "/old", 2: "/old", 3: "/old"})
    found = read_plan_columns(tmp_path, None)
    assert (found.cluster_id, found.snapshot_id, found.replicas.topic_names) == ("c", "s-c", ("t",))
    assert found.replicas.brokers.tolist() == [3, 1, 2]
    assert found.replicas.positions.tolist() == [0, 1, 2]
    assert [found.replicas.paths[code] if code >= 0 else None for code in found.replicas.log_dirs] == ["/a", "/b", None]
    assert found.replicas.size_bytes.tolist() == [5.0] * 3
    assert not found.replicas.is_cpu_measured


def test_a_replica_has_its_own_directory_whatever_the_id_of_its_broker(tmp_path: Path) -> None:
    """Ids are up to 2^31 - 1; some are made of the digits of an address."""
    large, key = 2**20 + 1, {"snapshot_id": "s-c", "cluster_id": "c"}
    held = [(0, large, "/of-0"), (1, 1, "/of-1")]
    rows = [{**key, **INPUT, "partition": number, "broker": broker} for number, broker, _ in held]
    write_rows(tmp_path, PLAN_INPUTS, rows, file_stem="c")
    copied = [{**key, **COPY, "partition": number, "broker": broker, "log_dir": path} for number, broker, path in held]
    write_rows(tmp_path, REPLICAS, copied, file_stem="s-c")
    found = read_plan_columns(tmp_path, None).replicas
    paths = {broker: found.paths[code] for broker, code in zip(found.brokers.tolist(), found.log_dirs, strict=True)}
    assert paths == {large: "/of-0", 1: "/of-1"}


def test_without_a_table_of_replicas_no_directory_is_known(tmp_path: Path) -> None:
    inputs(tmp_path, "c", 1, 2)
    assert read_plan_columns(tmp_path, None).replicas.log_dirs.tolist() == [-1, -1]
    copies(tmp_path, "s-older", {1: "/old"})
    assert read_plan_columns(tmp_path, None).replicas.log_dirs.tolist() == [-1, -1]


def test_one_of_several_clusters_must_be_chosen(tmp_path: Path) -> None:
    inputs(tmp_path, "c", 1)
    inputs(tmp_path, "d", 2, 1)
    assert read_plan_columns(tmp_path, "d").replicas.brokers.tolist() == [2, 1]
    with pytest.raises(InputError, match="choose with --cluster one of c, d"):
        read_plan_columns(tmp_path, None)
    with pytest.raises(DataError, match="nothing of cluster e, only of c, d"):
        read_plan_columns(tmp_path, "e")


def test_the_load_to_plan_by_stands_in_for_the_mean_where_it_is_known(tmp_path: Path) -> None:
    def row(partition: int, **known: float) -> dict[str, object]:
        key = {"snapshot_id": "s", "cluster_id": "c", "broker": 1, "partition": partition}
        return {**INPUT, "write_bytes_per_s": 10.0, **key, **known}

    known = {"p95_write_bytes_per_s": 20.0, "forecast_size_bytes": 7.0, "forecast_write_bytes_per_s": 12.0}
    cpu = {"cpu_share": 0.2, "follower_cpu_share": 0.1}
    rows = [row(0, **known, **cpu, read_bytes_per_s=30.0), row(1, read_bytes_per_s=3.0), row(2)]
    write_rows(tmp_path, PLAN_INPUTS, rows, file_stem="a")
    rates = {by: read_plan_columns(tmp_path, None, by).replicas.write_bytes_per_s.tolist() for by in STATISTICS}
    mean = [10, 10, 10]
    assert rates == {"mean": mean, "p95": [20, 10, 10], "p99": mean, "peak": mean, "forecast": [12, 10, 10]}
    assert read_plan_columns(tmp_path, None, "forecast").replicas.size_bytes.tolist() == [7, 5, 5]
    assert read_plan_columns(tmp_path, None, "p95").replicas.size_bytes.tolist() == [5, 5, 5]
    # What is read grows with what is written; where nobody measured it, it is unknown.
    reads = {by: read_plan_columns(tmp_path, None, by).replicas.read_bytes_per_s for by in ("mean", "p95")}
    assert np.array_equal(reads["mean"], [30, 3, np.nan], equal_nan=True)
    assert np.array_equal(reads["p95"], [60, 3, np.nan], equal_nan=True)
    # So does the CPU.
    busy = read_plan_columns(tmp_path, None, "p95")
    assert busy.replicas.is_cpu_measured
    assert np.array_equal(busy.replicas.leader_cpu, [0.4, np.nan, np.nan], equal_nan=True)
    assert np.array_equal(busy.replicas.follower_cpu, [0.2, np.nan, np.nan], equal_nan=True)


def partitions(data: Path, *rows: dict[str, Any], cluster: str = "c") -> None:
    """Partitions t-0, t-1, … with one replica each, of which this is known."""
    key = {"snapshot_id": f"s-{cluster}", "cluster_id": cluster, "broker": 1}
    found = [{**INPUT, **key, "partition": number, **known} for number, known in enumerate(rows)]
    write_rows(data, PLAN_INPUTS, found, file_stem=cluster)


def reasons(data: Path, statistic: str) -> list[str | None]:
    found = read_plan_columns(data, "c", statistic)
    return [found.reason_names[code] if code >= 0 else None for code in found.reasons]


def test_every_verdict_but_enough_is_a_reason_for_doubt_in_its_own_words(tmp_path: Path) -> None:
    words = ("enough", "short", "gaps", "unknown", "error of 40 %")
    partitions(tmp_path, *({"verdict": word, "write_bytes_per_s": 5.0} for word in words))
    assert reasons(tmp_path, "mean") == [None, *words[1:]]


def test_with_all_or_nothing_known_there_is_one_verdict(tmp_path: Path) -> None:
    partitions(tmp_path, {"verdict": "enough", "write_bytes_per_s": 5.0})
    assert reasons(tmp_path, "mean") == [None]
    partitions(tmp_path, {"verdict": "short", "write_bytes_per_s": 5.0})
    assert reasons(tmp_path, "mean") == ["short"]


def test_a_load_without_a_verdict_is_refused_by_name(tmp_path: Path) -> None:
    partitions(tmp_path, *({"verdict": word, "write_bytes_per_s": 5.0} for word in ("enough", "short")))
    (file,) = (tmp_path / PLAN_INPUTS.name).glob("*.parquet")
    found = pq.read_table(file)
    place = found.column_names.index("verdict")
    pq.write_table(found.set_column(place, "verdict", pa.array([None, "enough"], pa.string())), file)
    with pytest.raises(DataError, match=r"table plan_inputs in .* has no verdict in 1 of its rows"):
        reasons(tmp_path, "mean")


def test_that_the_mean_stands_in_for_the_load_to_plan_by_is_a_reason_too(tmp_path: Path) -> None:
    enough = {"verdict": "enough", "write_bytes_per_s": 5.0}
    partitions(tmp_path, enough, {**enough, "peak_write_bytes_per_s": 9.0}, {**enough, "verdict": "gaps"})
    assert reasons(tmp_path, "peak") == ["no peak", None, "gaps"]
    assert read_plan_columns(tmp_path, "c", "peak").replicas.write_bytes_per_s.tolist() == [5.0, 9.0, 5.0]


def test_a_missing_load_is_refused_with_a_list_of_loads(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no load 'p90' to plan by; there are mean, p95, .*, forecast-high"):
        read_plan_columns(tmp_path, "c", "p90")


def ahead(partition: int, cluster: str = "c", **known: float | None) -> dict[str, Any]:
    figures = dict.fromkeys(column.name for column in FORECAST.columns)
    key = {"cluster_id": cluster, "snapshot_id": f"s-{cluster}", "topic": "t", "partition": partition}
    return {**figures, **key, "horizon_days": 30.0, "basis": "flat", **known}


def test_the_upper_end_of_the_forecast_comes_from_its_own_table_by_the_key(tmp_path: Path) -> None:
    enough = {"verdict": "enough", "write_bytes_per_s": 5.0, "forecast_write_bytes_per_s": 6.0}
    partitions(tmp_path, enough, enough, enough)
    high = {"high_write_bytes_per_s": 8.0, "high_size_bytes": 70.0}
    other = ahead(0, "d", high_write_bytes_per_s=99.0, high_size_bytes=99.0)
    stranger = {**ahead(0, high_write_bytes_per_s=99.0), "topic": "gone"}
    write_rows(tmp_path, FORECAST, [other, stranger, ahead(2, **high), ahead(1)], file_stem="a")
    found = read_plan_columns(tmp_path, "c", FORECAST_HIGH)
    assert found.replicas.write_bytes_per_s.tolist() == [5.0, 5.0, 8.0]
    assert found.replicas.size_bytes.tolist() == [5.0, 5.0, 70.0]
    assert reasons(tmp_path, FORECAST_HIGH) == ["no forecast-high", "no forecast-high", None]


def test_the_upper_end_of_the_forecast_needs_the_table_that_has_it(tmp_path: Path) -> None:
    partitions(tmp_path, {"verdict": "enough", "write_bytes_per_s": 5.0})
    with pytest.raises(DataError, match=r"no table forecast in .*; make it with `kreassign load`"):
        read_plan_columns(tmp_path, "c", FORECAST_HIGH)


def test_the_forecast_shows_its_certainty_by_its_backtest(tmp_path: Path) -> None:
    rates = [(10.0, 5.0, 40.0), (100.0, 80.0, 120.0), (4.0, 3.0, 6.0), (0.0, 0.0, 0.0), (None, None, None)]
    rows = [
        ahead(number, write_bytes_per_s=middle, low_write_bytes_per_s=low, high_write_bytes_per_s=high)
        for number, (middle, low, high) in enumerate(rates)
    ]
    assert read_forecast_basis(tmp_path, "c") is None
    write_rows(tmp_path, FORECAST, rows, file_stem="a")
    assert read_forecast_basis(tmp_path, "c") == ForecastBasis(30.0, 0.75, 1.5)
    assert read_forecast_basis(tmp_path, "d") is None
    tested = {"partition_count": 2, "median_error": 0.1, "p95_error": 0.2, "covered_share": 1.0, "widening": 1.0}
    write_rows(tmp_path, BACKTESTS, [row_of(BACKTESTS, cluster_id="c", **tested)], file_stem="a")
    assert read_forecast_basis(tmp_path, "c") == ForecastBasis(30.0, 0.75, 1.5, 2, 0.1, 1.0)


def test_the_last_hour_is_that_of_the_cluster(tmp_path: Path) -> None:
    def hour(cluster: str, start: int) -> dict[str, Any]:
        return row_of(LOAD_HOURS, cluster_id=cluster, topic="t", partition=0, hour_ms=start * 3_600_000)

    assert read_last_hour(tmp_path, "c") is None
    write_rows(tmp_path, LOAD_HOURS, [hour("c", 3), hour("c", 7), hour("c", 5), hour("d", 9)], file_stem="a")
    assert read_last_hour(tmp_path, "c") == 7 * 3_600_000
    assert read_last_hour(tmp_path, "e") is None


@pytest.mark.parametrize("by", ["forecast", FORECAST_HIGH])
def test_a_forecast_of_another_level_since_a_day_is_doubtful(tmp_path: Path, by: str) -> None:
    known = {"verdict": "enough", "write_bytes_per_s": 5.0, "forecast_write_bytes_per_s": 6.0}
    partitions(tmp_path, known, known, known | {"verdict": "gaps"})
    rows = [
        ahead(number, basis=basis, high_write_bytes_per_s=9.0)
        for number, basis in enumerate(("jumped", "flat", "jumped"))
    ]
    write_rows(tmp_path, FORECAST, rows, file_stem="f")
    assert reasons(tmp_path, by) == ["another level on the last day", None, "gaps"]
    assert reasons(tmp_path, "mean") == [None, None, "gaps"]
