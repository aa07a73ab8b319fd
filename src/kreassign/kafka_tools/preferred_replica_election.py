"""`kafka-preferred-replica-election`: replaces the tool of that name in Kafka 2.8.2, the last release with it.

docs/reference/kafka-preferred-replica-election.md lists the differences with reasons. The help says more than Kafka's:
what the preferred replica is, and when the command is not needed (KIP-183). With `--zookeeper` the request is written
to the znode `/admin/preferred_replica_election`, and the controller sends no answer.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from kreassign.errors import MalformedPlan
from kreassign.kafka_tools import command_line
from kreassign.kafka_tools.leader_election import Wording, elect, file_text, settings
from kreassign.kafka_tools.zookeeper import ZooKeeper, zookeeper
from kreassign.model import ElectionType, TopicPartition
from kreassign.model.plan import duplicates, parse_election

KAFKA_VERSION = "2.8.2"
"""The Kafka release of the replaced tool, printed by `--version`."""

TOOL_IS_DEPRECATED = "This tool is deprecated. Please use kafka-leader-election tool. Tracking issue: KAFKA-8405"
ZOOKEEPER_IS_DEPRECATED = (
    "Warning: --zookeeper is deprecated and will be removed in a future version of Kafka.\n"
    "Use --bootstrap-server instead to specify a broker to connect to."
)

HELP_TEXT = (
    "This tool hands the leadership of partitions back to their preferred replicas, which balances it among the "
    "brokers.\n"
    "The preferred replica of a partition is the first in its list of replicas. When a topic is created these are "
    "spread evenly over the brokers; after brokers were down, others lead in their place, and lead on when they are "
    "back.\n"
    "The command is not necessary if the brokers have auto.leader.rebalance.enable=true, which is the default: then "
    "the controller does the same by itself every leader.imbalance.check.interval.seconds. A preferred replica that is "
    "not in sync is not elected."
)

OPTIONS = command_line.read_options("kafka-preferred-replica-election")


_API_TIMEOUT_MS = 60_000
_REQUEST_TIMEOUT_MS = 30_000
_EMPTY = "Preferred replica election data is empty"
_OPERATION_FAILED = "kafka.admin.AdminOperationException"
_WORDING = Wording(
    "Successfully completed preferred leader election for partitions",
    "Preferred replica already elected for partitions",
    "Error completing preferred leader election for partition:",
    "preferred replica(s)",
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool with these words (default: the command line) and return its exit code."""
    print(TOOL_IS_DEPRECATED, flush=True)
    return command_line.run_tool(_run, OPTIONS, argv, command_line.ErrorStyle.EXCEPTION, KAFKA_VERSION)


def _run(options: command_line.Options) -> None:
    check(options)
    partitions = _partitions(options)
    if options.has("zookeeper"):
        print(ZOOKEEPER_IS_DEPRECATED, file=sys.stderr)
        with zookeeper(options.text("zookeeper") or "") as cluster:
            elect_through_znode(cluster, partitions)
        return
    reached = settings(
        options.text("bootstrap-server") or "",
        options.text("admin.config"),
        api_timeout_ms=_API_TIMEOUT_MS,
        request_timeout_ms=_REQUEST_TIMEOUT_MS,
    )
    elect(reached, partitions, ElectionType.PREFERRED, _WORDING)


def check(options: command_line.Options) -> None:
    """Raise the error of the first violated rule, in Kafka's order."""
    if not options.word_count or options.has("help"):
        raise command_line.UsageError(HELP_TEXT)
    if options.has("bootstrap-server") == options.has("zookeeper"):
        raise command_line.UsageError("Exactly one of '[bootstrap-server]' or '[zookeeper]' must be provided")


def _partitions(options: command_line.Options) -> tuple[TopicPartition, ...] | None:
    """The partitions of a file; None for all."""
    path = options.text("path-to-json-file")
    if path is None:
        return None
    with command_line.naming_kind(path, is_plan=False):
        try:
            named = parse_election(file_text(path), integer_name="Int", missing=_EMPTY, empty=_EMPTY)
        except command_line.PlainError as error:
            raise command_line.UncaughtError("java.io.IOException", f"Unable to read file {path}") from error
        except MalformedPlan as error:
            jackson = "com.fasterxml.jackson.databind.JsonMappingException"
            raise command_line.UncaughtError(
                _OPERATION_FAILED if str(error) == _EMPTY else jackson, str(error)
            ) from error
    if twice := duplicates(named):
        listed = ",".join(map(str, twice))
        raise command_line.UncaughtError(
            _OPERATION_FAILED, f"Preferred replica election data contains duplicate partitions: {listed}"
        )
    return named


def elect_through_znode(cluster: ZooKeeper, partitions: tuple[TopicPartition, ...] | None) -> None:
    """Write a request for these partitions, or (None) for all, to the election znode; raises `PlainError` if it exists.

    The controller sends no answer: it elects and deletes the znode.
    """
    existing = _existing(cluster, None if partitions is None else {key.topic for key in partitions})
    wanted = sorted(existing if partitions is None else existing.intersection(partitions))
    _request_election(cluster, wanted)
    for key in sorted(set(partitions or ()) - existing):
        print(f"Skipping preferred replica leader election for partition {key} since it doesn't exist.")


def _existing(cluster: ZooKeeper, names: set[str] | None) -> set[TopicPartition]:
    topics = cluster.topics(sorted(names) if names is not None else cluster.topic_names()).values()
    return {partition.topic_partition for topic in topics if topic is not None for partition in topic.partitions}


def _request_election(cluster: ZooKeeper, wanted: list[TopicPartition]) -> None:
    listed = ",".join(map(str, wanted))
    if not cluster.start_election(wanted):
        pending = ",".join(map(str, cluster.elections()))
        raise command_line.PlainError(
            "Admin command failed",
            reason=f"Preferred replica leader election currently in progress for {pending}. Aborting operation",
        )
    print(f"Created preferred replica election path with {listed}")
    print(f"Successfully started preferred replica election for partitions Set({', '.join(map(str, wanted))})")


if __name__ == "__main__":
    sys.exit(main())
