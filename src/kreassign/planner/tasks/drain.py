"""Tasks that empty brokers or log directories, so that they can be taken away."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from kreassign.errors import Infeasible, InputError
from kreassign.planner.arrays import NOWHERE, BoolArray, IntArray
from kreassign.planner.problem.cluster import Assignment
from kreassign.planner.problem.problem import Problem
from kreassign.planner.problem.selection import chosen_brokers


def drain_brokers(problem: Problem, ids: Iterable[int]) -> Problem:
    """Everything that the brokers with these ids hold goes to others. They may be dead.

    Raises InputError for a broker that is not there, or when none is left.
    """
    brokers = problem.brokers
    emptied = brokers.must_empty | chosen_brokers(brokers, ids)
    if not (brokers.is_live & ~emptied).any():
        raise InputError("no broker would be left to take the replicas")
    return replace(problem, brokers=replace(brokers, must_empty=emptied))


def replace_brokers(problem: Problem, successors: Mapping[int, int]) -> tuple[Problem, Assignment]:
    """Give all replicas of each broker to its successor, place by place in every list: nothing else changes.

    `successors` maps the id of a broker, which may be dead, to that of a live one. Replicas go to the log directory
    of the same path, if the successor has it. Returns the problem as a drain, to judge the assignment by. Raises
    InputError when a successor is not there, takes nothing, is named twice, or already has replicas of the same
    partitions.
    """
    drained = drain_brokers(problem, successors)
    brokers = problem.brokers
    chosen_brokers(brokers, successors.values())
    places = {int(broker): index for index, broker in enumerate(brokers.ids)}
    target = np.arange(len(brokers), dtype=np.int32)
    for old, new in successors.items():
        if not drained.brokers.receiving[places[new]]:
            raise InputError(f"broker {new} cannot take over from {old}: it is not live, is to go too, or is excluded")
        target[places[old]] = places[new]
    if len(set(successors.values())) != len(successors):
        raise InputError(f"each broker needs a successor of its own; given were {sorted(successors.values())}")
    assignment = Assignment(
        problem.partitions.offsets, target[problem.partitions.replicas], _same_paths(problem, target)
    )
    _refuse_doubles(problem, assignment)
    return drained, assignment


def _same_paths(problem: Problem, target: IntArray) -> IntArray:
    dirs, present = problem.log_dirs, problem.partitions.log_dirs
    if dirs is None:
        return present
    at = {(int(broker), path): index for index, (broker, path) in enumerate(zip(dirs.brokers, dirs.paths, strict=True))}
    moved = [
        at.get((int(target[broker]), path), NOWHERE) for broker, path in zip(dirs.brokers, dirs.paths, strict=True)
    ]
    return np.array([*moved, NOWHERE], np.int32)[present]  # the last place is that of NOWHERE


def _refuse_doubles(problem: Problem, assignment: Assignment) -> None:
    owners = problem.partitions.owners
    key = np.sort(owners.astype(np.int64) * len(problem.brokers) + assignment.replicas)
    doubles: BoolArray = key[1:] == key[:-1]
    if doubles.any():
        place = int(key[1:][np.argmax(doubles)])
        name = problem.partitions.name(place // len(problem.brokers))
        broker = problem.brokers.ids[place % len(problem.brokers)]
        raise InputError(f"broker {broker} already has a replica of {name}; drain without --replace-with instead")


def drain_log_dirs(problem: Problem, places: Iterable[tuple[int, str]], *, between_brokers: bool = False) -> Problem:
    """Everything in these directories (broker id, path) goes to others of the same broker.

    `between_brokers` lets replicas leave their broker where its other directories are too small, or it has none, and
    evens out the brokers. Raises InputError for a directory that is not there, Infeasible where a broker has no other.
    """
    dirs = problem.log_dirs
    if dirs is None:
        raise InputError("nothing is known of log directories; take a new snapshot, and run `kreassign load` again")
    ids = problem.brokers.ids[dirs.brokers].tolist()
    known = {place: index for index, place in enumerate(zip(ids, dirs.paths, strict=True))}
    wanted = sorted(set(places))
    for broker, path in wanted:
        if (broker, path) not in known:
            there = [one for host, one in known if host == broker]
            raise InputError(f"broker {broker} has no log directory {path}; it has {', '.join(there) or 'none'}")
    must_empty = dirs.must_empty.copy()
    must_empty[[known[place] for place in wanted]] = True
    rules = replace(problem.rules, between_log_dirs=True, between_brokers=between_brokers, leaders=between_brokers)
    drained = replace(problem, log_dirs=replace(dirs, must_empty=must_empty), rules=rules)
    named = sorted({broker for broker, _ in wanted})
    bare = [broker for broker in named if must_empty[problem.brokers.ids[dirs.brokers] == broker].all()]
    if bare and not between_brokers:
        raise Infeasible(
            f"brokers {bare} would have no log directory left; let the replicas leave them (--between-brokers), or "
            f"`kreassign plan drain-brokers {','.join(map(str, bare))}`",
            goals=("log directories",),
        )
    return drain_brokers(drained, bare) if bare else drained
