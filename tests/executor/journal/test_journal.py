import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from kreassign.errors import InputError, JournalDamaged
from kreassign.executor.events import (
    CancelRequested,
    Event,
    HoldRequested,
    RunStarted,
    StopRequested,
    ThrottleRequested,
)
from kreassign.executor.journal import (
    Journal,
    JournalReader,
    active_run,
    find_journals,
    journal_path,
    post_request,
    read_events,
    stopped_process_in,
)
from kreassign.model.throttle import NO_THROTTLE
from testbed.waiting import wait_until
from tests.executor.run_events import WHOLE, started


def written(state_dir: Path, *events: Event) -> Path:
    first, *rest = events or WHOLE
    assert isinstance(first, RunStarted)
    with Journal.create(state_dir, first) as journal:
        for event in rest:
            journal.append(event)
        return journal.path


def test_events_come_back_in_order(tmp_path: Path) -> None:
    assert read_events(written(tmp_path)) == WHOLE


def test_a_journal_stands_under_its_cluster_and_run(tmp_path: Path) -> None:
    path = written(tmp_path)
    assert path == journal_path(tmp_path, "cluster-1", "run-1")
    assert find_journals(tmp_path) == (path,)
    assert find_journals(tmp_path, "run-1") == (path,)
    assert find_journals(tmp_path, "run-2") == ()
    assert find_journals(tmp_path / "nowhere") == ()


def test_it_can_be_read_while_it_is_written(tmp_path: Path) -> None:
    with Journal.create(tmp_path, started()) as journal:
        reader = JournalReader(journal.path)
        assert reader.new_events() == (started(),)
        journal.append(StopRequested(5))
        assert reader.new_events() == (StopRequested(5),)
        assert reader.new_events() == ()


def test_a_resumed_journal_goes_on_where_it_ended(tmp_path: Path) -> None:
    path = written(tmp_path, *WHOLE[:3])
    journal, events = Journal.resume(path, "cluster-1")
    with journal:
        assert events == WHOLE[:3]
        for event in WHOLE[3:]:
            journal.append(event)
    assert read_events(path) == WHOLE


def test_a_journal_of_another_cluster_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path)
    with pytest.raises(InputError, match="is of cluster cluster-1, and this is cluster other"):
        Journal.resume(path, "other")
    Journal.resume(path, "cluster-1")[0].close()


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM events WHERE sequence = 3",
        "DELETE FROM events WHERE sequence = 1",
        "UPDATE events SET body = replace(body, '7000', '7001') WHERE sequence = 2",
        "UPDATE events SET kind = 'StopRequested' WHERE sequence = 4",
        "UPDATE events SET sequence = 99 WHERE sequence = 4",
        "DELETE FROM events",
        "PRAGMA user_version = 99",
        "PRAGMA application_id = 1",
        "DROP TABLE events",
    ],
)
def test_a_damaged_journal_is_refused(tmp_path: Path, damage: str) -> None:
    path = written(tmp_path)
    with sqlite3.connect(path) as connection:
        connection.execute(damage)
    connection.close()
    with pytest.raises(JournalDamaged):
        read_events(path)


def test_a_missing_journal_is_a_wrong_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no journal"):
        read_events(tmp_path / "none.sqlite")
    with pytest.raises(InputError, match="there is no journal"):
        Journal.resume(tmp_path / "nowhere" / "none.sqlite", "cluster-1")


def test_only_one_run_at_a_time_writes_about_a_cluster(tmp_path: Path) -> None:
    with Journal.create(tmp_path, started()):
        assert active_run(tmp_path, "cluster-1") == "run-1"
        other = RunStarted(0, "run-2", "cluster-1", (), NO_THROTTLE, ())
        with pytest.raises(InputError, match=r"run run-1 is active.*kreassign resume run-1"):
            Journal.create(tmp_path, other)
        assert not journal_path(tmp_path, "cluster-1", "run-2").exists()
        Journal.create(tmp_path, RunStarted(0, "run-3", "cluster-2", (), NO_THROTTLE, ())).close()
    assert active_run(tmp_path, "cluster-1") is None
    Journal.create(tmp_path, other).close()


def test_a_run_id_is_used_once(tmp_path: Path) -> None:
    written(tmp_path)
    with pytest.raises(InputError, match="has a journal already"):
        Journal.create(tmp_path, started())


def test_what_was_appended_survives_the_sudden_death_of_the_writer(tmp_path: Path) -> None:
    program = (
        "import os, sys; from pathlib import Path\n"
        "from kreassign.executor.journal import Journal\n"
        "from tests.executor.run_events import WHOLE\n"
        "journal = Journal.create(Path(sys.argv[1]), WHOLE[0])\n"
        "for event in WHOLE[1:5]: journal.append(event)\n"
        "os.kill(os.getpid(), 9)"
    )
    finished = subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False)
    assert finished.returncode == -9
    path = journal_path(tmp_path, "cluster-1", "run-1")
    assert read_events(path) == WHOLE[:5]
    journal, events = Journal.resume(path, "cluster-1")
    journal.close()
    assert events == WHOLE[:5]


def test_every_event_is_on_disk_before_it_counts(tmp_path: Path) -> None:
    with Journal.create(tmp_path, started()) as journal:
        (mode,) = journal._connection.execute("PRAGMA journal_mode").fetchone()
        (synchronous,) = journal._connection.execute("PRAGMA synchronous").fetchone()
    assert (mode, synchronous) == ("wal", 2)


@pytest.mark.parametrize("cluster_id", ["../elsewhere", "..", "a/b", "/tmp"])
def test_a_strange_cluster_id_does_not_lead_out_of_the_state_directory(tmp_path: Path, cluster_id: str) -> None:
    path = journal_path(tmp_path, cluster_id, "run-1")
    assert path.resolve().parent.parent == tmp_path.resolve()


def test_requests_of_another_process_reach_the_writer_once(tmp_path: Path) -> None:
    with Journal.create(tmp_path, started()) as journal:
        assert journal.requests_after(0) == ()
        first = post_request(journal.path, lambda number: HoldRequested(5, number))
        second = post_request(journal.path, lambda number: ThrottleRequested(6, number, None))
        assert (first, second) == (HoldRequested(5, 1), ThrottleRequested(6, 2, None))
        assert journal.requests_after(0) == (first, second)
        assert journal.requests_after(1) == (second,)
        assert read_events(journal.path) == (started(),)


def test_what_was_asked_of_an_earlier_process_is_void_for_the_next_one(tmp_path: Path) -> None:
    path = written(tmp_path)
    post_request(path, lambda number: CancelRequested(5, number, is_now=True))
    journal, _ = Journal.resume(path, "cluster-1")
    with journal:
        assert journal.requests_after(0) == ()
        asked = post_request(path, lambda number: HoldRequested(6, number))
        assert journal.requests_after(0) == (asked,)


def test_a_process_that_holds_the_lock_is_seen_to_be_stopped_and_to_go_on(tmp_path: Path) -> None:
    path = written(tmp_path)
    program = (
        "import sys; from pathlib import Path; from kreassign.executor.journal import Journal\n"
        "with Journal.resume(Path(sys.argv[1]), 'cluster-1')[0]: print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", program, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert stopped_process_in(path.parent) is None
        holder.send_signal(signal.SIGSTOP)
        wait_until(lambda: stopped_process_in(path.parent) == holder.pid, what="the process to be stopped")
        assert active_run(tmp_path, "cluster-1") == "run-1"
        holder.send_signal(signal.SIGCONT)
        wait_until(lambda: stopped_process_in(path.parent) is None, what="the process to go on")
        holder.kill()


def test_a_reused_process_number_is_not_taken_for_the_holder(tmp_path: Path) -> None:
    path = written(tmp_path)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        (path.parent / "holder").write_text(f"run-1\n{other.pid}\n")
        other.send_signal(signal.SIGSTOP)
        state = Path(f"/proc/{other.pid}/stat")
        wait_until(lambda: ") T " in state.read_text(), what="the process to be stopped")
        assert stopped_process_in(path.parent) is None
        other.kill()


def test_a_request_to_a_file_that_is_no_journal_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    path.write_text("once upon a time " * 100)
    with pytest.raises(JournalDamaged):
        post_request(path, lambda number: HoldRequested(5, number))
    assert path.read_text() == "once upon a time " * 100


@pytest.mark.parametrize(("kind", "body"), [("StopRequested", '{"at_ms":1}'), ("Nonsense", "{}")])
def test_a_request_that_is_none_is_refused(tmp_path: Path, kind: str, body: str) -> None:
    with Journal.create(tmp_path, started()) as journal:
        with sqlite3.connect(journal.path) as connection:
            connection.execute("INSERT INTO requests VALUES (1, ?, ?)", (kind, body))
        connection.close()
        with pytest.raises(JournalDamaged):
            journal.requests_after(0)


@pytest.mark.parametrize("version", [1, 5, 12, 99])
def test_a_journal_of_another_version_is_refused_by_name(tmp_path: Path, version: int) -> None:
    path = written(tmp_path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    refusal = f"run-1.sqlite has journal version {version}, written by another version of kreassign"
    for use in (
        lambda: read_events(path),
        lambda: Journal.resume(path, "cluster-1"),
        lambda: post_request(path, lambda request: HoldRequested(5, request)),
    ):
        with pytest.raises(JournalDamaged, match=refusal):
            use()
