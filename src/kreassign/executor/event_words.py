"""What an event says to people: a mark where it explains why a run went as it did, and a sentence for its log. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from kreassign.executor.events import (
    CallFailed,
    CancelRequested,
    ClockStepped,
    Event,
    HoldRequested,
    LeadersElected,
    LeaseForgone,
    LeaseLost,
    LeaseRefused,
    LeaseTaken,
    MovesCancelled,
    MovesReplanned,
    MovesSubmitted,
    PaceRequested,
    ReleaseRequested,
    RunResumed,
    RunStarted,
    StopRequested,
    ThrottleRequested,
    ThrottleRestored,
    ThrottleSet,
    Verified,
)
from kreassign.model.amount import format_amount


class MarkKind(StrEnum):
    """What can be marked on a picture of a run."""

    PAUSED = "paused"
    RELEASED = "released"
    STOPPED = "stopped"
    KILLED = "killed"
    RESUMED = "resumed"
    THROTTLE = "throttle"
    PACE = "pace"
    CANCELLED = "cancelled"
    GUARD = "guard"
    ALL_CLEAR = "all clear"
    REPLANNED = "replanned"
    LEASE_LOST = "lease lost"


def marks(event: Event) -> Iterator[tuple[MarkKind, str]]:
    """What a picture of the run marks, in words; guards, which speak again and again, are not among these."""
    match event:
        case HoldRequested():
            yield MarkKind.PAUSED, "paused: nothing new is started, what is in flight goes on"
        case ReleaseRequested():
            yield MarkKind.RELEASED, "released: moves are started again"
        case StopRequested():
            yield MarkKind.STOPPED, "somebody asked the process to leave the run paused"
        case RunResumed():
            by = "" if event.operator is None else f" by {event.operator}"
            yield MarkKind.RESUMED, f"resumed{by}"
        case ThrottleRequested():
            yield MarkKind.THROTTLE, _throttle_text(event)
        case PaceRequested():
            yield MarkKind.PACE, "other limits of what is in flight"
        case CancelRequested():
            how = "what is in flight is cancelled, too" if event.is_now else "what is in flight finishes"
            yield MarkKind.CANCELLED, f"cancelled: {how}"
        case MovesReplanned():
            yield MarkKind.REPLANNED, f"brokers {list(event.lost)} are lost: {len(event.targets)} moves go elsewhere"
        case LeaseLost():
            yield MarkKind.LEASE_LOST, f"the lease of the cluster was lost: {event.reason}"


def _throttle_text(event: ThrottleRequested) -> str:
    whose = f" for brokers {', '.join(map(str, event.brokers))}" if event.brokers else ""
    if event.adaptive is not None:
        return f"throttle: what traffic leaves over{whose}"
    if event.rate_bytes_per_s is None:
        return f"throttle: none{whose}"
    return f"throttle: {format_amount(float(event.rate_bytes_per_s), 'B/s')} per broker{whose}"


def sentences(event: Event) -> Iterator[str]:
    """What the log says of an event, besides marks; nothing of polls, which happen all the time."""
    match event:
        case RunStarted():
            by = "" if event.operator is None else f", started by {event.operator}"
            yield f"run {event.run_id} of {len(event.moves)} moves{by}"
        case ThrottleSet() if event.problems:
            yield f"the throttle was not set everywhere: {'; '.join(event.problems)}"
        case ThrottleRestored():
            yield "; ".join(event.problems) or "the settings of before are restored"
        case MovesSubmitted():
            yield from _submitted(event)
        case MovesCancelled():
            yield f"{len(event.accepted)} moves cancelled"
        case LeadersElected():
            yield f"{len(event.elected)} preferred leaders lead"
        case CallFailed():
            yield f"a call failed: {event.message}"
        case Verified():
            yield "; ".join(event.findings) or "verified: the cluster is as the plan says"
        case _:
            yield from _of_surroundings(event)


def _of_surroundings(event: Event) -> Iterator[str]:
    match event:
        case ClockStepped():
            yield f"the wall clock is {event.ahead_ms / 1000:.0f} s ahead"
        case LeaseTaken():
            yield "the lease of the cluster was taken"
        case LeaseForgone() | LeaseRefused():
            yield f"no lease of the cluster: {event.reason}"


def _submitted(event: MovesSubmitted) -> Iterator[str]:
    parts = ((len(event.accepted), "submitted"), (len(event.refused), "refused"),
             (len(event.deferred), "refused for now"), (len(event.unknown), "without an answer"))  # fmt: skip
    yield f"moves: {', '.join(f'{count} {word}' for count, word in parts if count)}"
    for refusal in event.refused:
        yield f"{refusal.topic_partition} was refused: {refusal.message}"
