"""Operators who take brokers of a twin out of service, and runs that drain them in its time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

import pytest

from kreassign.admin import AdminClient
from kreassign.executor.events import RunStarted
from kreassign.executor.guards import GuardSetting
from kreassign.executor.journal import find_journals
from kreassign.executor.journal.folder import make_folder
from kreassign.executor.lease import LeasePolicy
from kreassign.executor.preflight import RunSettings, prepare
from kreassign.model import ConfigChange, ConfigResource
from kreassign.model.plan_facts import PlanFacts
from kreassign.model.run import RunHistory
from kreassign.model.throttle import ThrottleRates
from kreassign.operations.decommission import (
    Decommissioning,
    DecommissionPreview,
    DecommissionRequest,
    DecommissionResult,
    preview_decommission,
)
from kreassign.operations.decommission_undo import cancel_decommission, uncordon_drained
from kreassign.operations.plan_files import PlanFile
from kreassign.operations.run import RunContext
from kreassign.operations.run_journals import keep_facts
from tests.executor.odd_port import Answer, OddPort
from tests.executor.twin_runs import RATE, TwinRig

KEY = "cordoned.log.dirs"

BROKER = ConfigResource.broker(3)

LISTS = [[0, 3], [3, 1], [2, 4]]

OF_3 = DecommissionRequest((3,))


class Killed(BaseException):
    """The process is gone."""


def die() -> None:
    raise Killed


def keep(rig: TwinRig, run_id: str, facts: PlanFacts) -> None:
    """The facts of a plan beside the journal, as a run keeps them."""
    make_folder(rig.path(run_id).parent)
    keep_facts(rig.path(run_id), facts)


def kill_while_moving(rig: TwinRig, started: RunStarted) -> None:
    """The process of this run dies once a partition moves."""

    def die_once_it_moves(*_: object) -> None:
        if rig.client.list_partition_reassignments():
            raise Killed

    rig.listener = die_once_it_moves
    with pytest.raises(Killed):
        rig.run(started)
    rig.listener = None


@dataclass
class VirtualRuns:
    """Runs in the time of the twin. `before` hears of each before it begins; its process is killed at `dies`."""

    rig: TwinRig
    before: Callable[[], object] = lambda: None
    dies_after_s: float | None = None
    ids: list[str] = field(default_factory=list)
    guards: tuple[GuardSetting, ...] = ()

    def execute(self, plan: PlanFile) -> RunHistory:
        self.before()
        number = len(find_journals(self.rig.state_dir)) + 1
        chosen = RunSettings(f"run-{number}", self.rig.transport.now_ms(), ThrottleRates(RATE), self.guards)
        started = prepare(self.rig.client, plan.plan, chosen, expected=plan.expected)
        self.ids.append(started.run_id)
        if self.dies_after_s is not None:
            due_ms = self.rig.transport.now_ms() + self.dies_after_s * 1000

            def die_then(*_: object) -> None:
                if self.rig.transport.now_ms() >= due_ms:
                    raise Killed

            self.rig.listener = die_then
        assert plan.facts is not None
        keep(self.rig, started.run_id, plan.facts)
        return self.rig.run(started)

    def resume(self, run_id: str) -> RunHistory:
        self.rig.listener = None
        return self.rig.resume(run_id)


class Operators:
    """Operators who each decommission with a process of their own."""

    def __init__(self, rig: TwinRig) -> None:
        self.rig = rig
        self.client = rig.client
        self.said: list[str] = []
        self.warnings: list[str] = []

    def context(self, state_dir: Path | None = None) -> RunContext:
        context = RunContext(
            state_dir or self.rig.state_dir,
            0.2,
            lease=LeasePolicy.AUTO,
            warn=self.warnings.append,
        )
        controllers = self.rig.controllers
        return replace(context, controllers=controllers) if isinstance(controllers, AdminClient) else context

    def decommission(
        self,
        *brokers: int,
        runs: VirtualRuns | None = None,
        successors: tuple[int, ...] = (),
        unregisters: bool = False,
    ) -> DecommissionResult:
        request = DecommissionRequest(brokers or (3,), successors, unregisters)
        self.said.clear()
        return self.go_on(request, runs)

    def go_on(
        self,
        request: DecommissionRequest,
        runs: VirtualRuns | None = None,
        *,
        tell: Callable[[str], None] | None = None,
        poll_s: float = 0.2,
        is_agreed: bool = True,
    ) -> DecommissionResult:
        context, tell = replace(self.context(), poll_s=poll_s), tell or self.said.append
        runs, clock = runs or VirtualRuns(self.rig), self.rig.transport
        return Decommissioning(self.client, request, context, runs, clock, tell, is_agreed=is_agreed).go_on()

    def preview(self, request: DecommissionRequest = OF_3) -> DecommissionPreview:
        return preview_decommission(self.client, request, self.context(), self.rig.transport)

    def die_while_moving(self, *brokers: int) -> None:
        """A decommission whose process dies while its run moves partitions."""
        with pytest.raises(Killed):
            self.decommission(*brokers, runs=VirtualRuns(self.rig, dies_after_s=3))
        self.rig.listener = None

    def answer_always(self, method: str, answer: Answer) -> OddPort:
        """Let these operators always get this answer; their requests."""
        odd = OddPort(self.rig.client)
        odd.answer_always(method, answer)
        self.client = cast(AdminClient, odd)
        return odd

    def stop(self) -> None:
        """Shut broker 3 down."""
        self.rig.twin.stop(3)
        self.rig.transport.sleep(30)

    def empty_and_stop(self) -> None:
        """Take everything off broker 3, and shut it down."""
        assert self.decommission().is_finished
        self.stop()

    def cancel(self) -> tuple[str, ...]:
        return cancel_decommission(self.rig.client, (3,), self.context(), self.rig.transport).steps

    @property
    def cordon(self) -> str | None:
        return self.rig.twin.metadata.configs.get(BROKER, {}).get(KEY)


def is_named(rig: TwinRig, broker: int = 3) -> bool:
    return any(
        broker in state.replicas for topic in rig.twin.metadata.topics.values() for state in topic.partitions.values()
    )


def of_release(tmp_path: Path, release: str) -> Operators:
    return Operators(TwinRig(tmp_path, LISTS, release=release))


def close(operators: Operators, value: str | None) -> None:
    """Others set the cordon of broker 3, or remove it."""
    change = ConfigChange.delete(KEY) if value is None else ConfigChange.set(KEY, value)
    operators.rig.client.incremental_alter_configs({BROKER: [change]}).raise_if_any()


def die_while_draining(operators: Operators, *brokers: int) -> None:
    """A decommission whose process dies after the cordon, before its run begins."""
    with pytest.raises(Killed):
        operators.decommission(*brokers, runs=VirtualRuns(operators.rig, before=die))


def is_opened(operators: Operators) -> bool:
    """True if broker 3 is opened before a rollback."""
    uncordon_drained(operators.rig.client, (3,), operators.context(), operators.said.append, operators.rig.transport)
    return operators.cordon is None
