"""What limits a plan, whence that is known, and what it could not heed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kreassign.model.amount import format_amount
from kreassign.model.plan_facts import Limit, PlanFacts

SHOWN_TOPICS = 3


def limit_lines(limits: Sequence[Limit]) -> Iterator[str]:
    """Each limit of brokers, and below it who says so."""
    if not limits:
        yield "limits: none of the brokers is known"
    for one in limits:
        least, most = (format_amount(value, one.unit) for value in (one.least, one.most))
        amount = least if least == most else f"{least} to {most}"
        yield f"limit: {one.goal} {amount}, {one.brokers} broker{'s' if one.brokers > 1 else ''}"
        yield f"  {one.source}"


def unheeded(facts: PlanFacts) -> Iterator[str]:
    """Goals of which no load is known, and topics whose partitions are of unequal size."""
    if facts.unknown_goals:
        yield f"not balanced, no load is known: {', '.join(facts.unknown_goals)}"
    for one in facts.uneven_topics[:SHOWN_TOPICS]:
        largest, others = (format_amount(size, "B") for size in (one.size_bytes, one.other_bytes))
        yield f"unequal partitions: {one.partition} has {largest},"
        yield f"  the {one.partitions - 1} others of its topic {others} on the average"
    if (more := len(facts.uneven_topics) - SHOWN_TOPICS) > 0:
        yield f"unequal partitions: {more} topics more"
