"""Previews of runs and rollbacks: what a request asks for, and what comes of it, as sentences and rows. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from kreassign.errors import InputError
from kreassign.executor.events import RunStarted
from kreassign.executor.guards import DEFAULTS, GuardName, Reaction, parse_guard
from kreassign.executor.preview import RunPreview
from kreassign.executor.scheduling.windows import pace_text
from kreassign.model import TopicPartition
from kreassign.model.cluster import listed_ids
from kreassign.model.pace import NO_LIMITS, Pace, Schedule, parse_time_zone, parse_window
from kreassign.model.throttle import ThrottleRates
from kreassign.operations.rollback import Rollback, rollback_sentences
from kreassign.operations.run_outlook import preview_facts
from kreassign.report.text import format_bytes, format_rate
from kreassign.web.records import SHOWN_CHANGES, PaceRequest, asked_pace, destination_text, moved_dirs


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
        sentences=(*sentences_of(found), *_chosen(started)),
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
        yield f"Pace: {pace_text(started.pace)}."
    changed = [f"{one.guard}={one.reaction}" for one in started.guards if one.reaction is not DEFAULTS[one.guard]]
    if changed:
        yield f"Guards other than by default: {', '.join(changed)}."


def sentences_of(found: RunPreview) -> Iterator[str]:
    """A run ahead as sentences; changed replication factors and refused producers come first."""
    yield from (*found.factors, *found.outages)
    for name, text in preview_facts(found):
        yield f"{name[0].upper()}{name[1:]}: {text}."
    if found.proposal is not None:
        yield f"A throttle that leaves room for traffic as it is now: {format_rate(found.proposal.bytes_per_s)}."


def preview_of_rollback(preview_id: str, found: Rollback) -> Preview:
    """The document of a rollback ahead."""
    plan, count = found.plan, len(found.plan.plan)
    return Preview(
        preview_id=preview_id if count else None,
        sentences=(
            *found.factors,
            *found.outages,
            *(f"{one[0].upper()}{one[1:]}." for one in rollback_sentences(found)),
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
