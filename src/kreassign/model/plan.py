"""Plans: target replicas of partitions, and Kafka's JSON files: reassignments, topics, elections (text ↔ model).

Errors in a text are worded as in Kafka's own tool (and Jackson, its parser), because operators
search for those words. Unknown fields and text after the closing brace are ignored, as there.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from kreassign.errors import InputError, MalformedPlan
from kreassign.model.cluster import TopicPartition, TopicPartitionReplica, listed_ids
from kreassign.model.documents import Json
from kreassign.model.kafka_json import array, decode, field, integer, json_list, json_object, string
from kreassign.model.text import shortened

ANY_LOG_DIR = "any"
_UTF_16 = "utf-16-be"


@dataclass(frozen=True, slots=True)
class PartitionAssignment:
    """The target replica list of one partition, in order; the first broker is the preferred leader.

    `log_dirs` has one directory per replica: an absolute path on that broker, or `ANY_LOG_DIR` where the broker
    may choose. Empty, every replica may go anywhere.
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
        """Brokers listed more than once, in order of their first mention."""
        return tuple(broker for broker, times in Counter(self.replicas).items() if times > 1)

    @property
    def wrong_in_itself(self) -> tuple[str, ...]:
        """Faults of a list that every cluster refuses: it is empty, or names a broker twice."""
        twice = tuple(f"broker {broker} is named more than once" for broker in self.duplicate_replicas)
        return twice if self.replicas else ("the list of replicas is empty",)


@dataclass(frozen=True, slots=True)
class Plan:
    """Target replica lists of many partitions, in the order of their source.

    A plan read from a file may list a partition twice: executing it must be refused, and displaying it
    takes the last mention, as Kafka's tool does.
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
        """Every broker in a replica list, ascending."""
        return tuple(sorted({broker for assignment in self.assignments for broker in assignment.replicas}))

    @property
    def replicas(self) -> dict[TopicPartition, tuple[int, ...]]:
        """The replica list per partition; the last mention of a partition counts."""
        return {assignment.topic_partition: assignment.replicas for assignment in self.assignments}

    @property
    def log_dirs(self) -> dict[TopicPartitionReplica, str]:
        """The directory by replica, for replicas with one; the last mention of a replica counts."""
        return {
            TopicPartitionReplica(broker, *assignment.topic_partition): log_dir
            for assignment in self.assignments
            for broker, log_dir in zip(assignment.replicas, assignment.log_dirs, strict=True)
            if log_dir != ANY_LOG_DIR
        }

    @property
    def duplicate_partitions(self) -> tuple[TopicPartition, ...]:
        """Partitions listed more than once, in order of their first mention."""
        times = Counter(assignment.topic_partition for assignment in self.assignments)
        return tuple(partition for partition, count in times.items() if count > 1)


def absent(name: TopicPartition, topics: Collection[str]) -> str:
    """Why a plan cannot name a partition that the cluster does not have; `topics` are those that it has."""
    what = "such partition" if name.topic in topics else f"topic {name.topic}"
    return f"there is no {what}: leave it out, or plan again"


def not_live(broker: int, live: Iterable[int]) -> str:
    """Why a plan cannot name a broker that is down or does not exist, which a cluster does not distinguish."""
    return f"broker {broker} is not live; live brokers are {listed_ids(live) or 'none'}"


def of_another_cluster(topics: Sequence[str], here: Collection[str], cluster_id: str = "") -> str | None:
    """Say that none of a plan's topics is in a cluster, in one sentence; None if one is, or if the plan has none."""
    if not topics or not set(topics).isdisjoint(here):
        return None
    what = f"its topic {shortened(topics[0])} is not" if len(topics) == 1 else f"none of its {len(topics):,} topics is"
    return f"{what} here{f' (cluster id {cluster_id})' if cluster_id else ''}; check which cluster it was made for"


def check_log_dirs(partition: TopicPartition, replicas: tuple[int, ...], log_dirs: tuple[str, ...]) -> None:
    """Raise `InputError`, in the words of Kafka's tool, unless every replica has one directory."""
    if len(log_dirs) != len(replicas):
        raise InputError(
            f"Size of replicas list {_java_list(replicas)} is different from size of log dirs list "
            f"{_java_list(log_dirs)} for partition {partition}"
        )


def utf16_order(text: str) -> bytes:
    """Sort key that orders strings by UTF-16 code units, as Java does."""
    return text.encode(_UTF_16, "surrogatepass")


def partition_order(partition: TopicPartition) -> tuple[bytes, int]:
    """Sort key for partitions: topic in Kafka's order of strings, then number."""
    return utf16_order(partition.topic), partition.partition


def _java_list(items: tuple[int, ...] | tuple[str, ...]) -> str:
    return f"[{', '.join(map(str, items))}]"


# Reassignment files and topics files.

PLAN_VERSION = 1
_COMPACT = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)


def parse_plan(text: str) -> Plan:
    """Parse a reassignment file: every entry in its order, duplicates too.

    Raises `MalformedPlan`, or `InputError` for directories that do not match the replicas.
    """
    document = json_object(decode(text))
    _check_version(document)
    entries = array(document.get("partitions", []))
    return Plan(tuple(_assignment(json_object(entry)) for entry in entries))


def format_plan(plan: Plan, cluster_id: str | None = None) -> str:
    """Format a reassignment file: compact, sorted by topic and partition, a directory for every replica.

    The cluster for which it was made is a field of its own, which Kafka's tools ignore.
    """
    assignments = sorted(plan.assignments, key=lambda assignment: partition_order(assignment.topic_partition))
    partitions = [
        {
            "topic": assignment.topic_partition.topic,
            "partition": assignment.topic_partition.partition,
            "replicas": assignment.replicas,
            "log_dirs": assignment.log_dirs,
        }
        for assignment in assignments
    ]
    origin = {} if cluster_id is None else {"cluster_id": cluster_id}
    return _COMPACT.encode({"version": PLAN_VERSION, **origin, "partitions": partitions})


def parse_topics(text: str) -> tuple[str, ...]:
    """Parse a topics file: the names in their order, duplicates too.

    Raises `MalformedPlan`; for text that is not JSON the message is not the parser's, unlike for a plan.
    """
    try:
        decoded = decode(text)
    except MalformedPlan as error:
        raise MalformedPlan("The input string is not a valid JSON") from error
    document = json_object(decoded)
    _check_version(document)
    return tuple(string(field(json_object(entry), "topic")) for entry in array(document.get("topics", [])))


def _check_version(document: dict[str, Json]) -> None:
    version = integer(document.get("version", PLAN_VERSION))
    if version != PLAN_VERSION:
        raise MalformedPlan(f"Not supported version field value {version}")


def _assignment(fields: dict[str, Json]) -> PartitionAssignment:
    partition = TopicPartition(string(field(fields, "topic")), integer(field(fields, "partition")))
    replicas = tuple(map(integer, json_list(field(fields, "replicas"))))
    if "log_dirs" not in fields:
        return PartitionAssignment(partition, replicas)
    log_dirs = tuple(map(string, json_list(fields["log_dirs"])))
    check_log_dirs(partition, replicas, log_dirs)
    return PartitionAssignment(partition, replicas, log_dirs)


# Files of partitions for a leader election.


def parse_election(text: str, *, integer_name: str = "Integer", missing: str, empty: str) -> tuple[TopicPartition, ...]:
    """The partitions of an election file in their order; raises `MalformedPlan` for duplicates.

    `missing` is the message for a file without partitions, `empty` the one for a text that is not JSON;
    `integer_name` is the name of a number in the message about another type.
    """
    if not text:
        raise MalformedPlan(empty)
    try:
        document = decode(text)
    except MalformedPlan as error:
        raise MalformedPlan(empty) from error
    fields = json_object(document)
    if "partitions" not in fields:
        raise MalformedPlan(missing)
    entries = [json_object(entry) for entry in array(fields["partitions"])]
    return tuple(
        TopicPartition(string(field(entry, "topic")), integer(field(entry, "partition"), integer_name))
        for entry in entries
    )


def duplicates(partitions: tuple[TopicPartition, ...]) -> tuple[TopicPartition, ...]:
    """Partitions listed more than once, sorted."""
    return tuple(sorted(key for key, count in Counter(partitions).items() if count > 1))
