"""`--progress`: progress, rate and remaining time of each moving replica (KIP-179)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from kreassign.clock import Clock
from kreassign.executor.eta import Sample, estimate, recent
from kreassign.kafka_tools.reassign.messages import NOTHING_MOVES, never_ends, say
from kreassign.kafka_tools.reassign.requests import ProgressRequest
from kreassign.kafka_tools.reassign.tool_client import ToolClient
from kreassign.model import LogDir, LogDirReplica, OngoingReassignment, ReplicaStatus, TopicPartition
from kreassign.model.run import Estimate
from kreassign.report.text import format_bytes, format_duration, format_rate, format_time

_LOAD_COLUMNS = (
    "Broker", "In", "Left", "Rate", "Out", "Left", "Rate", "Between directories", "Left", "Rate",
)  # fmt: skip
_COLUMNS = ("Partition", "To", "Done", "Left", "Records behind", "Rate", "Time left")


@dataclass(frozen=True, slots=True, order=True)
class MovingCopy:
    """A moving replica: to another broker, or (with `log_dir`) to another directory of its broker."""

    topic_partition: TopicPartition
    broker: int
    log_dir: str | None = None

    @property
    def place(self) -> str:
        """Destination as text: the broker, or the directory on the broker."""
        return f"broker {self.broker}" if self.log_dir is None else f"broker {self.broker} {self.log_dir}"


@dataclass(frozen=True, slots=True)
class CopyPoll:
    """A copy at one poll."""

    sample: Sample
    lag_records: int


_UNREAD = Estimate(0, None)
"""The estimate of a copy that the last poll could not read: neither what is done nor what is left is known."""


@dataclass(slots=True)
class CopyHistory:
    """Observations of each copy, and the reassignments that never end according to the last poll.

    A copy that the last poll could not read has none. `senders` are those of the last poll, None without a leader.
    """

    copies: dict[MovingCopy, list[CopyPoll]] = field(default_factory=dict)
    senders: dict[MovingCopy, int | None] = field(default_factory=dict)
    endless: dict[TopicPartition, OngoingReassignment] = field(default_factory=dict)

    def has_no_end(self, copy: MovingCopy) -> bool:
        """True if the copy belongs to a reassignment that never ends."""
        return copy.log_dir is None and copy.topic_partition in self.endless


def progress(client: ToolClient, request: ProgressRequest, clock: Clock) -> None:
    """Poll twice and print the progress, or continue polling until nothing moves."""
    history = CopyHistory()
    _poll(client, request, clock, history)
    while history.copies:
        clock.sleep(request.interval_ms / 1000)
        _poll(client, request, clock, history)
        say(_shown(history, clock.now_ms(), request))
        if not request.follows:
            return
    say(_shown(history, clock.now_ms(), request))


def _poll(client: ToolClient, request: ProgressRequest, clock: Clock, history: CopyHistory) -> None:
    """Add the present observations; drop copies that no longer move."""
    wanted = None if request.plan is None else request.plan.replicas
    ongoing = client.reassignments(wanted)
    history.endless = {partition: move for partition, move in ongoing.items() if move.can_never_complete}
    now_ms = clock.now_ms()
    seen = _reassigned(ongoing, client.statuses(ongoing)) | _between_directories(_log_dirs(client, request))
    for copy in history.copies.keys() - seen.keys():
        del history.copies[copy]
    history.senders = {copy: source for copy, (_amounts, source) in seen.items()}
    for copy, (amounts, _source) in seen.items():
        if amounts is None:
            history.copies[copy] = []
            continue
        done, left, lag_records = amounts
        history.copies.setdefault(copy, []).append(CopyPoll(Sample(now_ms, done, left), lag_records))


def _log_dirs(client: ToolClient, request: ProgressRequest) -> Mapping[int, tuple[LogDir, ...]]:
    """Log directories of the replicas that the plan gives a directory; without a plan, all."""
    if request.plan is None:
        return client.log_dirs(broker.id for broker in client.brokers())
    wanted = request.plan.log_dirs
    return client.log_dirs(
        {replica.broker for replica in wanted}, tuple({replica.topic_partition for replica in wanted})
    )


_Amounts = tuple[int, int | None, int] | None
"""Bytes done and left, and records behind; None if they could not be read."""
_Seen = dict[MovingCopy, tuple[_Amounts, int | None]]
"""Copies with their amounts and sender."""


def _reassigned(
    ongoing: Mapping[TopicPartition, OngoingReassignment],
    statuses: Mapping[TopicPartition, tuple[ReplicaStatus, ...]],
) -> _Seen:
    found: _Seen = {}
    for partition, move in ongoing.items():
        reported = {status.broker: status for status in statuses.get(partition, ())}
        leader = next((status for status in reported.values() if status.is_leader), None)
        for broker in move.adding:
            status = reported.get(broker)
            done_bytes = None if status is None else status.done_bytes(leader)
            found[MovingCopy(partition, broker)] = (
                None if status is None or done_bytes is None else (done_bytes, status.lag_bytes, status.lag_records),
                None if leader is None else leader.broker,
            )
    return found


def _between_directories(answers: Mapping[int, tuple[LogDir, ...]]) -> _Seen:
    return {
        MovingCopy(copy.topic_partition, broker, log_dir.path): (
            (copy.size_bytes, _left(copy, log_dirs), copy.offset_lag),
            broker,
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


def _shown(history: CopyHistory, at_ms: int, request: ProgressRequest) -> str:
    copies = history.copies
    rows = [_row(copy, copies[copy], has_no_end=history.has_no_end(copy)) for copy in sorted(copies)]
    loads = by_broker((copy, history.senders[copy], now) for copy, _seen, now, _has_no_end in rows)
    if request.as_json and request.by_broker:
        brokers = [{"broker": broker, **{way: asdict(flow) for way, flow in load.items()}} for broker, load in loads]
        return json.dumps({"at_ms": at_ms, "brokers": brokers})
    if request.as_json:
        return json.dumps({"at_ms": at_ms, "moving": [_document(*row) for row in rows]})
    warnings = [never_ends(partition, move) for partition, move in sorted(history.endless.items())]
    if not rows:
        return "\n".join([NOTHING_MOVES, *warnings])
    if request.by_broker:
        lines = _aligned([_LOAD_COLUMNS, *(_load_cells(broker, load) for broker, load in loads)])
    else:
        lines = _aligned([_COLUMNS, *(_cells(*row) for row in rows)])
    return "\n".join([f"Replicas being moved at {format_time(at_ms)}: {len(rows)}", *lines, *warnings])


_Row = tuple[MovingCopy, CopyPoll | None, Estimate, bool]


def _row(copy: MovingCopy, polls: list[CopyPoll], *, has_no_end: bool) -> _Row:
    if not polls:
        return copy, None, _UNREAD, has_no_end
    return copy, polls[-1], estimate(recent([poll.sample for poll in polls])), has_no_end


@dataclass(frozen=True, slots=True)
class BrokerFlow:
    """Bytes left and bytes per second that a broker receives, sends or copies within itself; None if unknown."""

    copies: int
    left_bytes: int | None
    rate_bytes_per_s: float | None


def _flow(estimates: Sequence[Estimate]) -> BrokerFlow:
    left = [each.left_bytes for each in estimates]
    rates = [each.rate_bytes_per_s for each in estimates]
    return BrokerFlow(
        len(estimates),
        None if None in left else sum(each for each in left if each is not None),
        None if None in rates else sum(each for each in rates if each is not None),
    )


Load = dict[str, BrokerFlow]
"""Flows by direction: `in`, `out`, and `within` from one log directory to another."""


def by_broker(copies: Iterable[tuple[MovingCopy, int | None, Estimate]]) -> list[tuple[int, Load]]:
    """Sum copies by broker, ascending; each comes with the broker that sends it.

    A copy counts at its receiving and its sending broker; between directories of one broker, as within.
    """
    found: dict[int, dict[str, list[Estimate]]] = {}

    def add(broker: int, way: str, now: Estimate) -> None:
        found.setdefault(broker, {each: [] for each in ("in", "out", "within")})[way].append(now)

    for copy, source, now in copies:
        if copy.log_dir is not None:
            add(copy.broker, "within", now)
            continue
        add(copy.broker, "in", now)
        if source is not None:
            add(source, "out", now)
    return [(broker, {way: _flow(each) for way, each in ways.items()}) for broker, ways in sorted(found.items())]


def _load_cells(broker: int, load: Load) -> tuple[str, ...]:
    flows = (load[way] for way in ("in", "out", "within"))
    cells = ((str(flow.copies), format_bytes(flow.left_bytes), format_rate(flow.rate_bytes_per_s)) for flow in flows)
    return (str(broker), *(cell for each in cells for cell in each))


def _cells(copy: MovingCopy, seen: CopyPoll | None, now: Estimate, has_no_end: bool) -> tuple[str, ...]:
    share = "" if now.fraction is None else f" ({now.fraction:.0%})"
    done = "-" if seen is None else f"{format_bytes(now.done_bytes)}{share}"
    return (
        str(copy.topic_partition),
        copy.place,
        done,
        format_bytes(now.left_bytes),
        "-" if seen is None else str(seen.lag_records),
        format_rate(now.rate_bytes_per_s),
        "never" if has_no_end else format_duration(now.eta_s),
    )


def _document(copy: MovingCopy, seen: CopyPoll | None, now: Estimate, has_no_end: bool) -> dict[str, Any]:
    return {
        "topic": copy.topic_partition.topic,
        "partition": copy.topic_partition.partition,
        "broker": copy.broker,
        "log_dir": copy.log_dir,
        "done_bytes": None if seen is None else now.done_bytes,
        "left_bytes": now.left_bytes,
        "lag_records": None if seen is None else seen.lag_records,
        "rate_bytes_per_s": now.rate_bytes_per_s,
        "write_bytes_per_s": now.write_bytes_per_s,
        "eta_s": None if has_no_end else now.eta_s,
        "can_never_complete": has_no_end,
    }


def _aligned(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
