"""Why the replicas of one partition move, and why the others do not."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kreassign.errors import InputError
from kreassign.model import TopicPartition
from kreassign.model.amount import format_amount
from kreassign.planner.arrays import BoolArray, FloatArray
from kreassign.planner.check.legality import rack_excess
from kreassign.planner.problem.cluster import Assignment
from kreassign.planner.problem.problem import Problem
from kreassign.planner.results.outcome import Outcome
from kreassign.planner.results.plans import index_of
from kreassign.planner.results.reasons import missed


def explain(outcome: Outcome, name: TopicPartition) -> tuple[str, ...]:
    """Sentences about one partition: what changes and why, and for each replica that stays, why it does.

    Raises InputError for a partition that is not there.
    """
    partition = index_of(outcome.problem.partitions, name)
    if partition is None:
        raise InputError(f"there is no partition {name} in this cluster")
    planned = [fact for fact in outcome.facts.partitions if fact.topic_partition == name]
    moved = [str(reason) for fact in planned for reason in fact.reasons]
    return (_lists(outcome, partition), *moved, *_staying(outcome, partition))


def _lists(outcome: Outcome, partition: int) -> str:
    problem, assignment = outcome.problem, outcome.assignment
    before = problem.brokers.ids[problem.partitions.list_of(partition)].tolist()
    places = slice(assignment.offsets[partition], assignment.offsets[partition + 1])
    after = problem.brokers.ids[assignment.replicas[places]].tolist()
    name = problem.partitions.name(partition)
    return f"{name} stays on {before}" if before == after else f"{name} goes from {before} to {after}"


def _staying(outcome: Outcome, partition: int) -> Iterator[str]:
    problem, assignment = outcome.problem, outcome.assignment
    final = assignment.replicas[assignment.offsets[partition] : assignment.offsets[partition + 1]].tolist()
    if not problem.partitions.may_move[partition]:
        yield "it is fixed: its topic is excluded or not chosen, it is being moved already, or its size is unknown"
        return
    if problem.rules.only_forced and set(final) >= set(problem.partitions.list_of(partition).tolist()):
        yield "the task does not demand that a replica leaves its broker, and only what must moves"
        return
    if not problem.rules.between_brokers:
        yield "this task copies nothing from broker to broker"
        return
    for broker in problem.partitions.list_of(partition).tolist():
        if broker in final:
            why = _why_not(outcome, partition, broker, final)
            yield f"the replica on broker {problem.brokers.ids[broker]} stays: {why}"


def _why_not(outcome: Outcome, partition: int, broker: int, final: list[int]) -> str:
    problem, evaluation = outcome.problem, outcome.evaluation
    if problem.rules.only_forced:
        return "the task does not demand that it moves"
    barred = _barred(problem, partition, broker, final)
    free = ~np.logical_or.reduce(list(barred.values()))
    if not free.any():
        return f"no other broker can take it ({', '.join(_counts(barred))})"
    gain, goal = _gains(outcome, partition, broker, leads=final[0] == broker)
    gain = np.where(free, gain, -np.inf)
    best = int(np.argmax(gain))
    target, size = problem.brokers.ids[best], int(problem.partitions.size_bytes[partition])
    if gain[best] > 0:
        return (
            f"broker {target} could take it and {goal[best]} would gain, but for its {format_amount(size, 'B')} "
            "other moves gain more, or the budget is spent"
        )
    inside = not missed(evaluation.after[broker], evaluation.low[broker], evaluation.high[broker]).any()
    state = "its broker is within all bands" if inside else "its broker is outside a band"
    return f"{state}, and moving it, at best to broker {target}, would bring no broker nearer to its bands"


def _barred(problem: Problem, partition: int, broker: int, final: list[int]) -> dict[str, BoolArray]:
    """Why brokers cannot take the replica, by reason."""
    count = len(problem.brokers)
    there = np.isin(np.arange(count), final)
    wanted = problem.partitions.broker_sets[partition]
    others = problem.brokers.broker_sets != wanted if wanted >= 0 else np.zeros(count, bool)
    return {
        "has a replica already": there,
        "may receive nothing": ~problem.brokers.receiving & ~there,
        "of another broker set": others & ~there,
        "rack": _breaks_racks(problem, partition, broker, final) & ~there,
    }


def _breaks_racks(problem: Problem, partition: int, broker: int, final: list[int]) -> BoolArray:
    limit = rack_excess(problem, Assignment.current(problem.partitions))[partition]
    racks = problem.brokers.racks
    rest = [int(racks[one]) for one in final if one != broker and racks[one] >= 0]
    known = len(set(racks[problem.brokers.staying].tolist()) - {-1})
    allowed = -(-len(final) // known) if known else len(final)
    return np.array([rack >= 0 and rest.count(int(rack)) >= allowed + limit for rack in racks], bool)


def _counts(barred: dict[str, BoolArray]) -> Iterator[str]:
    for why, brokers in barred.items():
        if brokers.any():
            yield f"{int(brokers.sum())} {why}"


def _gains(outcome: Outcome, partition: int, broker: int, *, leads: bool) -> tuple[FloatArray, list[str]]:
    """How much nearer to the bands moving it to each broker would bring the two, and the goal that gains most."""
    problem, evaluation = outcome.problem, outcome.evaluation
    columns = [band.goal.leader if leads else band.goal.follower for band in problem.bands]
    load = np.array([float(column(problem.partitions)[partition]) for column in columns])
    low, high, after = evaluation.low, evaluation.high, evaluation.after
    left = missed(after[broker], low[broker], high[broker]) - missed(after[broker] - load, low[broker], high[broker])
    taken = missed(after, low, high) - missed(after + load, low, high)
    middle = np.maximum(after.mean(axis=0), np.finfo(float).tiny)
    relative = (left + taken) / middle
    return relative.sum(axis=1), [evaluation.goals[goal] for goal in np.argmax(relative, axis=1)]
