"""What a controller does differently from one release of Kafka to the next."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from kreassign.errors import InputError


class CompletionRule(Enum):
    """When a move is complete, given the ISR without the removing replicas, which must not be empty.

    `V1` (until 3.7): all adding replicas are in it. `V2` (3.8 to 4.2): the whole target is in it. `V3` (from 4.3):
    all adding replicas are in it, and where fewer are added than removed, the whole target. `BY_PHASES`: never by
    itself; a controller in ZooKeeper mode goes through phases of its own.
    """

    V1 = 1
    V2 = 2
    V3 = 3
    BY_PHASES = 4


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of one release, for a freshly formatted cluster.

    `has_eligible_leaders`: whether it keeps eligible leader replicas (KIP-966), so that an ISR may become empty.
    `has_cordoning`: whether log directories can be cordoned (KIP-1066), which some texts mention.
    `raises_epoch_for_absent`: whether the leader epoch goes up when a follower that is gone leaves the ISR.
    `places_on_absent`: whether new replicas may go to brokers that are down, where there are too few others.
    """

    completion: CompletionRule = CompletionRule.V3
    has_eligible_leaders: bool = True
    has_cordoning: bool = True
    raises_epoch_for_absent: bool = False
    places_on_absent: bool = True


LATEST = Rules()

ZOOKEEPER = Rules(
    CompletionRule.BY_PHASES,
    has_eligible_leaders=False,
    has_cordoning=False,
    raises_epoch_for_absent=True,
    places_on_absent=False,
)
"""The rules of Kafka 3.9 with its metadata in ZooKeeper."""

_RELEASES = {
    "3.7": Rules(CompletionRule.V1, has_eligible_leaders=False, has_cordoning=False),
    "3.9": Rules(CompletionRule.V2, has_eligible_leaders=False, has_cordoning=False),
    "4.2": Rules(CompletionRule.V2, has_eligible_leaders=True, has_cordoning=False),
    "4.3": LATEST,
}


def rules_of(release: str) -> Rules:
    """The rules of a release line such as `4.3`; InputError for one that is not known."""
    if release not in _RELEASES:
        raise InputError(f"the twin does not know Kafka {release}; choose one of {', '.join(_RELEASES)}")
    return _RELEASES[release]
