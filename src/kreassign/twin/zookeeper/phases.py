"""The phases of a move in ZooKeeper mode (KIP-455): what the controller does, in which order.

U writes the new lists and stops replicas that an override dropped. A, while replicas are missing in the ISR, sends the
lists to all brokers under a new leader epoch. B, once the whole target is in sync, moves the leader into the target,
takes the removed replicas out of the ISR and off their disks, and only then shortens the topic's znode: so a
successor that takes over in between still finds what is to be done, and can repeat any phase.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kreassign.model import NO_LEADER, OngoingReassignment, TopicPartition
from kreassign.twin.controller.changes import PartitionUpdate, change_of
from kreassign.twin.controller.completion import without
from kreassign.twin.controller.context import ControllerContext
from kreassign.twin.metadata.records import PartitionChanged
from kreassign.twin.metadata.state import PartitionState
from kreassign.twin.zookeeper.control_messages import PartitionMessage, message_of


@dataclass(frozen=True, slots=True)
class WriteLists:
    """Write the lists of a partition into the znode of its topic."""

    topic_partition: TopicPartition
    lists: OngoingReassignment


@dataclass(frozen=True, slots=True)
class WriteState:
    """Write leader and ISR into the state znode of a partition; then brokers know of the record."""

    record: PartitionChanged


@dataclass(frozen=True, slots=True)
class SendMessages:
    """Send messages about a partition, and stop replicas that are to be removed; all at once."""

    steps: tuple[PartitionMessage, ...]


@dataclass(frozen=True, slots=True)
class RemoveEntry:
    """Remove a partition from the reassignment znode, if it is there with these replicas."""

    topic_partition: TopicPartition
    replicas: tuple[int, ...]


Effect = WriteLists | WriteState | SendMessages | RemoveEntry


@dataclass(frozen=True, slots=True)
class Move:
    """A partition to be moved: as the brokers know it, its lists in ZooKeeper, and the wanted ones."""

    partition: PartitionState
    present: OngoingReassignment
    wanted: OngoingReassignment

    @property
    def is_complete(self) -> bool:
        """Whether nothing is to be moved, or the whole target is in sync."""
        is_idle = not self.wanted.adding and not self.wanted.removing
        return is_idle or set(self.wanted.target) <= set(self.partition.isr)


def move_to(sources: tuple[int, ...], target: tuple[int, ...]) -> OngoingReassignment:
    """The lists of a move from the original replicas; the target comes first and in its order, each replica once."""
    replicas = tuple(dict.fromkeys((*target, *sources)))
    return OngoingReassignment(replicas, without(replicas, sources), without(replicas, target))


def effects_of(context: ControllerContext, move: Move, controller_epoch: int) -> tuple[Effect, ...]:
    """Everything to be done for a move now: U if the lists are new, and then A or B."""
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
    """Phase A."""
    work.change(PartitionUpdate(replicas=wanted.replicas, adding=wanted.adding, removing=wanted.removing))
    settled = work.step(wanted, without(wanted.replicas, wanted.adding))
    added = replace(work.step(wanted, wanted.adding), is_new=True)
    work.tell(settled, *(added,) * bool(wanted.adding))
    for broker in wanted.adding:
        work.tell(replace(added, recipients=(broker,)))


def _finish(work: _Work, wanted: OngoingReassignment) -> None:
    """Phase B."""
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
    """A partition while its effects are put together: each of them starts from what the one before has made."""

    context: ControllerContext
    partition: PartitionState
    controller_epoch: int
    effects: list[Effect]

    def __init__(self, context: ControllerContext, partition: PartitionState, controller_epoch: int) -> None:
        self.context = context
        self.partition = partition
        self.controller_epoch = controller_epoch
        self.effects = []

    def change(self, update: PartitionUpdate) -> None:
        """Apply an update under a new leader epoch, whether the leader changes or not."""
        key = self.partition.topic_partition
        change = change_of(self.context, self.partition, update) or PartitionChanged(key)
        self._write(change)

    def lead_within(self, update: PartitionUpdate) -> None:
        """Elect the leader that the update would elect, and change nothing else."""
        change = change_of(self.context, self.partition, update)
        self._write(PartitionChanged(self.partition.topic_partition, leader=change.leader if change else None))

    def remove(self, brokers: tuple[int, ...], lists: OngoingReassignment) -> tuple[PartitionMessage, ...]:
        """Take brokers out of the ISR one by one, each under a new leader epoch; how each of them is stopped before."""
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
        """The partition as it is now, with these lists, for these brokers."""
        step = message_of(self.context.metadata, self.partition, self.controller_epoch, told)
        return replace(step, replicas=lists.replicas, adding=lists.adding, removing=lists.removing)

    def _write(self, change: PartitionChanged) -> None:
        leader = self.partition.leader if change.leader is None else change.leader
        record = replace(change, leader=leader)
        self.effects.append(WriteState(record))
        self.partition = self.partition.changed_by(record)
