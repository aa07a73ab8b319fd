from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from kreassign.cli.main import kreassign
from kreassign.pipeline.tables.parquet import read_rows
from kreassign.pipeline.tables.schemas import METRICS

SCRAPE = """
process_cpu_seconds_total 5 3600000
process_cpu_seconds_total 6 7200000
jvm_threads_current 41
rubbish
"""


def imported(tmp_path: Path, *arguments: str) -> tuple[int, str]:
    file = tmp_path / "scrape.txt"
    file.write_text(SCRAPE)
    fixed = ["import-metrics", str(file), "--data", str(tmp_path / "data"), "--cluster", "c"]
    result = CliRunner().invoke(kreassign, [*fixed, *arguments])
    return result.exit_code, result.output


def test_a_file_goes_into_the_folders_of_its_hours_and_twice_is_as_good_as_once(tmp_path: Path) -> None:
    for _ in range(2):
        code, said = imported(tmp_path, "--broker", "1")
        assert code == 0
        assert said.endswith("2 readings, 1 of no use here or of unknown brokers, 1 unreadable, first 'rubbish'\n")
    rows = read_rows(tmp_path / "data", METRICS)
    assert sorted((row["taken_ms"], row["broker"], row["value"]) for row in rows) == [
        (3_600_000, 1, 5),
        (7_200_000, 1, 6),
    ]
    folders = {file.parent.name for file in (tmp_path / "data").rglob("*.parquet")}
    assert folders == {"hour=01", "hour=02"}


def test_whose_metrics_they_are_must_be_said(tmp_path: Path) -> None:
    assert "specify the broker" in imported(tmp_path)[1]
    assert "'b=x' is not INSTANCE=ID" in imported(tmp_path, "--instance", "b=x")[1]
