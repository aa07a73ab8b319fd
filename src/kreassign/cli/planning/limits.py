"""What limits a plan, whence that is known, and what it could not heed, in lines of a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kreassign.model.plan_facts import Limit, PlanFacts
from kreassign.report.plan_limits import limit_amount, uneven_parts, unheeded_sentences

SHOWN_TOPICS = 3


def limit_lines(limits: Sequence[Limit]) -> Iterator[str]:
    """Each limit of brokers, and below it who says so."""
    if not limits:
        yield "limits: none of the brokers is known"
    for one in limits:
        yield f"limit: {limit_amount(one)}"
        yield f"  {one.source}"


def unheeded(facts: PlanFacts) -> Iterator[str]:
    """Goals of which no load is known, and topics whose partitions are of unequal size."""
    yield from unheeded_sentences(facts.unknown_goals, ())
    for one in facts.uneven_topics[:SHOWN_TOPICS]:
        first, second = uneven_parts(one)
        yield first
        yield f"  {second}"
    if (more := len(facts.uneven_topics) - SHOWN_TOPICS) > 0:
        yield f"unequal partitions: {more} topics more"
