"""Two brokers of a twin are in maintenance in turn and at once, and every process that takes a step of it dies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, count, cycle, repeat
from pathlib import Path
from typing import NamedTuple, cast

import pytest

from kreassign.admin import AdminClient
from kreassign.errors import ExecutionError
from kreassign.executor.brokers import CORDONED_LOG_DIRS, Blocked
from kreassign.executor.lease import SESSION_MS, LeasePolicy
from kreassign.executor.maintenance.record import Entered, MaintenanceRecord, Reordering, read_maintenance_record
from kreassign.model import ConfigResource, TopicPartition
from kreassign.operations.broker_changes import MaintenanceStore
from kreassign.operations.maintenance import Way, maintain
from kreassign.operations.run import RunContext
from kreassign.twin.version import kafka_version
from tests.executor.deaths import NEVER, Died, Fate, Mortal
from tests.executor.twin_runs import TwinRig

LISTS = [[3, 4, 0], [4, 3, 1], [3, 0, 1], [0, 4, 2], [2, 3, 4], [0, 1, 2]]
A, B = (3,), (4,)
BOTH = (3, 4)
Command = tuple[Way, tuple[int, ...]]
ENTER, EXIT = Way.ENTER, Way.EXIT
ORDERS: dict[str, tuple[Command, ...]] = {
    "in-turn": ((ENTER, A), (EXIT, A), (ENTER, B), (EXIT, B)),
    "a-b-out-a-b": ((ENTER, A), (ENTER, B), (EXIT, A), (EXIT, B)),
    "a-b-out-b-a": ((ENTER, A), (ENTER, B), (EXIT, B), (EXIT, A)),
    "b-a-out-a-b": ((ENTER, B), (ENTER, A), (EXIT, A), (EXIT, B)),
    "b-a-out-b-a": ((ENTER, B), (ENTER, A), (EXIT, B), (EXIT, A)),
    "a-b-out-both": ((ENTER, A), (ENTER, B), (EXIT, BOTH)),
    "both-out-a-b": ((ENTER, BOTH), (EXIT, A), (EXIT, B)),
    "both-out-b-a": ((ENTER, BOTH), (EXIT, B), (EXIT, A)),
    "both-out-both": ((ENTER, BOTH), (EXIT, BOTH)),
}


class State(NamedTuple):
    """State that maintenance changes: lists, leaders, cordons, and the record."""

    lists: dict[int, list[int]]
    leaders: list[int]
    cordons: dict[int, str | None]
    brokers: Mapping[int, Entered]
    orders: Mapping[TopicPartition, Reordering]


@dataclass
class Operators:
    """Operators at two machines in turn, so that each goes on with what another has begun."""

    rig: TwinRig
    folder: Path
    deaths: Iterator[tuple[int, bool]]
    then: str
    in_maintenance: set[int] = field(default_factory=set)
    processes: int = 0

    def give(self, command: Command) -> None:
        """Give a command until a process lives to its end, or those it names where another broker is in the way."""
        way, brokers = command
        before = self.state()
        step = self._until_it_lives(way, brokers)
        if isinstance(step, Blocked):
            assert "or have both in maintenance at once after that (`kreassign maintenance enter 3,4`)" in str(step)
            assert self.state() == before, "it is refused before anything is changed"
            self.give((EXIT, tuple(self.in_maintenance)))
            self.give((ENTER, BOTH))
            return
        self.in_maintenance = self.in_maintenance | {*brokers} if way is ENTER else self.in_maintenance - {*brokers}
        assert self.in_maintenance.isdisjoint(self.leaders())
        record = read_maintenance_record(self.rig.client)
        assert record is not None
        assert set(record.brokers) == self.in_maintenance

    def _until_it_lives(self, way: Way, brokers: tuple[int, ...]) -> object:
        for at, is_sent in self.deaths:
            self.processes += 1
            client = cast(AdminClient, Mortal(self.rig.client, Fate(at, is_sent)))
            home = self.folder / ("ann", "bob")[self.processes % 2]
            context = RunContext(home, 1.0, lease=LeasePolicy.REQUIRE, warn=lambda _: None)
            try:
                return maintain(client, brokers, way, context, wait_s=60, clock=self.rig.transport).next_step
            except Died:
                self.rig.twin.settings = replace(self.rig.twin.settings, version=kafka_version(self.then))
                self.rig.transport.sleep(SESSION_MS / 1000 + 1)
        raise AssertionError("the deaths go on for ever")

    def leaders(self) -> list[int]:
        return [state.leader for _, state in sorted(self.rig.twin.metadata.topics["t"].partitions.items())]

    def state(self) -> State:
        configs = {broker: self.rig.twin.metadata.configs.get(ConfigResource.broker(broker), {}) for broker in BOTH}
        cordons = {
            broker: values[CORDONED_LOG_DIRS] for broker, values in configs.items() if CORDONED_LOG_DIRS in values
        }
        record = read_maintenance_record(self.rig.client) or MaintenanceRecord()
        return State(dict(self.rig.replicas), self.leaders(), cordons, record.brokers, record.orders)


# `make test` takes a-b-out-a-b-4.3, b-a-out-a-b-upgraded and both-out-a-b-4.4, `make test-all` the others as well.
@pytest.mark.parametrize(
    ("release", "then"), [("4.3", "4.3"), ("4.4", "4.4"), ("4.3", "4.4")], ids=["4.3", "4.4", "upgraded"]
)
@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
def test_all_is_as_before_though_processes_die(
    tmp_path: Path, order: tuple[Command, ...], release: str, then: str
) -> None:
    """Every process dies when it has made one change, or before its second or third one."""
    rig = TwinRig(tmp_path, LISTS, release=release)
    operators = Operators(rig, tmp_path, cycle([(1, True), (2, False), (3, False), (1, True)]), then)
    before = operators.state()
    for command in order:
        operators.give(command)
    assert operators.state() == before
    assert operators.processes > len(order), "some died"


@pytest.mark.parametrize("is_sent", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("release", ["4.3", "4.4"])
@pytest.mark.parametrize("dies", [ENTER, EXIT], ids=["enter", "exit"])
def test_all_is_as_before_though_a_process_dies_at_any_change(
    tmp_path: Path, dies: Way, release: str, is_sent: bool
) -> None:
    """One process dies at its first, second … change; a process at another machine ends what it began."""
    lives = (NEVER, False)
    for at in count(1):
        rig = TwinRig(tmp_path / str(at), LISTS, release=release)
        deaths = chain([] if dies is ENTER else [lives], [(at, is_sent)], repeat(lives))
        operators = Operators(rig, tmp_path / str(at), deaths, release)
        before = operators.state()
        for way in (ENTER, EXIT):
            operators.give((way, A))
        assert operators.state() == before
        if operators.processes == 2:
            break
    assert at > 5, "there were changes to die at"


@pytest.mark.parametrize("is_here_only", [False, True], ids=["in-the-cluster", "here-only"])
def test_a_record_that_others_wrote_since_it_was_read_is_not_replaced(tmp_path: Path, is_here_only: bool) -> None:
    """A coordinator that has just taken over shows the record as its followers have it."""
    rig = TwinRig(tmp_path, LISTS)
    policy = LeasePolicy.OFF if is_here_only else LeasePolicy.REQUIRE
    homes = {who: tmp_path / ("here" if is_here_only else who) for who in ("ann", "bob")}
    ann, bob = (
        MaintenanceStore(
            rig.client, RunContext(home, lease=policy, warn=lambda _: None), rig.twin.cluster_id, writer=who
        )
        for who, home in homes.items()
    )
    shown = bob.read().record
    ann.write(ann.read().record.entered(A, 1, "ann", cordoned=A))
    with pytest.raises(ExecutionError, match="somebody has written the record of maintenance since it was read"):
        bob.write(shown.entered(B, 2, "bob", cordoned=B))
    assert {*bob.read().record.brokers} == {*A}
    bob.write(bob.read().record.entered(B, 3, "bob", cordoned=B))
    assert {*ann.read().record.brokers} == {*A, *B}
