"""Runs on real Kafka that are killed at random moments, again and again, and carried on; also with damaged journals."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from kreassign.cli.main import kreassign
from kreassign.executor.events import Event, MovesSubmitted, SubmissionIntended
from kreassign.executor.journal import find_journals, read_events
from testbed import ClusterSpec, KafkaCluster
from testbed.fork_server import Forked
from testbed.producing import Producing
from testbed.records import verify_readable
from testbed.releases import DEFAULT, FORMER
from testbed.waiting import wait_until
from tests.real.run_processes import free_lease, start_run
from tests.real.test_run import (
    HELD,
    HELD_RATE,
    MEGABYTE,
    assignments,
    client_of,
    end_of,
    invoke,
    is_executed,
    let_go,
    loaded,
    plan_file,
    run_to_the_end,
    status,
    throttles,
    wait_for_copies,
)

pytestmark = pytest.mark.usefixtures("calm")

KILLS = 30
HOME = {0: (0, 1), 1: (1, 2), 2: (2, 0)}
AWAY = {0: (2, 1), 1: (3, 2), 2: (1, 0)}


def sent_in_vain(events: tuple[Event, ...]) -> int:
    """Number of moves sent although the journal had an answer to an earlier sending."""
    answered: set[object] = set()
    repeated = 0
    for event in events:
        if isinstance(event, SubmissionIntended):
            repeated += sum(partition in answered for partition in event.partitions)
        elif isinstance(event, MovesSubmitted):
            answered |= set(event.accepted)
    return repeated


def kill_within(process: Forked, seconds: float) -> bool:
    """True if the run was still at work when it was killed."""
    try:
        process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return True
    return False


@pytest.mark.timeout(900)
@pytest.mark.parametrize("release", [DEFAULT, FORMER])
def test_runs_killed_thirty_times_under_traffic_come_to_the_same_end(
    start_cluster: Callable[[ClusterSpec], KafkaCluster], topic_name: str, tmp_path: Path, release: str
) -> None:
    cluster = start_cluster(ClusterSpec(version=release, brokers=4))
    acknowledged = loaded(cluster, topic_name, list(HOME.values()), 2 * MEGABYTE)
    with Producing(cluster.bootstrap_servers, topic_name, partitions=len(HOME), records_per_s=10) as producing:
        kill_runs(cluster, topic_name, tmp_path)
    verify_readable(cluster.bootstrap_servers, acknowledged)
    verify_readable(cluster.bootstrap_servers, producing.ledger)


def kill_runs(kafka: KafkaCluster, topic_name: str, tmp_path: Path) -> None:
    """Move partitions there and back, every run killed again and again, until there were `KILLS`."""
    moments, kills, legs = random.Random(7), 0, 0
    while kills < KILLS:
        folder = tmp_path / str(legs)
        folder.mkdir()
        target = AWAY if legs % 2 == 0 else HOME
        arguments: tuple[object, ...] = (plan_file(folder, topic_name, target), "--throttle", "700kB/s")
        is_over = False
        while not is_over and kills < KILLS:
            is_killed = kill_within(start_run(kafka, folder, *arguments), moments.uniform(0.6, 2.5))
            kills += is_killed
            left = status(folder)
            if left is not None:
                arguments = ("resume", left["run_id"])
            # It may have been killed after its end.
            is_over = not is_killed or (left is not None and left["state"] == "done")
            if is_killed and (left is None or is_over):
                # It holds the lease for as long as a session lasts, and no other process takes its place.
                with client_of(kafka) as client:
                    free_lease(client)
        if not is_over:
            run_to_the_end(kafka, folder, *arguments)
        found = status(folder)
        assert found is not None
        assert (found["state"], found["throttle_residue"]) == ("done", [])
        assert assignments(kafka, topic_name) == target
        assert throttles(kafka, topic_name) == {}
        (journal,) = find_journals(folder / "state")
        events = read_events(journal)
        assert sent_in_vain(events) == 0
        legs += 1


# --- damaged journals ---


PAGE_BYTES = 4096


def place_of_an_event(content: bytes) -> int:
    """Much of a short journal is free, and damage there means nothing."""
    return content.index(b"SubmissionIntended")


def flipped_byte(content: bytes) -> bytes:
    place = place_of_an_event(content)
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


def zeros_on_a_page(content: bytes) -> bytes:
    start = place_of_an_event(content) // PAGE_BYTES * PAGE_BYTES
    return content[:start] + bytes(PAGE_BYTES) + content[start + PAGE_BYTES :]


def newer_schema(content: bytes) -> bytes:
    """SQLite's user version, bytes 60 to 63 of the header."""
    return content[:60] + (99).to_bytes(4, "big") + content[64:]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "a flipped byte": flipped_byte,
    "cut to its half": lambda content: content[: len(content) // 2],
    "zeros on a page": zeros_on_a_page,
    "of a later version": newer_schema,
}


def refused_by_name(cluster: KafkaCluster, journal: Path, another_plan: Path) -> None:
    """All who need the journal say that it cannot be read; nobody begins anything."""
    state = ("--state-dir", journal.parent.parent)
    for words in (("resume", journal.stem), ("run", "--yes", another_plan, "--measure-for", 0)):
        refused = invoke(cluster, *words, *state)
        assert refused.exit_code not in {0, 1}, refused.output
        assert journal.name in refused.stderr, (words, refused.output)
    listed = json.loads(CliRunner().invoke(kreassign, ["status", "--all", *map(str, state), "--format", "json"]).stdout)
    assert [one["journal"] for one in listed["unreadable"]] == [str(journal)]
    told = invoke(cluster, "doctor", *state)
    assert (told.exit_code, journal.name in told.stdout) == (1, True), told.output


def test_a_killed_run_with_a_damaged_journal_ends_after_its_repair(
    kafka: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    acknowledged = loaded(kafka, topic_name, [(0, 1), (0, 1)], HELD, MEGABYTE)
    (tmp_path / "other").mkdir()
    another_plan = plan_file(tmp_path / "other", topic_name, {1: (2, 1)})
    process = start_run(kafka, tmp_path, plan_file(tmp_path, topic_name, {0: (2, 1)}), "--throttle", HELD_RATE)
    run_id = wait_for_copies(tmp_path)
    process.kill()
    process.communicate()
    (journal,) = find_journals(tmp_path / "state")
    kept = shutil.copytree(journal.parent, tmp_path / "kept")

    def put_back() -> None:
        shutil.rmtree(journal.parent)
        shutil.copytree(kept, journal.parent)

    with closing(sqlite3.connect(journal)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    whole = journal.read_bytes()
    for damage in DAMAGES.values():
        journal.write_bytes(damage(whole))
        refused_by_name(kafka, journal, another_plan)
    put_back()
    log = journal.with_name(journal.name + "-wal")
    log.write_bytes(log.read_bytes()[: log.stat().st_size // 2])
    # As after a loss of power: read as far as it is whole, or refused as all others.
    resumed = start_run(kafka, tmp_path, "resume", run_id)
    wait_until(lambda: resumed.poll() is not None or is_executed(tmp_path), what="the run resumed or refused")
    if resumed.poll() is not None:
        _, errors = resumed.communicate()
        assert journal.name in errors
        put_back()
        resumed = start_run(kafka, tmp_path, "resume", run_id)
    let_go(tmp_path)
    end_of(resumed)
    assert assignments(kafka, topic_name) == {0: (2, 1), 1: (0, 1)}
    assert throttles(kafka, topic_name) == {}
    verify_readable(kafka.bootstrap_servers, acknowledged)
