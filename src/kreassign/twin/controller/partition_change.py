"""Turn an update of a partition into one record that includes all of its consequences.

Every change of a partition goes through `change_of`: whether it completes a move, the leader after it, the leaders
eligible without a replica in sync (KIP-966), and whether a new leader epoch must inform followers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, TypeVar, assert_never

from kreassign.model import NO_LEADER
from kreassign.model.cluster import without
from kreassign.twin.controller.decision import CompletionRule, ControllerContext, default_directory
from kreassign.twin.metadata import LeaderRecovery, PartitionChanged, PartitionState

# End of a move: the rule is applied with every change of a partition.


class MoveLists(NamedTuple):
    """The lists of a move; `replicas` are all replicas, those being removed last."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


def completed_lists(rule: CompletionRule, lists: MoveLists) -> MoveLists | None:
    """The lists after the move has ended; None if there is no move or it cannot end yet."""
    if not lists.adding and not lists.removing:
        return None
    isr = without(lists.isr, lists.removing)
    if lists.removing and not isr:
        return None
    target = without(lists.replicas, lists.removing)
    if not _is_satisfied(rule, lists, frozenset(isr), frozenset(target)):
        return None
    return MoveLists(target, isr, (), ())


def _is_satisfied(rule: CompletionRule, lists: MoveLists, isr: frozenset[int], target: frozenset[int]) -> bool:
    match rule:
        case CompletionRule.V1:
            return isr.issuperset(lists.adding)
        case CompletionRule.V2:
            return isr >= target
        case CompletionRule.V3:
            shrinks = len(lists.adding) < len(lists.removing)
            return isr.issuperset(lists.adding) and (not shrinks or isr >= target)
        case CompletionRule.BY_PHASES:
            return False
        case _:
            assert_never(rule)


# Choose the leader of a partition on every change.


class Election(Enum):
    """Replicas that an election may choose.

    `PREFERRED`: the first replica if it can, even in place of a leader that could stay. `ONLINE`: the present leader
    stays if it can. `UNCLEAN`: like `ONLINE`, but prefers a replica out of sync to no leader.
    """

    PREFERRED = "preferred"
    ONLINE = "online"
    UNCLEAN = "unclean"


def election_of(context: ControllerContext, topic: str) -> Election:
    """The election that a change of a partition of this topic causes by itself."""
    return Election.UNCLEAN if context.allows_unclean_election(topic) else Election.ONLINE


@dataclass(frozen=True, slots=True)
class Candidates:
    """Candidates for leader: the replicas in their order, the ISR, and the eligible ones if the ISR became empty.

    `last_leader` led when the ISR became empty; None if the controller does not keep it.
    """

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...]
    leader: int
    last_leader: int | None
    may_lead: Callable[[int], bool]


class LeaderChoice(NamedTuple):
    """The leader, or `NO_LEADER`; unclean if records may be lost with it."""

    leader: int
    is_unclean: bool = False


def choose_leader(candidates: Candidates, election: Election) -> LeaderChoice:
    """Choose a leader; unclean only if no replica in sync can lead."""
    return _clean_choice(candidates, election) or _unclean_choice(candidates, election) or LeaderChoice(NO_LEADER)


def _clean_choice(candidates: Candidates, election: Election) -> LeaderChoice | None:
    in_sync = candidates.isr or candidates.elr
    order = [candidates.leader, *candidates.replicas]
    if election is Election.PREFERRED:
        order.insert(0, candidates.replicas[0])
    leader = _first_fit(order, lambda broker: broker in in_sync and candidates.may_lead(broker))
    return None if leader is None else LeaderChoice(leader)


def _unclean_choice(candidates: Candidates, election: Election) -> LeaderChoice | None:
    last = candidates.last_leader
    nobody_in_sync = not candidates.isr and not candidates.elr
    if nobody_in_sync and last is not None and candidates.may_lead(last):
        return LeaderChoice(last, is_unclean=True)
    if election is not Election.UNCLEAN:
        return None
    leader = _first_fit(candidates.replicas, candidates.may_lead)
    return None if leader is None else LeaderChoice(leader, is_unclean=True)


def _first_fit(brokers: Iterable[int], is_fit: Callable[[int], bool]) -> int | None:
    return next((broker for broker in brokers if is_fit(broker)), None)


# Updates of a partition, and their records.

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class PartitionUpdate:
    """The update of a partition; None leaves a field as it is.

    `lost` is a broker that died without shutting down, so its data on disk is not trusted. `directory` is a broker and
    the id of the directory of its replica.
    """

    replicas: tuple[int, ...] | None = None
    adding: tuple[int, ...] | None = None
    removing: tuple[int, ...] | None = None
    isr: tuple[int, ...] | None = None
    leader_recovery: LeaderRecovery | None = None
    election: Election = Election.ONLINE
    lost: int | None = None
    directory: tuple[int, str] | None = None


def change_of(
    context: ControllerContext, partition: PartitionState, update: PartitionUpdate
) -> PartitionChanged | None:
    """The record of an update; None if it changes nothing."""
    requested = MoveLists(
        partition.replicas if update.replicas is None else update.replicas,
        partition.isr if update.isr is None else update.isr,
        partition.adding if update.adding is None else update.adding,
        partition.removing if update.removing is None else update.removing,
    )
    lists = completed_lists(context.rules.completion, requested) or requested
    elr = _eligible(context, partition, lists.isr, update.lost)
    candidates = _candidates(context, partition, lists, elr)
    choice = choose_leader(candidates, update.election)
    change = _change(context, partition, _settled(partition, lists, elr, choice), update)
    return None if change == PartitionChanged(partition.topic_partition) else change


@dataclass(frozen=True, slots=True)
class _Settled:
    """The new state of a partition. `leader` is None unless the election changed it, `recovery` unless it changes."""

    lists: MoveLists
    elr: tuple[int, ...]
    leader: int | None = None
    recovery: LeaderRecovery | None = None
    is_unclean: bool = False


def _eligible(
    context: ControllerContext, partition: PartitionState, isr: tuple[int, ...], lost: int | None
) -> tuple[int, ...]:
    """Brokers that left an ISR too small to acknowledge records, and so have all acknowledged records."""
    if not context.rules.has_eligible_leaders or len(isr) >= context.min_isr(partition.topic_partition.topic):
        return ()
    return tuple(sorted({*partition.elr, *partition.isr}.difference(isr, (lost,))))


def _candidates(
    context: ControllerContext, partition: PartitionState, lists: MoveLists, elr: tuple[int, ...]
) -> Candidates:
    remembers = context.rules.has_eligible_leaders and len(partition.last_known_elr) == 1
    return Candidates(
        lists.replicas,
        lists.isr,
        elr,
        partition.leader,
        partition.last_known_elr[0] if remembers else None,
        lambda broker_id: context.may_lead(partition, broker_id),
    )


def _settled(partition: PartitionState, lists: MoveLists, elr: tuple[int, ...], choice: LeaderChoice) -> _Settled:
    leader = choice.leader
    if leader == partition.leader:
        return _Settled(lists, elr)
    if choice.is_unclean:
        return _Settled(lists._replace(isr=(leader,)), (), leader, LeaderRecovery.RECOVERING, is_unclean=True)
    if leader in elr:
        return _Settled(lists._replace(isr=(leader,)), without(elr, (leader,)), leader)
    return _Settled(lists, elr, leader)


def _change(
    context: ControllerContext, partition: PartitionState, settled: _Settled, update: PartitionUpdate
) -> PartitionChanged:
    lists = settled.lists
    leader = settled.leader
    if leader is None and not set(partition.replicas) <= set(lists.replicas):
        leader = partition.leader  # Removed replicas must be informed, so the epoch rises under the same leader.
    isr_may_change = lists.isr or context.rules.has_eligible_leaders
    return PartitionChanged(
        partition.topic_partition,
        replicas=_if_new(lists.replicas, partition.replicas),
        adding=_if_new(lists.adding, partition.adding),
        removing=_if_new(lists.removing, partition.removing),
        isr=_if_new(lists.isr, partition.isr) if isr_may_change else None,
        leader=leader,
        leader_recovery=_recovery(partition, settled, update),
        directories=_if_new(_directories(context, partition, lists.replicas, update), partition.directories),
        elr=_if_new(settled.elr, partition.elr),
        last_known_elr=_last_leader(context, partition, leader),
    )


def _recovery(partition: PartitionState, settled: _Settled, update: PartitionUpdate) -> LeaderRecovery | None:
    for wanted in (update.leader_recovery, settled.recovery):
        if wanted is not None and wanted is not partition.leader_recovery:
            return wanted
    return None


def _last_leader(context: ControllerContext, partition: PartitionState, leader: int | None) -> tuple[int, ...] | None:
    """Store the last leader when the ISR becomes empty; clear it as soon as there is a leader again."""
    if leader is None or not context.rules.has_eligible_leaders:
        return None
    if leader == NO_LEADER:
        return None if partition.last_known_elr else (partition.leader,)
    return () if partition.last_known_elr else None


def _directories(
    context: ControllerContext, partition: PartitionState, replicas: tuple[int, ...], update: PartitionUpdate
) -> tuple[str, ...]:
    if update.directory is None and replicas == partition.replicas:
        return partition.directories
    known = dict(zip(partition.replicas, partition.directories, strict=True))
    known.update([update.directory] if update.directory else [])
    return tuple(known.get(broker) or default_directory(context.metadata, broker) for broker in replicas)


def _if_new(wanted: tuple[Item, ...], present: tuple[Item, ...]) -> tuple[Item, ...] | None:
    return None if wanted == present else wanted
