"""Journal of a run as tables; Spark's part: tests/pipeline/audit/test_run_audit.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from kreassign.executor.history.audit_trail import audit_trail
from kreassign.executor.journal import read_events
from kreassign.operations.report import write_audit_trail
from kreassign.pipeline.tables.parquet import read_rows
from kreassign.pipeline.tables.schemas import RUN_CALLS, RUN_COPY_PROGRESS, RUN_ETA_HISTORY, RUN_MOVES, RUN_TABLES, RUNS
from tests.executor.twin_runs import TwinRig


@pytest.mark.thorough
def test_every_table_of_a_run_has_its_rows_and_repeats_change_none(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1]] * 2)
    assert rig.run(rig.prepared({0: (2, 1), 1: (1, 0)})).state == "done"
    told = audit_trail(read_events(rig.path()))
    for _ in range(2):
        write_audit_trail(told, tmp_path / "data")
    assert {path.name for path in (tmp_path / "data").iterdir()} == {table.name for table in RUN_TABLES}
    (run,) = read_rows(tmp_path / "data", RUNS)
    assert (run["run_id"], run["cluster_id"], run["state"], run["problem"]) == ("run-1", "twin", "done", None)
    moves = {row["partition"]: row for row in read_rows(tmp_path / "data", RUN_MOVES)}
    assert [(row["adding"], row["rearranging"]) for _, row in sorted(moves.items())] == [([2], []), ([], [])]
    counts = [len(read_rows(tmp_path / "data", table)) for table in (RUN_COPY_PROGRESS, RUN_ETA_HISTORY, RUN_CALLS)]
    assert counts == [len(told.copy_progress), len(told.eta_history), len(told.calls)]
