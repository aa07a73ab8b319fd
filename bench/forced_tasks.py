"""Small random clusters with a task that forces changes, and the laws of the least change, judged from lists alone.

Without `--and-balance` a replica that may stay stays, in its place of the list and in its directory; the leader changes
only where it leaves or may not lead; and the bytes that are copied are those of the bound. Where a limit demands more,
the plan says so for each byte.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random

import numpy as np

from kreassign.errors import Infeasible
from kreassign.model import TopicPartition
from kreassign.planner import BrokerFacts, LogDirFacts, PartitionFacts, Problem, problem_of
from kreassign.planner.arrays import NOWHERE
from kreassign.planner.check.cost import bytes_bound
from kreassign.planner.check.evaluate import evaluate
from kreassign.planner.problem.holds import Hold
from kreassign.planner.problem.problem import Assignment
from kreassign.planner.results import Origin, outcome_of
from kreassign.planner.search.subproblems import attempt, solve_in_subproblems
from kreassign.planner.tasks import (
    change_factors,
    drain_brokers,
    drain_log_dirs,
    ignore_dead_brokers,
    only_forced,
    repair,
)

GIGABYTE = 1_000_000_000
KINDS = ("drain", "factor", "repair", "drain dirs", "drain dirs of brokers", "drain and factor")
SAME_FOR_ALL = ("disk", "net-in", "replicas")
"""Resources of which leaders and followers take as much."""
LIMITED = (*SAME_FOR_ALL, "net-out", "cpu")


@dataclass(frozen=True, slots=True)
class Verdict:
    """Result for one cluster: its task, empty where no plan keeps the rules, and faults of the plans.

    `more` is the resource whose limits demanded more copies, `refused` that no plan keeps within them.
    """

    task: str
    wrong: tuple[str, ...] = ()
    more: str = ""
    refused: bool = False


def random_task(seed: int) -> tuple[str, Problem]:
    """A small cluster without limits and a task that forces changes."""
    random = Random(seed)
    count, racks = random.randint(4, 9), random.choice((0, 1, 2, 3, 4))
    paths = ("/a", "/b", "/c")[: random.randint(1, 3)]
    sets = random.random() < 0.2 and count >= 8
    odd = random.random() < 0.4
    hosts = [_broker(random, broker, racks, paths, has_set=sets, is_odd=odd) for broker in range(count)]
    loads = [_partition(random, number, count, paths, sets=sets, odd=odd) for number in range(random.randint(1, 24))]
    problem = problem_of(hosts, loads)
    live = [host.id for host in hosts if host.is_live]
    task = random.choice(KINDS)
    if task in {"drain", "drain and factor"}:
        problem = drain_brokers(problem, random.sample(range(count), random.randint(1, max(1, len(live) - 3))))
    if task.endswith("factor"):
        chosen = problem.brokers.staying.sum()
        problem = change_factors(problem, random.randint(1, min(4, int(chosen))))
    if task == "repair":
        return task, only_forced(repair(problem, racks=random.random() < 0.7, factors=random.random() < 0.5))
    if task.startswith("drain dirs") and len(paths) > 1:
        places = [(broker, random.choice(paths)) for broker in random.sample(live, random.randint(1, len(live)))]
        problem = drain_log_dirs(problem, places, between_brokers=task.endswith("brokers"))
    return task, ignore_dead_brokers(only_forced(problem))[0]


def _broker(
    random: Random, broker: int, racks: int, paths: tuple[str, ...], *, has_set: bool, is_odd: bool
) -> BrokerFacts:
    return BrokerFacts(
        broker,
        rack=f"r{broker % racks}" if racks else None,
        log_dirs=tuple(LogDirFacts(path, may_receive=random.random() > 0.1 or path == "/a") for path in paths),
        is_live=random.random() > 0.1 or broker < 3,
        may_receive=not is_odd or random.random() > 0.1,
        may_lead=not is_odd or random.random() > 0.15,
        broker_set=f"s{broker % 2}" if has_set else None,
    )


def _partition(
    random: Random, number: int, count: int, paths: tuple[str, ...], *, sets: bool, odd: bool
) -> PartitionFacts:
    own = range(number % 2, count, 2) if sets else range(count)
    replicas = tuple(random.sample(own, random.choice((1, 2, 2, 3))))
    size = random.choice((0, GIGABYTE, int(random.lognormvariate(0, 1) * GIGABYTE)))
    rate = random.uniform(0, 1e6)
    lost = (random.choice(replicas),) if random.random() < 0.05 and len(replicas) > 1 else ()
    return PartitionFacts(
        TopicPartition(f"t{number % 3}", number), replicas, size, rate, rate * 2, rate, rate / 3,
        tuple(random.choice(paths) for _ in replicas), lost_on=lost, broker_set=f"s{number % 2}" if sets else None,
        hold=Hold.STAYS if odd and random.random() <= 0.05 else Hold.NONE,
    )  # fmt: skip


def broken_laws(problem: Problem, found: Assignment) -> list[str]:
    """Differences from the least change, computed from the lists alone."""
    least = copied = free = 0
    wrong: list[str] = []
    after = found.lists()
    for index in range(len(problem.partitions)):
        partition = _Partition(problem, index, after[index])
        wrong += partition.wrong()
        least += partition.least_bytes
        copied += partition.copied_bytes
        free += partition.size * len(partition.free)
        wrong += _wrong_dirs(problem, found, index)
    if not least <= copied <= least + free:
        wrong.append(f"{copied} bytes are copied, {least} suffice")
    if bytes_bound(problem).total != least:
        wrong.append(f"the bound is {bytes_bound(problem).total}, not {least}")
    return wrong


class _Partition:
    """One partition before and after: which of its replicas may stay, and what is wrong with what became of them."""

    def __init__(self, problem: Problem, index: int, after: list[int]) -> None:
        now, self.hosts = problem.partitions, problem.brokers
        self.before, self.after = now.list_of(index).tolist(), after
        self.wanted, self.size = int(now.wanted_factors[index]), int(now.size_bytes[index])
        lost = now.is_lost[int(now.offsets[index]) : int(now.offsets[index + 1])].tolist()
        places = list(zip(self.before, lost, strict=True))
        self.is_out_of_reach = not any(self.hosts.is_live[one] and not gone for one, gone in places)
        self.leader_lags = lost[0] or not self.hosts.is_live[self.before[0]]
        self.is_fixed = not now.may_move[index]
        usable = [one for one, gone in places if self.hosts.staying[one] and not gone]
        self._drained = _drained_on(problem, index) if problem.rules.between_brokers else set()
        racks = problem.rack_of_broker
        limit, full = (int(limits[index]) for limits in problem.rack_limits)
        in_rack: dict[int, int] = {}
        self.stays = []
        for one in usable:
            rack = int(racks[one])
            in_rack[rack] = in_rack.get(rack, 0) + 1
            full -= in_rack[rack] == limit
            is_beyond = in_rack[rack] > limit or (in_rack[rack] == limit and full < 0)
            if self.is_fixed or not (is_beyond and problem.rules.repair_racks):
                self.stays.append(one)

    @property
    def free(self) -> list[int]:
        """Replicas that may stay though they must leave their directory: they may leave their broker as well."""
        return [one for one in self.stays if one in self._drained]

    @property
    def is_still(self) -> bool:
        return self.is_out_of_reach or self.is_fixed

    @property
    def least_bytes(self) -> int:
        return 0 if self.is_still else self.size * max(0, self.wanted - len(self.stays))

    @property
    def copied_bytes(self) -> int:
        return self.size * len(set(self.after) - set(self.before))

    def wrong(self) -> Iterator[str]:
        change = f"{self.before} -> {self.after}"
        if self.is_still:
            if self.after != self.before:
                yield f"{change}: {'nothing can be copied' if self.is_out_of_reach else 'it may not move'}"
            return
        kept = [one for one in self.after if one in self.before]
        most = min(self.wanted, len(self.stays))
        gone = [one for one in self.stays if one not in kept and one not in self.free]
        if not most - len(self.free) <= len(kept) <= most or (gone and self.wanted >= len(self.before)):
            yield f"{change}: {self.stays} could stay"
        leader, heir = self.before[0], self.after[0]
        may_lead = self.hosts.may_lead
        if leader in self.stays and leader not in self.free and may_lead[leader] and heir != leader:
            yield f"{change}: the leader changes"
        took_over, new = heir != leader and heir in self.before, set(self.after) - set(self.before)
        # Where the factor falls, a leader that lags is what goes, and its place with it.
        must_go = leader not in self.stays and not (self.leader_lags and self.wanted < len(self.before))
        if took_over and must_go and not self.free and any(may_lead[one] for one in new):
            yield f"{change}: a follower leads, and a new replica could"
        others = [one for one in kept if heir == leader or one not in (leader, heir)]
        places = [(self.before.index(one), self.after.index(one)) for one in others]
        is_settled = heir == leader or not (took_over or leader in self.after)
        if self.wanted >= len(self.before) and is_settled and any(old != now for old, now in places):
            yield f"{change}: places change"
        if places != sorted(places):
            yield f"{change}: the order changes"


def _drained_on(problem: Problem, index: int) -> set[int]:
    """Brokers on which the replica of a partition is in a directory that is to be drained."""
    dirs, now = problem.log_dirs, problem.partitions
    own = slice(int(now.offsets[index]), int(now.offsets[index + 1]))
    pairs = zip(now.replicas[own].tolist(), now.log_dirs[own].tolist(), strict=True)
    return {one for one, path in pairs if dirs is not None and path != NOWHERE and dirs.must_empty[path]}


def _wrong_dirs(problem: Problem, found: Assignment, index: int) -> Iterator[str]:
    """A kept replica stays in its directory unless that is drained; nothing arrives where nothing may."""
    dirs, now = problem.log_dirs, problem.partitions
    if dirs is None:
        return
    begin = int(now.offsets[index])
    before = dict(
        zip(now.list_of(index).tolist(), now.log_dirs[begin : int(now.offsets[index + 1])].tolist(), strict=True)
    )
    places = range(int(found.offsets[index]), int(found.offsets[index + 1]))
    for broker, chosen in ((int(found.replicas[place]), int(found.log_dirs[place])) for place in places):
        old = before.get(broker, NOWHERE)
        is_drained = old != NOWHERE and dirs.must_empty[old]
        if old != NOWHERE and not is_drained and chosen not in (NOWHERE, old):
            yield f"{now.name(index)} on {broker}: {dirs.paths[old]} -> {dirs.paths[chosen]} without need"
        if is_drained and chosen in (NOWHERE, old) and now.may_move[index]:
            yield f"{now.name(index)} on {broker} stays in {dirs.paths[old]}, which is to be drained"
        arrives = chosen not in (NOWHERE, old)
        if arrives and (dirs.brokers[chosen] != broker or dirs.must_empty[chosen] or not dirs.may_receive[chosen]):
            yield f"{now.name(index)} on {broker} arrives in {dirs.paths[chosen]}, which may receive nothing of it"


def with_limits(seed: int, problem: Problem) -> tuple[str, Problem]:
    """Variant in which brokers have little room of one resource for what they must take; with the resource."""
    random, now = Random(seed), problem.partitions
    # Where nothing may go from broker to broker, a limit of what leaders have could only be kept by other leaders.
    goal = random.choice(LIMITED if problem.rules.between_brokers else SAME_FOR_ALL)
    leading, following = _columns(problem, goal)
    first = np.zeros(len(now.replicas), bool)
    first[now.offsets[:-1]] = True
    held = np.bincount(now.replicas, np.where(first, leading[now.owners], following[now.owners]), len(problem.brokers))
    free = float((leading + following * (now.wanted_factors - 1)).sum()) / len(problem.brokers)
    limits = np.array([one + random.choice((0.0, 0.2, 0.5, 1.0, 2.0)) * free for one in held])
    return goal, replace(problem, brokers=replace(problem.brokers, capacity={goal: limits}))


def with_budget(seed: int, problem: Problem) -> Problem:
    """Plan with balance, too, and a budget that may be too small for what must change."""
    random = Random(seed * 7 + 1)
    kind = random.choice(("moves", "moved_bytes", "leader_changes"))
    amounts = {
        "moves": random.randint(1, 30),
        "moved_bytes": random.randint(1, 40) * GIGABYTE,
        "leader_changes": random.randint(0, 8),
    }
    rules = replace(problem.rules, only_forced=False)
    return replace(problem, rules=rules, budget=replace(problem.budget, **{kind: amounts[kind]}))


def _columns(problem: Problem, goal: str) -> tuple[np.ndarray, np.ndarray]:
    found = next(band.goal for band in problem.bands if band.goal.name == goal)
    return found.leader(problem.partitions), found.follower(problem.partitions)


def judged(problem: Problem, parts: int) -> tuple[Assignment, tuple[str, ...]]:
    """A plan, found in so many parts, and what the independent check says against it."""
    found = solve_in_subproblems(problem, parts, 1, lambda problems: [attempt(one) for one in problems]).assignment
    return found, evaluate(problem, found).violations


def verdict(seed: int) -> Verdict:
    """Plan for one cluster, whole or in parts: as small as can be, and where limits demand more, this is said."""
    task, problem = random_task(seed)
    try:
        found, violations = judged(problem, 1 + seed % 3)
        wrong = (*violations, *broken_laws(problem, found))
    except Infeasible:
        return Verdict("")
    goal, limited = with_limits(seed, problem)
    try:
        found, violations = judged(limited, 1 + seed % 2)
    except Infeasible:
        return Verdict(task, wrong, refused=True)
    if violations:
        return Verdict(task, (*wrong, *violations))
    facts = outcome_of(limited, found, Origin(task)).facts
    beyond = facts.totals.moved_bytes - facts.totals.least_bytes
    told = [fact.size_bytes for fact in facts.partitions for reason in fact.reasons if reason.limit == goal]
    # Of what must leave its directory anyway nobody says why it leaves its broker too.
    if not task.endswith("of brokers") and sum(told) != beyond:
        wrong = (*wrong, f"{goal}: {beyond} bytes more are copied, of {sum(told)} it is said why")
    return Verdict(task, wrong, goal if beyond else "")
