from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from kreassign.cli.commands.show_load import print_load
from kreassign.cli.main import kreassign
from kreassign.cli.output import PlainConsole
from kreassign.operations.tables import load_page, show_load
from kreassign.pipeline.tables.parquet import write_rows
from kreassign.pipeline.tables.schemas import BROKER_LOADS, LOAD_MODEL, Row
from tests.approved import approve
from tests.cli.test_folding import Terminal
from tests.pipeline.load_tables import DAY_MS, HOUR_MS, MB, TAKEN_MS, a_cluster, fill, hour_rows, load_row, row
from tests.report.test_html import Page

pytestmark = pytest.mark.thorough


def show(data: Path, *arguments: str) -> Result:
    return CliRunner().invoke(kreassign, ["show-load", "--data", str(data), *arguments])


def following(data: Path | str) -> str:
    return f"next: kreassign plan --out plan.json --data {data}\n"


def test_the_load_is_shown_with_units_and_what_is_doubtful(tmp_path: Path) -> None:
    fill(tmp_path, **a_cluster())
    result = show(tmp_path, "--top", "2")
    assert (result.exit_code, result.stderr) == (0, following(tmp_path))
    approve(result.stdout, "show-load")


def test_eighty_columns_are_enough_for_the_longest_names(tmp_path: Path) -> None:
    name = "a-topic-" + "x" * 241  # as long as Kafka allows
    loads = [
        load_row(name, 123_456, 987.0 * MB, size_bytes=987 * MB, p95_write_bytes_per_s=987.0 * MB, peak_hour=22,
                 peak_write_bytes_per_s=987.0 * MB, verdict="gaps", covered_share=0.5),
        load_row("t", 0),
    ]  # fmt: skip
    fill(tmp_path, loads)
    (found,) = show_load(tmp_path)
    shown = Terminal()
    print_load(PlainConsole(shown, width=80), replace(found, cluster_id="c" * 22))
    text = click.unstyle(shown.getvalue())
    assert max(map(len, text.splitlines())) <= 80
    assert "987 MB/s  987 MB/s      22:00 987 MB/s  987 MB" in text
    assert "50% of the time is" in text
    assert text.splitlines()[-1].split() == ["t-0", "-", "-", "no", "rate:", "no", "samples"]


def test_brokers_that_measured_themselves_are_shown(tmp_path: Path) -> None:
    named = {"cluster_id": "c.1", "hour_count": 168, "measured_share": 1.0}
    full = {"bytes_in_per_s": 98.7 * MB, "bytes_out_per_s": 98.7 * MB, "cpu_share": 0.5, "peak_cpu_share": 1.0,
            "cpu_capacity_bytes_per_s": 98.7 * MB, "disk_bytes": 98_700_000 * MB}  # fmt: skip
    brokers = [
        row(BROKER_LOADS, **named, **full, broker=123_456, replication_out_ratio=0.914),
        row(BROKER_LOADS, **named | {"measured_share": 0.755}, broker=2, replication_out_ratio=1.2),
        row(BROKER_LOADS, **named, broker=3),
    ]
    fill(tmp_path, [load_row("t", 0, 1.0)], broker_loads=brokers)
    shown = show(tmp_path, "--top", "2").stdout
    approve(shown, "show-load-of-brokers")
    assert max(map(len, shown.splitlines())) <= 80
    (told,) = json.loads(show(tmp_path, "--format", "json").stdout)["clusters"]
    assert [one["broker"] for one in told["measured_brokers"]] == [123_456, 2, 3]
    assert (
        "123456 98.7 MB/s - 98.7 MB/s - 50% 100% 98.7 MB/s 0.91 98.7 TB 168 h, 100%" in Page(load_page(tmp_path)).words
    )


def test_a_line_says_what_was_not_measured_and_what_it_needs(tmp_path: Path) -> None:
    fill(tmp_path, [load_row("t", 0), load_row("t", 1, 1.0, size_bytes=None, peak_hour=None)])
    said = " ".join(show(tmp_path).stdout.split())
    assert (
        "not measured, and shown as -: write rate of 1 of 2 partitions (needs two samples of each) size of "
        "2 of 2 partitions (needs an answer of a broker that has a replica) p95 (needs samples without a gap between "
        "them) busiest hour (needs samples of all 24 hours)"
    ) in said
    assert " size - 0 " in said, "an unknown size is not 0 B"


def test_an_unknown_rate_says_what_its_coverage_needs(tmp_path: Path) -> None:
    fill(
        tmp_path,
        [
            load_row("t", number, size_bytes=1, coverage=coverage)
            for number, coverage in enumerate(("no samples", "one sample", "reset", "no size", "no size"))
        ],
    )
    lines = show(tmp_path).stdout.splitlines()
    assert [line for line in lines if line.startswith("  write rate of")] == [
        "  write rate of 2 of 5 partitions (needs two samples of each)",
        "  write rate of 1 of 5 partitions (needs two samples since its log was reset)",
        "  write rate of 2 of 5 partitions (needs a sample with records and their size)",
    ]


def test_an_unknown_disk_needs_the_snapshot_rather_than_metrics(tmp_path: Path) -> None:
    measured = dict.fromkeys(
        ("bytes_in_per_s", "bytes_out_per_s", "cpu_share", "peak_cpu_share", "cpu_capacity_bytes_per_s"), 0.5
    )
    fill(tmp_path, [load_row("t", 0, 1.0)], broker_loads=[row(BROKER_LOADS, **measured, cluster_id="c.1", broker=1)])
    (line,) = [line for line in show(tmp_path).stdout.splitlines() if "of some brokers" in line]
    assert line == "  disk of some brokers (needs the size of each log directory in the snapshot)"


def test_an_unknown_total_size_is_nowhere_shown_as_0(tmp_path: Path) -> None:
    fill(tmp_path, [load_row("t", 0, 1.0, size_bytes=MB)], load_ms=TAKEN_MS)
    fill(tmp_path, [load_row("t", 0, 1.0)], load_ms=TAKEN_MS + DAY_MS)
    assert "partitions +0 (+0.0%), size -, write rate" in show(tmp_path).stdout
    (cluster,) = json.loads(show(tmp_path, "--format", "json").stdout)["clusters"]
    assert (cluster["before"]["totals"]["size_bytes"], cluster["totals"]["size_bytes"]) == (MB, None)
    words = Page(load_page(tmp_path)).words
    assert " Size - Write rate" in words
    assert "2025-11-04 10:00:00 UTC: size -, write rate" in words


def test_no_such_line_is_shown_where_all_was_measured(tmp_path: Path) -> None:
    known = {"size_bytes": 1, "p95_write_bytes_per_s": 1.0, "peak_hour": 3, "peak_write_bytes_per_s": 1.0}
    fill(tmp_path, [load_row("t", 0, 1.0, **known)])
    assert "not measured" not in show(tmp_path).stdout


def test_what_is_cut_says_how_much_and_where_all_of_it_is(tmp_path: Path) -> None:
    fill(tmp_path, [load_row("t", number) for number in range(7)])
    assert show(tmp_path).stdout.splitlines()[-1] == "and 2 more; --format csv has all"
    assert len(show(tmp_path, "--format", "csv").stdout.splitlines()) == 1 + 7
    fill(tmp_path, [load_row("t", 0, 1.0)])
    assert show(tmp_path).stdout.splitlines()[-1] == "no partition is doubtful"


def test_programs_get_every_figure_as_json_and_every_partition_as_csv(tmp_path: Path) -> None:
    fill(tmp_path, **a_cluster())
    (cluster,) = json.loads(show(tmp_path, "--format", "json").stdout)["clusters"]
    assert cluster["totals"]["write_bytes_per_s"] == pytest.approx(69.6 * MB)
    assert cluster["outlook"]["size_bytes"]["low"] == pytest.approx(243_500 * MB * 1.2 * 0.8)
    assert cluster["doubtful"]["first"][1]["write_bytes_per_s"] is None
    rows = list(csv.DictReader(io.StringIO(show(tmp_path, "--format", "csv").stdout)))
    assert len(rows) == 12
    assert (rows[0]["cluster_id"], rows[0]["topic"], rows[0]["partition"]) == ("c.1", "clicks", "0")
    assert float(rows[0]["write_bytes_per_s"]) == 27 * MB
    assert (rows[-1]["topic"], rows[-1]["write_bytes_per_s"], rows[-1]["doubt"]) == (
        "clicks",
        "",
        "no rate: no samples",
    )


def test_how_much_of_each_hour_of_the_last_day_was_measured_is_told(tmp_path: Path) -> None:
    """Like Cruise Control's windows: gaps of a collector that stopped, or of a broker that is not asked, show."""
    rows = [row for number in range(10) for row in hour_rows("t", number, 1.0, hours=30)]
    last_ms = max(row["hour_ms"] for row in rows)
    begin_ms = last_ms - DAY_MS

    def seen(row: Row) -> bool:
        hours_ago = (last_ms - row["hour_ms"]) // HOUR_MS
        return not (hours_ago == 5 and row["partition"] < 7) and not (hours_ago == 8 and row["partition"] == 0)

    # Hours of a partition that is gone, and the hour that goes on, are no matter.
    others = hour_rows("gone", 0, 1.0, hours=30)
    fill(tmp_path, [load_row("t", number, 1.0) for number in range(10)], load_hours=[*filter(seen, rows), *others])
    assert "23 of the last 24 hours were measured; of that from 2025-11-04 04:00:00 UTC 30%" in show(tmp_path).stdout
    (cluster,) = json.loads(show(tmp_path, "--format", "json").stdout)["clusters"]
    told = {(one["hour_ms"] - begin_ms) // HOUR_MS: one["measured_share"] for one in cluster["windows"]}
    assert list(told) == list(range(24))
    assert {hour: share for hour, share in told.items() if share < 1} == {
        19: pytest.approx(0.3),
        16: pytest.approx(0.9),
    }

    # Of one cluster nothing came for nine hours.
    late = [row | {"cluster_id": "c.2", "hour_ms": row["hour_ms"] + 10 * HOUR_MS} for row in others]
    two = [load_row("t", 0, 1.0), load_row("gone", 0, 1.0) | {"cluster_id": "c.2"}]
    fill(tmp_path, two, load_hours=[*hour_rows("t", 0, 1.0), *late])
    assert "15 of the last 24 hours were measured" in show(tmp_path, "--cluster", "c.1").stdout


def test_every_cluster_is_shown_or_the_one_that_is_asked_for(tmp_path: Path) -> None:
    fill(tmp_path, [load_row("t", 0, 1.0), load_row("u", 0, 2.0) | {"cluster_id": "c.2"}])
    assert show(tmp_path).stdout.count("snapshot of") == 2
    assert show(tmp_path, "--cluster", "c.2").stdout.startswith("cluster c.2, ")
    result = show(tmp_path, "--cluster", "c.3")
    assert (result.exit_code, result.stdout) == (6, "")
    assert result.stderr == "error: the tables hold nothing of cluster c.3, only of c.1, c.2\n"


def test_what_has_changed_since_the_load_before_is_told(tmp_path: Path) -> None:
    fill(tmp_path, [load_row("t", 0, 10.0 * MB, size_bytes=MB), load_row("t", 1, size_bytes=MB)], load_ms=TAKEN_MS)
    assert "since load" not in show(tmp_path).stdout
    now = [load_row("t", number, 4.0 * MB, size_bytes=2 * MB) for number in range(3)]
    fill(tmp_path, now, load_ms=TAKEN_MS + DAY_MS)
    assert (
        "since load 1 of 2025-11-04 10:00:00 UTC: partitions +1 (+50.0%), size +4 MB (+200.0%), "
        "write rate +2 MB/s (+20.0%)\n"
    ) in show(tmp_path).stdout
    (cluster,) = json.loads(show(tmp_path, "--format", "json").stdout)["clusters"]
    assert (cluster["load_number"], cluster["before"]["load_number"]) == (2, 1)
    assert (cluster["load_ms"], cluster["before"]["load_ms"]) == (TAKEN_MS + DAY_MS, TAKEN_MS)
    assert cluster["before"]["totals"]["write_bytes_per_s"] == 10 * MB
    fill(tmp_path, now[:1], load_ms=TAKEN_MS + 2 * DAY_MS)
    assert "partitions -2 (-66.7%), size -4 MB (-66.7%), write rate -8 MB/s (-66.7%)" in show(tmp_path).stdout
    then = show(tmp_path, "--as-of", "2025-11-05T10:00").stdout
    assert "write rate +2 MB/s (+20.0%)" in then
    assert "t-2" in then
    assert show(tmp_path, "--as-of", "2").stdout == then
    assert show(tmp_path, "--as-of", "4").stderr == f"error: {tmp_path} has no load 4, its loads are 1 to 3\n"
    early = show(tmp_path, "--as-of", "2025-11-04T09:59", "--format", "csv")
    assert (early.exit_code, early.stdout) == (6, "")
    assert "no load of" in early.stderr
    page = load_page(tmp_path)
    assert "Since load 2 of 2025-11-05 10:00:00 UTC: size -4 MB (-66.7%)" in page
    assert "load 3 of 2025-11-06 10:00:00 UTC" in page


def test_a_load_before_whose_files_are_gone_is_none(tmp_path: Path) -> None:
    fill(tmp_path, [load_row("t", 0, 1.0)], load_ms=TAKEN_MS)
    for file in (tmp_path / "load_model").glob("*.parquet"):
        file.unlink()
    fill(tmp_path, [load_row("t", 0, 2.0)], load_ms=TAKEN_MS + DAY_MS)
    result = show(tmp_path)
    assert (result.exit_code, result.stderr) == (0, following(tmp_path))
    assert "since load" not in result.stdout


def test_a_load_that_goes_on_is_not_shown(tmp_path: Path) -> None:
    fill(tmp_path, [load_row("t", 0, 1.0)])
    write_rows(tmp_path, LOAD_MODEL, [load_row("unfinished", 0, 2.0)], file_stem="load")
    assert "unfinished" not in show(tmp_path).stdout
    assert "t-0" in show(tmp_path).stdout


@pytest.mark.parametrize("arguments", [(), ("--format", "csv"), ("--format", "json"), ("--quality",)])
def test_without_a_load_there_is_an_error_and_nothing_on_stdout(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    result = show(tmp_path, *arguments)
    assert result.stdout == ""
    assert f"error: there are no tables in {tmp_path}; " in result.stderr
    assert "fill it with `kreassign collect`" in result.stderr


def test_how_rows_were_treated_is_shown_without_a_load(tmp_path: Path) -> None:
    fill(tmp_path, **a_cluster())
    approve(show(tmp_path, "--quality").stdout, "show-load-quality")
    assert show(tmp_path, "--quality", "--format", "json").exit_code == 2


def test_the_page_is_one_file_per_cluster(tmp_path: Path) -> None:
    fill(tmp_path, **a_cluster())
    page = tmp_path / "load.html"
    result = show(tmp_path, "--page", str(page))
    assert (result.exit_code, result.stdout) == (0, f"page of the load: {page}\n")
    assert page.read_text().count('class="band"') == 1 + 8
    assert show(tmp_path, "--page", str(page), "--top", "2").exit_code == 0
    assert page.read_text().count('class="band"') == 1 + 2
    assert show(tmp_path, "--page", str(page), "--format", "json").exit_code == 2
    page.unlink()
    assert show(tmp_path, "--page", str(page), "--cluster", "c.3").exit_code == 6
    assert not page.exists()


def test_it_needs_no_spark(tmp_path: Path) -> None:
    fill(tmp_path, **a_cluster())
    program = (
        "import sys; sys.modules['pyspark'] = sys.modules['py4j'] = None\nfrom kreassign.cli.main import main; main()"
    )
    command = [sys.executable, "-c", program, "show-load", "--data", str(tmp_path)]
    for more, said in (([], "clicks-0"), (["--page", str(tmp_path / "load.html")], "page of the load")):
        done = subprocess.run([*command, *more], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "" if more else following(tmp_path))
        assert said in done.stdout


def test_the_tables_may_be_at_an_address(tmp_path: Path) -> None:
    fill(tmp_path, **a_cluster())
    result = CliRunner().invoke(kreassign, ["show-load", "--data", tmp_path.as_uri()])
    assert (result.exit_code, result.stderr) == (0, following(tmp_path.as_uri()))
    assert result.stdout == show(tmp_path).stdout
