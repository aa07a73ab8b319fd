"""Take a run to its end, and roll it back where a guard demanded that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kreassign.admin import AdminClient
from kreassign.clock import SYSTEM_CLOCK, Clock
from kreassign.errors import KreassignError
from kreassign.executor.client_guard import ClientGuard
from kreassign.executor.events import Request, RunStarted
from kreassign.model.authorization import error_text
from kreassign.model.plan_facts import PlanFacts
from kreassign.model.run import RunHistory
from kreassign.operations.rollback import Rollback, RollbackRequest, demand_sentence, is_demanded, roll_back
from kreassign.operations.run import RunContext, RunRequest, prepare_run, resume_run, start_run

Undo = Callable[[RunHistory], Rollback]
"""Makes the rollback of a run that a guard demanded."""


@dataclass(frozen=True, slots=True)
class WholeRun:
    """A run that has ended, or was left as it is, and the rollback that a guard demanded, or why it was not made.

    How the rollback went is the first of the problems of the `run`.
    """

    run: RunHistory
    rollback: Rollback | None = None
    failure: KreassignError | None = None


def execute_whole(
    client: AdminClient, request: RunRequest, context: RunContext, *, undo: Undo | None = None
) -> WholeRun:
    """Check, measure and execute. Raises IllegalPlan, InputError, ClusterError."""
    started = prepare_run(client, request, context)
    return start_whole(client, started, context, request.plan.facts, undo=undo)


def start_whole(
    client: AdminClient,
    started: RunStarted,
    context: RunContext,
    facts: PlanFacts | None = None,
    *,
    undo: Undo | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> WholeRun:
    """Execute a prepared run. Raises what `start_run` raises."""
    found = start_run(client, started, context, facts, clock)
    return undone_if_demanded(found, undo or _plainly(client, context, clock))


def resume_whole(
    client: AdminClient,
    path: Path,
    context: RunContext,
    *,
    replan: bool = False,
    give_up_after_s: float | None = None,
    clients: ClientGuard | None = None,
    undo: Undo | None = None,
    clock: Clock = SYSTEM_CLOCK,
    more: Sequence[Callable[[int], Request]] = (),
) -> WholeRun:
    """Resume the run of this journal. Raises what `resume_run` raises."""
    found = resume_run(
        client,
        path,
        context,
        replan=replan,
        give_up_after_s=give_up_after_s,
        clients=clients,
        clock=clock,
        more=more,
    )
    return undone_if_demanded(found, undo or _plainly(client, context, clock))


def undone_if_demanded(found: RunHistory, undo: Undo) -> WholeRun:
    """The run, rolled back if it has ended and a guard demanded that; raises nothing, for the run itself is over."""
    if not is_demanded(found):
        return WholeRun(found)
    try:
        undone = undo(found)
    except KreassignError as error:
        return WholeRun(_with_problem(found, demand_sentence(found.run_id, error_text(error))), failure=error)
    by = undone.run
    made = "nothing was left to roll back" if by is None else f"run {by.run_id}, which is {by.state}"
    return WholeRun(_with_problem(found, f"a guard demanded its rollback: {made}"), undone)


def _with_problem(found: RunHistory, sentence: str) -> RunHistory:
    return replace(found, problems=(sentence, *found.problems))


def _plainly(client: AdminClient, context: RunContext, clock: Clock) -> Undo:
    return lambda found: roll_back(client, RollbackRequest(found.run_id), context, clock)
