"""Rules for an assignment, one function each, which yields a sentence per violation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from operator import itemgetter

import numpy as np

from kreassign.model import TopicPartition
from kreassign.model.closures import REFUSES, Closure
from kreassign.model.cluster import named_brokers
from kreassign.model.replication_factor import keeps_lagging
from kreassign.model.text import counted, format_amount
from kreassign.planner.arrays import NOWHERE, BoolArray, FloatArray, IntArray, pairs, sums
from kreassign.planner.check.case import Case, reasons_to_leave
from kreassign.planner.check.cost import Changes, forced_copies
from kreassign.planner.check.racks import rack_excess
from kreassign.planner.problem.holds import Hold, first_names, held_sentences, lagging_copies, too_few_partitions
from kreassign.planner.problem.problem import Assignment, Problem, RackLimits

SHOWN_PER_RULE = 100
ROUNDING = 1e-9


Rule = Callable[[Case], Iterator[str]]


def violations(case: Case) -> tuple[str, ...]:
    """One sentence per violation; at most `SHOWN_PER_RULE` per rule, then the number of others."""
    rules = RULES if case.may_leave else RULES + FORCED
    return tuple(sentence for rule in rules for sentence in _shown(rule(case)))


def unfinished(case: Case) -> tuple[str, ...]:
    """One sentence per forced change that is left undone, for the budget or for want of a place."""
    return tuple(sentence for rule in FORCED for sentence in _shown(rule(case))) if case.may_leave else ()


def out_of_reach(case: Case) -> tuple[str, ...]:
    """One sentence per partition that no plan can change: without a live copy, or not allowed to move."""
    rules = (_out_of_reach, _fixed_factors, _crowded_and_held)
    return tuple(sentence for rule in rules for sentence in _shown(rule(case)))


def _shown(sentences: Iterator[str]) -> Iterator[str]:
    yield from islice(sentences, SHOWN_PER_RULE)
    if more := sum(1 for _ in sentences):
        yield f"and {more} more like the last"


def _distinct(case: Case) -> Iterator[str]:
    key = pairs(case.changes.owners, case.assignment.replicas, len(case.problem.brokers))
    order = np.argsort(key)
    for place in order[1:][key[order][1:] == key[order][:-1]]:
        yield f"{case.replica(int(place))} is named more than once"


def _receivers(case: Case) -> Iterator[str]:
    brokers, added = case.problem.brokers, case.changes.added
    target, is_live = case.assignment.replicas, case.is_up
    stays, is_closed = is_live & ~brokers.must_empty, brokers.closures != Closure.NONE
    for why, barred in (
        ("is not live", ~is_live),
        ("is to be drained", is_live & brokers.must_empty),
        ("may receive nothing", stays & ~is_closed & ~brokers.may_receive),
    ):
        for place in np.flatnonzero(added & barred[target]):
            yield f"{case.replica(int(place))} gets a copy but {why}"
    for place in np.flatnonzero(added & (stays & is_closed)[target]):
        closure = Closure(int(brokers.closures[target[place]]))
        refuses = f", and {REFUSES}" if closure.is_binding else ""
        yield f"{case.replica(int(place))} gets a copy but {closure.why}{refuses}; {closure.remedy}"


def _named(case: Case) -> Iterator[str]:
    """A changed list names no broker that Kafka refuses in it, although the broker has a replica already."""
    brokers, changes, target = case.problem.brokers, case.changes, case.assignment.replicas
    kept = ~changes.added & changes.lists_differ[changes.owners]
    for place in np.flatnonzero(kept & ~brokers.may_be_named[target]):
        closure = Closure(int(brokers.closures[target[place]]))
        yield (
            f"{case.replica(int(place))} stays in a changed list, but {closure.why}, and {REFUSES}; leave the "
            f"partition as it is, or {closure.remedy}"
        )


def _in_sync(case: Case) -> Iterator[str]:
    """Check that a falling factor leaves as many replicas in sync as before, or all that there are.

    Not of partitions that must stay: in the middle of a reassignment no factor falls.
    """
    now, changes = case.problem.partitions, case.changes
    usable = case.problem.brokers.is_live[now.replicas] & ~now.is_lost & ~now.lags
    kept = ~changes.added & usable[changes.present]
    after = np.bincount(changes.owners[kept | changes.added], minlength=len(now))
    before, factors = np.bincount(now.owners[usable], minlength=len(now)), np.diff(case.assignment.offsets)
    falls, ids = (factors < now.factors) & now.may_move, case.problem.brokers.ids
    lagging = ~changes.added & ~usable[changes.present]
    for partition in np.flatnonzero(falls & (after < np.minimum(before, factors))):
        span = now.span(int(partition))
        going = ids[now.replicas[span][changes.removed[span] & usable[span]]].tolist()
        staying = ids[case.assignment.replicas[lagging & (changes.owners == partition)]].tolist()
        yield f"{now.name(int(partition))}: {keeps_lagging(going, staying)}"


def _outside(case: Case) -> BoolArray:
    """Mask of replicas outside of the broker set of their partition, (A,)."""
    wanted = case.problem.partitions.broker_sets[case.changes.owners]
    actual = case.problem.brokers.broker_sets[case.assignment.replicas]
    result: BoolArray = (wanted != NOWHERE) & (actual != wanted)
    return result


def _broker_sets(case: Case) -> Iterator[str]:
    for place in np.flatnonzero(case.changes.added & _outside(case)):
        yield f"{case.replica(int(place))} is not of the broker set of the partition"


def _fixed(case: Case) -> Iterator[str]:
    partitions = case.problem.partitions
    for held in partitions.holds_of(np.flatnonzero(case.changes.differs & ~partitions.may_move).tolist()):
        yield from held_sentences((held,))


def _allowed_kinds(case: Case) -> Iterator[str]:
    rules, changes = case.problem.rules, case.changes
    if not rules.between_brokers:
        for place in np.flatnonzero(changes.added):
            yield f"{case.replica(int(place))} gets a copy, but nothing may go from broker to broker"
    if not rules.between_log_dirs:
        for place in np.flatnonzero(changes.changes_dir):
            yield f"{case.replica(int(place))} changes its log directory, which is not allowed"
    if not rules.leaders or rules.only_forced:
        free = changes.leader_changes & ~_must_give_up_leading(case)
        for partition in np.flatnonzero(free):
            if rules.leaders and _leads_too_much(case, int(partition)):
                continue
            yield f"{case.problem.partitions.name(int(partition))} changes its leader without need"


def _leads_too_much(case: Case, partition: int) -> bool:
    """True if the present leader's broker would exceed a limit if it kept leading, with all that it receives."""
    partitions = case.problem.partitions
    broker = int(partitions.replicas[partitions.offsets[partition]])
    for column, name in enumerate(case.limited):
        limit = float(case.problem.brokers.capacity[name][broker])
        leading, following = (float(one(partitions)[partition]) for one in case.loads[column])
        load = float(case.after[broker, column]) + leading - following
        if load > max(limit, float(case.before[broker, column])) + limit * ROUNDING:
            return True
    return False


def _must_give_up_leading(case: Case) -> BoolArray:
    """Mask of partitions whose present leader may not lead, or is removed, (P,)."""
    now, brokers = case.problem.partitions, case.problem.brokers
    first = now.offsets[:-1]
    may_lead = brokers.may_get_leaders & brokers.is_live & ~brokers.must_empty
    result: BoolArray = ~may_lead[now.replicas[first]] | case.changes.removed[first]
    return result


def _leaders(case: Case) -> Iterator[str]:
    """Brokers excluded from leading do not lead, unless the partition is fixed or has no other replica.

    Those in maintenance may go on to lead, but are not given any more.
    """
    brokers, now = case.problem.brokers, case.problem.partitions
    barred, closed = ~brokers.may_lead | ~brokers.is_live, ~brokers.may_get_leaders
    others = np.logical_or.reduceat(~(barred | closed)[case.assignment.replicas], case.assignment.offsets[:-1])
    given = case.leaders != now.replicas[now.offsets[:-1]]
    wrong = barred[case.leaders] | (closed[case.leaders] & given)
    wrong &= others & now.may_move & now.within_reach(brokers.is_live)
    for partition in np.flatnonzero(wrong):
        broker = case.leaders[partition]
        closure = Closure(int(brokers.closures[broker]))
        why = "may not" if closure.may_lead else f"{closure.why}; {closure.remedy}"
        yield f"{now.name(int(partition))}: broker {brokers.ids[broker]} would lead, but {why}"


def _order_kept(case: Case) -> Iterator[str]:
    """With `only_forced`, staying replicas keep their order, except that a removed leader's successor comes first."""
    if not case.problem.rules.only_forced:
        return
    changes, heads = case.changes, case.assignment.offsets[:-1]
    stays = changes.present != NOWHERE
    stays[heads[changes.leader_changes]] = False
    places = changes.present[stays]
    for place in np.flatnonzero(places[1:] < places[:-1]):
        partition = int(changes.owners[np.flatnonzero(stays)[place + 1]])
        yield f"{case.problem.partitions.name(partition)} has its replicas in another order without need"


def _only_forced(case: Case) -> Iterator[str]:
    """With `only_forced`, nothing else is copied, unless undoing any one copy would exceed a limit."""
    problem, changes = case.problem, case.changes
    if not problem.rules.only_forced:
        return
    ids, limits = problem.brokers.ids, problem.rack_limits
    for partition in beyond_task(problem, changes):
        for broker, place in _exchanges(case, partition, limits):
            if over_limit(case, partition, broker, place) is None:
                to = ids[case.assignment.replicas[place]]
                yield f"{problem.partitions.name(partition)} goes from broker {ids[broker]} to {to} without need"
    dirs, now = problem.log_dirs, problem.partitions
    if dirs is not None:
        held = _dir_bytes(case, case.assignment)
        for place in np.flatnonzero(changes.changes_dir).tolist():
            before, size = now.log_dirs[changes.present[place]], now.size_bytes[changes.owners[place]]
            # If the present directory of a copy is unknown, whether the copy leaves it is unknown too.
            if before != NOWHERE and not dirs.must_empty[before] and held[before] + size <= dirs.capacity_bytes[before]:
                yield f"{case.replica(place)} leaves {dirs.paths[before]} without need"


def beyond_task(problem: Problem, changes: Changes) -> dict[int, int]:
    """Partitions with more copies than the task forces, and the number of extra copies."""
    copied = np.bincount(changes.owners[changes.added], minlength=len(problem.partitions))
    more = (copied - forced_copies(problem)).astype(np.int64)
    return {partition: int(more[partition]) for partition in np.flatnonzero(more > 0).tolist()}


def _exchanges(case: Case, partition: int, limits: RackLimits) -> Iterator[tuple[int, int]]:
    """Pairs of a broker that loses its replica, and the place of a copy that it could keep under the rack rule."""
    problem, assignment, now = case.problem, case.assignment, case.problem.partitions
    before = now.span(partition)
    stayable = case.changes.removed[before] & ~problem.leaving[before]
    if len(now.list_of(partition)) > now.wanted_factors[partition]:  # a copy may replace a replica that lags
        stayable &= ~now.lags[before]
    if (dirs := problem.log_dirs) is not None:  # a replica that leaves its directory anyway may leave its broker too
        own = now.log_dirs[before]
        stayable &= ~((own != NOWHERE) & dirs.must_empty[own])
    first, last = int(assignment.offsets[partition]), int(assignment.offsets[partition + 1])
    places = first + np.flatnonzero(case.changes.added[first:last])
    racks = problem.rack_of_broker
    for broker in now.replicas[before][stayable].tolist():
        for place in places.tolist():
            held = np.bincount(racks[np.delete(assignment.replicas[first:last], place - first)], minlength=len(racks))
            if held[racks[broker]] < limits.of(partition, held):
                yield broker, place


def over_limit(case: Case, partition: int, broker: int, place: int) -> tuple[str, float] | None:
    """The limit that a broker would exceed most with the replica at this place, and by how much; None if none."""
    leads = place == case.assignment.offsets[partition]
    found = []
    for column, name in enumerate(case.limited):
        limit = float(case.problem.brokers.capacity[name][broker])
        load = float(case.loads[column][0 if leads else 1](case.problem.partitions)[partition])
        excess = float(case.after[broker, column]) + load - max(limit, float(case.before[broker, column]))
        if excess > limit * ROUNDING:
            found.append((excess / limit if limit else np.inf, name, excess))
    return max(found, key=itemgetter(0))[1:] if found else None


def _racks(case: Case) -> Iterator[str]:
    before, after = (rack_excess(case.problem, one) for one in (_present(case), case.assignment))
    for partition in np.flatnonzero(after > before):
        yield f"{case.problem.partitions.name(int(partition))} has more replicas in one rack than before"


def _racks_repaired(case: Case) -> Iterator[str]:
    if case.problem.rules.repair_racks:
        yield from _crowded(case, case.problem.partitions.may_move)


def _crowded_and_held(case: Case) -> Iterator[str]:
    """Of a repair, partitions that others hold: not those that the task itself leaves out, or that are on their way."""
    rules, partitions = case.problem.rules, case.problem.partitions
    if rules.repair_racks and rules.leaves_rest:
        yield from _crowded(case, ~partitions.may_move & ((partitions.holds & (Hold.STAYS | Hold.MOVING)) == 0))


def _crowded(case: Case, asked: BoolArray) -> Iterator[str]:
    partitions, why = case.problem.partitions, reasons_to_leave(case)
    within_reach = partitions.within_reach(case.problem.brokers.is_live)
    excess = rack_excess(case.problem, case.assignment)
    for partition in np.flatnonzero((excess > 0) & asked & within_reach).tolist():
        yield f"{partitions.name(partition)} still has too many replicas in one rack{why(partition)}"


def _capacity(case: Case) -> Iterator[str]:
    brokers = case.problem.brokers
    for column, name in enumerate(case.limited):
        limit, before, after = brokers.capacity[name], case.before[:, column], case.after[:, column]
        over = (after > limit * (1 + ROUNDING)) & (after > before * (1 + ROUNDING))
        for broker in np.flatnonzero(over):
            loads = float(after[broker]), float(after[broker] - limit[broker]), float(limit[broker])
            yield f"broker {brokers.ids[broker]}: {name} {_rise(*(case.amount(name, one) for one in loads))}"


def above_limits(case: Case) -> dict[tuple[int, str], str]:
    """A sentence for each broker id and goal whose load stays above a limit that it was above before."""
    brokers = case.problem.brokers
    found: dict[tuple[int, str], str] = {}
    for column, name in enumerate(case.limited):
        limit, after = brokers.capacity[name], case.after[:, column]
        for broker in np.flatnonzero((after > limit * (1 + ROUNDING)) & brokers.staying):
            amounts = (case.amount(name, float(one[broker])) for one in (after, after - limit, limit))
            loads = "{}, {} above its limit of {}".format(*amounts)
            found[int(brokers.ids[broker]), name] = f"broker {brokers.ids[broker]}: {name} is {loads}"
    return found


def _log_dirs(case: Case) -> Iterator[str]:
    dirs, chosen = case.problem.log_dirs, case.assignment.log_dirs
    if dirs is None:
        return
    named = chosen != NOWHERE
    arrives = named & (case.changes.added | case.changes.changes_dir)
    for place in np.flatnonzero(named & (dirs.brokers[chosen] != case.assignment.replicas)):
        yield f"{case.replica(int(place))} has no log directory {dirs.paths[chosen[place]]}"
    for place in np.flatnonzero(arrives & ~(dirs.may_receive & ~dirs.must_empty)[chosen]):
        yield f"{case.replica(int(place))} gets a copy in {dirs.paths[chosen[place]]}, which may receive nothing"
    before, after = (_dir_bytes(case, one) for one in (_present(case), case.assignment))
    for place in np.flatnonzero((after > dirs.capacity_bytes) & (after > before)):
        limit = dirs.capacity_bytes[place]
        sizes = (format_amount(float(size), "B") for size in (after[place], after[place] - limit, limit))
        broker = case.problem.brokers.ids[dirs.brokers[place]]
        yield f"log directory {dirs.paths[place]} of broker {broker} {_rise(*sizes)}"


def _rise(amount: str, excess: str, limit: str) -> str:
    """Sentence with the excess: rounded to three digits, an amount and its limit may look the same."""
    return f"rises to {amount}, {excess} above its limit of {limit}"


def _dir_bytes(case: Case, assignment: Assignment) -> FloatArray:
    known = assignment.log_dirs != NOWHERE
    size = case.problem.partitions.size_bytes[assignment.owners[known]]
    return sums(assignment.log_dirs[known], size, len(case.problem.log_dirs or ()))


def _sets_repaired(case: Case) -> Iterator[str]:
    if not case.problem.rules.repair_sets:
        return
    now, brokers, why = case.problem.partitions, case.problem.brokers, reasons_to_leave(case)
    strays = _outside(case)
    left: dict[tuple[int, str], list[TopicPartition]] = {}
    for owner, broker in zip(case.changes.owners[strays].tolist(), case.assignment.replicas[strays], strict=True):
        left.setdefault((int(brokers.ids[broker]), why(owner)), []).append(now.name(owner))
    for (broker, reason), names in sorted(left.items()):
        yield f"broker {broker} keeps replicas of {first_names(names)}, and is not of their broker set{reason}"


def _drained_log_dirs(case: Case) -> Iterator[str]:
    dirs, chosen = case.problem.log_dirs, case.assignment.log_dirs
    if dirs is not None:
        for place in np.flatnonzero((chosen != NOWHERE) & dirs.must_empty[chosen]):
            yield f"{case.replica(int(place))} still has its copy in {dirs.paths[chosen[place]]}, to be drained"


def _least_leaders(case: Case) -> Iterator[str]:
    now, brokers = case.problem.partitions, case.problem.brokers
    leading = np.flatnonzero(brokers.is_live & ~brokers.must_empty & brokers.may_get_leaders)
    lags = now.lags & (np.arange(len(now.replicas)) != now.offsets[now.owners])  # what leads now may lead on
    for topic, least in case.problem.rules.least_topic_leaders.items():
        chosen = np.isin(now.topics, [place for place, name in enumerate(now.topic_names) if name == topic])
        led = np.bincount(case.leaders[chosen], minlength=len(brokers))
        before = now.replicas[now.offsets[:-1]][chosen]
        led_before = np.bincount(before, minlength=len(brokers))
        demanded, few = np.minimum(least, led_before), ""
        if case.problem.rules.may_change_leaders:
            demanded = np.full_like(led, least)
            few = too_few_partitions(topic, int(chosen.sum()), least, len(leading))
        for broker in leading[(led < demanded)[leading]]:
            leads, there = counted(int(led[broker]), "partition"), (now.replicas == broker) & chosen[now.owners]
            behind, lost = (
                [now.name(one) for one in now.owners[there & marked].tolist()] for marked in (lags, now.is_lost)
            )
            whys = (few, f"it lost its copy of {first_names(lost)}" if lost else "")
            why = "".join(f"; {one}" for one in whys if one) + lagging_copies(behind)
            yield f"broker {brokers.ids[broker]} leads {leads} of topic {topic}, not {least}{why}"


def _drained(case: Case) -> Iterator[str]:
    brokers = case.problem.brokers
    within_reach = case.problem.partitions.within_reach(brokers.is_live)[case.changes.owners]
    why = reasons_to_leave(case)
    for place in np.flatnonzero((~brokers.is_live | brokers.must_empty)[case.assignment.replicas] & within_reach):
        reason = why(int(case.changes.owners[place]))
        yield f"{case.replica(int(place))} still has a copy, but is to have none{reason}"


def _lost(case: Case) -> Iterator[str]:
    """A broker that lost its copy with a log directory gets no other copy of the partition."""
    now = case.problem.partitions
    lost = now.is_lost & now.within_reach(case.problem.brokers.is_live)[now.owners]
    count = len(case.problem.brokers)
    gone, reason = pairs(now.owners[lost], now.replicas[lost], count), reasons_to_leave(case)
    for place in np.flatnonzero(np.isin(pairs(case.changes.owners, case.assignment.replicas, count), gone)):
        is_up = case.is_up[case.assignment.replicas[place]]
        why = "has lost its copy, but is to have one" if is_up else "is not live, but is to have a copy"
        yield f"{case.replica(int(place))} {why}{reason(int(case.changes.owners[place]))}"


def _out_of_reach(case: Case) -> Iterator[str]:
    now = case.problem.partitions
    for partition in np.flatnonzero(~now.within_reach(case.problem.brokers.is_live)):
        brokers = case.problem.brokers.ids[now.list_of(int(partition))].tolist()
        yield f"{now.name(int(partition))} {Hold.OUT_OF_REACH.keeps(f'stays on {named_brokers(brokers)}')}"


def _fixed_factors(case: Case) -> Iterator[str]:
    now = case.problem.partitions
    for partition in np.flatnonzero((now.factors != now.wanted_factors) & ~now.may_move).tolist():
        name, wanted, hold = now.name(partition), now.wanted_factors[partition], Hold(int(now.holds[partition]))
        kept = f"keeps {counted(int(now.factors[partition]), 'replica')}, not {wanted}"
        yield f"{name} {hold.keeps(kept)}"


def _factors(case: Case) -> Iterator[str]:
    partitions = case.problem.partitions
    factors = np.diff(case.assignment.offsets)
    within_reach, why = partitions.within_reach(case.problem.brokers.is_live), reasons_to_leave(case)
    wrong = (factors != partitions.wanted_factors) & within_reach & partitions.may_move
    for partition in np.flatnonzero(wrong).tolist():
        there = f"{counted(int(factors[partition]), 'replica')}, not {partitions.wanted_factors[partition]}"
        yield f"{partitions.name(partition)} has {there}{why(partition)}"


def _budget(case: Case) -> Iterator[str]:
    budget, added, changes = case.problem.budget, case.changes.added, case.changes
    size = case.problem.partitions.size_bytes
    count = len(case.problem.brokers)
    owners = changes.owners[added]
    counted = _catching_up(case, owners)
    received = np.bincount(case.assignment.replicas[added], counted, count)
    sent = np.bincount(case.problem.present_leaders[owners], counted, count)
    spent = (
        ("bytes copied", budget.moved_bytes, int(size[owners].sum())),
        ("moves", budget.moves, int(added.sum())),
        ("leader changes", budget.leader_changes, int(changes.leader_changes.sum())),
        ("bytes into one broker", budget.bytes_in_per_broker, float(received.max())),
        ("bytes out of one broker", budget.bytes_out_per_broker, float(sent.max())),
    )
    for what, limit, amount in spent:
        if limit is not None and amount > limit * (1 + ROUNDING):
            yield f"the budget of {what} allows {limit}, the plan has {amount:.0f}"


def _catching_up(case: Case, owners: IntArray) -> FloatArray:
    """Bytes copied until a replica of each partition has caught up, including those written meanwhile."""
    partitions, rate = case.problem.partitions, case.problem.budget.rate_bytes_per_s
    size = partitions.size_bytes[owners]
    ahead = 1 - partitions.write_bytes_per_s[owners] / (np.inf if rate is None else rate)
    passed = np.divide(size, ahead, out=np.full(len(size), np.inf), where=ahead > 0)
    return np.where(size > 0, passed, 0.0)


def _present(case: Case) -> Assignment:
    return Assignment.current(case.problem.partitions)


RULES: tuple[Rule, ...] = (
    _distinct, _receivers, _named, _in_sync, _broker_sets, _fixed, _allowed_kinds, _racks, _capacity, _log_dirs,
    _budget, _order_kept, _only_forced,
)  # fmt: skip
FORCED: tuple[Rule, ...] = (
    _leaders, _drained, _lost, _drained_log_dirs, _factors, _racks_repaired, _sets_repaired, _least_leaders,
)  # fmt: skip
"""Rules for forced changes; where they may be left undone a violation counts as `unfinished` instead."""
