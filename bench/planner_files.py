"""The planner's cases as files: a tab-separated cluster in, a tab-separated plan out."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from kreassign.planner import Assignment, BrokerFacts, Partitions, Problem, problem_of
from kreassign.planner.arrays import NOWHERE

FOLLOWER_CPU = 0.3
AT_ONCE = 50_000
MEGABYTE = 1_000_000
COLUMNS = ("topic", "partition", "replicas", "leader", "disk", "net_in", "net_out", "cpu")
TYPES = dict(zip(COLUMNS, (pa.string(), pa.int32(), pa.string(), *(pa.float64(),) * 5), strict=True))


def read_case(path: Path, brokers: int, racks: int) -> Problem:
    """The problem in a file of `planner_cases/gen_cluster.py`: all six resources, bands of ±10 %."""
    table = csv.read_csv(
        path,
        read_options=csv.ReadOptions(column_names=COLUMNS),
        parse_options=csv.ParseOptions(delimiter="\t"),
        convert_options=csv.ConvertOptions(column_types=TYPES),
    ).sort_by([("topic", "ascending"), ("partition", "ascending")])
    hosts = [BrokerFacts(broker, rack=f"rack-{broker % racks:03}") for broker in range(brokers)]
    return replace(problem_of(hosts, ()), partitions=_partitions(table))


def _partitions(table: pa.Table) -> Partitions:
    topics = table["topic"].combine_chunks().dictionary_encode()
    lists = pc.split_pattern(table["replicas"], ",").combine_chunks()
    count = table.num_rows
    offsets: npt.NDArray[np.int32] = np.from_dlpack(lists.offsets).astype(np.int32, copy=False)
    cpu = _column(table, "cpu")
    return Partitions(
        topic_names=tuple(topics.dictionary.to_pylist()),
        topics=np.from_dlpack(topics.indices).astype(np.int32, copy=False),
        numbers=_column(table, "partition"),
        offsets=offsets,
        replicas=np.from_dlpack(lists.values.cast(pa.int32())).astype(np.int32, copy=False),
        log_dirs=np.full(offsets[-1], NOWHERE, np.int32),
        size_bytes=np.rint(_column(table, "disk") * MEGABYTE).astype(np.int64),
        write_bytes_per_s=_column(table, "net_in"),
        read_bytes_per_s=_column(table, "net_out"),
        leader_cpu=cpu,
        follower_cpu=FOLLOWER_CPU * cpu,
        wanted_factors=np.diff(offsets).astype(np.int32),
        holds=np.zeros(count, np.int32),
        broker_sets=np.full(count, NOWHERE, np.int32),
        is_lost=np.zeros(offsets[-1], bool),
    )


def _column(table: pa.Table, name: str) -> npt.NDArray[Any]:
    """The values of a column. Not by `to_numpy`, which imports pandas where that is installed."""
    values: npt.NDArray[Any] = np.from_dlpack(table[name].combine_chunks())
    return values


def write_plan(path: Path, problem: Problem, assignment: Assignment) -> None:
    """The plan as `planner_cases/evaluate.py` reads it: every partition with its replicas and its leader."""
    partitions, ids = problem.partitions, problem.brokers.ids.tolist()
    names = partitions.topic_names
    with path.open("w", encoding="utf-8") as file:
        for first in range(0, len(partitions), AT_ONCE):
            some = slice(first, first + AT_ONCE)
            offsets = assignment.offsets[first : first + AT_ONCE + 1]
            brokers = [ids[place] for place in assignment.replicas[offsets[0] : offsets[-1]].tolist()]
            spans = pairwise((offsets - offsets[0]).tolist())
            rows = zip(partitions.topics[some].tolist(), partitions.numbers[some].tolist(), spans, strict=True)
            file.writelines(
                f"{names[topic]}\t{number}\t{','.join(map(str, brokers[start:end]))}\t{brokers[start]}\n"
                for topic, number, (start, end) in rows
            )
