"""Amounts, times, lists, the state of a run and the limits of a plan as text. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime

from kreassign.model.load import LoadBasis
from kreassign.model.plan_facts import GoalLimit, Totals, UnevenTopic
from kreassign.model.text import format_amount
from kreassign.model.throttle import ThrottleRates


def format_bytes(count: float | None) -> str:
    """Format bytes in decimal units with three digits: `1.23 GB`, `45.6 MB`, `789 B`; `-` if unknown."""
    return "-" if count is None else format_amount(float(count), "B")


def format_signed_bytes(count: float) -> str:
    """Format a change in bytes: `+1.23 GB`, `-45.6 MB`, `0 B`."""
    return f"{'+' if count > 0 else ''}{format_bytes(count)}"


def format_rate(bytes_per_s: float | None) -> str:
    """Format bytes per second; `-` if unknown."""
    return "-" if bytes_per_s is None else f"{format_bytes(bytes_per_s)}/s"


def format_duration(seconds: float | None) -> str:
    """Format a duration as `0:42`, `12:03` or `3:04:05`; `-` if unknown, `never` if it does not end."""
    if seconds is None or math.isinf(seconds):
        return "-" if seconds is None else "never"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def rates_text(rates: ThrottleRates) -> str:
    """A throttle as text; empty without one."""
    if not rates.is_limited:
        return ""
    general = "no limit" if rates.bytes_per_s is None else f"{format_rate(rates.bytes_per_s)} per broker"
    if rates.adaptive is not None:
        general = f"what other traffic leaves of {format_rate(rates.adaptive.capacity_bytes_per_s)} per broker"
    single = (
        f"broker {one.broker}: {'no limit' if one.bytes_per_s is None else format_rate(one.bytes_per_s)}"
        for one in rates.per_broker
    )
    return ", ".join((general, *single))


def format_time(time_ms: int | None) -> str:
    """Format a time as `2026-11-04 10:15:00 UTC`; `-` if unknown."""
    return "-" if time_ms is None else f"{datetime.fromtimestamp(time_ms / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"


def format_count(count: int | None) -> str:
    """Format a count with groups of three digits: `1,200`; `-` if unknown."""
    return "-" if count is None else f"{count:,}"


def format_change(now: float | None, before: float | None, text: Callable[[float | None], str]) -> str:
    """Format an amount with its change: `+1.2 GB (+0.5%)`; `-` if either value is unknown."""
    if now is None or before is None:
        return "-"
    change = now - before
    share = f" ({change / before:+.1%})" if before else ""
    return f"{'-' if change < 0 else '+'}{text(abs(change))}{share}"


# The state of a run in words, the same in `status`, the live view and the page.

_AS_IT_IS = frozenset({"awaiting lease", "unreadable"})
"""States in which a missing process is not mentioned."""


def run_state(state: str, *, is_active: bool, is_held: bool, has_ended: bool, in_flight: int) -> str:
    """State for people: a paused run is `paused` even with moves in flight; a missing process is mentioned.

    `state` is the phase of the run.
    """
    if has_ended or state in _AS_IT_IS:
        return state
    if is_held or state == "paused":
        if not in_flight:
            return "paused"
        return f"paused, {in_flight} move{'s' if in_flight > 1 else ''} in flight go{'' if in_flight > 1 else 'es'} on"
    return state if is_active else f"{state} (its process is gone)"


# Limits of a plan with their sources, and ignored goals, in words.


def limit_amount(limit: GoalLimit) -> str:
    """Goal, range over the brokers, and number of brokers of a limit."""
    least, most = (format_amount(value, limit.unit) for value in (limit.least, limit.most))
    amount = least if least == most else f"{least} to {most}"
    return f"{limit.goal} {amount}, {limit.brokers} broker{'s' if limit.brokers > 1 else ''}"


def bound_sentence(totals: Totals) -> str:
    """Sentence that compares a plan's copied bytes with the least that any plan copies."""
    if totals.gap is not None:
        least = format_amount(totals.least_bytes, "B")
        return f"any plan that brings about as much copies at least {least}: {totals.gap:+.1%}"
    if totals.moved_bytes:
        return "some balance targets are missed, so there is no lower bound"
    return "nothing has to be copied"


def bound_amount(totals: Totals) -> str:
    """The least that any plan copies, which is 0 B where nothing has to be copied."""
    if totals.gap is not None:
        return format_bytes(totals.least_bytes)
    return "unknown" if totals.moved_bytes else format_bytes(0)


def loads_origin(basis: LoadBasis) -> str:
    """Origin of a plan's loads."""
    if basis.source == "cluster":
        return f"measured for {basis.measured_for_s or 0:g} s"
    if basis.source == "snapshot" and basis.is_glimpse:
        return f"those of the snapshot, measured for {basis.measured_for_s or 0:g} s"
    return "those of the snapshot" if basis.source == "snapshot" else f"{basis.source} of the tables"


def uneven_parts(topic: UnevenTopic) -> tuple[str, str]:
    """Two parts of a sentence on a topic with partitions of unequal size."""
    largest, others = (format_amount(size, "B") for size in (topic.size_bytes, topic.other_bytes))
    return (
        f"unequal partitions: {topic.partition} has {largest},",
        f"the {topic.partitions - 1} others of its topic {others} on the average",
    )


def unheeded_sentences(unknown_goals: Iterable[str], uneven_topics: Iterable[UnevenTopic]) -> Iterator[str]:
    """One sentence for goals without a known load, and one per topic with partitions of unequal size."""
    if goals := ", ".join(unknown_goals):
        yield f"not balanced, no load is known: {goals}"
    for one in uneven_topics:
        yield " ".join(uneven_parts(one))
