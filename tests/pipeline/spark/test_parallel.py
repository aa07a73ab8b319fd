from __future__ import annotations

import os
import sys

import pytest
from pyspark.sql import SparkSession

from bench.random_clusters import random_cluster
from kreassign.pipeline.spark_session import map_on_executors
from kreassign.planner import Assignment, plan_of
from kreassign.planner.search.subproblems import attempt, split

pytestmark = pytest.mark.spark


def test_answers_come_from_other_processes_in_the_order_of_the_values(spark: SparkSession) -> None:
    step = 10
    found = map_on_executors(spark, lambda value: (value + step, os.getpid()), range(5))
    assert [answer for answer, _ in found] == [10, 11, 12, 13, 14]
    assert os.getpid() not in {process for _, process in found}


def test_workers_on_this_machine_run_the_python_of_this_process(spark: SparkSession) -> None:
    assert map_on_executors(spark, lambda _: sys.executable, [0]) == [sys.executable]


def test_nothing_to_do_is_done(spark: SparkSession) -> None:
    assert map_on_executors(spark, str, []) == []


def test_what_the_function_raises_ends_the_job(spark: SparkSession) -> None:
    with pytest.raises(Exception, match="ZeroDivisionError"):
        map_on_executors(spark, lambda value: 1 // value, [1, 0])


def test_plans_made_on_executors_are_those_made_here(spark: SparkSession) -> None:
    problem = random_cluster(30).problem
    parts = [part.problem for part in split(problem, 3)]
    there, here = map_on_executors(spark, attempt, parts), [attempt(part) for part in parts]
    assert [plan_of(part, plan) for part, plan in zip(parts, there, strict=True) if isinstance(plan, Assignment)] == [
        plan_of(part, plan) for part, plan in zip(parts, here, strict=True) if isinstance(plan, Assignment)
    ]
    assert any(isinstance(plan, Assignment) for plan in here)
