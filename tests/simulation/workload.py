"""What an operator does, drawn by lot, and what the cluster has promised so far."""

from __future__ import annotations

import random
from collections.abc import Callable

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
from kreassign.model.throttle import (
    FOLLOWER_THROTTLED_RATE,
    FOLLOWER_THROTTLED_REPLICAS,
    LEADER_THROTTLED_RATE,
    LEADER_THROTTLED_REPLICAS,
)
from kreassign.twin import Twin

NOT_DONE = (Rejected, Unreachable, Unsupported)
"""After any other failure of a change one cannot know."""
AFTERWARDS = (UNKNOWN_SERVER_ERROR, 89)
"""Errors with which a fault answers changes that were made all the same (`refuse-after`)."""
RATES = ("0", "1000000", "20000000", "200000000")
SETTINGS = (
    ("min.insync.replicas", "1"), ("min.insync.replicas", "2"), ("min.insync.replicas", "3"),
    ("unclean.leader.election.enable", "true"), ("unclean.leader.election.enable", "false"),
    ("retention.bytes", "10000000"), ("retention.bytes", "-1"),
)  # fmt: skip


class Promises:
    """What was acknowledged and must be so in the end.

    `targets` says where a partition must have arrived; one that nobody can be sure of is not in it. `topics` must be
    there, `gone` must not.
    """

    def __init__(self) -> None:
        self.targets: dict[TopicPartition, tuple[int, ...]] = {}
        self.topics: set[str] = set()
        self.gone: set[str] = set()

    def forget(self, topic: str) -> None:
        """Somebody may have deleted a topic."""
        self.topics.discard(topic)
        self.targets = {key: target for key, target in self.targets.items() if key.topic != topic}


class Operator:
    """Does one thing after the other; every one is told as a line of text."""

    def __init__(self, rng: random.Random, twin: Twin, admin: AdminClient) -> None:
        self.promises = Promises()
        self._chance = rng
        self._twin = twin
        self._admin = admin
        self._made = 0
        self._deeds: tuple[Callable[[], str], ...] = (
            self._alter, self._alter, self._alter, self._alter, self._cancel, self._create_topic, self._delete_topic,
            self._create_partitions, self._elect, self._throttle, self._unthrottle, self._move_dir,
            self._configure, self._produce, self._look,
        )  # fmt: skip

    def act(self) -> str:
        """Do something, and tell it with what came of it."""
        deed = self._chance.choice(self._deeds)
        try:
            return f"{deed.__name__.strip('_')} {deed()}"
        except ClusterError as error:
            return f"{deed.__name__.strip('_')}: {type(error).__name__} {error}"

    # --- moves ------------------------------------------------------------------------------------------------

    def _alter(self) -> str:
        partitions = self._some_partitions()
        requested = {key: self._target() for key in partitions}
        return f"{requested} {self._ask(requested, allow=self._chance.random() < 0.8)}"

    def _cancel(self) -> str:
        moving = sorted(self._twin.metadata.reassigning)
        partitions = moving if moving and self._chance.random() < 0.7 else self._some_partitions()
        return self._ask(dict.fromkeys(partitions), allow=True)

    def _ask(self, requested: dict[TopicPartition, tuple[int, ...] | None], *, allow: bool) -> str:
        if not requested:
            return "nothing"
        leaving = {key: self._leaving(key) for key in requested}
        try:
            batch = self._admin.alter_partition_reassignments(
                requested, allow_replication_factor_change=allow, warns_of_overrides=False
            )
        except NOT_DONE:
            raise
        except ClusterError:
            for key in requested:
                self.promises.targets.pop(key, None)
            raise
        for key in batch.ok:
            target = requested[key]
            # Who is leaving already leaves all the same if nobody else is to leave, as on a real controller.
            if target is None or leaving[key] & set(target):
                self.promises.targets.pop(key, None)
            else:
                self.promises.targets[key] = target
        for key, error in batch.failed.items():
            if not isinstance(error, NOT_DONE) or has_code(error, *AFTERWARDS):
                self.promises.targets.pop(key, None)
        return f"ok {sorted(batch.ok)} failed {[f'{key}: {error}' for key, error in batch.failed.items()]}"

    def _leaving(self, key: TopicPartition) -> set[int]:
        state = self._twin.metadata.partition(key)
        return set() if state is None else set(state.removing)

    # --- topics -----------------------------------------------------------------------------------------------

    def _create_topic(self) -> str:
        self._made += 1
        name, factor = f"made-{self._made}", self._chance.randint(1, 3)
        self._admin.create_topics([NewTopic(name, self._chance.randint(1, 4), factor)]).raise_if_any()
        self.promises.topics.add(name)
        return name

    def _delete_topic(self) -> str:
        topics = sorted(self._twin.metadata.topics)
        if len(topics) < 2:
            return "none"
        name = self._chance.choice(topics)
        self.promises.forget(name)
        self._admin.delete_topics([name]).raise_if_any()
        self.promises.gone.add(name)
        return name

    def _create_partitions(self) -> str:
        topic = self._chance.choice(sorted(self._twin.metadata.topics))
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
        topic = self._chance.choice(sorted(self._twin.metadata.topics))
        keys = self._chance.sample((LEADER_THROTTLED_RATE, FOLLOWER_THROTTLED_RATE), self._chance.randint(1, 2))
        self._set(ConfigResource.broker(broker), dict.fromkeys(keys, rate))
        self._set(ConfigResource.topic(topic), {key: self._listed(topic) for key in
                  (LEADER_THROTTLED_REPLICAS, FOLLOWER_THROTTLED_REPLICAS)})  # fmt: skip
        return f"broker {broker} {keys} {rate}, topic {topic}"

    def _unthrottle(self) -> str:
        throttled = sorted(owner for owner in self._twin.metadata.configs if owner.name)
        if not throttled:
            return "nothing"
        owner = self._chance.choice(throttled)
        self._admin.incremental_alter_configs({owner: list(map(ConfigChange.delete, cleared(owner)))}).raise_if_any()
        return str(owner)

    def _listed(self, topic: str) -> str:
        partitions = self._twin.metadata.topics[topic].partitions.values()
        pairs = [f"{one.topic_partition.partition}:{broker}" for one in partitions for broker in one.replicas]
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
        known = self._twin.metadata.brokers.get(broker)
        if known is None:
            return f"{partitions[0]}: broker {broker} is not registered"
        path = self._chance.choice(known.log_dirs).path
        batch = self._admin.alter_replica_log_dirs({TopicPartitionReplica(broker, *partitions[0]): path})
        return f"{partitions[0]} on {broker} to {path}: {[str(error) for error in batch.failed.values()]}"

    def _configure(self) -> str:
        topic = self._chance.choice(sorted(self._twin.metadata.topics))
        key, value = self._chance.choice(SETTINGS)
        self._set(ConfigResource.topic(topic), {key: value})
        return f"{topic} {key}={value}"

    def _produce(self) -> str:
        """What is written changes, without the operator's doing."""
        rate = self._chance.choice((0.0, 10_000.0, 2_000_000.0))
        partitions = self._some_partitions()
        for key in partitions:
            self._twin.replication.set_write_rate(key, rate)
        return f"{partitions} at {rate}"

    def _look(self) -> str:
        topics, moves = self._admin.describe_topics(), self._admin.list_partition_reassignments()
        return f"{sorted(topics.ok)} {sorted(moves)}"

    # --- drawing ----------------------------------------------------------------------------------------------

    def _some_partitions(self) -> list[TopicPartition]:
        every = sorted(one.topic_partition for topic in self._twin.metadata.topics.values()
                       for one in topic.partitions.values())  # fmt: skip
        return self._chance.sample(every, min(len(every), self._chance.randint(1, 3)))

    def _target(self) -> tuple[int, ...]:
        brokers = self._twin.processes.ids
        return tuple(self._chance.sample(brokers, self._chance.randint(1, min(4, len(brokers)))))


def cleared(owner: ConfigResource) -> tuple[str, ...]:
    """The throttles that somebody may have set on a topic or a broker."""
    if owner.type is ConfigResource.topic("").type:
        return LEADER_THROTTLED_REPLICAS, FOLLOWER_THROTTLED_REPLICAS
    return LEADER_THROTTLED_RATE, FOLLOWER_THROTTLED_RATE
