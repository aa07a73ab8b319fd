"""A running `kreassign load` that is killed, with its Java: the long form is `python -m bench load-kills`."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from bench.load_kills import READ, Campaign, Reader, copy_sources
from kreassign.clock import SystemClock
from kreassign.errors import DataError
from kreassign.pipeline.load.job import run_load
from kreassign.pipeline.tables.commits import last_load
from kreassign.pipeline.tables.schemas import LOAD_HOURS, LOAD_MODEL, PLAN_INPUTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


def test_a_killed_load_is_never_seen_and_the_next_one_completes(spark: SparkSession, tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, Random(1))
    with Reader(campaign.data) as reader:
        campaign.collect()
        assert load(spark, campaign.data) == 1
        campaign.collect()
        campaign.kill_at_commit(LOAD_HOURS, wait_s=0.0)
        assert number(campaign.data) == 1
        campaign.collect()
        campaign.kill_at_commit(PLAN_INPUTS, wait_s=0.0)
        # Two small commits are left to it, and whether it has made them nobody knows.
        assert number(campaign.data) in {1, 2}
        reader.look()
        last = load(spark, campaign.data)
        reader.look()
    assert reader.wrong == []
    assert (min(reader.seen), max(reader.seen)) == (1, last)
    assert_is_as_a_load_of_all(spark, campaign, tmp_path / "whole")


def test_a_load_on_a_full_disk_says_so_and_the_next_one_completes(spark: SparkSession, tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, Random(1))
    campaign.collect()
    assert load(spark, campaign.data) == 1
    campaign.collect()
    for free_bytes, table in ((0, LOAD_HOURS), (120_000, LOAD_MODEL)):  # room for the first tables, not for all
        said = rf"/{table.name}/\S+ The disk is full: free space and run it again"
        with pytest.raises(DataError, match=said):
            campaign.load_on_small_disk(free_bytes)
        assert number(campaign.data) == 1
    assert load(spark, campaign.data) == 2
    assert_is_as_a_load_of_all(spark, campaign, tmp_path / "whole")


def load(spark: SparkSession, data: Path) -> int:
    run_load(spark, data, lambda _: None, now_ms=SystemClock().now_ms())
    return number(data)


def number(data: Path) -> int:
    last = last_load(data)
    assert last is not None
    return last.number


def assert_is_as_a_load_of_all(spark: SparkSession, campaign: Campaign, whole: Path) -> None:
    copy_sources(campaign.data, whole)
    load(spark, whole)
    found = [*campaign.compared(whole)]
    assert len(found) == len(READ) + 2
    assert [line for line in found[:-1] if not line.endswith("other than in a load of all: 0")] == []
    assert found[-1].endswith("told too many: 0"), found[-1]
