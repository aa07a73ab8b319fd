"""Tasks of operators: balance, add, demote, drain, replace, change factors, repair, restore.

Each is a pure function from a problem to the problem with that task, or to an assignment if there is nothing to
search. Unknown brokers, log directories and topics raise InputError.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from kreassign.errors import Infeasible, InputError
from kreassign.model import TopicPartition
from kreassign.model.closures import REFUSES, Closure
from kreassign.model.cluster import listed_ids, named_brokers
from kreassign.model.plan import Plan
from kreassign.model.text import agreeing, counted
from kreassign.planner.arrays import NOWHERE, BoolArray, FloatArray, IntArray
from kreassign.planner.check.cost import changes_of
from kreassign.planner.check.racks import rack_excess
from kreassign.planner.goals import DISK
from kreassign.planner.problem.holds import Hold, first_names
from kreassign.planner.problem.policy import TopicChoice, chosen_brokers
from kreassign.planner.problem.problem import Assignment, Band, Brokers, Gone, Partitions, Problem, RackRule, Rules
from kreassign.planner.results import assignment_of, directories, index_of

# Balance brokers, new brokers, leaders and log directories; limit how much.


def rebalance(problem: Problem, topics: TopicChoice | None = None, without: Collection[TopicPartition] = ()) -> Problem:
    """Bring all brokers within their bands by moving only these topics; others, and partitions `without`, stay.

    First, replicas outside of the broker set of their topic go to brokers of it, as far as those may take them.
    """
    if problem.strays.any():
        problem = replace(problem, rules=replace(problem.rules, repair_sets=True, leaves_rest=True))
    if topics is not None:
        problem = movable_only(problem, topics.of(problem.partitions), Hold.NOT_CHOSEN)
    return _leaving_alone(problem, without)


def _leaving_alone(problem: Problem, without: Collection[TopicPartition]) -> Problem:
    return movable_only(problem, ~_named(problem.partitions, without), Hold.STAYS) if without else problem


def _named(partitions: Partitions, names: Collection[TopicPartition]) -> BoolArray:
    return np.array([partitions.name(one) in names for one in range(len(partitions))], bool)


def movable_only(problem: Problem, partitions: BoolArray, why: Hold) -> Problem:
    """Fix all partitions except these (shape (P,)) to their place, for this reason."""
    return replace(problem, partitions=problem.partitions.held(~partitions, why))


def relieve(problem: Problem, broker: int, path: str, leaving_bytes: float) -> Problem:
    """Move so many bytes off one log directory of a broker, which receives nothing, and change nothing else.

    Less leaves where the broker would have less than its share of the disk then. Others get it by the room that they
    have, or by their shares where that is not known. Raises InputError for an unknown broker.
    """
    chosen, partitions = chosen_brokers(problem.brokers, [broker]), problem.partitions
    others = replace(problem.brokers, must_empty=problem.brokers.must_empty | chosen)
    used = np.bincount(partitions.replicas, partitions.size_bytes[partitions.owners], len(problem.brokers))
    fair = problem.brokers.weights(DISK.name) * used.sum()
    part = min(leaving_bytes, max(0.0, float((used - fair)[chosen].sum()))) / max(1.0, float(used[chosen].sum()))
    room = np.where(others.receiving, np.maximum(0.0, others.capacity_of(DISK.name) - used), 0.0)
    is_known = 0 < room.sum() < np.inf
    shares = dict(problem.brokers.shares)
    for band, loads in zip(problem.bands, _replica_loads(problem), strict=True):
        now = np.bincount(partitions.replicas, loads, len(problem.brokers))
        # A plan stops at the upper end of a band.
        ends = (1 - part) / (1 + (band.tolerance or 0.0)) if band.goal is DISK else 1 - part
        weights = room / room.sum() if is_known else others.weights(band.goal.name)
        shares[band.goal.name] = np.where(chosen, now * ends, now + weights * now[chosen].sum() * (1 - ends))
    held = movable_only(problem, _partitions_with(partitions, _in_directory(problem, chosen, path)), Hold.NOT_CHOSEN)
    may_receive = problem.brokers.may_receive & ~chosen
    return replace(held, brokers=replace(problem.brokers, may_receive=may_receive, shares=shares))


def _in_directory(problem: Problem, chosen: BoolArray, path: str) -> BoolArray:
    """Replicas of the chosen brokers in directories of this path, (S,); all of theirs where that is not known."""
    partitions, dirs = problem.partitions, problem.log_dirs
    theirs: BoolArray = chosen[partitions.replicas]
    if dirs is None:
        return theirs
    there = np.array([*(one == path for one in dirs.paths), False])  # the last one is NOWHERE
    within: BoolArray = theirs & there[partitions.log_dirs]
    return within if within.any() else theirs


def add_brokers(
    problem: Problem, ids: Iterable[int], *, only_onto: bool = True, without: Collection[TopicPartition] = ()
) -> Problem:
    """Fill the brokers with these ids to their share; partitions `without` which it is to do stay.

    `only_onto` lets replicas move only to them; without it the plan balances the rest of the cluster too.
    Raises InputError for an unknown broker.
    """
    brokers = problem.brokers
    chosen = chosen_brokers(brokers, ids)
    problem = _leaving_alone(problem, without)
    if not only_onto:
        return problem
    return replace(problem, brokers=replace(brokers, may_receive=brokers.may_receive & chosen))


def leaders_only(problem: Problem) -> Problem:
    """Allow changes of the order of replica lists only."""
    return replace(problem, rules=replace(problem.rules, between_brokers=False, between_log_dirs=False))


def demote(problem: Problem, ids: Iterable[int]) -> Problem:
    """Let the brokers with these ids lead only what no other replica can lead; no byte is copied.

    Raises InputError for an unknown broker.
    """
    brokers = problem.brokers
    may_lead = brokers.may_lead & ~chosen_brokers(brokers, ids)
    return leaders_only(replace(problem, brokers=replace(brokers, may_lead=may_lead)))


def balance_disks(problem: Problem, ids: Collection[int] = (), *, between_brokers: bool = False) -> Problem:
    """Move replicas between log directories, and with `between_brokers` between brokers too, in one plan.

    With `ids` only directories of these brokers get replicas. They are brought within the disk band, ±10 % if it has
    none. Raises InputError if log directories are unknown, and for an unknown broker.
    """
    dirs = problem.log_dirs
    if dirs is None:
        raise InputError("nothing is known of log directories; take a new snapshot, and run `kreassign load` again")
    problem = _after_moves_within_brokers(problem, dirs.must_empty)
    if ids:
        own = chosen_brokers(problem.brokers, ids)[dirs.brokers]
        problem = replace(problem, log_dirs=replace(dirs, may_receive=dirs.may_receive & own))
    rules = replace(problem.rules, between_log_dirs=True)
    if not between_brokers:
        rules = replace(rules, between_brokers=False, leaders=False)
    has_band = any(band.goal is DISK and band.tolerance is not None for band in problem.bands)
    others = tuple(band for band in problem.bands if band.goal is not DISK)
    return replace(problem, rules=rules, bands=problem.bands if has_band else (Band(DISK), *others))


def only_forced(problem: Problem) -> Problem:
    """Keep every replica and leader that the task does not force to change.

    The others go where they serve the goals best, but no further bytes are copied for the goals.
    """
    return replace(problem, rules=replace(problem.rules, only_forced=True))


def forced(problem: Problem) -> BoolArray:
    """Partitions that must change, (P,): brokers drained or dead, copies lost, leaders, directories, factors, racks."""
    partitions, brokers = problem.partitions, problem.brokers
    must: BoolArray = partitions.wanted_factors != partitions.factors
    must |= ~brokers.may_lead[partitions.replicas[partitions.offsets[:-1]]]
    leaving = problem.leaving
    if problem.log_dirs is not None:
        leaving |= (partitions.log_dirs != NOWHERE) & problem.log_dirs.must_empty[partitions.log_dirs]
    must |= np.logical_or.reduceat(leaving, partitions.offsets[:-1])
    if problem.rules.repair_racks:
        must |= rack_excess(problem, Assignment.current(partitions)) > 0
    return must


def fit_in(problem: Problem, seconds: float, rate_bytes_per_s: float) -> Problem:
    """Limit the plan to a time at a rate that each broker may send and receive.

    Partitions of which a single copy takes longer stay, unless the task forces them. Raises InputError unless time and
    rate are above 0.
    """
    if not (seconds > 0 and rate_bytes_per_s > 0):
        raise InputError(f"nothing fits into {seconds:g} s at {rate_bytes_per_s:g} bytes/s; specify more than 0")
    partitions = problem.partitions
    rest = np.maximum(rate_bytes_per_s - partitions.write_bytes_per_s, 0.0)
    fits = (partitions.size_bytes <= rest * seconds) | forced(problem)
    problem = movable_only(problem, fits, Hold.TOO_LARGE)
    most = int(rate_bytes_per_s * seconds)
    budget = replace(
        problem.budget, bytes_in_per_broker=most, bytes_out_per_broker=most, rate_bytes_per_s=rate_bytes_per_s
    )
    return replace(problem, budget=budget)


# Drain brokers or log directories, so that they can be removed.


def drain_brokers(problem: Problem, ids: Iterable[int]) -> Problem:
    """Move all replicas off the brokers with these ids, which may be dead.

    Raises InputError for an unknown broker, or if none is left.
    """
    brokers = problem.brokers
    emptied = brokers.must_empty | chosen_brokers(brokers, ids)
    if not (brokers.is_live & ~emptied).any():
        raise InputError("no broker would be left to take the replicas; start another broker first")
    return replace(problem, brokers=replace(brokers, must_empty=emptied))


def replace_brokers(problem: Problem, successors: Mapping[int, int]) -> tuple[Problem, Assignment]:
    """Give all replicas of each broker to its successor, at the same place of every list; nothing else changes.

    `successors` maps the id of a broker, which may be dead, to that of a live one. Replicas go to the log directory of
    the same path, if the successor has it. Returns the problem as a drain, to evaluate the assignment by. Raises
    InputError if a successor is unknown, may not receive, is named twice, or has replicas of the same partitions.
    """
    drained = drain_brokers(problem, successors)
    brokers = problem.brokers
    chosen_brokers(brokers, successors.values())
    places = {int(broker): index for index, broker in enumerate(brokers.ids)}
    target = np.arange(len(brokers), dtype=np.int32)
    for old, new in successors.items():
        if not drained.brokers.receiving[places[new]]:
            why = Closure(int(brokers.closures[places[new]])).why or "it is not live, is to go too, or is excluded"
            raise InputError(f"broker {new} cannot take over from {old}: {why}")
        target[places[old]] = places[new]
    if len(set(successors.values())) != len(successors):
        raise InputError(
            f"each broker needs a successor of its own; given were {listed_ids(sorted(successors.values()))}"
        )
    assignment = Assignment(
        problem.partitions.offsets, target[problem.partitions.replicas], _same_paths(problem, target)
    )
    _refuse_doubles(problem, assignment)
    return replace(drained, rules=replace(drained.rules, is_given=True)), assignment


def _same_paths(problem: Problem, target: IntArray) -> IntArray:
    dirs, present = problem.log_dirs, problem.partitions.log_dirs
    if dirs is None:
        return present
    at = {(int(broker), path): index for index, (broker, path) in enumerate(zip(dirs.brokers, dirs.paths, strict=True))}
    moved = [
        at.get((int(target[broker]), path), NOWHERE) for broker, path in zip(dirs.brokers, dirs.paths, strict=True)
    ]
    return np.array([*moved, NOWHERE], np.int32)[present]  # the last entry maps NOWHERE to itself


def _refuse_doubles(problem: Problem, assignment: Assignment) -> None:
    # Partitions that must stay are refused for that, by the rules of every plan.
    moves = problem.partitions.may_move[problem.partitions.owners]
    owners, replicas = problem.partitions.owners[moves], assignment.replicas[moves]
    key = np.sort(owners.astype(np.int64) * len(problem.brokers) + replicas)
    doubles: BoolArray = key[1:] == key[:-1]
    if doubles.any():
        place = int(key[1:][np.argmax(doubles)])
        name = problem.partitions.name(place // len(problem.brokers))
        broker = problem.brokers.ids[place % len(problem.brokers)]
        raise InputError(f"broker {broker} already has a replica of {name}; drain without --replace-with instead")


def drain_log_dirs(problem: Problem, places: Iterable[tuple[int, str]], *, between_brokers: bool = False) -> Problem:
    """Move all replicas out of these directories (broker id, path), to others of the same broker.

    `between_brokers` lets replicas leave a broker whose other directories are too small, closed or missing, and
    balances the brokers. Raises InputError for an unknown directory, Infeasible if a broker has no other.
    """
    dirs = problem.log_dirs
    if dirs is None:
        raise InputError("nothing is known of log directories; take a new snapshot, and run `kreassign load` again")
    known = directories(problem)
    wanted = sorted(set(places))
    for broker, path in wanted:
        if (broker, path) not in known:
            there = [one for host, one in known if host == broker]
            raise InputError(f"broker {broker} has no log directory {path}; it has {', '.join(there) or 'none'}")
    must_empty = dirs.must_empty.copy()
    must_empty[[known[place] for place in wanted]] = True
    problem = _after_moves_within_brokers(problem, must_empty)
    rules = replace(problem.rules, between_log_dirs=True, between_brokers=between_brokers, leaders=between_brokers)
    drained = replace(problem, log_dirs=replace(dirs, must_empty=must_empty), rules=rules)
    named, hosts = sorted({broker for broker, _ in wanted}), problem.brokers.ids[dirs.brokers]
    bare = [broker for broker in named if must_empty[hosts == broker].all()]
    if between_brokers:
        brokers = problem.brokers
        is_full = np.isin(brokers.ids, named) & ~np.isin(brokers.ids, hosts[dirs.may_receive & ~must_empty])
        drained = replace(drained, brokers=replace(brokers, may_receive=brokers.may_receive & ~is_full))
    elif bare:
        raise Infeasible(
            f"{named_brokers(bare)} would have no log directory left; let the replicas go to other brokers "
            f"(--between-brokers), or `kreassign plan drain-brokers {listed_ids(bare)}`",
            goals=("log directories",),
        )
    return drain_brokers(drained, bare) if bare else drained


def in_unknown_log_dirs(problem: Problem) -> Iterator[str]:
    """A sentence for each broker with directories to be drained, on its copies of which nobody knows the directory."""
    partitions, brokers, dirs = problem.partitions, problem.brokers, problem.log_dirs
    if dirs is None:
        return
    drains = np.isin(np.arange(len(brokers)), dirs.brokers[dirs.must_empty]) & brokers.staying
    unknown = drains[partitions.replicas] & (partitions.log_dirs == NOWHERE) & ~partitions.is_lost
    for broker in np.unique(partitions.replicas[unknown]).tolist():
        owners = partitions.owners[unknown & (partitions.replicas == broker)].tolist()
        names = first_names([partitions.name(one) for one in owners])
        yield (
            f"broker {brokers.ids[broker]} did not report in which log directory it has {names}: a drained one may "
            "keep copies; take a new snapshot, then plan again"
        )


def _after_moves_within_brokers(problem: Problem, must_empty: BoolArray) -> Problem:
    """Count each copy where its broker is moving it. Raises Infeasible for copies on their way into a drained one."""
    partitions, dirs = problem.partitions, problem.log_dirs
    if dirs is None or partitions.future_log_dirs is None:
        return problem
    future = partitions.future_log_dirs
    moves = future != NOWHERE
    arriving = moves & must_empty[future]
    if arriving.any():
        told = [
            f"broker {problem.brokers.ids[dirs.brokers[place]]} is moving copies into {dirs.paths[place]}: "
            + first_names([partitions.name(one) for one in partitions.owners[arriving & (future == place)].tolist()])
            for place in np.unique(future[arriving]).tolist()
        ]
        raise Infeasible(f"{'; '.join(told)}; wait for that, then plan again", goals=("log directories",))
    return replace(problem, partitions=replace(partitions, log_dirs=np.where(moves, future, partitions.log_dirs)))


# Replica lists: change the replication factor, repair, restore a given assignment.


def change_factors(problem: Problem, factor: int, topics: TopicChoice | None = None) -> Problem:
    """Give every partition of the topics `factor` replicas.

    Raises InputError if that is less than 1 or more than the number of brokers that may hold replicas.
    """
    partitions, hosts = problem.partitions, int(problem.brokers.staying.sum())
    if not 1 <= factor <= hosts:
        there = f"there {agreeing(hosts, 'are')} {hosts}"
        raise InputError(f"a replication factor of {factor} needs {counted(factor, 'live broker')}; {there}")
    chosen = (topics or TopicChoice()).of(partitions)
    wanted = np.where(chosen, factor, partitions.wanted_factors).astype(np.int32)
    return replace(problem, partitions=replace(partitions, wanted_factors=wanted))


def repair(
    problem: Problem,
    *,
    racks: bool = True,
    factors: bool = True,
    without: Collection[TopicPartition] = (),
    leaves_rest: bool = False,
) -> Problem:
    """Recreate every replica on a dead broker, or lost with a log directory, elsewhere.

    `racks` also repairs partitions that break the rack rule, `factors` raises partitions with fewer replicas than
    their topic usually has to that number. Partitions `without` which it is to do stay as they are, and with
    `leaves_rest` those for which there is no place.
    """
    partitions = problem.partitions
    wanted = np.maximum(partitions.wanted_factors, partitions.usual_factors) if factors else partitions.wanted_factors
    if without:
        left = _named(partitions, without)
        partitions, wanted = partitions.held(left, Hold.STAYS), np.where(left, partitions.factors, wanted)
    return replace(
        problem,
        rules=replace(problem.rules, repair_racks=racks, leaves_rest=leaves_rest),
        partitions=replace(partitions, wanted_factors=wanted.astype(np.int32)),
    )


def restore(problem: Problem, wanted: Plan, cluster_id: str = "") -> tuple[Problem, Assignment]:
    """Apply the lists of a plan unchanged; nothing is searched.

    Returns the problem to evaluate the assignment by: factors are those of the plan, and the rack rule does not apply.
    Raises IllegalPlan for unknown partitions, brokers and log directories.
    """
    assignment = assignment_of(problem, wanted, cluster_id)
    rules = Rules(racks=RackRule.NONE, between_log_dirs=True, failover=problem.rules.failover, is_given=True)
    factors = np.diff(assignment.offsets).astype(np.int32)
    return replace(problem, rules=rules, partitions=replace(problem.partitions, wanted_factors=factors)), assignment


# Plan for the live and open brokers; `repair` handles dead ones.


def plan_around(
    problem: Problem, given: Assignment | None = None, *, repairs_dead: bool = False, lost_on: Collection[int] = ()
) -> tuple[Problem, tuple[str, ...]]:
    """Plan around brokers that are dead, or closed; return the problem and a sentence for each of them.

    With `repairs_dead` dead brokers are the task, with `lost_on` the copies that these lost, be they live or dead.
    """
    shared = problem.brokers.shares.keys()
    problem, dead = (problem, ()) if repairs_dead else ignore_dead_brokers(problem, given, lost_on)
    problem, closed = leave_cordoned(problem, given)
    return _leave_unlimited(problem, shared), (*dead, *closed)


def _leave_unlimited(problem: Problem, shared: Collection[str]) -> Problem:
    """Leave closed brokers without a limit what they hold, where only they have none: the others share by theirs.

    A broker that does not answer has no disk limit. Loads with `shared` shares are left out.
    """
    brokers, partitions = problem.brokers, problem.partitions
    there = brokers.staying if problem.gone is None else brokers.staying & ~problem.gone.brokers
    free = there & brokers.may_be_named  # of the others, shares are what they are left with
    shares, is_open = dict(brokers.shares), brokers.closures == Closure.NONE
    for band, total, loads in zip(problem.bands, problem.totals.tolist(), _replica_loads(problem), strict=True):
        name, limits = band.goal.name, brokers.capacity_of(band.goal.name)
        unlimited, limited = there & ~np.isfinite(limits), free & np.isfinite(limits)
        if name in shared or not unlimited.any() or not limited.any() or (unlimited & is_open).any():
            continue
        held = np.bincount(partitions.replicas, loads, len(brokers))
        left = np.where(free, np.where(unlimited, held, 0.0), shares.get(name, np.zeros(len(brokers))))
        parts = np.where(limited, limits, 0.0)
        shares[name] = left + parts / (parts.sum() or 1.0) * max(0.0, total - left.sum())
    return replace(problem, brokers=replace(brokers, shares=shares))


def leave_cordoned(problem: Problem, given: Assignment | None = None) -> tuple[Problem, tuple[str, ...]]:
    """Fix partitions with a replica on a broker that no changed list may name; return a sentence per closed broker.

    Only partitions that the task forces to change, or that a `given` assignment changes, are free: they leave such
    brokers whole. The target load of such a broker is what it is left with.
    """
    brokers, partitions = problem.brokers, problem.partitions
    if not (brokers.staying & (brokers.closures != Closure.NONE)).any():
        return problem, ()
    if not (problem.rules.between_brokers or problem.rules.leaders):  # no list changes
        free = replace(problem, brokers=replace(brokers, closures=brokers.closures & ~np.int32(Closure.BINDING)))
        return free, tuple(_closed_broker_sentences(free, np.zeros(len(partitions.replicas), bool)))
    named = ~brokers.may_be_named[partitions.replicas]
    touched = _partitions_with(partitions, named)
    demanded = _demanded_if_all_open(problem) if given is None else changes_of(problem, given).differs
    left = touched & ~(demanded & partitions.may_move)
    problem = replace(problem, partitions=partitions.held(left, Hold.CORDONED))
    closed = ~brokers.may_be_named & brokers.staying
    if closed.any():
        frozen = closed if problem.gone is None else closed | problem.gone.brokers
        problem = replace(problem, brokers=replace(brokers, shares=_shares_of_living(problem, frozen)))
    return problem, tuple(_closed_broker_sentences(problem, named & left[partitions.owners]))


def _demanded_if_all_open(problem: Problem) -> BoolArray:
    """Mask of partitions that the task would change if every broker could be named, (P,)."""
    if not problem.rules.between_brokers:
        return np.zeros(len(problem.partitions), bool)
    brokers = problem.brokers
    return forced(replace(problem, brokers=replace(brokers, closures=np.zeros_like(brokers.closures))))


def _closed_broker_sentences(problem: Problem, left: BoolArray) -> Iterator[str]:
    """A sentence for each closed broker that stays; `left` marks the replicas there that the plan leaves, (S,)."""
    brokers, partitions = problem.brokers, problem.partitions
    for place in np.flatnonzero((brokers.closures != Closure.NONE) & brokers.staying).tolist():
        closure = Closure(int(brokers.closures[place]))
        sentence = f"broker {brokers.ids[place]} gets nothing: {closure.why}"
        if count := int((left & (partitions.replicas == place)).sum()):
            stay = "stays as it is" if count == 1 else "stay as they are"
            sentence += f". {REFUSES}: {counted(count, 'partition')} with a replica there {stay}"
        yield f"{sentence}; {closure.remedy}"


def ignore_dead_brokers(
    problem: Problem, given: Assignment | None = None, lost_on: Collection[int] = ()
) -> tuple[Problem, tuple[str, ...]]:
    """Ignore dead brokers and lost copies but `lost_on` these; return the problem and a sentence per ignored broker.

    Partitions with a copy there are fixed; only those that the task forces to change, or that a `given` assignment
    changes, are repaired with it, because a change of such a list recreates all its replicas. A dead broker receives
    nothing, and its target load is what it is left with. Brokers to be drained are not left out: they may be dead.
    """
    dead = ~problem.brokers.is_live & ~problem.brokers.must_empty
    lost = dead[problem.partitions.replicas] | problem.partitions.is_lost
    wanted = lost & np.isin(problem.brokers.ids[problem.partitions.replicas], list(lost_on))
    touched = _partitions_with(problem.partitions, lost)
    if not (touched.any() or dead.any()):
        return problem, ()
    demanded = _demanded_if_all_lived(problem, dead) if given is None else changes_of(problem, given).differs
    demanded |= _partitions_with(problem.partitions, wanted)
    repaired = touched & problem.partitions.may_move & demanded
    left = touched & ~repaired
    brokers, partitions = problem.brokers, problem.partitions
    stays = left[partitions.owners]
    problem = replace(
        problem,
        gone=Gone(dead, lost & stays),
        # They stay as they are, and need not lead a least number of partitions of a topic.
        brokers=replace(
            brokers,
            is_live=brokers.is_live | dead,
            may_receive=brokers.may_receive & ~dead,
            may_lead=brokers.may_lead & ~dead if problem.rules.least_topic_leaders else brokers.may_lead,
        ),
        partitions=replace(
            partitions.held(left, Hold.DEAD_COPY),
            is_lost=lost & ~stays,
            wanted_factors=np.where(left, partitions.factors, partitions.wanted_factors).astype(np.int32),
        ),
    )
    problem = replace(problem, brokers=replace(problem.brokers, shares=_shares_of_living(problem, dead)))
    return problem, tuple(_dead_broker_sentences(brokers, partitions, lost & stays, dead))


def _partitions_with(partitions: Partitions, replicas: BoolArray) -> BoolArray:
    result: BoolArray = np.logical_or.reduceat(replicas, partitions.offsets[:-1])
    return result


def _demanded_if_all_lived(problem: Problem, dead: BoolArray) -> BoolArray:
    """Mask of partitions that the task would change if every copy were there and every broker could be named, (P,)."""
    whole = replace(
        problem,
        brokers=replace(problem.brokers, is_live=problem.brokers.is_live | dead),
        partitions=replace(problem.partitions, is_lost=np.zeros(len(problem.partitions.replicas), bool)),
    )
    return _demanded_if_all_open(whole)


def _shares_of_living(problem: Problem, dead: BoolArray) -> dict[str, FloatArray]:
    """Shares by load: dead brokers keep what they have, and the others share the rest as before."""
    brokers, partitions = problem.brokers, problem.partitions
    alive = replace(brokers, must_empty=brokers.must_empty | dead)
    shares = dict(brokers.shares)
    held = dead[partitions.replicas] & ~partitions.may_move[partitions.owners]
    for band, total, loads in zip(problem.bands, problem.totals.tolist(), _replica_loads(problem), strict=True):
        left = np.bincount(partitions.replicas, np.where(held, loads, 0.0), len(brokers))
        shares[band.goal.name] = np.where(dead, left, alive.weights(band.goal.name) * max(0.0, total - left.sum()))
    return shares


def _replica_loads(problem: Problem) -> Iterator[FloatArray]:
    """Loads of the present replicas, (S,), for each band."""
    partitions = problem.partitions
    leads = np.isin(np.arange(len(partitions.replicas)), partitions.offsets[:-1])
    for band in problem.bands:
        yield np.where(leads, *(one(partitions)[partitions.owners] for one in (band.goal.leader, band.goal.follower)))


def _dead_broker_sentences(brokers: Brokers, partitions: Partitions, left: BoolArray, dead: BoolArray) -> Iterator[str]:
    reached = partitions.within_reach(brokers.is_live)
    for broker in np.setdiff1d(np.flatnonzero(dead), partitions.replicas[left]).tolist():
        yield f"broker {brokers.ids[broker]} gets nothing: it is not live; start it, then plan again"
    for broker in np.unique(partitions.replicas[left]):
        owners = np.unique(partitions.owners[left & (partitions.replicas == broker)])
        why = "is not live" if dead[broker] else "has lost copies with a log directory"
        count, untouched = counted(len(owners), "partition"), agreeing(len(owners), "are not touched")
        sentence = f"broker {brokers.ids[broker]} {why}: {count} with a replica there {untouched}"
        lost = [partitions.name(one) for one in owners[~reached[owners]].tolist()]
        if len(lost) < len(owners):
            sentence += "; `kreassign plan repair` repairs " + ("the others" if lost else "them")
        yield f"{sentence}; {first_names(lost)} {Hold.OUT_OF_REACH.keeps()}" if lost else sentence


# Assignments from elsewhere: were they made for this cluster, and what do they do to its racks?


def held_by_others(
    problem: Problem,
    expected: Mapping[TopicPartition, tuple[int, ...]],
    targets: Mapping[TopicPartition, tuple[int, ...]],
) -> dict[TopicPartition, tuple[int, ...]]:
    """Partitions on other brokers than the expected ones, with their present lists; order does not count.

    Unknown partitions are left out, and those that are on the brokers of their target already.
    """
    places = {name: index_of(problem.partitions, name) for name in expected}
    present = {
        name: tuple(problem.brokers.ids[problem.partitions.list_of(place)].tolist())
        for name, place in places.items()
        if place is not None
    }
    return {
        name: brokers
        for name, brokers in present.items()
        if set(brokers) not in (set(expected[name]), set(targets.get(name, ())))
    }


def crowded(problem: Problem, assignment: Assignment) -> tuple[TopicPartition, ...]:
    """Partitions that get more replicas in one rack than the rack rule allows and than they have now."""
    factors = np.diff(assignment.offsets).astype(np.int32)
    judged = replace(problem, partitions=replace(problem.partitions, wanted_factors=factors))
    before, after = (rack_excess(judged, one) for one in (Assignment.current(problem.partitions), assignment))
    return tuple(problem.partitions.name(int(place)) for place in np.flatnonzero(after > before))
