"""The cluster's own record of its throttles: written by the holder of the lease before its first change.

It is kept beside offsets that the group `kreassign-lease` commits for partitions of `__consumer_offsets`. A broker
takes a commit only from the present member of the present generation, so that a former holder cannot overwrite it, and
all pieces of one commit are written together. It is there until everything is restored; after a run that was left, for
`offsets.retention.minutes` (7 days by default).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kreassign.errors import ClusterError, InputError
from kreassign.executor.cluster import queries
from kreassign.executor.cluster.port import ClusterPort
from kreassign.executor.lease.lease import CALL_TIMEOUT_MS, GROUP_ID, OFFSETS_TOPIC
from kreassign.executor.lease.pieces import NOTHING
from kreassign.executor.lease.port import GroupPort
from kreassign.executor.lease.record import OriginalValues, joined, pieces
from kreassign.executor.throttle.ledger import ConfigValue, throttle_keys
from kreassign.model import TopicPartition
from kreassign.model.group import CommittedOffset, Membership


def throttle_settings(port: ClusterPort) -> tuple[tuple[ConfigValue, ...], tuple[str, ...]]:
    """Every throttle setting of topics and live brokers, set or not, and a sentence for each that was not read."""
    keys = throttle_keys(port.describe_topics(None).ok, port.describe_cluster().broker_ids)
    values, unread = queries.read_configs(port, keys)
    return values, tuple(f"{resource} {problem}" for resource, problem in unread)


def read_record(port: GroupPort) -> OriginalValues | None:
    """The record; None if there is none. Raises ClusterError, and InputError if it cannot be understood."""
    topic = port.describe_topics([OFFSETS_TOPIC])[OFFSETS_TOPIC]
    keys = [partition.topic_partition for partition in topic.partitions]
    found = port.fetch_offsets(GROUP_ID, keys, timeout_ms=CALL_TIMEOUT_MS).raise_if_any()
    try:
        return joined({key.partition: one.metadata for key, one in found.items()})
    except ValueError as error:
        raise InputError(
            f"the record of original throttles in group {GROUP_ID} cannot be read: {error}. See to the throttles "
            "yourself (`kreassign doctor`), then delete the group (`kafka-consumer-groups --delete`)"
        ) from error


def write_record(port: GroupPort, membership: Membership, record: OriginalValues | None) -> None:
    """Write a record in place of the one that is there, or (None) remove it. Raises ClusterError, InputError."""
    topic = port.describe_topics([OFFSETS_TOPIC])[OFFSETS_TOPIC]
    room = len(topic.partitions)
    texts = () if record is None else pieces(record)
    if record is not None and len(texts) > room:
        texts = pieces(replace(record, scope=None))  # the names of its topics take too much room
    if len(texts) > room:
        raise InputError(
            f"the throttles that are set now do not fit into the record in group {GROUP_ID}: they need {len(texts)} "
            f"offsets, and {OFFSETS_TOPIC} has {room} partitions. Delete those that nobody needs (`kreassign doctor`)"
        )
    commit_texts(port, membership, (*texts, *(NOTHING for _ in range(room - len(texts)))))


def commit_texts(port: GroupPort, membership: Membership, texts: Iterable[str]) -> None:
    """Commit texts beside offsets of the first partitions, all at once. Raises ClusterError."""
    offsets = {TopicPartition(OFFSETS_TOPIC, number): CommittedOffset(0, text) for number, text in enumerate(texts)}
    outcome = port.commit_offsets(membership, offsets, timeout_ms=CALL_TIMEOUT_MS)
    error: ClusterError | None = next(iter(outcome.failed.values()), None)
    if error is not None:
        raise error
