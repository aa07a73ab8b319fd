"""A disk of its own for a folder, which can be full; and folders that are read-only. Only root may."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

_BLOCK = bytes(4096)


class SmallDisk:
    """A file system in memory, mounted at a folder, with what the folder held."""

    def __init__(self, folder: Path, size: str = "8m") -> None:
        held = folder.with_name(f"held-{folder.name}")
        if folder.exists():
            folder.rename(held)
        folder.mkdir(mode=0o700)
        self.folder = folder
        self._filler = folder / "filler"
        _call("mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "tmpfs", str(folder))
        if held.exists():
            shutil.copytree(held, folder, dirs_exist_ok=True)
            shutil.rmtree(held)

    def fill(self) -> None:
        """Leave no room on it."""
        with suppress(OSError), self._filler.open("wb", buffering=0) as filler:
            while True:
                filler.write(_BLOCK)

    def make_room(self) -> None:
        self._filler.unlink(missing_ok=True)

    def be_read_only(self) -> None:
        """Let nobody write; no process may have a file of it open for writing."""
        _call("mount", "-o", "remount,ro", str(self.folder))

    def be_writable(self) -> None:
        _call("mount", "-o", "remount,rw", str(self.folder))

    def close(self, *, keep: bool = True) -> None:
        """Unmount it and leave a copy of what it held, if that is to be kept."""
        kept = self.folder.with_name(f"kept-{self.folder.name}")
        if keep:
            shutil.copytree(self.folder, kept)
        _call("umount", "--lazy", str(self.folder))
        if keep:
            self.folder.rmdir()
            kept.rename(self.folder)


def read_only(folder: Path) -> None:
    """Let nobody make, open for writing, rename or delete a file there, as if its disk was mounted so.

    What is open for writing already stays so.
    """
    _call("mount", "--bind", str(folder), str(folder))
    _call("mount", "-o", "remount,bind,ro", str(folder))


def writable(folder: Path) -> None:
    _call("umount", "--lazy", str(folder))


def can_mount() -> bool:
    return os.geteuid() == 0 and shutil.which("mount") is not None


def _call(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
