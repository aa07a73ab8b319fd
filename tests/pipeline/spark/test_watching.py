from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from kreassign.pipeline.spark_session import Tasks, watched
from testbed.waiting import wait_until

pytestmark = pytest.mark.spark


def test_how_many_tasks_are_done_is_told_while_a_job_runs(spark: SparkSession, tmp_path: Path) -> None:
    """The last task ends only once it was told that the others have: else it was told too late, or never."""
    seen = tmp_path / "seen"
    told: list[Tasks] = []

    def tell(tasks: Tasks) -> None:
        told.append(tasks)
        if tasks.done == tasks.count - 1:
            seen.touch()

    def wait_in_the_last(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.column("id").to_pylist() == [2]:
                wait_until(seen.exists, what="somebody to tell of the tasks that are done")
            yield batch

    with watched(spark, tell):
        rows = spark.range(0, 3, numPartitions=3).mapInArrow(wait_in_the_last, "id bigint").collect()
    assert [row["id"] for row in rows] == [0, 1, 2]
    assert str(next(tasks for tasks in told if tasks.done == 2)) == "2 of 3 tasks"
    after = len(told)
    spark.range(3).collect()
    assert len(told) == after
