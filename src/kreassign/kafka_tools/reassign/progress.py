"""`--progress`: how far each moving replica is, how fast it goes, and how long it will take (KIP-179)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kreassign.clock import Clock
from kreassign.executor.progress.eta import Estimate, Sample, estimate, recent
from kreassign.kafka_tools.reassign.client import ToolClient
from kreassign.kafka_tools.reassign.messages import NOTHING_MOVES, never_ends, say
from kreassign.kafka_tools.reassign.requests import ProgressRequest
from kreassign.model import LogDir, LogDirReplica, OngoingReassignment, ReplicaStatus, TopicPartition
from kreassign.report.text import format_bytes, format_duration, format_rate, format_time

_COLUMNS = ("Partition", "To", "Done", "Left", "Records behind", "Rate", "Time left")


@dataclass(frozen=True, slots=True, order=True)
class Copy:
    """A replica being moved: to a broker, or (with `log_dir`) to another directory of the broker where it is."""

    topic_partition: TopicPartition
    broker: int
    log_dir: str | None = None

    @property
    def place(self) -> str:
        """Where it goes."""
        return f"broker {self.broker}" if self.log_dir is None else f"broker {self.broker} {self.log_dir}"


@dataclass(frozen=True, slots=True)
class Observation:
    """What one poll showed of a copy."""

    sample: Sample
    lag_records: int


@dataclass(slots=True)
class History:
    """What the polls showed of each copy, and the reassignments of which the last one showed that they never end."""

    copies: dict[Copy, list[Observation]] = field(default_factory=dict)
    endless: dict[TopicPartition, OngoingReassignment] = field(default_factory=dict)

    def has_no_end(self, copy: Copy) -> bool:
        """Whether it belongs to such a reassignment."""
        return copy.log_dir is None and copy.topic_partition in self.endless


def progress(client: ToolClient, request: ProgressRequest, clock: Clock) -> None:
    """Poll twice and show the progress, or go on polling until nothing moves any more."""
    history = History()
    _poll(client, request, clock, history)
    while history.copies:
        clock.sleep(request.interval_ms / 1000)
        _poll(client, request, clock, history)
        say(_shown(history, clock.now_ms(), as_json=request.as_json))
        if not request.follows:
            return
    say(_shown(history, clock.now_ms(), as_json=request.as_json))


def _poll(client: ToolClient, request: ProgressRequest, clock: Clock, history: History) -> None:
    """Add what is seen now; forget what has stopped moving."""
    wanted = None if request.plan is None else request.plan.replicas
    ongoing = client.reassignments(wanted)
    history.endless = {partition: move for partition, move in ongoing.items() if move.can_never_complete}
    now_ms = clock.now_ms()
    seen = _reassigned(ongoing, client.statuses(ongoing)) | _between_directories(_log_dirs(client, request))
    for copy in history.copies.keys() - seen.keys():
        del history.copies[copy]
    for copy, (done, left, lag_records) in seen.items():
        history.copies.setdefault(copy, []).append(Observation(Sample(now_ms, done, left), lag_records))


def _log_dirs(client: ToolClient, request: ProgressRequest) -> Mapping[int, tuple[LogDir, ...]]:
    """Of a plan only the replicas that it gives a directory; without a plan, all."""
    if request.plan is None:
        return client.log_dirs(broker.id for broker in client.brokers())
    wanted = request.plan.log_dirs
    return client.log_dirs(
        {replica.broker for replica in wanted}, tuple({replica.topic_partition for replica in wanted})
    )


_Amounts = tuple[int, int | None, int]


def _reassigned(
    ongoing: Mapping[TopicPartition, OngoingReassignment],
    statuses: Mapping[TopicPartition, tuple[ReplicaStatus, ...]],
) -> dict[Copy, _Amounts]:
    found: dict[Copy, _Amounts] = {}
    for partition, move in ongoing.items():
        reported = {status.broker: status for status in statuses.get(partition, ())}
        leader = next((status for status in reported.values() if status.is_leader), None)
        for broker in move.adding:
            if (status := reported.get(broker)) is not None:
                amounts = status.done_bytes(leader), status.lag_bytes, status.lag_records
                found[Copy(partition, broker)] = amounts
    return found


def _between_directories(answers: Mapping[int, tuple[LogDir, ...]]) -> dict[Copy, _Amounts]:
    return {
        Copy(copy.topic_partition, broker, log_dir.path): (
            copy.size_bytes,
            _left(copy, log_dirs),
            copy.offset_lag,
        )
        for broker, log_dirs in answers.items()
        for log_dir in log_dirs
        for copy in log_dir.replicas
        if copy.is_future
    }


def _left(future: LogDirReplica, log_dirs: Iterable[LogDir]) -> int | None:
    sizes = [
        copy.size_bytes
        for log_dir in log_dirs
        for copy in log_dir.replicas
        if not copy.is_future and copy.topic_partition == future.topic_partition
    ]
    return max(0, sizes[0] - future.size_bytes) if sizes else None


# --- output ------------------------------------------------------------------------------------------------------


def _shown(history: History, at_ms: int, *, as_json: bool) -> str:
    copies = history.copies
    rows = [(copy, copies[copy][-1], _estimate(copies[copy]), history.has_no_end(copy)) for copy in sorted(copies)]
    if as_json:
        return json.dumps({"at_ms": at_ms, "moving": [_document(*row) for row in rows]})
    warnings = [never_ends(partition, move) for partition, move in sorted(history.endless.items())]
    if not rows:
        return "\n".join([NOTHING_MOVES, *warnings])
    lines = _aligned([_COLUMNS, *(_cells(*row) for row in rows)])
    return "\n".join([f"Replicas being moved at {format_time(at_ms)}: {len(rows)}", *lines, *warnings])


def _estimate(seen: list[Observation]) -> Estimate:
    return estimate(recent([observation.sample for observation in seen]))


def _cells(copy: Copy, seen: Observation, now: Estimate, has_no_end: bool) -> tuple[str, ...]:
    share = "" if now.fraction is None else f" ({now.fraction:.0%})"
    return (
        str(copy.topic_partition),
        copy.place,
        f"{format_bytes(now.done_bytes)}{share}",
        format_bytes(now.left_bytes),
        str(seen.lag_records),
        format_rate(now.rate_bytes_per_s),
        "never" if has_no_end else format_duration(now.eta_s),
    )


def _document(copy: Copy, seen: Observation, now: Estimate, has_no_end: bool) -> dict[str, Any]:
    return {
        "topic": copy.topic_partition.topic,
        "partition": copy.topic_partition.partition,
        "broker": copy.broker,
        "log_dir": copy.log_dir,
        "done_bytes": now.done_bytes,
        "left_bytes": now.left_bytes,
        "lag_records": seen.lag_records,
        "rate_bytes_per_s": now.rate_bytes_per_s,
        "write_bytes_per_s": now.write_bytes_per_s,
        "eta_s": None if has_no_end else now.eta_s,
        "can_never_complete": has_no_end,
    }


def _aligned(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
