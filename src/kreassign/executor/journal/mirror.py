"""Keep a journal in a second place, from which another host resumes its run when the first is lost.

The mirror of a journal is a row of entries that are never changed, each with the rows of some consecutive events:

    <cluster id>/<run id>/<first event / 1000>/<first event>-<digest of the content>

The decisions of an autopilot are kept in the same way, in a folder whose name no run can have (`OWN`).

A place (`Place`) keeps them: a folder, a bucket, or a topic. All it must do is store a whole entry under a new name,
and show it to any reader from then on. The rest follows from names and the chain of digests that rows have:

- an entry whose content does not match its name is damaged; events that no entry has are a gap; both are refused;
- after an entry is stored, names are listed: if another process stored one that begins with the same event, or with a
  later one, this one stops, and takes its own back unless the other went on from there. At most one of two processes
  finds itself alone, and only that one goes on. So a process that was replaced while it was suspended sends nothing
  more, also where the cluster keeps no lease;
- a place that does not show earlier entries any more is not the same (a mount that is gone, a bucket that was emptied):
  it confirms nothing;
- if both stored theirs and died before either was taken back, the one that is continued counts. Where neither is, the
  mirror is refused.

What cannot be seen is a mirror that lost its latest entries as a whole, as a copy that is older.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol
from urllib.parse import unquote

from kreassign.clock import Clock
from kreassign.errors import JournalDamaged, JournalTaken, MirrorUnavailable, machine_reason
from kreassign.executor.journal.file import BEGINNING, VERSION, Position, Row, chained, decompressed
from kreassign.executor.journal.folder import (
    cluster_folder,
    journal_path,
    make_file,
    make_folder,
    rename_file,
    sync_folder,
)
from kreassign.model.text import signed_number

ENTRY_BYTES = 400_000
"""Rows of more bytes go into several entries: brokers take messages of 1 MB by default (max.message.bytes)."""
RETRY_S = 1.0
"""Pause after a place did not confirm an entry."""
_IN_ONE_FOLDER = 1_000


class Place(Protocol):
    """Place where mirrors are kept. Every method raises MirrorUnavailable; `str` is how operators write the place."""

    def put(self, name: str, content: bytes) -> None:
        """Store an entry; when this returns, it survives what the place survives, and every reader has it."""
        ...

    def names(self, folder: str) -> list[str]:
        """Names right in a folder, without it, of entries and folders, in any order; none if there is no such."""
        ...

    def get(self, name: str) -> bytes:
        """Content of an entry."""
        ...

    def remove(self, name: str) -> None:
        """Take an entry back."""
        ...


class FolderPlace:
    """A folder that several hosts have, as of NFS. An entry is renamed when it is complete and on disk."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __str__(self) -> str:
        return str(self._folder)

    def put(self, name: str, content: bytes) -> None:
        """Write the file and the names of it and its folders to disk."""
        with self._told():
            if not self._folder.is_dir():  # A mount that is gone must not be replaced by a folder of this host.
                raise FileNotFoundError(f"there is no folder {self._folder}")
            path = self._folder / name
            make_folder(path.parent)
            unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
            try:
                make_file(unfinished)
                with unfinished.open("wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
                rename_file(unfinished, path)
            except BaseException:
                unfinished.unlink(missing_ok=True)
                self._prune(path)
                raise

    def names(self, folder: str) -> list[str]:
        """Names in the folder, without unfinished files."""
        with self._told():
            if not self._folder.is_dir():
                raise FileNotFoundError(f"there is no folder {self._folder}")
            path = self._folder / folder
            return [one.name for one in path.iterdir() if not one.name.startswith(".")] if path.is_dir() else []

    def get(self, name: str) -> bytes:
        """Read the file."""
        with self._told():
            return (self._folder / name).read_bytes()

    def remove(self, name: str) -> None:
        """Delete the file."""
        with self._told():
            path = self._folder / name
            path.unlink(missing_ok=True)
            sync_folder(path.parent)
            self._prune(path)

    def _prune(self, path: Path) -> None:
        """Delete folders in which nothing is kept any more: a run is there as long as it has an entry."""
        with suppress(OSError):
            for folder in path.parents:
                if folder == self._folder:
                    return
                folder.rmdir()

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise MirrorUnavailable(self, machine_reason(error)) from error


OWN = "+"
"""Begins names of folders that are not of runs: ids of runs are escaped."""


class Kept(NamedTuple):
    """Whose journal a mirror has: its folder below that of the cluster, and how messages name it.

    `follow` says how to look at one that goes on elsewhere, `recover` what to do about a mirror that is damaged.
    """

    folder: str
    what: str
    follow: str
    recover: str


def kept_run(run_id: str) -> Kept:
    """The journal of a run."""
    return Kept(
        journal_path(Path(), "", run_id).stem,
        f"run {run_id}",
        f"`kreassign status {run_id} --journal-from",
        "What the run left behind is not known: resume it on the host where it began, or look with `kreassign "
        "doctor`, and with `kreassign verify` and the plan",
    )


@dataclass(slots=True)
class Mirror:
    """Mirror of one journal, up to an event. `clock` waits between attempts."""

    place: Place
    cluster_id: str
    kept: Kept
    clock: Clock
    position: Position = BEGINNING
    _tried: int = 0
    """Last event of the entry that was to be stored at last. It may be in the place though it was not confirmed."""

    def append(self, rows: Sequence[Row]) -> None:
        """Store rows that follow `position`; each is confirmed when this returns.

        Raises MirrorUnavailable after `RETRY_S`, then it may be called again; JournalTaken if another process went
        on with the journal.
        """
        try:
            for some in self._entries([row for row in rows if row[0] > self.position.sequence]):
                self._tried = some[-1][0]
                self._store(some)
        except MirrorUnavailable:
            self.clock.sleep(RETRY_S)
            raise

    def read(self) -> tuple[Row, ...]:
        """All rows, checked; `position` is after the last. Raises JournalDamaged, MirrorUnavailable."""
        entries: dict[int, list[str]] = {}
        for part in self.place.names(self._folder):
            for name in self.place.names(f"{self._folder}/{part}"):
                if (number := _first_of(name)) is None:
                    raise self._damaged(f"has an entry {name!r} that kreassign did not write")
                entries.setdefault(number, []).append(f"{self._folder}/{part}/{name}")
        self.position, rows = BEGINNING, list[Row]()
        while found := entries.get(self.position.sequence + 1):
            some = self._continued([self._entry(name) for name in found], entries)
            self.position = Position(some[-1][0], some[-1][4])
            rows.extend(some)
        if later := min((first for first in entries if first > self.position.sequence), default=None):
            raise self._damaged(f"lacks events {self.position.sequence + 1} to {later - 1}")
        return tuple(rows)

    def take_back(self, rows: Sequence[Row]) -> None:
        """Remove the entry of rows with which a journal was to begin, where that is still possible."""
        with suppress(MirrorUnavailable):
            self.place.remove("/".join(self._place_of(rows[0][0], _content(rows))))

    def _entries(self, rows: Sequence[Row]) -> Iterator[list[Row]]:
        """Rows of one entry each. One that was tried is tried as it was: with more rows it would have another name."""
        for some in ([row for row in rows if row[0] <= self._tried], [row for row in rows if row[0] > self._tried]):
            yield from _portions(some)

    @property
    def _folder(self) -> str:
        return f"{cluster_folder(Path(), self.cluster_id)}/{self.kept.folder}"

    def _store(self, rows: Sequence[Row]) -> None:
        first, last = rows[0][0], rows[-1]
        content = _content(rows)
        folder, name = self._place_of(first, content)
        self.place.put(f"{folder}/{name}", content)
        beside = [_first_of(one) or 0 for one in self.place.names(folder) if one != name]
        begins = f"{self._folder}/{0:09}"
        if first > 1 and not (
            any(0 < one < first for one in beside) or any(_first_of(one) == 1 for one in self.place.names(begins))
        ):
            self.take_back(rows)
            raise MirrorUnavailable(self.place, self.lost)
        if (latest := max(beside, default=0)) >= first:
            if latest == first:
                self.take_back(rows)
            raise JournalTaken(
                f"another process has resumed {self.kept.what}: its journal in {self.place} goes on without this one, "
                f"which sends nothing more. {self.kept.follow} {self.place}` shows it"
            )
        self.position = Position(last[0], last[4])

    @property
    def lost(self) -> str:
        """Why a place that showed entries before, and shows none, is not trusted."""
        return f"it has no entry of {self.kept.what} any more, so it is not the same"

    def _place_of(self, first: int, content: bytes) -> tuple[str, str]:
        """Folder and name of an entry."""
        return f"{self._folder}/{first // _IN_ONE_FOLDER:09}", f"{first:012}-{_digest(content)}"

    def _entry(self, name: str) -> tuple[Row, ...]:
        content = self.place.get(name)
        if not name.endswith(f"-{_digest(content)}"):
            raise self._damaged(f"has a damaged entry: {name}")
        try:
            return _rows(content)
        except (ValueError, TypeError, LookupError) as error:
            raise self._damaged(f"has an entry that cannot be understood: {name}: {error}") from error

    def _continued(self, candidates: list[tuple[Row, ...]], entries: dict[int, list[str]]) -> tuple[Row, ...]:
        """The entry that the next ones are chained to, of all that begin with the same event."""
        chained_on = [rows for rows in candidates if self._is_chained(rows, self.position)]
        if len(chained_on) > 1:
            chained_on = [
                rows
                for rows in chained_on
                if any(
                    self._is_chained(self._entry(name), Position(rows[-1][0], rows[-1][4]))
                    for name in entries.get(rows[-1][0] + 1, ())
                )
            ] or chained_on
        if len(chained_on) != 1:
            what = "was written by two processes, and which of them went on" if chained_on else "and what came before"
            raise self._damaged(f"cannot be trusted: event {self.position.sequence + 1} {what} is not known")
        return chained_on[0]

    @staticmethod
    def _is_chained(rows: Sequence[Row], before: Position) -> bool:
        for sequence, _, kind, body, digest in rows:
            if sequence != before.sequence + 1 or digest != chained(before.digest, kind, body):
                return False
            before = Position(sequence, digest)
        return bool(rows)

    def _damaged(self, problem: str) -> JournalDamaged:
        return JournalDamaged(f"the journal of {self.kept.what} in {self.place} {problem}", self.kept.recover)


def mirrored_runs(place: Place, cluster_id: str) -> tuple[str, ...]:
    """Ids of the runs of a cluster in a place, oldest first. Raises MirrorUnavailable."""
    names = place.names(str(cluster_folder(Path(), cluster_id)))
    return tuple(sorted(unquote(one) for one in names if not one.startswith(OWN)))


# Entries as bytes, and their names.


def _first_of(name: str) -> int | None:
    """Number of the first event of an entry of this name; None if it is no entry's."""
    return signed_number(name.partition("-")[0])


def _portions(rows: Sequence[Row]) -> Iterator[list[Row]]:
    some: list[Row] = []
    size = 0
    for row in rows:
        if some and size + len(row[3]) > ENTRY_BYTES:
            yield some
            some, size = [], 0
        some.append(row)
        size += len(row[3])
    if some:
        yield some


def _content(rows: Sequence[Row]) -> bytes:
    """JSON of rows, compressed: bodies that are compressed already are a list with their base64."""
    plain = [
        (sequence, at_ms, kind, body if isinstance(body, str) else [base64.b64encode(body).decode()], digest)
        for sequence, at_ms, kind, body, digest in rows
    ]
    return zlib.compress(json.dumps({"version": VERSION, "rows": plain}, separators=(",", ":")).encode())


def _rows(content: bytes) -> tuple[Row, ...]:
    document = json.loads(decompressed(content))
    if document["version"] != VERSION:
        raise ValueError(f"it has version {document['version']}, and this kreassign reads version {VERSION}")
    return tuple(
        (sequence, at_ms, kind, body if isinstance(body, str) else base64.b64decode(body[0]), digest)
        for sequence, at_ms, kind, body, digest in document["rows"]
    )


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]
