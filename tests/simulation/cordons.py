"""Plans around cordoned brokers by seed: every task on a twin of each release with cordons, with random lists.

Kafka 4.3 accepts lists that name a cordoned broker, 4.4 refuses them. On both no plan gives such a broker, or a
cordoned directory, a replica that was elsewhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from kreassign.errors import IllegalPlan, Infeasible, InputError
from kreassign.model import ConfigChange, ConfigResource, NewTopic, TopicPartition, TopicPartitionReplica
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.operations.plan import PlanRequest, make_plan, pareto
from kreassign.operations.plan_inputs import Inputs, inputs_of_cluster
from kreassign.operations.plan_tasks import (
    AddBrokers,
    BalanceLeaders,
    BalanceLogDirs,
    ChangeReplicationFactor,
    DemoteBrokers,
    DrainBrokers,
    DrainLogDirs,
    Rebalance,
    Repair,
    ReplaceBrokers,
    Restore,
    Task,
    WhatIf,
    place_partitions,
    place_topic,
)
from kreassign.planner import Budget
from kreassign.planner.problem.policy import PlanPolicy
from tests.campaigns.campaign import Caught, Result, Tally, fast_folder
from tests.executor.twin_runs import TwinRig
from tests.simulation.scene import asked_in_turn

RELEASES = ("4.3", "4.4")
BROKERS = range(6)
TASKS: tuple[Task, ...] = (
    Rebalance(),
    BalanceLeaders(),
    DemoteBrokers((1,)),
    DrainBrokers((2,)),
    DrainBrokers((1, 4), and_balance=True),
    ChangeReplicationFactor(3),
    ChangeReplicationFactor(1, and_balance=True),
    Repair(),
    BalanceLogDirs(between_brokers=True),
    DrainLogDirs(((3, "/data/3/d0"),), between_brokers=True),
    AddBrokers((5,)),
    ReplaceBrokers((1,), (5,)),
    ReplaceBrokers((0, 2), (3, 4)),
    WhatIf(traffic=2.0),
)
NO_MINIMUM = PlanRequest(allow_factor_change=True)
TIGHT = PlanRequest(budget=Budget(moves=2), allow_factor_change=True)
Lists = Mapping[TopicPartition, tuple[int, ...]]


class Planned(NamedTuple):
    """A plan, or None where the task has none here, with its task and the lists that it replaces."""

    task: str
    plan: Plan | None
    before: Lists


def rig_of(seed: int, release: str, folder: Path) -> tuple[TwinRig, frozenset[int]]:
    """A twin with random lists and cordons, and its brokers of which every directory is cordoned.

    With an odd seed another broker is down.
    """
    random = Random(seed)
    lists = [random.sample(BROKERS, random.choice((2, 2, 3))) for _ in range(9)]
    rig = TwinRig(folder, lists, brokers=len(BROKERS), release=release)
    closed = frozenset(random.sample(BROKERS, random.choice((1, 1, 2))))
    for broker in BROKERS:
        paths = [one.path for one in rig.client.describe_log_dirs([broker]).ok[broker]]
        if broker in closed:
            cordon(rig, broker, random.choice(("*", ",".join(paths))))
        elif len(paths) > 1 and random.random() < 0.3:
            cordon(rig, broker, random.choice(paths))
    if seed % 2:
        rig.twin.stop(random.choice([broker for broker in BROKERS if broker not in closed]))
        rig.transport.sleep(30)
    return rig, closed


def cordon(rig: TwinRig, broker: int, value: str | None) -> None:
    """Set the cordon of a broker, or (None) delete it."""
    key = "cordoned.log.dirs"
    change = ConfigChange.delete(key) if value is None else ConfigChange.set(key, value)
    rig.client.incremental_alter_configs({ConfigResource.broker(broker): [change]}).raise_if_any()


def inputs_of(rig: TwinRig) -> Inputs:
    """Inputs of a plan."""
    return inputs_of_cluster(rig.client, PlanPolicy(), measure_for_s=0.0, warn=lambda _: None)


def planned(inputs: Inputs, seed: int, closed: frozenset[int]) -> Iterator[Planned]:
    """The plan of each task; also those that drain the cordoned brokers, as a decommission does."""
    # A small budget beside `and_balance` may crowd a rack, with or without cordons.
    current = make_plan(inputs, BalanceLeaders(), NO_MINIMUM).current.replicas
    opened, leaving = [broker for broker in BROKERS if broker not in closed], tuple(sorted(closed))
    drains = (DrainBrokers(leaving), ReplaceBrokers(leaving, tuple(Random(seed).sample(opened, len(leaving)))))
    tasks = (*TASKS, *drains, _declared(seed, current, BROKERS), _declared(seed, current, opened))
    asked = [(one, NO_MINIMUM) for one in tasks]
    asked += [(one, TIGHT) for one in tasks if not getattr(one, "and_balance", False)]
    for task, request in asked:
        try:
            outcome = make_plan(inputs, task, request)
        except (Infeasible, InputError, IllegalPlan):
            yield Planned(task.name, None, {})
            continue
        yield Planned(task.name, outcome.plan, outcome.current.replicas)
    alternatives = pareto(inputs)
    for choice in alternatives.choices[:3]:
        outcome = alternatives.outcome(choice)
        yield Planned(choice.asked_for, outcome.plan, outcome.current.replicas)
    for placement in (place_topic(inputs, PlanPolicy(), "new", 4, 2), place_partitions(inputs, "t", 12)):
        yield Planned(placement.topic, placement.plan, {})


def _declared(seed: int, current: Lists, brokers: Sequence[int]) -> Restore:
    """A placement from a file: some lists are random ones of these brokers."""
    random = Random(seed)
    wanted = {name: (*random.sample(brokers, 2),) if random.random() < 0.3 else now for name, now in current.items()}
    return Restore(Plan(tuple(PartitionAssignment(name, one) for name, one in wanted.items())), "placement.json")


def play_plans(seed: int) -> Result:
    """Plan every task on a twin of each release with the lists and cordons of this seed."""
    broken: list[str] = []
    counts: Counter[str] = Counter()
    with fast_folder() as folder, asked_in_turn(), Caught(broken):
        for release in RELEASES:
            rig, closed = rig_of(seed, release, Path(folder) / release)
            broken += [f"{release}: {fault}" for fault in _faults(rig, seed, closed, counts)]
    return Result(seed, "broken" if broken else "kept", tuple(broken), counts={"figures": counts})


def _faults(rig: TwinRig, seed: int, closed: frozenset[int], counts: Counter[str]) -> Iterator[str]:
    wanted: list[tuple[str, tuple[int, ...]]] = []
    held, shut = _directories(rig)
    for task, plan, before in planned(inputs_of(rig), seed, closed):
        if plan is None:
            counts["tasks without a plan"] += 1
            continue
        counts["plans"] += 1
        for replica, path in plan.log_dirs.items():
            if (replica.broker, path) in shut and held.get(replica) != path:
                yield f"{task} puts {replica} into {path}, which is cordoned"
        for name, replicas in plan.replicas.items():
            was = before.get(name, ())
            if gained := closed & set(replicas).difference(was):
                yield f"{task} gives {name} to {sorted(gained)}, which are cordoned: {was} to {replicas}"
            if replicas != was:
                wanted.append((f"{task} of {name}", replicas))
                counts["changed lists"] += 1
                counts["changed lists of partitions on cordoned brokers"] += not closed.isdisjoint(was)
                counts["changed lists that keep a replica there"] += not closed.isdisjoint(replicas)
    topics = {f"asked-{number}": whose for number, whose in enumerate(wanted)}
    asked = [NewTopic(topic, assignments=(replicas,)) for topic, (_, replicas) in topics.items()]
    for topic, error in rig.client.create_topics(asked, validate_only=True).failed.items():
        yield f"{topics[topic][0]} is refused: {error}"
    if not wanted:
        yield "no plan changes a list"


def _directories(rig: TwinRig) -> tuple[dict[TopicPartitionReplica, str], set[tuple[int, str]]]:
    """The directory of each copy, and the cordoned directories, of brokers that are up."""
    answers = rig.client.describe_log_dirs(rig.client.describe_cluster().broker_ids).ok
    held = {
        TopicPartitionReplica(broker, *copy.topic_partition): one.path
        for broker, dirs in answers.items() for one in dirs for copy in one.replicas
    }  # fmt: skip
    return held, {(broker, one.path) for broker, dirs in answers.items() for one in dirs if one.is_cordoned}


def table(tally: Tally) -> str:
    """Table of results."""
    figures = tally.counts["figures"]
    return "\n".join([
        "| What | |",
        "|---|---|",
        f"| clusters with cordons, each of a seed of its own and of {' and of '.join(RELEASES)} | {tally.count} |",
        *(f"| {what} | {count} |" for what, count in sorted(figures.items(), key=lambda item: -item[1])),
        f"| clusters with a plan that names a cordoned destination, or that is refused | {tally.failed} |",
    ])  # fmt: skip
