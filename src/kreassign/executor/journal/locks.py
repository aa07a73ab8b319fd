"""Tell what keeps a journal from its run for now: a full disk, or processes that have locked it, by name.

SQLite locks byte ranges: of the file itself, and in WAL mode of the `-shm` file beside it. Linux lists these locks in
/proc/locks (proc(5)), with the process that holds each. They are read there, because opening a file of a database
and closing it again would drop all locks of this process on it (https://sqlite.org/howtocorrupt.html, 2.2).
"""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryFile

from kreassign.errors import JournalFull, JournalLocked
from kreassign.executor.journal.folder import HOLDER, is_stopped
from kreassign.model.text import printable, shortened

_PRIMARY = 0xFF
"""Part of an extended error code of SQLite that has the primary one."""


def is_lock(error: BaseException) -> bool:
    """True if SQLite gave up because another process has locked the database."""
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and code & _PRIMARY in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}


_NO_ROOM = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE})
"""Codes of SQLite where a file could not grow, of a reader too: that is no damage."""

_PROBE = bytes(range(256)) * 4_096
"""A disk that does not take as much counts as full. Not zeros, which may need no room."""


def _is_full(path: Path, error: BaseException) -> bool:
    """True if SQLite gave up because the disk of the journal, or the quota of its user, has no room."""
    code = getattr(error, "sqlite_errorcode", None)
    if code != sqlite3.SQLITE_IOERR_WRITE:
        return code in _NO_ROOM
    # A broken disk and a file that may not grow have this code, too, and free space does not show a quota.
    try:
        with TemporaryFile(dir=path.parent) as probe:
            probe.write(_PROBE)
    except OSError as refusal:
        return refusal.errno in {errno.ENOSPC, errno.EDQUOT}
    return False


def hindered(path: Path, doing: str, error: BaseException) -> JournalLocked | None:
    """Error for a journal that can be read and written again once others let it, or there is room; else None."""
    if is_lock(error):
        return _locked(path, doing)
    if _is_full(path, error):
        return JournalFull(
            f"{path} cannot be {doing}: {error}",
            "Make room on its disk or in the quota of its user; what was written is kept",
        )
    return None


def _locked(path: Path, doing: str) -> JournalLocked:
    """Error for a journal that others have locked, with the processes that may be meant."""
    holders = lock_holders(path, except_for=frozenset({os.getpid()}))
    by = " and ".join(map(described, holders)) or "another process"
    remedy = (
        f"Let it go on (`kill -CONT {holders[0]}`), or end it"
        if holders and is_stopped(holders[0])
        else "Let it end, or end it: an open transaction of a SQLite shell, a backup or another command of kreassign"
    )
    return JournalLocked(f"{path} cannot be {doing}: {by} has locked it", remedy)


def foreign_lock(path: Path) -> str | None:
    """Sentence about another process than that of the run that has locked this journal for writing; None if none."""
    holders = lock_holders(path, except_for=_process_of_run(path))
    return f"its journal is locked by {' and '.join(map(described, holders))}" if holders else None


def lock_holders(path: Path, *, except_for: frozenset[int] = frozenset()) -> tuple[int, ...]:
    """Processes that have locked this journal for writing; none where the system does not list them."""
    try:
        inodes = {beside.stat().st_ino for beside in (path, path.with_name(f"{path.name}-shm")) if beside.exists()}
        listed = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError):
        return ()
    return tuple(process for process in write_locks(listed, inodes) if process not in except_for)


def write_locks(lines: Iterable[str], inodes: Iterable[int]) -> tuple[int, ...]:
    """Processes with a write lock on one of these inodes, by lines of /proc/locks: `1: POSIX ADVISORY WRITE 7 8:1:9 …`.

    Lines of processes that wait for a lock have an arrow, and other fields.
    """
    wanted, found = {str(inode) for inode in inodes}, []
    for line in lines:
        match line.split():
            case [_, "POSIX" | "OFDLCK", _, "WRITE", process, place, *_] if place.rpartition(":")[2] in wanted:
                found.append(int(process))
    return tuple(dict.fromkeys(process for process in found if process > 0))


def described(process: int) -> str:
    """A process with its command line and whether it is stopped, as far as they can be read."""
    try:
        words = (Path("/proc") / str(process) / "cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        words = []
    command = shortened(printable(" ".join(words).strip()))
    details = ", ".join(part for part in (command, "stopped" if is_stopped(process) else "") if part)
    return f"process {process} ({details})" if details else f"process {process}"


def _process_of_run(path: Path) -> frozenset[int]:
    try:
        return frozenset({int((path.parent / HOLDER).read_text(encoding="ascii").split("\n")[1])})
    except (OSError, IndexError, ValueError):
        return frozenset()
