"""Symptoms that a look shows, how long they must last, and why a look cannot show them. Pure.

How long a symptom has lasted follows from the journal. Where a detector is blind, an open finding neither ripens nor
closes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from kreassign.autopilot.events import CLUSTER, Name
from kreassign.autopilot.memory import Memory
from kreassign.autopilot.observation import Asked, Known, Observation, Unknown
from kreassign.autopilot.policy import Kind, Level, Policy
from kreassign.model import TopicPartition


@dataclass(frozen=True, slots=True)
class Symptom:
    """One thing that a look shows.

    `tell_s` and `propose_s` are how long it must last for that, `act_s` for acting alone. `since_ms` is from when on it
    is there, where that is known by more than the looks. `may_act` is empty, or the reason why people decide.
    `partitions` are those that show it; None where it is about an amount. `brokers` are those of a finding about the
    cluster that is told again when it is about others, too. Of a disk it is there only `by_growth`, or urgent only
    `urgent_by_growth`; False by its used share, None where neither is clear.
    """

    subject: str
    seen: str
    tell_s: float
    propose_s: float
    act_s: float = 0.0
    since_ms: int | None = None
    is_urgent: bool = False
    may_act: str = ""
    partitions: frozenset[TopicPartition] | None = None
    brokers: frozenset[int] = frozenset()
    by_growth: bool | None = None
    urgent_by_growth: bool | None = None
    is_growth_known: bool = True


class Look(NamedTuple):
    """One look with all that a detector judges by."""

    now: Observation
    memory: Memory
    policy: Policy


# How long a trouble must last.

NEVER_S = float("inf")


class Patience(NamedTuple):
    """Seconds for which a trouble must last to be told, to be proposed for repair, and to be repaired by itself."""

    tell_s: float
    propose_s: float
    act_s: float = 0.0


FLAPPING = Name(Kind.SLOW_BROKER, CLUSTER)
"""The finding of single replicas that fall out of sync again and again."""


def has_remedy(name: Name, policy: Policy) -> bool:
    """True if there is a repair of this finding; others are only ever told."""
    return name != FLAPPING and policy.has_remedy(name.kind)


def level_of(name: Name, policy: Policy) -> Level:
    """How far to go with a finding."""
    return policy.level(name.kind) if has_remedy(name, policy) else Level.TELL


def patience_with(name: Name, policy: Policy) -> Patience:
    """Patience with a finding, unless a look shows more of it."""
    return Patience(0, NEVER_S) if name == FLAPPING else patience(name.kind, policy)


def patience(kind: Kind, policy: Policy) -> Patience:
    """Patience with a kind of trouble; what a look shows of one may shorten or lengthen it."""
    gone, leaders, new = policy.broker_gone, policy.leaders, policy.new_broker
    band, slow = policy.band_left, policy.slow_broker
    return {
        Kind.UNREAD: Patience(policy.unread.tell_after, NEVER_S),
        Kind.MANY_GONE: Patience(policy.many_gone.tell_after, NEVER_S),
        Kind.BROKER_GONE: Patience(gone.tell_after, gone.propose_after, gone.act_after),
        Kind.DISK_FILLS: Patience(0, 0),
        Kind.DIRECTORY_FAILED: Patience(0, 0, policy.directory_failed.act_after),
        Kind.PLACEMENT: Patience(120, policy.placement.propose_after),
        Kind.NEW_BROKER: Patience(new.propose_after, new.propose_after),
        Kind.BAND_LEFT: Patience(band.lasting, band.lasting),
        Kind.SLOW_BROKER: Patience(slow.lasting, slow.lasting),
        Kind.LEADERS: Patience(leaders.propose_after, leaders.propose_after),
    }[kind]


# What each kind needs to have been read.


def sees_brokers(look: Look, subject: str) -> str | None:
    """Topics that were not read hide nothing that others show, but what they have may keep a finding open.

    That a broker is down shows without the record of maintenance, which may be on that broker; a gate waits for it.
    """
    return _not_read({"brokers": look.now.brokers, "partitions": look.now.partitions}) or _topic_not_read(look, subject)


def sees_placement(look: Look, subject: str) -> str | None:
    """Replicas at rest show with brokers, partitions, maintenance and moves of others."""
    now = look.now
    needed: Mapping[str, Asked[Any]] = {
        "brokers": now.brokers, "partitions": now.partitions, "maintenance": now.maintenance,
        "moves": now.moves_of_others,
    }  # fmt: skip
    return _not_read(needed) or _topic_not_read(look, subject)


def _not_read(needed: Mapping[str, Asked[Any]]) -> str | None:
    return next(
        (f"{name} could not be read ({one.why})" for name, one in needed.items() if isinstance(one, Unknown)), None
    )


def _topic_not_read(look: Look, subject: str) -> str | None:
    now = look.now
    if subject and now.unread_topics:
        name, why = min(now.unread_topics.items())
        return f"topic {name} could not be read ({why})"
    return None


def sees_whole_placement(look: Look, subject: str) -> str | None:
    """Down brokers hide how partitions are placed: they look worse than they are."""
    if subject and (missing := sorted(look.now.missing)):
        return f"brokers {missing} are down"
    return sees_placement(look, subject)


def sees_directory(look: Look, subject: str) -> str | None:
    """A directory shows where its broker reports it, or the broker is gone for good."""
    if not subject:
        return None  # a broker that answered shows its own
    broker = Name(Kind.DISK_FILLS, subject).broker
    dirs = look.now.log_dirs.get(broker)
    if isinstance(dirs, Known) or (isinstance(look.now.brokers, Known) and broker not in look.now.live | look.now.down):
        return None
    why = dirs.why if isinstance(dirs, Unknown) else "it is not live"
    return f"log directories of broker {broker} could not be read ({why})"
