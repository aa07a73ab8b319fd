"""Answers for the API and the page: functions of `kreassign.operations` on served data, and streams of runs.

The functions are blocking calls.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from threading import Lock
from typing import NamedTuple

import anyio
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from kreassign.admin import AdminClient
from kreassign.autopilot.events import Event, Name
from kreassign.autopilot.memory import Memory
from kreassign.clock import SYSTEM_CLOCK, Clock
from kreassign.errors import Drifted, InputError
from kreassign.executor.events import RunStarted
from kreassign.model.documents import Json
from kreassign.model.run import RunHistory
from kreassign.model.text import counted
from kreassign.operations import plan_files, rollback, steering
from kreassign.operations.autopilot_journal import clusters_looked_after, decided, decisions_path, proposal_path
from kreassign.operations.doctor import diagnose_cluster
from kreassign.operations.monitoring import metrics_of_journals
from kreassign.operations.plan import make_plan
from kreassign.operations.plan_files import PlanDirectory, PlanFile, plan_summary, read_plan_file, write_plan
from kreassign.operations.plan_inputs import Inputs, inputs_of_cluster
from kreassign.operations.report import plan_page, report_page
from kreassign.operations.run import (
    RunContext,
    RunRequest,
    cancel_interrupted_run,
    new_run_id,
    prepare_as_seen,
    prepare_run,
    preview_run,
)
from kreassign.operations.run_journals import RunFollower, RunList, is_active
from kreassign.operations.skew import read_skew
from kreassign.operations.whole_runs import WholeRun, resume_whole, start_whole
from kreassign.planner import PlanPolicy
from kreassign.web import previews, records
from kreassign.web.runs_here import Execute, RunsHere, connected, context_of
from kreassign.web.settings import HttpError, Reach, User, WebSettings, not_found, random_name
from kreassign.web.tasks import TaskRequest, task_of

MOST_RUNS = 500
MOST_SEEN = 100
MOST_MOVES = 1_000
KEPT_S = 10.0
"""How long a reading of the cluster is shown again: however many people look, brokers are asked this often."""


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """Preview that somebody has seen of a plan or of a run: the run that would begin, or the rollback."""

    subject: str
    shown: tuple[RunRequest, RunStarted] | rollback.Rollback


class Pilot(NamedTuple):
    """A journal of an autopilot: its cluster, whether it decides only, and the state directory."""

    cluster_id: str
    is_dry: bool
    state_dir: Path


@dataclass(slots=True)
class Served:
    """The served data and its operations."""

    settings: WebSettings
    clock: Clock = SYSTEM_CLOCK
    _runs: RunList = field(init=False)
    runs_here: RunsHere = field(default_factory=RunsHere)
    _seen: dict[str, Seen] = field(default_factory=dict)
    _reading: Lock = field(default_factory=Lock)
    _state: records.ClusterState | None = None
    _old_s: float = 0.0

    def __post_init__(self) -> None:
        self._runs = RunList(self.settings.state_dirs, self.settings.clusters)

    # --- the cluster ---

    def cluster(self) -> records.ClusterState:
        """The cluster as it is now, or was a few seconds ago. Raises HttpError without one, ClusterError."""
        reach = self.reach()
        with self._reading:
            if self._state is None or self.clock.monotonic_s() > self._old_s:
                unread: list[str] = []
                with connected(reach) as client:
                    skew = read_skew(client, warn=unread.append, clock=self.clock)
                    where, *beside = self.settings.state_dirs
                    diagnosis = diagnose_cluster(client, where, clock=self.clock, beside=beside)
                self._state = records.cluster_of(skew, diagnosis, tuple(unread), reach.bootstrap_server)
                self._old_s = self.clock.monotonic_s() + KEPT_S
            return self._state

    def reach(self) -> Reach:
        """The cluster of the page. Raises HttpError if it has none."""
        if self.settings.reach is None:
            raise HttpError(404, "not found", "this page asks no cluster: it was started without --bootstrap-server")
        return self.settings.reach

    # --- runs ---

    def clusters(self) -> records.Clusters:
        """All clusters with runs, and the named ones."""
        runs = self._runs.newest(MOST_RUNS)
        return records.clusters_of(runs, self.settings.clusters, self._runs.names)

    def runs(self, limit: int, cluster_id: str | None) -> records.Runs:
        """Newest runs, at most `limit`, of one cluster or all."""
        return records.Runs(self._runs.newest(limit, cluster_id))

    def run(self, run_id: str) -> Json:
        """One run, in detail."""
        return records.run_document(self.live(run_id))

    def live(self, run_id: str) -> RunHistory:
        """Present state of one run."""
        return self.follower(run_id).look()

    def follower(self, run_id: str) -> RunFollower:
        """Reader that follows the journal of a run."""
        return RunFollower(self._journal(run_id))

    def moves(self, run_id: str, offset: int, limit: int) -> records.Moves:
        """`limit` moves of a run from `offset` on."""
        moves = self.live(run_id).copying
        return records.Moves(len(moves), offset, moves[offset : offset + limit])

    def report(self, run_id: str) -> str:
        """Report of a run, as an HTML page; it says itself what it cannot show."""
        return report_page(self._journal(run_id), self.settings.data, lambda _: None)

    def metrics(self) -> bytes:
        """Metrics of the active runs, and of the latest run of each cluster."""
        newest = self._runs.newest(MOST_RUNS)
        latest = {run.cluster_id: run.run_id for run in reversed(newest)}
        shown = [run for run in newest if run.is_active or latest[run.cluster_id] == run.run_id]
        return metrics_of_journals([self._journal(run.run_id) for run in shown if run.problem is None])

    def pause(self, run_id: str, user: User | None) -> records.Accepted:
        """Pause a run."""
        return _accepted(run_id, steering.pause(self._journal(run_id), by=None if user is None else user.name))

    def resume(self, run_id: str, user: User | None) -> records.Accepted:
        """Let a paused run start moves again; if no process executes it, this one does."""
        path = self._journal(run_id)
        if self.settings.reach is None or is_active(path):
            return _accepted(run_id, steering.release(path))
        steering.refuse_if_over(path, "resume")

        def execute(client: AdminClient, context: RunContext) -> None:
            _tell(resume_whole(client, path, context), context)

        return records.Accepted(self._begin(user, execute, path), "Resumed")

    def cancel(self, run_id: str, request: records.CancelRequest, user: User | None) -> records.Accepted:
        """Cancel a run; if no process executes it, this one does so."""
        path, is_now = self._journal(run_id), not request.drain
        if self.settings.reach is None or is_active(path):
            by = None if user is None else user.name
            return _accepted(run_id, steering.cancel(path, is_now=is_now, by=by))

        def execute(client: AdminClient, context: RunContext) -> None:
            cancel_interrupted_run(client, path, context, is_now=is_now)

        return records.Accepted(self._begin(user, execute, path), "Cancelled")

    def preview_rollback(self, run_id: str) -> previews.Preview:
        """Show what a rollback would do. Raises InputError unless the run has ended."""
        context = self._context(None, self._journal(run_id))
        with connected(self.reach()) as client:
            found = self._rollback(client, run_id, context)
        return previews.preview_of_rollback(self._keep(Seen(run_id, found)), found)

    def roll_back(self, run_id: str, request: records.StartRequest, user: User | None) -> records.Begun:
        """Undo a run as it was seen."""
        seen = self._take(request.preview_id, run_id).shown
        assert isinstance(seen, rollback.Rollback)

        def execute(client: AdminClient, context: RunContext) -> None:
            now = self._rollback(client, run_id, context)
            rollback.start_rollback(client, now, rollback.RollbackRequest(run_id), context, seen=seen)

        return records.Begun(self._begin(user, execute, self._journal(run_id)))

    def _rollback(self, client: AdminClient, run_id: str, context: RunContext) -> rollback.Rollback:
        found = rollback.preview_rollback(client, rollback.RollbackRequest(run_id), context)
        if not rollback.is_settled(found.undone):
            raise InputError(f"run {run_id} has not ended ({found.undone.state}); cancel it, then roll it back")
        return found

    def _begin(self, user: User | None, execute: Execute, journal: Path | None = None) -> str:
        self._state = None  # findings and loads change
        return self.runs_here.begin(self.reach(), self._context(user, journal), execute)

    def _context(self, user: User | None, journal: Path | None = None) -> RunContext:
        """Context of a run that begins, or of what is done with the run of this journal: where that is."""
        folders = self.settings.state_dirs
        return context_of(folders[0] if journal is None else journal.parent.parent, user, folders)

    def throttle(self, run_id: str, request: records.ThrottleRequest) -> records.Accepted:
        """Change the throttle of a run."""
        rate = request.bytes_per_s
        return _accepted(run_id, steering.set_throttle(self._journal(run_id), rate, request.brokers))

    def pace(self, run_id: str, request: records.PaceRequest) -> records.Accepted:
        """Change the order and the limits of a run."""
        return _accepted(run_id, steering.change_pace(self._journal(run_id), records.pace_change_of(request)))

    def _journal(self, run_id: str) -> Path:
        with not_found():
            return self._runs.journal(run_id)

    # --- autopilots ---

    def autopilots(self) -> tuple[Pilot, ...]:
        """Autopilots with journals in the state directories."""
        return tuple(
            Pilot(cluster_id, is_dry, folder)
            for folder in dict.fromkeys(self._runs.state_dirs)
            for is_dry in (False, True)
            for cluster_id in clusters_looked_after(folder, is_dry=is_dry)
        )

    def decisions(self, cluster_id: str, *, is_dry: bool) -> tuple[Event, ...]:
        """All decisions of an autopilot. Raises HttpError without one, JournalDamaged."""
        return decided(self._pilot(cluster_id, is_dry=is_dry).state_dir, cluster_id, is_dry=is_dry)

    def runs_of(self, memory: Memory) -> frozenset[str]:
        """Runs of an autopilot that have a page."""
        return frozenset(one.run_id for one in memory.acts if self._runs.has(one.run_id))

    def proposed_plan(self, cluster_id: str, name: Name, *, is_dry: bool) -> PlanFile | None:
        """The plan that an autopilot proposes for a finding; None if its file is not there, or is no plan."""
        journal = decisions_path(self._pilot(cluster_id, is_dry=is_dry).state_dir, cluster_id, is_dry=is_dry)
        with suppress(InputError, OSError):
            return read_plan_file(proposal_path(journal, name))
        return None

    def _pilot(self, cluster_id: str, *, is_dry: bool) -> Pilot:
        found = (one for one in self.autopilots() if (one.cluster_id, one.is_dry) == (cluster_id, is_dry))
        pilot = next(found, None)
        if pilot is None:
            raise HttpError(404, "not found", f"no autopilot of cluster {cluster_id} has a journal here")
        return pilot

    # --- plans ---

    def plans(self) -> records.Plans:
        """Plans in the directory; none without a directory."""
        return records.Plans(() if self.settings.plans is None else PlanDirectory(self.settings.plans).summaries())

    def make_plan(self, request: TaskRequest) -> records.Planned:
        """Plan a task for the cluster as it is, into the directory. Raises InputError, Infeasible, ClusterError."""
        task, reach, folder = task_of(request), self.reach(), self.settings.plans
        if folder is None:
            raise HttpError(404, "not found", "plans need a directory: the page was started without --plans")
        warnings: list[str] = []
        with connected(reach) as client:
            inputs = self._inputs(client, warnings.append, from_tables=request.from_tables)
        outcome = make_plan(inputs, task)
        sentence = f"{outcome.facts.task}: {counted(len(outcome.plan), 'partition')} to change"
        if not len(outcome.plan):
            left = "; ".join((*outcome.facts.remaining[:1], *warnings))
            return records.Planned(None, f"{outcome.facts.task}: nothing to do{left and f', but {left}'}")
        name = f"{request.task}-{new_run_id(self.clock.now_ms())}.json"
        write_plan(folder / name, outcome.plan, outcome.facts)
        return records.Planned(name, "; ".join((sentence, *warnings)))

    def _inputs(self, client: AdminClient, warn: Callable[[str], None], *, from_tables: bool) -> Inputs:
        """The cluster as it is, with loads that are measured now, or those of the tables."""
        if not from_tables:
            seconds = self.settings.measure_for_s
            return inputs_of_cluster(client, PlanPolicy(), measure_for_s=seconds, clock=self.clock, warn=warn)
        if self.settings.data is None:
            raise InputError("the page has no tables: it was started without --data")
        from kreassign.operations.table_inputs import inputs_of_present

        return inputs_of_present(client, self.settings.data, PlanPolicy(), warn=warn)

    def preview(self, name: str, request: previews.PreviewRequest) -> previews.Preview:
        """Check a plan against the cluster, and show what its run would do; sends nothing."""
        file, warnings = self._directory(name).read(name), list[str]()
        throttle, pace, guards = previews.settings_of(request)
        asked = RunRequest(file, throttle, guards, pace, measure_for_s=self.settings.measure_for_s)
        context = replace(self._context(None), warn=warnings.append)
        with connected(self.reach()) as client:
            started = prepare_run(client, asked, context, self.clock)
            found = preview_run(client, started, asked, self.clock)
        kept = self._keep(Seen(name, (asked, started)))
        return previews.preview_of(kept, started, found, tuple(warnings))

    def start(self, name: str, request: records.StartRequest, user: User | None) -> records.Begun:
        """Execute an approved plan as it was seen. Raises InputError without approval, Drifted after a change."""
        directory = self._directory(name)
        file = directory.read(name)
        plan_files.require_approval(directory.path(name), file)
        seen = self._take(request.preview_id, name).shown
        assert isinstance(seen, tuple)
        asked, started = seen
        if asked.plan.plan != file.plan:
            raise Drifted(f"nothing was started: {name} was changed since the preview. Look at a new preview")

        def execute(client: AdminClient, context: RunContext) -> None:
            again = prepare_as_seen(client, asked, context, started)
            _tell(start_whole(client, again, context, asked.plan.facts), context)

        return records.Begun(self._begin(user, execute))

    def _keep(self, seen: Seen) -> str:
        """Keep what somebody has seen, and return its id; the oldest are dropped if there are too many."""
        preview_id = random_name()
        self._seen[preview_id] = seen
        while len(self._seen) > MOST_SEEN:
            del self._seen[next(iter(self._seen))]
        return preview_id

    def _take(self, preview_id: str, subject: str) -> Seen:
        """Take the preview of a plan or a run; it begins one run at most. Raises Drifted if it is not known."""
        seen = self._seen.get(preview_id)
        if seen is None or seen.subject != subject:
            raise Drifted(f"nothing was started: there is no such preview of {subject} any more. Look at a new one")
        del self._seen[preview_id]
        return seen

    def plan(self, name: str) -> records.Plan:
        """One plan."""
        directory = self._directory(name)
        file = directory.read(name)
        return records.plan_of(plan_summary(name, file, directory.approval(name)), file)

    def plan_report(self, name: str) -> str:
        """Report of a plan, as an HTML page."""
        return plan_page(self._directory(name).read(name), name)

    def approve(self, name: str, request: records.ApproveRequest, user: User | None) -> records.Approved:
        """Approve a plan, by the name of the user if there is one. Raises HttpError if the request names another."""
        known = "" if user is None else user.name
        if known and request.approved_by not in {"", known}:
            raise HttpError(422, "that cannot be done", f"the token is that of {known}, who approves by no other name")
        path, by = self._directory(name).path(name), known or request.approved_by
        found = plan_files.approve(path, request.plan_id, by, request.note, self.clock.now_ms())
        return records.Approved(name, found)

    def revoke(self, name: str) -> records.Approved:
        """Revoke the approval of a plan."""
        plan_files.revoke(self._directory(name).path(name))
        return records.Approved(name, None)

    def _directory(self, name: str) -> PlanDirectory:
        if self.settings.plans is None:
            raise HttpError(404, "not found", f"there is no plan {name}: the page was started without --plans")
        found = PlanDirectory(self.settings.plans)
        with not_found():
            found.path(name)
        return found


def _tell(ended: WholeRun, context: RunContext) -> None:
    """Say in the log that the rollback that a guard demanded was not made."""
    if ended.failure is not None:
        context.warn(ended.run.problems[0])


def _accepted(run_id: str, request: object) -> records.Accepted:
    return records.Accepted(run_id, type(request).__name__)


# A run as server-sent events: its document again after every change, until no process executes it.
#
# However many clients listen, a run is read twice a second and its document is encoded once: all listeners get the
# same text. Slow readers get the latest document and skip those in between.

LOOK_EVERY_S = 0.5
SILENT_LOOKS = 30
"""Number of reads without changes after which a comment is sent, to detect closed connections."""

MOST_STREAMS = 250

Content = Callable[[RunHistory], str]
"""Encoder of a run's document; must be a module-level function, because it is part of the key of shared streams."""


class Look(NamedTuple):
    """Result of one read of a run, with its number, from 1 on."""

    number: int
    text: str
    is_active: bool


class Followed:
    """A run with listeners.

    One of the listeners that wait for the next look holds the lock: it sleeps until the look is due, then reads the
    run. The others then get the lock one by one and find the look done. The lock is granted in order of request, so no
    listener misses the look that it waits for.
    """

    def __init__(self, make: Callable[[], RunFollower], content: Content) -> None:
        self._make, self._content = make, content
        self._follower: RunFollower | None = None
        self._turn = anyio.Lock()
        self._latest = Look(0, "", is_active=True)
        self._due_s = self._old_s = 0.0
        self.listeners = 0

    async def begin(self) -> None:
        """Start reading the run, unless that was done. Raises the errors of reading it."""
        if self._follower is None:
            async with self._turn:
                self._follower = self._follower or await run_in_threadpool(self._make)

    async def after(self, number: int) -> Look:
        """Return the latest look, once its number exceeds `number`. Raises the errors of reading the run.

        A look is reused for callers that come soon after it. A later caller gets a new one, because in the meantime
        there may have been no listener that waited for a look.
        """
        async with self._turn:
            if self._latest.number <= number or anyio.current_time() >= self._old_s:
                await anyio.sleep_until(self._due_s)
                self._due_s = anyio.current_time() + LOOK_EVERY_S
                self._latest = await run_in_threadpool(self._look)
                self._old_s = anyio.current_time() + LOOK_EVERY_S
            return self._latest

    def _look(self) -> Look:
        assert self._follower is not None, "nobody began to follow"
        live = self._follower.look()
        return Look(self._latest.number + 1, self._content(live), live.is_active)


@dataclass(slots=True)
class Streams:
    """Open streams; `count` of them now. They end once the server `is_ending`."""

    count: int = 0
    is_ending: Callable[[], bool] = lambda: False
    _followed: dict[tuple[str, Content], Followed] = field(default_factory=dict)

    async def answer(self, run_id: str, follower: Callable[[str], RunFollower], content: Content) -> StreamingResponse:
        """Stream a run as the answer; `follower` creates its reader. Raises HttpError if too many streams are open."""
        if self.count >= MOST_STREAMS:
            raise HttpError(503, "too many streams", f"{MOST_STREAMS} streams are open; close others first")
        # `content` must be the same function for all requests, or each request would read the run on its own.
        key = (run_id, content)
        followed = self._followed.setdefault(key, Followed(partial(follower, run_id), content))
        try:
            await followed.begin()
        finally:
            # A stream that starts adds the entry again; runs that are unknown or have no listener leave none.
            if not followed.listeners and self._followed.get(key) is followed:
                del self._followed[key]
        return StreamingResponse(self._events(key, followed), media_type="text/event-stream")

    @contextmanager
    def _listening(self, key: tuple[str, Content], made: Followed) -> Iterator[Followed]:
        followed = self._followed.setdefault(key, made)
        self.count += 1
        followed.listeners += 1
        try:
            yield followed
        finally:
            self.count -= 1
            followed.listeners -= 1
            if not followed.listeners:
                del self._followed[key]

    async def _events(self, key: tuple[str, Content], made: Followed) -> AsyncIterator[str]:
        """Events until the end of the run, or until the client disconnects."""
        with self._listening(key, made) as followed:
            last, number, silent = "", 0, 0
            while True:
                number, now, is_active = await followed.after(number)
                if now != last:
                    last, silent = now, 0
                    yield f"event: run\ndata: {now}\n\n"
                elif (silent := silent + 1) >= SILENT_LOOKS:
                    silent = 0
                    yield ": nothing new\n\n"
                if self.is_ending():
                    return
                if not is_active:
                    yield "event: end\ndata: {}\n\n"
                    return
