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
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from types import MappingProxyType
from typing import Generic, NamedTuple, TypeVar

from kreassign.errors import ClusterError, Unsupported
from kreassign.executor.cluster.port import ClusterPort
from kreassign.model import (
    Batch,
    Cluster,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    LogDir,
    OffsetSpec,
    OngoingReassignment,
    Partition,
    ResourceType,
    Topic,
    TopicPartition,
)
from kreassign.model.error_codes import TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION, has_code
from kreassign.model.requests import LOOKS, NO_OFFSET, TRIES, answers_of_two
from kreassign.model.text import signed_number

Key = TypeVar("Key")
Value = TypeVar("Value")

Seen = TypeVar("Seen")


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


def read_log_dirs(
    port: ClusterPort, brokers: Iterable[int], *, copies_of: Collection[TopicPartition] | None = None
) -> Batch[int, tuple[LogDir, ...]]:
    """Log directories of these brokers, with all their copies, or those of some partitions. Raises ClusterError.

    A broker that does not answer, names no directory or a failed one is asked again. Nothing else asks for log
    directories, so that a failed one is believed after two answers everywhere.
    """

    def ask(some: Sequence[int]) -> Batch[int, tuple[LogDir, ...]]:
        answer = port.describe_log_dirs(some, partitions=copies_of)
        empty = {broker: ClusterError("it named no log directory") for broker, dirs in answer.ok.items() if not dirs}
        named = {broker: dirs for broker, dirs in answer.ok.items() if dirs}
        return Batch(named, {**answer.failed, **empty})

    first = ask_twice(ask, brokers)
    odd = [broker for broker, dirs in first.ok.items() if any(one.error is not None for one in dirs)]
    if not odd:
        return first
    again = ask(odd)
    sound = {broker: dirs for broker, dirs in first.ok.items() if broker not in odd}
    return Batch({**sound, **again.ok}, {**first.failed, **again.failed})


def seen_in_two_looks(look: Callable[[], Seen | None]) -> Seen | None:
    """Look twice; return the reading that shows anything, None (absent) if neither does. Raises what a look raises.

    A coordinator that has just taken over may show a group without its members or offsets.
    """
    for _ in range(LOOKS):
        if (seen := look()) is not None:
            return seen
    return None


# Topics.


def read_topics(
    port: ClusterPort, names: Iterable[str], is_odd: Callable[[Topic], bool] = lambda _: False
) -> Reading[str, Topic]:
    """Describe these topics; a second look goes to other brokers for missing and odd ones. Raises ClusterError.

    By default any description is believed.
    """
    wanted = sorted(set(names))
    if not wanted:
        return Reading({}, frozenset(), {})
    first = port.describe_topics(wanted)
    known = dict(first.ok)
    odd = [name for name in wanted if name in first.failed or name not in known or is_odd(known[name])]
    if not odd:
        return Reading(known, frozenset(), {})
    looks, needed = _look(port, partial(_describe, port), odd, _lists)
    agreed = _agreed_by(looks, needed, Topic.joined_with)
    for name in odd:
        first_one = [known.pop(name)] if name in known else []
        named = (one.value for one in looks[name].values() if one.value is not None)
        if plain := [topic for topic in (*first_one, *named) if not is_odd(topic)]:
            known[name] = plain[0]
    absent = agreed.absent - known.keys()
    unknown = {name: error for name, error in agreed.unknown.items() if name not in known}
    return Reading({**agreed.known, **known}, absent, unknown)


def topics_of_two(port: ClusterPort, names: Iterable[str], *, only_lists: bool = False) -> Reading[str, Topic]:
    """Topics of which two brokers show the same replicas, ISR and leaders, or `only_lists`. Raises ClusterError.

    For what is told as the truth: a broker that lags shows a cluster that once was, which may be the wanted one. With
    `only_lists`, in sync are replicas that both show so.
    """
    part = _lists if only_lists else _states
    return _of_two(port, partial(_describe, port), sorted(set(names)), part, Topic.joined_with)


def topics_with(port: ClusterPort, names: Iterable[str], partitions: Collection[TopicPartition]) -> Reading[str, Topic]:
    """Topics of which two brokers show the same replicas of these partitions. Raises ClusterError.

    Other partitions of them may move meanwhile, and are as one of both shows them. In sync are replicas that both show
    so.
    """

    def part(topic: Topic) -> Vote:
        return frozenset(one for one in _lists(topic) if one[1] in partitions or one[0] == "id")

    return _of_two(port, partial(_describe, port), sorted(set(names)), part, Topic.joined_with)


def partitions_with(port: ClusterPort, names: Iterable[TopicPartition]) -> Reading[TopicPartition, Topic]:
    """These partitions, each as the topic with that one alone, of which two brokers show the same list.

    A list that they show differently leaves the others of its topic known. A topic without the partition has none.
    Raises ClusterError.
    """

    def ask(some: Sequence[TopicPartition], broker: int) -> Batch[TopicPartition, Topic]:
        topics = _describe(port, sorted({name.topic for name in some}), broker)
        found = partitions_of(topics.ok)
        alone = {
            name: replace(topics.ok[name.topic], partitions=(found[name],) if name in found else ())
            for name in some
            if name.topic in topics.ok
        }
        return Batch(alone, {name: topics.failed[name.topic] for name in some if name.topic in topics.failed})

    return _of_two(port, ask, list(dict.fromkeys(names)), _lists, Topic.joined_with)


def every_topic_of_two(
    port: ClusterPort, besides: Iterable[str] = (), join: Callable[[Topic, Topic], Topic] = Topic.joined_with
) -> Reading[str, Topic]:
    """Topics of which two brokers show the same replicas: all that either lists, and those of these names.

    Each is described by two brokers once; one that a broker leaves out is asked for by name. Raises ClusterError.
    """
    listed: dict[int, Batch[str, Topic]] = {}

    def describe_all(broker: int) -> None:
        listed[broker] = port.describe_topics(None, broker=broker)

    def ask(names: Sequence[str], broker: int) -> Batch[str, Topic]:
        whole = listed.pop(broker, Batch())
        open_ones = [name for name in names if name in whole.failed or name not in whole.ok]
        by_name = _describe(port, open_ones, broker) if open_ones else Batch()
        return Batch({**whole.ok, **by_name.ok}, by_name.failed)

    ask_by_name(port, describe_all)
    names = {*besides, *(name for answer in listed.values() for name in (*answer.ok, *answer.failed))}
    return _of_two(port, ask, sorted(names), _lists, join)


class Confirmed(NamedTuple):
    """Topics as two brokers show them, and why it is not known of some of them which replicas are in sync.

    Of these `unsure` ones, replicas count as in sync that both show so.
    """

    topics: Reading[str, Topic]
    unsure: Mapping[str, ClusterError]

    @property
    def whole(self) -> Batch[str, Topic]:
        """Topics of which it is known which replicas are in sync, and why the others are unknown."""
        known = {name: topic for name, topic in self.topics.known.items() if name not in self.unsure}
        return Batch(known, {**self.topics.unknown, **self.unsure})


def every_topic_confirmed(port: ClusterPort) -> Confirmed:
    """Return `every_topic_of_two`; those of which they show other replicas in sync are looked at until two agree.

    One of the two brokers may have shown them as they were. Raises ClusterError.
    """
    differing: set[str] = set()

    def joined(one: Topic, other: Topic) -> Topic:
        if _in_sync(one) != _in_sync(other):
            differing.add(one.name)
        return one.joined_with(other)

    known, absent, unknown = every_topic_of_two(port, join=joined)
    try:
        second = topics_of_two(port, differing)
    except ClusterError as error:
        second = Reading({}, frozenset(), dict.fromkeys(differing, error))
    again, gone, unsure = second
    there = {name: topic for name, topic in {**known, **again}.items() if name not in gone}
    return Confirmed(Reading(there, absent | gone, unknown), unsure)


def _in_sync(topic: Topic) -> list[frozenset[int]]:
    return [frozenset(one.isr) for one in topic.partitions]


def _describe(port: ClusterPort, names: Sequence[str], broker: int) -> Batch[str, Topic]:
    return port.describe_topics(names, broker=broker)


Vote = frozenset[tuple[str, str | TopicPartition, object]]
"""Part of an answer on which brokers have to agree: properties, each with its subject and value."""


def _lists(topic: Topic) -> Vote:
    lists = (("replicas", one.topic_partition, one.replicas) for one in topic.partitions)
    return frozenset((("id", topic.name, topic.topic_id), *lists))


def _states(topic: Topic) -> Vote:
    in_sync = (("in-sync replicas", one.topic_partition, tuple(sorted(one.isr))) for one in topic.partitions)
    leaders = (("leader", one.topic_partition, one.leader) for one in topic.partitions)
    return _lists(topic).union(in_sync, leaders)


NO_TOPIC: Vote = frozenset({("existence", "", None)})
"""Vote of a broker that does not know the topic."""
Ask = Callable[[Sequence[Key], int], Batch[Key, Value]]
"""Asks one broker by name."""


class _Answer(NamedTuple, Generic[Value]):
    """Answer of one broker about one key: a value or an error, and the part of it on which brokers have to agree.

    The `vote` is None for an error other than that there is no such topic.
    """

    value: Value | None
    error: ClusterError | None
    vote: Vote | None


Answers = Mapping[int, _Answer[Value]]
"""Answers about one key by the broker that gave them."""


def _look(
    port: ClusterPort, ask: Ask[Key, Value], keys: Sequence[Key], part: Callable[[Value], Vote]
) -> tuple[Mapping[Key, Answers[Value]], int]:
    """Ask two brokers by name, or one if only one is live; and another one if these do not answer or do not agree.

    Brokers that contradict each other are asked once more: a change reaches them one after the other. Returns the
    answers, and how many of them have to agree.
    """
    brokers = port.describe_cluster().broker_ids
    needed = min(LOOKS, max(1, len(brokers)))
    looks: dict[Key, dict[int, _Answer[Value]]] = {key: {} for key in keys}

    def still_open() -> list[Key]:
        return [key for key in keys if _agreed(looks[key], needed) is None]

    def ask_in_turn(asked: Iterable[int]) -> None:
        for broker in asked:
            if not (todo := still_open()):
                return
            try:
                batch = ask(todo, broker)
            except ClusterError as error:
                batch = Batch({}, dict.fromkeys(todo, error))
            for key in todo:
                looks[key][broker] = _answer(batch, key, part)

    ask_in_turn(brokers[:TRIES])
    told = {broker for key in still_open() for broker, one in looks[key].items() if one.vote is not None}
    if len(told) > 1:
        ask_in_turn(sorted(told))
    return looks, needed


def _answer(batch: Batch[Key, Value], key: Key, part: Callable[[Value], Vote]) -> _Answer[Value]:
    if key in batch.ok:
        return _Answer(batch.ok[key], None, part(batch.ok[key]))
    error = batch.failed.get(key, ClusterError(f"no broker answered about {_name(key)}"))
    return _Answer(None, error, NO_TOPIC if is_unknown_topic(error) else None)


def _name(key: object) -> str:
    return f"topic {key}" if isinstance(key, str) else str(key)


def _agreed(answers: Answers[Value], needed: int) -> _Answer[Value] | None:
    """The first answer that enough brokers gave; None if they gave none."""
    votes = Counter(one.vote for one in answers.values())
    return next((one for one in answers.values() if one.vote is not None and votes[one.vote] >= needed), None)


def _of_two(
    port: ClusterPort,
    ask: Ask[Key, Value],
    keys: Sequence[Key],
    part: Callable[[Value], Vote],
    join: Callable[[Value, Value], Value],
) -> Reading[Key, Value]:
    """Values on a part of which two brokers agree; `join` makes one value of both for the rest."""
    return _agreed_by(*_look(port, ask, keys, part), join) if keys else Reading({}, frozenset(), {})


def _agreed_by(
    looks: Mapping[Key, Answers[Value]], needed: int, join: Callable[[Value, Value], Value]
) -> Reading[Key, Value]:
    known: dict[Key, Value] = {}
    absent: set[Key] = set()
    unknown: dict[Key, ClusterError] = {}
    for key, answers in looks.items():
        agreed = _agreed(answers, needed)
        if agreed is None:
            unknown[key] = _why_unknown(key, answers)
        elif agreed.value is None:
            absent.add(key)
        else:
            alike = (one.value for one in answers.values() if one.vote == agreed.vote and one.value is not None)
            known[key] = reduce(join, alike)
    return Reading(known, frozenset(absent), unknown)


def _why_unknown(key: object, answers: Answers[Value]) -> ClusterError:
    silent = [one.error for one in answers.values() if one.error is not None and one.vote is None]
    if not answers:
        return ClusterError(f"no live broker could be asked about {_name(key)}")
    # A refusal says more than silence: what this client may not see is there.
    told = sorted(silent, key=lambda error: not has_code(error, TOPIC_AUTHORIZATION_FAILED))
    return told[0] if told else ClusterError(f"brokers do not agree about {_name(key)}: {_disagreement(answers)}")


ONE_LAGS = "one of them lags (`kafka-metadata-quorum.sh describe --replication` shows which)"


def _disagreement(answers: Answers[Value]) -> str:
    """Text on what each broker shows, which of them lags, and what to do about it."""
    topics = {broker: one.value for broker, one in answers.items() if isinstance(one.value, Topic)}
    lag = _proven_lag(topics) or ONE_LAGS
    shown = ", ".join(f"broker {broker} {what}" for broker, what in sorted(_first_difference(answers).items()))
    former = "" if topics else _OF_A_FORMER_TOPIC
    return f"{shown}; {lag}{former}. Try again; if this lasts, restart that broker{former and _ANOTHER_VALUE}"


# Fact 62 of docs/design/non-obvious.md: a restart does not help there.
_OF_A_FORMER_TOPIC = ", or was started since the topic was created again, and shows a setting of the former one"
_ANOTHER_VALUE = ", or set it to another value and delete it (`kafka-configs`)"


def _first_difference(answers: Answers[Value]) -> dict[int, str]:
    votes = {broker: one.vote for broker, one in answers.items() if one.vote is not None}
    if NO_TOPIC in votes.values():
        return {broker: "does not know it" if vote == NO_TOPIC else "knows it" for broker, vote in votes.items()}
    common = frozenset.intersection(*votes.values())
    differing = [entry[:2] for vote in votes.values() for entry in vote - common]
    last = max(what for what, _ in differing)  # backwards by name: replicas, leader, in-sync replicas, id
    what, subject = min((entry for entry in differing if entry[0] == last), key=str)
    values = {broker: {entry[:2]: entry[2] for entry in vote} for broker, vote in votes.items()}
    return {
        broker: f"shows {what} of {subject} as {_text(found.get((what, subject)))}" for broker, found in values.items()
    }


def _text(value: object) -> str:
    return "not set" if value is None else str(list(value)) if isinstance(value, tuple) else str(value)


def _proven_lag(topics: Mapping[int, Topic]) -> str | None:
    """Name a broker that knows an older leader epoch than another one; None if none does."""
    newest: dict[tuple[str | None, TopicPartition], int] = {}
    epochs = [
        (broker, (topic.topic_id, one.topic_partition), one.leader_epoch)
        for broker, topic in topics.items()
        for one in topic.partitions
    ]
    for _, key, epoch in epochs:
        newest[key] = max(epoch, newest.get(key, epoch))
    for broker, key, epoch in epochs:
        if epoch < newest[key]:
            return f"broker {broker} lags: it knows leader epoch {epoch} of {key[1]}, and another one {newest[key]}"
    return None


Look = TypeVar("Look")


def ask_by_name(port: ClusterPort, ask: Callable[[int], Look]) -> list[Look]:
    """Answers of two brokers that are asked by name, or of one if only one is live. Raises ClusterError."""
    return answers_of_two(port.describe_cluster().broker_ids, ask)


# Settings.

Configs = Mapping[str, ConfigEntry]


def settings_of_two(
    port: ClusterPort, resources: Iterable[ConfigResource], names: Sequence[str]
) -> Reading[ConfigResource, Configs]:
    """Settings of these names; those of topics as two brokers show them. Raises ClusterError.

    For what is told as the truth, or changed because of it. Brokers answer for themselves.
    """
    asked = list(dict.fromkeys(resources))
    topics = [one for one in asked if one.type is ResourceType.TOPIC]

    def ask(some: Sequence[ConfigResource], broker: int) -> Batch[ConfigResource, Configs]:
        return port.describe_configs(some, names=names, broker=broker)

    own = read_settings(port, (one for one in asked if one.type is not ResourceType.TOPIC), names)
    shown = _of_two(port, ask, topics, _of_topic, lambda one, _: one)
    return Reading({**own.known, **shown.known}, own.absent | shown.absent, {**own.unknown, **shown.unknown})


def _of_topic(configs: Configs) -> Vote:
    """The values of the topic itself: defaults are those of the broker that is asked."""
    return frozenset(
        (name, "the topic", one.value) for name, one in configs.items() if one.source is ConfigSource.DYNAMIC_TOPIC
    )


def highest_of_two(port: ClusterPort, topics: Iterable[str], name: str) -> Reading[str, int]:
    """This number of each topic: the higher one of two brokers, whose own defaults it may be. Raises ClusterError."""

    def ask(some: Sequence[str], broker: int) -> Batch[str, int]:
        found = port.describe_configs(map(ConfigResource.topic, some), names=(name,), broker=broker)
        texts = {one.name: entries[name].value for one, entries in found.ok.items() if name in entries}
        read = {topic: signed_number(text) for topic, text in texts.items() if text is not None}
        numbers = {topic: number for topic, number in read.items() if number is not None}
        missing = (topic for topic in some if topic not in numbers)
        untold = {topic: ClusterError(f"broker {broker} does not show {name} of topic {topic}") for topic in missing}
        return Batch(numbers, {**untold, **{one.name: error for one, error in found.failed.items()}})

    return _of_two(port, ask, sorted(set(topics)), lambda _: frozenset(), max)


def read_settings(
    port: ClusterPort, resources: Iterable[ConfigResource], names: Sequence[str]
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


# Moves, and live brokers.


Moves = Mapping[TopicPartition, OngoingReassignment]


def listed_moves(port: ClusterPort, partitions: Collection[TopicPartition] | None = None) -> Moves:
    """Moves of these partitions (None: all) by one listing, for those who look again soon. Raises ClusterError."""
    return port.list_partition_reassignments(partitions)


def ongoing_moves(port: ClusterPort, partitions: Collection[TopicPartition] | None = None) -> Moves:
    """Moves of these partitions (None: all) that the controller lists when asked twice. Raises ClusterError.

    Each time, the client puts an empty list to another broker, which may forward to another controller.
    """
    return {**listed_moves(port, partitions), **listed_moves(port, partitions)}


def with_moves(port: ClusterPort, look: Callable[[], Seen]) -> tuple[Seen, Moves]:
    """A look, and all moves listed before or after it: what moves meanwhile is among them.

    Raises ClusterError, and what the look raises.
    """
    before = listed_moves(port)
    seen = look()
    return seen, {**before, **listed_moves(port)}


def live_with(port: ClusterPort, brokers: Collection[int]) -> frozenset[int]:
    """Live brokers as two brokers show them; while no two answer, none of these is known to be down.

    Raises ClusterError.
    """
    return live_or_unknown(port, brokers)[0]


def live_or_unknown(port: ClusterPort, brokers: Collection[int]) -> tuple[frozenset[int], ClusterError | None]:
    """Return `live_with`, and why it is not known which brokers are live; None if it is. Raises ClusterError."""
    try:
        return live_of_two(port), None
    except ClusterError as error:
        return frozenset((*port.describe_cluster().broker_ids, *brokers)), error


def live_of_two(port: ClusterPort, *, include_fenced: bool = False) -> frozenset[int]:
    """Live brokers, or with `include_fenced` all that are registered: others are down, or gone, as two brokers show it.

    Raises ClusterError.
    """
    return frozenset(cluster_of_two(port, include_fenced=include_fenced).broker_ids)


def cluster_of_two(port: ClusterPort, *, include_fenced: bool = False) -> Cluster:
    """The cluster without brokers that are down, or gone, as two brokers show it.

    A broker that lags knows of no restart, and of no failure: where two disagree, a third one is asked. Raises
    ClusterError.
    """
    brokers = port.describe_cluster().broker_ids
    needed = min(LOOKS, max(1, len(brokers)))
    looks: list[Cluster] = []
    failure = ClusterError("the cluster lists no live broker")
    for broker in brokers[:TRIES]:
        try:
            looks.append(port.describe_cluster(include_fenced=include_fenced, broker=broker))
        except Unsupported:
            raise
        except ClusterError as error:
            failure = error
            continue
        if len(looks) >= needed and len({look.broker_ids for look in looks}) == 1:
            break
    if len(looks) < needed:
        raise failure
    shown = {one.id: one for look in looks for one in look.brokers}
    absences = Counter(broker for look in looks for broker in shown.keys() - set(look.broker_ids))
    there = (one for broker, one in sorted(shown.items()) if absences[broker] < needed)
    return replace(looks[0], brokers=tuple(there))
