"""Decisions that differ in ZooKeeper mode of Kafka 3.9: refusals, new partitions, phases of a move.

Requests and metadata in; answers, records and effects out, which the controller puts into effect. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from random import Random

from kreassign.model import NO_LEADER, ElectionType, OngoingReassignment, Reassignment, TopicPartition, error_codes
from kreassign.model.cluster import without
from kreassign.twin.controller.decision import (
    DONE,
    FAILED,
    TIMED_OUT,
    ControllerContext,
    Decision,
    Outcome,
    has_expired,
    with_default_text,
)
from kreassign.twin.controller.leader_and_isr import ElectLeaders, LeadersElected, elections_refused
from kreassign.twin.controller.partition_change import PartitionUpdate, change_of
from kreassign.twin.controller.reassignments import AlterReassignments, TopicOutcomes, each_once
from kreassign.twin.controller.topics import (
    BY_DEFAULT,
    CreatePartitions,
    CreateTopics,
    MorePartitions,
    TopicCreation,
    WantedTopic,
    create_partitions,
    create_topics,
)
from kreassign.twin.metadata import PartitionChanged, PartitionState
from kreassign.twin.zookeeper.control_requests import PartitionMessage, message_of

# Refusals, and their messages.

NO_PARTITION = Outcome(error_codes.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")
WRONG_CONTROLLER = with_default_text(error_codes.NOT_CONTROLLER)
_SMALL_SET = 4


def targets_by_partition(command: AlterReassignments) -> dict[TopicPartition, tuple[int, ...] | None]:
    """The target of each partition; of two targets of one partition the last counts."""
    return {
        TopicPartition(entry.topic, target.partition): target.replicas
        for entry in command.topics
        for target in entry.targets
    }


def by_topic(outcomes: Iterable[tuple[TopicPartition, Outcome]]) -> tuple[TopicOutcomes, ...]:
    """The outcomes by topic; a topic without any is left out."""
    topics: dict[str, list[tuple[int, Outcome]]] = {}
    for (topic, partition), outcome in outcomes:
        topics.setdefault(topic, []).append((partition, outcome))
    return tuple(TopicOutcomes(topic, tuple(found)) for topic, found in topics.items())


def check_target(target: tuple[int, ...], sources: tuple[int, ...], live: Iterable[int]) -> Outcome:
    """Check a target: only brokers that were no replicas before the move must be alive."""
    if not target:
        return _badly_assigned("Empty replica list specified in partition reassignment.")
    if len(set(target)) != len(target):
        return _badly_assigned(f"Duplicate replica ids in partition reassignment replica list: {_scala_buffer(target)}")
    if min(target) < 0:
        return _badly_assigned(f"Invalid broker id in replica list: {_scala_buffer(target)}")
    alive = frozenset(live)
    adding = Reassignment(sources, target).adding_in_order
    if not alive.issuperset(adding):
        text = f"Replica list: {_scala_buffer(adding)}, live broker list: {_scala_set(alive)}"
        return _badly_assigned(f"Replica assignment has brokers that are not alive. {text}")
    return DONE


def elections_to_hold(command: ElectLeaders) -> ElectLeaders:
    """The elections of a request: of each partition one, whatever time the request has."""
    topics = None if command.topics is None else each_once(command.topics)
    return replace(command, topics=topics, timeout_ms=_ENOUGH_MS)


def election_response(command: ElectLeaders, answer: LeadersElected) -> LeadersElected:
    """The response to elections with the messages of this mode; a topic without an outcome is left out.

    The controller waits until its own broker shows the new leaders, and those that it does not show in time are
    REQUEST_TIMED_OUT.
    """
    if command.election_type not in list(ElectionType):
        return elections_refused(command, FAILED)
    done = TIMED_OUT if has_expired(command.timeout_ms) else DONE
    topics = tuple(
        replace(
            one,
            outcomes=tuple(
                (index, _with_message(one.topic, index, outcome) if outcome.is_failure else done)
                for index, outcome in one.outcomes
            ),
        )
        for one in answer.topics
        if one.outcomes
    )
    return replace(answer, topics=topics)


def _with_message(topic: str, index: int, outcome: Outcome) -> Outcome:
    if outcome.code == error_codes.UNKNOWN_TOPIC_OR_PARTITION:
        return NO_PARTITION
    if outcome.code == error_codes.PREFERRED_LEADER_NOT_AVAILABLE:
        strategy = "PreferredReplicaPartitionLeaderElectionStrategy"
        text = f"Failed to elect leader for partition {topic}-{index} under strategy {strategy}"
        return Outcome(outcome.code, text)
    return outcome


def _badly_assigned(text: str) -> Outcome:
    return Outcome(error_codes.INVALID_REPLICA_ASSIGNMENT, text)


def _scala_buffer(brokers: Iterable[int]) -> str:
    return f"ArrayBuffer({_comma(brokers)})"


def _scala_set(brokers: frozenset[int]) -> str:
    """Format a set as Scala does: up to four members have a class of their own."""
    kind = "Set" if len(brokers) <= _SMALL_SET else "HashSet"
    return f"{kind}({_comma(sorted(brokers))})"


def _comma(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))


# Requests to create topics and partitions: the differences of Kafka 3.9 in ZooKeeper mode.
#
# There brokers write the znodes themselves: a request with an expired time-out is executed all the same and only then
# answered with REQUEST_TIMED_OUT, and new replicas go to live brokers.

_ENOUGH_MS = 60_000


def create_topics_in_zookeeper(
    context: ControllerContext, command: CreateTopics, random: Random
) -> Decision[tuple[TopicCreation, ...]]:
    """Create the valid topics, like `create_topics`."""
    names = Counter(topic.name for topic in command.topics)
    refusals: dict[str, Outcome] = {
        name: Outcome(error_codes.INVALID_REQUEST, "Found multiple entries for this topic.")
        for name, count in names.items()
        if count > 1
    }
    for topic in command.topics:
        if topic.name not in refusals and topic.name not in command.denied:
            refusals |= _named(topic.name, _unfit_topic(context, topic))
    fit = tuple(topic for topic in command.topics if topic.name not in refusals)
    decision = create_topics(context, replace(command, topics=fit, timeout_ms=_ENOUGH_MS), random)
    created = decision.answer
    if has_expired(command.timeout_ms) and not command.validate_only:
        created = tuple(one if one.outcome.is_failure else TopicCreation(one.name, TIMED_OUT) for one in created)
    refused = (TopicCreation(name, refusal) for name, refusal in refusals.items())
    return Decision(decision.records, (*created, *refused))


def create_partitions_in_zookeeper(
    context: ControllerContext, command: CreatePartitions, random: Random
) -> Decision[tuple[tuple[str, Outcome], ...]]:
    """Add partitions to the valid topics, like `create_partitions`."""
    counts = Counter(wanted.topic for wanted in command.topics)
    refusals: dict[str, Outcome] = {
        name: Outcome(error_codes.INVALID_REQUEST, "Duplicate topic in request.")
        for name, count in counts.items()
        if count > 1
    }
    for wanted in command.topics:
        if wanted.topic not in refusals:
            refusals |= _named(wanted.topic, _unfit_growth(context, wanted))
    fit = tuple(wanted for wanted in command.topics if wanted.topic not in refusals)
    decision = create_partitions(context, replace(command, topics=fit, timeout_ms=_ENOUGH_MS), random)
    added = decision.answer
    if has_expired(command.timeout_ms) and not command.validate_only:
        added = tuple((name, outcome if outcome.is_failure else TIMED_OUT) for name, outcome in added)
    return Decision(decision.records, (*refusals.items(), *added))


def _named(name: str, refusal: Outcome | None) -> dict[str, Outcome]:
    return {} if refusal is None else {name: refusal}


def _unfit_topic(context: ControllerContext, topic: WantedTopic) -> Outcome | None:
    if topic.name in context.metadata.topics:
        return None  # Refused with the same message in both modes.
    if topic.assignments:
        return _unfit_lists(topic)
    server = context.server
    count = server.partition_count if topic.partition_count == BY_DEFAULT else topic.partition_count
    factor = server.replication_factor if topic.replication_factor == BY_DEFAULT else topic.replication_factor
    if count <= 0:
        return Outcome(error_codes.INVALID_PARTITIONS, "Number of partitions must be larger than 0.")
    if factor <= 0:
        return Outcome(error_codes.INVALID_REPLICATION_FACTOR, "Replication factor must be larger than 0.")
    return _too_large(context, factor)


def _too_large(context: ControllerContext, factor: int) -> Outcome | None:
    alive = sum(broker.is_active for broker in context.metadata.brokers.values())
    if factor <= alive:
        return None
    return Outcome(
        error_codes.INVALID_REPLICATION_FACTOR, f"Replication factor: {factor} larger than available brokers: {alive}."
    )


def _unfit_lists(topic: WantedTopic) -> Outcome | None:
    if (topic.partition_count, topic.replication_factor) != (BY_DEFAULT, BY_DEFAULT):
        text = "Both numPartitions or replicationFactor and replicasAssignments were set. "
        return Outcome(error_codes.INVALID_REQUEST, f"{text}Both cannot be used at the same time.")
    lists = dict(topic.assignments)
    if len({len(replicas) for replicas in lists.values()}) != 1:
        return _badly_assigned("All partitions should have the same number of replicas")
    if any(len(set(replicas)) != len(replicas) for replicas in lists.values()):
        shown = ", ".join(f"{number} -> {_scala_buffer(replicas)}" for number, replicas in lists.items())
        return _badly_assigned(f"Duplicate replica assignment found: HashMap({shown})")
    return None


def _unfit_growth(context: ControllerContext, wanted: MorePartitions) -> Outcome | None:
    topic = context.metadata.topics.get(wanted.topic)
    if topic is None:
        return Outcome(error_codes.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{wanted.topic}' does not exist.")
    if any(partition.is_reassigning for partition in topic.partitions.values()):
        return None  # Refused by `create_partitions`, with the message of this mode.
    present, factor = len(topic.partitions), len(topic.partitions[0].replicas)
    if wanted.total_count < present:
        text = f"Topic currently has {present} partitions, which is higher than the requested {wanted.total_count}."
        return Outcome(error_codes.INVALID_PARTITIONS, text)
    if wanted.total_count == present:
        return Outcome(error_codes.INVALID_PARTITIONS, f"Topic already has {present} partitions.")
    if wanted.assignments is None:
        return _too_large(context, factor)
    return _unfit_additions(context, wanted.assignments, present, wanted.total_count - present, factor)


def _unfit_additions(
    context: ControllerContext, lists: Sequence[tuple[int, ...]], present: int, more: int, factor: int
) -> Outcome | None:
    alive = {broker.broker_id for broker in context.metadata.brokers.values() if broker.is_active}
    unknown = [broker for broker in dict.fromkeys(chain.from_iterable(lists)) if broker not in alive]
    if unknown:
        return _badly_assigned(f"Unknown broker(s) in replica assignment: {_comma(unknown)}.")
    if len(lists) != more:
        return _badly_assigned(f"Increasing the number of partitions by {more} but {len(lists)} assignments provided.")
    for number, replicas in enumerate(lists, present):
        if not replicas:
            return _badly_assigned(f"Cannot have replication factor of 0 for partition id {number}.")
        if len(set(replicas)) != len(replicas):
            return _badly_assigned(
                f"Duplicate brokers not allowed in replica assignment: {_comma(replicas)} for partition id {number}."
            )
    odd = {number: len(replicas) for number, replicas in enumerate(lists, present) if len(replicas) != factor}
    if not odd:
        return None
    return _badly_assigned(
        f"Inconsistent replication factor between partitions, partition 0 has {factor} while partitions "
        f"[{_comma(odd)}] have replication factors [{_comma(odd.values())}], respectively."
    )


# Phases of a move in ZooKeeper mode (KIP-455), in the order of the controller.
#
# U writes the new lists and stops replicas that an override dropped. A, while replicas are missing in the ISR, sends
# the lists to all brokers under a new leader epoch. B, once the whole target is in sync, moves the leader into the
# target, removes the removed replicas from the ISR and their disks, and only then shortens the topic's znode: so a
# successor that takes over in between still finds the remaining work, and can repeat any phase.


@dataclass(frozen=True, slots=True)
class WriteLists:
    """Write the lists of a partition into the znode of its topic."""

    topic_partition: TopicPartition
    lists: OngoingReassignment


@dataclass(frozen=True, slots=True)
class WriteState:
    """Write leader and ISR into the state znode of a partition, then inform brokers of the record."""

    record: PartitionChanged


@dataclass(frozen=True, slots=True)
class SendMessages:
    """Send messages about a partition, and stop replicas to be removed, all at once."""

    steps: tuple[PartitionMessage, ...]


@dataclass(frozen=True, slots=True)
class RemoveEntry:
    """Remove a partition from the reassignment znode, if its entry has these replicas."""

    topic_partition: TopicPartition
    replicas: tuple[int, ...]


Effect = WriteLists | WriteState | SendMessages | RemoveEntry


@dataclass(frozen=True, slots=True)
class WantedMove:
    """A partition to be moved: as the brokers know it, its lists in ZooKeeper, and the wanted ones."""

    partition: PartitionState
    present: OngoingReassignment
    wanted: OngoingReassignment

    @property
    def is_complete(self) -> bool:
        """True if there is nothing to move, or the whole target is in sync."""
        is_idle = not self.wanted.adding and not self.wanted.removing
        return is_idle or set(self.wanted.target) <= set(self.partition.isr)


def move_to(sources: tuple[int, ...], target: tuple[int, ...]) -> OngoingReassignment:
    """The lists of a move from the original replicas; the target comes first and in its order, each replica once."""
    replicas = tuple(dict.fromkeys((*target, *sources)))
    return OngoingReassignment(replicas, without(replicas, sources), without(replicas, target))


def effects_of(context: ControllerContext, move: WantedMove, controller_epoch: int) -> tuple[Effect, ...]:
    """All effects that are due for a move: U if the lists are new, and then A or B."""
    work = _Work(context, move.partition, controller_epoch)
    unneeded = without(move.present.replicas, move.wanted.replicas)
    if move.present != move.wanted:
        work.effects.append(WriteLists(move.partition.topic_partition, move.wanted))
        work.give_up(unneeded, work.remove(unneeded, move.wanted), move.wanted)
    if move.is_complete:
        _finish(work, move.wanted)
    else:
        _begin(work, move.wanted)
    return tuple(work.effects)


def _begin(work: _Work, wanted: OngoingReassignment) -> None:
    """Phase A: send the lists to the replicas under a new leader epoch."""
    work.change(PartitionUpdate(replicas=wanted.replicas, adding=wanted.adding, removing=wanted.removing))
    settled = work.step(wanted, without(wanted.replicas, wanted.adding))
    added = replace(work.step(wanted, wanted.adding), is_new=True)
    work.tell(settled, *(added,) * bool(wanted.adding))
    for broker in wanted.adding:
        work.tell(replace(added, recipients=(broker,)))


def _finish(work: _Work, wanted: OngoingReassignment) -> None:
    """Phase B: complete the move."""
    target = wanted.target
    final = OngoingReassignment(target, (), ())
    in_sync = tuple(broker for broker in wanted.removing if broker in work.partition.isr)
    update = PartitionUpdate(replicas=target, adding=(), removing=(), isr=without(work.partition.isr, in_sync))
    leaving: tuple[PartitionMessage, ...] = ()
    if in_sync:
        work.lead_within(update)
        work.tell(work.step(final, target))
        leaving = (*work.remove(in_sync[:-1], final), work.stopping(final, in_sync[-1:], delete=False))
    work.change(update)
    if not in_sync:
        work.tell(work.step(final, target))
    work.give_up(wanted.removing, leaving, final)
    work.effects.append(WriteLists(work.partition.topic_partition, final))
    work.effects.append(RemoveEntry(work.partition.topic_partition, target))
    work.tell(work.step(final, ()))


@dataclass(slots=True)
class _Work:
    """A partition while its effects are collected; each effect starts from the state after the one before."""

    context: ControllerContext
    partition: PartitionState
    controller_epoch: int
    effects: list[Effect] = field(default_factory=list)

    def change(self, update: PartitionUpdate) -> None:
        """Apply an update under a new leader epoch, even if the leader stays."""
        key = self.partition.topic_partition
        change = change_of(self.context, self.partition, update) or PartitionChanged(key)
        self._write(change)

    def lead_within(self, update: PartitionUpdate) -> None:
        """Elect the leader that the update would elect, and change nothing else."""
        change = change_of(self.context, self.partition, update)
        self._write(PartitionChanged(self.partition.topic_partition, leader=change.leader if change else None))

    def remove(self, brokers: tuple[int, ...], lists: OngoingReassignment) -> tuple[PartitionMessage, ...]:
        """Remove brokers from the ISR one by one, each under a new leader epoch; return the messages that stop them."""
        leaving = []
        for broker in brokers:
            leaving.append(self.stopping(lists, (broker,), delete=False))
            isr = without(self.partition.isr, (broker,))
            if broker in self.partition.isr and isr:
                leader = NO_LEADER if broker == self.partition.leader else self.partition.leader
                self._write(PartitionChanged(self.partition.topic_partition, isr=isr, leader=leader))
        return tuple(leaving)

    def give_up(
        self, brokers: tuple[int, ...], leaving: tuple[PartitionMessage, ...], lists: OngoingReassignment
    ) -> None:
        """Inform the others that brokers are `leaving` the ISR, and then let these delete their replicas."""
        if brokers:
            stopped = {broker for step in leaving for broker, _ in step.stopped}
            late = (self.stopping(lists, (one,), delete=False) for one in brokers if one not in stopped)
            self.tell(*leaving, *late, self.step(lists, lists.replicas))
            self.tell(self.stopping(lists, brokers, delete=True))

    def stopping(self, lists: OngoingReassignment, brokers: tuple[int, ...], *, delete: bool) -> PartitionMessage:
        """The message that stops the replicas of these brokers."""
        return replace(self.step(lists, ()), stopped=tuple((broker, delete) for broker in brokers))

    def tell(self, *steps: PartitionMessage) -> None:
        """Send these messages at once."""
        self.effects.append(SendMessages(steps))

    def step(self, lists: OngoingReassignment, told: tuple[int, ...]) -> PartitionMessage:
        """The message about the partition as it is now, with these lists, for these brokers."""
        step = message_of(self.context.metadata, self.partition, self.controller_epoch, told)
        return replace(step, replicas=lists.replicas, adding=lists.adding, removing=lists.removing)

    def _write(self, change: PartitionChanged) -> None:
        leader = self.partition.leader if change.leader is None else change.leader
        record = replace(change, leader=leader)
        self.effects.append(WriteState(record))
        self.partition = self.partition.changed_by(record)
