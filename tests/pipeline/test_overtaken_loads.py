"""Two loads at the same time: the one that is overtaken ends with a refusal, and nothing of it is seen."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from bench.load_kills import READ, REFUSED, Campaign, Reader, copy_sources
from bench.process import KREASSIGN
from kreassign.clock import SystemClock
from kreassign.errors import DataError
from kreassign.pipeline.load.job import run_load
from kreassign.pipeline.tables.commits import last_load
from kreassign.pipeline.tables.delta import open_log
from kreassign.pipeline.tables.schemas import LOAD_HOURS
from testbed.processes import ProcessGroup, is_alive, is_stopped
from testbed.waiting import PATIENCE_S, wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

START_S = 200.0


def load(spark: SparkSession, data: Path) -> int:
    run_load(spark, data, lambda _: None, now_ms=SystemClock().now_ms())
    last = last_load(data)
    assert last is not None
    return last.number


def stop_all_of(group: int) -> list[int]:
    """Stop the processes of a group but for its leader, who kills them should this test die; they are all stopped."""
    listed = subprocess.run(["pgrep", "-g", str(group)], capture_output=True, text=True, check=True)
    found = [int(line) for line in listed.stdout.split() if int(line) != group]
    for one in found:
        os.kill(one, signal.SIGSTOP)
    wait_until(lambda: all(is_stopped(one) or not is_alive(one) for one in found), what="all processes to stop")
    return found


def test_a_load_that_another_overtakes_says_so_and_nothing_of_it_is_seen(spark: SparkSession, tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, Random(1))
    data, log = campaign.data, tmp_path / "said"
    campaign.collect()
    assert load(spark, data) == 1
    campaign.collect()
    before, group = open_log(data, LOAD_HOURS).version, ProcessGroup()
    command = [*KREASSIGN, "load", "--data", str(data), "--conf", f"spark.local.dir={tmp_path / 'spark'}"]
    with Reader(data) as reader:
        slow = group.spawn(command, log=log)
        try:
            wait_until(
                lambda: open_log(data, LOAD_HOURS).version > before or slow.poll() is not None,
                timeout_s=START_S, what="its first commit", every_s=0.005,
            )  # fmt: skip
            stopped = stop_all_of(os.getpgid(slow.pid))
            assert slow.poll() is None, log.read_text()
            assert len(stopped) > 1, "its Java, too"
            assert load(spark, data) == 2
            reader.look()
            for one in stopped:
                os.kill(one, signal.SIGCONT)
            exit_code = slow.wait(START_S)
        finally:
            group.close()
            slow.wait(PATIENCE_S)
        reader.look()
    said = log.read_text()
    assert exit_code == DataError.exit_code, said
    assert [words for words in REFUSED if words in said], said
    assert "Traceback" not in said
    assert reader.wrong == []
    last = last_load(data)
    assert last is not None
    assert last.number == 2

    # What it left is in nobody's way: the next load ends as if it had not been.
    campaign.collect()
    assert load(spark, data) == 3
    copy_sources(data, tmp_path / "whole")
    load(spark, tmp_path / "whole")
    found = [*campaign.compared(tmp_path / "whole")]
    assert len(found) == len(READ) + 2
    assert [line for line in found[:-1] if not line.endswith("other than in a load of all: 0")] == []
    assert found[-1].endswith("told too many: 0"), found[-1]
