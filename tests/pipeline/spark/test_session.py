"""Settings of a Spark session, without one: tests that start Spark turn its pages off."""

from __future__ import annotations

from pathlib import Path

import pyspark
import pytest

from kreassign.errors import DataError
from kreassign.model.load import LOCAL_SPARK, SparkOptions
from kreassign.pipeline.spark_session import MOST_LOG_BYTES, begin_log, kafka_jars, line_of, session_settings

PAGES = ("spark.ui.enabled", "spark.ui.port")
SIZES = ("spark.driver.memory", "spark.sql.shuffle.partitions")
SUBMITTED = {"PYSPARK_GATEWAY_PORT": "25333"}


def test_a_long_log_is_put_away_and_the_one_before_it_goes(tmp_path: Path) -> None:
    log, before = tmp_path / "spark.log", tmp_path / "spark.log.1"
    begin_log(log)
    for number in (1, 2):
        log.write_text(f"session {number}\n")
        begin_log(log)
        assert log.exists()
        with log.open("ab") as stream:
            stream.truncate(MOST_LOG_BYTES + 1)
        begin_log(log)
        assert not log.exists()
        with before.open(encoding="utf-8") as stream:
            assert stream.readline() == f"session {number}\n"


@pytest.mark.parametrize("is_small", [False, True])
def test_spark_has_its_pages_unless_they_are_switched_off(*, is_small: bool) -> None:
    """They are Spark's default."""
    assert not session_settings(LOCAL_SPARK, {}, is_small=is_small).keys() & set(PAGES)
    off = SparkOptions(conf={"spark.ui.enabled": "false"})
    assert session_settings(off, {}, is_small=is_small)["spark.ui.enabled"] == "false"


@pytest.mark.parametrize("is_small", [False, True])
@pytest.mark.parametrize("environment", [{}, SUBMITTED])
def test_a_setting_that_is_given_comes_before_every_one_of_ours(environment: dict[str, str], *, is_small: bool) -> None:
    ours = session_settings(LOCAL_SPARK, {}, is_small=is_small)
    given = dict.fromkeys(ours, "as given")
    assert set(SIZES) < ours.keys()
    assert session_settings(SparkOptions(conf=given), environment, is_small=is_small) == given


def test_on_this_machine_nothing_listens_to_the_outside_and_sizes_are_ours() -> None:
    settings = session_settings(LOCAL_SPARK, {})
    assert settings["spark.master"] == "local[*]"
    assert {settings[name] for name in ("spark.driver.host", "spark.driver.bindAddress")} == {"127.0.0.1"}
    assert [settings[name] for name in SIZES] == ["3g", "16"]
    small = session_settings(SparkOptions("local[2]"), {}, is_small=True)
    assert (small["spark.master"], small["spark.sql.shuffle.partitions"]) == ("local[2]", "2")


@pytest.mark.parametrize(("options", "environment"), [
    (SparkOptions("spark://host:7077"), {}), (LOCAL_SPARK, SUBMITTED),
])  # fmt: skip
def test_the_sizes_of_a_cluster_are_its_own(options: SparkOptions, environment: dict[str, str]) -> None:
    settings = session_settings(options, environment, jars=[Path("/a.jar"), Path("/b.jar")], is_small=True)
    assert not settings.keys() & {*SIZES, "spark.driver.host", "spark.sql.codegen.wholeStage"}
    assert settings.get("spark.master") == options.master
    assert settings["spark.jars"] == "/a.jar,/b.jar"
    assert settings["spark.sql.session.timeZone"] == "UTC"


def test_a_kafka_source_of_another_line_is_refused_before_spark_starts() -> None:
    line = line_of(pyspark.__version__)
    own = Path(f"/jars/spark-sql-kafka-0-10_2.13-{line}.9.jar")
    assert session_settings(LOCAL_SPARK, {}, jars=[own])["spark.jars"] == str(own)
    with pytest.raises(DataError, match=rf"is for Spark 3\.5, and this is Spark {line}; n"):
        session_settings(LOCAL_SPARK, {}, jars=[own, Path("/jars/spark-sql-kafka-0-10_2.13-3.5.1.jar")])


@pytest.mark.parametrize(("version", "text"), [
    ("4.0.1", "name the folder with org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0 and what it needs with --jars"),
    ("4.1.4", "name the folder with org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.1 and what it needs with --jars"),
    ("4.9.0", "none is known for Spark 4.9 (known: 4.0, 4.1, 4.2): "),
])  # fmt: skip
def test_each_line_of_spark_has_its_kafka_source(version: str, text: str) -> None:
    assert kafka_jars(line_of(version)).startswith(text)
