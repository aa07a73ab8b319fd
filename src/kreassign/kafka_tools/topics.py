"""`kafka-topics`: replaces the tool of that name in Kafka 4.4.0.

Same options, texts, streams and exit codes; docs/reference/kafka-topics.md lists the differences with reasons.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from kreassign import model
from kreassign.admin import AdminClient, client_settings, read_properties
from kreassign.admin.settings import ClientSettings
from kreassign.errors import ClusterError, InputError, Rejected, Unsupported
from kreassign.kafka_tools import command_line, topic_options
from kreassign.kafka_tools.reassign import messages
from kreassign.model.cluster import ConfigSource, listed_ids
from kreassign.model.error_codes import UNKNOWN_TOPIC_OR_PARTITION
from kreassign.model.plan import PartitionAssignment, Plan, format_plan
from kreassign.model.text import format_amount, hash_map_bucket, signed_number
from kreassign.model.topic_changes import (
    Refusal,
    TopicsView,
    decide_reassignments,
    decide_replication_factors,
    producer_outages,
    short_id,
    unwise_removals,
)

# Lines of `--describe`.

_UNKNOWN = "N/A"
_MIN_ISR = "min.insync.replicas"


@dataclass(frozen=True, slots=True)
class Description:
    """A partition for `--describe`, with its ongoing move, if any, and `min.insync.replicas`; None if unknown."""

    partition: model.Partition
    move: model.OngoingReassignment | None
    min_isr: int | None

    @property
    def replication_factor(self) -> int:
        """The replication factor, without replicas that are being added."""
        move = self.move
        if move is None or not {*move.adding, *move.removing}.intersection(self.partition.replicas):
            return len(self.partition.replicas)  # The move may have ended between two requests.
        return len(move.replicas) - len(move.adding)

    @property
    def has_leader(self) -> bool:
        """True if the partition has a leader."""
        return self.partition.leader != model.NO_LEADER

    @property
    def known_min_isr(self) -> int:
        """`min.insync.replicas` of the topic. Raises ClusterError if it is unknown."""
        if self.min_isr is None:
            topic = self.partition.topic_partition.topic
            raise ClusterError(f"no broker tells a number as {_MIN_ISR} of topic {topic}")
        return self.min_isr


def min_isr(config: Mapping[str, model.ConfigEntry]) -> int | None:
    """`min.insync.replicas` of a topic; None if no number is told."""
    entry = config.get(_MIN_ISR)
    return None if entry is None or entry.value is None else signed_number(entry.value)


def overrides(config: Mapping[str, model.ConfigEntry]) -> list[str]:
    """Settings of a topic that are not Kafka's defaults, on any level, in the order of Kafka's tool."""
    names = sorted(config, key=lambda name: hash_map_bucket(name, len(config)))
    return [f"{name}={config[name].value or ''}" for name in names if config[name].source is not ConfigSource.DEFAULT]


def topic_line(topic: model.Topic, replication_factor: int, settings: Iterable[str]) -> str:
    """The `--describe` line of a topic."""
    cells = [f"Topic: {topic.name}"]
    if topic.topic_id is not None:
        cells.append(f"TopicId: {short_id(topic.topic_id)}")
    cells += [
        f"PartitionCount: {len(topic.partitions)}",
        f"ReplicationFactor: {replication_factor}",
        f"Configs: {','.join(settings)}",
    ]
    return "\t".join(cells)


def partition_line(description: Description) -> str:
    """The `--describe` line of a partition."""
    found, move = description.partition, description.move
    cells = [
        "",
        f"Topic: {found.topic_partition.topic}",
        f"Partition: {found.topic_partition.partition}",
        f"Leader: {found.leader if description.has_leader else 'none'}",
        f"Replicas: {listed_ids(found.replicas)}",
        f"Isr: {listed_ids(found.isr)}",
    ]
    if move is not None:
        cells += [f"Adding Replicas: {listed_ids(move.adding)}", f"Removing Replicas: {listed_ids(move.removing)}"]
    cells += [
        f"Elr: {_optional(found.eligible_leaders)}",
        f"LastKnownElr: {_optional(found.last_known_eligible_leaders)}",
    ]
    return "\t".join(cells)


def _optional(brokers: tuple[int, ...] | None) -> str:
    return _UNKNOWN if brokers is None else listed_ids(brokers)


# `kafka-topics --alter --replication-factor` and `--alter --replica-assignment`: decisions and messages.
#
# KIP-179 proposed both; Kafka never shipped them. Unlike all other actions of this tool they copy data, for
# minutes to days after the tool has ended, so they print what they copy, and how to watch it and roll back.

Replicas = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ReplicaChange:
    """A partition with a new replica list; `size_bytes` is that of one copy, None if unknown."""

    topic_partition: model.TopicPartition
    current: Replicas
    target: Replicas
    size_bytes: int | None

    @property
    def added(self) -> Replicas:
        """Brokers that receive a copy."""
        return model.Reassignment(self.current, self.target).adding_in_order

    @property
    def removed(self) -> Replicas:
        """Brokers that lose a copy."""
        return model.Reassignment(self.current, self.target).removing_in_order

    def __str__(self) -> str:
        return f"{self.topic_partition}: {listed_ids(self.current)} -> {listed_ids(self.target)}"


def by_factor(view: TopicsView, names: Iterable[str], factor: int, *, is_forced: bool) -> tuple[ReplicaChange, ...]:
    """Changes that give all partitions of these topics `factor` replicas. Raises `ToolError` with all refusals."""
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
    """Changes that give these topics the listed replicas, one list per partition. Raises `ToolError` as `by_factor`."""
    topics = [view.topics[name] for name in names if name in view.topics]
    for topic in topics:
        if len(topic.partitions) != len(assignment):
            raise command_line.ToolError(
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
    unwise = unwise_removals(view, wanted, may_undercut_min_in_sync=is_forced)
    _raise_refusals({**decided, **unwise})
    return _changes(view, wanted)


def refuse_outages(view: TopicsView, changes: Iterable[ReplicaChange]) -> None:
    """Raise `ToolError` for partitions whose producers with acks=all would be refused until a copy is in sync."""
    found = producer_outages(view, {change.topic_partition: change.target for change in changes})
    if found:
        reasons = [f"{key}: producers with acks=all would be refused until a copy is in sync: {why}."
                   for key, why in sorted(found.items())]  # fmt: skip
        wanted = "Lower min.insync.replicas of the topic for the time, or give --force to start it all the same."
        raise command_line.ToolError("\n".join(["Nothing was changed, because of", *reasons, wanted]))


def _raise_refusals(decided: Mapping[model.TopicPartition, object] | Mapping[str, object]) -> None:
    reasons = [f"{item}: {found.message}" for item, found in decided.items() if isinstance(found, Refusal)]
    if reasons:
        raise command_line.ToolError("\n".join(["Nothing was changed, because of", *reasons]))


def _changes(view: TopicsView, targets: Mapping[model.TopicPartition, Replicas]) -> tuple[ReplicaChange, ...]:
    """Changes in the order of partitions, without partitions that are at their target."""
    return tuple(
        ReplicaChange(key, current, targets[key], view.sizes_bytes.get(key))
        for key in sorted(targets)
        if (current := view.topics[key.topic].partitions[key.partition].replicas) != targets[key]
    )


def announced(changes: tuple[ReplicaChange, ...]) -> str:
    """The rollback plan, each changing partition, and what is copied and deleted."""
    current = Plan(tuple(PartitionAssignment(change.topic_partition, change.current) for change in changes))
    copied = [change.size_bytes for change in changes for _ in change.added]
    deleted = [change.size_bytes for change in changes for _ in change.removed]
    total = (
        f"Replicas of {len(changes)} partition(s) change: {len(copied)} to be copied ({_amount(copied)}), "
        f"{len(deleted)} to be deleted ({_amount(deleted)})."
    )
    return "\n".join([messages.rollback(format_plan(current)), "", total, *map(str, changes)])


def _amount(sizes_bytes: list[int | None]) -> str:
    """Bytes of copies, and how many of them have an unknown size."""
    known = [size for size in sizes_bytes if size is not None]
    unknown = len(sizes_bytes) - len(known)
    bytes_known = [format_amount(sum(known), "B")] if known or not unknown else []
    return " and ".join([*bytes_known, *([f"{unknown} of unknown size"] if unknown else [])])


NOTHING_TO_CHANGE = "Nothing to change: every partition has these replicas already."
ONLY_CHECKED = "Nothing was changed. Without --dry-run this would be started."


def next_steps(bootstrap_server: str) -> str:
    """Commands to give after the tool has ended."""
    tool = f"kafka-reassign-partitions --bootstrap-server {bootstrap_server}"
    return (
        "Data is copied in the background, without a throttle.\n"
        f"To watch it:  {tool} --progress\n"
        "To go back, while it is under way or afterwards, save the JSON above as FILE:\n"
        f"              {tool} --execute --additional --cancel-first --reassignment-json-file FILE"
    )


# Actions of `kafka-topics` on a cluster.

_COLLISION = (
    "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') could collide. To "
    "avoid issues it is best to use either, but not both."
)


def list_topics(client: AdminClient, options: command_line.Options) -> None:
    """Print the names of topics."""
    print("\n".join(_topics(client, options)))


def create(client: AdminClient, options: command_line.Options) -> None:
    """Create a topic."""
    name = options.text("topic") or ""
    partitions = topic_options.count(options, "partitions")
    replication_factor = topic_options.count(options, "replication-factor")
    assignment = topic_options.replica_assignment(options.text("replica-assignment"))
    configs = topic_options.configs(value or "" for found, value in options.found if found == "config")
    if topic_options.collides(name):
        print(_COLLISION, flush=True)
    topic_options.check_counts(partitions, replication_factor)
    new_topic = (
        model.NewTopic(name, assignments=assignment, configs=configs)
        if assignment
        else model.NewTopic(name, partitions or -1, replication_factor or -1, configs=configs)
    )
    try:
        client.create_topics([new_topic]).raise_if_any()
    except Rejected as refused:
        if refused.name == "TOPIC_ALREADY_EXISTS" and options.has("if-not-exists"):
            return
        raise
    print(f"Created topic {name}.")


def alter(client: AdminClient, options: command_line.Options) -> None:
    """Increase partitions of topics, or change their replicas."""
    if topic_options.changes_replicas(options):
        _change_replicas(client, options)
    else:
        _add_partitions(client, options)


def _change_replicas(client: AdminClient, options: command_line.Options) -> None:
    factor = topic_options.count(options, "replication-factor")
    topic_options.check_counts(None, factor)
    assignment = topic_options.replica_assignment(options.text("replica-assignment"))
    names = _existing(client, options)
    if not names:
        return
    view, is_forced = client.view_topics(names), options.has("force")
    changes = (
        by_assignment(view, names, assignment, is_forced=is_forced)
        if factor is None
        else by_factor(view, names, factor, is_forced=is_forced)
    )
    if not changes:
        print(NOTHING_TO_CHANGE)
        return
    if not is_forced:
        refuse_outages(view, changes)
    print(announced(changes), end="\n\n", flush=True)
    if options.has("dry-run"):
        print(ONLY_CHECKED)
        return
    started = client.reassign_partitions({change.topic_partition: change.target for change in changes})
    if started.ok:
        print(messages.started(started.ok.keys()))
        print(next_steps(options.text("bootstrap-server") or ""))
    if started.failed:
        raise command_line.ToolError(messages.not_started(started.failed)) from next(iter(started.failed.values()))


def _add_partitions(client: AdminClient, options: command_line.Options) -> None:
    total = topic_options.count(options, "partitions") or 0
    assignment = topic_options.replica_assignment(options.text("replica-assignment"))
    names = _existing(client, options)
    if not names:
        return
    counts = {name: len(topic.partitions) for name, topic in client.describe_topics(names).raise_if_any().items()}
    grown = {name: model.NewPartitions(total, assignment[counts[name] :]) for name in names}
    client.create_partitions(grown).raise_if_any()


def delete(client: AdminClient, options: command_line.Options) -> None:
    """Delete topics."""
    client.delete_topics(_existing(client, options)).raise_if_any()


def describe(client: AdminClient, options: command_line.Options) -> None:
    """Print topics and their partitions."""
    topic_options.count(options, "partition-size-limit-per-response")  # the size has no effect: pages are joined
    topics = _described(client, options)
    resources = {topic.name: model.ConfigResource.topic(topic.name) for topic in topics}
    configs = client.describe_configs(resources.values())
    live = frozenset(client.describe_cluster().broker_ids)
    moves = _moves(client, [partition.topic_partition for topic in topics for partition in topic.partitions])
    reports = [is_wanted for name, is_wanted in _REPORTS.items() if options.has(name)]
    for topic in topics:
        config = configs[resources[topic.name]]
        descriptions = [
            Description(partition, moves.get(partition.topic_partition), min_isr(config))
            for partition in topic.partitions
        ]
        settings = overrides(config)
        if not reports and (settings or not options.has("topics-with-overrides")):
            print(topic_line(topic, descriptions[0].replication_factor, settings))
        if not options.has("topics-with-overrides"):
            for one in descriptions:
                if not reports or any(is_wanted(one, live) for is_wanted in reports):
                    print(partition_line(one))


_REPORTS: Mapping[str, Callable[[Description, frozenset[int]], bool]] = {
    "under-replicated-partitions": lambda one, _: len(one.partition.isr) < one.replication_factor,
    "unavailable-partitions": lambda one, live: not one.has_leader or one.partition.leader not in live,
    # It rejects records of producers with acks=all.
    "under-min-isr-partitions": lambda one, _: not one.has_leader or len(one.partition.isr) < one.known_min_isr,
    "at-min-isr-partitions": lambda one, _: len(one.partition.isr) == one.known_min_isr,
}
"""Options that show only some partitions, each with its test of a partition, given the live brokers."""


def _described(client: AdminClient, options: command_line.Options) -> list[model.Topic]:
    topic_id = topic_options.topic_id(options)
    if topic_id is not None:
        names = client.list_topics(include_internal=not options.has("exclude-internal"))
        answer = client.describe_topics(names)
        found = [one for one in answer.ok.values() if one.topic_id is not None and short_id(one.topic_id) == topic_id]
        if not found:
            answer.raise_if_any(UNKNOWN_TOPIC_OR_PARTITION)  # a topic without an answer may have the id
        if not found and not options.has("if-exists"):
            raise command_line.ToolError(f"TopicId '{topic_id}' does not exist as expected")
        return found
    described = client.describe_topics(_existing(client, options)).raise_if_any()
    return [described[name] for name in sorted(described)]


def _existing(client: AdminClient, options: command_line.Options) -> list[str]:
    """The topics matched by `--topic`; raises `ToolError` if there is none."""
    names, wanted = _topics(client, options), options.text("topic")
    if wanted and not names and not options.has("if-exists"):
        # A listing hides forbidden topics; a request by name gets Kafka's refusal.
        hidden = client.describe_topics([wanted]).failed.get(wanted)
        raise command_line.ToolError(f"Topic '{wanted}' does not exist as expected") from hidden
    return names


def _topics(client: AdminClient, options: command_line.Options) -> list[str]:
    exclude_internal = options.has("exclude-internal")
    names = client.list_topics(include_internal=not exclude_internal)
    return topic_options.chosen_topics(names, options.text("topic"), exclude_internal=exclude_internal)


def _moves(
    client: AdminClient, partitions: list[model.TopicPartition]
) -> dict[model.TopicPartition, model.OngoingReassignment]:
    """Ongoing reassignments; empty if the cluster does not support or permit listing them."""
    try:
        return client.list_partition_reassignments(partitions)
    except ClusterError as error:
        if isinstance(error, Unsupported) or (
            isinstance(error, Rejected) and error.name == "CLUSTER_AUTHORIZATION_FAILED"
        ):
            return {}
        raise


# The tool.

CLIENT_ID = "topics-tool"
_CALLS = {topic_options.Action.CREATE: "createTopics"}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool with these words (default: the command line) and return its exit code."""
    return command_line.run_tool(_run, topic_options.OPTIONS, argv)


def _run(options: command_line.Options) -> None:
    if options.has("delete-config") and not options.has("help"):
        print(topic_options.DELETE_CONFIG_IS_GONE, file=sys.stderr)
    action = topic_options.choose_action(options)
    if action is topic_options.Action.DESCRIBE and all(map(options.has, ("if-exists", "topic", "topic-id"))):
        print(topic_options.ID_WINS, flush=True)
    reached = _settings(options)
    try:
        with AdminClient.connect(reached) as client:
            _ACTIONS[action](client, options)
    except ClusterError as error:
        raise _failed(command_line.java_message(error, _CALLS.get(action, "listTopics"))) from error
    except (command_line.ToolError, InputError) as error:
        raise _failed(error.message if isinstance(error, command_line.ToolError) else str(error)) from error


def _failed(message: str) -> command_line.PlainError:
    return command_line.PlainError("", also_said=f"Error while executing topic command : {message}")


_ACTIONS: Mapping[topic_options.Action, Callable[[AdminClient, command_line.Options], None]] = {
    topic_options.Action.LIST: list_topics,
    topic_options.Action.DESCRIBE: describe,
    topic_options.Action.CREATE: create,
    topic_options.Action.ALTER: alter,
    topic_options.Action.DELETE: delete,
}


def _settings(options: command_line.Options) -> ClientSettings:
    path = options.text("command-config")
    try:
        properties = {} if path is None else read_properties(path)
    except InputError as error:
        raise command_line.PlainError(path or str(error), reason=str(error) if path else None) from error
    addresses = options.text("bootstrap-server") or ""
    if (bad := command_line.portless(addresses)) is not None or not addresses.strip(" ,"):
        raise command_line.PlainError(
            "Failed to create new KafkaAdminClient", reason=f"Invalid url in bootstrap.servers: {bad}"
        )
    return client_settings(properties, bootstrap_servers=addresses, client_id=CLIENT_ID)


if __name__ == "__main__":
    sys.exit(main())
