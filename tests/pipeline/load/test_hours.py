"""Samples that come in parts, in whatever order within the allowed lateness, make the same hours as all at once."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.testing import assertDataFrameEqual

from kreassign.pipeline.load.hours import ALLOWED_LATENESS_MS, HOUR_MS, hours_of, open_samples, parts, quarantined
from kreassign.pipeline.load.intake import to_judge
from kreassign.pipeline.load.rates import rates
from kreassign.pipeline.tables.schemas import LOAD_HOURS, OPEN_SAMPLES, QUARANTINE, SAMPLES, Row
from tests.pipeline.load.test_load_model import frame

pytestmark = pytest.mark.spark

BEGIN_MS = 1_762_250_400_000
MINUTE_MS = 60_000
NOW_MS = BEGIN_MS + 30 * 24 * HOUR_MS


@dataclass
class Stored:
    """What is in the tables after some loads."""

    hours: DataFrame
    left_open: DataFrame
    quarantine: DataFrame


def load(spark: SparkSession, rows: Sequence[Row], before: Stored | None = None) -> Stored:
    """What a load makes of new rows, and of what the one before it has left."""
    left = None if before is None else before.left_open
    found = parts(rates(to_judge(frame(spark, SAMPLES, *rows), left, NOW_MS))).localCheckpoint()
    hours, odd, left_open = hours_of(found), quarantined(found), open_samples(found)
    if before is not None:
        hours = before.hours.where("NOT is_open").unionByName(hours)
        odd = before.quarantine.where("NOT is_open").unionByName(odd)
    return Stored(*(each.localCheckpoint() for each in (hours, left_open, odd)))


def histories(chance: random.Random) -> Iterator[Row]:
    """Eighteen hours of partitions that are each spoilt in another way, the rows in order of time."""
    for partition in range(12):
        end, topic_id, cadence = 50_000, "id-1", chance.choice([1, 5, 20, 40])
        minute = chance.randrange(60)
        while minute < 18 * 60:
            end += chance.randrange(600)
            odd = chance.random()
            offset, size = end, end * 100
            if odd < 0.10:
                offset = end * chance.choice([1_000, 2**40]) if odd < 0.03 else end - min(end, 1_000)
            elif odd < 0.13:
                size = 10**15
            elif odd < 0.15:
                end, topic_id = 10, f"id-{minute}"
            elif odd < 0.17:
                end -= min(end, 2_000)
            elif odd < 0.20:
                minute += chance.randrange(400)
            row = {
                "partition": partition,
                "topic_id": topic_id,
                "taken_ms": BEGIN_MS + minute * MINUTE_MS,
                "end_offset": offset,
                "size_bytes": size,
                "leader": chance.choice([1, 1, 1, 2]),
            }
            yield from [row] * chance.choice([1] * 20 + [2])
            minute += cadence


def in_parts(rows: Sequence[Row], chance: random.Random) -> list[list[Row]]:
    """The rows in some parts; one that is not too late for it may come a part later."""
    bounds = sorted(chance.sample(range(BEGIN_MS, BEGIN_MS + 18 * HOUR_MS), 5))
    batches: list[list[Row]] = [[] for _ in range(6)]
    for row in sorted(rows, key=lambda row: row["taken_ms"]):
        number = sum(bound <= row["taken_ms"] for bound in bounds)
        may_wait = number < len(bounds) and bounds[number] - row["taken_ms"] < ALLOWED_LATENESS_MS // 2
        number += may_wait and chance.random() < 0.3
        batches[number].append(row)
    for batch in batches:
        chance.shuffle(batch)
    return batches


def test_parts_in_any_order_make_the_same_hours_as_all_at_once(spark: SparkSession) -> None:
    chance = random.Random(7)
    rows = list(histories(chance))
    together = load(spark, rows)
    stored: Stored | None = None
    for batch in in_parts(rows, chance):
        stored = load(spark, batch, stored)
    assert stored is not None
    assert together.hours.where("NOT is_open").count() > 50
    assertDataFrameEqual(stored.hours.drop("is_open"), together.hours.drop("is_open"), rtol=0.0, atol=0.0)
    names = QUARANTINE.column_names
    assertDataFrameEqual(stored.quarantine.select(*names), together.quarantine.select(*names))
    assert stored.hours.columns == list(LOAD_HOURS.column_names)
    assert stored.left_open.columns == list(OPEN_SAMPLES.column_names)
