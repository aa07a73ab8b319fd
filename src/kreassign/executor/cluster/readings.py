"""Read topics and settings with a second look: each is known, absent or unknown.

One answer decides nothing: it may be lost, refused for now, or come from a broker that lags behind the controller. So
what failed is asked again, and an odd answer about a topic is put to other brokers by name:

    an answer that is not odd, of any broker       →  known
    two brokers that are asked by name agree       →  known, or absent
    anything else                                  →  unknown, with the reason

A client that is not told where to ask uses the connection that it has, so asking again may ask the same broker; hence
the names. Where only one broker is live, it is asked by name, and believed. Unknown never means absent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Generic, NamedTuple, TypeVar

from kreassign.errors import ClusterError
from kreassign.executor.cluster.port import ClusterPort, SettingsPort, TopicsPort
from kreassign.model import (
    Batch,
    ConfigEntry,
    ConfigResource,
    OffsetSpec,
    Partition,
    ResourceType,
    Topic,
    TopicPartition,
)
from kreassign.model.error_codes import UNKNOWN_TOPIC_OR_PARTITION, has_code
from kreassign.model.requests import NO_OFFSET

Key = TypeVar("Key")
Value = TypeVar("Value")

Seen = TypeVar("Seen")

LOOKS = 2
"""Brokers that must agree on an odd answer, where there are so many."""

TRIES = 3
"""Brokers that are asked at most: one that does not answer is not waited for twice."""


class Reading(NamedTuple, Generic[Key, Value]):
    """Outcome of a query: values, keys that the cluster does not have, and the error of each that is unknown.

    Take it apart by its three names, so that each decision says what it does with each of them.
    """

    known: Mapping[Key, Value]
    absent: frozenset[Key]
    unknown: Mapping[Key, ClusterError]


def is_unknown_topic(error: ClusterError) -> bool:
    """True if the error is UNKNOWN_TOPIC_OR_PARTITION."""
    return has_code(error, UNKNOWN_TOPIC_OR_PARTITION)


def partitions_of(topics: Mapping[str, Topic]) -> dict[TopicPartition, Partition]:
    """All partitions of the described topics."""
    return {partition.topic_partition: partition for topic in topics.values() for partition in topic.partitions}


def topic_ids_of(topics: Mapping[str, Topic]) -> dict[str, str]:
    """Ids of the described topics by name; without topics that have none (before Kafka 2.8)."""
    return {name: topic.topic_id for name, topic in topics.items() if topic.topic_id is not None}


def ask_twice(ask: Callable[[Sequence[Key]], Batch[Key, Value]], keys: Iterable[Key]) -> Batch[Key, Value]:
    """Query these keys, and once more those without an answer. Raises ClusterError.

    Keys that fail twice are unknown.
    """
    wanted = list(keys)
    if not wanted:
        return Batch({}, {})
    answer = ask(wanted)
    if not answer.failed:
        return answer
    again = ask(list(answer.failed))
    return Batch({**answer.ok, **again.ok}, again.failed)


def seen_in_two_looks(look: Callable[[], Seen | None]) -> Seen | None:
    """Look twice; return the reading that shows anything, None (absent) if neither does. Raises what a look raises.

    A coordinator that has just taken over may show a group without its members or offsets.
    """
    for _ in range(LOOKS):
        if (seen := look()) is not None:
            return seen
    return None


# Topics.


def never_odd(topic: Topic) -> bool:
    """Believe any description of a topic; only topics without one are looked at again."""
    del topic
    return False


def read_topics(
    port: TopicsPort, names: Iterable[str], is_odd: Callable[[Topic], bool] = never_odd
) -> Reading[str, Topic]:
    """Describe these topics; a second look goes to other brokers for missing and odd ones. Raises ClusterError."""
    wanted = sorted(set(names))
    if not wanted:
        return Reading({}, frozenset(), {})
    first = port.describe_topics(wanted)
    known = dict(first.ok)
    odd = [name for name in wanted if name in first.failed or name not in known or is_odd(known[name])]
    if not odd:
        return Reading(known, frozenset(), {})
    looks, needed = _look(port, odd)
    absent: set[str] = set()
    unknown: dict[str, ClusterError] = {}
    for name in odd:
        answers = [_answer(look, name) for look in looks]
        plain = [one for one in (known.pop(name, None), *answers) if isinstance(one, Topic) and not is_odd(one)]
        agreed = _agreed(answers, needed)
        if plain:
            known[name] = plain[0]
        elif isinstance(agreed, Topic):
            known[name] = agreed
        elif agreed is not None and is_unknown_topic(agreed):
            absent.add(name)
        else:
            unknown[name] = agreed or _why_unknown(name, answers)
    return Reading(known, frozenset(absent), unknown)


Answer = Topic | ClusterError


def _look(port: TopicsPort, names: Sequence[str]) -> tuple[list[Batch[str, Topic]], int]:
    """Answers of brokers that are asked by name, and how many have to agree: two, or one if only one is live.

    Two are asked, and another one if these do not answer or do not agree.
    """
    brokers = port.describe_cluster().broker_ids
    needed = min(LOOKS, max(1, len(brokers)))
    looks: list[Batch[str, Topic]] = []
    for broker in brokers[:TRIES]:
        if len(looks) >= needed and all(_agreed([_answer(one, name) for one in looks], needed) for name in names):
            break
        try:
            looks.append(port.describe_topics(names, broker=broker))
        except ClusterError as error:
            looks.append(Batch({}, dict.fromkeys(names, error)))
    return looks, needed


def _agreed(answers: Sequence[Answer], needed: int) -> Answer | None:
    """An answer that so many brokers gave: a topic with this id and these replicas, or that there is none."""
    votes = Counter(_vote(one) for one in answers)
    return next((one for one in answers if _vote(one) is not None and votes[_vote(one)] >= needed), None)


def _vote(answer: Answer) -> object:
    """The part to agree on: id and replicas of the topic, or that there is none; None for any other error."""
    if isinstance(answer, Topic):
        return answer.topic_id, tuple((one.topic_partition, one.replicas) for one in answer.partitions)
    return UNKNOWN_TOPIC_OR_PARTITION if is_unknown_topic(answer) else None


def _why_unknown(name: str, answers: Iterable[Answer]) -> ClusterError:
    errors = (one for one in answers if isinstance(one, ClusterError) and not is_unknown_topic(one))
    return next(errors, ClusterError(f"brokers do not agree about topic {name}"))


def _answer(look: Batch[str, Topic], name: str) -> Answer:
    if name in look.ok:
        return look.ok[name]
    return look.failed.get(name, ClusterError(f"no broker answered about topic {name}"))


Look = TypeVar("Look")


def ask_by_name(port: TopicsPort, ask: Callable[[int], Look]) -> list[Look]:
    """Answers of two brokers that are asked by name, or of one if only one is live. Raises ClusterError.

    A broker that does not answer is passed over for another one.
    """
    brokers = port.describe_cluster().broker_ids
    looks: list[Look] = []
    failure = ClusterError("the cluster lists no live broker")
    for broker in brokers[:TRIES]:
        try:
            looks.append(ask(broker))
        except ClusterError as error:
            failure = error
        if len(looks) == LOOKS:
            break
    if len(looks) < min(LOOKS, max(1, len(brokers))):
        raise failure
    return looks


# Settings.

Configs = Mapping[str, ConfigEntry]


def read_settings(
    port: SettingsPort, resources: Iterable[ConfigResource], names: Sequence[str]
) -> Reading[ConfigResource, Configs]:
    """Settings of these names; topics that do not exist are absent. Raises ClusterError.

    A topic of which a broker knows no settings is looked up at other brokers: until those agree, it is unknown.
    """
    asked = list(dict.fromkeys(resources))
    answer = ask_twice(lambda some: port.describe_configs(some, names=names), asked)
    missing = [
        one.name for one, error in answer.failed.items() if one.type is ResourceType.TOPIC and is_unknown_topic(error)
    ]
    # A topic that other brokers know has settings that are unknown, like one on which they do not agree.
    gone = frozenset(map(ConfigResource.topic, read_topics(port, missing).absent if missing else ()))
    return Reading(answer.ok, gone, {one: error for one, error in answer.failed.items() if one not in gone})


# Offsets and sizes.


def read_offsets(
    port: ClusterPort,
    partitions: Iterable[TopicPartition],
    spec: OffsetSpec,
    known: Mapping[TopicPartition, Partition] = MappingProxyType({}),
) -> Reading[TopicPartition, int]:
    """This offset of each partition at its leader; absent where the log has none. Raises ClusterError.

    Leaders in `known` are not looked up.
    """
    answer = ask_twice(lambda some: port.list_offsets(some, spec, known=known), partitions)
    absent = frozenset(name for name, offset in answer.ok.items() if offset == NO_OFFSET)
    offsets = {name: offset for name, offset in answer.ok.items() if name not in absent}
    return Reading(offsets, absent, answer.failed)
