"""Independent check of even leaders per topic: which brokers lead too many or too few, without the search's code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from operator import itemgetter

from kreassign.model.plan_facts import TopicLeaders
from kreassign.planner.check.topic_spread import least_and_most, shares_by_topic
from kreassign.planner.goals import LEADERS
from kreassign.planner.problem.cluster import Assignment
from kreassign.planner.problem.problem import Problem

SHOWN = 100


def leaders_missed(problem: Problem, assignment: Assignment) -> dict[str, tuple[int, str]]:
    """Topics of which brokers lead too many or too few: by how many in all, and the widest miss as a sentence."""
    tolerance = problem.rules.topic_leaders
    if tolerance is None:
        return {}
    now, ids = problem.partitions, problem.brokers.ids.tolist()
    led = Counter(zip(now.topics.tolist(), assignment.replicas[assignment.offsets[:-1]].tolist(), strict=True))
    totals, found = Counter(now.topics.tolist()), {}
    for topic, shares in shares_by_topic(problem, LEADERS):
        off = []
        for broker, middle in enumerate((totals[topic] * shares).tolist()):
            least, most = least_and_most(middle, tolerance)
            count = led[topic, broker]
            if missed := max(count - most, least - count, 0):
                said = f"broker {ids[broker]} leads {count} of {totals[topic]} partitions, its share is {middle:.3g}"
                off.append((missed, f"topic {now.topic_names[topic]}: {said}"))
        if off:
            found[now.topic_names[topic]] = sum(one for one, _ in off), max(off, key=itemgetter(0))[1]
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
