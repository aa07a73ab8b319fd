"""Where partitions shall go: the value behind Kafka's reassignment JSON."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from kreassign.errors import InputError
from kreassign.model.partition import TopicPartition, TopicPartitionReplica

ANY_LOG_DIR = "any"
_UTF_16 = "utf-16-be"


@dataclass(frozen=True, slots=True)
class PartitionAssignment:
    """The target replica list of one partition, in order; the first broker is the preferred leader.

    `log_dirs` names one directory per replica: an absolute path on that broker, or `ANY_LOG_DIR` where the broker
    may choose. Left out, every replica may go anywhere.
    """

    topic_partition: TopicPartition
    replicas: tuple[int, ...]
    log_dirs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.log_dirs:
            object.__setattr__(self, "log_dirs", (ANY_LOG_DIR,) * len(self.replicas))
        check_log_dirs(self.topic_partition, self.replicas, self.log_dirs)

    def __str__(self) -> str:
        return f"{self.topic_partition}: {','.join(map(str, self.replicas))}"

    @property
    def duplicate_replicas(self) -> tuple[int, ...]:
        """Brokers named more than once, in order of their first mention."""
        return tuple(broker for broker, times in Counter(self.replicas).items() if times > 1)


@dataclass(frozen=True, slots=True)
class Plan:
    """Target replica lists of many partitions, in the order in which they were written down.

    A plan read from a file may name a partition twice; whoever executes it has to refuse that, whoever only
    looks at it takes the last mention, as Kafka's tool does.
    """

    assignments: tuple[PartitionAssignment, ...] = ()

    def __len__(self) -> int:
        return len(self.assignments)

    @property
    def topics(self) -> tuple[str, ...]:
        """Names of the topics, each once, in Kafka's order of strings."""
        return tuple(sorted({assignment.topic_partition.topic for assignment in self.assignments}, key=utf16_order))

    @property
    def brokers(self) -> tuple[int, ...]:
        """Every broker named in a replica list, ascending."""
        return tuple(sorted({broker for assignment in self.assignments for broker in assignment.replicas}))

    @property
    def replicas(self) -> dict[TopicPartition, tuple[int, ...]]:
        """The replica list per partition; the last mention of a partition counts."""
        return {assignment.topic_partition: assignment.replicas for assignment in self.assignments}

    @property
    def log_dirs(self) -> dict[TopicPartitionReplica, str]:
        """The directory per replica that has one; the last mention of a replica counts."""
        return {
            TopicPartitionReplica(broker, *assignment.topic_partition): log_dir
            for assignment in self.assignments
            for broker, log_dir in zip(assignment.replicas, assignment.log_dirs, strict=True)
            if log_dir != ANY_LOG_DIR
        }

    @property
    def duplicate_partitions(self) -> tuple[TopicPartition, ...]:
        """Partitions named more than once, in order of their first mention."""
        times = Counter(assignment.topic_partition for assignment in self.assignments)
        return tuple(partition for partition, count in times.items() if count > 1)


def check_log_dirs(partition: TopicPartition, replicas: tuple[int, ...], log_dirs: tuple[str, ...]) -> None:
    """Raise `InputError`, in the words of Kafka's tool, unless every replica has one directory."""
    if len(log_dirs) != len(replicas):
        raise InputError(
            f"Size of replicas list {_java_list(replicas)} is different from size of log dirs list "
            f"{_java_list(log_dirs)} for partition {partition}"
        )


def utf16_order(text: str) -> bytes:
    """Sort key that puts strings in the order of their UTF-16 code units, which is Java's."""
    return text.encode(_UTF_16, "surrogatepass")


def partition_order(partition: TopicPartition) -> tuple[bytes, int]:
    """Sort key for partitions: topic in Kafka's order of strings, then number."""
    return utf16_order(partition.topic), partition.partition


def _java_list(items: tuple[int, ...] | tuple[str, ...]) -> str:
    return f"[{', '.join(map(str, items))}]"
