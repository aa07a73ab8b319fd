"""Check everything before a run begins, and turn a plan into its first event; changes nothing.

`prepare` reads the cluster and refuses a plan with every violation that it finds. `read_others` finds throttles and
reassignments that no run of this state directory accounts for, and `agreed` makes the operator choose how to
treat them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kreassign.errors import ClusterBusy, ClusterError, IllegalPlan, PlanIsMet
from kreassign.executor.client_guard import ClientGuard
from kreassign.executor.cluster import permissions, readings, requests
from kreassign.executor.cluster.changes import is_denied
from kreassign.executor.cluster.observations import ReplicaLocation, replica_locations
from kreassign.executor.cluster.port import ClusterPort
from kreassign.executor.cluster.receivers import read_closures
from kreassign.executor.cluster.sizes import read_copy_sizes
from kreassign.executor.events import PlannedMove, RunStarted
from kreassign.executor.guards import GuardSetting
from kreassign.executor.state import brokers_between
from kreassign.executor.throttle_ledger import EVERY_REPLICA, ConfigValue, FoundThrottles, items
from kreassign.model import (
    NO_LEADER,
    Batch,
    Cluster,
    ConfigResource,
    LogDir,
    OngoingReassignment,
    Partition,
    TopicPartition,
    TopicPartitionReplica,
)
from kreassign.model.authorization import error_text, missing_permission
from kreassign.model.closures import REFUSES, Closure
from kreassign.model.error_codes import TOPIC_AUTHORIZATION_FAILED, has_code
from kreassign.model.pace import NO_LIMITS, Pace
from kreassign.model.plan import ANY_LOG_DIR, PartitionAssignment, Plan, absent, not_live, of_another_cluster
from kreassign.model.plan_facts import UNKNOWN_ORIGIN, PlanOrigin, other_cluster, plan_id
from kreassign.model.reassignment import WAIT_OR_CANCEL
from kreassign.model.replication_factor import locks_out, lost_in_sync
from kreassign.model.run import LogDirTarget
from kreassign.model.text import LARGEST_AMOUNT, format_amount, rough_span, some_of
from kreassign.model.throttle import NO_THROTTLE, ThrottleRates

# Violations: everything that forbids executing a plan.


@dataclass(frozen=True, slots=True)
class ClusterNow:
    """Present state of the cluster.

    `partitions` has every partition of the plan's topics, except topics that do not exist; `expected` the
    replica lists from which the plan was made, where its author recorded them. `log_dirs` are those of the brokers
    for which the plan names any, with the copies of its partitions. `topic_ids` is by name, where known. `closures`
    are the brokers in lists that the plan changes that receive nothing by their log directories. With `is_stepwise` the
    lists in between count as well.
    """

    cluster: Cluster
    partitions: Mapping[TopicPartition, Partition]
    ongoing: Mapping[TopicPartition, OngoingReassignment] = field(default_factory=dict)
    expected: Mapping[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    log_dirs: Batch[int, tuple[LogDir, ...]] = field(default_factory=Batch)
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    closures: Mapping[int, Closure] = field(default_factory=dict)
    is_stepwise: bool = False


def violations(
    plan: Plan, view: ClusterNow, rates: ThrottleRates, origin: PlanOrigin = UNKNOWN_ORIGIN
) -> tuple[str, ...]:
    """One sentence per violation; empty when the plan can be executed."""
    here = view.cluster.cluster_id
    if strange := other_cluster("the plan is for", origin.cluster_id, here):
        return (strange,)
    if strange := of_another_cluster(plan.topics, {name.topic for name in view.partitions}, here):
        return (strange,)
    found = [] if len(plan) else ["it names no partition"]
    found += origin.objections(plan, here, view.topic_ids)
    found += _of_rates(rates, view.cluster)
    found += [f"{partition} is named more than once" for partition in plan.duplicate_partitions]
    found += [f"{partition}: {text}" for partition, text in hindrances(plan, view)]
    return tuple(dict.fromkeys(found))


def _drifted(plan: Plan, view: ClusterNow) -> list[TopicPartition]:
    """Partitions of the plan that others moved since it was made."""
    return [
        one.topic_partition
        for one in plan.assignments
        if (partition := view.partitions.get(one.topic_partition)) is not None
        if _drift(one, partition, view) is not None
    ]


def hindrances(plan: Plan, view: ClusterNow) -> Iterator[tuple[TopicPartition, str]]:
    """Violations of single partitions; without those the others could be moved."""
    for assignment in plan.assignments:
        for text in (*_of_assignment(assignment, view), *_of_partition(assignment, view)):
            yield assignment.topic_partition, text
    for replica, text in _of_log_dirs(plan, view):
        yield replica.topic_partition, text


def _of_rates(rates: ThrottleRates, cluster: Cluster) -> Iterator[str]:
    slowest = rates.slowest_bytes_per_s
    if slowest is not None and slowest <= 0:
        yield f"a throttle of {slowest} B/s would never let it end"
    for one in rates.per_broker:
        if one.broker not in cluster.broker_ids:
            yield f"a rate of its own is given, but {not_live(one.broker, cluster.broker_ids)}"


def _of_assignment(assignment: PartitionAssignment, view: ClusterNow) -> Iterator[str]:
    """Faults of a list itself; a broker that is down is no hindrance where its list stays as it is."""
    yield from assignment.wrong_in_itself
    partition, live = view.partitions.get(assignment.topic_partition), view.cluster.broker_ids
    stays = partition is not None and assignment.replicas == partition.replicas
    for broker, log_dir in zip(assignment.replicas, assignment.log_dirs, strict=True):
        if broker not in live and not (stays and log_dir == ANY_LOG_DIR):
            yield not_live(broker, live)


def _of_log_dirs(plan: Plan, view: ClusterNow) -> Iterator[tuple[TopicPartitionReplica, str]]:
    found = replica_locations(view.log_dirs.ok)
    for replica, path in plan.log_dirs.items():
        if replica.broker not in view.cluster.broker_ids:
            continue
        known, error = view.log_dirs.ok.get(replica.broker), view.log_dirs.failed.get(replica.broker)
        place = found.get(replica, ReplicaLocation())
        log_dir = next((one for one in known or () if one.path == path), None)
        where = f"log directory {path} of broker {replica.broker}"
        if known is None:
            why = "" if error is None else f": {error_text(error)}"
            yield replica, f"broker {replica.broker} did not report its log directories, of which {path} is named{why}"
        elif log_dir is None:
            yield replica, f"there is no {where}; it has {', '.join(one.path for one in known)}"
        elif log_dir.error:
            yield replica, f"{where} is offline ({log_dir.error})"
        elif log_dir.is_cordoned and place.current != path:
            yield replica, f"{where} is cordoned (KIP-1066) and takes no copies"
        elif place.future is not None:
            yield (
                replica,
                f"its copy on broker {replica.broker} is being moved to {place.future} already; wait for that",
            )


def _of_partition(assignment: PartitionAssignment, view: ClusterNow) -> Iterator[str]:
    name = assignment.topic_partition
    partition, ongoing = view.partitions.get(name), view.ongoing.get(name)
    if partition is None:
        yield absent(name, {known.topic for known in view.partitions})
        return
    if ongoing is not None:
        yield f"it is being reassigned already ({ongoing}); {_way_out(ongoing)}"
        return
    added = sorted(set(assignment.replicas) - set(partition.replicas))
    if partition.leader == NO_LEADER and added:
        yield (
            f"it has no leader, so nothing can be copied to {added}: bring back one of its replicas "
            f"{list(partition.replicas)}, or plan without it"
        )
    if (loss := lost_in_sync(partition, assignment.replicas)) is not None:
        yield loss
    yield from _of_closures(assignment, partition, view.closures)
    if view.is_stepwise:
        yield from _of_closures_between(assignment, partition, view.closures)
    if (drift := _drift(assignment, partition, view)) is not None:
        yield drift


def _drift(assignment: PartitionAssignment, partition: Partition, view: ClusterNow) -> str | None:
    """Replicas of a partition for which the plan was not made."""
    expected = view.expected.get(assignment.topic_partition)
    # Order is ignored: Kafka does not restore it when a reassignment is cancelled, and the copies are the same.
    # What an earlier run of the plan has moved already is as it is to be: the plan can be run on.
    is_there = sorted(assignment.replicas) == sorted(partition.replicas)
    if expected is None or sorted(expected) == sorted(partition.replicas) or is_there:
        return None
    return f"its replicas are {list(partition.replicas)}, but the plan was made for {list(expected)}; replan"


def _of_closures(
    assignment: PartitionAssignment, partition: Partition, closures: Mapping[int, Closure]
) -> Iterator[str]:
    """Brokers of a changed list that Kafka refuses in it, or of which nobody knows whether they are open.

    Where cordons do not bind, the guard `cordoned` holds the run: others may end a cordon or a maintenance meanwhile.
    """
    if assignment.replicas == partition.replicas:
        return
    for broker in assignment.replicas:
        closure = closures.get(broker, Closure.NONE)
        is_new = broker not in partition.replicas
        if closure.is_binding or (is_new and Closure.UNREAD in closure):
            role = "gets a copy" if is_new else "stays in its list, which changes"
            refuses = f", and {REFUSES}" if closure.is_binding else ""
            yield f"broker {broker} {role}, but {closure.why}{refuses}; {closure.remedy}, or replan"


def _of_closures_between(
    assignment: PartitionAssignment, partition: Partition, closures: Mapping[int, Closure]
) -> Iterator[str]:
    """Brokers that the partition leaves, and that Kafka refuses in a list between two steps."""
    for broker in sorted(_brokers_between(assignment, partition).difference(assignment.replicas)):
        closure = closures.get(broker, Closure.NONE)
        if closure.is_binding:
            yield (
                f"broker {broker} stays in a list between two steps, but {closure.why}, and {REFUSES}; run without "
                f"--stepwise (rollback: --no-stepwise), or {closure.remedy}"
            )


def _brokers_between(assignment: PartitionAssignment, partition: Partition) -> frozenset[int]:
    return brokers_between(
        PlannedMove(assignment.topic_partition, partition.replicas, assignment.replicas, size_bytes=0)
    )


def _way_out(ongoing: OngoingReassignment) -> str:
    if ongoing.can_never_complete:
        return "that can never complete, because it was overridden by a target that adds nothing: cancel it, then start"
    return f"{WAIT_OR_CANCEL}; a run overrides nothing, for some overrides can never complete"


# Throttles and reassignments of others: a run must not start on top of them.
#
# A run would take their throttle for the original value, and restore it long after they have removed it; or it would
# change the rate of their moves. Only the operator knows which of both, or neither. So throttles and moves of others
# are shown, and the run is refused until the operator chooses.

NAMED = 10


@dataclass(frozen=True, slots=True)
class DoneByOthers:
    """Throttles that are set, and partitions outside the plan that are being reassigned."""

    settings: tuple[ConfigValue, ...] = ()
    moves: Mapping[TopicPartition, OngoingReassignment] = field(default_factory=dict)


def read_others(port: ClusterPort, started: RunStarted) -> DoneByOthers:
    """Read throttles and moves of others. Raises ClusterError, also if a relevant throttle could not be read.

    Settings that the client may not see or read are ignored unless the run would set them: its own topics, and brokers
    under a throttle.
    """
    listed = readings.every_topic_of_two(port)
    planned_topics = {move.topic_partition.topic for move in started.moves}
    names = sorted({*listed.known, *listed.absent, *listed.unknown, *planned_topics})
    known, absent, unknown = requests.read_throttles(port, names, started.live_brokers)
    own = set(map(ConfigResource.topic, planned_topics))
    own |= set(map(ConfigResource.broker, started.live_brokers))
    missing = [
        f"{resource} could not be read: {error_text(error)}"
        for resource, error in sorted(unknown.items())
        if resource not in absent and not (is_denied(error) and not (started.rates.is_limited and resource in own))
    ]
    if missing:
        raise ClusterError(
            f"whether throttles are set is not known: {some_of(missing, NAMED)}. A run overrides nothing that it "
            "has not read; nothing was changed, try again"
        )
    planned = {move.topic_partition for move in started.moves}
    moves = {name: move for name, move in readings.ongoing_moves(port).items() if name not in planned}
    settings = (present for values in known.values() for present in values if present.value)
    return DoneByOthers(tuple(sorted(settings, key=lambda present: present.key)), moves)


def agreed(
    started: RunStarted,
    others: DoneByOthers,
    choice: FoundThrottles,
    ours: Collection[tuple[ConfigValue, str | None]] = (),
) -> RunStarted:
    """Record in the run how to treat throttles of others. Raises ClusterBusy if the operator has to choose.

    `ours` are those that an earlier run set and could not restore, each with the value before it, which it gets at the
    end of this run, whatever the choice.
    """
    known = {present.key: before for present, before in ours}
    others = replace(others, settings=tuple(present for present in others.settings if present.key not in known))
    problem = _problem(started, others, choice)
    if problem is not None:
        raise ClusterBusy(problem)
    # Only our own entries of a list are removed in the end; a wildcard stays, because nothing can be added to it.
    lifted = [
        ConfigValue(present.key, None)
        for present in others.settings
        if choice is FoundThrottles.REMOVE
        or (choice is FoundThrottles.ALONGSIDE and EVERY_REPLICA not in items(present.value))
    ]
    adopted = others.settings if choice is FoundThrottles.REMOVE else ()
    restored = tuple(ConfigValue(key, before) for key, before in known.items())
    taken = (*adopted, *(present for present, _ in ours))
    return replace(started, found=choice, originals=(*lifted, *restored), adopted=taken)


def _problem(started: RunStarted, others: DoneByOthers, choice: FoundThrottles) -> str | None:
    """Why the run cannot begin with this choice, and what to do; None if it can."""
    rates = started.rates
    match choice:
        case FoundThrottles.REFUSE if others.settings or others.moves:
            return f"{_named(others)}. {_CHOICES if others.settings and not others.moves else _CHOICES_WITH_MOVES}"
        case FoundThrottles.REMOVE | FoundThrottles.RESTORE if others.moves:
            return f"{_named(others)}: what is in use is not to be adopted. {_CHOICES_WITH_MOVES}"
        case FoundThrottles.ALONGSIDE if others.settings and not others.moves:
            return f"{_named(others)}, and nothing is being reassigned that needs it. {_CHOICES}"
        case FoundThrottles.ALONGSIDE if rates.bytes_per_s is None or rates.per_broker or rates.adaptive is not None:
            return "a run alongside moves of others shares the rate of each broker with them: give one --throttle RATE"
    return None


_CHOICES = (
    "If it was left behind, remove it now (`kreassign throttle --remove-left`), or run with --adopt remove: it is gone "
    "when the run has ended. If it is meant to be there, run with --adopt restore: it has its value again then"
)
_CHOICES_WITH_MOVES = (
    "Wait for the end of these moves, or cancel them, and look again (`kreassign doctor`); or run with --alongside and "
    "--throttle RATE, a rate that those moves and the run share on each broker"
)


def _named(others: DoneByOthers) -> str:
    found = []
    if others.settings:
        found.append(f"throttles are set that no known run owns: {some_of(others.settings, NAMED)}")
    if others.moves:
        moves = (f"{name} ({move})" for name, move in sorted(others.moves.items()))
        found.append(f"partitions are being reassigned by others: {some_of(moves, NAMED)}")
    return "; ".join(found)


# From a plan to the first event of a run.

NOTHING_EXPECTED: Mapping[TopicPartition, tuple[int, ...]] = {}


@dataclass(frozen=True, slots=True)
class RunSettings:
    """Settings of a new run and its id; without guards there are no health checks.

    A run that `allows_producer_outage` may start moves that have producers with acks=all refused until they are over;
    one that `allows_factor_change` may lower replication factors. A destination that is down for `lost_after_ms` is
    lost; None is never. `clients` says how to ask what they feel.
    """

    run_id: str
    at_ms: int
    rates: ThrottleRates = NO_THROTTLE
    guards: tuple[GuardSetting, ...] = ()
    pace: Pace = NO_LIMITS
    allows_producer_outage: bool = False
    allows_factor_change: bool = False
    lost_after_ms: int | None = None
    clients: ClientGuard | None = None


def prepare(
    port: ClusterPort,
    plan: Plan,
    settings: RunSettings,
    *,
    expected: Mapping[TopicPartition, tuple[int, ...]] = NOTHING_EXPECTED,
    origin: PlanOrigin = UNKNOWN_ORIGIN,
) -> RunStarted:
    """Check the plan and return the first event of its run, ready for the journal.

    `expected` has the replica lists for which the plan was made, if recorded, `origin` the cluster and
    the topics. Raises IllegalPlan with all violations, ClusterError when the cluster does not answer.
    """
    view = read_cluster(port, plan, expected, is_stepwise=settings.pace.is_stepwise)
    wrong = violations(plan, view, settings.rates, origin)
    wrong = wrong or _lacking(port, plan, view, settings.rates) or _not_agreed(port, plan, view, settings)
    if wrong:
        drifted, is_moved = _drifted(plan, view), not view.ongoing.keys().isdisjoint(plan.replicas)
        raise IllegalPlan(wrong, is_overtaken=bool(drifted) or is_moved, drifted=len(drifted))
    if is_met(plan, view):
        raise PlanIsMet
    currents = {name: view.partitions[name].replicas for name in plan.replicas}
    log_dirs = _log_dir_targets(plan, view)
    moves = tuple(
        PlannedMove(
            name,
            currents[name],
            target,
            size_bytes=0,
            is_urgent=_is_urgent(view.partitions[name]),
            log_dirs=log_dirs.get(name, ()),
            topic_id=view.topic_ids.get(name.topic),
        )
        for name, target in plan.replicas.items()
    )
    sizes = _sizes(port, moves, view)
    return RunStarted(
        at_ms=settings.at_ms,
        run_id=settings.run_id,
        cluster_id=view.cluster.cluster_id,
        moves=tuple(replace(move, size_bytes=sizes.get(move.topic_partition, 0)) for move in moves),
        rates=settings.rates,
        live_brokers=view.cluster.broker_ids,
        guards=settings.guards,
        pace=settings.pace,
        plan_id=plan_id(plan),
        allows_producer_outage=settings.allows_producer_outage,
        lost_after_ms=settings.lost_after_ms,
        clients=settings.clients,
    )


def is_met(plan: Plan, view: ClusterNow) -> bool:
    """True if lists, preferred leaders and log directories are as the plan says: a run would change nothing."""
    return all(
        view.partitions[name].replicas == target and view.partitions[name].leader == target[0]
        for name, target in plan.replicas.items()
    ) and all(target.path == target.before for found in _log_dir_targets(plan, view).values() for target in found)


def _lacking(port: ClusterPort, plan: Plan, view: ClusterNow, rates: ThrottleRates) -> tuple[str, ...]:
    """Permissions that the run lacks. Without a throttle it changes no configuration."""
    if not rates.is_limited:
        return permissions.lacking(port, (), ())
    return permissions.lacking(port, plan.topics, view.cluster.broker_ids)


def _not_agreed(port: ClusterPort, plan: Plan, view: ClusterNow, settings: RunSettings) -> tuple[str, ...]:
    """Reasons for which the run lacks the operator's consent."""
    wrong: tuple[str, ...] = ()
    if not settings.allows_factor_change:
        present = {name: partition.replicas for name, partition in view.partitions.items()}
        wrong = requests.read_factors(port, plan.replicas, present).objections
    if not settings.allows_producer_outage:
        wrong += read_outages(port, plan.replicas, view.partitions, settings.rates).objections
    return wrong


@dataclass(frozen=True, slots=True)
class LockedOut:
    """A partition whose producers with acks=all are refused until a copy is in sync; None is not known.

    `rate_bytes_per_s` is the most with which a copy arrives under the throttle, `unread` why there is no size.
    """

    size_bytes: int | None
    rate_bytes_per_s: int | None
    unread: str = ""

    @property
    def seconds(self) -> float | None:
        """The shortest time; None if not known."""
        if self.size_bytes is None or self.rate_bytes_per_s is None:
            return None
        return self.size_bytes / self.rate_bytes_per_s


@dataclass(frozen=True, slots=True)
class ProducerOutages:
    """Partitions whose producers with acks=all a plan has refused, by topic.

    `unread` says for which topics that is unknown.
    """

    refused: Mapping[str, Sequence[LockedOut]] = field(default_factory=dict)
    unread: tuple[str, ...] = ()

    @property
    def sentences(self) -> tuple[str, ...]:
        """One per topic: where producers would be refused, until when, for how long and why."""
        return (
            *(
                f"topic {topic}: producers with acks=all would be refused (NOT_ENOUGH_REPLICAS) at {len(partitions)} "
                f"of its partitions, each until its copy is in sync, {_how_long(partitions)}: while it moves, the "
                "replicas that it gets count, and fewer are in sync than min.insync.replicas asks for"
                for topic, partitions in self.refused.items()
            ),
            *(f"{why}; without it nobody knows whether producers are refused" for why in self.unread),
        )

    @property
    def objections(self) -> tuple[str, ...]:
        """The sentences, each with what to do."""
        remedy = ". Lower min.insync.replicas of the topic for the time, or run with --allow-producer-outage"
        remedies = [remedy] * len(self.refused) + [" (--allow-producer-outage)"] * len(self.unread)
        return tuple(f"{one}{what}" for one, what in zip(self.sentences, remedies, strict=True))


def _how_long(partitions: Sequence[LockedOut]) -> str:
    """Time of the partition that takes longest, as far as sizes and throttle are known."""
    sizes = [one.size_bytes for one in partitions if one.size_bytes is not None]
    if unsized := [one.unread for one in partitions if one.size_bytes is None]:
        return f"for a time that is not known: the size of {len(unsized)} could not be read ({unsized[0]})"
    longest = max((seconds for one in partitions if (seconds := one.seconds) is not None), default=None)
    largest = f"the largest has {format_amount(max(sizes), 'B')}"
    if longest is None:
        return f"for a time that is not known without a fixed throttle ({largest})"
    return f"at least {rough_span(longest)} under the throttle ({largest})"


def read_outages(
    port: ClusterPort,
    targets: Mapping[TopicPartition, Sequence[int]],
    partitions: Mapping[TopicPartition, Partition],
    rates: ThrottleRates,
) -> ProducerOutages:
    """Outages that these targets would cause for producers with acks=all. Raises ClusterError."""
    growing = requests.growing_lists(partitions, targets)
    minima = requests.min_isr_of(port, (name.topic for name in growing))
    least = minima.known
    locked = [
        PlannedMove(name, partition.replicas, tuple(targets[name]), size_bytes=0)
        for name, (partition, most) in growing.items()
        if name.topic in least and locks_out(least[name.topic], len(partition.replicas), most, len(partition.isr))
    ]
    sizes, leaderless, unsized = read_copy_sizes(port, locked, partitions)
    why = {**dict.fromkeys(leaderless, "no leader"), **{name: error_text(error) for name, error in unsized.items()}}
    refused: dict[str, list[LockedOut]] = {}
    for move in locked:
        name = move.topic_partition
        one = LockedOut(sizes.get(name), _fastest(move, rates), why.get(name, ""))
        refused.setdefault(name.topic, []).append(one)
    denied = [topic for topic, error in minima.unknown.items() if has_code(error, TOPIC_AUTHORIZATION_FAILED)]
    unread = [missing_permission("DescribeConfigs", denied, port.principal)] if denied else []
    unread += [
        f"min.insync.replicas of topic {topic} could not be read: {error_text(error)}"
        for topic, error in minima.unknown.items()
        if topic not in denied
    ]
    return ProducerOutages(refused, tuple(unread))


def _fastest(move: PlannedMove, rates: ThrottleRates) -> int | None:
    """Most bytes per second with which a copy of this move arrives; None without a fixed limit."""
    if rates.adaptive is not None:
        return None
    sent = max((rates.of(broker) or LARGEST_AMOUNT for broker in move.original), default=LARGEST_AMOUNT)
    received = max(rates.of(broker) or LARGEST_AMOUNT for broker in move.adding)
    fastest = min(sent, received)
    return None if fastest == LARGEST_AMOUNT else fastest


def read_cluster(
    port: ClusterPort,
    plan: Plan,
    expected: Mapping[TopicPartition, tuple[int, ...]],
    *,
    is_stepwise: bool = False,
) -> ClusterNow:
    """Read the state of the cluster that the checks need, and from which a run begins: ids and lists of two brokers.

    One that lags shows the very lists from which a plan was made, though others have changed them since.
    """
    cluster = readings.cluster_of_two(port)
    topics = readings.topics_of_two(port, plan.topics, only_lists=True)
    for error in topics.unknown.values():
        raise error
    partitions = readings.partitions_of(topics.known)
    return ClusterNow(
        cluster=cluster,
        partitions=partitions,
        ongoing=readings.ongoing_moves(port, plan.replicas) if len(plan) else {},
        expected=expected,
        log_dirs=_log_dirs(port, plan, cluster.broker_ids),
        topic_ids=readings.topic_ids_of(topics.known),
        closures=read_closures(
            port, _named_in_changes(plan, partitions, is_stepwise=is_stepwise) & set(cluster.broker_ids)
        ),
        is_stepwise=is_stepwise,
    )


def _named_in_changes(plan: Plan, partitions: Mapping[TopicPartition, Partition], *, is_stepwise: bool) -> set[int]:
    """Brokers in lists that the plan changes, and in those between the steps."""
    changed = (
        (one, present)
        for one in plan.assignments
        if (present := partitions.get(one.topic_partition)) is not None and present.replicas != one.replicas
    )
    return {
        broker
        for one, present in changed
        for broker in (*one.replicas, *(_brokers_between(one, present) if is_stepwise else ()))
    }


def _is_urgent(partition: Partition) -> bool:
    """True if a replica is out of sync, or lost with its disk or broker: the next failure may cost data."""
    return bool(partition.offline) or partition.under_replicated


def _log_dirs(port: ClusterPort, plan: Plan, live: Iterable[int]) -> Batch[int, tuple[LogDir, ...]]:
    """Log directories of brokers for which the plan names any, with the copies of its partitions."""
    named = plan.log_dirs
    brokers = sorted({replica.broker for replica in named} & set(live))
    partitions = sorted({replica.topic_partition for replica in named})
    return readings.read_log_dirs(port, brokers, copies_of=partitions)


def _log_dir_targets(plan: Plan, view: ClusterNow) -> dict[TopicPartition, tuple[LogDirTarget, ...]]:
    """Directories that the plan names, and the present ones of copies that stay on their broker."""
    # A plan that names a directory of a broker that did not report any is refused (`_of_log_dirs`).
    found = replica_locations({broker: view.log_dirs[broker] for broker in view.log_dirs})
    targets: dict[TopicPartition, list[LogDirTarget]] = {}
    for replica, path in plan.log_dirs.items():
        place = found.get(replica, ReplicaLocation())
        targets.setdefault(replica.topic_partition, []).append(LogDirTarget(replica.broker, path, place.current))
    return {name: tuple(sorted(found, key=lambda target: target.broker)) for name, found in targets.items()}


def _sizes(port: ClusterPort, moves: Iterable[PlannedMove], view: ClusterNow) -> Mapping[TopicPartition, int]:
    """Bytes of one copy of each move that copies. Raises ClusterError if one cannot be read.

    With a size of 0 instead, the disk guard would admit everything.
    """
    known, absent, unknown = read_copy_sizes(port, moves, view.partitions)
    if unread := sorted(unknown.keys() - absent):
        raise ClusterError(
            f"the size of {some_of(unread, NAMED)} could not be read, and without it no space "
            f"can be kept free: {error_text(unknown[unread[0]])}. Nothing was changed; try again"
        )
    return known
