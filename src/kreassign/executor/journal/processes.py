"""Processes that have locked a file, by name.

Linux lists locks in /proc/locks (proc(5)), with the process that holds each. They are read there, because opening a
file of a database and closing it again would drop all locks of this process on it
(https://sqlite.org/howtocorrupt.html, 2.2).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from kreassign.model.text import printable, shortened

RANGES = frozenset({"POSIX", "OFDLCK"})
"""Locks on ranges of a file, as SQLite has them."""

WHOLE = frozenset({"FLOCK"})
"""Locks on a file as a whole."""

_STOPPED = frozenset({"T", "t"})
"""States of a process in /proc/PID/stat: stopped by a signal, or by a debugger (proc(5))."""


def is_stopped(process: int) -> bool:
    """True if the process is stopped; False also if that is unknown."""
    try:
        stat = (Path("/proc") / str(process) / "stat").read_text(encoding="utf-8", errors="replace")
        return stat.rpartition(")")[2].split()[0] in _STOPPED
    except (OSError, IndexError):
        return False


def lock_holders(paths: Iterable[Path], kinds: Collection[str]) -> tuple[int, ...]:
    """Processes that have locked one of these files for writing; none where the system does not list them."""
    try:
        inodes = {path.stat().st_ino for path in paths if path.exists()}
        listed = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError):
        return ()
    return write_locks(listed, inodes, kinds)


def write_locks(lines: Iterable[str], inodes: Iterable[int], kinds: Collection[str]) -> tuple[int, ...]:
    """Processes with a write lock on one of these inodes, by lines of /proc/locks: `1: POSIX ADVISORY WRITE 7 8:1:9 …`.

    Lines of processes that wait for a lock have an arrow, and other fields.
    """
    wanted, found = {str(inode) for inode in inodes}, []
    for line in lines:
        match line.split():
            case [_, kind, _, "WRITE", process, place, *_] if kind in kinds and place.rpartition(":")[2] in wanted:
                found.append(int(process))
    return tuple(dict.fromkeys(process for process in found if process > 0))


def named(holders: Iterable[int]) -> str:
    """The processes that hold a lock, each with its command line and whether it is stopped, as far as that is known."""
    return " and ".join(map(_described, holders)) or "another process"


def way_on(holders: Collection[int]) -> str:
    """Advice on the processes that hold a lock."""
    stopped = [process for process in holders if is_stopped(process)]
    return f"let it go on (`kill -CONT {stopped[0]}`), or end it" if stopped else "let it end, or end it"


def _described(process: int) -> str:
    try:
        words = (Path("/proc") / str(process) / "cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        words = []
    command = shortened(printable(" ".join(words).strip()))
    details = ", ".join(part for part in (command, "stopped" if is_stopped(process) else "") if part)
    return f"process {process} ({details})" if details else f"process {process}"
