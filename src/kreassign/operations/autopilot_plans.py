"""Plan the repair of a finding by the narrowest task, and keep the plan on disk as long as it is right."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from kreassign import errors
from kreassign.admin import AdminClient
from kreassign.autopilot.detectors import DETECTORS, astray, flapping, price_of, relief_bytes
from kreassign.autopilot.events import Name, PlanLoads, Planned
from kreassign.autopilot.gates import most_bytes_per_day, overspent, resting, spared, stale_text, together
from kreassign.autopilot.growth import use_of
from kreassign.autopilot.memory import MOST_REPLACED, Memory
from kreassign.autopilot.observation import Observation
from kreassign.autopilot.policy import Kind, Policy
from kreassign.autopilot.slow_brokers import slow_brokers
from kreassign.autopilot.symptoms import Look
from kreassign.clock import Clock
from kreassign.executor.journal.folder import make_folder
from kreassign.executor.scheduling.windows import REACHED, longest_s
from kreassign.model import TopicPartition
from kreassign.model.load import MEASURED_S
from kreassign.model.plan_facts import plan_id
from kreassign.model.text import counted, format_amount, format_seconds, rough_span, some_of
from kreassign.operations import plan_tasks
from kreassign.operations.connect import tell_nobody
from kreassign.operations.plan import PlanRequest, make_plan
from kreassign.operations.plan_files import PlanFile, read_plan_file, write_plan
from kreassign.operations.plan_inputs import Inputs, inputs_of_cluster
from kreassign.planner.problem.policy import PlanPolicy
from kreassign.planner.results import Outcome

Also = tuple[int, ...]
"""Brokers of other findings that a plan repairs, too."""


def _disk_tasks(name: Name, look: Look, _: Also) -> tuple[plan_tasks.Task, ...]:
    """Other directories of the broker where one has room for it, then other brokers."""
    relieve = plan_tasks.Relieve(name.broker, name.path, relief_bytes(look, name))
    open_dirs = ((broker, [one for one in dirs if not one.is_cordoned]) for broker, dirs in look.now.directories())
    uses = {broker: [use_of(broker, one) for one in dirs] for broker, dirs in open_dirs}
    beside = [one for one in uses.get(name.broker, []) if one is not None and one.path != name.path]
    is_roomy = any(one.used_bytes + relieve.leaving_bytes < ROOMY * one.total_bytes for one in beside)
    return (plan_tasks.BalanceLogDirs(brokers=(name.broker,)), relieve) if is_roomy else (relieve,)


def _lost_on(name: Name, also: Also) -> plan_tasks.Repair:
    return plan_tasks.Repair(racks=False, replication_factors=False, lost_on=(name.broker, *also))


def _filling_tasks(name: Name, look: Look, also: Also) -> tuple[plan_tasks.Task, ...]:
    """Without partitions that were moved lately, else with them."""
    whole = plan_tasks.AddBrokers((name.broker, *also))
    return (replace(whole, without=tired), whole) if (tired := spared(look)) else (whole,)


ROOMY = 0.7
"""Used share up to which a directory takes what another one of its broker has too much."""

TASKS: Mapping[Kind, Callable[[Name, Look, Also], tuple[plan_tasks.Task, ...]]] = MappingProxyType({
    Kind.BROKER_GONE: lambda name, _, also: (plan_tasks.DrainBrokers((name.broker, *also)), _lost_on(name, also)),
    Kind.DISK_FILLS: _disk_tasks,
    Kind.DIRECTORY_FAILED: lambda name, _, also: (_lost_on(name, also),),
    Kind.PLACEMENT: lambda _, look, __: (plan_tasks.Repair(without=resting(look, Kind.PLACEMENT)),),
    Kind.NEW_BROKER: _filling_tasks,
    Kind.SLOW_BROKER: lambda name, *_: (plan_tasks.DemoteBrokers((name.broker,)),),
    Kind.BAND_LEFT: lambda _, look, __: (plan_tasks.Rebalance(without=resting(look, Kind.BAND_LEFT)),),
})  # fmt: skip
"""Tasks that repair a finding, and those about the brokers `also`, the narrowest first; the next one where that is
impossible, or moves nothing."""
UNMEASURED = frozenset({Kind.BROKER_GONE, Kind.DIRECTORY_FAILED, Kind.PLACEMENT, Kind.SLOW_BROKER})
"""Kinds whose plans need no write rates: copies that are lost do not wait for loads."""


@dataclass(frozen=True, slots=True)
class Repairs:
    """A plan for a finding, or the partitions whose leaders are elected (`plan` is None).

    `topic_ids` are those of the whole cluster by which it was planned: topics that a plan leaves out may be new ones.
    """

    planned: Planned
    plan: PlanFile | None
    topic_ids: Mapping[str, str] = field(default_factory=dict)


SHOWN = 3
"""Most partitions that a sentence names."""


def avoided(memory: Memory, name: Name, now: Observation) -> tuple[int, ...]:
    """Brokers that the repair of a finding copies nothing to: people emptied them, they are slow, or come and go.

    So are empty ones that were gone too often to be filled again: people decide about them. Brokers that are down now
    may be back while the repair runs.
    """
    slow = {one.name.broker for one in slow_brokers(memory)}
    known = now.live | now.down
    empty = known - now.replica_counts.keys()
    often = {one for one in empty if memory.times_replaced(one, now.at_ms) > MOST_REPLACED}
    found = known.intersection({*memory.drained, *slow, *often, *flapping(memory, now.at_ms)})
    return tuple(sorted(one for one in found if f"broker {one}" != name.subject))


def plan_repair(
    client: AdminClient,
    name: Name,
    look: Look,
    clock: Clock,
    avoid: tuple[int, ...] = (),
    alive: Callable[[], None] = lambda: None,
) -> Repairs:
    """Plan the repair of a finding by the narrowest task, with nothing for the brokers to `avoid`.

    `alive` is called at each step of the planner, which takes minutes on a large cluster. Raises InputError,
    Infeasible, IllegalPlan, ClusterError.
    """
    now, policy = look.now, look.policy
    if name.kind is Kind.LEADERS:
        return election(name, look)
    chosen = PlanPolicy(excluded_brokers=tuple(sorted(now.live.intersection(avoid))))
    inputs, loads = _inputs(client, name.kind, now, policy, clock, chosen)
    repairs = plan_by(inputs, name, look, alive)
    if loads is None:
        return repairs
    text = loads_text(loads, policy, now.at_ms)
    return replace(repairs, planned=replace(repairs.planned, loads=loads, sentences=(*repairs.planned.sentences, text)))


def election(name: Name, look: Look) -> Repairs:
    """The partitions whose preferred leaders are to be elected; nothing is copied."""
    wrong = tuple(sorted(one.topic_partition for one in astray(look)))
    step = look.policy.leaders.step
    what = f"elect {counted(len(wrong), 'preferred leader')}, {step} at a time; nothing is copied"
    digest = hashlib.sha256("\n".join(sorted(map(str, wrong))).encode()).hexdigest()[:16]
    return Repairs(Planned(look.now.at_ms, name, digest, 0, wrong, (what,)), None)


def plan_by(inputs: Inputs, name: Name, look: Look, alive: Callable[[], None] = lambda: None) -> Repairs:
    """Plan a repair from these inputs, as `plan_repair` does. Raises InputError, Infeasible, IllegalPlan."""
    now, policy = look.now, look.policy

    def made(task: plan_tasks.Task) -> Outcome:
        with errors.unforeseen_named():
            return make_plan(inputs, task, PlanRequest(rate_bytes_per_s=policy.runs.throttle), lambda _: alive())

    def planned_with(also: Also) -> tuple[Outcome, plan_tasks.Task]:
        tasks = TASKS[name.kind](name, look, also)
        share_bytes = now.held_bytes / max(1, len(now.live))
        least = FILLED * share_bytes * (1 + len(also)) if name.kind is Kind.NEW_BROKER else 0.0
        return _first(tasks, made, least), tasks[-1]

    also = together(look, name)
    joint: tuple[Outcome, plan_tasks.Task] | None = None
    if also:
        with suppress(errors.InputError, errors.Infeasible):
            joint = planned_with(also)
        if joint is None or overspent(look, joint[0].evaluation.moved_bytes):
            also, joint = (), None
    outcome, repair = joint or planned_with(())
    left = _rest_text(name, look, frozenset(outcome.plan.replicas))
    if isinstance(repair, plan_tasks.Repair) and (long := _too_long(outcome, look, inputs)):
        taken = frozenset(outcome.plan.replicas) - long
        outcome = made(replace(repair, without=frozenset(one.topic_partition for one in now.placed) - taken))
        left = (*left, f"{some_of(sorted(long), SHOWN)}: no window is long enough for a copy at this throttle")
    if not outcome.plan.replicas:
        reasons = "; ".join((*left, *outcome.facts.remaining)) or "no plan moves anything"
        raise errors.InputError(f"there is nothing to move: {reasons}")
    planned = planned_of(name, now.at_ms, outcome, (*_price_text(name, look, also), *left), also)
    file = PlanFile(outcome.plan, outcome.facts.expected, outcome.facts)
    return Repairs(_within_budget(planned, look), file, inputs.topic_ids)


def _shown(name: Name, look: Look) -> frozenset[TopicPartition] | None:
    """Partitions that show a finding; None where it is about an amount."""
    shown = [one.partitions for one in DETECTORS[name.kind].find(look) if one.subject == name.subject]
    names = [one for one in shown if one is not None]
    return None if shown and not names else frozenset[TopicPartition]().union(*names)


def _price_text(name: Name, look: Look, also: Also) -> tuple[str, ...]:
    """A sentence on what waiting for each dead broker costs, beside the cost of copying; nothing for other findings."""
    if name.kind is not Kind.BROKER_GONE:
        return ()
    prices = ((one, price_of(look, one, look.memory.away.get(one, look.now.at_ms))) for one in (name.broker, *also))
    return tuple(f"{f'of broker {one}, ' * bool(also)}when it was planned: {price}" for one, price in prices)


def _rest_text(name: Name, look: Look, moves: frozenset[TopicPartition]) -> tuple[str, ...]:
    """A sentence on partitions of the finding that its plan leaves alone, since they were moved lately; or nothing."""
    there, shown = frozenset(one.topic_partition for one in look.now.placed), _shown(name, look)
    lately = spared(look) if name.kind is Kind.NEW_BROKER else resting(look, name.kind)
    tired = frozenset() if lately & moves else lately & (there if shown is None else shown)
    rest = format_seconds(look.policy.care.rest)
    return (f"left to rest, for they were moved within {rest}: {some_of(sorted(tired), SHOWN)}",) if tired else ()


FILLED = 0.5
"""Part of its share with which a new broker is filled well enough by partitions that were not moved lately."""


def _first(tasks: Sequence[plan_tasks.Task], made: Callable[[plan_tasks.Task], Outcome], least_bytes: float) -> Outcome:
    """Plan the first task that moves anything, and so many bytes; the last one's plan or error where none does."""
    for task in tasks[:-1]:
        with suppress(errors.Infeasible, errors.IllegalPlan):
            found = made(task)
            if found.plan.replicas and found.evaluation.moved_bytes >= least_bytes:
                return found
    return made(tasks[-1])


def _too_long(outcome: Outcome, look: Look, inputs: Inputs) -> frozenset[TopicPartition]:
    """Partitions of a plan of which no window to come is long enough for a copy."""
    runs, partitions = look.policy.runs, inputs.problem.partitions
    if runs.throttle is None or not runs.hours.are_limited:
        return frozenset()
    most_bytes = longest_s(runs.hours, look.now.at_ms) * runs.throttle * REACHED
    large = frozenset(partitions.name(one) for one, size in enumerate(partitions.size_bytes) if size > most_bytes)
    return large.intersection(outcome.plan.replicas)


def _inputs(
    client: AdminClient, kind: Kind, now: Observation, policy: Policy, clock: Clock, chosen: PlanPolicy
) -> tuple[Inputs, PlanLoads | None]:
    """The cluster with the loads of the policy's tables where these are fresh, else with rates measured now."""
    loads = None
    if policy.loads.tables and kind not in UNMEASURED:
        try:
            inputs, loads = _of_tables(client, policy.loads.tables, chosen)
        except errors.ClusterError:
            raise
        except (errors.KreassignError, OSError) as error:
            loads = PlanLoads(None, 1.0, str(error))
        else:
            if stale_text(loads, policy, now.at_ms) is None:
                return inputs, loads
    measure_for_s = 0.0 if kind in UNMEASURED else MEASURED_S
    return inputs_of_cluster(client, chosen, measure_for_s=measure_for_s, clock=clock, warn=tell_nobody), loads


def _of_tables(client: AdminClient, data: str, chosen: PlanPolicy) -> tuple[Inputs, PlanLoads]:
    with errors.requires("loads of tables", "pyarrow", "tables"):
        from kreassign.operations.table_inputs import inputs_of_present

    inputs = inputs_of_present(client, data, chosen, warn=tell_nobody)
    basis = inputs.loads
    return inputs, PlanLoads(basis.measured_ms, basis.doubtful_count / max(1, basis.partitions))


def loads_text(loads: PlanLoads, policy: Policy, at_ms: int) -> str:
    """The loads that a plan rests on, with their age, or the reason why it rests on rates measured in that moment."""
    if stale := stale_text(loads, policy, at_ms):
        return f"{stale}: planned by rates measured in that moment"
    assert loads.measured_ms is not None, "only what was read is fresh"
    age = rough_span((at_ms - loads.measured_ms) / 1000)
    return f"planned by loads of {policy.loads.tables}, measured until {age} ago, {loads.doubtful_share:.0%} doubtful"


def planned_of(name: Name, at_ms: int, outcome: Outcome, left: Sequence[str] = (), also: Also = ()) -> Planned:
    """The plan of a repair, as it is remembered, with what is `left` besides what the plan itself names."""
    copied, prediction = outcome.evaluation.moved_bytes, outcome.facts.prediction
    moves = tuple(sorted(outcome.plan.replicas))
    seconds = None if prediction is None or not math.isfinite(prediction.seconds) else float(prediction.seconds)
    what, remaining = _cost_text(outcome.facts.task, len(moves), copied, seconds), outcome.facts.remaining
    more = (f"its facts file says {len(remaining) - SHOWN} more of what it leaves",) if len(remaining) > SHOWN else ()
    sentences = (what, *left, *remaining[:SHOWN], *more)
    return Planned(at_ms, name, plan_id(outcome.plan), copied, moves, sentences, seconds, also=also)


def _cost_text(task: str, partitions: int, copied_bytes: int, seconds: float | None) -> str:
    hours = "" if seconds is None else f", in about {seconds / 3600:.1f} h"
    return f"{task}: {counted(partitions, 'partition')}, {format_amount(copied_bytes, 'B')} to copy{hours}"


NEVER = "so it never begins by itself"


def _within_budget(planned: Planned, look: Look) -> Planned:
    """The proposal, with a sentence after its cost where that is more than the policy wants copied a day."""
    what, *others = (one for one in planned.sentences if not one.endswith(NEVER))
    most = most_bytes_per_day(look.now, look.policy)
    never = f"that is more than the {format_amount(most, 'B')} a day of the policy, {NEVER}"
    return replace(planned, sentences=(what, *([never] if planned.copied_bytes > most else []), *others))


# Keep a proposal: loads change from look to look, and with them the best plan; the first one stays as long as it fits.


def kept(path: Path, before: Planned | None, fresh: Repairs, look: Look, avoid: Collection[int]) -> Repairs:
    """Return the proposal at this path as planned now if it fits still, else the fresh plan, which is written there.

    It fits while its topics are those that it was made for, its partitions are where it found them and may move, its
    destinations are open, and the fresh plan repairs the same: the same replicas, or for the sake of balance between
    half and twice as many bytes.
    """
    if fresh.plan is None:
        return fresh
    file = read_plan_file(path) if before is not None and path.exists() else None
    if (
        before is not None
        and file is not None
        and plan_id(file.plan) == before.plan_id
        and {*before.also} <= {*fresh.planned.also}
        and not any(file.origin.objections(file.plan, look.now.cluster_id, fresh.topic_ids))
        and _fits(file, before.name.kind, look, avoid)
    ):
        stays = _as_of_now(before, fresh.planned, file, look)
        is_same = (
            _left(file) == _left(fresh.plan)
            if before.name.kind in UNMEASURED
            else stays.copied_bytes <= 2 * fresh.planned.copied_bytes <= 4 * stays.copied_bytes
        )
        if is_same:
            return replace(fresh, planned=stays, plan=file)
    make_folder(path.parent)
    write_plan(path, fresh.plan.plan, fresh.plan.facts)
    return fresh


def _as_of_now(before: Planned, fresh: Planned, file: PlanFile, look: Look) -> Planned:
    """The proposal that stays, with the sizes of now, and the loads of now, which its last sentence is about."""
    both = before.loads is not None and fresh.loads is not None
    sentences = (*before.sentences[:-1], fresh.sentences[-1]) if both else before.sentences
    stays = replace(before, at_ms=fresh.at_ms, loads=fresh.loads, sentences=sentences)
    facts, sizes = file.facts, look.now.sizes
    if facts is None:
        return stays
    grown = sum(
        len(set(file.plan.replicas[one.topic_partition]) - set(one.replicas))
        * (sizes.get(one.topic_partition, one.size_bytes) - one.size_bytes)
        for one in facts.partitions
        if one.topic_partition in file.plan.replicas
    )
    copied = max(0, facts.totals.moved_bytes + grown)
    seconds = before.seconds and before.seconds * copied / max(1, before.copied_bytes)
    what = _cost_text(facts.task, len(before.moves), copied, seconds)
    costs = replace(stays, copied_bytes=copied, seconds=seconds, sentences=(what, *stays.sentences[1:]))
    return _within_budget(costs, look)


def _fits(file: PlanFile, kind: Kind, look: Look, avoid: Collection[int]) -> bool:
    now, tired = look.now, resting(look, kind)
    lists = {one.topic_partition: one.replicas for one in now.placed}
    is_open = now.live - now.in_maintenance - now.cordoned() - frozenset(avoid)
    return all(
        name not in tired
        and lists.get(name) == file.expected.get(name)
        and is_open.issuperset(set(replicas) - set(lists[name]))
        for name, replicas in file.plan.replicas.items()
    )


def _left(file: PlanFile) -> Mapping[TopicPartition, frozenset[int]]:
    """Brokers that each partition leaves."""
    return {name: frozenset(file.expected[name]) - set(replicas) for name, replicas in file.plan.replicas.items()}
