"""Independent check of goals per topic: even replicas, even leaders, leaders in preferred racks, even sizes.

Shares no code with the search (`search/spread.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import ceil, floor
from operator import itemgetter

import numpy as np

from kreassign.model.plan_facts import LeaderRacks, TopicLeaders, UnevenTopic
from kreassign.model.text import agreeing, counted
from kreassign.planner.arrays import NOWHERE, BoolArray, FloatArray, pairs
from kreassign.planner.check.evaluate import share_of_each, takers_of_leaders
from kreassign.planner.goals import LEADERS, REPLICAS, Goal
from kreassign.planner.problem.holds import NOT_ELECTED, first_names, held_sentences
from kreassign.planner.problem.problem import Assignment, Problem

# Replicas of a topic: topics that are not spread within the tolerance.

SHOWN = 100
ROUNDING = 1e-9


def topics_outside(problem: Problem, assignment: Assignment) -> tuple[str, ...]:
    """One sentence per topic of which a broker holds too many or too few replicas; empty if spread is no goal."""
    tolerance = problem.rules.topic_spread
    if tolerance is None:
        return ()
    found = list(_unspread_topics(problem, assignment, tolerance))
    more = len(found) - SHOWN
    rest = f"and {counted(more, 'topic')} more {agreeing(more, 'are')} not spread"
    return (*found[:SHOWN], *((rest,) if more > 0 else ()))


def _unspread_topics(problem: Problem, assignment: Assignment, tolerance: float) -> Iterator[str]:
    partitions, ids = problem.partitions, problem.brokers.ids
    topics = partitions.topics[assignment.owners]
    order, names = np.argsort(topics), partitions.topic_names
    first, end = (np.searchsorted(topics[order], np.arange(len(names)), side) for side in ("left", "right"))
    for topic, shares in shares_by_topic(problem, REPLICAS):
        held = np.bincount(assignment.replicas[order[first[topic] : end[topic]]], minlength=len(ids)).tolist()
        total = sum(held)
        off = []
        for broker, (count, middle) in enumerate(zip(held, (total * shares).tolist(), strict=True)):
            least, most = least_and_most(middle, tolerance)
            if not least <= count <= most:
                said = f"broker {ids[broker]} holds {count} of {total} replicas, its share is {middle:.3g}"
                off.append((abs(count - middle), broker, said))
        if off:
            yield f"topic {names[topic]}: {max(off)[2]}"


def shares_by_topic(problem: Problem, goal: Goal) -> Iterator[tuple[int, FloatArray]]:
    """Target share of each broker per topic, (N,); outside its broker set, only what a closed broker keeps."""
    now, brokers = problem.partitions, problem.brokers
    gets, kept = takers_of_leaders(problem) if goal is LEADERS else _takers_of_replicas(problem)
    parts, held = np.where(gets, share_of_each(problem, goal), 0.0), np.zeros((len(now.topic_names), len(brokers)))
    np.add.at(held, (now.topics[now.owners[kept]], now.replicas[kept]), 1.0)
    totals = np.bincount(now.topics, np.ones(len(now)) if goal is LEADERS else now.wanted_factors)
    for topic, tenant in dict(zip(now.topics.tolist(), now.broker_sets.tolist(), strict=True)).items():
        usable = parts * ((tenant == NOWHERE) | (brokers.broker_sets == tenant))
        stays = held[topic] / totals[topic]
        yield topic, stays + usable / (usable.sum() or 1.0) * max(0.0, 1.0 - stays.sum())


def _takers_of_replicas(problem: Problem) -> tuple[BoolArray, BoolArray]:
    """Brokers that changed lists may name and that are not down, (N,), and the replicas that the others keep, (S,)."""
    now, gets = problem.partitions, problem.brokers.may_be_named.copy()
    if problem.gone is not None:
        gets &= ~problem.gone.brokers
    stays = problem.brokers.is_live & ~problem.brokers.must_empty & ~gets
    return gets, stays[now.replicas] & ~now.may_move[now.owners]


def least_and_most(middle: float, tolerance: float) -> tuple[int, int]:
    """Fewest and most replicas of a topic for a broker with share `middle`; always spans the integers next to it."""
    return floor(middle * (1 - tolerance) + ROUNDING), ceil(middle * (1 + tolerance) - ROUNDING)


# Leaders of a topic: brokers that lead too many or too few.


def leaders_missed(problem: Problem, assignment: Assignment) -> dict[str, tuple[int, str]]:
    """Topics of which brokers lead too many or too few: the total miss in leaders, and the widest as a sentence."""
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
    """Number of topics with uneven leaders, before and after; None unless that is a goal."""
    if problem.rules.topic_leaders is None:
        return None
    before, after = (leaders_missed(problem, one) for one in (Assignment.current(problem.partitions), assignment))
    missed = (sum(count for count, _ in one.values()) for one in (before, after))
    return TopicLeaders(len(problem.partitions.topic_names), len(before), len(after), *missed)


def uneven_topics(problem: Problem, assignment: Assignment) -> Iterator[str]:
    """One sentence per topic with uneven leaders; empty unless that is a goal."""
    found = leaders_missed(problem, assignment)
    for _, sentence in list(found.values())[:SHOWN]:
        yield sentence
    if more := max(len(found) - SHOWN, 0):
        yield f"and {counted(more, 'topic')} more {agreeing(more, 'have')} uneven leaders"


# Leaders in their preferred racks.
#
# A leader is in its preferred rack if no other replica of its partition that may lead is in a rack earlier in the
# order of its topic; racks outside that order come last and are equal.


def leader_racks(problem: Problem, assignment: Assignment) -> LeaderRacks | None:
    """Number of leaders with preferred racks, and of those in them before and after; None if no topic has any."""
    if not problem.rules.leader_racks:
        return None
    names = problem.partitions.topic_names
    chosen = np.array([name in problem.rules.leader_racks for name in names])[problem.partitions.topics]
    before, after = (chosen & _is_held(problem, one) for one in (Assignment.current(problem.partitions), assignment))
    return LeaderRacks(int(chosen.sum()), int(before.sum()), int(after.sum()))


def leaders_elsewhere(problem: Problem, assignment: Assignment) -> Iterator[str]:
    """One sentence per topic with leaders outside their preferred racks, or without a replica in any of them."""
    held, out_of_reach = _is_held(problem, assignment), _without_any_preferred(problem, assignment)
    for topic, racks in sorted(problem.rules.leader_racks.items()):
        its = problem.partitions.topics == problem.partitions.topic_names.index(topic)
        total, named = int(its.sum()), ", ".join(racks)
        if missing := int((its & out_of_reach).sum()):
            yield f"topic {topic}: {missing} of {total} partitions have no replica in rack {named} that may lead"
        if wrong := int((its & ~held).sum()):
            yield (
                f"topic {topic}: {wrong} of {total} partitions do not lead from the first of rack {named} that has a "
                "replica: they must not change, or a limit or the budget is in the way"
            )


def _rack_ranks(problem: Problem, assignment: Assignment) -> FloatArray:
    """Rank of each replica's rack in the order of its topic, (A,); infinite for brokers that may not lead."""
    brokers, names = problem.brokers, problem.partitions.topic_names
    racks = [None if rack == NOWHERE else brokers.rack_names[rack] for rack in brokers.racks.tolist()]
    table = np.zeros((len(names), len(brokers)))
    for topic, order in problem.rules.leader_racks.items():
        ranks = [order.index(rack) if rack in order else len(order) for rack in racks]
        table[names.index(topic)] = ranks
    may_lead = brokers.may_get_leaders & brokers.is_live & ~brokers.must_empty
    if problem.gone is not None:
        may_lead &= ~problem.gone.brokers
    topics = problem.partitions.topics[assignment.owners]
    found: FloatArray = np.where(may_lead[assignment.replicas], table[topics, assignment.replicas], np.inf)
    return found


def _is_held(problem: Problem, assignment: Assignment) -> BoolArray:
    ranks, heads = _rack_ranks(problem, assignment), assignment.offsets[:-1]
    held: BoolArray = ranks[heads] == np.minimum.reduceat(ranks, heads)
    return held


def _without_any_preferred(problem: Problem, assignment: Assignment) -> BoolArray:
    """Mask of partitions without an eligible replica in any preferred rack of their topic, (P,)."""
    best = np.minimum.reduceat(_rack_ranks(problem, assignment), assignment.offsets[:-1])
    counts = [len(problem.rules.leader_racks.get(name, ())) for name in problem.partitions.topic_names]
    missing: BoolArray = best >= np.array(counts)[problem.partitions.topics]
    return missing


# Leaders that stay on brokers that may not lead, because Kafka elects only replicas in sync.


def leaders_kept(problem: Problem, assignment: Assignment) -> Iterator[str]:
    """A sentence for each broker that is to lead nothing and still will, with the partitions and the reason."""
    now, brokers = problem.partitions, problem.brokers
    may_lead = brokers.may_get_leaders if problem.rules.may_change_leaders else brokers.may_lead
    barred = ~may_lead & brokers.staying
    if problem.gone is not None:
        barred &= ~problem.gone.brokers
    if not barred.any():
        return
    before, after = now.replicas[now.offsets[:-1]], assignment.replicas[assignment.offsets[:-1]]
    lagging = pairs(now.owners[now.lags], now.replicas[now.lags], len(brokers))
    unfit = np.isin(pairs(np.arange(len(now)), after, len(brokers)), lagging)
    for broker in np.flatnonzero(barred).tolist():
        of_broker = before == broker
        held = of_broker & (after == broker) & ~now.may_move
        for sentence in held_sentences(now.holds_of(np.flatnonzero(held).tolist())):
            yield f"broker {brokers.ids[broker]} keeps leading: {sentence}"
        for chosen, why in (
            (of_broker & (after == broker) & now.may_move, "no other replica may lead"),
            (of_broker & (after != broker) & unfit, f"its next leader is {NOT_ELECTED}"),
        ):
            if chosen.any():
                names = first_names([now.name(one) for one in np.flatnonzero(chosen).tolist()])
                yield f"broker {brokers.ids[broker]} keeps leading {names}: {why}"


# Replicas on brokers that are not of the broker set of their topic.


def outside_broker_sets(problem: Problem, assignment: Assignment) -> Iterator[str]:
    """A sentence for each broker that keeps replicas of a broker set to which it does not belong.

    Nothing for a task that brings them to their set: what it leaves is unfinished.
    """
    if problem.rules.repair_sets:
        return
    now, brokers = problem.partitions, problem.brokers
    wanted = now.broker_sets[assignment.owners]
    outside = (wanted != NOWHERE) & (brokers.broker_sets[assignment.replicas] != wanted)
    for broker in np.unique(assignment.replicas[outside]).tolist():
        owners = assignment.owners[outside & (assignment.replicas == broker)].tolist()
        names = first_names([now.name(one) for one in owners])
        yield f"broker {brokers.ids[broker]} keeps replicas of {names}, and is not of their broker set"


# Sizes of a topic's partitions: a large one is hard to place, and its consumers are the busiest.

UNEVEN_TIMES = 2.0
UNEVEN_SHARE = 0.01
"""Fraction of the mean bytes per broker; the default bands are twenty times as wide."""


def uneven_topics_by_size(problem: Problem) -> tuple[UnevenTopic, ...]:
    """Topics whose largest partition is `UNEVEN_TIMES` the mean of the others, the largest first.

    The difference must be at least `UNEVEN_SHARE` of the mean bytes per broker, which leaves out small topics.
    Partitions of unknown size do not count.
    """
    partitions = problem.partitions
    known = np.flatnonzero(partitions.may_move | (partitions.size_bytes > 0))
    topics, sizes = partitions.topics[known], partitions.size_bytes[known]
    order = np.lexsort((-sizes, topics))
    found, first, counts = np.unique(topics[order], return_index=True, return_counts=True)
    largest = sizes[order[first]]
    others = (np.bincount(topics, sizes, len(partitions.topic_names))[found] - largest) / np.maximum(counts - 1, 1)
    held = float((partitions.size_bytes * partitions.factors).sum()) / max(1, int(problem.brokers.staying.sum()))
    uneven = (counts > 1) & (largest > UNEVEN_TIMES * others) & (largest - others >= UNEVEN_SHARE * held)
    places = np.flatnonzero(uneven).tolist()
    return tuple(
        UnevenTopic(
            str(partitions.name(int(known[order[first[place]]]))),
            int(largest[place]),
            int(others[place]),
            int(counts[place]),
        )
        for place in sorted(places, key=lambda one: -largest[one])
    )
