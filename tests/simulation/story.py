"""A story: an operator at random work on a twin with faults. Once all faults are repaired everything must end."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kreassign.admin import AdminClient
from kreassign.errors import ClusterError, Rejected, Unreachable, Unsupported
from kreassign.model import (
    ConfigChange,
    ConfigResource,
    ElectionType,
    NewPartitions,
    NewTopic,
    TopicPartition,
    TopicPartitionReplica,
)
from kreassign.model.error_codes import UNKNOWN_SERVER_ERROR, has_code
from kreassign.model.throttle import BROKER_THROTTLES, TOPIC_THROTTLES
from kreassign.twin import Twin
from kreassign.twin.faults import draw_faults, schedule_faults
from kreassign.twin.metadata import PartitionState
from tests.campaigns.campaign import BrokenError, Caught, Result
from tests.simulation.draw import draw_twin
from tests.simulation.scene import Scene, asked_in_turn, partitions_of
from tests.twin.memory_log import MemoryLog

MOST_FAULTS = 12
DEEDS = 40
PAUSE_S = 15.0
TROUBLE_MS = int(DEEDS * PAUSE_S) * 1_000
PATIENCE_MS = 4 * 3_600_000
IMPATIENT = {"request.timeout.ms": "3000", "default.api.timeout.ms": "9000"}

NOT_DONE = (Rejected, Unreachable, Unsupported)
"""After any other failure of a change it is not known whether it was made."""
AFTERWARDS = (UNKNOWN_SERVER_ERROR, 89)
"""Errors with which a fault answers changes that were made all the same (`refuse-after`)."""
RATES = ("0", "1000000", "20000000", "200000000")
CONFIGS = (
    ("min.insync.replicas", "1"), ("min.insync.replicas", "2"), ("min.insync.replicas", "3"),
    ("unclean.leader.election.enable", "true"), ("unclean.leader.election.enable", "false"),
    ("retention.bytes", "10000000"), ("retention.bytes", "-1"),
)  # fmt: skip


@dataclass(slots=True)
class Acknowledged:
    """What must be so in the end: replicas of partitions, as far as they are sure; topics created and deleted."""

    targets: dict[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    topics: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)

    def forget(self, topic: str) -> None:
        self.topics.discard(topic)
        self.targets = {key: target for key, target in self.targets.items() if key.topic != topic}


class Operator:
    """Does one thing after the other at random; `act` returns what was done as a line of text."""

    def __init__(self, chance: random.Random, twin: Twin, admin: AdminClient) -> None:
        self.acknowledged = Acknowledged()
        self._chance = chance
        self._twin = twin
        self._admin = admin
        self._made = 0
        self._deeds: tuple[Callable[[], str], ...] = (
            self._alter, self._alter, self._alter, self._alter, self._cancel, self._create_topic, self._delete_topic,
            self._create_partitions, self._elect, self._throttle, self._unthrottle, self._move_dir,
            self._configure, self._produce, self._look,
        )  # fmt: skip

    def act(self) -> str:
        """Do something; what it was and what came of it."""
        deed = self._chance.choice(self._deeds)
        try:
            return f"{deed.__name__.strip('_')} {deed()}"
        except ClusterError as error:
            return f"{deed.__name__.strip('_')}: {type(error).__name__} {error}"

    # --- moves ------------------------------------------------------------------------------------------------

    def _alter(self) -> str:
        requested = {key: self._target() for key in self._some_partitions()}
        return f"{requested} {self._reassign(requested, allow=self._chance.random() < 0.8)}"

    def _cancel(self) -> str:
        moving = sorted(self._twin.metadata.reassigning)
        partitions = moving if moving and self._chance.random() < 0.7 else self._some_partitions()
        return self._reassign(dict.fromkeys(partitions), allow=True)

    def _reassign(self, requested: Mapping[TopicPartition, tuple[int, ...] | None], *, allow: bool) -> str:
        if not requested:
            return "nothing"
        targets, leaving = self.acknowledged.targets, {key: self._leaving(key) for key in requested}
        try:
            batch = self._admin.alter_partition_reassignments(
                requested, allow_replication_factor_change=allow, warns_of_overrides=False
            )
        except NOT_DONE:
            raise
        except ClusterError:
            for key in requested:
                targets.pop(key, None)
            raise
        for key in batch.ok:
            # Who is leaving already leaves all the same if nobody else is to leave, as on a real controller.
            if (target := requested[key]) is None or leaving[key] & set(target):
                targets.pop(key, None)
            else:
                targets[key] = target
        for key, error in batch.failed.items():
            if not isinstance(error, NOT_DONE) or has_code(error, *AFTERWARDS):
                targets.pop(key, None)
        return f"ok {sorted(batch.ok)} failed {[f'{key}: {error}' for key, error in batch.failed.items()]}"

    def _leaving(self, key: TopicPartition) -> set[int]:
        state = self._twin.metadata.partition(key)
        return set() if state is None else set(state.removing)

    # --- topics -----------------------------------------------------------------------------------------------

    def _create_topic(self) -> str:
        self._made += 1
        name, factor = f"made-{self._made}", self._chance.randint(1, 3)
        self._admin.create_topics([NewTopic(name, self._chance.randint(1, 4), factor)]).raise_if_any()
        self.acknowledged.topics.add(name)
        return name

    def _delete_topic(self) -> str:
        if len(self._topics()) < 2:
            return "none"
        name = self._some_topic()
        self.acknowledged.forget(name)
        self._admin.delete_topics([name]).raise_if_any()
        self.acknowledged.gone.add(name)
        return name

    def _create_partitions(self) -> str:
        topic = self._some_topic()
        total = len(self._twin.metadata.topics[topic].partitions) + self._chance.randint(0, 2)
        self._admin.create_partitions({topic: NewPartitions(total)}).raise_if_any()
        return f"{topic} {total}"

    # --- the rest ---------------------------------------------------------------------------------------------

    def _elect(self) -> str:
        kind = self._chance.choice((ElectionType.PREFERRED, ElectionType.PREFERRED, ElectionType.UNCLEAN))
        batch = self._admin.elect_leaders(self._some_partitions() or None, kind)
        return f"{kind.name} ok {sorted(batch.ok)}"

    def _throttle(self) -> str:
        broker, rate = self._chance.choice(self._twin.processes.ids), self._chance.choice(RATES)
        topic = self._some_topic()
        keys = self._chance.sample(BROKER_THROTTLES[:2], self._chance.randint(1, 2))
        self._set(ConfigResource.broker(broker), dict.fromkeys(keys, rate))
        self._set(ConfigResource.topic(topic), {key: self._listed(topic) for key in TOPIC_THROTTLES})
        return f"broker {broker} {keys} {rate}, topic {topic}"

    def _unthrottle(self) -> str:
        throttled = sorted(owner for owner in self._twin.metadata.configs if owner.name)
        if not throttled:
            return "nothing"
        owner = self._chance.choice(throttled)
        unthrottle(self._admin, owner)
        return str(owner)

    def _listed(self, topic: str) -> str:
        partitions = self._twin.metadata.topics[topic].partitions.values()
        pairs = [f"{state.topic_partition.partition}:{broker}" for state in partitions for broker in state.replicas]
        return "*" if self._chance.random() < 0.5 else ",".join(self._chance.choices(pairs, k=2))

    def _set(self, owner: ConfigResource, values: dict[str, str]) -> None:
        changes = [ConfigChange.set(key, value) for key, value in values.items()]
        self._admin.incremental_alter_configs({owner: changes}).raise_if_any()

    def _move_dir(self) -> str:
        partitions = self._some_partitions()
        if not partitions:
            return "nothing"
        state = self._twin.metadata.partition(partitions[0])
        assert state is not None
        broker = self._chance.choice(state.replicas)
        registered = self._twin.metadata.brokers.get(broker)
        if registered is None:
            return f"{partitions[0]}: broker {broker} is not registered"
        path = self._chance.choice(registered.log_dirs).path
        batch = self._admin.alter_replica_log_dirs({TopicPartitionReplica(broker, *partitions[0]): path})
        return f"{partitions[0]} on {broker} to {path}: {[str(error) for error in batch.failed.values()]}"

    def _configure(self) -> str:
        topic = self._some_topic()
        key, value = self._chance.choice(CONFIGS)
        self._set(ConfigResource.topic(topic), {key: value})
        return f"{topic} {key}={value}"

    def _produce(self) -> str:
        """How much is written changes, without the operator's doing."""
        rate = self._chance.choice((0.0, 10_000.0, 2_000_000.0))
        partitions = self._some_partitions()
        for key in partitions:
            self._twin.replication.set_write_rate(key, rate)
        return f"{partitions} at {rate}"

    def _look(self) -> str:
        topics, moves = self._admin.describe_topics(), self._admin.list_partition_reassignments()
        return f"{sorted(topics.ok)} {sorted(moves)}"

    # --- drawing ----------------------------------------------------------------------------------------------

    def _topics(self) -> list[str]:
        return sorted(self._twin.metadata.topics)

    def _some_topic(self) -> str:
        return self._chance.choice(self._topics())

    def _some_partitions(self) -> list[TopicPartition]:
        every = sorted(state.topic_partition for state in partitions_of(self._twin))
        return self._chance.sample(every, min(len(every), self._chance.randint(1, 3)))

    def _target(self) -> tuple[int, ...]:
        brokers = self._twin.processes.ids
        return tuple(self._chance.sample(brokers, self._chance.randint(1, min(4, len(brokers)))))


def unthrottle(admin: AdminClient, owner: ConfigResource) -> None:
    """Delete the throttles that may have been set on a topic or a broker."""
    keys = TOPIC_THROTTLES if owner.type is ConfigResource.topic("").type else BROKER_THROTTLES[:2]
    admin.incremental_alter_configs({owner: list(map(ConfigChange.delete, keys))}).raise_if_any()


class Story:
    """A seed's story while it happens. `lines` are what has happened so far."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self.lines: list[str] = []
        log = MemoryLog()
        self._scene = Scene(draw_twin(self._chance, log), log)
        self._twin = self._scene.twin
        self._given_up: set[TopicPartition] = set()

    def __str__(self) -> str:
        digest = hashlib.sha256("\n".join(self.lines).encode()).hexdigest()[:16]
        return f" after {self.lasted_s / 3_600:.1f} h and {self._twin.metadata.offset} records, digest {digest}"

    @property
    def lasted_s(self) -> float:
        return self._twin.now_ms / 1_000

    def happen(self) -> None:
        """Let it happen; raises what goes wrong in it."""
        twin = self._twin
        faults = draw_faults(self._chance, twin, self._chance.randint(0, MOST_FAULTS), TROUBLE_MS)
        self.lines += [f"kafka {twin.version}, {len(twin.controller.node_ids)} controllers", *map(str, faults)]
        schedule_faults(twin, faults)
        with self._client() as admin:
            operator = Operator(self._chance, twin, admin)
            for _ in range(DEEDS):
                deed = operator.act()
                self.lines.append(f"{twin.now_ms} {deed}")
                self._scene.world.sleep(self._chance.expovariate(1 / PAUSE_S))
            over_ms = max([fault.at_ms + (fault.lasts_ms or 0) for fault in faults], default=0)
            # Brokers take a while to come back.
            twin.advance_to(max(over_ms, twin.now_ms) + 60_000)
        with self._client() as admin:
            self._end(admin)
            self._demand(admin, operator.acknowledged)
        self.lines.append(repr(twin.metadata))

    def _client(self) -> AdminClient:
        return self._scene.client((0, 1, 2), **IMPATIENT)

    # --- bringing it to an end --------------------------------------------------------------------------------

    def _end(self, admin: AdminClient) -> None:
        """Do what an operator does when the trouble is over: release throttles, wait, give up what cannot end."""
        for owner in sorted(self._twin.metadata.configs):
            if owner.name:
                unthrottle(admin, owner)
        self._wait()
        if leaderless := sorted(self._twin.metadata.leaderless):
            if in_sync := [state for state in self._behind() if not state.has_leader and state.isr]:
                raise BrokenError(f"led by nobody, though a replica is in sync: {in_sync}")
            self.lines.append(f"nobody leads {leaderless}")
            admin.elect_leaders(leaderless, ElectionType.UNCLEAN).raise_if_any()
            self._wait()
        if stuck := sorted(admin.list_partition_reassignments()):
            self.lines.append(f"cannot end: {[str(self._twin.metadata.partition(key)) for key in stuck]}")
            self._given_up.update(stuck)
            admin.alter_partition_reassignments(dict.fromkeys(stuck)).raise_if_any()
            self._wait()

    def _wait(self) -> None:
        """Let time pass until nothing more happens, or patience is over."""
        give_up_ms = self._twin.now_ms + PATIENCE_MS
        while self._twin.now_ms < give_up_ms and (self._twin.metadata.reassigning or self._behind()):
            self._twin.advance(60_000)

    def _behind(self) -> list[PartitionState]:
        states = partitions_of(self._twin)
        return [state for state in states if set(state.isr) != set(state.replicas) or not state.has_leader]

    # --- what must be so then ---------------------------------------------------------------------------------

    def _demand(self, admin: AdminClient, acknowledged: Acknowledged) -> None:
        twin, moves = self._twin, admin.list_partition_reassignments()
        topics = admin.describe_topics().raise_if_any()
        brokers = twin.metadata.brokers
        failures: dict[str, object] = {
            "not all in sync": self._behind(),
            "still being moved": moves,
            "created and lost": acknowledged.topics - topics.keys(),
            "deleted and there": acknowledged.gone & topics.keys(),
            "brokers or directories that did not come back": [
                broker for broker in brokers.values() if broker.fenced or broker.failed_dirs
            ],
            "brokers with old metadata": [
                broker for broker in twin.processes.ids if twin.metadata_of(broker) is not twin.metadata
            ],
        }
        replicas = {each.topic_partition: each.replicas for topic in topics.values() for each in topic.partitions}
        failures["targets and replicas that differ"] = {
            key: (target, replicas[key])
            for key, target in acknowledged.targets.items()
            if key not in self._given_up and replicas[key] != target
        }
        if any(failures.values()):
            raise BrokenError(str({what: found for what, found in failures.items() if found}))
        self._scene.check()


def play_story(seed: int) -> Result:
    story, broken = Story(seed), list[str]()
    with asked_in_turn(), Caught(broken):
        story.happen()
    end = "broken" if broken else "ended"
    return Result(seed, end, tuple(broken), story.lasted_s, str(story), tuple(story.lines))
