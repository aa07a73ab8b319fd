"""Readers of tables: only their owner, unless the folder was made for others."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kreassign.pipeline.tables.delta import log_to_write
from kreassign.pipeline.tables.schemas import METRICS


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o777])
def test_only_the_owner_may_enter_a_folder_of_tables_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    data = tmp_path / "far" / "data"
    before = os.umask(umask)
    try:
        log_to_write(data, METRICS)
    finally:
        os.umask(before)
    assert (data / METRICS.name).is_dir()
    assert {one.stat().st_mode & 0o777 for one in (data, data.parent)} == {0o700}


def test_a_folder_that_was_made_for_others_stays_so(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    log_to_write(tmp_path, METRICS)
    assert tmp_path.stat().st_mode & 0o777 == 0o755
