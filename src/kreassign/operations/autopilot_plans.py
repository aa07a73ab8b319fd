"""Plan the repair of a finding by the narrowest task, and keep the plan on disk as long as it is right."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from kreassign.admin import AdminClient
from kreassign.autopilot.detectors import Look, astray, relief_bytes, use_of
from kreassign.autopilot.events import Name, PlanLoads, Planned
from kreassign.autopilot.gates import REDUNDANCY, flapping, stale_text
from kreassign.autopilot.memory import Memory
from kreassign.autopilot.observation import Observation
from kreassign.autopilot.policy import Kind, Policy
from kreassign.clock import Clock
from kreassign.errors import ClusterError, IllegalPlan, Infeasible, InputError, KreassignError, requires
from kreassign.executor.journal.folder import make_folder
from kreassign.model import TopicPartition
from kreassign.model.load import MEASURED_S
from kreassign.model.plan_facts import plan_id
from kreassign.model.text import counted, format_amount, rough_span
from kreassign.operations.plan import PlanRequest, make_plan
from kreassign.operations.plan_files import PlanFile, read_plan_file, write_plan
from kreassign.operations.plan_inputs import Inputs, inputs_of_cluster
from kreassign.operations.plan_tasks import (
    AddBrokers,
    BalanceLogDirs,
    DemoteBrokers,
    DrainBrokers,
    Rebalance,
    Relieve,
    Repair,
    Task,
)
from kreassign.planner.problem.policy import PlanPolicy
from kreassign.planner.results import Outcome


def _disk_tasks(name: Name, look: Look) -> tuple[Task, ...]:
    """Other directories of the broker where one has room for it, then other brokers."""
    path = name.subject.partition(":")[2]
    relieve = Relieve(name.broker, path, relief_bytes(look, name.broker, path))
    open_dirs = ((broker, [one for one in dirs if not one.is_cordoned]) for broker, dirs in look.now.directories())
    uses = {broker: [use_of(broker, one) for one in dirs] for broker, dirs in open_dirs}
    beside = [one for one in uses.get(name.broker, []) if one is not None and one.path != path]
    is_roomy = any(one.used_bytes + relieve.leaving_bytes < ROOMY * one.total_bytes for one in beside)
    return (BalanceLogDirs(brokers=(name.broker,)), relieve) if is_roomy else (relieve,)


def _lost_on(name: Name) -> Task:
    return Repair(racks=False, replication_factors=False, lost_on=(name.broker,))


ROOMY = 0.7
"""Used share up to which a directory takes what another one of its broker has too much."""

TASKS: Mapping[Kind, Callable[[Name, Look], tuple[Task, ...]]] = MappingProxyType({
    Kind.BROKER_GONE: lambda name, _: (DrainBrokers((name.broker,)),),
    Kind.DISK_FILLS: _disk_tasks,
    Kind.DIRECTORY_FAILED: lambda name, _: (_lost_on(name),),
    Kind.PLACEMENT: lambda _, __: (Repair(),),
    Kind.NEW_BROKER: lambda name, _: (AddBrokers((name.broker,)),),
    Kind.SLOW_BROKER: lambda name, _: (DemoteBrokers((name.broker,)),),
    Kind.BAND_LEFT: lambda _, __: (Rebalance(),),
})  # fmt: skip
"""Tasks that repair a finding, the narrowest first; the next one where that moves nothing."""
UNMEASURED = frozenset({Kind.BROKER_GONE, Kind.DIRECTORY_FAILED, Kind.PLACEMENT, Kind.SLOW_BROKER})
"""Kinds whose plans need no write rates: copies that are lost do not wait for loads."""


@dataclass(frozen=True, slots=True)
class Repairs:
    """A plan for a finding, or the partitions whose leaders are elected (`plan` is None)."""

    planned: Planned
    plan: PlanFile | None


Made = tuple[Outcome, PlanLoads | None]


def avoided(memory: Memory, name: Name, now: Observation) -> tuple[int, ...]:
    """Brokers that the repair of a finding copies nothing to: people emptied them, they are slow, or come and go."""
    slow = {one.name.broker for one in memory.open if one.name.kind is Kind.SLOW_BROKER}
    found = now.live.intersection({*memory.drained, *slow, *flapping(memory, now.at_ms)})
    return tuple(sorted(one for one in found if f"broker {one}" != name.subject))


def plan_repair(client: AdminClient, name: Name, look: Look, clock: Clock, avoid: tuple[int, ...] = ()) -> Repairs:
    """Plan the repair of a finding by the narrowest task, with nothing for the brokers to `avoid`.

    Raises InputError, Infeasible, IllegalPlan, ClusterError.
    """
    now, policy = look.now, look.policy
    if name.kind is Kind.LEADERS:
        wrong = tuple(sorted(one.topic_partition for one in astray(now)))
        what = f"elect {counted(len(wrong), 'preferred leader')}, {policy.leaders.step} at a time; nothing is copied"
        return Repairs(Planned(now.at_ms, name, _digest(map(str, wrong)), 0, wrong, (what,)), None)

    def made(task: Task, without: Collection[str] = ()) -> Made:
        chosen = PlanPolicy(excluded_topics=tuple(map(re.escape, without)), excluded_brokers=avoid)
        inputs, loads = _inputs(client, name.kind, now, policy, clock, chosen)
        return make_plan(inputs, task, PlanRequest(rate_bytes_per_s=policy.runs.throttle)), loads

    tasks = TASKS[name.kind](name, look)
    try:
        outcome, loads = _first(tasks, made)
    except Infeasible:  # What is impossible for one topic keeps no other from its copies.
        crowded = _with_too_few_brokers(now, avoid)
        if not crowded or name.kind not in REDUNDANCY:
            raise
        outcome, loads = made(_lost_on(name), crowded)
        if not outcome.plan.replicas:
            raise
    if not outcome.plan.replicas:
        reasons = "; ".join(outcome.facts.remaining) or "no plan moves anything"
        raise InputError(f"there is nothing to move: {reasons}")
    planned = planned_of(name, now.at_ms, outcome)
    if loads is not None:
        planned = replace(planned, loads=loads, sentences=(*planned.sentences, loads_text(loads, policy, now.at_ms)))
    most = policy.budget.bytes_per_day
    if planned.copied_bytes > most:
        never = f"that is more than the {format_amount(most, 'B')} a day of the policy, so it never begins by itself"
        planned = replace(planned, sentences=(planned.sentences[0], never, *planned.sentences[1:]))
    return Repairs(planned, PlanFile(outcome.plan, outcome.facts.expected, outcome.facts))


def _first(tasks: Sequence[Task], made: Callable[[Task], Made]) -> Made:
    """Plan the first task that moves anything; the last one's plan or error where none does."""
    for task in tasks[:-1]:
        with suppress(Infeasible, IllegalPlan):
            found = made(task)
            if found[0].plan.replicas:
                return found
    return made(tasks[-1])


def _with_too_few_brokers(now: Observation, avoid: Collection[int]) -> list[str]:
    """Topics with more replicas than there are brokers that have one or may get one."""
    is_open = now.live - now.in_maintenance - now.cordoned() - frozenset(avoid)
    return sorted({
        one.topic_partition.topic
        for one in now.placed
        if len(one.replicas) > len(is_open | now.live.intersection(one.replicas))
    })  # fmt: skip


def _inputs(
    client: AdminClient, kind: Kind, now: Observation, policy: Policy, clock: Clock, chosen: PlanPolicy
) -> tuple[Inputs, PlanLoads | None]:
    """The cluster with the loads of the policy's tables where these are fresh, else with rates measured now."""
    loads = None
    if policy.loads.tables and kind not in UNMEASURED:
        try:
            inputs, loads = _of_tables(client, policy.loads.tables, chosen)
        except ClusterError:
            raise
        except (KreassignError, OSError) as error:
            loads = PlanLoads(None, 1.0, str(error))
        else:
            if stale_text(loads, policy, now.at_ms) is None:
                return inputs, loads
    measure_for_s = 0.0 if kind in UNMEASURED else MEASURED_S
    return inputs_of_cluster(client, chosen, measure_for_s=measure_for_s, clock=clock, warn=_unheard), loads


def _of_tables(client: AdminClient, data: str, chosen: PlanPolicy) -> tuple[Inputs, PlanLoads]:
    with requires("loads of tables", "pyarrow", "tables"):
        from kreassign.operations.table_inputs import inputs_of_present

    inputs = inputs_of_present(client, data, chosen, warn=_unheard)
    basis = inputs.loads
    return inputs, PlanLoads(basis.measured_ms, basis.doubtful_count / max(1, basis.partitions))


def loads_text(loads: PlanLoads, policy: Policy, at_ms: int) -> str:
    """The loads that a plan rests on, with their age, or the reason why it rests on rates measured in that moment."""
    if stale := stale_text(loads, policy, at_ms):
        return f"{stale}: planned by rates measured in that moment"
    assert loads.measured_ms is not None, "only what was read is fresh"
    age = rough_span((at_ms - loads.measured_ms) / 1000)
    return f"planned by loads of {policy.loads.tables}, measured until {age} ago, {loads.doubtful_share:.0%} doubtful"


def planned_of(name: Name, at_ms: int, outcome: Outcome) -> Planned:
    """The plan of a repair, as it is remembered."""
    copied, prediction = outcome.evaluation.moved_bytes, outcome.facts.prediction
    moves = tuple(sorted(outcome.plan.replicas))
    seconds = None if prediction is None or not math.isfinite(prediction.seconds) else float(prediction.seconds)
    hours = "" if seconds is None else f", in about {seconds / 3600:.1f} h"
    what = f"{outcome.facts.task}: {counted(len(moves), 'partition')}, {format_amount(copied, 'B')} to copy{hours}"
    return Planned(at_ms, name, plan_id(outcome.plan), copied, moves, (what, *outcome.facts.remaining[:3]), seconds)


# Keep a proposal: loads change from look to look, and with them the best plan; the first one stays as long as it fits.


def kept(path: Path, before: Planned | None, fresh: Repairs, now: Observation, avoid: Collection[int]) -> Repairs:
    """Return the proposal at this path as planned now if it fits still, else the fresh plan, which is written there.

    It fits while its partitions are where it found them, its destinations are open, and the fresh plan repairs the
    same: the same replicas, or for the sake of balance between half and twice as many bytes.
    """
    if fresh.plan is None:
        return fresh
    file = read_plan_file(path) if before is not None and path.exists() else None
    if before is not None and file is not None and plan_id(file.plan) == before.plan_id and _fits(file, now, avoid):
        is_same = (
            _left(file) == _left(fresh.plan)
            if before.name.kind in UNMEASURED
            else before.copied_bytes <= 2 * fresh.planned.copied_bytes <= 4 * before.copied_bytes
        )
        if is_same:
            return Repairs(_as_of_now(before, fresh.planned), file)
    make_folder(path.parent)
    write_plan(path, fresh.plan.plan, fresh.plan.facts)
    return fresh


def _as_of_now(before: Planned, fresh: Planned) -> Planned:
    """The proposal that stays, with the loads of now, which its last sentence is about."""
    both = before.loads is not None and fresh.loads is not None
    sentences = (*before.sentences[:-1], fresh.sentences[-1]) if both else before.sentences
    return replace(before, at_ms=fresh.at_ms, loads=fresh.loads, sentences=sentences)


def _fits(file: PlanFile, now: Observation, avoid: Collection[int]) -> bool:
    lists = {one.topic_partition: one.replicas for one in now.placed}
    is_open = now.live - now.in_maintenance - now.cordoned() - frozenset(avoid)
    return all(
        lists.get(name) == file.expected.get(name) and is_open.issuperset(set(replicas) - set(lists[name]))
        for name, replicas in file.plan.replicas.items()
    )


def _left(file: PlanFile) -> Mapping[TopicPartition, frozenset[int]]:
    """Brokers that each partition leaves."""
    return {name: frozenset(file.expected[name]) - set(replicas) for name, replicas in file.plan.replicas.items()}


def _digest(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()[:16]


def _unheard(warning: str) -> None:
    """Discard warnings about what was not read: looks name it."""
    del warning
