"""What `kafka-topics` does to a cluster."""

from __future__ import annotations

from kreassign.admin import AdminClient
from kreassign.errors import ClusterError, Rejected, Unsupported
from kreassign.kafka_tools.failures import ToolError
from kreassign.kafka_tools.options import Options
from kreassign.kafka_tools.reassign import messages as reassign_texts
from kreassign.kafka_tools.topic import option_values, replica_changes
from kreassign.kafka_tools.topic.describe import Description, min_isr, overrides, partition_line, short_id, topic_line
from kreassign.kafka_tools.topic.options import changes_replicas
from kreassign.model import (
    ConfigResource,
    NewPartitions,
    NewTopic,
    OngoingReassignment,
    Topic,
    TopicPartition,
)

_COLLISION = (
    "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') could collide. To "
    "avoid issues it is best to use either, but not both."
)


def list_topics(client: AdminClient, options: Options) -> None:
    """Print the names of topics."""
    print("\n".join(_topics(client, options)))


def create(client: AdminClient, options: Options) -> None:
    """Create a topic."""
    name = options.text("topic") or ""
    partitions = option_values.count(options, "partitions")
    replication_factor = option_values.count(options, "replication-factor")
    assignment = option_values.replica_assignment(options.text("replica-assignment"))
    configs = option_values.configs(value or "" for found, value in options.found if found == "config")
    if option_values.collides(name):
        print(_COLLISION, flush=True)
    option_values.check_counts(partitions, replication_factor)
    new_topic = (
        NewTopic(name, assignments=assignment, configs=configs)
        if assignment
        else NewTopic(name, partitions or -1, replication_factor or -1, configs=configs)
    )
    try:
        client.create_topics([new_topic]).raise_if_any()
    except Rejected as refused:
        if refused.name == "TOPIC_ALREADY_EXISTS" and options.has("if-not-exists"):
            return
        raise
    print(f"Created topic {name}.")


def alter(client: AdminClient, options: Options) -> None:
    """Give topics more partitions, or other replicas."""
    if changes_replicas(options):
        _change_replicas(client, options)
    else:
        _add_partitions(client, options)


def _change_replicas(client: AdminClient, options: Options) -> None:
    factor = option_values.count(options, "replication-factor")
    option_values.check_counts(None, factor)
    assignment = option_values.replica_assignment(options.text("replica-assignment"))
    names = _existing(client, options)
    if not names:
        return
    view, is_forced = client.view_topics(names), options.has("force")
    changes = (
        replica_changes.by_assignment(view, names, assignment, is_forced=is_forced)
        if factor is None
        else replica_changes.by_factor(view, names, factor, is_forced=is_forced)
    )
    if not changes:
        print(replica_changes.NOTHING_TO_CHANGE)
        return
    print(replica_changes.announced(changes), end="\n\n", flush=True)
    if options.has("dry-run"):
        print(replica_changes.ONLY_CHECKED)
        return
    started = client.reassign_partitions({change.topic_partition: change.target for change in changes})
    if started.ok:
        print(reassign_texts.started(started.ok.keys()))
        print(replica_changes.next_steps(options.text("bootstrap-server") or ""))
    if started.failed:
        raise ToolError(reassign_texts.not_started(started.failed)) from next(iter(started.failed.values()))


def _add_partitions(client: AdminClient, options: Options) -> None:
    total = option_values.count(options, "partitions") or 0
    assignment = option_values.replica_assignment(options.text("replica-assignment"))
    names = _existing(client, options)
    if not names:
        return
    counts = {name: len(topic.partitions) for name, topic in client.describe_topics(names).raise_if_any().items()}
    grown = {name: NewPartitions(total, assignment[counts[name] :]) for name in names}
    client.create_partitions(grown).raise_if_any()


def delete(client: AdminClient, options: Options) -> None:
    """Delete topics."""
    client.delete_topics(_existing(client, options)).raise_if_any()


def describe(client: AdminClient, options: Options) -> None:
    """Print topics and their partitions."""
    option_values.count(options, "partition-size-limit-per-response")  # pages are joined, whatever their size
    topics = _described(client, options)
    resources = {topic.name: ConfigResource.topic(topic.name) for topic in topics}
    configs = client.describe_configs(resources.values())
    live = frozenset(client.describe_cluster().broker_ids)
    moves = _moves(client, [partition.topic_partition for topic in topics for partition in topic.partitions])
    for topic in topics:
        config = configs[resources[topic.name]]
        descriptions = [
            Description(partition, moves.get(partition.topic_partition), min_isr(config))
            for partition in topic.partitions
        ]
        settings = overrides(config)
        if not _is_report(options) and (settings or not options.has("topics-with-overrides")):
            print(topic_line(topic, descriptions[0].replication_factor, settings))
        if not options.has("topics-with-overrides"):
            for one in descriptions:
                if _is_wanted(one, options, live):
                    print(partition_line(one))


def _is_report(options: Options) -> bool:
    names = ("under-replicated-partitions", "under-min-isr-partitions", "at-min-isr-partitions")
    return any(map(options.has, (*names, "unavailable-partitions")))


def _is_wanted(one: Description, options: Options, live_brokers: frozenset[int]) -> bool:
    return (
        not _is_report(options)
        or (options.has("under-replicated-partitions") and one.is_under_replicated)
        or (options.has("unavailable-partitions") and one.is_unavailable(live_brokers))
        or (options.has("under-min-isr-partitions") and one.is_under_min_isr)
        or (options.has("at-min-isr-partitions") and one.is_at_min_isr)
    )


def _described(client: AdminClient, options: Options) -> list[Topic]:
    topic_id = options.text("topic-id")
    if topic_id is not None:
        names = client.list_topics(include_internal=not options.has("exclude-internal"))
        everything = client.describe_topics(names).ok.values()
        found = [topic for topic in everything if topic.topic_id is not None and short_id(topic.topic_id) == topic_id]
        if not found and not options.has("if-exists"):
            raise ToolError(f"TopicId '{topic_id}' does not exist as expected")
        return found
    described = client.describe_topics(_existing(client, options)).raise_if_any()
    return [described[name] for name in sorted(described)]


def _existing(client: AdminClient, options: Options) -> list[str]:
    """The topics that `--topic` names; raises `ToolError` if it is given and there is none."""
    names, wanted = _topics(client, options), options.text("topic")
    if wanted and not names and not options.has("if-exists"):
        # A listing hides what this client may not see; asked for by its name, Kafka says so.
        hidden = client.describe_topics([wanted]).failed.get(wanted)
        raise ToolError(f"Topic '{wanted}' does not exist as expected") from hidden
    return names


def _topics(client: AdminClient, options: Options) -> list[str]:
    exclude_internal = options.has("exclude-internal")
    names = client.list_topics(include_internal=not exclude_internal)
    return option_values.chosen_topics(names, options.text("topic"), exclude_internal=exclude_internal)


def _moves(client: AdminClient, partitions: list[TopicPartition]) -> dict[TopicPartition, OngoingReassignment]:
    """What is being reassigned; nothing where the cluster does not support that or denies it."""
    try:
        return client.list_partition_reassignments(partitions)
    except ClusterError as error:
        if isinstance(error, Unsupported) or (
            isinstance(error, Rejected) and error.name == "CLUSTER_AUTHORIZATION_FAILED"
        ):
            return {}
        raise
