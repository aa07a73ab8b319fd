"""Another process has locked the journal of a run: it is waited for and named, and nothing is called damaged."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from kreassign.autopilot.events import Began
from kreassign.clock import VirtualClock
from kreassign.errors import JournalFull, JournalLocked
from kreassign.executor.events import HoldRequested
from kreassign.executor.history.run_history import (
    UnreadableJournal,
    left_behind,
    read_or_name,
    refuse_if_interrupted_runs,
)
from kreassign.executor.journal import (
    Journal,
    active_run,
    bounded_wait,
    file,
    foreign_lock,
    post_request,
    read_events,
    writer,
)
from kreassign.executor.journal.processes import RANGES, lock_holders, write_locks
from kreassign.executor.runner import Runner
from kreassign.operations.autopilot_journal import DECISIONS, decisions_path
from kreassign.operations.run_journals import forget_journal
from testbed.waiting import PATIENCE_S, wait_until
from tests.executor.journal.test_journal import written
from tests.executor.run_events import WHOLE, started
from tests.executor.twin_runs import RATE, TwinRig

LOCK = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
if sys.argv[2] == "all":
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
connection.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.read()
"""


@contextmanager
def locked_by_another(path: Path, how: str = "writes") -> Iterator[subprocess.Popen[bytes]]:
    """A process that writes and does not end, as a stopped command or an open shell."""
    with subprocess.Popen(
        [sys.executable, "-c", LOCK, str(path), how], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"locked\n"
        try:
            yield other
        finally:
            other.kill()


def test_a_run_waits_for_a_journal_that_others_write(tmp_path: Path) -> None:
    """For as long as it takes, and loses no event; a stopped process is told as such."""
    path, told = written(tmp_path, WHOLE[0]), []
    with Journal.resume(path, "cluster-1")[0] as journal, locked_by_another(path) as other:
        os.kill(other.pid, signal.SIGSTOP)

        def on_lock(lock: JournalLocked | None) -> None:
            told.append(lock)
            if len(told) == 2:
                other.kill()
                other.wait()

        journal.on_lock = on_lock
        for event in WHOLE[1:]:
            journal.append(event)
    assert read_events(path) == WHOLE
    assert told[-1] is None
    assert f"process {other.pid} (" in str(told[0])
    assert f"stopped) has locked it. Let it go on (`kill -CONT {other.pid}`)" in str(told[0])


def test_a_run_that_is_resumed_waits_for_a_journal_that_others_write(tmp_path: Path) -> None:
    path, told = written(tmp_path, WHOLE[0]), list[JournalLocked | None]()
    with locked_by_another(path) as other:

        def on_lock(lock: JournalLocked | None) -> None:
            told.append(lock)
            other.kill()
            other.wait()

        with Journal.resume(path, "cluster-1", on_lock=on_lock)[0]:
            assert active_run(tmp_path, "cluster-1") == "run-1"
    assert f"process {other.pid} (" in str(told[0])
    assert told[1:] == [None]


def test_who_changes_a_journal_waits_for_a_lock_but_for_no_room(tmp_path: Path) -> None:
    """`kreassign forget --broker` gave up after a second."""
    clock, lock, full = VirtualClock(), JournalLocked("locked"), JournalFull("no room")
    with Journal.create(tmp_path, started()) as journal:
        journal.on_lock(lock)
        with pytest.raises(JournalFull):
            journal.on_lock(full)
    wait = bounded_wait(30, clock)
    for passed in (None, lock):  # a lock that is over does not count for the next
        wait(lock)
        clock.sleep(20)
        wait(passed)
    clock.sleep(10)
    with pytest.raises(JournalLocked):
        wait(lock)


def test_an_autopilot_begins_while_others_write_its_journal(tmp_path: Path) -> None:
    """It takes up every request, so none is void for it."""
    path = decisions_path(tmp_path, "cluster-1")
    Journal.begin(path, Began(1, "cluster-1"), "the autopilot", DECISIONS).close()
    with locked_by_another(path), Journal.resume(path, "cluster-1", form=DECISIONS)[0] as journal:
        assert journal.position.sequence == 1


def test_what_can_wait_is_left_undone_under_a_lock(tmp_path: Path) -> None:
    path = written(tmp_path, WHOLE[0])
    with Journal.resume(path, "cluster-1")[0] as journal, locked_by_another(path):
        journal.keep_snapshot("{}")
        assert journal.requests_after(0) == ()


def test_a_run_is_called_active_only_once_it_takes_requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request before that would be void, and who made it would wait for nothing."""
    monkeypatch.setattr(file, "LOCK_PATIENCE_S", PATIENCE_S)
    path = written(tmp_path, WHOLE[0])
    lock = path.parent / "lock"
    lock.write_text("")

    def resumed() -> str | None:
        with Journal.resume(path, "cluster-1")[0]:
            return active_run(tmp_path, "cluster-1")

    with ThreadPoolExecutor() as others, locked_by_another(path, "all") as other:
        found = others.submit(resumed)
        wait_until(lambda: bool(lock.read_text()), what="the lock of the cluster")
        assert active_run(tmp_path, "cluster-1") is None
        other.kill()
        assert found.result() == "run-1"


def test_no_process_accepts_a_request_that_was_stored_for_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The asker is told that the process is gone: the next one begins before the request is made, or voids it."""
    monkeypatch.setattr(writer, "CHANGE_PATIENCE_S", 0.0)
    path = written(tmp_path, WHOLE[0])

    def resumed_meanwhile(number: int) -> HoldRequested:
        with pytest.raises(JournalLocked):
            Journal.resume(path, "cluster-1")
        return HoldRequested(5, number)

    post_request(path, resumed_meanwhile)
    with Journal.resume(path, "cluster-1")[0] as journal:
        assert journal.requests_after(0) == ()


def test_a_request_waits_for_a_run_that_syncs_its_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that others keep busy took 7 s, for which a pause on the page was refused."""
    monkeypatch.setattr(file, "LOCK_PATIENCE_S", 0.1)
    path = written(tmp_path, WHOLE[0])
    with ThreadPoolExecutor() as others, locked_by_another(path) as other:
        posted = others.submit(post_request, path, lambda number: HoldRequested(5, number))
        with closing(sqlite3.connect(path, timeout=0.5)) as reader, pytest.raises(sqlite3.OperationalError):
            reader.execute("BEGIN IMMEDIATE")
        other.kill()
        assert posted.result().request == 1


def test_a_lock_is_no_damage_whoever_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file, "LOCK_PATIENCE_S", 0.0)
    monkeypatch.setattr(file, "CHANGE_PATIENCE_S", 0.0)
    path = written(tmp_path, *WHOLE[:3])
    with locked_by_another(path, "all") as other:
        assert lock_holders([path], RANGES) == (other.pid,)
        found = read_or_name(path)
        assert isinstance(found, UnreadableJournal)
        assert (found.is_locked, "forget" in found.remedy) == (True, False)
        assert [one.run_id for one in left_behind(tmp_path, "cluster-1")] == ["run-1"]
        for question in (
            lambda: refuse_if_interrupted_runs(tmp_path, "cluster-1"),
            lambda: forget_journal(path),
            lambda: post_request(path, lambda number: HoldRequested(5, number)),
            lambda: read_events(path),
        ):
            with pytest.raises(JournalLocked, match=f"process {other.pid}"):
                question()
    assert path.exists()


def test_others_are_told_who_keeps_a_run_from_its_journal(tmp_path: Path) -> None:
    path = written(tmp_path, WHOLE[0])
    with Journal.resume(path, "cluster-1")[0] as journal:
        with closing(sqlite3.connect(path, isolation_level=None)) as ours:
            ours.execute("BEGIN IMMEDIATE")
            assert foreign_lock(path) is None, "the run may write its own journal"
            ours.execute("ROLLBACK")
        with locked_by_another(path) as other:
            assert (foreign_lock(path) or "").startswith(f"its journal is locked by process {other.pid} (")
        assert journal.position.sequence == 1


LISTED = """\
1: POSIX  ADVISORY  WRITE 7 08:01:55 120 120
2: POSIX  ADVISORY  READ  8 08:01:55 123 123
3: FLOCK  ADVISORY  WRITE 9 08:01:55 0 EOF
4: POSIX  ADVISORY  WRITE 10 08:01:56 120 120
5: -> POSIX  ADVISORY  WRITE 11 08:01:55 120 120
6: POSIX  ADVISORY  WRITE 0 08:01:55 120 120
7: POSIX  ADVISORY  WRITE 7 08:01:57 1 2
8:
"""


@pytest.mark.parametrize(("inodes", "holders"), [((55,), (7,)), ((55, 57, 56), (7, 10)), ((5,), ()), ((), ())])
def test_only_processes_that_write_this_file_hold_it(inodes: tuple[int, ...], holders: tuple[int, ...]) -> None:
    assert write_locks(LISTED.splitlines(), inodes, RANGES) == holders


def test_a_pause_is_possible_while_the_journal_is_locked(tmp_path: Path) -> None:
    """The pause cannot be journaled, so the run is left like a killed one, and ends later."""
    rig = TwinRig(tmp_path, [[0, 1], [1, 0]])
    begun = rig.prepared({0: (2, 1), 1: (3, 0)}, throttle=RATE)
    with Journal.create(rig.state_dir, begun) as journal, locked_by_another(journal.path):
        runner: Runner = rig.new_runner(journal)
        runner.request_stop()
        journal.on_lock = lambda lock: lock and runner.wait_for_journal(lock)
        with pytest.raises(JournalLocked):
            runner.start(begun)
    assert rig.resume().state == "done"
