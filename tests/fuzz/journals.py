"""Journals of runs, logs of twins: cut off anywhere, flipped, with rows of others, of other versions, or enormous."""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
import sqlite3
import zlib
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from random import Random

from kreassign.errors import DataError, InputError
from kreassign.executor.journal import Journal
from kreassign.executor.journal.file import chained, unstored
from kreassign.model import TopicPartition
from kreassign.operations.run_journals import kept_facts_path
from kreassign.twin.metadata import BrokerFenced, PartitionChanged, TopicCreated
from kreassign.twin.store import SIGNATURE, FileLog, _framed, to_json
from tests.campaigns.campaign import BrokenError
from tests.executor.run_events import WHOLE, started
from tests.executor.twin_runs import RATE, TwinRig
from tests.fuzz.commands import command
from tests.fuzz.documents import JSON, changed, damaged, tree
from tests.fuzz.target import Attempt, Target
from tests.model.test_odd_fields import FACTS

ASKED = (
    "status", "status --all", "status run-1", "status run-1 -o json", "report --run run-1 --out {odd}.html",
    "pause run-1",
)  # fmt: skip
BODIES = (None, 7, 1.5, b"", b"\xff", "", "null", "[]", "7", '"x"', "[" * 100_000, "{}")
KINDS = ("HoldRequested", "UneventfulPolls", "Nobody", "", "\x1b[2J", b"x")
TWICE = "INSERT OR IGNORE INTO events SELECT sequence + 1000, at_ms, kind, body, digest FROM events"
ALL = "SELECT sequence, kind, body FROM events ORDER BY sequence"


def whole_journal(state: Path) -> Path:
    """A journal of run-1 on cluster-1 from its beginning to its end."""
    with Journal.create(state, started()) as journal:
        for event in WHOLE[1:]:
            journal.append(event)
        return journal.path


def _whole(folder: Path) -> dict[str, Path]:
    """Journals that are whole, with the folder of their cluster: that of a run, one with snapshots, and old ones."""
    found = {"short": whole_journal(folder / "short")}
    rig = TwinRig(folder / "long", [[0, 1], [1, 0]])
    rig.run(rig.prepared({0: (2, 1), 1: (3, 0)}, throttle=RATE))
    found["long"] = rig.path()
    return found


def _rechained(connection: sqlite3.Connection) -> None:
    """Make the digests those of the rows, so that what is odd in them is read."""
    digest = ""
    for sequence, kind, body in connection.execute(
        "SELECT sequence, kind, body FROM events ORDER BY sequence"
    ).fetchall():
        try:
            digest = chained(digest, kind, body)
        except (ValueError, MemoryError):
            return
        connection.execute("UPDATE events SET digest = ? WHERE sequence = ?", (digest, sequence))


def _odd_rows(path: Path, chance: Random) -> None:
    """Rows of the table with other fields, kinds, times and orders, mostly under digests that fit."""
    with closing(sqlite3.connect(path)) as connection, connection:
        rows = connection.execute(ALL).fetchall()
        sequence, kind, body = chance.choice(rows)
        other, other_kind, other_body = chance.choice(rows)

        def put(new: object, at: int = sequence) -> None:
            connection.execute("UPDATE events SET body = ? WHERE sequence = ?", (new, at))

        def odd() -> str:
            return changed(tree(json.loads(unstored(body))), JSON, chance).decode("utf-8", "replace")

        choices: tuple[Callable[[], object], ...] = (
            lambda: put(odd()), lambda: put(odd()), lambda: put(odd()), lambda: put(odd()),
            lambda: put(zlib.compress(odd().encode())),
            lambda: put(damaged(zlib.compress(odd().encode()), chance)),
            lambda: put(chance.choice(BODIES)),
            lambda: (put(other_body), put(body, other)),
            lambda: connection.execute("UPDATE events SET kind = ? WHERE sequence = ?",
                                       (chance.choice((other_kind, *KINDS)), sequence)),
            lambda: connection.execute("UPDATE events SET at_ms = ? WHERE sequence = ?",
                                       (chance.choice((-1, 2**62, "x", 1.5)), sequence)),
            lambda: connection.execute("DELETE FROM events WHERE sequence = ?", (sequence,)),
            lambda: connection.execute(TWICE),
            lambda: connection.execute(f"PRAGMA user_version = {chance.choice((0, 1, 2, 3, 4, 5, 6, 7, 99, -1))}"),
            lambda: connection.execute("ALTER TABLE events RENAME COLUMN body TO text"),
            lambda: connection.execute("INSERT OR IGNORE INTO requests VALUES (?, ?, ?)",
                                       (chance.choice((-1, 1, 2**62)), chance.choice((kind, *KINDS)), odd())),
            lambda: put(zlib.compress(bytes(20_000_000))),
        )  # fmt: skip
        with suppress(sqlite3.Error):  # a column may have another name by then
            for _ in range(chance.choice((1, 1, 2))):
                chance.choice(choices)()
            if chance.random() < 0.85:
                _rechained(connection)


def _snapshots(path: Path, chance: Random) -> None:
    """The snapshots in a journal: other texts under a digest that fits, and a bomb."""
    with closing(sqlite3.connect(path)) as connection, connection:
        try:
            rows = connection.execute("SELECT sequence, body FROM snapshots").fetchall()
        except sqlite3.Error:
            return
        for sequence, body in rows:
            text = zlib.decompress(body).decode()
            new = zlib.compress(changed(tree(json.loads(text)), JSON, chance))
            if chance.random() < 0.1:
                new = zlib.compress(bytes(20_000_000))
            digest = hashlib.sha256(new).hexdigest()
            connection.execute(
                "UPDATE snapshots SET body = ?, body_digest = ? WHERE sequence = ?", (new, digest, sequence)
            )


def _journal(
    change: Callable[[Path, Random], None], names: tuple[str, ...] = ()
) -> Callable[[Path, ExitStack], Attempt]:
    def opened(folder: Path, stack: ExitStack) -> Attempt:
        whole = _whole(folder / "whole")
        state = folder / "state"

        def attempt(chance: Random) -> bool:
            shutil.rmtree(state, ignore_errors=True)
            name = chance.choice(names or tuple(whole))
            path = state / whole[name].parent.name / "run-1.sqlite"
            path.parent.mkdir(parents=True)
            shutil.copy(whole[name], path)
            change(path, chance)
            words = chance.choice(ASKED).format(odd=path).split()
            try:
                return command([*words, "--state-dir", str(state)], path, also=(1, 3, 5))
            finally:
                for page in state.rglob("*.html"):
                    page.unlink()

        return attempt

    return opened


def _damaged_bytes(path: Path, chance: Random) -> None:
    content = path.read_bytes()
    kind = chance.random()
    if kind < 0.3:
        path.write_bytes(content[: chance.randrange(len(content))])
    elif kind < 0.6:
        at = chance.randrange(min(len(content), chance.choice((100, 20_000, len(content)))))
        path.write_bytes(content[:at] + bytes([content[at] ^ 1 << chance.randrange(8)]) + content[at + 1 :])
    else:
        path.write_bytes(damaged(content, chance))


def _logs(folder: Path, stack: ExitStack) -> Attempt:
    """The metadata log of a twin: cut off, flipped, records of others under checksums that fit."""
    path = folder / "metadata.log"
    log = FileLog(path)
    for decision in (TopicCreated("t", "id"),), (PartitionChanged(TopicPartition("t", 0), isr=(1, 2)), BrokerFenced(3)):
        log.append(decision)
    log.close()
    whole = path.read_bytes()

    def attempt(chance: Random) -> bool:
        path.write_bytes(damaged(whole, chance) if chance.random() < 0.7 else _forged(chance))
        try:
            again = FileLog(path)
            try:
                list(again.read())
            finally:
                again.close()
        except (DataError, InputError) as error:
            if path.name not in str(error):
                raise BrokenError(f"{error} does not name the file") from error
            return False
        return True

    return attempt


def _forged(chance: Random) -> bytes:
    text = changed(tree(json.loads(to_json(PartitionChanged(TopicPartition("t", 0), isr=(1, 2))))), JSON, chance)
    return SIGNATURE + _framed(b"." + text)


def _kept_facts(folder: Path, stack: ExitStack) -> Attempt:
    """Facts beside a journal, in gzip, when the run is reported."""
    state = folder / "state"
    shape, path = tree(FACTS), kept_facts_path(whole_journal(state))

    def attempt(chance: Random) -> bool:
        whole = changed(shape, JSON, chance) if chance.random() < 0.6 else json.dumps(FACTS).encode()
        content = gzip.compress(whole, mtime=0)
        path.write_bytes(damaged(content, chance) if chance.random() < 0.5 else content)
        words = ["report", "--run", "run-1", "--out", str(folder / "page.html"), "--state-dir", str(state)]
        return command(words, path)

    return attempt


JOURNALS = (
    Target("journals, bytes damaged", _journal(_damaged_bytes)),
    Target("journals, rows changed", _journal(_odd_rows), quick=8),
    Target("journals, snapshots of runs changed", _journal(_snapshots, ("long",)), quick=6),
    Target("facts kept beside a journal", _kept_facts, quick=6),
    Target("metadata logs of twins", _logs),
)
