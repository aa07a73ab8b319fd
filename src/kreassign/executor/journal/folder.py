"""Find the folder of a cluster's journals, and let one run per cluster at a time write there.

Journals are `<state directory>/<cluster id>/<run id>.sqlite`, readable by their owner only. A run locks the folder of
its cluster; others can read the id of the run that holds the lock.
"""

from __future__ import annotations

import fcntl
import os
import re
from contextlib import ExitStack
from pathlib import Path
from typing import IO
from urllib.parse import quote, unquote

from kreassign.errors import ClusterBusy, InputError
from kreassign.executor.journal.processes import WHOLE, is_stopped, lock_holders, named, way_on

# Paths of journals: `<state directory>/<cluster id>/<run id>.sqlite`, readable by their owner only.
#
# Ids come from outside and must not lead to other paths: unusual characters are escaped as in URLs.
# Folders get mode 0700 and journals 0600 whatever the umask says, and a new name is on disk (fsync of
# its folder) before anything relies on it.

SUFFIX = ".sqlite"
ASIDE = ".unreadable"
"""Suffix of an unreadable journal that was set aside."""

FILE_MODE = 0o600
FOLDER_MODE = 0o700

_NO_ID = "%"
"""Folder of a cluster without an id; no escaped id equals it."""


def cluster_folder(state_dir: Path, cluster_id: str) -> Path:
    """Folder of a cluster's journals."""
    return state_dir / (_spelt(cluster_id).replace(".", "%2E") or _NO_ID)


def cluster_of_folder(folder: Path) -> str:
    """Id of the cluster whose folder it is."""
    return "" if folder.name == _NO_ID else unquote(folder.name, errors="surrogatepass")


def journal_path(state_dir: Path, cluster_id: str, run_id: str) -> Path:
    """Path of a run's journal, existing or not."""
    return cluster_folder(state_dir, cluster_id) / journal_name(run_id)


def journal_name(run_id: str) -> str:
    """Name of the file of a run's journal."""
    return f"{_spelt(run_id)}{SUFFIX}"


def find_journals(state_dir: Path, run_id: str | None = None) -> tuple[Path, ...]:
    """Journals of all clusters, or those with one run id, oldest run first (run ids sort by time)."""
    found = state_dir.glob(f"*/*{SUFFIX}") if state_dir.is_dir() else iter(())
    name = None if run_id is None else journal_name(run_id)
    return tuple(sorted((path for path in found if name in {None, path.name}), key=lambda path: (path.stem, path)))


def cluster_journals(state_dir: Path, cluster_id: str) -> tuple[Path, ...]:
    """Journals of one cluster, oldest run first."""
    return tuple(sorted(cluster_folder(state_dir, cluster_id).glob(f"*{SUFFIX}")))


def all_journals(state_dir: Path, cluster_id: str) -> tuple[Path, ...]:
    """Journals of one cluster, also those that were set aside, oldest run first."""
    folder = cluster_folder(state_dir, cluster_id)
    names = (SUFFIX, f"{SUFFIX}{ASIDE}", f"{SUFFIX}{ASIDE}-[0-9]*")
    return tuple(sorted(path for name in names for path in folder.glob(f"*{name}")))


def make_folder(folder: Path) -> None:
    """Create a folder and its missing parents. Existing ones stay as they are."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    for one in reversed(missing):
        one.mkdir(FOLDER_MODE, exist_ok=True)
        one.chmod(FOLDER_MODE)
        sync_folder(one.parent)


def make_file(path: Path) -> None:
    """Create an empty file that only its owner may read; an existing file is replaced."""
    path.unlink(missing_ok=True)
    file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, FILE_MODE)
    try:
        os.fchmod(file, FILE_MODE)
    finally:
        os.close(file)


def rename_file(path: Path, new: Path) -> None:
    """Rename a file; the new name is on disk when this returns."""
    path.replace(new)
    sync_folder(new.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a power cut."""
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _spelt(name: str) -> str:
    return quote(name, safe="", errors="surrogatepass")


# File systems on which a journal is safe: those of this machine.
#
# SQLite's write-ahead log needs shared memory between all processes that use the database, which file systems of
# several machines do not give them: two hosts with one state directory would each believe their own index of the log,
# and the locks of runs and journals may not reach the other (https://sqlite.org/wal.html#noshm,
# https://sqlite.org/faq.html#q5). The system names the type of each mount.

_OF_SEVERAL_MACHINES = frozenset({
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "ncpfs", "9p", "afs", "coda", "ceph", "lustre", "gpfs", "beegfs",
    "glusterfs", "ocfs2", "gfs2", "orangefs", "pvfs2", "davfs", "vboxsf", "vmhgfs", "prl_fs", "fuse.sshfs",
    "fuse.glusterfs", "fuse.ceph", "fuse.ceph-fuse", "fuse.davfs2", "fuse.s3fs", "fuse.rclone", "fuse.juicefs",
    "fuse.gcsfuse", "fuse.blobfuse", "fuse.blobfuse2", "fuse.mount-s3", "fuse.goofys", "fuse.smbnetfs",
    "fuse.curlftpfs", "fuse.moosefs", "fuse.mfs", "fuse.lizardfs", "fuse.seaweedfs", "fuse.vmhgfs-fuse",
    "fuse.quobyte", "fuse.weka", "wekafs", "fuse.beegfs", "fhgfs", "panfs", "acfs", "snfs", "fuse.alluxio-fuse",
    "virtiofs", "drvfs", "osxfs", "fuse.osxfs", "fuse.grpcfuse",  # of a virtual machine and its host
})  # fmt: skip
"""Types of mounts that other machines may have, too. Others are allowed: most types are of one machine."""


def mounted_type(mounts: str, folder: str) -> str | None:
    """Type of the file system of an absolute path, by the lines of /proc/self/mountinfo (proc(5)); None if unknown."""
    best, found = -1, None
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        fields, kind = before.split(" "), after.split(" ")[0]
        if len(fields) <= _MOUNT_POINT or not kind:
            continue
        point = _OCTAL.sub(lambda code: chr(int(code[1], 8)), fields[_MOUNT_POINT])
        # A later mount hides an earlier one of the same place.
        if Path(folder).is_relative_to(point) and len(point) >= best:
            best, found = len(point), kind
    return found


_MOUNT_POINT = 4
_OCTAL = re.compile(r"\\([0-7]{3})")


def refuse_shared_file_system(folder: Path) -> None:
    """Raise InputError if journals in this folder, existing or not, would be shared between machines."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
        kind = mounted_type(mounts, str(folder.resolve()))
    except OSError:
        return
    if kind in _OF_SEVERAL_MACHINES:
        raise InputError(
            f"{folder} is on a file system of several machines ({kind}), where the journal of a run is not safe: "
            "choose a directory on a disk of this machine (--state-dir). The cluster's lease keeps runs of several "
            "machines apart; to read a journal elsewhere, copy it"
        )


# One run per cluster at a time, on one machine: the lock of a run, and the query for its holder.
#
# Two files in the folder of the cluster. A run locks `lock`, which no other process touches, so only another run
# can make that fail. Then it locks `holder`, which contains its run id; a query for the holder tries a shared
# lock on that file, for an instant, for which a run that is just beginning waits. The system drops both locks with the
# process, however that ends. A second line has the process id, so that others can see whether it is stopped.

LOCK, HOLDER = "lock", "holder"


class ClusterLock:
    """Lock to execute a run on a cluster. Held until it is closed, or the process ends."""

    def __init__(self, journal: Path) -> None:
        """Take the lock for the run of this journal.

        Raises ClusterBusy when another run holds it, InputError if its folder is shared between machines.
        """
        folder = journal.parent
        refuse_shared_file_system(folder)
        if not folder.is_dir():
            raise InputError(f"there is no journal {journal}")
        with ExitStack() as files:
            lock = files.enter_context(_open_lock(folder / LOCK))
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise _lock_taken(folder, _read_holder(lock)) from None
            self._run_id = journal.name.removesuffix(SUFFIX)
            _write_holder(lock, self._run_id)
            self._folder, self._files = folder, files.pop_all()

    def execute(self) -> None:
        """Tell whoever asks from now on that this process executes the run, and takes requests."""
        holder = self._files.enter_context(_open_lock(self._folder / HOLDER))
        _write_holder(holder, self._run_id)  # Before it is locked: who finds it locked reads who did.
        fcntl.flock(holder, fcntl.LOCK_EX)

    def close(self) -> None:
        """Release the lock."""
        self._files.close()


def active_run(state_dir: Path, cluster_id: str) -> str | None:
    """Id of the run that a process executes on this cluster now; None if there is none."""
    return active_run_in(cluster_folder(state_dir, cluster_id))


def active_run_in(folder: Path) -> str | None:
    """Return `active_run` for the folder of the cluster."""
    path = folder / HOLDER
    if not path.exists():
        return None
    with path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return _read_holder(file)
    return None


def holding_process(folder: Path) -> str | None:
    """Number of the process that holds the lock of this folder, or was the last to; None if nobody wrote one."""
    try:
        return (folder / HOLDER).read_text(encoding="ascii").split("\n")[1]
    except (OSError, IndexError, ValueError):
        return None


def stopped_process_in(folder: Path) -> int | None:
    """The process that holds the lock of this folder, if it is stopped (SIGSTOP, Ctrl-Z); None also if unknown.

    Read from /proc, so only on Linux, and only for processes of the same user.
    """
    holder = folder / HOLDER
    try:
        process = Path("/proc") / str(holding_process(folder))
        # From another machine, or much later, the process id may be that of any process.
        is_holder = any(found.readlink() == holder.resolve() for found in (process / "fd").iterdir())
        number = int(process.name)
    except (OSError, ValueError):
        return None
    return number if is_holder and is_stopped(number) else None


def refuse_second_run(state_dir: Path, cluster_id: str) -> None:
    """Raise ClusterBusy if a process executes a run on this cluster; the message names it and says what to do."""
    holder = active_run(state_dir, cluster_id)
    if holder is not None:
        raise _run_active(holder)


def _lock_taken(folder: Path, run_id: str) -> ClusterBusy:
    """Error for the lock of a cluster that a process has for this run."""
    if (active := active_run_in(folder)) is not None:
        return _run_active(active)
    holders = lock_holders([folder / LOCK], WHOLE)
    return ClusterBusy(
        f"{named(holders)} has locked {folder / LOCK} for run {run_id}, and takes no requests yet: it begins or "
        f"resumes the run, or changes its journal; {way_on(holders)}, then give the command again"
    )


def _run_active(run_id: str) -> ClusterBusy:
    """Error for a cluster on which a process executes a run, with what to do about it."""
    return ClusterBusy(
        f"run {run_id} is active on this cluster; watch it with `kreassign watch {run_id}`, end it with "
        f"`kreassign cancel {run_id}`, or stop its process (Ctrl-C) and take it over with `kreassign resume {run_id}`"
    )


def _open_lock(path: Path) -> IO[str]:
    is_new = not path.exists()
    file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, FILE_MODE), "r+")
    if is_new:
        os.fchmod(file.fileno(), FILE_MODE)  # whatever mode the umask left
    return file


def _read_holder(file: IO[str]) -> str:
    file.seek(0)
    return file.readline().strip() or "(unknown)"


def _write_holder(file: IO[str], run_id: str) -> None:
    file.seek(0)
    file.truncate(0)
    file.write(f"{run_id}\n{os.getpid()}\n")
    file.flush()
    os.fsync(file.fileno())
