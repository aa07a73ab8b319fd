"""Why a broker receives no replicas, whether it may lead, and whether changed lists may name it: one answer for all.

    a working log directory is not cordoned, and it is not in maintenance   →  nothing is closed
    all working log directories are cordoned (KIP-1066, Kafka 4.3)          →  CORDONED
    it reported no working directory, or not whether those are cordoned     →  UNREAD
    it is in maintenance by the record that the cluster keeps               →  MAINTENANCE: it is to lead nothing, too
    it did not report the size of its file systems, and others did theirs   →  UNSIZED
    cordoned or unread, and Kafka refuses lists that name it, or that is
    not known                                                               →  BINDING besides

Kafka 4.3.0 and 4.3.1 accept lists that name a cordoned broker. Kafka 4.4, and 4.3 with KAFKA-20832, refuse every
changed list that names one, also where its replica merely stays. No release refuses a broker in maintenance.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from enum import IntFlag


class Closure(IntFlag):
    """Why a broker receives nothing; several reasons may hold at once."""

    NONE = 0
    CORDONED = 1
    MAINTENANCE = 2
    UNREAD = 4
    BINDING = 8
    UNSIZED = 16

    @property
    def may_lead(self) -> bool:
        """False if the broker is to lead nothing: no plan and no election gives it a partition to lead."""
        return not self & LEADS_NOTHING

    @property
    def is_binding(self) -> bool:
        """True if no changed list may name the broker: its partitions stay as they are, or leave it whole."""
        return Closure.BINDING in self

    @property
    def why(self) -> str:
        """The reason, without its subject; empty for an open broker."""
        return " and ".join(_WORDS[one][0] for one in self if one in _WORDS)

    @property
    def remedy(self) -> str:
        """Command or step after which the broker receives replicas again, as an imperative."""
        return ", and ".join(_WORDS[one][1] for one in self if one in _WORDS)


LEADS_NOTHING = Closure.MAINTENANCE
"""Reasons for which a broker is to lead nothing; it may go on leading what no other replica can lead."""

_WORDS = {
    Closure.CORDONED: (
        "all its working log directories are cordoned",
        "take one of them out of its cordoned.log.dirs (`kreassign doctor` says how)",
    ),
    Closure.MAINTENANCE: ("it is in maintenance", "end that with `kreassign maintenance exit`"),
    Closure.UNREAD: (
        "it did not report whether its log directories are cordoned",
        "see why it does not answer (`kreassign doctor`)",
    ),
    Closure.UNSIZED: (
        "it did not report the size of its file systems, as others did",
        # Runs that replan and autopilots read no goals file.
        "see why it does not, or make a plan with a goals file that has its limit for disk ([broker-capacity])",
    ),
}

REFUSES = "Kafka 4.4, and 4.3 with KAFKA-20832, refuse every changed list that names it (INVALID_REPLICA_ASSIGNMENT)"
"""Effect of a binding cordon, with the versions."""


def closure_of(
    cordons: Sequence[bool | None], *, in_maintenance: bool = False, may_be_named: bool | None = None
) -> Closure:
    """Reasons why a live broker receives nothing; NONE if it does.

    `cordons` has for each working log directory whether it is cordoned, None if unknown; empty if none was reported.
    `may_be_named` is what the cluster answered about lists that name the broker; None if it was not asked.
    """
    found = Closure.MAINTENANCE if in_maintenance else Closure.NONE
    if False in cordons:
        return found
    found |= Closure.CORDONED if cordons and all(cordons) else Closure.UNREAD
    return found if may_be_named else found | Closure.BINDING


def leading_nothing(brokers: Iterable[int], in_maintenance: Collection[int]) -> frozenset[int]:
    """Brokers of these, live or not, that are to lead nothing."""
    return frozenset(
        broker for broker in brokers if not closure_of((), in_maintenance=broker in in_maintenance).may_lead
    )
