"""What coordinators coordinate: groups, transactional ids and share groups, by the partition whose leader does.

Kafka gives each of them to a partition of an internal topic by Java's hash of its name; the leader is its coordinator:

    __consumer_offsets    the group id
    __transaction_state   the transactional id
    __share_group_state   group id, topic id and partition, joined by colons; one for every partition that it reads

`Utils.abs(name.hashCode()) % partitions`. Bytes say little of it: offsets are compacted, and one group may be as busy
as a hundred that have stopped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from kreassign.errors import InputError
from kreassign.model.java_hash import share_of, string_hash
from kreassign.planner.problem.problem import Problem

GROUPS, TRANSACTIONS, SHARE_GROUPS = "__consumer_offsets", "__transaction_state", "__share_group_state"


@dataclass(frozen=True, slots=True)
class Coordinated:
    """Who has a coordinator: group ids, transactional ids, and share groups with a topic that they read."""

    groups: tuple[str, ...] = ()
    transactional_ids: tuple[str, ...] = ()
    share_groups: tuple[tuple[str, str], ...] = ()


NOBODY = Coordinated()


def with_coordinated(problem: Problem, coordinated: Coordinated, topic_ids: Mapping[str, str]) -> Problem:
    """The problem with what the leader of each partition coordinates; topic ids are by name.

    Raises InputError where the internal topic is not there, or a topic that a share group reads, or its id.
    """
    if coordinated == NOBODY:
        return problem
    names = {
        GROUPS: coordinated.groups,
        TRANSACTIONS: coordinated.transactional_ids,
        SHARE_GROUPS: tuple(_share_keys(problem, coordinated.share_groups, topic_ids)),
    }
    partitions = problem.partitions
    counts = np.zeros(len(partitions))
    for topic, keys in names.items():
        if not keys:
            continue
        if topic not in partitions.topic_names:
            raise InputError(f"there is no topic {topic} in this cluster, so that nothing coordinates {keys[0]!r}")
        its = np.flatnonzero(partitions.topics == partitions.topic_names.index(topic))
        chosen = [share_of(string_hash(key), len(its)) for key in dict.fromkeys(keys)]
        counts[its] = np.bincount(chosen, minlength=len(its))[partitions.numbers[its]]
    return replace(problem, partitions=replace(partitions, coordinated=counts))


def _share_keys(problem: Problem, groups: Iterable[tuple[str, str]], topic_ids: Mapping[str, str]) -> Iterable[str]:
    partitions = problem.partitions
    for group, topic in groups:
        if topic not in partitions.topic_names:
            raise InputError(f"share group {group}: there is no topic {topic!r} in this cluster")
        if topic not in topic_ids:
            raise InputError(f"share group {group}: the id of topic {topic} is not known; take a new snapshot")
        count = int((partitions.topics == partitions.topic_names.index(topic)).sum())
        yield from (f"{group}:{topic_ids[topic]}:{number}" for number in range(count))


def parse_names(text: str) -> tuple[str, ...]:
    """Group or transactional ids, one a line, as `kafka-consumer-groups --list` prints them; not empty lines.

    Raises InputError for what is no text.
    """
    if "\0" in text:
        raise InputError("no text, but a file with zero bytes; write one id a line")
    return tuple(dict.fromkeys(line.rstrip("\r") for line in text.split("\n") if line.strip()))


def parse_share_groups(text: str) -> tuple[tuple[str, str], ...]:
    """Share groups with a topic that they read, `GROUP:TOPIC` a line. Raises InputError, which names the line."""
    found = []
    for line in parse_names(text):
        group, colon, topic = line.rpartition(":")
        if not (group and colon and topic):
            raise InputError(f"{line[:80]!r} names no share group and topic; write GROUP:TOPIC")
        found.append((group, topic))
    return tuple(found)
