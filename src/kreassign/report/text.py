"""PURE. Amounts, times, lists, the state of a run and the limits of a plan as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime

from kreassign.model.plan_facts import Limit, Totals, UnevenTopic
from kreassign.model.text import format_amount


def format_bytes(count: float | None) -> str:
    """A count of bytes in decimal units with three digits: `1.23 GB`, `45.6 MB`, `789 B`; `-` when it is not known."""
    return "-" if count is None else format_amount(float(count), "B")


def format_signed_bytes(count: float) -> str:
    """A change of a count of bytes: `+1.23 GB`, `-45.6 MB`, `0 B`."""
    return f"{'+' if count > 0 else ''}{format_bytes(count)}"


def format_rate(bytes_per_s: float | None) -> str:
    """A rate, or `-` when it is not known."""
    return "-" if bytes_per_s is None else f"{format_bytes(bytes_per_s)}/s"


def format_duration(seconds: float | None) -> str:
    """A duration as `0:42`, `12:03` or `3:04:05`, or `-` when it is not known."""
    if seconds is None:
        return "-"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def format_time(time_ms: int | None) -> str:
    """A point in time as `2026-11-04 10:15:00 UTC`, or `-` when it is not known."""
    return "-" if time_ms is None else f"{datetime.fromtimestamp(time_ms / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"


def format_count(count: int | None) -> str:
    """A count with groups of three digits: `1,200`; `-` when it is not known."""
    return "-" if count is None else f"{count:,}"


def format_change(now: float | None, before: float | None, text: Callable[[float | None], str]) -> str:
    """How much an amount has changed: `+1.2 GB (+0.5%)`; `-` when one of them is not known."""
    if now is None or before is None:
        return "-"
    change = now - before
    share = f" ({change / before:+.1%})" if before else ""
    return f"{'-' if change < 0 else '+'}{text(abs(change))}{share}"


def format_replicas(brokers: tuple[int, ...]) -> str:
    """A replica list as Kafka's tools print it: `1,2,3`."""
    return ",".join(map(str, brokers))


# PURE. How a run is, in words: the same ones in `status`, in a live view and on the page.

_AS_IT_IS = frozenset({"awaiting lease", "unreadable"})
"""States that no process is missing of."""


def run_state(state: str, *, is_active: bool, is_held: bool, has_ended: bool, in_flight: int) -> str:
    """What an operator paused is paused, though moves that are in flight go on; a run without a process was left.

    `state` is the phase of the run.
    """
    if has_ended or state in _AS_IT_IS:
        return state
    if is_held or state == "paused":
        if not in_flight:
            return "paused"
        return f"paused, {in_flight} move{'s' if in_flight > 1 else ''} in flight go{'' if in_flight > 1 else 'es'} on"
    return state if is_active else f"{state} (its process is gone)"


# PURE. What limits a plan, whence that is known, and what it could not heed, in words.


def limit_amount(limit: Limit) -> str:
    """What a limit allows, from broker to broker, and of how many brokers it is."""
    least, most = (format_amount(value, limit.unit) for value in (limit.least, limit.most))
    amount = least if least == most else f"{least} to {most}"
    return f"{limit.goal} {amount}, {limit.brokers} broker{'s' if limit.brokers > 1 else ''}"


def bound_sentence(totals: Totals) -> str:
    """How near a plan is to the least that any plan copies."""
    if totals.gap is not None:
        least = format_amount(totals.least_bytes, "B")
        return f"any plan that brings about as much copies at least {least}: {totals.gap:+.1%}"
    if totals.moved_bytes:
        return "some balance targets are missed, so there is no lower bound"
    return "nothing has to be copied"


def uneven_parts(topic: UnevenTopic) -> tuple[str, str]:
    """A topic with partitions of unequal size, in two parts of one sentence."""
    largest, others = (format_amount(size, "B") for size in (topic.size_bytes, topic.other_bytes))
    return (
        f"unequal partitions: {topic.partition} has {largest},",
        f"the {topic.partitions - 1} others of its topic {others} on the average",
    )


def unheeded_sentences(unknown_goals: Iterable[str], uneven_topics: Iterable[UnevenTopic]) -> Iterator[str]:
    """Goals of which no load is known, and topics whose partitions are of unequal size, a sentence each."""
    if goals := ", ".join(unknown_goals):
        yield f"not balanced, no load is known: {goals}"
    for one in uneven_topics:
        yield " ".join(uneven_parts(one))
