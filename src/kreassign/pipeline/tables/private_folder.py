"""Folders of tables: only their owner may enter them, whatever the umask says, and so read what others write there.

Spark, pyarrow and deltalake write files with the modes that the umask leaves. So the folder keeps others out.
"""

from __future__ import annotations

from pathlib import Path

FOLDER_MODE = 0o700


def make_private_folder(folder: Path) -> None:
    """Make a folder and those above it that are missing. Those that are there stay as they are, for whom they are."""
    for one in reversed([one for one in (folder, *folder.parents) if not one.exists()]):
        one.mkdir(FOLDER_MODE, exist_ok=True)
        one.chmod(FOLDER_MODE)
