"""The throttle of a run: which configs it needs, what they were before, and how to put them back. Pure.

The rates are set once, the lists follow the moves: a replica is listed from just before its move starts until it has
caught up, so that an ordinary replica that falls out of sync later is not slowed (future work of KIP-455).

Every change is recorded first as a `ConfigOverride` (the value before and ours) and stays pending until exactly that
value is restored. A value that is neither ours nor the one before was set by someone else meanwhile; it is kept and
reported.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from kreassign.executor.throttle.rates import ThrottleRates
from kreassign.model import ConfigChange, ConfigResource, Reassignment, ResourceType, TopicPartition
from kreassign.model.throttle import (
    FOLLOWER_THROTTLED_RATE,
    FOLLOWER_THROTTLED_REPLICAS,
    LEADER_THROTTLED_RATE,
    LEADER_THROTTLED_REPLICAS,
    LOG_DIR_RATE,
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

    @property
    def broker(self) -> int | None:
        """Whose setting it is; None where it is a topic's."""
        return int(self.resource.name) if self.resource.type is ResourceType.BROKER else None

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
class ConfigOverride:
    """A change that must be undone: the value before it and the value we give. None stands for no value.

    `unconfirmed` are values of ours that may still be there, because nobody knows whether the last one was written.
    """

    key: ConfigKey
    before: str | None
    value: str | None
    unconfirmed: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.key} is still {_shown(self.value)}; before the run it was {_shown(self.before)}"

    @property
    def is_open(self) -> bool:
        """Whether another value than the old one is or may be there."""
        return self.value != self.before or bool(self.unconfirmed)

    @property
    def possible_values(self) -> tuple[str, ...]:
        """Every value of ours that may be there."""
        return (
            self.unconfirmed
            if self.value is None or self.value in self.unconfirmed
            else (*self.unconfirmed, self.value)
        )

    def accounts_for(self, value: str | None) -> bool:
        """Whether this value is ours or the one before; else somebody else set it."""
        return value in {self.before, self.value, *self.unconfirmed}

    def confirmed(self) -> ConfigOverride:
        """The same once our value is known to be written."""
        return replace(self, unconfirmed=()) if self.unconfirmed else self


@dataclass(frozen=True, slots=True)
class Restoration:
    """How to restore settings: what to write, which need no write any more, and what others changed."""

    changes: tuple[ConfigOverride, ...]
    restored: tuple[ConfigKey, ...]
    foreign: tuple[ConfigValue, ...]


def flows(reassignments: Mapping[TopicPartition, Reassignment]) -> Flows:
    """Between which brokers the data of these moves flows; only those that copy something.

    Other moves of the cluster are left out: what is listed for them stays listed, see `overrides`.
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


def brokers_of(moves: Flows) -> frozenset[int]:
    """Every broker that sends or receives."""
    return frozenset(broker for move in moves.values() for broker in (*move.sources, *move.destinations))


def log_dir_keys(brokers: Iterable[int], live_brokers: Iterable[int]) -> tuple[ConfigKey, ...]:
    """The rates of copies between the directories of one broker, of these brokers as far as they are live, sorted."""
    return tuple(
        ConfigKey(ConfigResource.broker(broker), LOG_DIR_RATE) for broker in sorted({*brokers} & {*live_brokers})
    )


def wanted_rates(before: Mapping[ConfigKey, str | None], rates: ThrottleRates) -> dict[ConfigKey, str | None]:
    """What each rate among these settings shall be; where there is no limit, what it was before."""
    wanted = {key: rates.of(key.broker) for key in before if key.name not in _LISTS}
    return {key: before[key] if rate is None else str(rate) for key, rate in wanted.items()}


def wanted_lists(moves: Flows, before: Mapping[ConfigKey, str | None]) -> dict[ConfigKey, str | None]:
    """What each list among these settings shall be while these flows are under way.

    Replicas that were listed before stay listed, also by the wildcard.
    """
    pairs = _lists_by_key(moves)
    lists = {key: value for key, value in before.items() if key.name in _LISTS}
    return {key: _with_listed(value, pairs[key]) if pairs.get(key) else value for key, value in lists.items()}


def changes(
    wanted: Mapping[ConfigKey, str | None],
    before: Mapping[ConfigKey, str | None],
    pending_restores: Mapping[ConfigKey, ConfigOverride],
    unset: Collection[ConfigResource] = (),
) -> tuple[ConfigOverride, ...]:
    """The overrides that set what is wanted; what is so already is left alone, but for the `unset`."""
    return tuple(
        ConfigOverride(
            key, before[key], value, pending_restores[key].possible_values if key in pending_restores else ()
        )
        for key, value in wanted.items()
        if value != (pending_restores[key].value if key in pending_restores else before[key])
        or (key in pending_restores and key.resource in unset)
    )


def restoration(pending_restores: Iterable[ConfigOverride], now: Iterable[ConfigValue]) -> Restoration:
    """What each override needs, given the present values. One whose value is unknown stays as it is."""
    values = {present.key: present for present in now}
    changes, restored, foreign = [], [], []
    for override in pending_restores:
        present = values.get(override.key)
        if present is None:
            continue
        if present.value == override.before:
            restored.append(override.key)
        elif present.value in override.possible_values:
            changes.append(override)
        else:
            foreign.append(present)
    return Restoration(tuple(changes), tuple(restored), tuple(foreign))


def changes_to_ours(pending_restores: Iterable[ConfigOverride]) -> dict[ConfigResource, list[ConfigChange]]:
    """The calls that put the throttle in force."""
    return _grouped((override.key, override.value) for override in pending_restores)


def changes_to_before(pending_restores: Iterable[ConfigOverride]) -> dict[ConfigResource, list[ConfigChange]]:
    """The calls that restore what was there: the old value, or none."""
    return _grouped((override.key, override.before) for override in pending_restores)


def _grouped(values: Iterable[tuple[ConfigKey, str | None]]) -> dict[ConfigResource, list[ConfigChange]]:
    grouped: dict[ConfigResource, list[ConfigChange]] = {}
    for key, value in values:
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
