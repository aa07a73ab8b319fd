"""The throttle of a run: which configs it needs, what they were before, and how to put them back. Pure.

A throttle is owed: every change is first written down as a `Debt` (the value before and ours), and paid back by
restoring exactly that value. A value that is neither ours nor the one before was set by someone else meanwhile; it
stays, and the run says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kreassign.model import ConfigChange, ConfigResource, Reassignment, TopicPartition
from kreassign.model.throttle import (
    FOLLOWER_THROTTLED_RATE,
    FOLLOWER_THROTTLED_REPLICAS,
    LEADER_THROTTLED_RATE,
    LEADER_THROTTLED_REPLICAS,
    ThrottledMove,
    follower_lists,
    leader_lists,
    move_map,
)

EVERY_REPLICA = "*"

_LISTS = (LEADER_THROTTLED_REPLICAS, FOLLOWER_THROTTLED_REPLICAS)

Flows = Mapping[TopicPartition, ThrottledMove]


class ConfigKey(NamedTuple):
    """One setting of one topic or broker."""

    resource: ConfigResource
    name: str

    def __str__(self) -> str:
        return f"{self.name} of {self.resource}"


@dataclass(frozen=True, slots=True)
class ConfigValue:
    """What a setting is; `value` is None where this topic or broker has none of its own (defaults do not count)."""

    key: ConfigKey
    value: str | None

    def __str__(self) -> str:
        return f"{self.key} is {_shown(self.value)}"


@dataclass(frozen=True, slots=True)
class Debt:
    """A change that must be undone: the value before it and the value we give. None stands for no value."""

    key: ConfigKey
    before: str | None
    ours: str

    def __str__(self) -> str:
        return f"{self.key} is still {self.ours!r}; before the run it was {_shown(self.before)}"


@dataclass(frozen=True, slots=True)
class Restoration:
    """How to pay debts back: what to write, which debts need no write any more, and what others changed."""

    changes: tuple[Debt, ...]
    settled: tuple[ConfigKey, ...]
    foreign: tuple[ConfigValue, ...]


def flows(reassignments: Mapping[TopicPartition, Reassignment]) -> Flows:
    """Between which brokers the data of these moves flows; only those that copy something.

    Other moves of the cluster are left out: what is listed for them stays listed, see `debts`.
    """
    plan = {partition: move.target for partition, move in reassignments.items() if move.adding}
    return move_map({}, plan, {partition: reassignments[partition].original for partition in plan})


def keys_to_change(moves: Flows, live_brokers: Iterable[int]) -> tuple[ConfigKey, ...]:
    """The settings that a throttle of these flows changes, sorted.

    Topics get lists of the copying replicas only. A rate goes to each live broker that sends, and to each that
    receives; one that is down copies nothing and would only make the change hang.
    """
    live = set(live_brokers)
    senders = live & {broker for move in moves.values() for broker in move.sources}
    receivers = live & {broker for move in moves.values() for broker in move.destinations}
    topics = {ConfigResource.topic(partition.topic) for partition in moves}
    return tuple(
        sorted(
            {ConfigKey(topic, name) for topic in topics for name in _LISTS}
            | {ConfigKey(ConfigResource.broker(broker), LEADER_THROTTLED_RATE) for broker in senders}
            | {ConfigKey(ConfigResource.broker(broker), FOLLOWER_THROTTLED_RATE) for broker in receivers}
        )
    )


def debts(moves: Flows, rate_bytes_per_s: int, before: Iterable[ConfigValue]) -> tuple[Debt, ...]:
    """The changes that throttle these flows, given the present value of every key of `keys_to_change`.

    Replicas that are listed already stay listed, also by the wildcard. What is as we need it is left alone.
    """
    listed = _lists_by_key(moves)
    wanted = []
    for present in before:
        pairs = listed.get(present.key)
        ours = str(rate_bytes_per_s) if pairs is None else _with_listed(present.value, pairs)
        wanted.append(Debt(present.key, present.value, ours))
    return tuple(debt for debt in wanted if debt.before != debt.ours)


def restoration(owed: Iterable[Debt], now: Iterable[ConfigValue]) -> Restoration:
    """What each debt needs, given the present values. Debts whose value is unknown stay as they are."""
    values = {present.key: present for present in now}
    changes, settled, foreign = [], [], []
    for debt in owed:
        present = values.get(debt.key)
        if present is None:
            continue
        if present.value == debt.ours:
            changes.append(debt)
        elif present.value == debt.before:
            settled.append(debt.key)
        else:
            foreign.append(present)
    return Restoration(tuple(changes), tuple(settled), tuple(foreign))


def changes_to_ours(owed: Iterable[Debt]) -> dict[ConfigResource, list[ConfigChange]]:
    """The calls that put the throttle in force."""
    return _grouped((debt.key, debt.ours) for debt in owed)


def changes_to_before(owed: Iterable[Debt]) -> dict[ConfigResource, list[ConfigChange]]:
    """The calls that restore what was there: the old value, or none."""
    return _grouped((debt.key, debt.before) for debt in owed)


def _grouped(wishes: Iterable[tuple[ConfigKey, str | None]]) -> dict[ConfigResource, list[ConfigChange]]:
    grouped: dict[ConfigResource, list[ConfigChange]] = {}
    for key, value in wishes:
        change = ConfigChange.delete(key.name) if value is None else ConfigChange.set(key.name, value)
        grouped.setdefault(key.resource, []).append(change)
    return grouped


def _lists_by_key(moves: Flows) -> dict[ConfigKey, str]:
    sides = ((LEADER_THROTTLED_REPLICAS, leader_lists(moves)), (FOLLOWER_THROTTLED_REPLICAS, follower_lists(moves)))
    return {
        ConfigKey(ConfigResource.topic(topic), name): pairs for name, side in sides for topic, pairs in side.items()
    }


def _with_listed(present: str | None, pairs: str) -> str:
    """The list that is there with our pairs in it; itself if they all are already."""
    if present is None:
        return pairs
    already = {item.strip() for item in present.split(",") if item.strip()}
    wanted = set(pairs.split(","))
    return present if EVERY_REPLICA in already or wanted <= already else ",".join(sorted(already | wanted))


def _shown(value: str | None) -> str:
    return "not set" if value is None else repr(value)
