"""A journal that is damaged is refused by name or read up to where it is whole; nothing else ever comes of it."""

from __future__ import annotations

import hashlib
import random
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import zlib
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest

from kreassign.clock import SYSTEM_CLOCK
from kreassign.errors import ExecutionError, InputError, JournalDamaged, JournalLocked
from kreassign.executor.events import Event, HoldRequested, StopRequested, ThrottleIntended
from kreassign.executor.history import run_history
from kreassign.executor.journal import (
    Journal,
    JournalReader,
    active_run,
    cluster_journals,
    find_journals,
    last_event,
    post_request,
    read_events,
    set_aside,
    stored_snapshots,
)
from kreassign.executor.journal.file import chained, decompressed, first_event, unstored
from kreassign.executor.journal.writer import LOOK_EVERY_S
from kreassign.executor.progress import ProgressMeter
from kreassign.executor.state import Machine
from kreassign.operations.run_journals import RunFollower, RunList, status, status_and_progress, status_or_problem
from tests.executor.deaths import Died, Dying
from tests.executor.journal.test_journal import written
from tests.executor.run_events import WHOLE, started
from tests.executor.twin_runs import RATE, TwinRig

AWAY = {0: (2, 1), 1: (3, 0)}
ROOM = "Make room on its disk or in the quota of its user; what was written is kept"


def half(content: bytes) -> bytes:
    return content[: len(content) // 2]


def zeros_in_the_middle(content: bytes) -> bytes:
    third = len(content) // 3
    return content[:third] + bytes(third) + content[2 * third :]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty file": lambda _: b"",
    "half a file": half,
    "zeros in the middle": zeros_in_the_middle,
    "zeros at the beginning": lambda content: bytes(4096) + content[4096:],
    "another file": lambda _: b"once upon a time " * 500,
    "cut by a byte": lambda content: content[:-1],
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_file_is_refused_by_its_name_whatever_is_asked_of_it(
    tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    path = written(tmp_path)
    path.write_bytes(damage(path.read_bytes()))
    questions: tuple[Callable[[], object], ...] = (
        lambda: read_events(path),
        lambda: JournalReader(path).new_events(),
        lambda: run_history.read_history(path),
        lambda: Journal.resume(path, "cluster-1"),
    )
    for question in questions:
        with pytest.raises(JournalDamaged, match=path.name):
            question()
    assert active_run(tmp_path, "cluster-1") is None, "a refusal lets the lock go"


def with_a_snapshot_at_its_end(folder: Path) -> Path:
    """A journal of which a reader needs no event but for the snapshot."""
    path = written(folder, WHOLE[0])
    machine = Machine()
    machine.replay(WHOLE[0])
    with Journal.resume(path, "cluster-1")[0] as journal:
        for event in WHOLE[1:]:
            journal.append(event)
            machine.replay(event)
        meter = ProgressMeter(machine.view)
        journal.keep_snapshot(machine.snapshot(meter.state()))
    assert run_history.latest_start(path).position.sequence == len(WHOLE)
    return path


def changed_row(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE events SET body = body || ' ' WHERE sequence = 2")


def lost_row(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM events WHERE sequence = 3")


def zeros_in_a_page(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:16384] + bytes(16384) + content[2 * 16384 :])


def lost_table(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DROP TABLE requests")


@pytest.mark.parametrize("damage", [changed_row, lost_row, lost_table, zeros_in_a_page])
def test_damage_that_a_snapshot_passes_over_is_told_by_all(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    """The same sentence in status, watch, list, resume, cancel and rollback, with what to do."""
    path = with_a_snapshot_at_its_end(tmp_path)
    damage(path)
    said = set()
    for question in (
        run_history.read_history,
        run_history.read_view,
        run_history.read_progress,
        run_history.latest_start,
        status,
        status_and_progress,
        RunFollower,
    ):
        with pytest.raises(JournalDamaged) as raised:
            question(path)
        said.add(str(raised.value))
    (sentence,) = said
    assert str(path) in sentence
    assert f"kreassign forget {path}" in sentence
    listed = status_or_problem(path)
    assert isinstance(listed, run_history.UnreadableJournal)
    assert f"{listed}. {listed.remedy}" == sentence
    (summary,) = RunList((tmp_path,)).newest(5)
    assert (summary.state, summary.problem) == ("unreadable", sentence)


def test_a_copy_or_a_broken_link_beside_a_journal_is_told_by_its_name(tmp_path: Path) -> None:
    """A copy of the journal of a paused run would stand for a run that nobody can resume or end."""
    rig = TwinRig(tmp_path, [[0, 1], [1, 0]])
    path = left_journal(rig)
    copy, link = path.with_name("run-1-backup.sqlite"), path.with_name("run-2.sqlite")
    copy.write_bytes(path.read_bytes())
    link.symlink_to("unmounted")
    problems = [
        str(found)
        for found in run_history.left_behind(rig.state_dir, "twin")
        if isinstance(found, run_history.UnreadableJournal)
    ]
    assert problems == [
        f"{copy} has another name than the journal of its run run-1: rename it if it is no copy",
        f"{link} is no file, and no link to one",
    ]
    states = {summary.run_id: summary.state for summary in RunList((rig.state_dir,)).newest(5)}
    assert states == {"run-1": "paused", copy.stem: "unreadable", "run-2": "unreadable"}


@pytest.mark.parametrize("bytes_tried", [100, pytest.param(300, marks=pytest.mark.thorough)])
def test_a_flipped_byte_leaves_the_events_intact_or_is_refused(tmp_path: Path, bytes_tried: int) -> None:
    path = written(tmp_path)
    content, chance = path.read_bytes(), random.Random(14)
    refused, half = 0, bytes_tried // 2
    used = [place for place, byte in enumerate(content) if byte]
    for place in (*chance.sample(range(len(content)), half), *chance.sample(used, half)):
        path.write_bytes(content[:place] + bytes([content[place] ^ chance.randrange(1, 256)]) + content[place + 1 :])
        found = read_or_refused(path)
        assert found in {WHOLE, REFUSED}, place
        refused += found == REFUSED
        for question in (last_event, lambda path: post_request(path, lambda number: HoldRequested(5, number))):
            with suppress(JournalDamaged):
                question(path)
    assert refused > bytes_tried // 4, "half of the places are among the bytes of this short journal that are used"


REFUSED = "refused"


def read_or_refused(path: Path) -> tuple[Event, ...] | str:
    """The events, or that the journal was refused by its name."""
    try:
        return read_events(path)
    except JournalDamaged as error:
        return REFUSED if path.name in str(error) else str(error)


@pytest.mark.thorough
def test_a_run_whose_log_is_cut_is_carried_on_to_the_same_end_or_refused(tmp_path: Path) -> None:
    """The file itself keeps the essentials: the run's throttle does not count as foreign and is not left behind."""
    chance, ends = random.Random(7), []
    for number in range(12):
        rig = TwinRig(tmp_path / str(number), [[0, 1], [1, 0]])
        die_and_lose_the_log(rig, tmp_path / f"{number} copy", row=6 + number, keep=chance.random())
        if read_or_refused(rig.path()) == REFUSED:
            ends.append(REFUSED)
            continue
        found = rig.resume()
        assert (found.state, found.problems, found.throttle_residue) == ("done", (), ()), number
        assert (rig.replicas, rig.throttles) == (AWAY, {}), number
        ends.append("done")
    assert ends.count("done") >= 10


def die_and_lose_the_log(rig: TwinRig, copy: Path, *, row: int, keep: float) -> None:
    """Let the run die at this row of its journal with only a part of the write-ahead log."""
    begun = rig.prepared(AWAY, throttle=RATE)
    with Journal.create(rig.state_dir, begun) as journal:
        with pytest.raises(Died):
            rig.new_runner(Dying(journal, row)).start(begun)
        shutil.copytree(journal.path.parent, copy)  # while the log is there: closing would bring it home
    path = rig.path()
    shutil.copy(copy / path.name, path)
    log = copy / f"{path.name}-wal"
    content = log.read_bytes()
    path.with_name(log.name).write_bytes(content[: round(keep * len(content))])


def test_what_must_not_be_forgotten_is_in_the_file_itself_at_once(tmp_path: Path) -> None:
    intended = next(event for event in WHOLE if isinstance(event, ThrottleIntended))
    with Journal.create(tmp_path, started()) as journal:
        for event in WHOLE[1 : WHOLE.index(intended) + 1]:
            journal.append(event)
        alone = tmp_path / "alone.sqlite"
        shutil.copy(journal.path, alone)
    assert read_events(alone)[-1] == intended


def left_journal(rig: TwinRig) -> Path:
    """Journal of a run that was left with its throttle set."""
    rig.stop_after(4)
    rig.run(rig.prepared(AWAY, throttle=RATE // 2))
    return rig.path()


@pytest.mark.parametrize("damage", [
    "PRAGMA user_version = 99",
    "PRAGMA user_version = 1",
    "DELETE FROM events WHERE sequence = 3",
    "UPDATE events SET body = replace(body, 'run-1', 'run-2') WHERE sequence = 1",
    "DROP TABLE events",
])  # fmt: skip
def test_an_unreadable_interrupted_run_blocks_until_set_aside(tmp_path: Path, damage: str) -> None:
    rig = TwinRig(tmp_path, [[0, 1], [1, 0]])
    path = left_journal(rig)
    with sqlite3.connect(path) as connection:
        connection.execute(damage)
    connection.close()
    (left,) = run_history.left_behind(rig.state_dir, rig.twin.cluster_id)
    assert isinstance(left, run_history.UnreadableJournal)
    with pytest.raises(JournalDamaged, match=rf"cannot be read: .*{path.name}.*kreassign forget {path}"):
        run_history.refuse_if_interrupted_runs(rig.state_dir, rig.twin.cluster_id)
    run_history.refuse_if_interrupted_runs(rig.state_dir, "another")
    kept = set_aside(path)
    run_history.refuse_if_interrupted_runs(rig.state_dir, rig.twin.cluster_id)
    assert kept.exists()
    assert find_journals(rig.state_dir) == cluster_journals(rig.state_dir, rig.twin.cluster_id) == ()


def test_the_journal_of_a_run_that_goes_on_is_not_set_aside(tmp_path: Path) -> None:
    with Journal.create(tmp_path, started()) as journal:
        with pytest.raises(InputError, match="run run-1 is active"):
            set_aside(journal.path)
        journal.append(StopRequested(5))
    with pytest.raises(InputError, match="there is no journal"):
        set_aside(tmp_path / "cluster-1" / "run-2.sqlite")


def test_events_out_of_order_are_refused_though_rows_are_whole(tmp_path: Path) -> None:
    path = written(tmp_path, WHOLE[0], WHOLE[-1])
    with pytest.raises(JournalDamaged, match=r"journal of run run-1 tells what cannot be \(.*Verified cannot happen"):
        run_history.read_history(path)


def printed_on_a_small_disk(path: Path, program: str) -> str:
    """Text that a program prints, given a path, where files have room for 5,000 bytes."""

    def small_disk() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, 5_000))

    return run_program(path, program, small_disk)


def run_program(path: Path, program: str, before: Callable[[], None] | None = None) -> str:
    """Text that a program prints, given a path, in a process of its own, in which something happens first."""
    command = [sys.executable, "-c", f"import sys; from pathlib import Path\n{program}", str(path)]
    return subprocess.run(command, check=True, capture_output=True, text=True, preexec_fn=before).stdout


def test_a_full_disk_at_the_start_is_named_and_leaves_nothing(tmp_path: Path) -> None:
    program = (
        "from kreassign.errors import ExecutionError\n"
        "from kreassign.executor.journal import Journal\n"
        "from tests.executor.run_events import started\n"
        "try: Journal.create(Path(sys.argv[1]), started())\n"
        "except ExecutionError as error: print(error)"
    )
    printed = printed_on_a_small_disk(tmp_path, program)
    assert printed.startswith(f"the journal {tmp_path}/cluster-1/run-1.sqlite cannot be created: ")
    assert "Nothing was sent; make room or choose another --state-dir" in printed
    assert {path.name for path in (tmp_path / "cluster-1").iterdir()} <= {"lock", "holder"}


def test_a_full_disk_is_not_taken_for_damage_of_a_journal(tmp_path: Path) -> None:
    path = written(tmp_path, *WHOLE)
    program = (
        "from kreassign.errors import JournalDamaged, JournalUnreadable\n"
        "from kreassign.executor.history.run_history import read_history\n"
        "try: read_history(Path(sys.argv[1]))\n"
        "except JournalDamaged as error: print('damaged', error)\n"
        "except JournalUnreadable as error: print(error)"
    )
    printed = printed_on_a_small_disk(path, program)
    assert printed.startswith(f"{path} cannot be read: ")
    assert ROOM in printed


def test_a_journal_on_a_full_disk_is_not_set_aside(tmp_path: Path) -> None:
    path = written(tmp_path, *WHOLE)
    program = (
        "from kreassign.errors import JournalDamaged, JournalUnreadable\n"
        "from kreassign.operations.run_journals import forget_journal\n"
        "try: forget_journal(Path(sys.argv[1]))\n"
        "except JournalDamaged as error: print('damaged', error)\n"
        "except JournalUnreadable as error: print(error)"
    )
    printed = printed_on_a_small_disk(path, program)
    assert f"{path} cannot be read: " in printed
    assert ROOM in printed
    assert path.is_file()


def test_a_file_that_cannot_grow_on_a_disk_with_room_ends_a_run(tmp_path: Path) -> None:
    path = written(tmp_path, WHOLE[0])
    program = (
        "from resource import RLIMIT_FSIZE, setrlimit\n"
        "import signal\n"
        "from kreassign.errors import JournalDamaged\n"
        "from kreassign.executor.journal import Journal\n"
        "from tests.executor.run_events import WHOLE\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "journal, _ = Journal.resume(Path(sys.argv[1]), 'cluster-1')\n"
        "journal.on_lock = lambda hindrance: sys.exit(f'it waits: {hindrance}')\n"
        "setrlimit(RLIMIT_FSIZE, (4_000, 4_000))\n"
        "try: journal.append(WHOLE[1])\n"
        "except JournalDamaged as error: print(error)"
    )
    assert run_program(path, program).startswith(f"{path} cannot be written: disk I/O error. Nothing more is sent")


def test_a_run_waits_while_the_quota_of_its_user_is_used_up(tmp_path: Path) -> None:
    """The disk itself has room. Killed while it waits, it has lost nothing that was written."""
    path = written(tmp_path, WHOLE[0])
    program = (
        "from kreassign.executor.journal import Journal\n"
        "from tests.executor.journal.quota import use_up_quota\n"
        "from tests.executor.run_events import WHOLE\n"
        "journal, _ = Journal.resume(Path(sys.argv[1]), 'cluster-1')\n"
        "told = []\n"
        "def follow(hindrance):\n"
        "    told.append(hindrance)\n"
        "    if len(told) == 2: sys.exit(print(*told, sep='\\n'))\n"
        "journal.on_lock = follow\n"
        "journal.append(WHOLE[1])\n"
        "use_up_quota()\n"
        "journal.append(WHOLE[2])"
    )
    hindrance = f"{path} cannot be written: disk I/O error. {ROOM}"
    assert run_program(path, program).splitlines() == [hindrance, hindrance]
    with Journal.resume(path, "cluster-1")[0] as journal:
        for event in WHOLE[2:]:
            journal.append(event)
    assert read_events(path) == WHOLE


def test_a_run_waits_until_its_disk_has_room(tmp_path: Path) -> None:
    path = written(tmp_path, WHOLE[0])
    stops = tuple(map(StopRequested, range(5, 405)))
    told, at_s = list[str](), list[float]()
    with Journal.resume(path, "cluster-1")[0] as journal:

        def allow_pages(most: int) -> None:
            journal._connection.execute(f"PRAGMA max_page_count = {most}")

        def follow(hindrance: JournalLocked | None) -> None:
            told.append(str(hindrance))
            at_s.append(SYSTEM_CLOCK.monotonic_s())
            if len(told) == 2:
                allow_pages(1_000)

        journal.on_lock = follow
        allow_pages(1)  # SQLite takes the present number if that is larger
        for event in stops:
            journal.append(event)
    assert read_events(path) == (WHOLE[0], *stops)
    assert told[0] == told[1]
    assert told[0].startswith(f"{path} cannot be written: ")
    assert told[0].endswith(ROOM)
    assert told[2:] == ["None"]
    assert at_s[1] - at_s[0] >= LOOK_EVERY_S, "it leaves the processor to others meanwhile"


def test_a_state_directory_that_is_a_file_is_told_with_the_file(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("")
    with pytest.raises(ExecutionError, match=r"state/cluster-1/run-1\.sqlite cannot be created"):
        Journal.create(tmp_path / "state", started())


def forged(path: Path, sequence: int, body: str | bytes) -> None:
    """Another body of an event, under digests that fit."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE events SET body = ? WHERE sequence = ?", (body, sequence))
        digest = ""
        for number, kind, stored in connection.execute("SELECT sequence, kind, body FROM events").fetchall():
            digest = chained(digest, kind, stored)
            connection.execute("UPDATE events SET digest = ? WHERE sequence = ?", (digest, number))


@pytest.mark.parametrize(
    "body", ["[" * 100_000, "null", "[]", "5", '{"health": 5}', '{"at_ms": [1e999]}', ""], ids=lambda text: text[:30]
)
@pytest.mark.parametrize("kind", ["RunStarted", "HealthObserved", "UneventfulPolls"])
def test_a_row_that_no_version_wrote_is_refused_by_the_name_of_its_file(tmp_path: Path, body: str, kind: str) -> None:
    path = written(tmp_path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE events SET kind = ? WHERE sequence = 1", (kind,))
    forged(path, 1, body)
    for question in (read_events, first_event, lambda path: JournalReader(path).new_events()):
        with pytest.raises(JournalDamaged, match=path.name):
            question(path)


def test_no_more_of_a_row_is_decompressed_than_a_row_can_have(tmp_path: Path) -> None:
    bomb = zlib.compress(b" " * 3_000)
    assert decompressed(bomb, most_bytes=3_000) == " " * 3_000
    with pytest.raises(ValueError, match=r"it has more than 2 kB, which no row does"):
        decompressed(bomb, most_bytes=2_000)
    with pytest.raises(ValueError, match="it is cut off"):
        decompressed(bomb[:-8])


@pytest.mark.thorough
def test_a_snapshot_with_too_many_events_is_passed_over(tmp_path: Path) -> None:
    path, endless = written(tmp_path), zlib.compressobj()
    part = bytes(10_000_000)
    body = b"".join([*(endless.compress(part) for _ in range(51)), endless.flush()])
    with closing(sqlite3.connect(path)) as connection, connection:
        (digest,) = connection.execute("SELECT digest FROM events WHERE sequence = 1").fetchone()
        row = (1, digest, hashlib.sha256(body).hexdigest(), body)
        connection.execute("INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?)", row)
    assert stored_snapshots(path) == ()


def test_a_throttle_of_a_broker_that_is_none_is_refused_as_what_cannot_be(tmp_path: Path) -> None:
    path = written(tmp_path)
    number = next(place for place, event in enumerate(WHOLE, start=1) if isinstance(event, ThrottleIntended))
    with closing(sqlite3.connect(path)) as connection:
        (body,) = connection.execute("SELECT body FROM events WHERE sequence = ?", (number,)).fetchone()
    text = unstored(body)
    changed = re.sub(r'\[4,"\d+"\]', '[4,"nobody"]', text)
    assert changed != text
    forged(path, number, changed)
    with pytest.raises(JournalDamaged, match="journal of run run-1 tells what cannot be"):
        run_history.read_history(path)
