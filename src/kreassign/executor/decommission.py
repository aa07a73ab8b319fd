"""Decide the next step to decommission brokers, from the state of the cluster.

Nothing else is stored: after a crash, on another machine or for another operator, the cluster is read and the answer
is the same. Each step changes what the next reading shows, so no step is taken twice. The first row that holds for any
of the brokers decides:

    there are replicas of topics that this client may not see →  `Blocked`
    it has the cordon of its maintenance, whose end opens it  →  `Blocked`
    it is to be unregistered, and has topics that may stay   →  `Blocked`
    a reassignment to it or away from it can never end       →  `Blocked`
    it is live, and the cordon could not be undone           →  `Blocked`
    something is being reassigned to it or away from it      →  `Await` the end of that
    it is live, can be cordoned, and is not                  →  `Cordon`
    a replica list names it                                  →  `Drain`
    its log directories still hold something                 →  `Await` its deletion
    a log directory was unread, and not before a wait        →  `Await` a second look
    it is to be unregistered, and is live                    →  `Blocked` until it is stopped
    it is to be unregistered, and is registered              →  `Unregister`
    otherwise                                                →  `Finished`

The cordon comes before the drain, so that the controller places nothing on a broker that is being emptied. What forbids
a later step comes before the cordon, and the drain can be planned only when nothing moves. Before Kafka 4.4 a
reassignment may still name the broker: what is placed so, also after the drain, is found here and drained again. From
4.4 on no changed list may, so that a partition moves off all brokers that are decommissioned at once.

Topics that may stay, such as canaries that a vendor keeps on every broker, are left out of all of that, and named in
the end; a broker that has replicas of them is not unregistered.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from kreassign.errors import InputError
from kreassign.executor.brokers import (
    Await,
    Blocked,
    BrokerReading,
    Cordon,
    Finished,
    Readings,
    cordon_open,
    listed_brokers,
    only_blocked,
    some_partitions,
    unseen_on,
)
from kreassign.model import OngoingReassignment, TopicPartition
from kreassign.model.reassignment import DOCTOR_TELLS
from kreassign.model.text import agreeing, counted, some_of


@dataclass(frozen=True, slots=True)
class Drain:
    """Move these partitions off the brokers."""

    brokers: tuple[int, ...]
    partitions: tuple[TopicPartition, ...]

    def __str__(self) -> str:
        return f"drain {listed_brokers(self.brokers)}: {some_partitions(self.partitions)}"


@dataclass(frozen=True, slots=True)
class Unregister:
    """Take these brokers, which are empty and stopped, out of the cluster."""

    brokers: tuple[int, ...]

    def __str__(self) -> str:
        return f"unregister {listed_brokers(self.brokers)}"


NAMED_BROKERS = 20
LOOK = (
    "it may be of a topic that this client may not see (DESCRIBE on the topic), or be left over. Look with "
    "kafka-log-dirs, then give the command again"
)

Step = Cordon | Await | Drain | Unregister | Blocked | Finished


@dataclass(frozen=True, slots=True)
class Decommission:
    """The request, and facts learnt in this process that the cluster does not report.

    `uncordoned` are brokers whose cordon Kafka refused, with its reason; `unregistered` those that the controller
    reported as not registered any more. `maintained` are live brokers with the cordon of their maintenance, and since
    when, by whom. `unread` are log directories that could not be read before the last wait.
    `may_stay` are patterns that match the whole names of topics whose replicas
    may stay on the brokers.
    """

    unregisters: bool = False
    uncordoned: Mapping[int, str] = field(default_factory=dict)
    unregistered: frozenset[int] = frozenset()
    maintained: Mapping[int, str] = field(default_factory=dict)
    unread: frozenset[str] = frozenset()
    may_stay: tuple[str, ...] = ()

    def next_step(self, everything: Readings) -> Step:
        """Return the next step, by the table above."""
        found = self.without_staying(everything)
        closed = cordon_open(found, self.uncordoned)
        return (
            unseen_on(found)
            or self._leaves_maintenance()
            or self._stays_registered(everything)
            or _endless(found)
            or only_blocked(closed)
            or _await_moves(found)
            or closed
            or _drain(found)
            or _await_deletion(found)
            or self._await_second_look(found)
            or self._unregister(everything)
            or Finished(
                tuple(self._proof(*pair, found.live) for pair in zip(found.brokers, everything.brokers, strict=True))
            )
        )

    def refuse_unknown(self, found: Readings, ours: Collection[int]) -> None:
        """Raise InputError for a broker that nothing names, and that is not among `ours`, of this state directory."""
        unknown = [
            one.broker
            for one in found.brokers
            if one.is_registered is False
            and one.broker not in ours
            and not (one.replicas or one.arriving or one.leaving or one.copies or found.unseen)
        ]
        if unknown:
            raise InputError(
                f"{listed_brokers(unknown)} {agreeing(len(unknown), 'are')} not known: not registered, and named by no "
                f"replica list and no run here; live are {some_of(sorted(found.live), NAMED_BROKERS)}. Was another id "
                "meant? After a decommission from another machine nothing is left to do"
            )

    def stays(self, topic: str) -> bool:
        """True if replicas of this topic may stay on the brokers."""
        return any(re.fullmatch(pattern, topic) for pattern in self.may_stay)

    def without_staying(self, found: Readings) -> Readings:
        """The readings without partitions of topics that may stay."""
        brokers = (
            replace(
                one,
                replicas=tuple(name for name in one.replicas if not self.stays(name.topic)),
                arriving={name: move for name, move in one.arriving.items() if not self.stays(name.topic)},
                leaving={name: move for name, move in one.leaving.items() if not self.stays(name.topic)},
                copies=tuple(name for name in one.copies if not self.stays(name.topic)),
            )
            for one in found.brokers
        )
        unseen = tuple(topic for topic in found.unseen if not self.stays(topic))
        return replace(found, brokers=tuple(brokers), unseen=unseen)

    def open_ways(self, found: Readings) -> tuple[str, ...]:
        """Ways for replicas to still land on brokers that cannot be cordoned, a sentence each.

        None for brokers that are down or unread.
        """
        return tuple(
            f"broker {one.broker} cannot be cordoned: "
            f"{self.uncordoned.get(one.broker, 'its release has no cordoned.log.dirs (Kafka 4.3 has)')}. Until it is "
            "stopped, the controller may place new topics and partitions on it, and so may reassignments by others; "
            "whatever lands there is found and drained"
            for one in found.brokers
            if one.cordon is not None and not one.is_closed
            if not one.cordon.is_known or one.broker in self.uncordoned
        )

    def _leaves_maintenance(self) -> Blocked | None:
        if not self.maintained:
            return None
        entered = "; ".join(f"broker {broker} {one}" for broker, one in sorted(self.maintained.items()))
        ids = ",".join(map(str, sorted(self.maintained)))
        return Blocked(
            f"the cordon of {listed_brokers(self.maintained)} is that of maintenance ({entered}), whose end opens it: "
            f"end it first (`kreassign maintenance exit {ids}`), then give the command again"
        )

    def _stays_registered(self, found: Readings) -> Blocked | None:
        staying = {name for one in found.brokers for name in one.replicas if self.stays(name.topic)}
        if not (self.unregisters and staying):
            return None
        holders = (one.broker for one in found.brokers if not staying.isdisjoint(one.replicas))
        return Blocked(
            f"{listed_brokers(holders)} cannot be unregistered while {some_partitions(sorted(staying))} may stay "
            "there: a replica on a broker that is not registered is never in sync. Leave out --unregister, or that "
            "they may stay"
        )

    def _unregister(self, found: Readings) -> Step | None:
        if not self.unregisters:
            return None
        if live := [one for one in found.brokers if one.is_live]:
            names = listed_brokers(one.broker for one in live)
            state = f"{names} {agreeing(len(live), 'are empty and still running')}"
            if unread := sorted(found.unread_log_dirs):
                state = f"no replica list names {names}, still running ({'; '.join(unread)} could not be read)"
            return Blocked(f"{state}: stop the process, then give the command again, which unregisters it")
        there = [one.broker for one in found.brokers if one.is_registered is not False]
        left = tuple(broker for broker in there if broker not in self.unregistered)
        return Unregister(left) if left else None

    def _await_second_look(self, found: Readings) -> Await | None:
        if not (newly := sorted(found.unread_log_dirs - self.unread)):
            return None
        return Await(f"what is on {'; '.join(newly)} could not be read", LOOK)

    def _proof(self, one: BrokerReading, whole: BrokerReading, live: Iterable[int]) -> str:
        staying = sorted({*whole.replicas, *whole.arriving, *whole.leaving, *whole.copies})
        but = f" but for {some_partitions(staying)}, which may stay" if staying else ""
        if one.is_registered is False or one.broker in self.unregistered:
            # Not of this process: perhaps it was unregistered before, perhaps another id was meant.
            here = "" if one.broker in self.unregistered else f" (live: {some_of(sorted(live), NAMED_BROKERS)})"
            head = f"broker {one.broker} is not registered in this cluster{here}{but}: no replica list names it"
        elif one.is_seen_whole:
            head = f"broker {one.broker} is empty{but}: no replica list names it"
        else:
            head = f"no replica list names broker {one.broker}{but}"
        return ", ".join((head, "nothing is being reassigned to it or away from it", *_proof_of_log_dirs(one)))


def _proof_of_log_dirs(one: BrokerReading) -> Iterator[str]:
    if one.cordon is None:
        yield "it is down, so its log directories were not checked"
        return
    read = [each.path for each in one.cordon.log_dirs if not each.error]
    if one.is_seen_whole:
        yield f"its {counted(len(read), 'log directory', 'log directories')} {agreeing(len(read), 'hold nothing')}"
    else:
        yield from (f"{path} holds nothing" for path in read)
    yield from (f"{path} could not be read, so what is there is not known" for path in one.unread_log_dirs)
    yield "it is cordoned" if one.is_closed else "it is not cordoned"


def _moves(found: Readings) -> dict[TopicPartition, OngoingReassignment]:
    return {name: move for one in found.brokers for name, move in (*one.arriving.items(), *one.leaving.items())}


def _endless(found: Readings) -> Blocked | None:
    if endless := [name for name, move in sorted(_moves(found).items()) if _never_ends(move, found.live)]:
        return Blocked(
            f"the reassignment of {some_partitions(endless)} cannot end: a broker that it adds is not live, or "
            f"was overridden. Cancel it ({DOCTOR_TELLS}), then give the command again"
        )
    return None


def _await_moves(found: Readings) -> Await | None:
    if not (moves := _moves(found)):
        return None
    brokers = [one.broker for one in found.brokers if one.arriving or one.leaving]
    going_on = agreeing(len(moves), "are being reassigned to")
    them = "it" if len(brokers) == 1 else "them"
    return Await(f"{some_partitions(sorted(moves))} {going_on} {listed_brokers(brokers)} or away from {them}")


def _never_ends(move: OngoingReassignment, live: frozenset[int]) -> bool:
    return move.can_never_complete or not live >= set(move.adding)


def _drain(found: Readings) -> Drain | None:
    named = tuple(one.broker for one in found.brokers if one.replicas)
    partitions = sorted({name for one in found.brokers for name in one.replicas})
    return Drain(named, tuple(partitions)) if named else None


def _await_deletion(found: Readings) -> Await | None:
    left = {one.broker: one.copies for one in found.brokers if one.copies}
    said = "; ".join(f"broker {broker} still holds {some_partitions(names)}" for broker, names in left.items())
    return Await(f"{said}, though no replica list names it there", LOOK) if left else None
