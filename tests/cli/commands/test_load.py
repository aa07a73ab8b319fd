from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from kreassign.cli.main import kreassign as command
from tests.approved import approve
from tests.pipeline.clusters import fill


def test_without_pyspark_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delitem(sys.modules, "kreassign.pipeline.load.job", raising=False)
    monkeypatch.setitem(sys.modules, "pyspark", None)  # as if it were not installed
    result = CliRunner().invoke(command, ["load", "--data", str(tmp_path)])
    assert result.exit_code == 1
    assert result.stderr.startswith("error: the load job needs PySpark")
    assert re.search(r"pip install .*\[spark\]'$", result.stderr.strip())
    assert result.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_directory_without_tables_is_refused_before_spark_is_started(tmp_path: Path) -> None:
    result = CliRunner().invoke(command, ["load", "--data", str(tmp_path / "none")])
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (
        6,
        f"error: there is no folder {tmp_path / 'none'}; correct the name, or fill it with `kreassign collect`",
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.spark
def test_counts_go_to_stdout_and_sparks_words_to_its_log(tmp_path: Path) -> None:
    # In a process of its own, for Spark has one session per process and the command ends the one that it uses.
    fill(tmp_path)
    script = "from kreassign.cli.main import main; main()"
    command_line = [sys.executable, "-c", script, "load", "--data", str(tmp_path), "--master", "local[1]"]
    command_line += ["--conf", "spark.ui.enabled=true", "--conf", "spark.ui.port=0"]
    done = subprocess.run([*command_line, "--quality", "--show"], capture_output=True, text=True, check=False)
    # On a machine under load it may take so long that it says what it is working on.
    others = [line for line in done.stderr.splitlines() if not line.startswith("working: ")]
    assert (done.returncode, others) == (0, [f"next: kreassign plan --out plan.json --data {tmp_path}"])
    text, shown = done.stdout.split("\n\n", maxsplit=1)
    port, time = re.compile(r"(?<=127\.0\.0\.1:)\d+"), re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", re.MULTILINE)
    approve([text], "load", LOG=tmp_path / "spark.log", PORT=port, TIME=time)
    assert shown.startswith("cluster c.1, snapshot of 2025-11-04 10:00:00 UTC: 2 partitions of 1 topic\n")
    assert [line.split() for line in shown.splitlines()[-2:]] == [
        ["orders-1", "-", "70", "B", "no", "rate:", "no", "samples"],
        ["orders-0", "8", "B/s", "80", "B", "measured", "for", "8", "s,", "less", "than", "a", "day"],
    ][::-1]
    assert "log4j" in (tmp_path / "spark.log").read_text()
