from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kreassign.cli.main import kreassign
from kreassign.executor.events import PlannedMove, RunStarted
from kreassign.executor.journal import Journal
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.plan_facts import PlanFacts, Totals, plan_id
from kreassign.model.throttle import NO_THROTTLE
from kreassign.operations.plan_files import write_plan
from kreassign.operations.report import snapshots_around
from kreassign.pipeline.ingest.snapshots import snapshot_tables
from kreassign.pipeline.tables.schemas import LOAD_MODEL, Row
from tests.pipeline.clusters import ORDERS_0, TAKEN_MS, observation
from tests.pipeline.finished_load import write_rows
from tests.report.runs import a_run

STARTED = RunStarted(
    at_ms=TAKEN_MS + 1,
    run_id="run-7",
    cluster_id="c.1",
    moves=(PlannedMove(ORDERS_0, (1, 2), (3, 2), 80),),
    rates=NO_THROTTLE,
    live_brokers=(1, 2, 3),
)
LOAD: Row = {
    "cluster_id": "c.1",
    "snapshot_id": "s",
    "topic": "orders",
    "partition": 0,
    "size_bytes": 80,
    "bytes_per_record": 1.0,
    "record_size_basis": "log",
    "write_bytes_per_s": 7_500_000.0,
    "write_records_per_s": 1.0,
    "sample_count": 2,
    "span_s": 1.0,
    "reset_count": 0,
    "coverage": "measured",
}


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    with Journal.create(tmp_path / "state", STARTED) as journal:
        return journal.path


_ENOUGH = {
    "covered_share": 1.0,
    "day_count": 1,
    "verdict": "enough",
    "has_trend": False,
    "has_slowed": False,
    "has_jumped": False,
}


def report(tmp_path: Path, run: object) -> Result:
    options = {"--data": "data", "--state-dir": "state", "--out": "page.html"}
    paths = [part for option, name in options.items() for part in (option, str(tmp_path / name))]
    return CliRunner().invoke(kreassign, ["report", "--run", str(run), *paths])


def take_snapshot(data: Path) -> None:
    for table, rows in snapshot_tables(observation()):
        write_rows(data, table, rows, file_stem="s")


def test_the_page_joins_the_journal_with_the_tables(tmp_path: Path, journal: Path) -> None:
    take_snapshot(tmp_path / "data")
    others = {"cluster_id": "other", "write_bytes_per_s": 1.0}
    load = [LOAD, LOAD | {"partition": 1, "write_bytes_per_s": 0.0}, LOAD | others]
    whole = [dict.fromkeys(LOAD_MODEL.column_names) | _ENOUGH | row for row in load]
    write_rows(tmp_path / "data", LOAD_MODEL, whole, file_stem="s")
    for run in ("run-7", journal):
        result = report(tmp_path, run)
        assert (result.exit_code, result.stderr.splitlines()[0].split()[:4]) == (
            0,
            ["next:", "kreassign", "resume", "run-7"],
        )
        assert result.stdout == f"report of run run-7: {tmp_path / 'page.html'}\n"
    page = (tmp_path / "page.html").read_text()
    assert "Reassignment run-7" in page
    assert "orders-0" in page
    assert "before: 2025-11-04 10:00:00 UTC" in page
    assert "after: no snapshot" in page
    assert "7.5 MB/s" in page


def test_without_tables_there_is_a_page_and_a_warning(tmp_path: Path, journal: Path) -> None:
    result = report(tmp_path, journal)
    assert result.exit_code == 0
    assert result.stderr.count("warning: the report will not show") == 2
    assert "`kreassign collect" in result.stderr
    assert "There are no snapshots to compare" in (tmp_path / "page.html").read_text()


def test_an_unknown_run_is_an_error_and_writes_nothing(tmp_path: Path, journal: Path) -> None:
    result = report(tmp_path, "run-8")
    assert result.exit_code == 2
    assert journal.stem in result.stderr
    assert not (tmp_path / "page.html").exists()


def test_before_and_after_are_the_snapshots_next_to_the_run() -> None:
    def around(*taken_ms: int, ended_ms: int | None = 200) -> tuple[int | None, int | None]:
        rows = [{"snapshot_id": str(time), "taken_ms": time} for time in taken_ms]
        before, after = snapshots_around(a_run((), started_ms=100, ended_ms=ended_ms), rows)
        return before and before["taken_ms"], after and after["taken_ms"]

    assert around(150, 90, 300, 50, 200) == (90, 200)
    assert around(150, 90, 300, 50, 200, ended_ms=None) == (90, 300)
    assert around(100) == (100, None)
    assert around(101, 150) == (None, 150)
    assert around() == (None, None)


def test_the_pages_of_a_plan_and_of_its_run_are_two_files(
    tmp_path: Path, journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plan = tmp_path / "plans" / "plan.json"
    plan.parent.mkdir()
    to_do = Plan((PartitionAssignment(ORDERS_0, (3, 2)),))
    write_plan(plan, to_do, PlanFacts(plan_id(to_do), "hash", "rebalance", Totals(0, 0, 1)))
    for words in (("--plan", "plans/plan.json"), ("--run", str(journal))):
        assert CliRunner().invoke(kreassign, ["report", *words, "--state-dir", "state"]).exit_code == 0
    assert sorted(str(page.relative_to(tmp_path)) for page in tmp_path.rglob("*.html")) == [
        "plans/plan.html",
        "run-7.html",
    ]
