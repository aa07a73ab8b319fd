"""The same function on many values at once, on the executors of Spark. Knows nothing of what it computes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.serializers import CloudPickleSerializer
from pyspark.sql import SparkSession

_Value = TypeVar("_Value")
_Answer = TypeVar("_Answer")

_PICKLER: Any = CloudPickleSerializer()  # PySpark says no types of it
_SCHEMA = "number int, body binary"


def map_on_executors(
    spark: SparkSession, function: Callable[[_Value], _Answer], values: Sequence[_Value]
) -> list[_Answer]:
    """The function of each value, in their order; a task per value.

    Function, values and answers travel pickled, and the executors need the package installed that defines them. What
    the function raises ends the job.
    """
    bodies = [_PICKLER.dumps(value) for value in values]
    rows = spark.createDataFrame(
        pa.table({"number": pa.array(range(len(bodies)), pa.int32()), "body": pa.array(bodies, pa.binary())})
    )
    # Each number to a partition of its own: a hash would put several into one and leave executors without any.
    dealt = rows.repartitionByRange(max(1, len(bodies)), "number")
    found = dealt.mapInArrow(_answers(_PICKLER.dumps(function)), _SCHEMA).collect()
    answers = {row["number"]: row["body"] for row in found}
    return [_PICKLER.loads(bytes(answers[number])) for number in range(len(bodies))]


def _answers(
    pickled: bytes,
) -> Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]:
    def answer(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        function = _PICKLER.loads(pickled)
        for batch in batches:
            for number, body in zip(batch.column("number").to_pylist(), batch.column("body").to_pylist(), strict=True):
                found = _PICKLER.dumps(function(_PICKLER.loads(body)))
                yield pa.RecordBatch.from_arrays(
                    [pa.array([number], pa.int32()), pa.array([found], pa.binary())], names=["number", "body"]
                )

    return answer
