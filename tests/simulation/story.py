"""One seed, one story: a cluster, an operator, faults; in the end everything is mended, and everything must end."""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass

from kreassign.admin import AdminClient, client_settings
from kreassign.model import ConfigChange, ElectionType
from kreassign.twin import Twin, TwinTransport
from kreassign.twin.checkers import check_all, check_step
from kreassign.twin.core import Step
from kreassign.twin.faults import draw_faults, schedule_faults
from kreassign.twin.metadata.state import ClusterMetadata, PartitionState
from tests.simulation.clusters import draw_twin
from tests.simulation.workload import Operator, Promises, cleared
from tests.twin.memory_log import MemoryLog

MOST_FAULTS = 12
DEEDS = 40
PAUSE_S = 15.0
TROUBLE_MS = int(DEEDS * PAUSE_S) * 1_000
PATIENCE_MS = 4 * 3_600_000
IMPATIENT = {"request.timeout.ms": "3000", "default.api.timeout.ms": "9000"}


class StillGoingError(AssertionError):
    """Everything was mended, and still something did not end, or a promise was broken."""


@dataclass(frozen=True)
class Ending:
    """How a story went: what was done and what came of it, line by line; how long it took in the twin."""

    lines: tuple[str, ...]
    lasted_ms: int
    records: int

    @property
    def digest(self) -> str:
        """The same for the same story."""
        return hashlib.sha256("\n".join(self.lines).encode()).hexdigest()[:16]


class Story:
    """A seed's story while it happens. `lines` says what has happened so far."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self.lines: list[str] = []
        self._log = MemoryLog()
        self._twin = draw_twin(self._chance, self._log)
        self._twin.watch(check_step)
        self._twin.watch(self._compare_after_failover)
        self._epoch = self._twin.controller.epoch
        self._world = TwinTransport(self._twin)
        self._settled: set[object] = set()

    def tell(self) -> Ending:
        """Let it happen; raises what goes wrong in it."""
        faults = draw_faults(self._chance, self._twin, self._chance.randint(0, MOST_FAULTS), TROUBLE_MS)
        self.lines += [
            f"kafka {self._twin.version}, {len(self._twin.controller.node_ids)} controllers",
            *map(str, faults),
        ]
        schedule_faults(self._twin, faults)
        with self._client() as admin:
            operator = Operator(self._chance, self._twin, admin)
            for _ in range(DEEDS):
                line = operator.act()
                self.lines.append(f"{self._twin.now_ms} {line}")
                self._world.sleep(self._chance.expovariate(1 / PAUSE_S))
            over_ms = max([one.at_ms + (one.lasts_ms or 0) for one in faults], default=0)
            # Brokers take a while to come back.
            self._twin.advance_to(max(over_ms, self._twin.now_ms) + 60_000)
        with self._client() as admin:
            self._end(admin)
        self._demand(operator.promises)
        self.lines.append(repr(self._twin.metadata))
        return Ending(tuple(self.lines), self._twin.now_ms, self._twin.metadata.offset)

    def _client(self) -> AdminClient:
        settings = client_settings(IMPATIENT, bootstrap_servers="broker-0:9092,broker-1:9092,broker-2:9092")
        return AdminClient.connect(settings, clock=self._world, transport=self._world)

    def _compare_after_failover(self, twin: Twin, _step: Step) -> None:
        """A controller that has just taken over knows what the log tells, and nothing else."""
        if twin.controller.epoch != self._epoch:
            self._epoch = twin.controller.epoch
            if replayed(self._log) != twin.metadata:
                raise StillGoingError(f"controller {twin.controller_id} took over another state than the log tells")

    # --- bringing it to an end --------------------------------------------------------------------------------

    def _end(self, admin: AdminClient) -> None:
        """Do what an operator does when the trouble is over: release throttles, wait, give up what cannot end."""
        for owner in sorted(self._twin.metadata.configs):
            if owner.name:
                changes = [ConfigChange.delete(key) for key in cleared(owner)]
                admin.incremental_alter_configs({owner: changes}).raise_if_any()
        self._wait()
        if leaderless := sorted(self._twin.metadata.leaderless):
            if in_sync := [one for one in self._behind() if not one.has_leader and one.isr]:
                raise StillGoingError(f"led by nobody, though somebody is in sync: {in_sync}")
            self.lines.append(f"nobody leads {leaderless}")
            admin.elect_leaders(leaderless, ElectionType.UNCLEAN).raise_if_any()
            self._wait()
        if stuck := sorted(admin.list_partition_reassignments()):
            self.lines.append(f"cannot end: {[str(self._twin.metadata.partition(key)) for key in stuck]}")
            self._settled.update(stuck)
            admin.alter_partition_reassignments(dict.fromkeys(stuck)).raise_if_any()
            self._wait()

    def _wait(self) -> None:
        """Let time pass until nothing more happens, or patience is over."""
        give_up_ms = self._twin.now_ms + PATIENCE_MS
        while self._twin.now_ms < give_up_ms and not self._is_calm():
            self._twin.advance(60_000)

    def _is_calm(self) -> bool:
        return not self._twin.metadata.reassigning and not self._behind()

    def _behind(self) -> list[PartitionState]:
        partitions = (one for topic in self._twin.metadata.topics.values() for one in topic.partitions.values())
        return [one for one in partitions if set(one.isr) != set(one.replicas) or not one.has_leader]

    # --- what must be so then ---------------------------------------------------------------------------------

    def _demand(self, promises: Promises) -> None:
        twin = self._twin
        if behind := self._behind():
            raise StillGoingError(f"not all in sync: {behind}")
        with self._client() as admin:
            if moves := admin.list_partition_reassignments():
                raise StillGoingError(f"still being moved: {moves}")
            found = admin.describe_topics().raise_if_any()
        if lost := promises.topics - found.keys():
            raise StillGoingError(f"created and lost: {sorted(lost)}")
        if back := promises.gone & found.keys():
            raise StillGoingError(f"deleted and there: {sorted(back)}")
        for key, target in promises.targets.items():
            (replicas,) = [one.replicas for one in found[key.topic].partitions if one.topic_partition == key]
            if key not in self._settled and replicas != target:
                raise StillGoingError(f"{key} was to go to {target} and is on {replicas}")
        if any(broker.fenced or broker.failed_dirs for broker in twin.metadata.brokers.values()):
            raise StillGoingError(f"a broker or directory did not come back: {twin.metadata.brokers}")
        if any(twin.metadata_of(broker) is not twin.metadata for broker in twin.processes.ids):
            raise StillGoingError("a broker still knows old metadata")
        if replayed(self._log) != twin.metadata:
            raise StillGoingError("the metadata log tells of another state")
        check_all(twin)


def replayed(log: MemoryLog) -> ClusterMetadata:
    """What a metadata log tells."""
    metadata = ClusterMetadata()
    for record in log.read():
        metadata.apply(record)
    return metadata


def told(seed: int) -> Ending:
    """The story of a seed; what goes wrong in it is raised with a note that says how to see it again."""
    story = Story(seed)
    try:
        return story.tell()
    except BaseException as error:
        error.add_note("\n".join([*story.lines[-15:], reproduction(seed)]))
        raise


def reproduction(seed: int) -> str:
    """The line that lets a story happen again."""
    return f"reproduce with: make simulate SEEDS={seed}"
