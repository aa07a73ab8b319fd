"""What the API and the page ask: functions of `kreassign.operations`, with what this page serves. Blocking calls."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from kreassign.clock import Clock, SystemClock
from kreassign.errors import InputError
from kreassign.operations import approvals, steer
from kreassign.operations.live_runs import LiveRun, RunFollower
from kreassign.operations.monitoring import metrics_of_journals
from kreassign.operations.plan_list import PlanDirectory, summary_of
from kreassign.operations.report import plan_page, report_page
from kreassign.operations.run_list import RunList
from kreassign.web.problems import HttpError, not_found
from kreassign.web.records import (
    Accepted,
    Approved,
    ApproveRequest,
    CancelRequest,
    Clusters,
    Moves,
    Nothing,
    PaceRequest,
    Plan,
    Plans,
    Run,
    Runs,
    ThrottleRequest,
    clusters_of,
    move_of,
    pace_change_of,
    plan_of,
    run_of,
)
from kreassign.web.settings import WebSettings

MOST_RUNS = 500
MOST_MOVES = 1_000
SYSTEM_CLOCK = SystemClock()


def _unheard(_: str) -> None:
    """What a report cannot show it says itself."""


@dataclass(slots=True)
class Served:
    """What is served."""

    settings: WebSettings
    clock: Clock = SYSTEM_CLOCK
    _runs: RunList = field(init=False)

    def __post_init__(self) -> None:
        named = self.settings.clusters
        folders = (self.settings.state_dir, *(one.state_dir for one in named if one.state_dir is not None))
        self._runs = RunList(folders, named)

    # --- runs ---

    def clusters(self) -> Clusters:
        """All clusters with runs."""
        runs = self._runs.newest(MOST_RUNS)
        return clusters_of(runs, self.settings.clusters, self._runs.names)

    def runs(self, limit: int, cluster_id: str | None) -> Runs:
        """The newest runs."""
        return Runs(self._runs.newest(limit, cluster_id))

    def run(self, run_id: str) -> Run:
        """One run, with what may be seen of it."""
        return run_of(self.live(run_id))

    def live(self, run_id: str) -> LiveRun:
        """One run as it is now."""
        return self.follower(run_id).look()

    def follower(self, run_id: str) -> RunFollower:
        """What follows a run."""
        return RunFollower(self._journal(run_id))

    def moves(self, run_id: str, offset: int, limit: int) -> Moves:
        """Moves of a run, some at a time."""
        moves = self.live(run_id).progress.moves
        return Moves(len(moves), offset, tuple(map(move_of, moves[offset : offset + limit])))

    def report(self, run_id: str) -> str:
        """The report of a run, as a page of its own."""
        return report_page(self._journal(run_id), self.settings.data, _unheard)

    def metrics(self) -> bytes:
        """Metrics of the runs that are executed, and of the latest run of each cluster."""
        newest = self._runs.newest(MOST_RUNS)
        latest = {run.cluster_id: run.run_id for run in reversed(newest)}
        shown = [run for run in newest if run.is_active or latest[run.cluster_id] == run.run_id]
        return metrics_of_journals([self._journal(run.run_id) for run in shown if run.problem is None])

    def pause(self, run_id: str, _: Nothing) -> Accepted:
        """Pause a run."""
        return _accepted(run_id, steer.pause(self._journal(run_id)))

    def resume(self, run_id: str, _: Nothing) -> Accepted:
        """Let a paused run start moves again."""
        return _accepted(run_id, steer.release(self._journal(run_id)))

    def cancel(self, run_id: str, request: CancelRequest) -> Accepted:
        """Cancel a run."""
        return _accepted(run_id, steer.cancel(self._journal(run_id), is_now=not request.drain))

    def throttle(self, run_id: str, request: ThrottleRequest) -> Accepted:
        """Change the throttle of a run."""
        limit = request.bytes_per_s
        if limit is not None and limit <= 0:
            raise HttpError(422, "that cannot be done", f"with {limit} no move would ever end; give more, or null")
        return _accepted(run_id, steer.set_throttle(self._journal(run_id), limit, request.brokers))

    def pace(self, run_id: str, request: PaceRequest) -> Accepted:
        """Change the order and the limits of a run."""
        try:
            change = pace_change_of(request)
        except InputError as error:
            raise HttpError(422, "that cannot be done", str(error)) from error
        return _accepted(run_id, steer.change_pace(self._journal(run_id), change))

    def _journal(self, run_id: str) -> Path:
        with not_found():
            return self._runs.journal(run_id)

    # --- plans ---

    def plans(self) -> Plans:
        """The plans of the directory; none without one."""
        return Plans(() if self.settings.plans is None else PlanDirectory(self.settings.plans).summaries())

    def plan(self, name: str) -> Plan:
        """One plan."""
        directory = self._directory(name)
        file = directory.read(name)
        return plan_of(summary_of(name, file, directory.approval(name)), file)

    def plan_report(self, name: str) -> str:
        """The report of a plan, as a page of its own."""
        return plan_page(self._directory(name).read(name), name)

    def approve(self, name: str, request: ApproveRequest) -> Approved:
        """Approve a plan."""
        path = self._directory(name).path(name)
        found = approvals.approve(path, request.plan_id, request.approved_by, request.note, self.clock.now_ms())
        return Approved(name, found)

    def revoke(self, name: str, _: Nothing) -> Approved:
        """Take an approval back."""
        approvals.revoke(self._directory(name).path(name))
        return Approved(name, None)

    def _directory(self, name: str) -> PlanDirectory:
        if self.settings.plans is None:
            raise HttpError(404, "not found", f"there is no plan {name}: the page was started without --plans")
        found = PlanDirectory(self.settings.plans)
        with not_found():
            found.path(name)
        return found


def _accepted(run_id: str, request: object) -> Accepted:
    return Accepted(run_id, type(request).__name__)
