"""`kafka-topics --alter --replication-factor` and `--alter --replica-assignment`: decisions and messages.

KIP-179 proposed both; Kafka never shipped them. Unlike everything else that this tool does they copy data, for minutes
to days after the tool has ended, so they print what they copy, and how to watch it and roll back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kreassign.kafka_tools.failures import ToolError
from kreassign.kafka_tools.reassign import messages
from kreassign.model import Reassignment, TopicPartition
from kreassign.model.amount import format_amount
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.plan_json import format_plan
from kreassign.model.topic_changes import (
    Refusal,
    TopicsView,
    decide_reassignments,
    decide_replication_factors,
    min_in_sync_undercut,
)

Replicas = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ReplicaChange:
    """A partition that gets another replica list; `size_bytes` is that of one copy, 0 where it is unknown."""

    topic_partition: TopicPartition
    current: Replicas
    target: Replicas
    size_bytes: int

    @property
    def added(self) -> Replicas:
        """Brokers that get a copy."""
        return Reassignment(self.current, self.target).adding_in_order

    @property
    def removed(self) -> Replicas:
        """Brokers that lose theirs."""
        return Reassignment(self.current, self.target).removing_in_order

    def __str__(self) -> str:
        current, target = (",".join(map(str, replicas)) for replicas in (self.current, self.target))
        return f"{self.topic_partition}: {current} -> {target}"


def by_factor(view: TopicsView, names: Iterable[str], factor: int, *, is_forced: bool) -> tuple[ReplicaChange, ...]:
    """What gives every partition of these topics so many replicas. Raises `ToolError` with all that is refused."""
    wanted = [(name, factor) for name in names]
    decided = decide_replication_factors(view, wanted, may_undercut_min_in_sync=is_forced)
    _raise_refusals(decided)
    return _changes(
        view,
        {
            key: replicas
            for targets in decided.values()
            if not isinstance(targets, Refusal)
            for key, replicas in targets.items()
        },
    )


def by_assignment(
    view: TopicsView, names: Iterable[str], assignment: tuple[Replicas, ...], *, is_forced: bool
) -> tuple[ReplicaChange, ...]:
    """What gives these topics the replicas listed, one list for each partition. Raises `ToolError` as `by_factor`."""
    topics = [view.topics[name] for name in names if name in view.topics]
    for topic in topics:
        if len(topic.partitions) != len(assignment):
            raise ToolError(
                f"Topic {topic.name} has {len(topic.partitions)} partition(s), but the replica assignment lists "
                f"{len(assignment)}. Nothing was changed. List the replicas of every partition, even of those that "
                "do not change; to add partitions, give --partitions too."
            )
    wanted = {
        entry.topic_partition: replicas
        for topic in topics
        for entry, replicas in zip(topic.partitions, assignment, strict=True)
    }
    decided = decide_reassignments(view, wanted.items())
    undercut = {} if is_forced else min_in_sync_undercut(view, wanted)
    _raise_refusals({**decided, **undercut})
    return _changes(view, wanted)


def _raise_refusals(decided: Mapping[TopicPartition, object] | Mapping[str, object]) -> None:
    reasons = [f"{item}: {found.message}" for item, found in decided.items() if isinstance(found, Refusal)]
    if reasons:
        raise ToolError("\n".join(["Nothing was changed, because of", *reasons]))


def _changes(view: TopicsView, targets: Mapping[TopicPartition, Replicas]) -> tuple[ReplicaChange, ...]:
    """In the order of partitions; those that are so already are not among them."""
    return tuple(
        ReplicaChange(key, current, targets[key], view.sizes_bytes.get(key, 0))
        for key in sorted(targets)
        if (current := view.topics[key.topic].partitions[key.partition].replicas) != targets[key]
    )


def announced(changes: tuple[ReplicaChange, ...]) -> str:
    """The rollback plan, each partition that changes, and what that copies and deletes."""
    current = Plan(tuple(PartitionAssignment(change.topic_partition, change.current) for change in changes))
    copies = sum(len(change.added) for change in changes)
    deletions = sum(len(change.removed) for change in changes)
    copied = format_amount(sum(len(change.added) * change.size_bytes for change in changes), "B")
    freed = format_amount(sum(len(change.removed) * change.size_bytes for change in changes), "B")
    total = (
        f"Replicas of {len(changes)} partition(s) change: {copies} to be copied ({copied}), "
        f"{deletions} to be deleted ({freed})."
    )
    return "\n".join([messages.rollback(format_plan(current)), "", total, *map(str, changes)])


NOTHING_TO_CHANGE = "Nothing to change: every partition has these replicas already."
ONLY_CHECKED = "Nothing was changed. Without --dry-run this would be started."


def next_steps(bootstrap_server: str) -> str:
    """What to do after the tool has ended."""
    tool = f"kafka-reassign-partitions --bootstrap-server {bootstrap_server}"
    return (
        "Data is copied in the background, without a throttle.\n"
        f"To watch it:  {tool} --progress\n"
        "To go back, while it is under way or afterwards, save the JSON above as FILE:\n"
        f"              {tool} --execute --additional --cancel-first --reassignment-json-file FILE"
    )
