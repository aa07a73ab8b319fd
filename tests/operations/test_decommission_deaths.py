"""A process that takes a broker of a twin out of service, or back, dies at each of its changes; another one goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Self, cast

import pytest

from kreassign.admin import AdminClient
from kreassign.executor.brokers import CORDON, CORDONED_LOG_DIRS
from kreassign.executor.lease import SESSION_MS, LeasePolicy
from kreassign.model import ConfigResource
from kreassign.operations.decommission import Decommissioning, DecommissionRequest, DecommissionResult
from kreassign.operations.decommission_undo import cancel_decommission
from kreassign.operations.run import RunContext
from kreassign.twin.version import kafka_version
from tests.executor.deaths import NEVER, Died, Fate, Mortal
from tests.executor.twin_runs import TwinRig
from tests.operations.decommissions import Killed, Operators, VirtualRuns, is_named

BROKER, OTHERS = 3, 4
LISTS = [[0, 3], [3, 1], [2, 4]]
# `make test` takes 4.4-after, `make test-all` the others as well.
RELEASES = pytest.mark.parametrize(
    ("release", "then"), [("4.3", "4.3"), ("4.4", "4.4"), ("4.3", "4.4")], ids=["4.3", "4.4", "upgraded"]
)
BEFORE_OR_AFTER = pytest.mark.parametrize("is_sent", [False, True], ids=["before", "after"])


def lives() -> Fate:
    return Fate(NEVER, is_sent=False)


class Processes:
    """Processes of one state directory, each of which does its work until it dies; others have cordoned a broker."""

    def __init__(self, folder: Path, release: str, then: str) -> None:
        self.rig = TwinRig(folder, LISTS, release=release)
        self.rig.let_reach_controllers()
        self.rig.client.incremental_alter_configs({ConfigResource.broker(OTHERS): [CORDON]}).raise_if_any()
        self._then = then

    def decommission(self, fate: Fate) -> DecommissionResult:
        return self._go_on(fate, DecommissionRequest((BROKER,)))

    def unregister(self, fate: Fate) -> DecommissionResult:
        return self._go_on(fate, DecommissionRequest((BROKER,), unregisters=True))

    def _go_on(self, fate: Fate, request: DecommissionRequest) -> DecommissionResult:
        client, context = self._born(fate)
        runs, clock = VirtualRuns(self.rig), self.rig.transport
        return Decommissioning(client, request, context, runs, clock, lambda _: None).go_on()

    def cancel(self, fate: Fate) -> None:
        client, context = self._born(fate)
        cancel_decommission(client, (BROKER,), context, self.rig.transport)

    def _born(self, fate: Fate) -> tuple[AdminClient, RunContext]:
        """Clients of a new process, whose runs use them, too."""
        client = cast(AdminClient, Mortal(self.rig.client, fate))
        controllers = cast(AdminClient, Mortal(cast(AdminClient, self.rig.controllers), fate))
        self.rig.odd_port = client
        context = RunContext(self.rig.state_dir, 0.2, controllers, lease=LeasePolicy.REQUIRE, warn=lambda _: None)
        return client, context

    def dies(self, work: Callable[[Processes, Fate], object], at: int, *, is_sent: bool) -> bool:
        """True if a process dies at its change of this number; its lease ends, and the brokers may be upgraded."""
        try:
            work(self, Fate(at, is_sent))
        except Died:
            self.rig.twin.settings = replace(self.rig.twin.settings, version=kafka_version(self._then))
            self.rig.transport.sleep(SESSION_MS / 1000 + 1)
            return True
        return False

    def empty_and_stop(self) -> Self:
        assert self.decommission(lives()).is_finished
        self.rig.twin.stop(BROKER)
        self.rig.transport.sleep(30)
        return self

    def die_while_moving(self) -> Self:
        with pytest.raises(Killed):
            Operators(self.rig).decommission(runs=VirtualRuns(self.rig, dies_after_s=3))
        self.rig.listener = None
        assert self.rig.client.list_partition_reassignments()
        return self

    def cordon(self, broker: int = BROKER) -> str | None:
        return self.rig.twin.metadata.config(ConfigResource.broker(broker), CORDONED_LOG_DIRS)

    def check_rest(self) -> None:
        assert self.rig.throttles == {}
        assert self.rig.client.list_partition_reassignments() == {}
        assert (self.rig.replicas[2], self.cordon(OTHERS)) == ((2, OTHERS), "*")


def dead_at_each_change(
    clusters: Iterator[Processes], work: Callable[[Processes, Fate], object], *, is_sent: bool
) -> Iterator[Processes]:
    """Clusters that a process left at its first change, at its second, and so on; the last is one where it lived."""
    for at, processes in enumerate(clusters, 1):
        is_dead = processes.dies(work, at, is_sent=is_sent)
        yield processes
        if not is_dead:
            assert at > 2, "there were changes to die at"
            return


@BEFORE_OR_AFTER
@RELEASES
def test_a_drain_killed_at_any_change_ends_with_an_empty_broker(
    tmp_path: Path, release: str, then: str, is_sent: bool
) -> None:
    clusters = (Processes(tmp_path / str(number), release, then) for number in count())
    for processes in dead_at_each_change(clusters, Processes.decommission, is_sent=is_sent):
        assert processes.decommission(lives()).is_finished
        assert not is_named(processes.rig)
        assert processes.cordon() == "*"
        processes.check_rest()


@BEFORE_OR_AFTER
@RELEASES
def test_a_broker_is_unregistered_though_processes_die_at_any_change(
    tmp_path: Path, release: str, then: str, is_sent: bool
) -> None:
    clusters = (Processes(tmp_path / str(number), release, then).empty_and_stop() for number in count())
    for processes in dead_at_each_change(clusters, Processes.unregister, is_sent=is_sent):
        assert processes.unregister(lives()).is_finished
        assert BROKER not in processes.rig.twin.metadata.brokers
        assert processes.cordon() is None, "a later broker with the id is open"
        processes.check_rest()


@BEFORE_OR_AFTER
@RELEASES
def test_a_cancel_killed_at_any_change_opens_the_broker_in_the_end(
    tmp_path: Path, release: str, then: str, is_sent: bool
) -> None:
    """The process that drained the broker had died in the middle of it."""
    clusters = (Processes(tmp_path / str(number), release, then).die_while_moving() for number in count())
    for processes in dead_at_each_change(clusters, Processes.cancel, is_sent=is_sent):
        processes.cancel(lives())
        assert processes.cordon() is None
        processes.check_rest()
