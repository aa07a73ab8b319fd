"""Make plans from the present state of a cluster, one at a time or many at once.

Also: whether moving leaders alone is enough, and other destinations for moves whose own are lost during a run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kreassign.admin import AdminClient
from kreassign.clock import SYSTEM_CLOCK
from kreassign.errors import IllegalPlan, Infeasible, InputError, InvariantBroken, requires
from kreassign.executor.cluster import permissions
from kreassign.executor.cluster.observations import replica_locations
from kreassign.executor.cluster.readings import (
    cluster_of_two,
    every_topic_of_two,
    live_with,
    partitions_of,
    read_log_dirs,
)
from kreassign.executor.cluster.receivers import closures_of
from kreassign.executor.cluster.requests import read_configs
from kreassign.executor.events import NewTarget, PlannedMove, Refusal, topic_ids_of_moves
from kreassign.executor.instructions import ReplanMoves
from kreassign.executor.maintenance.record import ids_in_maintenance
from kreassign.executor.preflight import read_cluster, violations
from kreassign.executor.preview import starved
from kreassign.executor.runner import Replanned
from kreassign.executor.throttle_ledger import throttle_keys
from kreassign.model import Cluster, LogDir, Partition, TopicPartition
from kreassign.model.closures import REFUSES, Closure
from kreassign.model.cluster import named_brokers
from kreassign.model.disks import HELD, sum_of_disks
from kreassign.model.load import LOCAL_SPARK, SPARK_LOG, SparkOptions
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.plan_facts import PlanOrigin
from kreassign.model.replica_columns import ReplicaColumns
from kreassign.model.replication_factor import CONSENT, FactorChanges, factor_changes
from kreassign.model.text import format_amount, some_of
from kreassign.model.throttle import NO_THROTTLE
from kreassign.operations.plan_inputs import Inputs, limited
from kreassign.operations.plan_tasks import FactorConsent, Rebalance, Repair, Task, WhatIf, described
from kreassign.planner import BrokerFacts, Budget, Problem, evaluate, solve
from kreassign.planner.check.cost import bytes_bound
from kreassign.planner.goals import DISK
from kreassign.planner.problem.build import problem_from
from kreassign.planner.problem.problem import Assignment
from kreassign.planner.results import Origin, Outcome, outcome_of
from kreassign.planner.search.search import unwatched
from kreassign.planner.search.subproblems import DEFAULT_SEED, Answer, attempt, solve_in_subproblems
from kreassign.planner.tasks import fit_in, leaders_only, plan_around, replace_lost
from kreassign.planner.tasks.what_if import ANY_RATE, Choice, RightSize, what_if
from kreassign.planner.tasks.what_if import brokers_needed as right_size
from kreassign.planner.tasks.what_if import pareto as pareto_choices

NO_BUDGET = Budget()
SHOWN_UNFINISHED = 20
MADE_WITHOUT = "the plan was made without it; `kreassign run` asks the cluster before it sends anything"


@dataclass(frozen=True, slots=True)
class SearchPlace:
    """Place where plans are searched: in this process or on the executors of Spark, as a whole or in `parts`.

    `seed` determines how the problem is split. `spark_options` and `log_file` are Spark's, and unused without
    `on_spark`.
    """

    on_spark: bool = False
    parts: int = 1
    seed: int = DEFAULT_SEED
    spark_options: SparkOptions = LOCAL_SPARK
    log_file: Path = Path(SPARK_LOG)

    def solve(self, problem: Problem, watch: Callable[[str], None] = unwatched) -> Assignment:
        """Solve one problem. Raises Infeasible, and DataError when Spark fails."""
        return solve_in_subproblems(problem, self.parts, self.seed, self.solve_all, watch).assignment

    def solve_all(self, problems: Sequence[Problem]) -> list[Answer]:
        """Solve several problems, each as a whole; an infeasible one does not affect the others."""
        if not self.on_spark:
            return [attempt(problem) for problem in problems]
        with requires("planning on Spark", "PySpark", "spark"):
            from kreassign.pipeline.spark_session import map_on_executors, spark_session

        with spark_session(self.log_file, self.spark_options, name="kreassign plan") as spark:
            return map_on_executors(spark, attempt, problems)


LOCAL = SearchPlace()


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """Requirements of a plan, whatever the task: at most this budget, and only what is done in `fit_in_s` seconds.

    `rate_bytes_per_s` is the rate of each broker per direction: the time is predicted with it, and `fit_in_s` needs it.
    With `require_load` no plan may rest on doubtful or unknown loads, or on any that were measured more than
    `max_load_age_s` ago (None: whenever). `allow_factor_change` is the operator's consent to a factor below
    min.insync.replicas, and to a lower one in lists from elsewhere.
    """

    budget: Budget = NO_BUDGET
    fit_in_s: float | None = None
    rate_bytes_per_s: int | None = None
    search: SearchPlace = LOCAL
    require_load: bool = False
    max_load_age_s: float | None = None
    allow_factor_change: bool = False

    def check_loads(self, inputs: Inputs) -> None:
        """Raise InputError for the first doubtful loads, if the request forbids them."""
        if self.require_load:
            inputs.loads.require(SYSTEM_CLOCK.now_ms(), self.max_load_age_s)

    def budgeted(self, problem: Problem) -> Problem:
        """Add the budget to the problem. Raises InputError for a time without a rate."""
        problem = replace(problem, budget=self.budget)
        if self.fit_in_s is None:
            return problem
        if self.rate_bytes_per_s is None:
            raise InputError("--fit-in needs --rate: what each broker may send and receive")
        return fit_in(problem, self.fit_in_s, self.rate_bytes_per_s)


PLAIN = PlanRequest()


@dataclass(frozen=True, slots=True, eq=False)
class Alternatives:
    """Several plans of which none beats another in bytes, balance, time and changes of leaders."""

    choices: tuple[Choice, ...]
    origin: Origin

    def outcome(self, choice: Choice) -> Outcome:
        """Outcome of one of the plans, with its facts."""
        origin = replace(self.origin, task=f"rebalance, {choice.asked_for}")
        return outcome_of(choice.problem, choice.assignment, origin)


@dataclass(frozen=True, slots=True, eq=False)
class ClusterPlan:
    """The plan for one cluster of many, or the reason why there is none."""

    cluster_id: str
    outcome: Outcome | None
    refusal: str | None = None


def make_plan(
    inputs: Inputs, task: Task, request: PlanRequest = PLAIN, watch: Callable[[str], None] = unwatched
) -> Outcome:
    """Search a plan within the budget, or evaluate the task's own. Raises Infeasible, IllegalPlan, InputError.

    `watch` gets the progress, which may take a while on a large cluster.
    """
    request.check_loads(inputs)
    posed = task.pose(inputs)
    if posed.assignment is not None:
        problem, unfit = plan_around(posed.problem, posed.assignment)
        judged = replace(problem, budget=request.budgeted(problem).budget)
        left = (*posed.left, *unfit)
        met = outcome_of(judged, posed.assignment, _origin(inputs, _name(task, inputs), request, left))
        return _with_factors(met, inputs, posed.consent, request)
    problem, left = plan_around(posed.problem, repairs_dead=posed.repairs_dead, lost_on=posed.lost_on)
    problem, left = request.budgeted(problem), (*posed.left, *left)
    try:
        found = request.search.solve(problem, watch)
        watch("checking the plan, and finding the reason of each change")
        outcome = outcome_of(problem, found, _origin(inputs, _name(task, inputs), request, left))
    except IllegalPlan as error:
        raise InvariantBroken(f"the search made an illegal plan: {error}") from error
    left_undone = outcome.evaluation.unfinished
    if isinstance(task, Repair) and left_undone and not outcome.plan.replicas and problem.budget == NO_BUDGET:
        raise Infeasible("nothing can be repaired:\n  - " + some_of(left_undone, SHOWN_UNFINISHED, by="\n  -"))
    return _with_factors(outcome, inputs, posed.consent, request)


def _with_factors(outcome: Outcome, inputs: Inputs, consent: FactorConsent, request: PlanRequest) -> Outcome:
    """The outcome with what it changes of replication factors. Raises IllegalPlan where consent is missing."""
    changes = factor_changes(outcome.plan.replicas, outcome.current.replicas)
    topics = {one.topic_partition.topic for one in changes}
    unread = dict.fromkeys(topics - inputs.min_isr.keys(), MADE_WITHOUT)
    found = FactorChanges(changes, inputs.min_isr, unread)
    sentences = found.sentences
    if found.falls and inputs.problem.partitions.in_sync is None:
        sentences += (f"which replicas are in sync is not known: {MADE_WITHOUT}",)
    is_refused = found.is_undercut or (found.falls and consent is FactorConsent.FALL)
    if is_refused and consent is not FactorConsent.NONE and not request.allow_factor_change:
        raise IllegalPlan((*sentences, CONSENT))
    return replace(outcome, facts=replace(outcome.facts, factors=sentences))


def make_plans(clusters: Sequence[Inputs], request: PlanRequest = PLAIN) -> list[ClusterPlan]:
    """Rebalance many clusters at once, each as a whole; doubtful loads exclude only their own cluster."""
    task = Rebalance()
    refusals = [_refusal(inputs, request) for inputs in clusters]
    asked = [inputs for inputs, refusal in zip(clusters, refusals, strict=True) if refusal is None]
    posed = [plan_around(task.pose(inputs).problem) for inputs in asked]
    problems = [request.budgeted(problem) for problem, _ in posed]
    answers = request.search.solve_all(problems)
    replies = (
        ClusterPlan(inputs.cluster_id, None, answer)
        if isinstance(answer, str)
        else ClusterPlan(inputs.cluster_id, outcome_of(problem, answer, _origin(inputs, task.name, request, left)))
        for inputs, problem, (_, left), answer in zip(asked, problems, posed, answers, strict=True)
    )
    return [
        next(replies) if refusal is None else ClusterPlan(inputs.cluster_id, None, refusal)
        for inputs, refusal in zip(clusters, refusals, strict=True)
    ]


def pareto(inputs: Inputs, request: PlanRequest = PLAIN) -> Alternatives:
    """Return several plans to choose from. Raises Infeasible, InputError."""
    request.check_loads(inputs)
    problem, left = plan_around(Rebalance().pose(inputs).problem)
    problem = request.budgeted(problem)
    choices = pareto_choices(problem, request.rate_bytes_per_s or ANY_RATE)
    return Alternatives(choices, _origin(inputs, "rebalance", request, left))


def brokers_needed(inputs: Inputs, circumstances: WhatIf, at_most: float, request: PlanRequest = PLAIN) -> RightSize:
    """Return how many brokers like these the load needs, each using at most this fraction of its limits.

    Of the request only `require_load` counts. Raises InputError.
    """
    request.check_loads(inputs)
    return right_size(what_if(inputs.problem, circumstances.circumstances(inputs)), at_most)


def _refusal(inputs: Inputs, request: PlanRequest) -> str | None:
    try:
        request.check_loads(inputs)
    except InputError as refusal:
        return str(refusal)
    return None


def _name(task: Task, inputs: Inputs) -> str:
    return f"{task.name} {described(task.circumstances(inputs))}" if isinstance(task, WhatIf) else task.name


def _origin(inputs: Inputs, task: str, request: PlanRequest, left: tuple[str, ...] = ()) -> Origin:
    """Origin of a plan for its facts file, and what it had to leave alone."""
    return Origin(
        task,
        inputs.cluster_id,
        inputs.snapshot_id,
        request.rate_bytes_per_s,
        (*left, *inputs.unmatched),
        inputs.topic_ids,
        inputs.loads,
        inputs.rack_prices,
        inputs.limits,
        inputs.unknown_goals if len(inputs.problem.partitions) else (),
    )


# Whether leader changes alone bring all brokers into their bands, and how many bytes that saves a rebalance.


@dataclass(frozen=True, slots=True)
class LeadersAlone:
    """Leader changes alone meet all bands: by this plan, or if it copies something, by one without its `copied_bytes`.

    `least_bytes` is what any plan copies that meets them too while remaining replicas keep their roles.
    """

    copied_bytes: int
    least_bytes: int

    @property
    def saved_bytes(self) -> int:
        """Bytes that leader changes alone do not copy: those of the plan, else at least this many."""
        return self.copied_bytes or self.least_bytes

    def __str__(self) -> str:
        saved = format_amount(self.saved_bytes, "B")
        if self.copied_bytes:
            return f"leaders alone meet all bands too: `kreassign plan leaders` saves the {saved} that are copied here"
        return f"leaders alone meet all bands, which saves copies of at least {saved}"


def leaders_alone(outcome: Outcome) -> LeadersAlone | None:
    """Leader changes alone for a rebalance; None unless they meet all its bands.

    If the plan copies something, they are searched again, but only if leaders affect all missed bands.
    Goals that are no bands, such as failover, and broker sets may want copies all the same: then the result is None.
    """
    problem, found = outcome.problem, outcome.evaluation
    rules, missed = problem.rules, {one.goal for one in found.misses(before=True)}
    if rules.failover is not None or rules.topic_spread is not None or not missed or found.misses():
        return None
    if rules.repair_sets:
        return None
    if found.moves and not _suffice(problem, missed):
        return None
    if found.log_dir_moves:
        return None
    return LeadersAlone(found.moved_bytes, bytes_bound(problem, leaders_stay=True).total)


def _suffice(problem: Problem, missed: set[str]) -> bool:
    """True if other leaders alone meet the bands missed now, and miss no others."""
    if not missed <= {band.goal.name for band in problem.failover_bands}:
        return False
    posed = leaders_only(problem)
    try:
        return not evaluate(posed, solve(posed).assignment).misses()
    except Infeasible:  # some partitions have to leave a broker that cannot be named
        return False


# Other destinations for moves of a run whose own are lost, from the planner, checked like a plan.
#
# The run has no snapshot, so the cluster is read. Brokers that the plan empties get nothing, nor do those that the run
# is to avoid, and no replica goes back to a broker that the plan takes it from: the purpose of the plan is unknown,
# except for that. Nor does a broker get replicas if others have set its throttle since the run began: it is theirs.

GONE = "it is not there any more"


def replanned(client: AdminClient, question: ReplanMoves) -> Replanned:
    """New targets for moves whose destinations are lost, or the reasons why there are none. Raises ClusterError."""
    try:
        targets, refused = _planned(client, question)
    except (IllegalPlan, InputError) as error:
        return Replanned(refused=tuple(Refusal(move.topic_partition, str(error)) for move in question.moves))
    refused |= _objections(client, question, targets)
    return Replanned(
        tuple(
            NewTarget(move.topic_partition, move.target, targets[move.topic_partition])
            for move in question.moves
            if move.topic_partition not in refused
        ),
        tuple(Refusal(name, reason) for name, reason in refused.items()),
    )


# --- planning ------------------------------------------------------------------------------------------------------


def _planned(
    client: AdminClient, question: ReplanMoves
) -> tuple[dict[TopicPartition, tuple[int, ...]], dict[TopicPartition, str]]:
    """New replica lists of the moves, and the reasons for those without."""
    cluster = cluster_of_two(client)
    theirs = _of_others(client, question, cluster)
    problem = _problem_of_lost(client, question, cluster, theirs)
    moves = {move.topic_partition: move for move in question.moves}
    leaving = {name: set(question.lost).intersection(move.adding) for name, move in moves.items()}
    stuck = _naming_refused(problem, moves.values(), question.lost)
    barred = {name: (*move.original, *question.lost) for name, move in moves.items()}
    targets, refused = replace_lost(problem, {name: one for name, one in leaving.items() if name not in stuck}, barred)
    refused |= stuck
    left_out = [named_brokers(question.avoid, "were left out, as in the plan")] if question.avoid else []
    if theirs:
        left = named_brokers(sorted(theirs), "were left out, whose throttle is not this run's")
        left_out.append(f"{left}: {'; '.join(theirs.values())}")
    refused = {name: "; ".join((reason, *left_out)) for name, reason in refused.items()}
    for name in moves.keys() - targets.keys() - refused.keys():
        refused[name] = "a copy that is there already was to go to another log directory" if not leaving[name] else GONE
    return targets, refused


def _naming_refused(problem: Problem, moves: Iterable[PlannedMove], lost: Collection[int]) -> dict[TopicPartition, str]:
    """Moves that keep a broker which Kafka refuses in any changed list, with the reason."""
    brokers = problem.brokers
    closures = {
        int(broker): closure
        for broker, value in zip(brokers.ids, brokers.closures, strict=True)
        if (closure := Closure(int(value))).is_binding
    }
    return {
        move.topic_partition: f"broker {broker} is to keep a replica, but {closures[broker].why}, and {REFUSES}"
        for move in moves
        for broker in move.target
        if broker in closures and broker not in lost
    }


def _of_others(client: AdminClient, question: ReplanMoves, cluster: Cluster) -> dict[int, str]:
    """Brokers with a throttle that this run must not change, or an unreadable one, and its value or the reason."""
    keys = throttle_keys((), cluster.broker_ids) if question.rates.is_limited else ()
    read = read_configs(client, (key for key in keys if key not in question.known_settings))
    found = {int(resource.name): f"{resource} {problem}" for resource, problem in read.unread.items()}
    return found | {int(one.key.resource.name): str(one) for one in read.values if one.value is not None}


def _problem_of_lost(client: AdminClient, question: ReplanMoves, cluster: Cluster, barred: Collection[int]) -> Problem:
    """The cluster as it will be after the run, with the lost brokers still in its lists."""
    concerned = {move.topic_partition.topic for move in question.moves}
    topics = every_topic_of_two(client, concerned)
    for topic in sorted(concerned & topics.unknown.keys()):
        raise topics.unknown[topic]
    found = partitions_of(topics.known)
    answer = read_log_dirs(client, cluster.broker_ids)
    # A broker that does not report its directories is no destination: what fits there is not known.
    log_dirs = answer.ok
    closures = closures_of(client, {*cluster.broker_ids, *answer.failed}, log_dirs, ids_in_maintenance(client))
    wanted = {move.topic_partition: move.target for move in question.plan}
    known = {move.topic_partition: move.size_bytes for move in question.plan}
    sizes = Counter(known)
    for replica, place in replica_locations(log_dirs).items():
        name = TopicPartition(replica.topic, replica.partition)
        sizes[name] = max(sizes[name], place.current_bytes)
    lists = {name: wanted.get(name, partition.replicas) for name, partition in found.items()}
    columns = ReplicaColumns.of_lists(lists, sizes)
    live = (
        replace(host, closure=closures.get(host.id, Closure.NONE))
        for host in _live(cluster, log_dirs, question, barred)
    )
    return problem_from([*limited([*live]), *_absent(cluster, question, found)], columns)


def _live(
    cluster: Cluster, log_dirs: Mapping[int, tuple[LogDir, ...]], question: ReplanMoves, barred: Collection[int]
) -> Iterator[BrokerFacts]:
    closed = {*barred, *question.avoid, *_emptied(question.plan)}
    for broker in cluster.brokers:
        room = _room(log_dirs.get(broker.id, ()), question.disk_reserve)
        limits = {} if room is None else {DISK.name: room}
        yield BrokerFacts(broker.id, broker.rack, limits, may_receive=broker.id not in closed)


def _absent(
    cluster: Cluster, question: ReplanMoves, partitions: Mapping[TopicPartition, Partition]
) -> Iterator[BrokerFacts]:
    """Brokers that are down. Their racks are unknown, so they add none."""
    named = {broker for one in partitions.values() for broker in one.replicas}
    named |= {broker for move in question.plan for broker in move.target}
    for absent in sorted(named.difference(cluster.broker_ids)):
        yield BrokerFacts(absent, may_receive=False, must_empty=True)


def _room(dirs: Iterable[LogDir], reserve: float) -> float | None:
    """Bytes that a broker may hold; None if its file systems are unknown (before Kafka 3.3)."""
    total = sum_of_disks((one for one in dirs if one.error is None), HELD)[0]
    return None if total is None else total * (1 - reserve)


def _emptied(plan: Iterable[PlannedMove]) -> frozenset[int]:
    """Brokers that the plan takes from and gives nothing to: drained, or too full."""
    moves = tuple(plan)
    taken = {broker for move in moves for broker in move.reassignment.removing}
    return frozenset(taken.difference(broker for move in moves for broker in move.adding))


# --- checks --------------------------------------------------------------------------------------------------------


def _objections(
    client: AdminClient, question: ReplanMoves, targets: Mapping[TopicPartition, tuple[int, ...]]
) -> dict[TopicPartition, str]:
    """First violation of each new target, by the checks of a plan before a run."""
    assignments = [PartitionAssignment(name, target) for name, target in targets.items()]
    if not assignments:
        return {}
    view = read_cluster(client, Plan(tuple(assignments)), {})
    # The run cancels its own moves in progress before anything else is sent.
    ongoing = {name: one for name, one in view.ongoing.items() if name not in question.in_flight}
    view = replace(view, ongoing=ongoing)
    origin = PlanOrigin(view.cluster.cluster_id, topic_ids_of_moves(question.moves))
    found = {
        one.topic_partition: wrong[0].removeprefix(f"{one.topic_partition}: ")
        for one in assignments
        if (wrong := violations(Plan((one,)), view, NO_THROTTLE, origin))
    }
    return {**_of_permissions(client, question, targets), **_of_rates(question, targets), **found}


def _of_permissions(
    client: AdminClient, question: ReplanMoves, targets: Mapping[TopicPartition, tuple[int, ...]]
) -> dict[TopicPartition, str]:
    topics: set[str] = set()
    brokers: set[int] = set()
    if question.rates.is_limited:
        topics = {name.topic for name in targets}
        chosen = {broker for target in targets.values() for broker in target}
        brokers = chosen & live_with(client, chosen)
    lacking = permissions.lacking(client, sorted(topics), sorted(brokers))
    return dict.fromkeys(targets, "; ".join(lacking)) if lacking else {}


def _of_rates(question: ReplanMoves, targets: Mapping[TopicPartition, tuple[int, ...]]) -> dict[TopicPartition, str]:
    """Copies that would never end at their new brokers under the throttle."""
    moves = [
        replace(move, target=targets[move.topic_partition])
        for move in question.moves
        if move.topic_partition in targets
    ]
    names = {str(name): name for name in targets}
    hopeless = (one for one in starved(moves, question.writes, question.rates) if one.is_certain)
    return {names[one.subject]: str(one) for one in hopeless if one.subject in names}
