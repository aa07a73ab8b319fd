"""A journal that an earlier version wrote is read, shown and resumed; one of an unknown version is refused by name."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import get_args

import pytest

from kreassign.errors import JournalDamaged
from kreassign.executor.events import (
    HealthObserved,
    HoldRequested,
    ReleaseRequested,
    Request,
    StopRequested,
    SubmissionIntended,
)
from kreassign.executor.guards import LogDirSpace
from kreassign.executor.history.run_history import read_history
from kreassign.executor.journal import Journal, JournalReader, journal_path, post_request, read_events
from kreassign.executor.journal.file import KINDS, event_from_json
from kreassign.executor.journal.migration import CURRENT_VERSION, EVENTS_OF_2, migrated
from kreassign.executor.scheduling import Order
from kreassign.executor.throttle_rates import AdaptiveThrottle, BrokerCapacity, BrokerRate, ThrottleRates
from tests.executor.twin_runs import TwinRig

DUMPS = Path(__file__).with_name("fixtures")


@pytest.fixture(params=[2, 3])
def old_version(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def old_journal(tmp_path: Path, old_version: int) -> Path:
    path = journal_path(tmp_path, "twin", "run-1")
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript((DUMPS / f"journal-v{old_version}.sql").read_text(encoding="utf-8"))
    return path


def version(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


def rewind(path: Path, sequence: int) -> None:
    """Let the run have died after this event, before anyone asked anything of it."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DELETE FROM events WHERE sequence > ?", (sequence,))
        connection.execute("DELETE FROM requests")
        connection.commit()


def test_an_old_journal_is_shown_as_it_was(old_journal: Path, old_version: int) -> None:
    found = read_history(old_journal)
    assert (found.run_id, found.state) == ("run-1", "moving")
    assert [move.status for move in found.moves] == ["complete", "complete", "complete", "moving"]
    capacities = AdaptiveThrottle(5_000_000, (BrokerCapacity(3, 4_000_000),), 500_000)
    assert found.rates == ThrottleRates(None, (BrokerRate(3, 800_000),), capacities)
    assert (found.pace.order, found.pace.caps.cluster.moves, found.pace.is_eager) == (Order.NAME, 4, True)
    assert "leader.replication.throttled.rate of broker 0 is still '5000000'" in found.throttle_residue[0]
    assert "brokers [4] were there when the run began" in found.problems[1]
    assert version(old_journal) == old_version


def test_an_old_journal_is_resumed_in_the_words_of_today(tmp_path: Path, old_journal: Path) -> None:
    rewind(old_journal, 9)  # the moves were announced, and nobody knows whether they were sent
    rig = TwinRig(tmp_path, [[0, 1], [1, 0], [0, 1], [2, 3]])
    found = rig.resume()
    assert found.state == "done", found.problems
    assert rig.replicas == {0: (2, 1), 1: (1, 3), 2: (3, 1), 3: (2, 4)}
    assert rig.throttles == {}
    assert version(old_journal) == CURRENT_VERSION
    assert read_history(old_journal) == found


def test_resuming_rewrites_the_journal_and_loses_nothing(old_journal: Path) -> None:
    before = read_events(old_journal)
    journal, events = Journal.resume(old_journal, "twin")
    with journal:
        assert journal.requests_after(0) == ()  # they were asked of another process
        journal.append(StopRequested(50_000))
    with closing(sqlite3.connect(old_journal)) as connection:
        rewritten = [event_from_json(*row) for row in connection.execute("SELECT kind, body FROM requests")]
    assert len(rewritten) == 5
    assert events == before
    assert read_events(old_journal) == (*before, StopRequested(50_000))


def test_a_reader_goes_on_where_it_was_when_the_journal_is_rewritten(old_journal: Path) -> None:
    reader = JournalReader(old_journal)
    assert len(reader.new_events()) == 58
    with Journal.resume(old_journal, "twin")[0] as journal:
        journal.append(StopRequested(50_000))
    assert reader.new_events() == (StopRequested(50_000),)


def test_a_request_to_an_old_journal_rewrites_it_first(old_journal: Path) -> None:
    assert post_request(old_journal, lambda number: ReleaseRequested(5, number)) == ReleaseRequested(5, 6)
    assert version(old_journal) == CURRENT_VERSION
    assert len(read_events(old_journal)) == 58


@pytest.mark.parametrize(("number", "which"), [(99, "a newer"), (1, "an unsupported earlier")])
def test_a_journal_of_an_unknown_version_is_refused_by_name(old_journal: Path, number: int, which: str) -> None:
    with closing(sqlite3.connect(old_journal)) as connection:
        connection.execute(f"PRAGMA user_version = {number}")
    refusal = f"journal version {number}, written by {which} version of kreassign; this one reads versions 2 to 6"
    with pytest.raises(JournalDamaged, match=refusal):
        read_events(old_journal)
    with pytest.raises(JournalDamaged, match=refusal):
        Journal.resume(old_journal, "twin")
    with pytest.raises(JournalDamaged, match=refusal):
        post_request(old_journal, lambda request: HoldRequested(5, request))


def test_every_name_of_version_2_leads_to_an_event_of_today() -> None:
    assert set(EVENTS_OF_2.values()) <= set(KINDS)
    assert not set(EVENTS_OF_2) & set(KINDS)
    assert {kind.__name__ for kind in get_args(Request)} <= set(KINDS)


@pytest.mark.parametrize(("old", "new"), [("gone", "deleted"), ("returned", "reordered"), ("elsewhere", "diverged")])
def test_placements_are_renamed(old: str, new: str) -> None:
    sighting = {"topic_partition": ["t", 0], "whereabouts": old, "replicas": [], "isr": [], "leader": -1}
    kind, body = migrated(2, "ClusterSeen", json.dumps({"at_ms": 1, "sightings": [sighting]}))
    event = event_from_json(kind, body)
    assert event.observations[0].placement == new


def test_the_free_space_of_version_3_is_still_known() -> None:
    space = {"broker": 1, "path": "/d", "total_bytes": 9, "usable_bytes": 5}
    kind, body = migrated(3, "HealthObserved", json.dumps({"at_ms": 1, "health": {"live": [1], "room": [space]}}))
    event = event_from_json(kind, body)
    assert isinstance(event, HealthObserved)
    assert event.health.log_dir_space == (LogDirSpace(1, "/d", 9, 5),)


def test_a_journal_of_version_4_is_shown_and_resumed(tmp_path: Path) -> None:
    path = journal_path(tmp_path, "twin", "run-1")
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript((DUMPS / "journal-v4.sql").read_text(encoding="utf-8"))
    found = read_history(path)
    assert (found.state, len(found.throttle_residue), found.plan_id, found.operators) == ("paused", 9, "", ())
    events = read_events(path)
    sent = [number for number, event in enumerate(events) if isinstance(event, SubmissionIntended)]
    rewind(path, sent[-1] + 1)  # nobody knows whether the last moves were sent
    rig = TwinRig(tmp_path, [[2, 1], [1, 3], [0, 1], [2, 3]])
    assert rig.resume().state == "done"
    assert (rig.replicas, rig.throttles) == ({0: (2, 1), 1: (1, 3), 2: (3, 1), 3: (2, 4)}, {})
    assert version(path) == CURRENT_VERSION
