"""Where journals are: `<state directory>/<cluster id>/<run id>.sqlite`, for the eyes of their owner only.

Ids come from outside and must not lead elsewhere, whatever characters they have: odd ones are spelt out as in URLs.
Folders are made with mode 0700 and journals with 0600 whatever the umask says, and a new name is on disk (fsync of its
folder) before anything relies on it.
"""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

SUFFIX = ".sqlite"
ASIDE = ".unreadable"
"""What is added to the name of a journal that nobody can read and that was set aside."""

FILE_MODE = 0o600
FOLDER_MODE = 0o700

_NO_ID = "%"
"""The folder of a cluster without an id; no id is spelt out like that."""


def cluster_folder(state_dir: Path, cluster_id: str) -> Path:
    """The folder with the journals of a cluster."""
    return state_dir / (_spelt(cluster_id).replace(".", "%2E") or _NO_ID)


def journal_path(state_dir: Path, cluster_id: str, run_id: str) -> Path:
    """Where the journal of a run is, or shall be."""
    return cluster_folder(state_dir, cluster_id) / f"{_spelt(run_id)}{SUFFIX}"


def find_journals(state_dir: Path, run_id: str | None = None) -> tuple[Path, ...]:
    """The journals of all clusters, or those of one run id, oldest run first (run ids sort by time)."""
    found = state_dir.glob(f"*/*{SUFFIX}") if state_dir.is_dir() else iter(())
    name = None if run_id is None else f"{_spelt(run_id)}{SUFFIX}"
    return tuple(sorted((path for path in found if name in {None, path.name}), key=lambda path: (path.stem, path)))


def cluster_journals(state_dir: Path, cluster_id: str) -> tuple[Path, ...]:
    """The journals of one cluster, oldest run first."""
    return tuple(sorted(cluster_folder(state_dir, cluster_id).glob(f"*{SUFFIX}")))


def make_folder(folder: Path) -> None:
    """Make a folder and those above it that are missing. Those that are there stay as they are."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    for one in reversed(missing):
        one.mkdir(FOLDER_MODE, exist_ok=True)
        one.chmod(FOLDER_MODE)
        sync_folder(one.parent)


def make_file(path: Path) -> None:
    """Make an empty file that only its owner may read; one that is there is replaced."""
    path.unlink(missing_ok=True)
    file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, FILE_MODE)
    try:
        os.fchmod(file, FILE_MODE)
    finally:
        os.close(file)


def rename(path: Path, new: Path) -> None:
    """Give a file another name, which is on disk when this returns."""
    path.replace(new)
    sync_folder(new.parent)


def sync_folder(folder: Path) -> None:
    """Let the names in a folder survive a power cut."""
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _spelt(name: str) -> str:
    return quote(name, safe="", errors="surrogatepass")
