"""Polls that showed nothing wait for the next event, share a row, and are read back one by one."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from kreassign.errors import JournalDamaged
from kreassign.executor.events import HoldRequested, MovesObserved, PlacementState, StopRequested
from kreassign.executor.history.run_history import fold, history, read_history
from kreassign.executor.journal import Journal, JournalReader, last_event, read_events
from tests.executor.journal.test_journal import written
from tests.executor.run_events import SUBMITTED, WHOLE, look, started

QUIET = tuple(MovesObserved(6_000 + 1_000 * number, (), has_progress=number % 3 > 0) for number in range(500))


def kinds(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return [kind for (kind,) in connection.execute("SELECT kind FROM events ORDER BY sequence")]


def test_five_hundred_polls_share_a_row_and_are_read_back_one_by_one(tmp_path: Path) -> None:
    moving = look(5_000, PlacementState.MOVING, done=100)
    path = written(tmp_path, *SUBMITTED, moving, *QUIET, StopRequested(600_000))
    assert kinds(path)[-3:] == ["MovesObserved", "UneventfulPolls", "StopRequested"]
    assert read_events(path) == (*SUBMITTED, moving, *QUIET, StopRequested(600_000))
    assert read_history(path) == history(fold((*SUBMITTED, moving, *QUIET, StopRequested(600_000))))


def test_they_are_written_when_the_journal_is_closed(tmp_path: Path) -> None:
    path = written(tmp_path, *SUBMITTED, *QUIET)
    assert read_events(path) == (*SUBMITTED, *QUIET)
    assert last_event(path) == QUIET[-1]


def test_a_process_that_is_killed_has_only_not_polled_yet(tmp_path: Path) -> None:
    with Journal.create(tmp_path / "state", started()) as journal:
        for event in (*WHOLE[1 : len(SUBMITTED)], *QUIET):
            journal.append(event)
        shutil.copytree(journal.path.parent, tmp_path / "as it was")
    assert read_events(tmp_path / "as it was" / journal.path.name) == SUBMITTED


def test_the_first_of_them_after_a_request_is_written_at_once(tmp_path: Path) -> None:
    with Journal.create(tmp_path, started()) as journal:
        reader = JournalReader(journal.path)
        asked = HoldRequested(5, 1, "ann")
        for event in (*QUIET[:2], asked, *QUIET[2:5]):
            journal.append(event)
        assert reader.new_events() == (started(), *QUIET[:2], asked, QUIET[2])


def test_a_reader_goes_on_after_such_a_row(tmp_path: Path) -> None:
    with Journal.create(tmp_path, started()) as journal:
        reader = JournalReader(journal.path)
        assert reader.new_events() == (started(),)
        for event in QUIET:
            journal.append(event)
        assert reader.new_events() == ()
        journal.append(StopRequested(5))
        assert reader.new_events() == (*QUIET, StopRequested(5))
        journal.append(StopRequested(6))
        assert reader.new_events() == (StopRequested(6),)


@pytest.mark.parametrize("body", ["{}", "[]", '{"at_ms":[1],"has_progress":[]}', '{"at_ms":["x"],"has_progress":[1]}'])
def test_a_row_that_is_none_is_refused(tmp_path: Path, body: str) -> None:
    path = written(tmp_path, started())
    with Journal.resume(path, "cluster-1")[0] as journal:
        journal._write(1, "UneventfulPolls", body)
    with pytest.raises(JournalDamaged, match="cannot be understood at event 2"):
        read_events(path)


def test_long_rows_are_compressed_and_a_damaged_one_is_refused(tmp_path: Path) -> None:
    many = look(5_000, PlacementState.MOVING, *started().moves * 10, done=100)
    path = written(tmp_path, *SUBMITTED, many)
    with closing(sqlite3.connect(path)) as connection:
        ((kind, size),) = connection.execute(
            "SELECT typeof(body), length(body) FROM events ORDER BY sequence DESC LIMIT 1"
        ).fetchall()
        assert (kind, size < 500) == ("blob", True)
        assert read_events(path) == (*SUBMITTED, many)
        connection.execute(f"UPDATE events SET body = substr(body, 1, 99) WHERE sequence = {len(SUBMITTED) + 1}")
        connection.commit()
    with pytest.raises(JournalDamaged, match=f"is damaged at event {len(SUBMITTED) + 1}"):
        read_events(path)
