"""A disk of its own for the state directory of a run, which can be full and can be read-only."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

SIZE = "8m"
_BLOCK = bytes(4096)


class SmallDisk:
    """A file system in memory, mounted at a folder; only root may."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700)
        self._folder = folder
        self._filler = folder / "filler"
        _call("mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=0700", "tmpfs", str(folder))

    def fill(self) -> None:
        """Leave no room on it."""
        with suppress(OSError), self._filler.open("wb", buffering=0) as filler:
            while True:
                filler.write(_BLOCK)

    def make_room(self) -> None:
        """Take back what filled it."""
        self._filler.unlink(missing_ok=True)

    def be_read_only(self) -> None:
        """Let nobody write; no process may have a file of it open for writing."""
        _call("mount", "-o", "remount,ro", str(self._folder))

    def be_writable(self) -> None:
        """Let everybody write again."""
        _call("mount", "-o", "remount,rw", str(self._folder))

    def close(self) -> None:
        """Unmount it and leave a copy of what it held."""
        kept = self._folder.with_name("kept-state")
        shutil.copytree(self._folder, kept)
        _call("umount", "--lazy", str(self._folder))
        self._folder.rmdir()
        kept.rename(self._folder)


def can_mount() -> bool:
    """Whether this user may mount anything."""
    return os.geteuid() == 0 and shutil.which("mount") is not None


def _call(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
