"""Who leads a partition, asked with every change of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from kreassign.model import NO_LEADER


class Election(Enum):
    """Which replicas may come to lead.

    `PREFERRED`: the first replica if it can, also in place of a leader that could stay. `ONLINE`: the present leader
    stays if it can. `UNCLEAN`: like `ONLINE`, but rather a replica out of sync than none at all.
    """

    PREFERRED = "preferred"
    ONLINE = "online"
    UNCLEAN = "unclean"


@dataclass(frozen=True, slots=True)
class Candidates:
    """Who can be asked to lead: the replicas in their order, who is in sync, and who was before the ISR became empty.

    `last_leader` led when nobody was left in sync; None where the controller does not remember such things.
    """

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...]
    leader: int
    last_leader: int | None
    may_lead: Callable[[int], bool]


class Choice(NamedTuple):
    """The leader, `NO_LEADER` for nobody; unclean if records may be lost with it."""

    leader: int
    is_unclean: bool = False


def choose_leader(candidates: Candidates, election: Election) -> Choice:
    """Choose a leader, cleanly as long as anybody in sync can lead."""
    return _clean(candidates, election) or _unclean(candidates, election) or Choice(NO_LEADER)


def _clean(candidates: Candidates, election: Election) -> Choice | None:
    in_sync = candidates.isr or candidates.elr
    order = [candidates.leader, *candidates.replicas]
    if election is Election.PREFERRED:
        order.insert(0, candidates.replicas[0])
    leader = _first(order, lambda broker: broker in in_sync and candidates.may_lead(broker))
    return None if leader is None else Choice(leader)


def _unclean(candidates: Candidates, election: Election) -> Choice | None:
    last = candidates.last_leader
    nobody_in_sync = not candidates.isr and not candidates.elr
    if nobody_in_sync and last is not None and candidates.may_lead(last):
        return Choice(last, is_unclean=True)
    if election is not Election.UNCLEAN:
        return None
    leader = _first(candidates.replicas, candidates.may_lead)
    return None if leader is None else Choice(leader, is_unclean=True)


def _first(brokers: Iterable[int], is_fit: Callable[[int], bool]) -> int | None:
    return next((broker for broker in brokers if is_fit(broker)), None)
