"""Imports wait for each other; their effects: tests/cli/planning/imports, tests/cli/commands."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from kreassign.operations.ingest import _lock_file
from kreassign.operations.whole_file import locked

ADDRESS = "s3a://bucket/data"


@pytest.fixture(autouse=True)
def shared_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of this machine in which everybody may make files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_what_keeps_imports_apart_is_their_users_alone(shared_folder: Path) -> None:
    with locked(_lock_file(ADDRESS)):
        (lock,) = shared_folder.iterdir()
        assert lock.stat().st_mode & 0o777 == 0o600


def test_a_link_that_somebody_else_has_put_there_is_not_followed(shared_folder: Path) -> None:
    mine = shared_folder / "mine"
    mine.write_text("kept")
    _lock_file(ADDRESS).symlink_to(mine)
    with pytest.raises(OSError, match="symbolic links"), locked(_lock_file(ADDRESS)):
        pytest.fail("it went on")
    assert mine.read_text() == "kept"
