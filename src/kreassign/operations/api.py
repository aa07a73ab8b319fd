"""The use cases with plain arguments, as `import kreassign` offers them to programs.

A cluster is an open `AdminClient`, from `connect`. Where the journals of runs are kept is `state_dir`, by default the
same directory as the command line's: a run that a program executes can be watched and steered from a terminal.
Warnings are Python's, of class `KreassignWarning`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path

from kreassign.admin import AdminClient
from kreassign.clock import SYSTEM_CLOCK
from kreassign.errors import InputError
from kreassign.executor.client_guard import ClientGuard
from kreassign.executor.guards import GuardName, Reaction
from kreassign.executor.history.findings import Issue
from kreassign.executor.throttle_ledger import FoundThrottles
from kreassign.model.load import LAST_LOAD, MEASURED_S, AsOf, SparkOptions
from kreassign.model.pace import NO_LIMITS, Pace, PaceChange
from kreassign.model.plan import Plan
from kreassign.model.run import RunHistory
from kreassign.model.snapshot import ClusterSnapshot
from kreassign.model.text import parse_amount
from kreassign.model.throttle import NO_THROTTLE, AdaptiveThrottle, ThrottleRates
from kreassign.operations import plan as planning
from kreassign.operations import plan_tasks, report, run_journals, steering
from kreassign.operations.doctor import diagnose_cluster
from kreassign.operations.plan import PLAIN, Alternatives, PlanRequest
from kreassign.operations.plan_files import PlanFile, read_plan_file
from kreassign.operations.plan_inputs import Inputs, inputs_of_columns
from kreassign.operations.plan_tasks import ExpectedRates, NewPlacement, Rebalance, Task, WhatIf
from kreassign.operations.report import Rehearsal
from kreassign.operations.rollback import NO_CHANGE, Rollback, RollbackRequest, roll_back
from kreassign.operations.run import POLL_INTERVAL_S, RunContext, RunRequest, Show
from kreassign.operations.run_journals import Forgotten, InForce, default_state_dir, find_journal, named_journal
from kreassign.operations.snapshot import observe, whole_snapshot
from kreassign.operations.snapshot_files import read_snapshot_columns
from kreassign.operations.twin import TYPICAL, Speeds, faults_of
from kreassign.operations.verify import Verification, verify_plan, verify_run
from kreassign.operations.whole_runs import execute_whole, resume_whole
from kreassign.pipeline.tables.schemas import Row
from kreassign.pipeline.tables.snapshot_columns import columns_of
from kreassign.planner.problem.policy import PlanPolicy
from kreassign.planner.results import Outcome
from kreassign.planner.tasks.what_if import RightSize

Throttle = ThrottleRates | int | str | None
"""A limit for every broker, in bytes per second or as `20MB/s`; `ThrottleRates` for more; None for no limit."""

SomePlan = Outcome | PlanFile | Plan | Path
"""What `plan` returned, a plan that was read or made otherwise, or the file of one."""

Snapshot = ClusterSnapshot | Path | str
"""A snapshot, the file of one, or with `as_of` a directory of tables in which `load` has computed the load of one
cluster, or its address as text."""

AS_IT_IS = WhatIf()
NO_GUARDS: Mapping[GuardName, Reaction] = {}
ANY_POLICY = PlanPolicy()


def snapshot(cluster: AdminClient, *, measure_for_s: float = MEASURED_S) -> ClusterSnapshot:
    """Read a cluster as it is now, with write rates measured for so many seconds. Raises ClusterError."""
    clock = SYSTEM_CLOCK
    return whole_snapshot(cluster, observe(cluster, clock.now_ms()), clock, measure_for_s)


def plan(
    snapshot: Snapshot,
    task: Task | None = None,
    *,
    policy: PlanPolicy = ANY_POLICY,
    request: PlanRequest = PLAIN,
    loads: Path | str | None = None,
    as_of: AsOf | None = None,
) -> Outcome:
    """A plan for a task, by default to rebalance: its `plan`, the `facts` about it, and its `evaluation`.

    The placement is that of the snapshot, and so are the loads; with `loads`, a directory of tables, they are those of
    its last load. For a directory of tables in place of a snapshot `as_of` selects the load whose placement and loads
    are used: the last that had begun by then (ms since the epoch), that of a number (`LoadNumber`), or `"last"`.

    `facts.loads` is what its loads rest on, and which are doubtful; with `require_load` in the request that is an
    InputError. Raises Infeasible when no plan keeps the rules, InputError, DataError for tables that are missing.
    """
    return planning.make_plan(_inputs(snapshot, policy, loads, as_of), task or Rebalance(), request)


def pareto(
    snapshot: Snapshot,
    *,
    policy: PlanPolicy = ANY_POLICY,
    request: PlanRequest = PLAIN,
    loads: Path | str | None = None,
    as_of: AsOf | None = None,
) -> Alternatives:
    """Several plans to choose from, of which none beats another. Raises as `plan` does."""
    return planning.pareto(_inputs(snapshot, policy, loads, as_of), request)


def brokers_needed(
    snapshot: Snapshot,
    circumstances: WhatIf = AS_IT_IS,
    *,
    at_most: float = 0.7,
    policy: PlanPolicy = ANY_POLICY,
    request: PlanRequest = PLAIN,
    loads: Path | str | None = None,
    as_of: AsOf | None = None,
) -> RightSize:
    """Return how many brokers like these the load needs, each using at most this fraction of its limits.

    Of the request only `require_load` counts. Raises InputError for brokers without limits, DataError.
    """
    return planning.brokers_needed(_inputs(snapshot, policy, loads, as_of), circumstances, at_most, request)


def place_topic(
    snapshot: Snapshot,
    topic: str,
    partitions: int,
    replication_factor: int,
    *,
    expected: ExpectedRates | str | None = None,
    policy: PlanPolicy = ANY_POLICY,
    loads: Path | str | None = None,
    as_of: AsOf | None = None,
) -> NewPlacement:
    """Place the partitions of a new topic to level the cluster without copies; `new_topic` goes to `create_topics`.

    `expected` is what each will hold, or the name of a topic that it will be like. Raises InputError, Infeasible.
    """
    inputs = _inputs(snapshot, policy, loads, as_of)
    return plan_tasks.place_topic(inputs, policy, topic, partitions, replication_factor, expected)


def place_partitions(
    snapshot: Snapshot,
    topic: str,
    total: int,
    *,
    policy: PlanPolicy = ANY_POLICY,
    loads: Path | str | None = None,
    as_of: AsOf | None = None,
) -> NewPlacement:
    """Place more partitions of a topic; `new_partitions` goes to `create_partitions`. Raises InputError."""
    return plan_tasks.place_partitions(_inputs(snapshot, policy, loads, as_of), topic, total)


def plan_page(plan: Path | str) -> str:
    """The page of the plan in this file, whose facts file is beside it. Raises InputError without that."""
    return report.plan_page(read_plan_file(Path(plan)), Path(plan).name)


def rehearse(
    plan: SomePlan,
    snapshot: ClusterSnapshot,
    *,
    throttle: Throttle = None,
    guards: Mapping[GuardName, Reaction] = NO_GUARDS,
    pace: Pace = NO_LIMITS,
    speeds: Speeds = TYPICAL,
    faults: Sequence[str] = (),
    allow_factor_change: bool = False,
) -> Rehearsal:
    """Rehearse a run on a simulated cluster in virtual time: how long it takes, its peaks, what guards report.

    `faults` happen meanwhile, as for `kreassign rehearse --fault`. Raises IllegalPlan when the cluster in the snapshot
    is not what the plan needs, InputError for a fault that it cannot have. `allow_factor_change` is as in `run`.
    """
    request = RunRequest(_plan_file(plan), _rates(throttle), guards, pace, allow_factor_change=allow_factor_change)
    return report.rehearse(request, snapshot, speeds, faults=faults_of(faults))


def run(
    cluster: AdminClient,
    plan: SomePlan,
    *,
    throttle: Throttle = None,
    guards: Mapping[GuardName, Reaction] = NO_GUARDS,
    pace: Pace = NO_LIMITS,
    measure_for_s: float = MEASURED_S,
    found: FoundThrottles = FoundThrottles.REFUSE,
    replan: bool = False,
    give_up_after_s: float | None = None,
    allow_producer_outage: bool = False,
    allow_factor_change: bool = False,
    clients: ClientGuard | None = None,
    on_progress: Show | None = None,
    state_dir: Path | None = None,
    poll_s: float = POLL_INTERVAL_S,
    controllers: AdminClient | None = None,
) -> RunHistory:
    """Execute a plan and return when it is done, cancelled or failed; `on_progress` gets its progress meanwhile.

    Where a guard demands that, it is rolled back then, and the first of its `problems` says by which run, or why not.
    A KeyboardInterrupt leaves the run as it is; `resume` continues it. Raises IllegalPlan with everything that speaks
    against the plan, InputError when another run is active on the cluster, ClusterError. Throttles of others, and their
    moves, are refused by an InputError that names them, unless `found` says what to do about them. Moves to a broker
    that is down wait for it; after `give_up_after_s` they are given up, or with `replan` (then by default after a
    minute) get another destination. Moves that have producers with acks=all refused until they are over are started
    only with `allow_producer_outage`, and those that lower a replication factor, or leave it below
    min.insync.replicas, only with `allow_factor_change`. `clients` says how to ask what clients feel, so that the run
    is held and slowed while they suffer.
    """
    file, rates = _plan_file(plan), _rates(throttle)
    request = RunRequest(
        file,
        rates,
        guards,
        pace,
        measure_for_s=measure_for_s,
        found=found,
        replan=replan,
        allow_producer_outage=allow_producer_outage,
        allow_factor_change=allow_factor_change,
        give_up_after_s=give_up_after_s,
        clients=clients,
    )
    return execute_whole(cluster, request, _context(state_dir, poll_s, controllers, on_progress)).run


def resume(
    cluster: AdminClient,
    run_id: str,
    *,
    replan: bool = False,
    give_up_after_s: float | None = None,
    clients: ClientGuard | None = None,
    on_progress: Show | None = None,
    state_dir: Path | None = None,
    poll_s: float = POLL_INTERVAL_S,
    controllers: AdminClient | None = None,
) -> RunHistory:
    """Continue a run that no process executes any more, as it began, also to the rollback that a guard demands.

    From now on with `replan`, `give_up_after_s` and `clients` as in `run`, where they are given.

    Raises InputError, ClusterError.
    """
    context = _context(state_dir, poll_s, controllers, on_progress)
    path = find_journal(context.state_dir, run_id, _here(cluster))
    return resume_whole(cluster, path, context, replan=replan, give_up_after_s=give_up_after_s, clients=clients).run


def rollback(
    cluster: AdminClient,
    run_id: str,
    *,
    throttle: Throttle = None,
    guards: Mapping[GuardName, Reaction] = NO_GUARDS,
    pace: PaceChange = NO_CHANGE,
    is_stepwise: bool | None = None,
    clients: ClientGuard | None = None,
    on_progress: Show | None = None,
    state_dir: Path | None = None,
    poll_s: float = POLL_INTERVAL_S,
    controllers: AdminClient | None = None,
) -> Rollback:
    """Cancel a run if it goes on, and undo what it did; what is not given is as it was for the run.

    Raises InputError, IllegalPlan, ClusterError.
    """
    request = RollbackRequest(run_id, _rates(throttle), guards, pace, is_stepwise=is_stepwise, clients=clients)
    return roll_back(cluster, request, _context(state_dir, poll_s, controllers, on_progress))


def verify(
    cluster: AdminClient, subject: SomePlan | str, *, ignore_throttles: bool = False, state_dir: Path | None = None
) -> Verification:
    """Compare the cluster with a plan, or with the intended result of the run with this id. Raises ClusterError."""
    if isinstance(subject, str):
        journal = find_journal(state_dir or default_state_dir(), subject, _here(cluster))
        return verify_run(cluster, journal, ignore_throttles=ignore_throttles)
    return verify_plan(cluster, _plan_file(subject), ignore_throttles=ignore_throttles)


def doctor(cluster: AdminClient, *, state_dir: Path | None = None, measure_for_s: float = 0.0) -> tuple[Issue, ...]:
    """Find what is wrong with a cluster as far as reassignments go, and what to do. Raises ClusterError.

    How fast disks fill and whether copies get on is measured for so many seconds, or not told.
    """
    where = state_dir or default_state_dir()
    return diagnose_cluster(cluster, where, measure_for_s=measure_for_s).issues


def status(run_id: str, *, state_dir: Path | None = None) -> RunHistory:
    """Return the state of a run so far, from its journal. Raises InputError if there is none."""
    return run_journals.status(find_journal(state_dir or default_state_dir(), run_id))


def watch(run_id: str, *, state_dir: Path | None = None) -> Iterator[RunHistory]:
    """A run that another process executes, with its progress, until none does any more. Raises InputError."""
    return run_journals.watch(find_journal(state_dir or default_state_dir(), run_id))


def pause(run_id: str, *, state_dir: Path | None = None) -> None:
    """Pause a run that another process executes: it starts no new moves. Raises InputError, ExecutionError."""
    steering.pause(find_journal(state_dir or default_state_dir(), run_id))


def release(run_id: str, *, state_dir: Path | None = None) -> None:
    """Go on with a paused run: it starts moves again. Raises InputError, ExecutionError."""
    steering.release(find_journal(state_dir or default_state_dir(), run_id))


def cancel(run_id: str, *, is_now: bool = True, state_dir: Path | None = None) -> None:
    """End a run now, as Kafka cancels; without `is_now` when its moves in flight are done. Raises as `pause` does."""
    steering.cancel(find_journal(state_dir or default_state_dir(), run_id), is_now=is_now)


def set_throttle(
    run_id: str,
    throttle: int | str | AdaptiveThrottle | None,
    *,
    brokers: Sequence[int] = (),
    state_dir: Path | None = None,
) -> None:
    """Change the throttle of a run, of all brokers or of these. Raises as `pause` does."""
    auto = throttle if isinstance(throttle, AdaptiveThrottle) else None
    limit = None if isinstance(throttle, AdaptiveThrottle) else _rates(throttle).bytes_per_s
    steering.set_throttle(find_journal(state_dir or default_state_dir(), run_id), limit, brokers, auto)


def change_pace(run_id: str, change: PaceChange, *, state_dir: Path | None = None) -> None:
    """Change order, limits and hours of a run. Raises as `pause` does."""
    steering.change_pace(find_journal(state_dir or default_state_dir(), run_id), change)


def forget_brokers(run_id: str, brokers: Collection[int], *, state_dir: Path | None = None) -> Forgotten:
    """Let an interrupted run restore nothing any more on brokers that are lost for good; nothing is sent.

    Raises InputError when it has nothing to restore there, or a process executes it.
    """
    return run_journals.forget_brokers(named_journal(state_dir or default_state_dir(), run_id), brokers)


def forget_journal(run_id: str, *, state_dir: Path | None = None) -> Path:
    """Set a journal aside that cannot be read, so that new runs can begin; where it is now. Raises InputError."""
    return run_journals.forget_journal(named_journal(state_dir or default_state_dir(), run_id))[1]


def audit(
    run_ids: Sequence[str], data: Path | str, *, master: str | None = None, state_dir: Path | None = None
) -> list[Row]:
    """Compare by Spark what runs promised with what happened, from their journals and the snapshots in `data`.

    Each row has `findings`, in sentences. Raises InputError, DataError; KreassignError without PySpark.
    """
    where = state_dir or default_state_dir()
    return report.audit_runs([find_journal(where, run_id) for run_id in run_ids], data, SparkOptions(master))


def report_page(run_id: str, data: Path | str | None = None, *, state_dir: Path | None = None) -> str:
    """A page about a run, in HTML, with the snapshots in `data`, if any, before and after it. Raises InputError."""
    return report.report_page(find_journal(state_dir or default_state_dir(), run_id), data)


def _inputs(snapshot: Snapshot, policy: PlanPolicy, loads: Path | str | None, as_of: AsOf | None) -> Inputs:
    is_file = isinstance(snapshot, Path) and not snapshot.is_dir()
    if not (is_file or isinstance(snapshot, ClusterSnapshot)):
        return _inputs_of_tables(snapshot, policy, loads, as_of)
    if as_of is not None and loads is None:
        raise InputError("`as_of` selects a load of tables; name their directory too (`loads`)")
    name = (
        f"{snapshot.cluster_id}@{snapshot.taken_ms}" if isinstance(snapshot, ClusterSnapshot) else Path(snapshot).name
    )
    placed = columns_of(snapshot) if isinstance(snapshot, ClusterSnapshot) else read_snapshot_columns(Path(snapshot))
    if loads is None:
        return inputs_of_columns(placed, policy, name)
    from kreassign.operations.table_inputs import inputs_of_placement

    return inputs_of_placement(placed, name, loads, policy, as_of=LAST_LOAD if as_of is None else as_of)


def _inputs_of_tables(snapshot: Snapshot, policy: PlanPolicy, loads: Path | str | None, as_of: AsOf | None) -> Inputs:
    if as_of is None or loads is not None or isinstance(snapshot, ClusterSnapshot):
        raise InputError(
            f"{snapshot} holds tables: they have loads, and a placement of the past. Give the placement as it is, "
            "`snapshot(cluster)`, and the directory as `loads`; or say which load's placement to plan for, with "
            "`as_of='last'`"
        )
    from kreassign.operations.table_inputs import inputs_of_tables

    return inputs_of_tables(snapshot, None, policy, as_of=as_of)


def _plan_file(plan: SomePlan) -> PlanFile:
    match plan:
        case Outcome():
            return PlanFile(plan.plan, plan.facts.expected, plan.facts)
        case PlanFile():
            return plan
        case Plan():
            return PlanFile(plan)
        case _:
            return read_plan_file(plan)


def _here(cluster: AdminClient) -> InForce:
    return InForce(cluster.describe_cluster().cluster_id)


def _rates(throttle: Throttle) -> ThrottleRates:
    match throttle:
        case None:
            return NO_THROTTLE
        case ThrottleRates():
            return throttle
        case str():
            return ThrottleRates(parse_amount(throttle))
        case _:
            return ThrottleRates(throttle)


def _context(
    state_dir: Path | None, poll_s: float, controllers: AdminClient | None, on_progress: Show | None
) -> RunContext:
    return RunContext(state_dir or default_state_dir(), poll_s, controllers, lambda *_: nullcontext(on_progress))
