"""Keep in the cluster what every throttle was before any run, in pieces beside committed offsets.

The holder of the lease writes the record before its first change. It is kept beside offsets that the group
`kreassign-lease` commits for partitions of `__consumer_offsets`. A broker takes a commit only from the present member
of the present generation, so that a former holder cannot overwrite it, and all pieces of one commit are written
together. It is there until everything is restored; after a run that was left, for `offsets.retention.minutes` (7 days
by default).
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from kreassign.errors import ClusterError, InputError
from kreassign.executor.cluster import requests
from kreassign.executor.cluster.port import ClusterPort
from kreassign.executor.lease.lease import CALL_TIMEOUT_MS, GROUP_ID, OFFSETS_TOPIC, GroupPort
from kreassign.executor.throttle_ledger import ConfigKey, ConfigOverride, ConfigValue, throttle_keys
from kreassign.model import ConfigResource, ResourceType, TopicPartition
from kreassign.model.requests import CommittedOffset, Membership
from kreassign.model.text import shortened

# A text of any length as pieces that fit beside committed offsets. Pure.
#
# A broker keeps up to `offset.metadata.max.bytes` (4,096) characters with each offset that a group commits, so a text
# is compressed and cut into pieces, one per partition of `__consumer_offsets`, each with its number, the count, and the
# whole's CRC.

PIECE_CHARACTERS = 4_000
"""The most that goes beside one offset, with room for the head of the piece."""

MOST_BYTES = 1 << 26
"""A record of every throttle of a million replicas is smaller; whoever may commit offsets can commit anything."""

_MARK = "kreassign-1"
_WORDS = 5
"""Mark, number, count, CRC, text."""

NO_PIECE = ""
"""What a partition holds that has no piece."""


def cut_into_pieces(text: str) -> tuple[str, ...]:
    """A text as pieces of at most `PIECE_CHARACTERS`, and a head each."""
    data = zlib.compress(text.encode(), 9)
    packed = base64.b64encode(data).decode()
    parts = [packed[at : at + PIECE_CHARACTERS] for at in range(0, len(packed), PIECE_CHARACTERS)]
    return tuple(f"{_MARK} {number} {len(parts)} {zlib.crc32(data):08x} {one}" for number, one in enumerate(parts))


def text_of_pieces(found: Mapping[int, str]) -> str | None:
    """The text of these pieces by partition; None if there is none. Raises ValueError if it is not whole."""
    if not found.get(0):
        return None
    head = found[0].split(" ")
    if head[0] != _MARK or len(head) != _WORDS:
        raise ValueError("it is not in the form that this version of kreassign writes")
    count, crc = int(head[2]), head[3]
    packed = []
    for number in range(count):
        *words, text = found.get(number, NO_PIECE).split(" ")
        if words != [_MARK, str(number), str(count), crc]:
            raise ValueError(f"piece {number + 1} of {count} is missing")
        packed.append(text)
    return _unpacked(base64.b64decode("".join(packed), validate=True), crc)


def _unpacked(data: bytes, crc: str) -> str:
    if f"{zlib.crc32(data):08x}" != crc:
        raise ValueError("its checksum is another one")
    unpacking = zlib.decompressobj()
    try:
        content = unpacking.decompress(data, MOST_BYTES)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if unpacking.unconsumed_tail:
        raise ValueError(f"it has more than {MOST_BYTES} bytes")
    if not unpacking.eof:
        raise ValueError("it is cut off")
    return content.decode()


# Only settings that were set are in the record: what it does not name was not set.


@dataclass(frozen=True, slots=True)
class OriginalValues:
    """What was set on the topics and brokers of `scope` before run `run_id`, which began at `at_ms`, or any before it.

    Without a scope the record is of all topics and brokers.
    """

    run_id: str
    at_ms: int
    values: tuple[ConfigValue, ...] = ()
    scope: frozenset[ConfigResource] | None = None

    def known(self, keys: Iterable[ConfigKey]) -> Mapping[ConfigKey, str | None]:
        """The values of those of these settings that the record is about; None where nothing was set."""
        values = {one.key: one.value for one in self.values}
        return {key: values.get(key) for key in keys if self.covers(key.resource)}

    def covers(self, resource: ConfigResource) -> bool:
        """Whether the record is about this topic or broker."""
        return self.scope is None or resource in self.scope

    def extended(self, present: Iterable[ConfigValue], scope: frozenset[ConfigResource]) -> OriginalValues:
        """The same for more topics and brokers, of which no run has changed anything yet."""
        if self.scope is None:
            return self
        new = (one for one in present if one.key.resource in scope and not self.covers(one.key.resource))
        return replace(self, values=(*self.values, *_set(new)), scope=self.scope | scope)


def present_values(
    run_id: str, at_ms: int, present: Iterable[ConfigValue], scope: frozenset[ConfigResource]
) -> OriginalValues:
    """A record of what is set now on these topics and brokers."""
    return OriginalValues(run_id, at_ms, _set(one for one in present if one.key.resource in scope), scope)


def _set(values: Iterable[ConfigValue]) -> tuple[ConfigValue, ...]:
    return tuple(one for one in values if one.value is not None)


def left_settings(record: OriginalValues, present: Iterable[ConfigValue]) -> tuple[ConfigOverride, ...]:
    """Which of the settings that a record is about are not as they were."""
    values = {one.key: one.value for one in present}
    known = record.known(values)
    return tuple(ConfigOverride(key, before, values[key]) for key, before in known.items() if values[key] != before)


def pieces_of_record(record: OriginalValues) -> tuple[str, ...]:
    """A record as texts, one per offset."""
    values = [[int(one.key.resource.type), one.key.resource.name, one.key.name, one.value] for one in record.values]
    scope = None if record.scope is None else sorted([int(one.type), one.name] for one in record.scope)
    return cut_into_pieces(json.dumps([record.run_id, record.at_ms, values, scope], separators=(",", ":")))


def record_of_pieces(found: Mapping[int, str]) -> OriginalValues | None:
    """The record of these texts by partition; None if there is none. Raises ValueError if it is not whole."""
    text = text_of_pieces(found)
    if text is None:
        return None
    try:
        run_id, at_ms, values, scope = json.loads(text)
        resources = None if scope is None else frozenset(_resource(*one) for one in scope)
        return OriginalValues(_text(run_id), int(at_ms), tuple(_value(*one) for one in values), resources)
    except (ValueError, TypeError, ArithmeticError, RecursionError, InputError) as error:
        raise ValueError(f"it holds what this version does not write: {error}") from error


def _resource(kind: int, name: str) -> ConfigResource:
    return ConfigResource(ResourceType(kind), _text(name))


def _value(kind: int, resource: str, name: str, value: str) -> ConfigValue:
    return ConfigValue(ConfigKey(_resource(kind, resource), _text(name)), _text(value))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{shortened(repr(value))} is no text")
    return value


# The record in the cluster.


def throttle_settings(port: ClusterPort) -> tuple[tuple[ConfigValue, ...], tuple[str, ...]]:
    """Every throttle setting of topics and live brokers, set or not, and a sentence for each that was not read."""
    keys = throttle_keys(port.describe_topics(None).ok, port.describe_cluster().broker_ids)
    values, unread = requests.read_configs(port, keys)
    return values, tuple(f"{resource} {problem}" for resource, problem in unread)


def read_record(port: GroupPort) -> OriginalValues | None:
    """The record; None if there is none. Raises ClusterError, and InputError if it cannot be understood."""
    topic = port.describe_topics([OFFSETS_TOPIC])[OFFSETS_TOPIC]
    keys = [partition.topic_partition for partition in topic.partitions]
    found = port.fetch_offsets(GROUP_ID, keys, timeout_ms=CALL_TIMEOUT_MS).raise_if_any()
    try:
        return record_of_pieces({key.partition: one.metadata for key, one in found.items()})
    except ValueError as error:
        raise InputError(
            f"the record of original throttles in group {GROUP_ID} cannot be read: {error}. See to the throttles "
            "yourself (`kreassign doctor`), then delete the group (`kafka-consumer-groups --delete`)"
        ) from error


def write_record(port: GroupPort, membership: Membership, record: OriginalValues | None) -> None:
    """Write a record in place of the one that is there, or (None) remove it. Raises ClusterError, InputError."""
    topic = port.describe_topics([OFFSETS_TOPIC])[OFFSETS_TOPIC]
    room = len(topic.partitions)
    texts = () if record is None else pieces_of_record(record)
    if record is not None and len(texts) > room:
        texts = pieces_of_record(replace(record, scope=None))  # the names of its topics take too much room
    if len(texts) > room:
        raise InputError(
            f"the throttles that are set now do not fit into the record in group {GROUP_ID}: they need {len(texts)} "
            f"offsets, and {OFFSETS_TOPIC} has {room} partitions. Delete those that nobody needs (`kreassign doctor`)"
        )
    commit_texts(port, membership, (*texts, *(NO_PIECE for _ in range(room - len(texts)))))


def commit_texts(port: GroupPort, membership: Membership, texts: Iterable[str]) -> None:
    """Commit texts beside offsets of the first partitions, all at once. Raises ClusterError."""
    offsets = {TopicPartition(OFFSETS_TOPIC, number): CommittedOffset(0, text) for number, text in enumerate(texts)}
    outcome = port.commit_offsets(membership, offsets, timeout_ms=CALL_TIMEOUT_MS)
    error: ClusterError | None = next(iter(outcome.failed.values()), None)
    if error is not None:
        raise error
