"""A look of the autopilot at its cluster, the plan of each kind of repair, and the reasons that a look gives."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from kreassign.admin import AdminClient
from kreassign.autopilot.core import (
    symptoms,
    tick,
)
from kreassign.autopilot.detectors import Look, astray, use_of
from kreassign.autopilot.gates import GATES, WEEK_MS, Case, closed_gates, spent_bytes, stopped
from kreassign.autopilot.lifecycle import (
    Memory,
    Name,
    Planned,
    State,
)
from kreassign.autopilot.observation import Absent, Asked, Brake, Known, Observation, Perhaps, Unknown
from kreassign.autopilot.policy import Kind, Policy, parse_policy
from kreassign.clock import SYSTEM_CLOCK, Clock
from kreassign.errors import ClusterError, InputError
from kreassign.executor.cluster.requests import read_throttles
from kreassign.executor.lease import present_holder
from kreassign.executor.maintenance import brokers_in_maintenance
from kreassign.executor.state import RunView
from kreassign.model import Broker, ConfigResource, LogDir
from kreassign.model.authorization import error_text
from kreassign.model.distributions import UNKNOWN, balancers, recognise
from kreassign.model.load import MEASURED_S
from kreassign.model.text import DAY_MS, counted, format_amount
from kreassign.monitoring.metrics import AutopilotStatus
from kreassign.operations.plan import PlanRequest, make_plan
from kreassign.operations.plan_files import PlanFile
from kreassign.operations.plan_inputs import inputs_of_cluster
from kreassign.operations.plan_tasks import (
    AddBrokers,
    BalanceLogDirs,
    DemoteBrokers,
    DrainBrokers,
    Rebalance,
    Repair,
    Task,
)
from kreassign.operations.snapshot import described_cluster
from kreassign.operations.text_files import read_text
from kreassign.planner.problem.policy import PlanPolicy
from kreassign.planner.results import Outcome

BRAKE = "kreassign-autopilot-off"
"""Broker setting that stops the autopilot, whatever its value: brokers show the values of strange settings to nobody.

`kafka-configs --alter --entity-type brokers --entity-default --add-config kreassign-autopilot-off=true` pulls it.
"""


def read_policy(path: Path) -> Policy:
    """Read a policy file. Raises InputError, which names file, key, value and what is allowed."""
    return parse_policy(read_text(path), str(path))


# Observe.


def observe(client: AdminClient, at_ms: int, ours: RunView | None = None) -> Observation:
    """Read the cluster; whatever does not answer is unknown in the result. `ours` is the run of the autopilot."""
    cluster = _asked(lambda: described_cluster(client))
    brokers: Asked[tuple[Broker, ...]] = Known(cluster.value.brokers) if isinstance(cluster, Known) else cluster
    live = sorted(one.id for one in brokers.value if not one.is_fenced) if isinstance(brokers, Known) else []
    topics = _asked(client.describe_topics)
    partitions = (
        Known(tuple(each for one in topics.value.ok.values() for each in one.partitions))
        if isinstance(topics, Known)
        else topics
    )
    of_ours = frozenset(() if ours is None else ours.records)
    moving = _asked(client.list_partition_reassignments)
    others = Known(frozenset(moving.value) - of_ours) if isinstance(moving, Known) else moving
    log_dirs = _log_dirs(client, live)
    paths = {one.path for asked in log_dirs.values() if isinstance(asked, Known) for one in asked.value}
    names = {*topics.value.ok, *topics.value.failed} if isinstance(topics, Known) else set()
    distribution = recognise(cluster.value, paths, names) if isinstance(cluster, Known) else UNKNOWN
    return Observation(
        at_ms,
        cluster.value.cluster_id if isinstance(cluster, Known) else "",
        brokers,
        partitions,
        log_dirs,
        others,
        Known(()) if ours is not None else _throttles(client, live),
        _asked(lambda: brokers_in_maintenance(client)),
        Absent() if ours is not None else _lease(client),
        _brake(client),
        of_ours,
        {name: error_text(error) for name, error in topics.value.failed.items()} if isinstance(topics, Known) else {},
        balancers=balancers(distribution, names),
    )


def _asked(ask: Callable[[], Any]) -> Any:
    try:
        return Known(ask())
    except ClusterError as error:
        return Unknown(error_text(error))


def _log_dirs(client: AdminClient, live: list[int]) -> Mapping[int, Asked[tuple[LogDir, ...]]]:
    answer = _asked(lambda: client.describe_log_dirs(live)) if live else Unknown("no broker is live")
    if isinstance(answer, Unknown):
        return dict.fromkeys(live, answer)
    failed = {broker: Unknown(error_text(error)) for broker, error in answer.value.failed.items()}
    return {**{broker: Known(dirs) for broker, dirs in answer.value.ok.items()}, **failed}


def _throttles(client: AdminClient, live: list[int]) -> Asked[tuple[str, ...]]:
    answer = _asked(lambda: read_throttles(client, (), live))
    if isinstance(answer, Unknown):
        return answer
    for resource, error in answer.value.unknown.items():
        return Unknown(f"{resource}: {error_text(error)}")
    return Known(tuple(str(one) for values in answer.value.known.values() for one in values if one.value is not None))


def _lease(client: AdminClient) -> Perhaps[str]:
    holder = _asked(lambda: present_holder(client))
    if isinstance(holder, Unknown):
        return holder
    return Absent() if holder.value is None else Known(str(holder.value))


def _brake(client: AdminClient) -> Perhaps[Brake]:
    place = ConfigResource.all_brokers()
    answer = _asked(lambda: client.describe_configs([place], names=[BRAKE]).raise_if_any())
    if isinstance(answer, Unknown):
        return answer
    is_pulled = BRAKE in answer.value[place]
    text = f"{BRAKE} is set for all brokers; `kafka-configs --alter --delete-config {BRAKE}` releases it"
    return Known(Brake(text)) if is_pulled else Absent()


# Plan: the narrowest task for each kind.


def _number(name: Name) -> int:
    return int(name.subject.removeprefix("broker ").partition(":")[0])


def _disk_task(name: Name, now: Observation) -> Task:
    """Other directories of the broker where one has room, else other brokers."""
    path = name.subject.partition(":")[2]
    uses = {broker: [use_of(broker, one) for one in dirs] for broker, dirs in now.directories()}
    beside = [one for one in uses.get(_number(name), []) if one is not None and one.path != path]
    is_roomy = any(one.used_bytes / one.total_bytes < ROOMY for one in beside)
    return BalanceLogDirs() if is_roomy else Rebalance()


ROOMY = 0.7
"""Used share of a directory that can take what another one of its broker has too much."""

TASKS: Mapping[Kind, Callable[[Name, Observation], Task]] = MappingProxyType({
    Kind.BROKER_GONE: lambda name, _: DrainBrokers((_number(name),)),
    Kind.DISK_FILLS: _disk_task,
    Kind.DIRECTORY_FAILED: lambda _, __: Repair(racks=False, replication_factors=False),
    Kind.PLACEMENT: lambda _, __: Repair(),
    Kind.NEW_BROKER: lambda name, _: AddBrokers((_number(name),)),
    Kind.SLOW_BROKER: lambda name, _: DemoteBrokers((_number(name),)),
    Kind.BAND_LEFT: lambda _, __: Rebalance(),
})  # fmt: skip
UNMEASURED = frozenset({Kind.BROKER_GONE, Kind.DIRECTORY_FAILED, Kind.PLACEMENT, Kind.SLOW_BROKER})
"""Kinds whose plans need no write rates: copies that are lost do not wait for loads."""


@dataclass(frozen=True, slots=True)
class Repairs:
    """A plan for a finding, or the partitions whose leaders are elected (`plan` is None)."""

    planned: Planned
    plan: PlanFile | None


def avoided(memory: Memory, name: Name, now: Observation) -> tuple[int, ...]:
    """Brokers that the repair of a finding copies nothing to: people emptied them, or they are slow themselves."""
    slow = {_number(one.name) for one in memory.open if one.name.kind is Kind.SLOW_BROKER}
    found = now.live.intersection({*memory.drained, *slow})
    return tuple(sorted(one for one in found if f"broker {one}" != name.subject))


def plan_repair(
    client: AdminClient, name: Name, now: Observation, policy: Policy, clock: Clock, avoid: tuple[int, ...] = ()
) -> Repairs:
    """Plan the repair of a finding by the narrowest task, with nothing for the brokers to `avoid`.

    Raises InputError, Infeasible, IllegalPlan, ClusterError.
    """
    if name.kind is Kind.LEADERS:
        wrong = tuple(sorted(one.topic_partition for one in astray(now)))
        what = f"elect {counted(len(wrong), 'preferred leader')}, {policy.leaders.step} at a time; nothing is copied"
        return Repairs(Planned(now.at_ms, name, _digest(map(str, wrong)), 0, wrong, (what,)), None)
    measure_for_s = 0.0 if name.kind in UNMEASURED else MEASURED_S
    chosen = PlanPolicy(excluded_brokers=avoid)
    inputs = inputs_of_cluster(client, chosen, measure_for_s=measure_for_s, clock=clock, warn=_unheard)
    outcome = make_plan(inputs, TASKS[name.kind](name, now), PlanRequest(rate_bytes_per_s=policy.runs.throttle))
    if not outcome.plan.replicas:
        reasons = "; ".join(outcome.facts.remaining) or "no plan moves anything"
        raise InputError(f"there is nothing to move: {reasons}")
    return Repairs(planned_of(name, now.at_ms, outcome), PlanFile(outcome.plan, outcome.facts.expected, outcome.facts))


def planned_of(name: Name, at_ms: int, outcome: Outcome) -> Planned:
    """The plan of a repair, as it is remembered."""
    copied, prediction = outcome.evaluation.moved_bytes, outcome.facts.prediction
    moves = tuple(sorted(outcome.plan.replicas))
    hours = "" if prediction is None else f", in about {prediction.seconds / 3600:.1f} h"
    what = f"{outcome.facts.task}: {counted(len(moves), 'partition')}, {format_amount(copied, 'B')} to copy{hours}"
    # Destinations differ from look to look with the loads; what is repaired must be the same.
    before = outcome.current.replicas
    left = (f"{one} {sorted(set(before[one]) - set(outcome.plan.replicas[one]))}" for one in moves)
    return Planned(at_ms, name, _digest(left), copied, moves, (what, *outcome.facts.remaining[:3]))


def _digest(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()[:16]


def _unheard(warning: str) -> None:
    """Discard warnings about what was not read: looks name it."""
    del warning


@dataclass(frozen=True, slots=True)
class Reasons:
    """A finding, with each gate: None if it is open, else what keeps it closed."""

    name: Name
    state: State
    seen: str
    gates: Mapping[str, str | None]


def status_of(now: Observation, memory: Memory, policy: Policy) -> AutopilotStatus:
    """The status after a look, as metrics have it."""
    shown = symptoms(Look(now, memory, policy))
    proposed = (one for one in memory.open if one.state is State.PROPOSED and one.name in shown)
    blocked = (gate for one in proposed for gate in closed_gates(Case(one, shown[one.name], now, memory, policy)))
    return AutopilotStatus(
        memory.cluster_id,
        now.at_ms,
        tuple((one.name.kind.value, one.state.value) for one in memory.open),
        tuple((one.name.kind.value, one.outcome or "running") for one in memory.acts),
        spent_bytes(memory, now.at_ms, DAY_MS),
        spent_bytes(memory, now.at_ms, WEEK_MS),
        tuple(blocked),
        stopped(now, memory) is not None,
    )


def why(client: AdminClient, policy: Policy, memory: Memory, clock: Clock = SYSTEM_CLOCK) -> Iterator[Reasons]:
    """Each open finding with all gates, by a look of now; changes and writes nothing."""
    now = observe(client, clock.now_ms())
    decision = tick(memory, now, policy)
    shown = symptoms(Look(now, decision.memory, policy))
    for finding in decision.memory.open:
        symptom = shown.get(finding.name)
        if symptom is None:
            yield Reasons(finding.name, finding.state, finding.seen, {"evidence": "it is not seen now"})
            continue
        case = Case(finding, symptom, now, decision.memory, policy)
        yield Reasons(finding.name, finding.state, symptom.seen, {name: gate(case) for name, gate in GATES.items()})
