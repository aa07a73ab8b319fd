"""Replicas row by row, and their columns: what the planner takes, as a test can read it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from kreassign.model.replica_columns import ReplicaColumns


class ReplicaRow(NamedTuple):
    """One replica as a row; None where unknown."""

    topic: str
    partition: int
    broker: int
    position: int
    is_reassigning: bool
    size_bytes: int | None
    write_bytes_per_s: float | None
    log_dir: str | None


def columns_of(rows: Iterable[ReplicaRow]) -> ReplicaColumns:
    """Convert rows to columns."""
    found = list(rows)
    topics = _column({row.topic for row in found})
    paths = _column({row.log_dir for row in found if row.log_dir is not None})
    return ReplicaColumns(
        topic_names=tuple(topics),
        topics=np.array([topics[row.topic] for row in found], np.int32),
        partitions=np.array([row.partition for row in found], np.int32),
        brokers=np.array([row.broker for row in found], np.int32),
        positions=np.array([row.position for row in found], np.int32),
        is_reassigning=np.array([row.is_reassigning for row in found], bool),
        size_bytes=np.array([row.size_bytes for row in found], np.float64),
        write_bytes_per_s=np.array([row.write_bytes_per_s for row in found], np.float64),
        paths=tuple(paths),
        log_dirs=np.array([-1 if row.log_dir is None else paths[row.log_dir] for row in found], np.int32),
    )


def _column(names: Iterable[str]) -> dict[str, int]:
    return {name: number for number, name in enumerate(sorted(names))}
