"""Find issues of a cluster by subject: placement, disks, reassignments and permissions. Pure.

An `Issue` has its kind, its subject, what was seen, what to do, and the commands that do it, ready to paste.
`diagnosis.py` combines them, the worst first.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from shlex import quote
from typing import NamedTuple

from kreassign.errors import ClusterError, InputError
from kreassign.executor.guards import under_min_isr
from kreassign.executor.lease import GROUP_ID as LEASE_GROUP
from kreassign.executor.lease import OF_AUTOPILOTS, OFFSETS_TOPIC
from kreassign.executor.maintenance.record import GROUP_ID as MAINTENANCE_GROUP
from kreassign.model import NO_LEADER, AllowedOperations, Broker, LogDir, OngoingReassignment, Partition, TopicPartition
from kreassign.model.authorization import DeniedRight, denied_right, error_text, grant
from kreassign.model.cluster import listed_ids, named_brokers
from kreassign.model.disks import disks_of_brokers
from kreassign.model.placement import usual_factors
from kreassign.model.replication_factor import undercut
from kreassign.model.text import agreeing, counted, format_amount, some_of

# One issue, and the names of its partitions.

NAMED = 10
"""At most this many of a kind are named; the rest is counted."""

Words = tuple[str, ...]
"""Words of a command, without the options that select the cluster."""


@dataclass(frozen=True, slots=True)
class Issue:
    """One problem: its kind, its subject, what was seen, what to do, and the commands that do it."""

    kind: str
    subject: str
    seen: str
    remedy: str
    commands: tuple[Words, ...] = ()

    def __str__(self) -> str:
        return f"{self.subject}: {self.seen}. {self.remedy}"


def of_many(
    kind: str, names: Iterable[object], seen: str, remedy: str, commands: Sequence[Words] = ()
) -> Iterator[Issue]:
    """One issue for all these partitions, none without any; `seen` begins with a verb in the plural."""
    found = sorted(map(str, names))
    if found:
        subject = counted(len(found), "partition")
        seen = f"{named_partitions(found)} {agreeing(len(found), seen)}"
        yield Issue(kind, subject, seen, remedy, tuple(commands))


def named_partitions(found: Sequence[object]) -> str:
    """The first partitions by name, and how many more there are."""
    return some_of(found, NAMED)


def plan_command(*task: str) -> Words:
    """The command that plans a task for the present cluster."""
    return ("kreassign", "plan", *task, "--out", "plan.json")


# Placement: brokers and racks down, too few replicas in sync, odd replication factors and racks.


@dataclass(frozen=True, slots=True)
class PlacementReadings:
    """Brokers (including those down, where the cluster names them), partitions, and min.insync.replicas."""

    brokers: tuple[Broker, ...]
    partitions: tuple[Partition, ...]
    ongoing: Mapping[TopicPartition, OngoingReassignment] = field(default_factory=dict)
    min_isr: Mapping[str, int] = field(default_factory=dict)

    @property
    def live(self) -> frozenset[int]:
        """Ids of the live brokers."""
        return frozenset(broker.id for broker in self.brokers if not broker.is_fenced)

    @property
    def down(self) -> tuple[int, ...]:
        """Ids of brokers that have replicas, or are registered, and are not live."""
        holders = {replica for one in self.partitions for replica in one.replicas}
        return tuple(sorted((holders | {broker.id for broker in self.brokers}) - self.live))


def placement_issues(readings: PlacementReadings) -> Iterator[Issue]:
    """Placement issues, the worst first."""
    yield from _brokers(readings)
    yield from _under_min_isr(readings)
    yield from _undercut(readings)
    yield from _factors(readings)
    yield from _racks(readings)


def _brokers(readings: PlacementReadings) -> Iterator[Issue]:
    """Brokers that are down: per rack if the whole rack is, else one by one."""
    known = {broker.id: broker for broker in readings.brokers}
    down = set(readings.down)
    by_rack: dict[str, set[int]] = defaultdict(set)
    for broker in readings.brokers:
        if broker.rack is not None:
            by_rack[broker.rack].add(broker.id)
    for rack, members in sorted(by_rack.items()):
        if len(members) > 1 and members <= down:
            yield _down(
                readings, f"rack {rack}", sorted(members), f"all its brokers ({listed_ids(sorted(members))}) are down"
            )
            down -= members
    for broker_id in sorted(down):
        name = str(known[broker_id]) if broker_id in known else f"broker {broker_id}"
        yield _down(readings, name, [broker_id], "it is down")


def _down(readings: PlacementReadings, subject: str, brokers: list[int], seen: str) -> Issue:
    touched = [one for one in readings.partitions if set(one.replicas).intersection(brokers)]
    offline = sum(one.leader == NO_LEADER for one in touched)
    last = sum(one.leader != NO_LEADER and len(one.isr) == 1 for one in touched)
    have = f"{counted(len(touched), 'partition')} {agreeing(len(touched), 'have')} a replica there"
    risk = f"{have}: {offline} without leader, {last} with one replica in sync"
    gone = listed_ids(brokers)
    them, lost = ("it", "it is") if len(brokers) == 1 else ("them", "they are")
    otherwise = f"; if {lost} lost for good, plan without {them}" if touched else f", or unregister {them}"
    remedy = f"Start {them}{otherwise}"
    commands = (
        (plan_command("drain-brokers", gone),) if touched else (("kreassign", "decommission", gone, "--dry-run"),)
    )
    return Issue("broker", subject, f"{seen}; {risk}", remedy, commands)


def _under_min_isr(readings: PlacementReadings) -> Iterator[Issue]:
    names = under_min_isr(readings.partitions, readings.min_isr)
    seen = "have fewer replicas in sync than min.insync.replicas: producers with acks=all cannot write"
    remedy = "Bring the brokers of their replicas back, or replace replicas that are lost"
    yield from of_many("min-isr", names, seen, remedy, (plan_command("repair"),))


def _undercut(readings: PlacementReadings) -> Iterator[Issue]:
    lowest: dict[str, int] = {}
    for one in _at_rest(readings):
        topic = one.topic_partition.topic
        lowest[topic] = min(len(one.replicas), lowest.get(topic, len(one.replicas)))
    for topic, least in sorted(readings.min_isr.items()):
        factor = lowest.get(topic, least + 1)
        if (seen := undercut(factor, least)) is not None:
            more = plan_command("replication-factor", str(least), "--topic", topic)
            yield Issue("min-isr", f"topic {topic}", seen, "Give it more replicas", (more,))
        elif factor == least > 1:
            seen = f"min.insync.replicas {least} is all its replicas: acks=all is refused while any one is out of sync"
            another = plan_command("replication-factor", str(least + 1), "--topic", topic)
            commands = (another,) if least < len(readings.live) else ()
            yield Issue(
                "min-isr", f"topic {topic}", seen, "Give it another replica, or ask for fewer in sync", commands
            )


def _factors(readings: PlacementReadings) -> Iterator[Issue]:
    """Partitions whose number of replicas differs from most of their topic."""
    factors = _usual_factors(readings)
    odd = [one.topic_partition for one in _at_rest(readings) if len(one.replicas) < factors[one.topic_partition.topic]]
    yield from of_many(
        "factor", odd, "have fewer replicas than other partitions of the topic", "Add them", (plan_command("repair"),)
    )


def _racks(readings: PlacementReadings) -> Iterator[Issue]:
    """Partitions with two replicas in one rack although other racks have none, and brokers of unknown rack."""
    racks = {broker.id: broker.rack for broker in readings.brokers if broker.rack is not None}
    usable = {racks[broker] for broker in readings.live if broker in racks}
    for broker in sorted(readings.live - racks.keys()) if usable else ():
        seen = "it has no rack, and other brokers do: it is not known whether its replicas are spread over racks"
        remedy = "Set its broker.rack, or name its rack under [broker-racks] of a goals file"
        yield Issue("racks", f"broker {broker}", seen, remedy)
    if len(usable) < 2:
        return
    crowded = [
        one.topic_partition
        for one in _at_rest(readings)
        if len({racks.get(broker, str(broker)) for broker in one.replicas}) < min(len(one.replicas), len(usable))
    ]
    seen = f"have more replicas in one rack than necessary ({counted(len(usable), 'rack')})"
    yield from of_many("racks", crowded, seen, "Spread them", (plan_command("repair"),))


def _at_rest(readings: PlacementReadings) -> Iterable[Partition]:
    return (one for one in readings.partitions if one.topic_partition not in readings.ongoing)


def _usual_factors(readings: PlacementReadings) -> dict[str, int]:
    names = ((one.topic_partition, len(one.replicas)) for one in readings.partitions)
    return usual_factors(Counter((name.topic, factor, int(name in readings.ongoing)) for name, factor in names))


# Log directories that are full, or will be soon. Pure.
#
# Two readings of the free bytes of a directory, some seconds apart, give the rate at which it fills, including
# deletions. That is a short measurement, so the time until it is full is reported with the measured time.

FULL = 0.90
"""Used share of a directory from which on it is an issue."""

SOON_S = 86_400.0
"""Time to full that makes a directory an issue if it is half full already: seconds say little about a day."""

HALF = 0.5

_DirsByBroker = Mapping[int, Iterable[LogDir]]


@dataclass(frozen=True, slots=True)
class Filling:
    """Size of a log directory, its free bytes, and how fast they shrink, in bytes per second (None: not measured).

    What its replicas hold is not read.
    """

    broker: int
    path: str
    total_bytes: int
    usable_bytes: int
    fills_bytes_per_s: float | None
    held_bytes: None = None

    @property
    def used_share(self) -> float:
        """Used share of the directory."""
        return 1 - self.usable_bytes / self.total_bytes

    @property
    def full_in_s(self) -> float | None:
        """Seconds until it is full at this rate; None if it does not fill, or the rate is unknown."""
        return self.usable_bytes / self.fills_bytes_per_s if self.fills_bytes_per_s else None


def fillings(now: _DirsByBroker, before: _DirsByBroker, seconds: float) -> tuple[Filling, ...]:
    """Every working directory of known size."""
    free = {(broker, one.path): one.usable_bytes for broker, dirs in before.items() for one in dirs}
    return tuple(
        Filling(
            broker,
            one.path,
            one.total_bytes,
            one.usable_bytes,
            _rate(free.get((broker, one.path)), one, seconds),
        )
        for broker, dirs in sorted(now.items())
        for one in dirs
        if not one.error and one.total_bytes and one.usable_bytes is not None
    )


def _rate(before: int | None, now: LogDir, seconds: float) -> float | None:
    if before is None or now.usable_bytes is None or seconds <= 0:
        return None
    return max(0.0, (before - now.usable_bytes) / seconds)


def disk_issues(found: Iterable[Filling], seconds: float) -> Iterator[Issue]:
    """Directories that are full or will be within a day, the fullest first; those that share a disk together."""
    found = tuple(found)
    for each in sorted(disks_of_brokers(found), key=lambda each: -each[0].used_share):
        one = each[0]
        soon = one.full_in_s is not None and one.full_in_s < SOON_S and one.used_share >= HALF
        if one.used_share < FULL and not soon:
            continue
        free = format_amount(one.usable_bytes, "B")
        where = f"log directory {one.path} is"
        if len(each) > 1:
            where = f"log directories {', '.join(other.path for other in each)}, which seem to share a disk, are"
        seen = f"{where} {one.used_share:.0%} full, {free} free{_until(one, seconds)}"
        is_roomy = any(other.broker == one.broker and other.used_share < FULL - 0.1 for other in found)
        task = ("disks",) if is_roomy else ("rebalance",)
        what = "to other directories of the broker" if is_roomy else "to other brokers"
        yield Issue(
            "disk", f"broker {one.broker}", seen, f"Move replicas {what}, or shorten retention", (plan_command(*task),)
        )


UNEVEN = 1.5
"""Multiple of the mean from which a broker's bytes are worth a note, and the mean as a multiple of them."""

LEAST_MEAN_BYTES = 1e9
"""Mean bytes of brokers below which their differences are not worth a move."""


def uneven_notes(held: Mapping[int, int]) -> Iterator[str]:
    """The fullest and the emptiest broker, if the bytes that they hold are far from the mean."""
    mean = sum(held.values()) / max(1, len(held))
    if mean < LEAST_MEAN_BYTES:
        return
    most, least = max(held, key=held.__getitem__), min(held, key=held.__getitem__)
    if held[most] > UNEVEN * mean or held[least] * UNEVEN < mean:
        yield (
            f"bytes are uneven: broker {most} holds {format_amount(held[most], 'B')} ({held[most] / mean:.2f} × the "
            f"mean), broker {least} holds {format_amount(held[least], 'B')}; `kreassign plan` evens them out"
        )


def _until(one: Filling, seconds: float) -> str:
    if one.fills_bytes_per_s is None:
        return ""
    if one.full_in_s is None:
        return f"; it did not fill in the last {seconds:.0f} s"
    hours = one.full_in_s / 3600
    when = counted(round(hours), "hour") if hours >= 2 else counted(round(one.full_in_s / 60), "minute")
    rate = format_amount(one.fills_bytes_per_s, "B/s")
    return f"; full in {when} at the {rate} of the last {seconds:.0f} s"


# Reassignments: their owners, why some make no progress, and how to cancel them.

NO_RUN = ""
_CANCEL = "kafka-reassign-partitions --cancel --preserve-throttles --reassignment-json-file"


@dataclass(frozen=True, slots=True)
class Moving:
    """One reassignment: the id of the run that made it, if a journal here names it, and bytes of its new copies.

    `copied_bytes` and `copied_before` are sums over its new copies, now and some seconds ago; None where not measured.
    `rate_bytes_per_s` is the lowest throttle set on the brokers that get them. `without_records` are those brokers
    that have nothing yet of a partition whose older records are in remote storage.
    """

    name: TopicPartition
    move: OngoingReassignment
    run_id: str = NO_RUN
    copied_bytes: int | None = None
    copied_before: int | None = None
    has_leader: bool = True
    rate_bytes_per_s: int | None = None
    without_records: tuple[int, ...] = ()

    @property
    def is_stuck(self) -> bool:
        """True if no byte was copied between the two readings."""
        return None not in {self.copied_bytes, self.copied_before} and self.copied_bytes == self.copied_before


class Doubt(NamedTuple):
    """A sentence about the run that a reassignment or a setting may be of, which no run here accounts for.

    `until` says how long to leave it alone; `run_id` is that of a run elsewhere, which is known by its lease.
    """

    sentence: str
    until: str
    run_id: str = NO_RUN

    @property
    def remedy(self) -> str:
        """Advice on a setting."""
        return f"{self.sentence}: {self._leave_it}"

    @property
    def way_to_cancel(self) -> str:
        """Advice on a reassignment."""
        if not self.run_id:
            return self.remedy
        return (
            f"{self.sentence}: if so, cancel it there with `kreassign cancel {self.run_id}`; if not, {self._leave_it}"
        )

    @property
    def _leave_it(self) -> str:
        return f"leave it until {self.until}, then look again"


def move_notes(moves: Iterable[Moving], doubt: Doubt | None = None) -> Iterator[str]:
    """Number of partitions being reassigned, by owner, and how to cancel that; of some while there is `doubt`."""
    counts = Counter(one.run_id for one in moves)
    for run_id, count in sorted(counts.items()):
        if run_id:
            whose = f", by run {run_id}; `kreassign cancel {run_id}` cancels that"
        elif doubt is None:
            whose = f", by somebody else; if they agree, `{_CANCEL} FILE` cancels what FILE lists"
        else:
            whose = f"; by whom is not known. {doubt.way_to_cancel}"
        yield f"{counted(count, 'partition')} {agreeing(count, 'are')} being reassigned{whose}"


def move_issues(
    moves: Iterable[Moving], live: Iterable[int], seconds: float, doubt: Doubt | None = None
) -> Iterator[Issue]:
    """Reassignments without progress, except those with an issue of their own: endless ones, and lost destinations."""
    alive = set(live)
    for one in sorted(moves, key=lambda each: each.name):
        if not one.is_stuck or one.move.can_never_complete or not set(one.move.adding) <= alive:
            continue
        why, remedy = _why_and_remedy(one)
        seen = f"its reassignment ({one.move}) copied nothing in the last {seconds:.0f} s{why}"
        owner, commands = ways_to_cancel(one.name, one.run_id, doubt)
        yield Issue("stuck", str(one.name), seen, f"{remedy}{owner}", commands)


def _why_and_remedy(one: Moving) -> tuple[str, str]:
    if not one.has_leader:
        return ": it has no leader to copy from", "Bring a broker of its replicas back; or cancel it"
    is_throttled = one.rate_bytes_per_s is not None
    if one.without_records:
        # With KIP-405 a new replica first reads the epochs of older records; if that fails, its broker retries
        # for ever, and reports it only in its log.
        begin = named_brokers(one.without_records, "begin by reading from remote storage")
        unless = ", unless the throttle there holds it" if is_throttled else ""
        remedy = (
            "Look there for 'Error building remote log auxiliary state' in the log, and see that remote storage can be "
            "reached: then it goes on by itself; or cancel it"
        )
        return f": the topic is tiered, and {begin}{unless}", remedy
    if one.rate_bytes_per_s is not None:
        return (
            f": the throttle there is {format_amount(one.rate_bytes_per_s, 'B/s')}",
            "Raise the throttle, or cancel it",
        )
    return ": no throttle holds it, so see the logs of the brokers that get copies", "Wait, or cancel it"


def ways_to_cancel(
    name: TopicPartition, run_id: str = NO_RUN, doubt: Doubt | None = None
) -> tuple[str, tuple[Words, ...]]:
    """Owner of a reassignment as the end of a sentence, and the commands here that cancel it.

    A reassignment of a run, going on or paused, is cancelled through that run only. One that no run here names may be
    of another one: while there is `doubt`, no command cancels it here.
    """
    if run_id or doubt is None:
        return "", (cancel_command(name, run_id),)
    return f". {doubt.way_to_cancel}", ()


def cancel_command(name: TopicPartition, run_id: str = NO_RUN) -> Words:
    """Command that cancels a reassignment: through its run, or Kafka's tool with the partition in place of a file."""
    if run_id:
        return ("kreassign", "cancel", run_id)
    # Kafka's tool reads `replicas` for the throttles that it would clear, and refuses a file without.
    partition = {"topic": name.topic, "partition": name.partition, "replicas": list[int]()}
    document = {"version": 1, "partitions": [partition]}
    text = quote(json.dumps(document, separators=(",", ":")))
    return (f"{_CANCEL} <(echo {text})",)


# Permissions that each command needs, the missing ones, and the commands that grant them. Pure.
#
# The cluster reports the operations allowed to a client (KIP-430): on the cluster, on each topic and
# on each group that is queried. The operation that each request needs: Kafka's documentation, "Authorization and
# ACLs", table "Protocols".


@dataclass(frozen=True, slots=True)
class NeededRights:
    """Operations that a command needs on the cluster and every topic concerned, and on one group and topic by name."""

    command: str
    cluster: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    group: tuple[str, str] | None = None
    topic: tuple[str, str] | None = None


_Missing = tuple[str, str, tuple[str, ...]]
"""An operation, its resource type (as kafka-acls names it), and resource names."""

_LOOK = ("Describe", "DescribeConfigs")
NEEDS = (
    NeededRights("doctor, snapshot, collect, plan, verify", _LOOK, _LOOK),
    NeededRights("run, resume, cancel, rollback without a throttle", (*_LOOK, "Alter"), _LOOK),
    NeededRights(
        "run, resume, cancel, rollback with a throttle", (*_LOOK, "Alter", "AlterConfigs"), (*_LOOK, "AlterConfigs")
    ),
    NeededRights("maintenance, decommission", (*_LOOK, "Alter", "AlterConfigs"), (*_LOOK, "AlterConfigs")),
    NeededRights("audit records", topics=("Describe", "DescribeConfigs", "Read")),
    NeededRights(
        "the lease of the cluster, which runs can do without",
        group=(LEASE_GROUP, "Read"),
        topic=(OFFSETS_TOPIC, "Describe"),
    ),
    NeededRights("repairs of an autopilot", group=(OF_AUTOPILOTS.group_id, "Read"), topic=(OFFSETS_TOPIC, "Describe")),
    NeededRights(
        "maintenance that other machines see", group=(MAINTENANCE_GROUP, "Read"), topic=(OFFSETS_TOPIC, "Read")
    ),
    NeededRights(
        "runs that keep away from brokers in maintenance, before Kafka 4.3; they do without",
        group=(MAINTENANCE_GROUP, "Describe"),
        topic=(OFFSETS_TOPIC, "Describe"),
    ),
)


def permission_issues(allowed: AllowedOperations, principal: str | None = None) -> Iterator[Issue]:
    """One issue per command, or group of commands, that lacks a permission, with the commands that grant just that."""
    who = "" if principal is not None else ", with the name that the brokers know this client by in place of NAME"
    told: set[Words] = set()
    for need in NEEDS:
        missing = [*_missing(need, allowed), *_missing_by_name(need, allowed)]
        grants = tuple(grant(*one, principal) for one in missing)
        new = tuple(grant for grant in dict.fromkeys(grants) if grant not in told)
        told.update(new)
        if missing:
            seen = f"permission is missing: {'; '.join(map(_said, missing))}"
            remedy = f"Let an administrator grant it{who}" if new else "What is granted above is enough"
            yield Issue("permission", need.command, seen, remedy, new)


def _is_told(right: DeniedRight, allowed: AllowedOperations) -> bool:
    """True if a finding of `permission_issues` names this right."""
    return any(
        (operation, kind) == (right.operation, right.kind) and (not names or right.name in names)
        for need in NEEDS
        for operation, kind, names in (*_missing(need, allowed), *_missing_by_name(need, allowed))
    )


def _missing(need: NeededRights, allowed: AllowedOperations) -> Iterator[_Missing]:
    if allowed.cluster is not None:
        yield from ((operation, "cluster", ()) for operation in need.cluster if operation not in allowed.cluster)
    # The topic of offsets may stay hidden unless a plan moves it.
    seen = {name: may for name, may in allowed.topics.items() if may or name != OFFSETS_TOPIC}
    for operation in need.topics:
        if topics := tuple(sorted(name for name, may in seen.items() if operation not in may)):
            yield operation, "topic", topics


def _missing_by_name(need: NeededRights, allowed: AllowedOperations) -> Iterator[_Missing]:
    """Missing permissions on named resources; what the cluster does not report counts as allowed."""
    for kind, wanted, told in (("group", need.group, allowed.groups), ("topic", need.topic, allowed.topics)):
        if wanted is not None and wanted[0] in told and wanted[1] not in told[wanted[0]]:
            yield wanted[1], kind, (wanted[0],)


def _said(missing: _Missing) -> str:
    operation, kind, names = missing
    if kind == "cluster":
        return f"{operation} on the cluster"
    return f"{operation} on {kind}{'s' if len(names) > 1 else ''} {named_partitions(names)}"


# Facts that could not be read, by the reason. Pure.


LEASE = "lease of the cluster"
"""Reading that is missing if it is not known whether a run of another machine holds the lease."""


@dataclass(frozen=True, slots=True)
class NotRead:
    """Something that could not be read: `what`, of the resource `name` if it is one of several, and why."""

    what: str
    why: ClusterError | InputError | str
    name: object = ""

    def __str__(self) -> str:
        return f"{_all_of(self.what, [str(self.name)])}{self.reason}"

    @property
    def right(self) -> DeniedRight | None:
        """The right that a refusal asks for."""
        return None if isinstance(self.why, str) else denied_right(self.why)

    @property
    def reason(self) -> str:
        """The end of a sentence, without the resource, so that resources with the same reason look alike."""
        match self.why:
            case str():
                return f": {self.why}"
            case ClusterError() if self.right is None:
                return f" could not be read: {error_text(self.why.about(None))}"
            case _:
                return f" could not be read: {error_text(self.why)}"


def unread_issues(gaps: Iterable[NotRead], allowed: AllowedOperations | None) -> Iterator[Issue]:
    """One issue per reason, with all that could not be read for it; none where a permission issue names the reason."""
    by_reason: dict[str, list[NotRead]] = defaultdict(list)
    for gap in gaps:
        right = gap.right
        if right is None or allowed is None or not _is_told(right, allowed):
            by_reason[gap.reason if right is None else f"{right.operation} on {right.kind}"].append(gap)
    for alike in by_reason.values():
        names: dict[str, list[str]] = defaultdict(list)
        for gap in alike:
            names[gap.what].append(str(gap.name))
        unread = " and ".join(_all_of(what, of) for what, of in names.items())
        remedy = "Look at the permissions, or try again"
        yield Issue("unread", "cluster", f"{unread}{alike[0].reason}", remedy, (("kreassign", "doctor"),))


def _all_of(what: str, names: Sequence[str]) -> str:
    return f"{what}{'s' if len(names) > 1 else ''} {named_partitions(names)}".rstrip()
