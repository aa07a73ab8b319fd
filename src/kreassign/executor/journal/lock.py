"""One run per cluster at a time, on one machine: the lock that a run holds, and the question who holds it.

Two files in the folder of the cluster. A run locks `lock`, which nobody else ever touches, so nothing but another run
can make that fail. Then it locks `holder`, in which its run id is written; who asks for the holder tries a shared lock
on that one, for an instant, which a run that is just beginning waits for. The system drops both locks with the
process, however that ends. A second line has the number of the process, so that others can see whether it is stopped.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from kreassign.errors import InputError
from kreassign.executor.journal.paths import FILE_MODE, SUFFIX, cluster_folder

LOCK, HOLDER = "lock", "holder"
_STOPPED = frozenset({"T", "t"})
"""States of a process in /proc/PID/stat: stopped by a signal, or by a debugger (proc(5))."""


class ClusterLock:
    """The right to execute a run on a cluster. Held until it is closed, or the process ends."""

    def __init__(self, journal: Path) -> None:
        """Take the lock for the run of this journal. Raises InputError when another run holds it."""
        folder = journal.parent
        if not folder.is_dir():
            raise InputError(f"there is no journal {journal}")
        with ExitStack() as files:
            lock = files.enter_context(_open(folder / LOCK))
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise taken(_read(lock)) from None
            _write(lock, journal.name.removesuffix(SUFFIX))
            holder = files.enter_context(_open(folder / HOLDER))
            fcntl.flock(holder, fcntl.LOCK_EX)
            _write(holder, journal.name.removesuffix(SUFFIX))
            self._files = files.pop_all()

    def close(self) -> None:
        """Let others have the cluster."""
        self._files.close()


def active_run(state_dir: Path, cluster_id: str) -> str | None:
    """The id of the run that a process is executing on this cluster now, if there is one."""
    return active_run_in(cluster_folder(state_dir, cluster_id))


def active_run_in(folder: Path) -> str | None:
    """The same, given the folder of the cluster."""
    path = folder / HOLDER
    if not path.exists():
        return None
    with path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return _read(file)
    return None


def stopped_process_in(folder: Path) -> int | None:
    """The process that holds the lock of this folder, if it is stopped (SIGSTOP, Ctrl-Z); None also if nobody can tell.

    Read from /proc, so only on Linux, and only for processes of one's own.
    """
    holder = folder / HOLDER
    try:
        process = Path("/proc") / holder.read_text(encoding="ascii").split("\n")[1]
        state = (process / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0]
        # Seen from another machine, or long after, the number may be that of any process.
        is_holder = any(found.readlink() == holder.resolve() for found in (process / "fd").iterdir())
    except (OSError, IndexError):
        return None
    return int(process.name) if state in _STOPPED and is_holder else None


def refuse_second_run(state_dir: Path, cluster_id: str) -> None:
    """Raise InputError if a process is executing a run on this cluster: the one that says which, and what to do."""
    holder = active_run(state_dir, cluster_id)
    if holder is not None:
        raise taken(holder)


def taken(holder: str) -> InputError:
    """That another run has the cluster, and what to do about it."""
    return InputError(
        f"run {holder} is active on this cluster; watch it with `kreassign watch {holder}`, end it with "
        f"`kreassign cancel {holder}`, or stop its process (Ctrl-C) and take it over with `kreassign resume {holder}`"
    )


def _open(path: Path) -> IO[str]:
    is_new = not path.exists()
    file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE), "r+")
    if is_new:
        os.fchmod(file.fileno(), FILE_MODE)  # whatever the umask left of it
    return file


def _read(file: IO[str]) -> str:
    file.seek(0)
    return file.readline().strip() or "(unknown)"


def _write(file: IO[str], run_id: str) -> None:
    file.seek(0)
    file.truncate(0)
    file.write(f"{run_id}\n{os.getpid()}\n")
    file.flush()
    os.fsync(file.fileno())
