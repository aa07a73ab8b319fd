"""PURE. What limits a plan, whence that is known, and what it could not heed, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kreassign.model.amount import format_amount
from kreassign.model.plan_facts import Limit, Totals, UnevenTopic


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
