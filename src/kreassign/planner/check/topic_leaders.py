"""Independent check of even leaders per topic: which brokers lead too many or too few, without the search's code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import ceil, floor

from kreassign.model.plan_facts import TopicLeaders
from kreassign.planner.arrays import NOWHERE
from kreassign.planner.check.evaluate import share_of_each
from kreassign.planner.goals import LEADERS
from kreassign.planner.problem.cluster import Assignment
from kreassign.planner.problem.problem import Problem

SHOWN = 100
ROUNDING = 1e-9


def leaders_missed(problem: Problem, assignment: Assignment) -> dict[str, tuple[int, str]]:
    """Topics of which brokers lead too many or too few: by how many in all, and the widest miss as a sentence."""
    tolerance = problem.rules.topic_leaders
    if tolerance is None:
        return {}
    now, ids = problem.partitions, problem.brokers.ids.tolist()
    led = Counter(zip(now.topics.tolist(), assignment.replicas[assignment.offsets[:-1]].tolist(), strict=True))
    found = {}
    parts = share_of_each(problem, LEADERS)
    tenants = dict(zip(now.topics.tolist(), now.broker_sets.tolist(), strict=True))
    totals = Counter(now.topics.tolist())
    for topic, name in enumerate(now.topic_names):
        tenant = tenants.get(topic, NOWHERE)
        usable = parts * ((tenant == NOWHERE) | (problem.brokers.broker_sets == tenant))
        whole = float(usable.sum())
        off = []
        for broker, part in enumerate(usable.tolist()):
            middle = totals[topic] * part / whole if whole else 0.0
            most, least = ceil(middle * (1 + tolerance) - ROUNDING), floor(middle * (1 - tolerance) + ROUNDING)
            count = led[topic, broker]
            if missed := max(count - most, max(least, 0) - count, 0):
                said = f"broker {ids[broker]} leads {count} of {totals[topic]} partitions, its share is {middle:.3g}"
                off.append((missed, f"topic {name}: {said}"))
        if off:
            found[name] = sum(one for one, _ in off), max(off, key=lambda one: one[0])[1]
    return found


def topic_leaders(problem: Problem, assignment: Assignment) -> TopicLeaders | None:
    """How many topics have uneven leaders, before and after; None unless that is a goal."""
    if problem.rules.topic_leaders is None:
        return None
    before, after = (leaders_missed(problem, one) for one in (Assignment.current(problem.partitions), assignment))
    missed = (sum(count for count, _ in one.values()) for one in (before, after))
    return TopicLeaders(len(problem.partitions.topic_names), len(before), len(after), *missed)


def uneven_topics(problem: Problem, assignment: Assignment) -> Iterator[str]:
    """A sentence for each topic of which leaders are not as even as asked; nothing unless that is a goal."""
    found = leaders_missed(problem, assignment)
    for _, sentence in list(found.values())[:SHOWN]:
        yield sentence
    if more := max(len(found) - SHOWN, 0):
        yield f"and {more} topics more have uneven leaders"
