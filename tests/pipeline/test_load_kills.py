"""A running `kreassign load` that is killed, with its Java: the long form is `python -m bench load-kills`."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from bench.load_kills import READ, Campaign, Reader, copy_sources
from kreassign.clock import SystemClock
from kreassign.pipeline.load.job import run_load
from kreassign.pipeline.tables.loads import last_load
from kreassign.pipeline.tables.schemas import LOAD_HOURS, PLAN_INPUTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


def test_a_load_that_is_killed_is_never_seen_and_the_next_one_ends_as_if_it_had_not_been(
    spark: SparkSession, tmp_path: Path
) -> None:
    def load(data: Path) -> int:
        run_load(spark, data, lambda _: None, now_ms=SystemClock().now_ms())
        return number(data)

    campaign = Campaign(tmp_path, Random(1))
    with Reader(campaign.data) as reader:
        campaign.collect()
        assert load(campaign.data) == 1
        campaign.collect()
        campaign.kill_at_commit(LOAD_HOURS, wait_s=0.0)
        assert number(campaign.data) == 1
        campaign.collect()
        campaign.kill_at_commit(PLAN_INPUTS, wait_s=0.0)
        # Two small commits are left to it, and whether it has made them nobody knows.
        assert number(campaign.data) in {1, 2}
        reader.look()
        last = load(campaign.data)
        reader.look()
    assert reader.wrong == []
    assert (min(reader.seen), max(reader.seen)) == (1, last)

    copy_sources(campaign.data, tmp_path / "whole")
    load(tmp_path / "whole")
    found = [*campaign.compared(tmp_path / "whole")]
    assert len(found) == len(READ) + 2
    assert [line for line in found[:-1] if not line.endswith("other than in a load of all: 0")] == []
    assert found[-1].endswith("told too many: 0"), found[-1]


def number(data: Path) -> int:
    load = last_load(data)
    assert load is not None
    return load.number
