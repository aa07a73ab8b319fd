"""Plans around cordoned brokers: none names one as a destination, and Kafka 4.4 refuses none of their lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner

from kreassign.errors import IllegalPlan, Infeasible, InputError
from kreassign.executor.brokers import CORDONED_LOG_DIRS
from kreassign.executor.guards import DEFAULTS, guard_settings
from kreassign.executor.preflight import RunSettings, prepare
from kreassign.model import Batch, ConfigResource, TopicPartition
from kreassign.model.pace import NO_LIMITS
from kreassign.model.throttle import ThrottleRates
from kreassign.operations.plan import make_plan
from kreassign.operations.plan_inputs import Inputs
from kreassign.operations.rollback import plan_rollback
from kreassign.twin.version import kafka_version
from tests.executor.odd_port import OddPort, Real
from tests.executor.twin_runs import RATE, TwinRig
from tests.simulation import cordons
from tests.simulation.__main__ import campaign, main
from tests.simulation.cordons import BROKERS, NO_MINIMUM, TASKS, Lists, cordon, inputs_of, planned, rig_of

MORE = (pytest.param(few, marks=pytest.mark.exhaustive) for few in ((1, 2), range(4, 12), range(12, 20)))
SEEDS = ((0,), (3,), *MORE)


@pytest.mark.parametrize("seeds", SEEDS, ids=lambda few: f"{few[0]} to {few[-1]}")
def test_no_plan_names_a_cordoned_broker_or_is_refused(seeds: Sequence[int]) -> None:
    """More seeds on demand: `python -m tests.simulation plans 1-300`."""
    tally = campaign("plans", seeds)
    assert tally.broken == []
    assert tally.counts["figures"]["changed lists of partitions on cordoned brokers"]


def test_plans_that_do_not_know_the_cordons_break_the_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cordons, "inputs_of", inputs_before_the_cordons)
    result = CliRunner().invoke(main, ["plans", "2"])
    assert result.exit_code == 1, result.output
    assert "which are cordoned" in result.stderr
    assert "but all its log directories are cordoned." in result.stderr
    assert result.stderr.endswith("reproduce with: python -m tests.simulation plans 2\n")


def inputs_before_the_cordons(rig: TwinRig) -> Inputs:
    values = {broker: rig.twin.metadata.config(ConfigResource.broker(broker), CORDONED_LOG_DIRS) for broker in BROKERS}
    for broker in BROKERS:
        cordon(rig, broker, None)
    inputs = inputs_of(rig)
    for broker, value in values.items():
        cordon(rig, broker, value)
    return inputs


def test_a_silent_cordon_does_not_hold_a_partition(tmp_path: Path) -> None:
    rig, closed = rig_of(0, "4.3", tmp_path)
    changed = (
        one
        for _, plan, before in planned(inputs_of(rig), 0, closed)
        for name, one in (plan.replicas.items() if plan else ())
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
