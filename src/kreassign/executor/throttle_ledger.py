"""Keep the throttle configs of a run: which it needs, what they were before, and how to put them back.

The rates are set once, the lists follow the moves: a replica is listed from just before its move starts until it has
caught up, so that an ordinary replica that falls out of sync later is not slowed (future work of KIP-455).

Every change is recorded first as a `ConfigOverride` (the original value and ours), which stays pending until exactly
the original is restored. A value that is neither of both was set by someone else meanwhile; it is kept and reported.

Lists are never written as a whole: our entries are appended, and later subtracted (KIP-339), so that an entry that
someone else adds at any time survives. A list is deleted only where there was none and nothing but ours is in it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from kreassign.executor.throttle_rates import ThrottleRates
from kreassign.model import ConfigChange, ConfigResource, Reassignment, ResourceType, TopicPartition
from kreassign.model.throttle import (
    BROKER_THROTTLES,
    FOLLOWER_THROTTLED_RATE,
    FOLLOWER_THROTTLED_REPLICAS,
    LEADER_THROTTLED_RATE,
    LEADER_THROTTLED_REPLICAS,
    LOG_DIR_RATE,
    TOPIC_THROTTLES,
    ThrottledMove,
    follower_lists,
    leader_lists,
    move_map,
)

EVERY_REPLICA = "*"

Flows = Mapping[TopicPartition, ThrottledMove]
Changes = dict[ConfigResource, list[ConfigChange]]


def items(value: str | None) -> frozenset[str]:
    """The entries of a list of throttled replicas, `partition:broker` or `*`; Kafka allows blanks and empty ones."""
    return frozenset(item.strip() for item in (value or "").split(",")) - {""}


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

    @property
    def then(self) -> str:
        """The same of a time that is over."""
        return f"{self.key} was {_shown(self.value)}"


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
    def then(self) -> str:
        """The same of a time that is over."""
        return f"{self.key} was still {_shown(self.value)}; before the run it was {_shown(self.before)}"

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

    @property
    def is_list(self) -> bool:
        """Whether it is a list of throttled replicas, of which only our entries are ours."""
        return self.key.name in TOPIC_THROTTLES

    @property
    def our_items(self) -> frozenset[str]:
        """Of a list: every entry of ours that may be there."""
        return frozenset().union(*map(items, self.possible_values)) - items(self.before)

    def is_in_force(self, value: str | None) -> bool:
        """Whether a setting with this value does what we set it for: of a list, whether all our entries are there.

        Where nobody knows whether our last value was written, this may be an earlier one of ours, too.
        """
        ours = (self.value, *self.unconfirmed)
        if not self.is_list:
            return value in ours
        return any(items(one) - items(self.before) <= items(value) for one in ours)

    def is_ours(self, value: str | None) -> bool:
        """Whether this value is, at least in part, one of ours that is to be restored."""
        if not self.is_list:
            return value in self.possible_values
        return EVERY_REPLICA not in items(value) - items(self.before) - self.our_items

    def is_restored(self, value: str | None) -> bool:
        """Whether nothing of ours is in this value any more, and a list that was not there is gone."""
        return self.is_without_ours(value) and not (self.is_list and value == "" and self.before is None)

    def is_without_ours(self, value: str | None) -> bool:
        """Whether nothing of ours is in this value. What others added to a list is none of our business."""
        if not self.is_list:
            return value == self.before
        is_covered = EVERY_REPLICA in items(value) - items(self.before)
        return not (is_covered or self.our_items & items(value))

    def confirmed(self) -> ConfigOverride:
        """The same once our value is known to be written."""
        return replace(self, unconfirmed=())


@dataclass(frozen=True, slots=True)
class Restoration:
    """How to restore settings: what to write, which need no write any more, and what others changed.

    `shared` are the lists in which others have entries: to delete one of those would take theirs.
    """

    changes: tuple[ConfigOverride, ...]
    restored: tuple[ConfigKey, ...]
    foreign: tuple[ConfigValue, ...]
    shared: tuple[ConfigKey, ...] = ()


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
            {ConfigKey(topic, name) for topic in topics for name in TOPIC_THROTTLES}
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


def throttle_keys(topics: Iterable[str], brokers: Iterable[int]) -> tuple[ConfigKey, ...]:
    """Every setting of a throttle that these topics and brokers can have."""
    return (
        *(ConfigKey(ConfigResource.topic(topic), name) for topic in topics for name in TOPIC_THROTTLES),
        *(ConfigKey(ConfigResource.broker(broker), name) for broker in brokers for name in BROKER_THROTTLES),
    )


def wanted_rates(before: Mapping[ConfigKey, str | None], rates: ThrottleRates) -> dict[ConfigKey, str | None]:
    """What each rate among these settings shall be; where there is no limit, what it was before."""
    wanted = {key: rates.of(key.broker) for key in before if key.name not in TOPIC_THROTTLES}
    return {key: before[key] if rate is None else str(rate) for key, rate in wanted.items()}


def wanted_lists(moves: Flows, before: Mapping[ConfigKey, str | None]) -> dict[ConfigKey, str | None]:
    """What each list among these settings shall be while these flows are under way.

    Replicas that were listed before stay listed, also by the wildcard.
    """
    pairs = _lists_by_key(moves)
    lists = {key: value for key, value in before.items() if key.name in TOPIC_THROTTLES}
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
    changes, restored, foreign, shared = [], [], [], []
    for override in pending_restores:
        present = values.get(override.key)
        if present is None:
            continue
        if override.is_restored(present.value):
            restored.append(override.key)
        elif override.is_ours(present.value):
            changes.append(override)
        else:
            foreign.append(present)
        if override.is_list and items(present.value) - override.our_items:
            shared.append(override.key)
    return Restoration(tuple(changes), tuple(restored), tuple(foreign), tuple(shared))


def differing(overrides: Iterable[ConfigOverride], now: Iterable[ConfigValue]) -> tuple[ConfigValue, ...]:
    """The present values that do not do what these overrides were made for."""
    known = {override.key: override for override in overrides}
    return tuple(present for present in now if not known[present.key].is_in_force(present.value))


def changes_to_ours(overrides: Iterable[ConfigOverride]) -> Changes:
    """The calls that put the throttle in force: rates are set, entries appended to lists."""
    return _grouped((override.key, _to_ours(override)) for override in overrides)


def entries_to_drop(overrides: Iterable[ConfigOverride]) -> Changes:
    """The calls that take entries out of lists that were ours and are no more.

    Kafka takes one change of a key at once, so these are sent after those of `changes_to_ours`.
    """
    drops = ((override.key, override.our_items - items(override.value)) for override in overrides if override.is_list)
    return _grouped((key, _subtract(key, entries)) for key, entries in drops if entries)


def changes_to_before(overrides: Iterable[ConfigOverride], shared: Collection[ConfigKey] = ()) -> Changes:
    """The calls that restore what was there: the old value, or none; `shared` lists have entries of others."""
    return _grouped((override.key, _to_before(override, override.key in shared)) for override in overrides)


def command_to_restore(override: ConfigOverride, present: str | None) -> tuple[str, ...]:
    """How an operator restores this setting by hand: words of Kafka's own tool, but for the address."""
    kind = "brokers" if override.key.broker is not None else "topics"
    rest = override.before
    if override.is_list:
        # Kafka's tool has no way to subtract; a wildcard that the run did not find is not kept either.
        kept = (items(present) - override.our_items - {EVERY_REPLICA}) | items(override.before)
        rest = ",".join(sorted(kept)) or override.before
    # The tool takes a value with commas in brackets.
    name = override.key.name
    change = ("--delete-config", name) if rest is None else ("--add-config", f"{name}=[{rest}]")
    what = ("--entity-type", kind, "--entity-name", override.key.resource.name)
    return ("kafka-configs", "--alter", *what, *change)


def _to_ours(override: ConfigOverride) -> ConfigChange | None:
    if not override.is_list:
        return _assign(override.key, override.value)
    entries = items(override.value) - items(override.before)
    return ConfigChange.append(override.key.name, ",".join(sorted(entries))) if entries else None


def _to_before(override: ConfigOverride, is_shared: bool) -> ConfigChange:
    if override.is_list and (is_shared or override.before is not None):
        return _subtract(override.key, override.our_items)
    return _assign(override.key, override.before)


def _assign(key: ConfigKey, value: str | None) -> ConfigChange:
    return ConfigChange.delete(key.name) if value is None else ConfigChange.set(key.name, value)


def _subtract(key: ConfigKey, entries: Iterable[str]) -> ConfigChange:
    return ConfigChange.subtract(key.name, ",".join(sorted(entries)))


def _grouped(changes: Iterable[tuple[ConfigKey, ConfigChange | None]]) -> Changes:
    grouped: Changes = {}
    for key, change in changes:
        if change is not None:
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
    already, wanted = items(present), items(pairs)
    return present if EVERY_REPLICA in already or wanted <= already else ",".join(sorted(already | wanted))


def _shown(value: str | None) -> str:
    return "not set" if value is None else repr(value)


# Throttles that are set when a run begins.


class FoundThrottles(StrEnum):
    """What to do about throttles that are set when a run begins: no run of this state directory has to restore them."""

    REFUSE = "refuse"  # start nothing: they may belong to somebody whose moves go on
    REMOVE = "remove"  # they were left behind: they are gone when the run has ended
    RESTORE = "restore"  # they are meant to be there: they have their values again when the run has ended
    ALONGSIDE = "alongside"  # they belong to moves of others, which go on under the rates of this run
