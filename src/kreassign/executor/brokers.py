"""Read brokers that are to be taken out of service; the cordon and the steps that decommission and maintenance share.

`decommission.py` and `maintenance.py` decide from `Readings`: the state of the brokers in the cluster, read through
the port. `Cordon`, `Await`, `Blocked` and `Finished` are steps of both. Only `read_brokers` queries the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from kreassign.errors import ClusterError, Unsupported
from kreassign.executor.cluster import readings
from kreassign.executor.cluster.permissions import unlisted_topics
from kreassign.executor.cluster.port import ClusterPort
from kreassign.model import (
    ConfigChange,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    LogDir,
    OngoingReassignment,
    Partition,
    Topic,
    TopicPartition,
)
from kreassign.model.authorization import error_text, missing_permission, with_advice
from kreassign.model.requests import LOOKS
from kreassign.model.text import some_of

# The cordon of a broker (KIP-1066): the value of `cordoned.log.dirs` that closes its log directories, and its removal.
#
#     not set            →  *                 →  not set
#     /d1, one of two    →  refused: we could not restore it, because Kafka 4.3.1 takes `*` only by itself
#     *, or all of them  →  left as it is     →  `*` is removed, other values stay: they are not ours
#
# So the value itself is enough to undo the cordon, for any operator. `*` also closes directories that are added later.

CORDONED_LOG_DIRS = "cordoned.log.dirs"
ALL_LOG_DIRS = "*"

CORDON = ConfigChange.set(CORDONED_LOG_DIRS, ALL_LOG_DIRS)
UNCORDON = ConfigChange.delete(CORDONED_LOG_DIRS)


def way_to_open(broker: int) -> tuple[str, ...]:
    """Words of the command that takes back the cordon of a broker, whatever its value."""
    kind = ("--entity-type", "brokers", "--entity-name", str(broker))
    return ("kafka-configs", "--alter", *kind, "--delete-config", CORDONED_LOG_DIRS)


def is_our_cordon(value: str | None) -> bool:
    """True for the value that `CORDON` sets."""
    return value == ALL_LOG_DIRS


def is_closed(value: str | None, log_dirs: Sequence[LogDir]) -> bool:
    """True if the broker takes no new replicas. Offline directories count as closed."""
    working = [one for one in log_dirs if one.error is None]
    return is_our_cordon(value) or (bool(working) and all(one.is_cordoned for one in working))


# Readings: the state of the brokers in the cluster.


@dataclass(frozen=True, slots=True)
class CordonReading:
    """Cordon state of a live broker: its own value of `cordoned.log.dirs`, and its log directories.

    `is_known`: whether the broker has that setting (Kafka 4.3).
    """

    is_known: bool
    value: str | None
    log_dirs: tuple[LogDir, ...]

    @property
    def is_closed(self) -> bool:
        """True if the broker gets no new replicas from automatic placement."""
        return self.is_known and is_closed(self.value, self.log_dirs)


@dataclass(frozen=True, slots=True)
class BrokerReading:
    """State of one broker in the cluster.

    `replicas` are partitions whose list names the broker, `arriving` and `leaving` those being reassigned to it and
    away from it, with the reassignment. `copies` are partitions that its log directories hold data of. `cordon` is
    None if the broker is down or did not answer; `unread` has the reason. `is_registered` is None for a broker that is
    down where the cluster cannot tell (before Kafka 4.0). `may_be_cordoned` is False, also for one that is down, where
    a live broker has no such setting: the whole cluster has none then.
    """

    broker: int
    is_live: bool
    is_registered: bool | None
    cordon: CordonReading | None = None
    replicas: tuple[TopicPartition, ...] = ()
    arriving: Mapping[TopicPartition, OngoingReassignment] = field(default_factory=dict)
    leaving: Mapping[TopicPartition, OngoingReassignment] = field(default_factory=dict)
    copies: tuple[TopicPartition, ...] = ()
    unread: str = ""
    may_be_cordoned: bool = True

    @property
    def is_closed(self) -> bool:
        """True if the broker gets new replicas only from requests that name it."""
        return self.cordon is not None and self.cordon.is_closed

    @property
    def unread_log_dirs(self) -> tuple[str, ...]:
        """Log directories of the live broker whose contents are unknown: offline, or none of them listed."""
        if self.cordon is None:
            return ()
        return tuple(str(one) for one in self.cordon.log_dirs if one.error) or (
            () if self.cordon.log_dirs else ("its log directories",)
        )

    @property
    def is_seen_whole(self) -> bool:
        """True if the contents of all its log directories were read."""
        return self.cordon is not None and not self.unread_log_dirs


@dataclass(frozen=True, slots=True)
class Readings:
    """State of the brokers in question and of the cluster around them.

    `live` are all live brokers, `partitions` all partitions, and `moving` those being reassigned. `topic_ids` are by
    name, where topics have any. `unseen` are topics
    that this client may not see and that have replicas on the brokers, or on any live broker if one in question is
    down; they are missing everywhere else. `unread` has the reason for everything else that could not be read, by what
    it is. `principal` is that of this client, if it is known.
    """

    live: frozenset[int]
    brokers: tuple[BrokerReading, ...]
    partitions: tuple[Partition, ...] = ()
    moving: frozenset[TopicPartition] = frozenset()
    unseen: tuple[str, ...] = ()
    unread: Mapping[str, str] = field(default_factory=dict)
    principal: str | None = None
    topic_ids: Mapping[str, str] = field(default_factory=dict)

    @property
    def unread_log_dirs(self) -> frozenset[str]:
        """Log directories of the brokers in question whose contents are unknown."""
        return frozenset(f"broker {one.broker}: {path}" for one in self.brokers for path in one.unread_log_dirs)


def read_brokers(port: ClusterPort, brokers: Sequence[int], asked: int | None = None) -> Readings:
    """Read the present state of these brokers, partitions by the metadata of the one that is `asked`, or of two.

    Raises ClusterError.
    """
    # Query the controller first: brokers show moves that it no longer lists as done now or a moment later.
    ongoing = readings.ongoing_moves(port)
    listed, unknown = _listed(port, asked)
    partitions = tuple(partition for topic in listed.values() for partition in topic.partitions)
    live = readings.live_of_two(port)
    registered = _registered(port)
    own = _read_own(port, brokers, live)
    unseen, unread_topics = unlisted_topics(port, listed, own.seen_dirs)
    found = (
        BrokerReading(
            broker,
            broker in live,
            True if broker in live else None if registered is None else broker in registered,
            replicas=tuple(sorted(one.topic_partition for one in partitions if broker in one.replicas)),
            arriving={name: move for name, move in ongoing.items() if broker in move.adding},
            leaving={name: move for name, move in ongoing.items() if broker in move.removing},
            may_be_cordoned=own.has_cordons,
        )
        for broker in brokers
    )
    unread = {f"topic {name}": error_text(error) for name, error in {**unknown, **unread_topics}.items()}
    return Readings(
        live,
        tuple(_with_own(one, own) for one in found),
        partitions,
        frozenset(ongoing),
        unseen,
        {**unread, **{f"the log directories of broker {one}": why for one, why in own.silent_others.items()}},
        port.principal,
        readings.topic_ids_of(listed),
    )


def _listed(port: ClusterPort, asked: int | None) -> tuple[Mapping[str, Topic], Mapping[str, ClusterError]]:
    """All topics, and why those are unknown that could not be read."""
    if asked is None:
        known, absent, unknown = readings.every_topic_of_two(port)
        del absent  # One of two brokers listed them just before they were deleted.
        return known, unknown
    topics = port.describe_topics(None, broker=asked)
    again = readings.read_topics(port, topics.failed)
    return {**topics.ok, **again.known}, again.unknown


def confirming_brokers(found: Readings) -> tuple[int, ...]:
    """Brokers whose metadata confirms a final step: two, rather not those in question, or all if there are fewer."""
    theirs = {one.broker for one in found.brokers}
    return tuple(sorted(found.live, key=lambda broker: (broker in theirs, broker)))[:LOOKS]


def _registered(port: ClusterPort) -> frozenset[int] | None:
    try:
        return readings.live_of_two(port, include_fenced=True)
    except Unsupported:
        return None


@dataclass(frozen=True, slots=True)
class _Own:
    """Answers of brokers about themselves: the cordon of each of those in question, or why it is unknown.

    Of a broker that is down, other brokers know a part: `seen_dirs` are the directories of those that were asked,
    `silent_others` those that are not in question and did not answer. `has_cordons`: False if one of them has no
    `cordoned.log.dirs`. Metadata of 4.3, which a cordon needs, is for clusters without older brokers.
    """

    cordons: Mapping[int, CordonReading]
    unread: Mapping[int, str]
    seen_dirs: tuple[LogDir, ...]
    silent_others: Mapping[int, str]
    has_cordons: bool


def _read_own(port: ClusterPort, brokers: Sequence[int], live: Collection[int]) -> _Own:
    """Read settings and log directories of the live brokers."""
    own = [broker for broker in brokers if broker in live]
    asked = own if len(own) == len(brokers) else sorted(live)
    settings = readings.read_settings(port, map(ConfigResource.broker, asked), (CORDONED_LOG_DIRS,))
    log_dirs = readings.read_log_dirs(port, asked)
    unread = {int(resource.name): error_text(error) for resource, error in settings.unknown.items()}
    unread |= {broker: error_text(error) for broker, error in log_dirs.failed.items()}
    entries = {int(resource.name): found.get(CORDONED_LOG_DIRS) for resource, found in settings.known.items()}
    return _Own(
        {broker: _cordon_reading(entries[broker], log_dirs.ok[broker]) for broker in own if broker not in unread},
        unread,
        tuple(one for dirs in log_dirs.ok.values() for one in dirs),
        {broker: error_text(error) for broker, error in log_dirs.failed.items() if broker not in own},
        None not in entries.values(),
    )


def _cordon_reading(entry: ConfigEntry | None, log_dirs: tuple[LogDir, ...]) -> CordonReading:
    value = entry.value if entry is not None and entry.source is ConfigSource.DYNAMIC_BROKER else None
    return CordonReading(entry is not None, value, log_dirs)


def _with_own(found: BrokerReading, own: _Own) -> BrokerReading:
    """Add what the broker tells of itself, if it is live."""
    if not found.is_live or found.broker in own.unread:
        return replace(found, unread=own.unread.get(found.broker, ""))
    cordon = own.cordons[found.broker]
    copies = tuple(sorted({copy.topic_partition for one in cordon.log_dirs for copy in one.replicas}))
    return replace(found, cordon=cordon, copies=copies)


# The shared steps, and the names of brokers and partitions in them.

NAMED = 5


@dataclass(frozen=True, slots=True)
class Cordon:
    """Close the log directories of these brokers."""

    brokers: tuple[int, ...]

    def __str__(self) -> str:
        return f"cordon the log directories of {listed_brokers(self.brokers)}"


@dataclass(frozen=True, slots=True)
class Await:
    """Read again later: work in progress ends by itself.

    A wait with a `remedy` is brief: it ends within minutes, or the operator has to do that.
    """

    reason: str
    remedy: str = ""

    def __str__(self) -> str:
        return f"wait: {self.reason}"


class Steps:
    """Steps that were `taken`, in words, each told once; and the context of each step in turn.

    An error of the cluster after a step that went well is told, and suppressed. After a `pause` the next step begins
    with a look at what was done. An error in the first step, or in two in a row (one node says this and another that),
    is raised.
    """

    def __init__(self, tell: Callable[[str], None], pause: Callable[[], None]) -> None:
        self._tell, self._pause = tell, pause
        self.taken: list[str] = []
        self._went_well = False

    def note(self, sentence: str) -> None:
        """Report a step, unless the last one was the same."""
        if not self.taken or self.taken[-1] != sentence:
            self.taken.append(sentence)
            self._tell(sentence)

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> bool:
        went_well, self._went_well = self._went_well, error is None
        if not (went_well and isinstance(error, ClusterError)):
            return False
        self.note(str(Await(error_text(error))))
        self._pause()
        return True


@dataclass(frozen=True, slots=True)
class Blocked:
    """Only the operator can go on: the obstacle, and what to do."""

    reason: str

    def __str__(self) -> str:
        return self.reason


NOT_SHOWN = Blocked("by now there is something to do that was not shown: give the command again")
"""For a call without agreement: an answer that was missing, when there was nothing to agree to, may be there now."""


@dataclass(frozen=True, slots=True)
class Finished:
    """Nothing is left to do: one sentence per broker with what was checked."""

    proof: tuple[str, ...]

    def __str__(self) -> str:
        return "; ".join(self.proof)


AnyStep = TypeVar("AnyStep")
LAGS = f"{readings.ONE_LAGS}: restart it, then give the command again"


def confirmed(step: AnyStep, found: Readings, decide: Callable[[int], object]) -> AnyStep | Await:
    """The final step, if it follows from what each confirming broker knows, too: else one of them lags."""
    for broker in confirming_brokers(found):
        try:
            other = decide(broker)
        except ClusterError as error:
            return Await(f"what broker {broker} knows of the partitions: {error_text(error)}", LAGS)
        if other != step:
            return Await(f"brokers to show the same as broker {broker}", LAGS)
    return step


def cordon_open(found: Readings, uncordoned: Collection[int]) -> Cordon | Blocked | None:
    """Cordon the open brokers, except those whose cordon Kafka refused."""
    open_ones = [
        one
        for one in found.brokers
        if one.cordon is not None and one.cordon.is_known and not one.is_closed
        if one.broker not in uncordoned
    ]
    in_part = [f"of broker {one.broker} is {one.cordon.value}" for one in open_ones if one.cordon and one.cordon.value]
    if in_part:
        return Blocked(
            f"{CORDONED_LOG_DIRS} {', '.join(in_part)}: some directories are cordoned already, and closing the "
            "others could not be undone. Set it to * or delete it (kafka-configs), then give the command again"
        )
    return Cordon(tuple(one.broker for one in open_ones)) if open_ones else None


def only_blocked(step: object) -> Blocked | None:
    """The step if it is an obstacle: to be named at once, though the step itself comes later."""
    return step if isinstance(step, Blocked) else None


def unseen_on(found: Readings) -> Blocked | None:
    """Block if brokers or topics are unread, or topics hidden: what is on a broker is not known then."""
    what = f"cannot list what is on {listed_brokers(one.broker for one in found.brokers)}:"
    silent = {f"broker {one.broker}": one.unread for one in found.brokers if one.is_live and one.cordon is None}
    if unread := {**silent, **found.unread}:
        named = some_of((f"{one} could not be read: {why}" for one, why in unread.items()), NAMED, by=";")
        return Blocked(with_advice(f"{what} {named}"))
    if not found.unseen:
        return None
    missing = missing_permission("Describe", found.unseen, found.principal)
    return Blocked(
        f"{what} there are replicas of topics that this client may not see: {missing}, then give the command again"
    )


def listed_brokers(brokers: Iterable[int]) -> str:
    """Brokers as text: "broker 3", "brokers 3, 4"."""
    ids = sorted(brokers)
    return f"broker{'' if len(ids) == 1 else 's'} {', '.join(map(str, ids))}"


def some_partitions(names: Collection[TopicPartition]) -> str:
    """The first partitions by name, and how many more there are."""
    return some_of(names, NAMED)
