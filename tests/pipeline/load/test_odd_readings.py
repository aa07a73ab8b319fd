"""One odd reading costs itself: whole histories of a known rate, each spoilt in one way, against the truth."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pytest
from pyspark.sql import SparkSession

from kreassign.pipeline.load.checks import screen
from kreassign.pipeline.load.rules import ROW_RULES
from kreassign.pipeline.tables.schemas import PARTITIONS, REPLICAS, SAMPLES, Row
from tests.pipeline.load.samples import rated
from tests.pipeline.load.test_load_model import frame, load_model

BEGIN_MS = 1_762_250_400_000
MINUTE_MS = 60_000
YEAR_MS = 365 * 24 * 60 * MINUTE_MS
ROUNDS = 240
NOW_MS = BEGIN_MS + ROUNDS * MINUTE_MS
RECORD_BYTES = 100
LARGEST = 2**63 - 1
TOLERANCE = 0.02

History = list[Row]
Spoil = Callable[[History], list[Row]]


def history() -> History:
    """Four hours of a sample a minute: about 600 records each, a little more or less, of 100 bytes."""
    end, rows = 50_000, []
    for number in range(ROUNDS):
        rows.append(
            {
                "taken_ms": BEGIN_MS + number * MINUTE_MS,
                "start_offset": 1_000,
                "end_offset": end,
                "size_bytes": (end - 1_000) * RECORD_BYTES,
            }
        )
        end += 550 + number * 37 % 101
    return rows


TRUE_RATE = (history()[-1]["end_offset"] - history()[0]["end_offset"]) / ((ROUNDS - 1) * 60)


def at(*places: int, **changes: Callable[[Row], object]) -> Spoil:
    """The rows at these places with columns changed."""

    def spoil(rows: History) -> list[Row]:
        for place in places:
            rows[place] |= {name: change(rows[place]) for name, change in changes.items()}
        return rows

    return spoil


def times(factor: float, name: str) -> Callable[[Row], int]:
    return lambda row: int(row[name] * factor)


def less(count: int) -> Callable[[Row], int]:
    return lambda row: row["end_offset"] - count


def from_round(place: int, less_records: int) -> Spoil:
    """Lower the record counts from a round on, as after a truncation."""
    return at(*range(place, ROUNDS), end_offset=less(less_records))


def last_one_lower(rows: History) -> list[Row]:
    rows[-1]["end_offset"] = rows[-2]["end_offset"] - 1
    return rows


@dataclass(frozen=True)
class Case:
    """A way to spoil a history, and the expected reasons of its rows, in order of time."""

    spoil: Spoil
    reasons: tuple[str, ...] = ()


BEHIND = "end_offset is behind the samples before it, and comes back"
AHEAD = "end_offset is ahead of the samples after it, and comes back"
LAST = "end_offset is behind the sample before it, and is the last"
JUMP = "end_offset jumps, and no later sample confirms it"
DISK = "size_bytes is more than a disk holds"
CASES: Mapping[str, Case] = {
    "nothing is wrong": Case(lambda rows: rows),
    "the last sample one record lower": Case(last_one_lower, (LAST,)),
    "the last sample far lower": Case(at(-1, end_offset=lambda _: 1_000), (LAST,)),
    "two low samples together": Case(at(100, 101, end_offset=times(0.5, "end_offset")), (BEHIND,) * 2),
    "two low samples with one between": Case(at(100, 102, end_offset=times(0.5, "end_offset")), (BEHIND,) * 2),
    "an empty reading": Case(at(100, end_offset=lambda _: 1_000, size_bytes=lambda _: 0), (BEHIND,)),
    "a leader that is three rounds behind": Case(at(100, end_offset=less(1_800)), (BEHIND,)),
    "one offset times 1,000": Case(at(100, end_offset=times(1_000, "end_offset")), (AHEAD,)),
    "two offsets times 1,000 together": Case(
        at(100, 101, end_offset=times(1_000, "end_offset")), (AHEAD, "end_offset is ahead of the two samples after it")
    ),
    "the last offset times 1,000": Case(at(-1, end_offset=times(1_000, "end_offset")), (JUMP,)),
    "the last but one times 1,000": Case(at(-2, end_offset=times(1_000, "end_offset")), (AHEAD,)),
    "the second times 1,000": Case(at(1, end_offset=times(1_000, "end_offset")), (AHEAD,)),
    "the first times 1,000": Case(at(0, end_offset=times(1_000, "end_offset"))),
    "the largest offset": Case(at(100, end_offset=lambda _: LARGEST), ("end_offset is more than a log can reach",)),
    "a size of 10^15": Case(at(100, size_bytes=lambda _: 10**15), (DISK,)),
    "the largest size": Case(at(100, size_bytes=lambda _: LARGEST), (DISK,)),
    "the largest size at the end": Case(at(-1, size_bytes=lambda _: LARGEST), (DISK,)),
    "the largest of all": Case(
        at(100, size_bytes=lambda _: LARGEST, end_offset=lambda _: LARGEST, start_offset=lambda _: LARGEST),
        ("end_offset is more than a log can reach",),
    ),
    "a size times 1,000": Case(at(100, size_bytes=times(1_000, "size_bytes")), ("size_bytes jumps without records",)),
    "the last size times 1,000": Case(
        at(-1, size_bytes=times(1_000, "size_bytes")), ("size_bytes jumps without records",)
    ),
    "a size of nothing": Case(
        at(100, size_bytes=lambda _: 0), ("size_bytes collapses and comes back without records",)
    ),
    "a truncation by three intervals": Case(from_round(100, 1_800)),
    "a truncation by half of the log": Case(from_round(200, 60_000)),
    "a year ahead": Case(
        at(100, taken_ms=lambda row: row["taken_ms"] + YEAR_MS), ("taken_ms is more than an hour ahead of the load",)
    ),
    "in microseconds": Case(
        at(100, taken_ms=times(1_000, "taken_ms")), ("taken_ms is in microseconds or smaller, not in milliseconds",)
    ),
    "in seconds": Case(at(100, taken_ms=times(0.001, "taken_ms")), ("taken_ms is in seconds, not in milliseconds",)),
    "in 1970": Case(at(100, taken_ms=lambda _: 5_000), ("taken_ms is before 2011",)),
    "a clock two hours behind": Case(at(200, taken_ms=lambda row: row["taken_ms"] - 120 * MINUTE_MS + 7), (AHEAD,)),
    "a clock half an hour ahead": Case(at(100, taken_ms=lambda row: row["taken_ms"] + 30 * MINUTE_MS + 7), (BEHIND,)),
    "the id of another topic": Case(
        at(100, topic_id=lambda _: "id-0"), ("topic_id is that of another topic than before and after",)
    ),
    "every row twice": Case(
        lambda rows: [row for row in rows for _ in range(2)], ("another row has the same time",) * ROUNDS
    ),
    "every second one without an id, as an exporter's": Case(at(*range(1, ROUNDS, 2), topic_id=lambda _: None)),
    "every second one without an id, one low": Case(
        lambda rows: at(101, end_offset=times(0.5, "end_offset"))(
            at(*range(1, ROUNDS, 2), topic_id=lambda _: None)(rows)
        ),
        (BEHIND,),
    ),
    "no ids, the last one lower": Case(
        lambda rows: last_one_lower([row | {"topic_id": None} for row in rows]), (LAST,)
    ),
}


def screened_alone(spark: SparkSession, rows: list[Row]) -> tuple[list[Row], list[Row]]:
    """The rows that pass the rules of one row, and as rows of `quarantine` those that do not."""
    screened = screen(SAMPLES, frame(spark, SAMPLES, *rows), NOW_MS)
    return ([row.asDict() for row in found.collect()] for found in (screened.good, screened.bad))


def judged(
    spark: SparkSession, histories: Mapping[str, list[Row]]
) -> tuple[dict[str, Row], dict[str, tuple[str, ...]]]:
    """Load model of each history, and the reasons of the rows that do not count."""
    good, bad = screened_alone(spark, [row | {"topic": name} for name, found in histories.items() for row in found])
    model = load_model(frame(spark, PARTITIONS, *({"topic": name} for name in histories)), frame(spark, REPLICAS), good)
    reasons: dict[str, tuple[str, ...]] = dict.fromkeys(histories, ())
    for row in bad:
        reasons[json.loads(row["row_json"])["topic"]] += (row["reason"],)
    for row in rated(good):
        reasons[row["topic"]] += (row["reason"],) if row["reason"] else ()
    return {row["topic"]: row.asDict() for row in model.collect()}, reasons


ALONE = {rule.reason for rule in ROW_RULES if rule.table is SAMPLES}


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if not ALONE & set(case.reasons)])
def test_an_odd_reading_among_others_is_told(name: str) -> None:
    told = rated(CASES[name].spoil(history()))
    assert tuple(row["reason"] for row in told if row["reason"]) == CASES[name].reasons


@pytest.mark.spark
def test_one_odd_reading_costs_itself_and_is_told(spark: SparkSession) -> None:
    model, reasons = judged(spark, {name: case.spoil(history()) for name, case in CASES.items()})
    assert reasons == {name: case.reasons for name, case in CASES.items()}
    for name in CASES:
        told = model[name]
        assert told["write_records_per_s"] == pytest.approx(TRUE_RATE, rel=TOLERANCE), name
        assert told["p95_write_bytes_per_s"] == pytest.approx(645 / 60 * RECORD_BYTES, rel=2 * TOLERANCE), name
        assert told["bytes_per_record"] == pytest.approx(RECORD_BYTES, rel=TOLERANCE), name
        assert (told["reset_count"], told["coverage"]) == (0, "measured"), name
