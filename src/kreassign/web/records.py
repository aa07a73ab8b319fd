"""Answers of the HTTP API: one class per document, from which its JSON and its schema are generated. Pure.

Times are ms since the epoch, sizes bytes, rates bytes per second. Unknown values are null.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from shlex import join, quote
from types import MappingProxyType

from kreassign.errors import InputError
from kreassign.executor.history.findings import Words, plan_command
from kreassign.model.cluster import listed_ids
from kreassign.model.documents import Json
from kreassign.model.load import LoadBasis
from kreassign.model.pace import EndpointKind, Limit, Measure, Order, PaceChange
from kreassign.model.plan_facts import GoalLimit, UnevenTopic
from kreassign.model.run import LogDirTarget, MoveHistory, RunHistory
from kreassign.model.text import counted, printable, shortened
from kreassign.model.typed_json import to_document
from kreassign.operations.doctor import Diagnosis
from kreassign.operations.plan_files import Approval, PlanFile, PlanSummary
from kreassign.operations.run_journals import NamedCluster, RunSummary
from kreassign.operations.skew import BrokerSkew, ClusterSkew, TopicSpread
from kreassign.report.text import format_time, loads_origin
from kreassign.web.settings import User
from kreassign.web.tasks import TaskRequest, task_of_remedy

SHOWN_MOVES = 100
SHOWN_CHANGES = 500
SHOWN_TOPICS = 100
SHOWN_MISSES = 3
MOST_IN_FLIGHT = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem, as in RFC 9457."""

    title: str
    status: int
    detail: str


@dataclass(frozen=True, slots=True)
class Me:
    """Name and roles of the user whose token the request carries; no roles without a valid token.

    The name is empty if the page has one token for all.
    """

    name: str
    roles: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs, newest first."""

    runs: tuple[RunSummary, ...]


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster with runs, or one that the file of clusters names. `active_run` is the run being executed.

    `name` and `bootstrap_server` are those of the file. The id of a named cluster without runs is unknown: the page
    queries no cluster.
    """

    cluster_id: str | None
    name: str | None
    bootstrap_server: str | None
    run_count: int
    active_run: str | None
    latest_run: RunSummary | None


@dataclass(frozen=True, slots=True)
class Clusters:
    """Clusters, that of the newest run first, then those without runs."""

    clusters: tuple[Cluster, ...]


@dataclass(frozen=True, slots=True)
class Moves:
    """Moves of a run that copy data, in the order of the plan, from `offset` on."""

    total: int
    offset: int
    moves: tuple[MoveHistory, ...]


@dataclass(frozen=True, slots=True)
class Recommendation:
    """Something to do about the cluster: what was seen of which subject, the remedy, and commands that apply it.

    `tasks` are those of the commands that the page can plan.
    """

    kind: str
    subject: str
    seen: str
    remedy: str
    commands: tuple[str, ...]
    tasks: tuple[TaskRequest, ...]


@dataclass(frozen=True, slots=True)
class ClusterState:
    """A cluster as it is now: what to do first, then brokers and topics with their skew.

    `topics` are the first of `topic_count`, those that put most above an even share on one broker first. `unread` has
    what could not be read: the rest says nothing about it.
    """

    cluster_id: str
    at_ms: int
    recommendations: tuple[Recommendation, ...]
    notes: tuple[str, ...]
    unread: tuple[str, ...]
    brokers: tuple[BrokerSkew, ...]
    topics: tuple[TopicSpread, ...]
    topic_count: int


@dataclass(frozen=True, slots=True)
class Plans:
    """Plans in the served directory."""

    plans: tuple[PlanSummary, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """One partition of a plan; `original` is empty if the plan has no facts."""

    topic: str
    partition: int
    original: tuple[int, ...]
    target: tuple[int, ...]
    size_bytes: int | None
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan in detail. `changes` are the first ones; `remaining` is left undone.

    `factors` has a sentence per change of replication factors.
    `limits` are those of brokers, null if the plan has no facts. `unknown_goals` were left out because their load is
    not known; `uneven_topics` have partitions of unequal size.
    """

    summary: PlanSummary
    factors: tuple[str, ...]
    moves: int | None
    leader_changes: int | None
    least_bytes: int | None
    predicted_s: float | None
    loads: str | None
    remaining: tuple[str, ...]
    limits: tuple[GoalLimit, ...] | None
    unknown_goals: tuple[str, ...]
    uneven_topics: tuple[UnevenTopic, ...]
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan that was made, by its name among the plans; null if there is nothing to do. `sentence` says what it is."""

    name: str | None
    sentence: str


@dataclass(frozen=True, slots=True)
class StartRequest:
    """Begin what a preview has shown."""

    preview_id: str


@dataclass(frozen=True, slots=True)
class Begun:
    """A run that has begun."""

    run_id: str


@dataclass(frozen=True, slots=True)
class Accepted:
    """Confirmation that a run has received a request."""

    run_id: str
    request: str


@dataclass(frozen=True, slots=True)
class ThrottleRequest:
    """A throttle: `bytes_per_s` for all brokers, or for `brokers` alone; null for no limit."""

    bytes_per_s: int | None
    brokers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class PaceRequest:
    """Changes of the order and the limits of a run; null keeps the present value, a limit of 0 removes it.

    `order` is one of makespan, relief, small-first, large-first, name; `max_moves_per_broker` applies to each source
    and to each destination.
    """

    order: str | None = None
    max_moves: int | None = None
    max_moves_per_broker: int | None = None


@dataclass(frozen=True, slots=True)
class CancelRequest:
    """Request to cancel: `drain` lets moves in flight finish, else they are cancelled too."""

    drain: bool = False


@dataclass(frozen=True, slots=True)
class Nothing:
    """A request without content: an empty object."""


@dataclass(frozen=True, slots=True)
class ApproveRequest:
    """Approve a plan; `plan_id` is the version that was reviewed.

    Users with tokens of their own approve by their name, so that `approved_by` may be left out.
    """

    plan_id: str
    approved_by: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Approved:
    """Approval of a plan; null if revoked."""

    name: str
    approval: Approval | None


def me_of(user: User | None) -> Me:
    """Name and roles of a user; neither without one."""
    return Me("", ()) if user is None else Me(user.name, tuple(sorted(role.value for role in user.roles)))


def clusters_of(
    runs: tuple[RunSummary, ...], named: tuple[NamedCluster, ...] = (), names: Mapping[str, str] = MappingProxyType({})
) -> Clusters:
    """Clusters of these runs, with the newest run first, and named ones; `names` are by id."""
    counts = Counter(run.cluster_id for run in runs)
    latest: dict[str, RunSummary] = {}
    active: dict[str, str] = {}
    for run in runs:
        latest.setdefault(run.cluster_id, run)
        if run.is_active:
            active[run.cluster_id] = run.run_id
    addresses = {one.name: one.bootstrap_server for one in named}
    found = [
        Cluster(one, names.get(one), addresses.get(names.get(one, "")), counts[one], active.get(one), run)
        for one, run in latest.items()
    ]
    known = {one.name for one in found}
    others = (one for one in named if one.name not in known)
    return Clusters((*found, *(Cluster(None, one.name, one.bootstrap_server, 0, None, None) for one in others)))


def cluster_of(skew: ClusterSkew, diagnosis: Diagnosis, unread: tuple[str, ...], server: str) -> ClusterState:
    """The document of a cluster; commands reach it by the address `server`."""
    found = [
        Recommendation(
            kind=one.kind,
            subject=one.subject,
            seen=one.seen,
            remedy=one.remedy,
            commands=tuple(command_of(words, server) for words in one.commands),
            tasks=tuple(task for words in one.commands if (task := task_of_remedy(words)) is not None),
        )
        for one in diagnosis.issues
    ]
    if skew.misses:
        rest = f" and {len(skew.misses) - SHOWN_MISSES} more" if len(skew.misses) > SHOWN_MISSES else ""
        found.append(
            Recommendation(
                "balance",
                "brokers",
                f"not all are within their bands ({'; '.join(skew.misses[:SHOWN_MISSES])}{rest})",
                "Balance them",
                (command_of(plan_command(), server),),
                (TaskRequest("rebalance"),),
            )
        )
    holder = () if diagnosis.lease is None else (f"{diagnosis.lease} holds the lease of the cluster",)
    return ClusterState(
        cluster_id=skew.cluster_id,
        at_ms=skew.taken_ms,
        recommendations=tuple(found),
        notes=(*holder, *diagnosis.notes),
        unread=unread,
        brokers=skew.brokers,
        topics=skew.topics[:SHOWN_TOPICS],
        topic_count=len(skew.topics),
    )


def command_of(words: Words, server: str) -> str:
    """A command of a remedy, ready to paste; `forget` works on a journal and takes no cluster."""
    line = words[0] if len(words) == 1 else join(words)
    return line if words[:2] == ("kreassign", "forget") else f"{line} --bootstrap-server {quote(server)}"


def run_document(run: RunHistory) -> Json:
    """The document of `kreassign status`, but only with the first moves that copy data, those in progress first.

    Of the partitions of a problem, whose sentence has their number, it has the first as well. A run may have a hundred
    thousand moves, and streams send it whenever something changes.
    """
    partitions = {sentence: names[:SHOWN_MOVES] for sentence, names in run.problem_partitions.items()}
    moves = tuple(run.by_interest[:SHOWN_MOVES])
    shown = to_document(replace(run, moves=moves, problem_partitions=partitions))
    return shown | {name: to_document(getattr(run, name)) for name in run.ALSO_SHOWS}


def pace_change_of(request: PaceRequest) -> PaceChange:
    """Changes that a request asks for. Raises InputError for invalid values."""
    change = asked_pace(request)
    if change.order is None and not change.limits:
        raise InputError("specify at least one change, for example max_moves_per_broker")
    return change


def asked_pace(request: PaceRequest) -> PaceChange:
    """Changes that a request asks for, if any. Raises InputError for invalid values."""
    orders = [order.value for order in Order]
    if request.order is not None and request.order not in orders:
        raise InputError(f"{shortened(printable(request.order))!r} is no order; it is one of {', '.join(orders)}")
    ends = (
        (request.max_moves, EndpointKind.CLUSTER),
        (request.max_moves_per_broker, EndpointKind.SOURCE),
        (request.max_moves_per_broker, EndpointKind.DESTINATION),
    )
    if any(count is not None and not 0 <= count <= MOST_IN_FLIGHT for count, _ in ends):
        raise InputError(f"a limit is a number of moves up to {MOST_IN_FLIGHT:,}, or 0 for none")
    limits = tuple(Limit(end, Measure.MOVES, count or None) for count, end in ends if count is not None)
    return PaceChange(None if request.order is None else Order(request.order), limits)


def moved_dirs(targets: tuple[LogDirTarget, ...]) -> tuple[str, ...]:
    """Directories that get the copy of another directory of their broker, with the broker."""
    return tuple(f"{one.broker}:{one.path}" for one in targets if one.is_move)


def destination_text(target: tuple[int, ...], log_dirs: tuple[str, ...]) -> str:
    """Replicas of a partition after its move, and the directories to which copies move within their brokers."""
    return "; ".join((listed_ids(target), *log_dirs))


def loads_sentence(basis: LoadBasis) -> str:
    """The basis of a plan's loads, as a sentence."""
    count, all_of = basis.doubtful_count, counted(basis.partitions, "partition")
    doubtful = f"; doubtful for {count} of {all_of}" if count else ""
    return f"Loads: {loads_origin(basis)}, {format_time(basis.measured_ms)}{doubtful}."


def plan_of(summary: PlanSummary, file: PlanFile) -> Plan:
    """Convert a plan to its document."""
    facts = file.facts
    known = {} if facts is None else {fact.topic_partition: fact for fact in facts.partitions}
    changes = []
    for name, target in list(file.plan.replicas.items())[:SHOWN_CHANGES]:
        fact = known.get(name)
        reasons = () if fact is None else tuple(dict.fromkeys(reason.goal for reason in fact.reasons))
        original = file.expected.get(name, ())
        changes.append(
            Change(name.topic, name.partition, original, target, None if fact is None else fact.size_bytes, reasons)
        )
    totals = None if facts is None else facts.totals
    prediction = None if facts is None else facts.prediction
    return Plan(
        summary=summary,
        factors=() if facts is None else facts.factors,
        moves=None if totals is None else totals.moves,
        leader_changes=None if totals is None else totals.leader_changes,
        least_bytes=None if totals is None else totals.least_bytes,
        predicted_s=None if prediction is None else prediction.seconds,
        loads=None if facts is None or facts.loads is None else loads_sentence(facts.loads),
        remaining=() if facts is None else facts.remaining,
        limits=None if facts is None else facts.limits,
        unknown_goals=() if facts is None else facts.unknown_goals,
        uneven_topics=() if facts is None else facts.uneven_topics,
        changes=tuple(changes),
    )
