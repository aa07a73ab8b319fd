"""Between a plan in words of the model (broker ids, paths) and an assignment in arrays (indices)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate

import numpy as np

from kreassign.errors import IllegalPlan
from kreassign.model import TopicPartition
from kreassign.model.plan import ANY_LOG_DIR, PartitionAssignment, Plan
from kreassign.planner.arrays import NOWHERE, IntArray
from kreassign.planner.check.changes import changes_of
from kreassign.planner.problem.cluster import Assignment, Partitions
from kreassign.planner.problem.problem import Problem


def plan_of(problem: Problem, assignment: Assignment) -> Plan:
    """The replica lists of every partition that changes, in the order of the partitions.

    Where a replica stays in its log directory or may go anywhere, its entry says `any`.
    """
    return Plan(tuple(_entry(problem, assignment, partition) for partition in changed_partitions(problem, assignment)))


def current_plan(problem: Problem, assignment: Assignment) -> Plan:
    """The present lists of the same partitions: where to go back to, and what is expected before the start."""
    present = Assignment.current(problem.partitions)
    return Plan(tuple(_entry(problem, present, partition) for partition in changed_partitions(problem, assignment)))


def changed_partitions(problem: Problem, assignment: Assignment) -> list[int]:
    """Indices of the partitions that an assignment changes, ascending."""
    indices: list[int] = np.flatnonzero(changes_of(problem, assignment).differs).tolist()
    return indices


def assignment_of(problem: Problem, plan: Plan) -> Assignment:
    """The present replicas with those of the plan in their places.

    A log directory that the plan leaves open is the present one where the replica stays on its broker. Raises
    IllegalPlan, which names every partition, broker and log directory that is not there, and repeated partitions.
    """
    problems = [f"{name} is named more than once" for name in plan.duplicate_partitions]
    problems += [f"{entry.topic_partition}: a broker is named more than once in {list(entry.replicas)}"
                 for entry in plan.assignments if entry.duplicate_replicas]  # fmt: skip
    places = {entry.topic_partition: index_of(problem.partitions, entry.topic_partition) for entry in plan.assignments}
    problems += [f"{name} is not a partition of this cluster" for name, place in places.items() if place is None]
    known = {int(broker): index for index, broker in enumerate(problem.brokers.ids)}
    dirs = _directories(problem)
    problems += list(_unknown(plan, known, dirs))
    if problems:
        raise IllegalPlan(tuple(problems))
    lists = {places[entry.topic_partition]: [known[broker] for broker in entry.replicas] for entry in plan.assignments}
    named = {places[entry.topic_partition]: _named_dirs(entry, known, dirs) for entry in plan.assignments}
    return _joined(problem.partitions, lists, named)


def index_of(partitions: Partitions, name: TopicPartition) -> int | None:
    """Where a partition stands among the partitions; None if it is not one of them."""
    try:
        topic = partitions.topic_names.index(name.topic)
    except ValueError:
        return None
    # Needles of the array's own type, or the whole array would be converted for each of them.
    start, end = np.searchsorted(partitions.topics, np.array([topic, topic + 1], partitions.topics.dtype))
    number = np.array(name.partition, partitions.numbers.dtype)
    place = int(start + np.searchsorted(partitions.numbers[start:end], number))
    return place if place < end and partitions.numbers[place] == name.partition else None


def _entry(problem: Problem, assignment: Assignment, partition: int) -> PartitionAssignment:
    places = slice(assignment.offsets[partition], assignment.offsets[partition + 1])
    hosts, chosen = assignment.replicas[places], assignment.log_dirs[places].tolist()
    present = dict(zip(problem.partitions.list_of(partition).tolist(), _present_dirs(problem, partition), strict=True))
    paths = problem.log_dirs.paths if problem.log_dirs is not None else ()
    return PartitionAssignment(
        problem.partitions.name(partition),
        tuple(problem.brokers.ids[hosts].tolist()),
        tuple(
            ANY_LOG_DIR if directory in (NOWHERE, present.get(host)) else paths[directory]
            for host, directory in zip(hosts.tolist(), chosen, strict=True)
        ),
    )


def _present_dirs(problem: Problem, partition: int) -> list[int]:
    now = problem.partitions
    directories: list[int] = now.log_dirs[now.offsets[partition] : now.offsets[partition + 1]].tolist()
    return directories


def _directories(problem: Problem) -> dict[tuple[int, str], int]:
    dirs = problem.log_dirs
    if dirs is None:
        return {}
    ids = problem.brokers.ids[dirs.brokers].tolist()
    return {place: index for index, place in enumerate(zip(ids, dirs.paths, strict=True))}


def _unknown(plan: Plan, brokers: dict[int, int], dirs: dict[tuple[int, str], int]) -> Iterable[str]:
    for entry in plan.assignments:
        if not entry.replicas:
            yield f"{entry.topic_partition} would have no replica"
        for broker, path in zip(entry.replicas, entry.log_dirs, strict=True):
            if broker not in brokers:
                yield f"{entry.topic_partition}: there is no broker {broker}"
            elif path != ANY_LOG_DIR and (broker, path) not in dirs:
                yield f"{entry.topic_partition}: broker {broker} has no log directory {path}"


def _named_dirs(
    entry: PartitionAssignment, brokers: dict[int, int], dirs: dict[tuple[int, str], int]
) -> dict[int, int]:
    return {
        brokers[broker]: dirs[broker, path]
        for broker, path in zip(entry.replicas, entry.log_dirs, strict=True)
        if path != ANY_LOG_DIR
    }


def _joined(now: Partitions, lists: dict[int | None, list[int]], named: dict[int | None, dict[int, int]]) -> Assignment:
    hosts = Assignment.current(now).lists()
    dirs = Assignment(now.offsets, now.log_dirs, now.log_dirs).lists()
    for partition, wanted in lists.items():
        assert partition is not None, "unknown partitions were refused before"
        present = dict(zip(hosts[partition], dirs[partition], strict=True)) | named[partition]
        hosts[partition], dirs[partition] = wanted, [present.get(host, NOWHERE) for host in wanted]
    return Assignment(
        _flat([0, *accumulate(map(len, hosts))]),
        _flat(host for one in hosts for host in one),
        _flat(directory for one in dirs for directory in one),
    )


def _flat(values: Iterable[int]) -> IntArray:
    return np.fromiter(values, np.int32)
