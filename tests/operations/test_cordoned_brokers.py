"""Plans around cordoned brokers: none names one as a destination, and Kafka 4.4 refuses none of their lists."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kreassign.errors import IllegalPlan, Infeasible, InputError
from kreassign.executor.guards import DEFAULTS, guard_settings
from kreassign.executor.preflight import RunSettings, prepare
from kreassign.model import Batch, ConfigChange, ConfigResource, NewTopic, TopicPartition
from kreassign.model.pace import NO_LIMITS
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.throttle import ThrottleRates
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
from kreassign.operations.rollback import plan_rollback
from kreassign.planner import Budget
from kreassign.planner.problem.policy import PlanPolicy
from kreassign.twin.version import kafka_version
from tests.executor.odd_port import OddPort, Real
from tests.executor.twin_runs import RATE, TwinRig

SEEDS = (0, 3, *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in (1, 2, 4, 5, *range(6, 20))))
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
    DrainLogDirs(((3, "/d0"),), between_brokers=True),
    AddBrokers((5,)),
    ReplaceBrokers((1,), (5,)),
    ReplaceBrokers((0, 2), (3, 4)),
    WhatIf(traffic=2.0),
)
NO_MINIMUM = PlanRequest(allow_factor_change=True)
TIGHT = PlanRequest(budget=Budget(moves=2), allow_factor_change=True)
Lists = Mapping[TopicPartition, tuple[int, ...]]


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


def declared(seed: int, current: Lists, brokers: Sequence[int]) -> Restore:
    """A placement from a file: some lists are random ones of these brokers."""
    random = Random(seed)
    wanted = {name: (*random.sample(brokers, 2),) if random.random() < 0.3 else now for name, now in current.items()}
    return Restore(Plan(tuple(PartitionAssignment(name, one) for name, one in wanted.items())), "placement.json")


def cordon(rig: TwinRig, broker: int, value: str | None) -> None:
    key = "cordoned.log.dirs"
    change = ConfigChange.delete(key) if value is None else ConfigChange.set(key, value)
    rig.client.incremental_alter_configs({ConfigResource.broker(broker): [change]}).raise_if_any()


def inputs_of(rig: TwinRig) -> Inputs:
    return inputs_of_cluster(rig.client, PlanPolicy(), measure_for_s=0.0, warn=lambda _: None)


def planned(inputs: Inputs, seed: int, closed: Collection[int]) -> Iterator[tuple[str, Lists, Lists]]:
    """The lists of each plan, with those that they replace."""
    # A small budget beside `and_balance` may crowd a rack, with or without cordons.
    current = make_plan(inputs, BalanceLeaders(), NO_MINIMUM).current.replicas
    opened = [broker for broker in BROKERS if broker not in closed]
    tasks = (*TASKS, declared(seed, current, BROKERS), declared(seed, current, opened))
    asked = [(one, NO_MINIMUM) for one in tasks]
    asked += [(one, TIGHT) for one in tasks if not getattr(one, "and_balance", False)]
    for task, request in asked:
        try:
            outcome = make_plan(inputs, task, request)
        except (Infeasible, InputError, IllegalPlan):
            continue
        yield task.name, outcome.plan.replicas, outcome.current.replicas
    alternatives = pareto(inputs)
    for choice in alternatives.choices[:3]:
        outcome = alternatives.outcome(choice)
        yield choice.asked_for, outcome.plan.replicas, outcome.current.replicas
    for placement in (place_topic(inputs, PlanPolicy(), "new", 4, 2), place_partitions(inputs, "t", 12)):
        yield placement.topic, placement.plan.replicas, {}


@pytest.mark.parametrize("release", ["4.3", "4.4"])
@pytest.mark.parametrize("seed", SEEDS)
def test_no_plan_names_a_cordoned_broker_or_is_refused(seed: int, release: str, tmp_path: Path) -> None:
    rig, closed = rig_of(seed, release, tmp_path)
    wanted: list[tuple[int, ...]] = []
    for task, lists, before in planned(inputs_of(rig), seed, closed):
        for name, replicas in lists.items():
            assert closed.isdisjoint(set(replicas).difference(before.get(name, ()))), (task, name)
            if replicas != before.get(name):
                wanted.append(replicas)
    assert wanted
    topics = [NewTopic(f"asked-{number}", assignments=(one,)) for number, one in enumerate(wanted)]
    assert rig.client.create_topics(topics, validate_only=True).failed == {}


def test_a_silent_cordon_does_not_hold_a_partition(tmp_path: Path) -> None:
    rig, closed = rig_of(0, "4.3", tmp_path)
    changed = (
        one
        for _, lists, before in planned(inputs_of(rig), 0, closed)
        for name, one in lists.items()
        if one != before.get(name)
    )
    assert any(not closed.isdisjoint(one) for one in changed)


# --- runs -----------------------------------------------------------------------------------------------------------

LEARNS_MS = 15_000
"""Controllers and runs know a cordon that is older."""


class Cordons:
    """Cordons that come and go around a run, and what of its moves they forbade."""

    def __init__(self, rig: TwinRig, random: Random) -> None:
        self.rig, self._random, self.wrong = rig, random, list[str]()
        self._since_ms: dict[int, int] = {}
        self.port = OddPort(rig.client)
        self.port.answer_always("alter_partition_reassignments", self._judge)
        rig.odd_port = self.port.port

    @property
    def closed(self) -> set[int]:
        readings = self.rig.twin.replication.readings
        return {one for one in BROKERS if all(log_dir.is_cordoned for log_dir in readings.log_dirs(one))}

    def change(self) -> None:
        """Cordon a random broker, or open it if it is cordoned."""
        broker = self._random.choice(BROKERS)
        if broker in self.rig.client.describe_cluster().broker_ids and self.rig.twin.is_running(broker):
            self._set(broker, None if broker in self.closed else "*")

    def end(self) -> None:
        """Open all brokers, and start what is down."""
        for broker in set(BROKERS).difference(self.rig.client.describe_cluster().broker_ids):
            self.rig.twin.start(broker)
        for broker in self.closed:
            self._set(broker, None)

    def _set(self, broker: int, value: str | None) -> None:
        cordon(self.rig, broker, value)
        self._since_ms[broker] = self.rig.transport.now_ms()

    def _judge(self, real: Real, targets: Lists, **named: Any) -> Batch[TopicPartition, None]:
        now_ms, present = self.rig.transport.now_ms(), self.rig.replicas
        closed = {one for one in self.closed if now_ms - self._since_ms.get(one, 0) > LEARNS_MS}
        answer: Batch[TopicPartition, None] = real(targets, **named)
        for name, wanted in targets.items():
            gained = set(wanted or ()).difference(present[name.partition])
            if closed & gained or (closed & set(wanted or ()) and name in answer.failed):
                self.wrong.append(f"{name} to {wanted}, with {closed} cordoned: {answer.failed.get(name)}")
        return answer


@pytest.mark.parametrize(("seed", "release", "in_steps"), [
    (30, "upgraded", False),
    (39, "upgraded", False),
    (8, "4.4", True),
    *(
        pytest.param(seed, release, in_steps, marks=pytest.mark.exhaustive)
        for seed in range(20) for release in ("4.4", "upgraded") for in_steps in (False, True)
        if (seed, release, in_steps) != (8, "4.4", True)
    ),
])  # fmt: skip
def test_no_run_and_no_rollback_sends_what_a_cordon_forbids(
    seed: int, release: str, in_steps: bool, tmp_path: Path
) -> None:
    """Cordons change after the plan and during the run, under which Kafka 4.3 may become 4.4.

    A run in steps loses a destination besides, and plans its moves again.
    """
    rig, _ = rig_of(seed, "4.4" if release == "4.4" else "4.3", tmp_path)
    random = Random(seed)
    try:
        plan = make_plan(inputs_of(rig), random.choice(TASKS), NO_MINIMUM).plan
    except (Infeasible, InputError, IllegalPlan):
        return
    cordons = Cordons(rig, random)
    upgraded = replace(rig.twin.settings, version=kafka_version("4.4"))
    rig.after(random.choice((1, 40)), lambda: setattr(rig.twin, "settings", upgraded))
    for number in (1, 2):
        cordons.change()
        rig.transport.sleep(20)
        now_ms, guards = rig.transport.now_ms(), guard_settings(DEFAULTS)
        settings = RunSettings(
            f"run-{number}", now_ms, ThrottleRates(RATE), guards, replace(NO_LIMITS, is_stepwise=in_steps),
            allows_factor_change=True,
        )  # fmt: skip
        try:
            started = replace(prepare(rig.port, plan, settings), replans=in_steps)
        except IllegalPlan:
            break
        destinations = {broker for move in started.moves for broker in move.adding}
        if in_steps and destinations and number == 1:
            rig.after(3, partial(rig.twin.crash, min(destinations)))
        for seconds in (5, 30):
            rig.between_steps(seconds, cordons.change)
        rig.between_steps(200, cordons.end)
        run = rig.run(started)
        assert cordons.wrong == []
        assert run.state == "done" or in_steps
        plan = plan_rollback(rig.client, run, warn=lambda _: None, is_stepwise=in_steps).plan
    assert cordons.wrong == []
