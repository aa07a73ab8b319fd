from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kreassign.pipeline.parallel import map_on_executors
from tests.cli.test_plan_many import plan, snapshot

pytestmark = pytest.mark.spark


def test_answers_come_from_other_processes_in_the_order_of_the_values(spark: SparkSession) -> None:
    step = 10
    found = map_on_executors(spark, lambda value: (value + step, os.getpid()), range(5))
    assert [answer for answer, _ in found] == [10, 11, 12, 13, 14]
    assert os.getpid() not in {process for _, process in found}


def test_nothing_to_do_is_done(spark: SparkSession) -> None:
    assert map_on_executors(spark, str, []) == []


def test_what_the_function_raises_ends_the_job(spark: SparkSession) -> None:
    with pytest.raises(Exception, match="ZeroDivisionError"):
        map_on_executors(spark, lambda value: 1 // value, [1, 0])


@pytest.mark.usefixtures("spark")
def test_plans_made_on_executors_are_those_made_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # where Spark's log goes without a data directory
    snapshots = [snapshot(tmp_path, "c1"), snapshot(tmp_path, "c2", brokers=6)]
    for task in (
        ("rebalance", "--snapshot", snapshots[0], "--parts", "3"),
        ("fleet", *snapshots, "--format", "json"),
    ):
        here, there = plan(*task), plan(*task, "--on", "spark", "--master", "local[2]")
        assert there.exit_code == 0, there.output
        assert there.stdout == here.stdout
