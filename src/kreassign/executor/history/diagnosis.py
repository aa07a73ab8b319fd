"""Diagnose what blocks reassignments in a cluster, and how to fix it. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from kreassign.executor.brokers import way_to_open
from kreassign.executor.history import findings
from kreassign.executor.history.run_history import ExplainedSetting, UnreadableJournal
from kreassign.executor.lease import LeaseHolder
from kreassign.executor.maintenance.record import MaintenanceRecord
from kreassign.executor.throttle_ledger import ConfigKey, ConfigValue, ThrottleUses
from kreassign.model import NO_LEADER, AllowedOperations, Broker, LogDir, OngoingReassignment, Partition, TopicPartition
from kreassign.model.closures import REFUSES, Closure, closure_of
from kreassign.model.cluster import listed_ids, named_brokers
from kreassign.model.distributions import UNKNOWN, Recognised, cruise_control_topic
from kreassign.model.text import agreeing, counted, some_of
from kreassign.model.throttle import LOG_DIR_RATE

NO_MAINTENANCE = MaintenanceRecord()
_LOOK_AGAIN = ("kreassign", "doctor")


@dataclass(frozen=True, slots=True)
class ClusterReadings:
    """Readings of the cluster. `throttles` are throttle settings that topics or brokers have of their own.

    `lease` is the holder of the cluster's lease, `maintenance` the brokers in maintenance. `brokers` includes those
    that are down, where the cluster names them. `nameable` is whether lists may name those without an open log
    directory. `owned` are settings of unfinished runs of this state directory, with the id of the run, `run_ids` are
    those runs, and `of_runs` their partitions, whose leaders they elect; brokers `copying` do so between their log
    directories. Rates were measured for `measured_s` seconds. `allowed` are the operations allowed to this client, as
    `principal`; `distribution` is whose Kafka it is, as far as it shows; `held_bytes` are those of all replicas of a
    broker. `explained` are throttles that runs of this state directory set and could not restore.
    """

    live: tuple[int, ...]
    partitions: tuple[Partition, ...]
    ongoing: Mapping[TopicPartition, OngoingReassignment] = field(default_factory=dict)
    throttles: tuple[ConfigValue, ...] = ()
    log_dirs: Mapping[int, tuple[LogDir, ...]] = field(default_factory=dict)
    nameable: Mapping[int, bool] = field(default_factory=dict)
    interrupted_runs: tuple[str, ...] = ()
    unreadable_journals: tuple[UnreadableJournal, ...] = ()
    lease: LeaseHolder | None = None
    maintenance: MaintenanceRecord = NO_MAINTENANCE
    unread: tuple[findings.NotRead, ...] = ()
    brokers: tuple[Broker, ...] = ()
    min_isr: Mapping[str, int] = field(default_factory=dict)
    disks: tuple[findings.Filling, ...] = ()
    moving: tuple[findings.Moving, ...] = ()
    measured_s: float = 0.0
    owned: Mapping[ConfigKey, str] = field(default_factory=dict)
    run_ids: tuple[str, ...] = ()
    of_runs: frozenset[TopicPartition] = frozenset()
    copying: frozenset[int] = frozenset()
    allowed: AllowedOperations | None = None
    principal: str | None = None
    distribution: Recognised = UNKNOWN
    held_bytes: Mapping[int, int] = field(default_factory=dict)
    explained: tuple[ExplainedSetting, ...] = ()

    @property
    def placement(self) -> findings.PlacementReadings:
        """Brokers and replicas, for the placement checks."""
        brokers = self.brokers or tuple(Broker(broker, "", 0) for broker in self.live)
        return findings.PlacementReadings(brokers, self.partitions, self.ongoing, self.min_isr)

    @property
    def settled_bytes(self) -> Mapping[int, int]:
        """Bytes held by each broker that takes new replicas; none while anything moves, or a run has still to move."""
        if self.ongoing or self.run_ids or self.lease is not None:
            return {}
        cordoned = {broker for broker, dirs in self.log_dirs.items() if dirs and all(one.is_cordoned for one in dirs)}
        closed = cordoned | self.maintenance.brokers.keys()
        return {broker: held for broker, held in self.held_bytes.items() if broker not in closed}

    @property
    def unneeded_throttles(self) -> tuple[ConfigValue, ...]:
        """Throttles that no reassignment and no unfinished run of this state directory needs."""
        uses = ThrottleUses(self.owned, frozenset(name.topic for name in self.ongoing), self.copying)
        return tuple(one for one in self.throttles if uses.use_of(one.key) is None)

    @property
    def elsewhere(self) -> LeaseHolder | None:
        """The run that holds the lease, if its journal is not here or cannot be read: its settings are not known."""
        return None if self.lease is None or self.lease.run_id in self.run_ids else self.lease

    @property
    def doubt(self) -> findings.Doubt | None:
        """Which run a setting or reassignment that none of the readable runs here names may be of; None if none."""
        if self.elsewhere is not None:
            return findings.Doubt(f"It may be of {self.elsewhere}", "that is at its end", self.elsewhere.run_id)
        if self.unreadable_journals:
            runs = some_of([f"run {one.run_id}" for one in self.unreadable_journals], findings.NAMED)
            return findings.Doubt(f"It may be of {runs}, whose journal cannot be read", "that is read, or set aside")
        if any(one.what == findings.LEASE for one in self.unread):
            sentence = "It may be of a run of another machine, since the lease could not be read"
            return findings.Doubt(sentence, "that is known")
        return None


def diagnose(readings: ClusterReadings) -> tuple[findings.Issue, ...]:
    """All issues, the worst first; empty when all is well."""
    checks: tuple[Callable[[ClusterReadings], Iterable[findings.Issue]], ...] = (
        _endless,
        _without_destination,
        _offline,
        _interrupted_runs,
        lambda readings: findings.placement_issues(readings.placement),
        lambda readings: findings.disk_issues(readings.disks, readings.measured_s),
        lambda readings: findings.move_issues(readings.moving, readings.live, readings.measured_s, readings.doubt),
        _log_dirs,
        _maintenance,
        _unreadable_journals,
        _throttles,
        _under_replicated,
        _leaders,
        _permissions,
        lambda readings: findings.unread_issues(readings.unread, readings.allowed),
    )
    return tuple(issue for check in checks for issue in check(readings))


def notes(readings: ClusterReadings) -> tuple[str, ...]:
    """Facts worth knowing that are no issues."""
    owners = Counter(readings.owned[one.key] for one in readings.throttles if one.key in readings.owned)
    cordoned = (
        f"log directory {one.path} of broker {broker} is cordoned: it takes no new replicas"
        for broker, dirs in sorted(readings.log_dirs.items())
        for one in dirs
        if one.is_cordoned and not all(other.is_cordoned for other in dirs)
    )
    topic = cruise_control_topic({one.topic_partition.topic for one in readings.partitions})
    cruise_control = (
        f"topic {topic} is one of Cruise Control: where that runs, it may move partitions by itself, and by default it "
        "cancels moves of others when it begins; let it rest (no self-healing, no rebalance) for the time of a run"
    )
    return (
        *(() if readings.partitions or readings.unread else ("there is no topic that this client may see",)),
        *((cruise_control,) if topic is not None else ()),
        *findings.move_notes(readings.moving, readings.doubt),
        *findings.uneven_notes(readings.settled_bytes),
        *(
            f"{counted(count, 'setting')} of throttles {agreeing(count, 'are')} in force, of run {run_id}"
            for run_id, count in sorted(owners.items())
        ),
        *cordoned,
    )


def _endless(readings: ClusterReadings) -> Iterator[findings.Issue]:
    for name, move in sorted(readings.ongoing.items()):
        if move.can_never_complete:
            both = sorted(set(move.adding) & set(move.removing))
            both_ways = named_brokers(both, "are both added and removed")
            seen = f"({move}) was overridden and can never complete: {both_ways}"
            remedy = f"Cancel it, then start it again with {list(move.target)}"
            yield _issue_of_move("endless", readings, name, f"its reassignment {seen}", remedy)


def _without_destination(readings: ClusterReadings) -> Iterator[findings.Issue]:
    for name, move in sorted(readings.ongoing.items()):
        gone = sorted(set(move.adding) - set(readings.live))
        if gone and not move.can_never_complete:
            seen = f"it is being reassigned to {named_brokers(gone)}, which {agreeing(len(gone), 'are')} not there"
            remedy = "Start what is down, or cancel the reassignment and replan"
            yield _issue_of_move("destination", readings, name, seen, remedy)


def _issue_of_move(
    kind: str, readings: ClusterReadings, name: TopicPartition, seen: str, remedy: str
) -> findings.Issue:
    run_id = next((one.run_id for one in readings.moving if one.name == name), findings.NO_RUN)
    owner, commands = findings.ways_to_cancel(name, run_id, readings.doubt)
    return findings.Issue(kind, str(name), seen, f"{remedy}{owner}", commands)


def _offline(readings: ClusterReadings) -> Iterator[findings.Issue]:
    names = [one.topic_partition for one in readings.partitions if one.leader == NO_LEADER]
    remedy = f"Bring back the brokers of their replicas{_down(readings)}; this names them"
    look = ("kafka-topics", "--describe", "--unavailable-partitions")
    yield from findings.of_many("offline", names, "have no leader", remedy, (look,))


def _under_replicated(readings: ClusterReadings) -> Iterator[findings.Issue]:
    names = [
        one.topic_partition
        for one in readings.partitions
        if one.under_replicated and one.leader != NO_LEADER and one.topic_partition not in readings.ongoing
    ]
    down = _down(readings)
    advice = (
        f"Bring their brokers back{down}; this names them"
        if down
        else "All their brokers are live: see whether a throttle that was left behind slows those that catch up; this "
        "names them"
    )
    look = ("kafka-topics", "--describe", "--under-replicated-partitions")
    yield from findings.of_many("under-replicated", names, "have replicas out of sync", advice, (look,))


def _leaders(readings: ClusterReadings) -> Iterator[findings.Issue]:
    names = [
        one.topic_partition
        for one in readings.partitions
        if one.leader not in {NO_LEADER, one.preferred_leader}
        and one.preferred_leader in one.isr
        and one.topic_partition not in readings.ongoing
        and one.topic_partition not in readings.of_runs
    ]
    seen = "are not led by the preferred leader, which is in sync"
    elect = ("kafka-leader-election", "--election-type", "preferred", "--all-topic-partitions")
    yield from findings.of_many("leader", names, seen, "Elect them", (elect,))


def _down(readings: ClusterReadings) -> str:
    down = readings.placement.down
    return f": {listed_ids(down)}" if down else ""


def _permissions(readings: ClusterReadings) -> Iterator[findings.Issue]:
    if readings.allowed is not None:
        yield from findings.permission_issues(readings.allowed, readings.principal)


def _log_dirs(readings: ClusterReadings) -> Iterator[findings.Issue]:
    for broker, log_dirs in sorted(readings.log_dirs.items()):
        for log_dir in log_dirs:
            if log_dir.error:
                look = ("kafka-log-dirs", "--describe", "--broker-list", str(broker))
                remedy = "Repair the disk, then restart it; this names what is on it"
                yield findings.Issue("log-dir", f"broker {broker}", f"{log_dir} is offline", remedy, (look,))
        is_expected = broker in readings.maintenance.brokers
        closure = closure_of(
            [log_dir.is_cordoned for log_dir in log_dirs if not log_dir.error],
            may_be_named=readings.nameable.get(broker),
        )
        if Closure.CORDONED in closure and not is_expected:
            does = (
                f"plans leave its partitions as they are, for {REFUSES}"
                if closure.is_binding
                else "Kafka accepts reassignments to it in silence"
            )
            seen = f"{Closure.CORDONED.why}: it receives nothing by plans, and {does}"
            remedy = (
                "If it is to stay, open it: --cancel takes back a cordon that is *, kafka-configs one that names "
                "directories; if not, take it out of the cluster"
            )
            commands = (
                ("kreassign", "decommission", str(broker), "--cancel"),
                way_to_open(broker),
                ("kreassign", "decommission", str(broker), "--dry-run"),
            )
            yield findings.Issue("cordoned", f"broker {broker}", seen, remedy, commands)


def _maintenance(readings: ClusterReadings) -> Iterator[findings.Issue]:
    for broker, entered in sorted(readings.maintenance.brokers.items()):
        seen = f"in maintenance {entered}"
        leave = ("kreassign", "maintenance", "exit", str(broker))
        yield findings.Issue("maintenance", f"broker {broker}", seen, "When that is over, let it lead again", (leave,))


def _interrupted_runs(readings: ClusterReadings) -> Iterator[findings.Issue]:
    for run_id in readings.interrupted_runs:
        remedy = (
            "Go on with it, or end it; give up a broker that is lost for good with "
            f"`kreassign forget {run_id} --broker ID`"
        )
        seen = "no process is running it, and it has moves to finish or settings to restore"
        ways = tuple(("kreassign", way, run_id) for way in ("resume", "cancel"))
        yield findings.Issue("run", f"run {run_id}", seen, remedy, ways)


def _unreadable_journals(readings: ClusterReadings) -> Iterator[findings.Issue]:
    for journal in readings.unreadable_journals:
        forget = ("kreassign", "forget", str(journal.path))
        seen = f"its journal cannot be read: {journal}"
        yield findings.Issue(
            "journal",
            f"run {journal.run_id}",
            seen,
            journal.remedy,
            () if journal.is_locked or journal.is_active else (forget,),
        )


def _throttles(readings: ClusterReadings) -> Iterator[findings.Issue]:
    """Throttle settings that were left behind.

    While they may belong to a run that is not known here, deleting them is not advised.
    """
    explained = {one.present: one for one in readings.explained}
    for present in readings.unneeded_throttles:
        resource, key = present.key.resource, present.key
        seen = f"{key.name} is {present.value!r}, and nothing that is being reassigned needs it"
        if (doubt := readings.doubt) is not None:
            yield findings.Issue("throttle", str(resource), seen, doubt.remedy, (_LOOK_AGAIN,))
            continue
        ours = explained.get(present)
        if ours is not None and ours.before is not None:
            remedy = f"Run {ours.run_id} set it in place of {ours.before!r}, which the next run here restores"
            yield findings.Issue("throttle", str(resource), seen, remedy)
            continue
        by = f"Run {ours.run_id} set it, and could not restore it" if ours else "No run that is known here set it"
        remove = ("kreassign", "throttle", "--remove-left")
        yield findings.Issue("throttle", str(resource), seen, f"{by}. {_effect(present)}", (remove,))


def _effect(present: ConfigValue) -> str:
    """Effect of a setting that was left behind, and what follows."""
    if not present.value:
        return "It throttles nothing; this removes it"
    if present.key.name == LOG_DIR_RATE:
        return "Unless it is meant to be there, remove it; it slows copies between log directories of the broker"
    return "Unless it is meant to be there, remove it; it slows replicas that fall out of sync"
