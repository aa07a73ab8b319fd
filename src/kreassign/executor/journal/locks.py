"""Tell what keeps a journal from its run for now: a full disk, or processes that have locked it, by name.

SQLite locks byte ranges: of the file itself, and in WAL mode of the `-shm` file beside it.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from pathlib import Path
from tempfile import TemporaryFile

from kreassign.errors import JournalFull, JournalLocked
from kreassign.executor.journal.folder import holding_process
from kreassign.executor.journal.processes import RANGES, lock_holders, named, way_on

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
    holders = tuple(process for process in _holders(path) if process != os.getpid())
    advice = way_on(holders)
    if "kill" not in advice:
        advice = f"{advice}: an open transaction of a SQLite shell, a backup or another command of kreassign"
    remedy = f"{advice[0].upper()}{advice[1:]}"
    return JournalLocked(f"{path} cannot be {doing}: {named(holders)} has locked it", remedy)


def foreign_lock(path: Path) -> str | None:
    """Sentence about another process than that of the run that has locked this journal for writing; None if none."""
    of_run = holding_process(path.parent)
    holders = [process for process in _holders(path) if str(process) != of_run]
    return f"its journal is locked by {named(holders)}" if holders else None


def _holders(path: Path) -> tuple[int, ...]:
    """Processes that have locked this journal for writing."""
    return lock_holders((path, path.with_name(f"{path.name}-shm")), RANGES)
