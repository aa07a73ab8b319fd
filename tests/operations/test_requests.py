"""Requests to a run are checked before they are stored, and act once or never; a watcher cannot end a run."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Self

import pytest

from kreassign.admin import AdminClient, client_settings
from kreassign.clock import Clock, VirtualClock
from kreassign.errors import ClusterBusy, ExecutionError, InputError, JournalLocked, Unreachable
from kreassign.executor.events import (
    CallFailed,
    CancelRequested,
    Event,
    HoldRequested,
    MovesObserved,
    MovesSubmitted,
    Request,
    SubmissionIntended,
    ThrottleChecked,
    ThrottleIntended,
    ThrottleSet,
)
from kreassign.executor.guards import guard_settings
from kreassign.executor.journal import Journal, read_events
from kreassign.executor.journal.folder import LOCK, ClusterLock
from kreassign.executor.lease import LeasePolicy
from kreassign.model.pace import Pace, PaceChange, Schedule, UtcOffset, Window
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.run import RunHistory
from kreassign.operations import journal_waits, run_journals, steering
from kreassign.operations import run as operation
from kreassign.operations.connect import connect
from kreassign.operations.plan_files import PlanFile
from kreassign.operations.run import RunContext, RunRequest, Show
from kreassign.operations.whole_runs import execute_whole
from kreassign.twin.cluster import Twin
from kreassign.twin.core import TwinSettings
from kreassign.twin.server import serving
from testbed.waiting import wait_until
from tests.executor.deaths import die
from tests.executor.journal.test_locks import locked_by_another
from tests.executor.run_events import A0, LISTED, RATES, WHOLE, started
from tests.executor.twin_runs import RATE, TwinRig, tp
from tests.twin.asking import cluster


def requests_in(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        (count,) = connection.execute("SELECT count(*) FROM requests").fetchone()
    return int(count)


@pytest.fixture
def interrupted(tmp_path: Path) -> TwinRig:
    """A run that died when its moves were on their way."""
    rig = TwinRig(tmp_path, [[0, 1], [1, 0]])
    die(rig, rig.prepared({0: (2, 1), 1: (3, 0)}), MovesSubmitted)
    return rig


def test_a_resumed_run_says_who_keeps_it_from_its_journal(
    interrupted: TwinRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_waits, "TOLD_AFTER_S", 0.0)
    told = list[str]()
    with locked_by_another(interrupted.path()) as other:

        def warn(sentence: str) -> None:
            told.append(sentence)
            other.kill()
            other.wait()

        context = RunContext(interrupted.state_dir, lease=LeasePolicy.OFF, warn=warn)
        resumed = operation.resume_run(interrupted.client, interrupted.path(), context, clock=interrupted.transport)
    assert resumed.state == "done"
    assert f"run run-1 holds: {interrupted.path()} cannot be written: process {other.pid} (" in told[0]
    assert told[1].startswith("the journal of run run-1 can be written again")


def test_a_resume_gives_up_a_journal_that_others_keep_locked(
    interrupted: TwinRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a page that is asked to resume it would wait for ever, and could not be stopped."""
    monkeypatch.setattr(journal_waits, "RESUME_PATIENCE_S", -1.0)
    context = RunContext(interrupted.state_dir, lease=LeasePolicy.OFF)
    with locked_by_another(interrupted.path()) as other, pytest.raises(JournalLocked, match=f"process {other.pid} "):
        operation.resume_run(interrupted.client, interrupted.path(), context, clock=interrupted.transport)
    assert interrupted.resume().state == "done"


def test_who_resumes_a_run_is_told_which_process_is_about_to(interrupted: TwinRig) -> None:
    """To cancel the run is no advice: no process takes requests yet."""
    path, context = interrupted.path(), RunContext(interrupted.state_dir, lease=LeasePolicy.OFF)
    with closing(ClusterLock(path)), pytest.raises(ClusterBusy) as refused:
        operation.resume_run(interrupted.client, path, context, clock=interrupted.transport)
    assert str(refused.value).startswith(f"process {os.getpid()} (")
    assert f") has locked {path.with_name(LOCK)} for run run-1, and takes no requests yet" in str(refused.value)
    assert "kreassign cancel" not in str(refused.value)


# Asking


def test_a_failed_cancel_does_not_act_on_a_later_resume(
    interrupted: TwinRig,
) -> None:
    nowhere = client_settings(bootstrap_servers="nowhere:9092")
    transport, path = interrupted.transport, interrupted.path()
    with AdminClient.connect(nowhere, clock=transport, transport=transport) as lost, pytest.raises(Unreachable):
        operation.cancel_interrupted_run(lost, path, RunContext(interrupted.state_dir), is_now=True)
    assert requests_in(path) == 0
    found = interrupted.resume()
    assert (found.state, {move.status for move in found.moves}) == ("done", {"complete"})
    assert not [event for event in read_events(path) if isinstance(event, CancelRequested)]


def test_a_cancel_that_lost_its_race_for_the_run_is_not_stored(interrupted: TwinRig) -> None:
    path = interrupted.path()
    with Journal.resume(path, interrupted.twin.cluster_id)[0], pytest.raises(InputError, match="is active"):
        operation.cancel_interrupted_run(interrupted.client, path, RunContext(interrupted.state_dir), is_now=True)
    assert requests_in(path) == 0


@contextmanager
def executed_elsewhere(path: Path) -> Iterator[subprocess.Popen[str]]:
    """The run of this journal in a process that never hears a request."""
    program = (
        "import sys; from pathlib import Path; from kreassign.executor.journal import Journal\n"
        "with Journal.resume(Path(sys.argv[1]), 'cluster-1')[0]: print('held', flush=True); input()"
    )
    command = [sys.executable, "-c", program, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        try:
            yield holder
        finally:
            holder.kill()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The journal of a run that is not at its end."""
    with Journal.create(tmp_path, started()) as journal:
        for event in WHOLE[1:4]:
            journal.append(event)
        return journal.path


@pytest.mark.parametrize("ask", [steering.pause, steering.cancel, lambda path: steering.set_throttle(path, 1)])
def test_a_request_to_a_stopped_process_is_refused_at_once_and_not_stored(
    ask: Callable[[Path], object], path: Path
) -> None:
    with executed_elsewhere(path) as holder:
        holder.send_signal(signal.SIGSTOP)
        wait_until(lambda: ") T " in Path(f"/proc/{holder.pid}/stat").read_text(), what="a stop")
        with pytest.raises(ExecutionError, match=rf"was not asked: its process {holder.pid} is stopped; .*kill -CONT"):
            ask(path)
    assert requests_in(path) == 0


class ResumedMeanwhile(VirtualClock):
    """Between two looks of who asks, the process that executes the run dies, and this one resumes the run."""

    def __init__(self, path: Path, holder: subprocess.Popen[str]) -> None:
        super().__init__()
        self._path, self._holder, self._journals = path, holder, ExitStack()

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        if self._holder.poll() is None:
            self._holder.kill()
            self._holder.wait()
            self._journals.enter_context(Journal.resume(self._path, "cluster-1")[0])

    def __exit__(self, *_: object) -> None:
        self._journals.close()

    def __enter__(self) -> Self:
        return self


def test_who_asks_is_told_that_another_process_resumed_the_run(path: Path) -> None:
    with executed_elsewhere(path) as holder, ResumedMeanwhile(path, holder) as clock:
        with pytest.raises(ExecutionError, match=r"another process resumed run .* meanwhile.*, then ask again"):
            steering.pause(path, clock)
        assert clock.monotonic_s() < steering.PATIENCE_S


@pytest.mark.parametrize(
    ("rate", "said"),
    [(0, "with 0 no move would ever end"), (-5, "with -5 no"), (2**63, f"a throttle of {2**63} B/s is too large")],
)
def test_a_rate_that_would_end_the_process_of_a_run_is_not_stored(rate: int, said: str, path: Path) -> None:
    with executed_elsewhere(path), pytest.raises(InputError, match=said):
        steering.set_throttle(path, rate)
    assert requests_in(path) == 0


def test_who_looks_at_a_run_is_told_that_its_process_is_stopped(path: Path) -> None:
    with executed_elsewhere(path) as holder:
        assert not [line for line in run_journals.status_and_progress(path).outlook if "stopped" in line]
        holder.send_signal(signal.SIGSTOP)
        wait_until(lambda: ") T " in Path(f"/proc/{holder.pid}/stat").read_text(), what="a stop")
        for outlook in (run_journals.status_and_progress(path).outlook, next(run_journals.watch(path)).outlook):
            assert outlook[0].startswith(f"its process {holder.pid} is stopped; continue it with `fg`")
        for run in (run_journals.status_and_progress(path), next(run_journals.watch(path))):
            assert (run.measured.end, run.measured.eta_s) == (None, None)
            assert str(run.measured.why_no_end).startswith(f"its process {holder.pid} is stopped")


def test_a_request_to_no_process_is_refused_and_not_stored(path: Path) -> None:
    with pytest.raises(InputError, match="no process executes run run-1; `kreassign resume run-1` goes on"):
        steering.cancel(path, is_now=True)
    assert requests_in(path) == 0


class AnsweringTime(VirtualClock):
    """Time in which the run of a journal takes in what it is asked, and has these events afterwards."""

    def __init__(self, journal: Journal, *afterwards: Event) -> None:
        super().__init__()
        self._journal: Journal | None = journal
        self._afterwards = afterwards

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        if self._journal is None:
            return
        for request in self._journal.requests_after(0):
            self._journal.append(request)
        for event in self._afterwards:
            self._journal.append(event)

    def go_quiet(self) -> None:
        """Have nothing happen any more."""
        self._journal = None


def test_a_request_is_heard_without_reading_before_the_snapshot(path: Path) -> None:
    """After a week that is minutes of reading. Here it cannot be read at all."""
    with Journal.resume(path, "cluster-1")[0] as journal:
        journal.keep_snapshot("the run as it is")
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("UPDATE events SET body = '{}' WHERE sequence = 2")
            connection.commit()
        assert isinstance(steering.pause(path, AnsweringTime(journal)), HoldRequested)


ELSEWHERE = Schedule((Window(0, 1439),), "Mars/Base")


def test_hours_of_an_unknown_time_zone_are_refused_where_chosen(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1]])
    with Journal.create(rig.state_dir, rig.prepared({0: (2, 1)})) as journal:
        with pytest.raises(InputError, match="unknown time zone 'Mars/Base'"):
            steering.change_pace(journal.path, PaceChange(hours=ELSEWHERE))
        assert requests_in(journal.path) == 0
    request = RunRequest(PlanFile(Plan((PartitionAssignment(tp(0), (2, 1)),))), pace=Pace(hours=ELSEWHERE))
    with pytest.raises(InputError, match="unknown time zone 'Mars/Base'"):
        operation.prepare_run(rig.client, request, RunContext(tmp_path / "other"), rig.transport)


def test_a_run_in_a_time_zone_of_elsewhere_is_read_and_resumed(tmp_path: Path) -> None:
    """Its journal has the clock of its windows."""
    rig, hours = TwinRig(tmp_path, [[0, 1], [1, 0]]), replace(ELSEWHERE, offsets=(UtcOffset(0, 3_600),))
    die(rig, rig.prepared({0: (2, 1), 1: (3, 0)}, pace=Pace(hours=hours)), MovesSubmitted)
    path, context = rig.path(), RunContext(rig.state_dir, lease=LeasePolicy.OFF)
    assert run_journals.status(path).pace.hours == hours
    assert operation.resume_run(rig.client, path, context, clock=rig.transport).state == "done"


LOOK = MovesObserved(9_000, ())
"""It shows nothing new, as when nothing is in flight."""
SENT = SubmissionIntended(9_000, (A0,))
SILENT = CallFailed(9_000, "no answer")
PACED = PaceChange(is_eager=True)
NOT_SET = (ThrottleIntended(9_000, RATES), ThrottleSet(9_000, ("broker 1 refused it",)))


def throttled(path: Path, clock: Clock) -> Request:
    return steering.set_throttle(path, 1, clock=clock)


def paced(path: Path, clock: Clock) -> Request:
    return steering.change_pace(path, PACED, clock)


@pytest.mark.parametrize(
    ("ask", "afterwards", "told"),
    [
        (steering.pause, (LOOK,), "does it"),
        (steering.pause, (SENT, LOOK), "does it"),
        (steering.pause, (SENT,), "asked; does it later"),
        (steering.pause, (SILENT,), "asked; does it later; the cluster has not answered since 00:00:09 UTC"),
        (steering.release, (LOOK,), "does it"),
        (steering.release, (), "asked; does it later"),
        (paced, (LOOK,), "does it"),
        (paced, (), "asked; does it later"),
        (throttled, (ThrottleSet(9_000),), "does it"),
        (throttled, NOT_SET, "asked; does it later"),
    ],
)
def test_a_request_is_only_asked_until_the_run_acts_on_it(
    ask: Callable[[Path, Clock], Request], afterwards: tuple[Event, ...], told: str, path: Path
) -> None:
    with Journal.resume(path, "cluster-1")[0] as journal:
        for event in LISTED[4:]:
            journal.append(event)
        clock = AnsweringTime(journal, *afterwards)
        request = ask(path, clock)
        clock.go_quiet()
        assert steering.in_force(path, request, "does it", "later", clock) == told


def test_a_throttle_is_only_asked_for_while_its_settings_cannot_be_read(tmp_path: Path) -> None:
    """The run looks at its moves meanwhile, and writes nothing."""
    unread = ThrottleChecked(9_000, unread=(RATES[0].key.resource,))
    with Journal.create(tmp_path, replace(started(), guards=guard_settings())) as journal:
        for event in WHOLE[1:4]:
            journal.append(event)
        clock = AnsweringTime(journal, unread, LOOK)
        request = throttled(journal.path, clock)
        clock.go_quiet()
        assert steering.in_force(journal.path, request, "does it", "later", clock) == "asked; does it later"


# Watching


@contextmanager
def failing_view(run_id: str, stop: Callable[[], None] | None) -> Iterator[Show | None]:
    del run_id, stop

    def show(run: RunHistory) -> None:
        raise OSError(28, f"No space left on device, while {run.state}")

    yield show


def test_a_view_that_fails_is_told_once_and_the_run_goes_on_to_its_end(tmp_path: Path) -> None:
    warnings: list[str] = []
    twin = Twin(cluster({"t": [[0, 1]]}), TwinSettings())
    request = RunRequest(PlanFile(Plan((PartitionAssignment(tp(0), (2, 1)),))))
    context = RunContext(tmp_path, poll_s=0.1, watch=failing_view, warn=warnings.append)
    with serving(twin, speed=20.0) as thread, connect(thread.bootstrap_servers) as client:
        found = execute_whole(client, request, context).run
    assert found.state == "done"
    (warning,) = warnings
    assert "is not shown any more" in warning
    assert f"kreassign watch {found.run_id}" in warning


def test_a_warning_that_fails_too_does_not_end_the_run_either(tmp_path: Path) -> None:
    def refuse(text: str) -> None:
        raise UserWarning(text)

    twin = Twin(cluster({"t": [[0, 1]]}), TwinSettings())
    request = RunRequest(PlanFile(Plan((PartitionAssignment(tp(0), (2, 1)),))))
    context = RunContext(tmp_path, poll_s=0.1, watch=failing_view, warn=refuse)
    with serving(twin, speed=20.0) as thread, connect(thread.bootstrap_servers) as client:
        assert execute_whole(client, request, context).run.state == "done"


def test_a_throttle_may_name_brokers_that_a_lost_one_was_replaced_by(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1]], brokers=5)
    rig.after(4, lambda: rig.twin.crash(2))
    rig.stop_after(120)
    rig.run(rig.prepared({0: (2, 1)}, throttle=RATE // 8, replans=True))
    with pytest.raises(InputError, match="no process executes run run-1"):
        steering.set_throttle(rig.path(), RATE, (2, 4))
    with pytest.raises(InputError, match="broker 3 has no part in run run-1; its brokers are 0, 1, 2, 4"):
        steering.set_throttle(rig.path(), RATE, (3,))


def test_a_throttle_that_is_a_slip_is_refused_or_named(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1], [1, 0]])
    rig.stop_after(5)
    begun = rig.prepared({0: (2, 0), 1: (2, 1)})
    moves = tuple(replace(move, write_bytes_per_s=3.0 * RATE) for move in begun.moves[:1])
    rig.run(replace(begun, moves=(*moves, *begun.moves[1:])))
    with pytest.raises(InputError, match="broker 3 has no part in run run-1; its brokers are 0, 1, 2"):
        steering.set_throttle(rig.path(), RATE, (3,))
    advice, starved = steering.starved_moves(rig.path())
    assert advice == "the least rate that works for all moves left is 7.5MB/s"
    assert starved.startswith("t-0: at 1 MB/s it never ends, for producers write 3 MB/s meanwhile")
