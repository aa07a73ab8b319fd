"""Previews of runs and rollbacks: what a request asks for, and what comes of it, as sentences and rows. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from kreassign.errors import InputError
from kreassign.executor.events import RunStarted
from kreassign.executor.guards import DEFAULTS, GuardName, Reaction, parse_guard
from kreassign.executor.preview import RunPreview
from kreassign.model import TopicPartition
from kreassign.model.cluster import listed_ids
from kreassign.model.pace import NO_LIMITS, Pace, Schedule, parse_time_zone, parse_window
from kreassign.model.plan_facts import NOT_SAID
from kreassign.model.text import agreeing, counted
from kreassign.model.throttle import ThrottleRates
from kreassign.operations.rollback import Rollback
from kreassign.report.text import format_bytes, format_duration, format_rate
from kreassign.web.records import (
    SHOWN_CHANGES,
    PaceRequest,
    asked_pace,
    destination_text,
    moved_dirs,
    pace_of,
    pace_text,
)


@dataclass(frozen=True, slots=True)
class PreviewRequest(PaceRequest):
    """Request for a preview: `throttle_bytes_per_s` for each broker, null for no limit.

    `windows`, as in 22:00-06:00, are daily times by the clock of `time_zone`; without any, moves run at any time. Order
    and limits are as in a change of the pace. `guards` have another reaction than by default, as in disk=warn.
    """

    throttle_bytes_per_s: int | None = None
    windows: tuple[str, ...] = ()
    time_zone: str = "UTC"
    guards: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Preview:
    """Effects of a run, checked against the cluster; nothing is sent yet.

    `preview_id` begins exactly this, while nothing has changed; null if there is nothing to do. `moved_bytes` counts
    each copy, between brokers and between directories, at its size now. `rows` are the first partitions as texts: name,
    replicas from and to, size of a copy.
    """

    preview_id: str | None
    sentences: tuple[str, ...]
    warnings: tuple[str, ...]
    moved_bytes: int
    change_count: int
    rows: tuple[tuple[str, ...], ...]


def settings_of(request: PreviewRequest) -> tuple[ThrottleRates, Pace, dict[GuardName, Reaction]]:
    """Throttle, pace and guards that a request asks for. Raises InputError for invalid values."""
    limit = request.throttle_bytes_per_s
    if limit is not None and limit <= 0:
        raise InputError(f"with {limit} no move would ever end; give more, or null")
    windows = tuple(sorted(set(map(parse_window, request.windows))))
    hours = Schedule(windows, parse_time_zone(request.time_zone))
    pace = replace(NO_LIMITS, hours=hours).changed(asked_pace(request))
    return ThrottleRates(limit), pace, dict(map(parse_guard, request.guards))


def preview_of(preview_id: str, started: RunStarted, found: RunPreview, warnings: tuple[str, ...]) -> Preview:
    """The document of a run ahead."""
    moved = sum(move.size_bytes * len(move.receiving) for move in started.moves)
    return Preview(
        preview_id=preview_id,
        sentences=(*sentences_of(found, moved), *_chosen(started)),
        warnings=warnings,
        moved_bytes=moved,
        change_count=len(started.moves),
        rows=tuple(
            _row(
                one.topic_partition, one.original, one.target, one.size_bytes if one.receiving else None,
                moved_dirs(one.log_dirs),
            )
            for one in started.moves[:SHOWN_CHANGES]
        ),
    )  # fmt: skip


def _chosen(started: RunStarted) -> Iterator[str]:
    """Window, pace and guards of a run ahead, where they are not the default."""
    if started.pace.caps != NO_LIMITS.caps or started.pace.order is not NO_LIMITS.order:
        yield f"Order and limits: {pace_text(pace_of(started.pace))}."
    changed = [f"{one.guard}={one.reaction}" for one in started.guards if one.reaction is not DEFAULTS[one.guard]]
    if changed:
        yield f"Guards other than by default: {', '.join(changed)}."


def sentences_of(found: RunPreview, moved_bytes: int) -> Iterator[str]:
    """A run ahead as sentences; changed replication factors and refused producers come first."""
    yield from found.factors
    yield from found.outages
    yield f"It changes {counted(found.partitions, 'partition')} and moves {format_bytes(moved_bytes)}."
    if found.copies:
        senders, receivers = (", ".join(map(str, brokers)) for brokers in (found.senders, found.receivers))
        yield f"{counted(found.copies, 'copy', 'copies')} from brokers {senders or 'none'} to brokers {receivers}."
    if found.log_dir_moves:
        dirs, size = counted(found.log_dir_moves, "copy", "copies"), format_bytes(found.log_dir_bytes)
        yield f"{dirs} to another log directory of the same broker, {size}."
    yield f"{counted(found.leader_changes, 'preferred leader')} {agreeing(found.leader_changes, 'change')}."
    limit = found.rates.bytes_per_s
    yield f"Throttle per broker: {'none' if limit is None else format_rate(limit)}."
    if found.proposal is not None:
        yield f"A throttle that leaves room for traffic as it is now: {format_rate(found.proposal.bytes_per_s)}."
    if found.shortest_s is not None:
        at = "" if found.proposal is None else " with that"
        latest = "" if found.longest_s is None else f" to {format_duration(found.longest_s)}"
        beyond = ", or longer" if found.longest_s is None else ""
        yield f"Time: {format_duration(found.shortest_s)}{latest}{at}{beyond}."
    else:
        yield f"Time: not known{': it depends on the disks' if found.log_dir_moves else ' without a fixed throttle'}."
    if found.opening is not None:
        yield f"Window: {found.opening}."
    if (free := found.lowest_free) is not None:
        left = f"{format_bytes(free.usable_bytes)} ({free.share:.0%})"
        yield f"Lowest free disk when all copies are there: broker {free.broker}, {left}."
    if found.unsized:
        yield f"{found.unsized_text[0].upper()}{found.unsized_text[1:]}."
    if found.made_for is None:
        yield f"Cluster that the plan was made for: {NOT_SAID}."
    if found.others:
        yield f"{counted(found.others, 'partition')} of others {agreeing(found.others, 'are')} moving already."


def preview_of_rollback(preview_id: str, found: Rollback) -> Preview:
    """The document of a rollback ahead."""
    plan, undone = found.plan, found.undone
    count, whole = len(plan.plan), counted(len(undone.moves), "partition")
    back = f"{count} of {whole} {agreeing(count, 'go')} back: {format_bytes(plan.copied_bytes)} to copy."
    forward = () if found.undoes is None else (f"This run undid run {found.undoes}: all moves forward again.",)
    return Preview(
        preview_id=preview_id if count else None,
        sentences=(
            *found.factors,
            *found.outages,
            *forward,
            back,
            *(f"Left alone: {sentence}" for sentence in plan.reasons),
        ),
        warnings=(),
        moved_bytes=plan.copied_bytes,
        change_count=count,
        rows=tuple(
            _row(one.topic_partition, plan.expected.get(one.topic_partition, ()), one.replicas, None)
            for one in plan.plan.assignments[:SHOWN_CHANGES]
        ),
    )


def _row(
    name: TopicPartition,
    original: tuple[int, ...],
    target: tuple[int, ...],
    size: int | None,
    log_dirs: tuple[str, ...] = (),
) -> tuple[str, ...]:
    return str(name), listed_ids(original) or "-", destination_text(target, log_dirs), format_bytes(size)
