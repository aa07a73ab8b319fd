"""Samples that come in parts, in whatever order within the allowed lateness, make the same hours as all at once."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import pytest

from kreassign.pipeline.load.hours import ALLOWED_LATENESS_MS, HOUR_MS
from kreassign.pipeline.tables.schemas import Row
from tests.pipeline.load.samples import judged, to_judge

BEGIN_MS = 1_762_250_400_000
MINUTE_MS = 60_000


COUNTS = ("is_open", "new_count", "new_twice_count")
DECISIONS = ("open_from_ms", "is_closed", "is_clean", "epoch", "is_new", "is_read_again")


@dataclass(frozen=True)
class Stored:
    """Tables after some loads: hours, open samples, and rows set aside."""

    hours: list[Row]
    left_open: list[Row]
    set_aside: list[Row]


NOTHING = Stored([], [], [])


def load(rows: Sequence[Row], before: Stored = NOTHING) -> Stored:
    """Load new rows on top of the state of the load before."""
    left = [row | {"is_new": False} for row in before.left_open]
    found = judged(to_judge([*rows, *left])).to_pylist()
    hours = [row["hour"] for row in found if row["hour"] is not None]
    kept = [row["kept"] for row in found if row["kept"] is not None]
    return Stored(
        [row for row in before.hours if not row["is_open"]] + hours,
        [row for row in kept if row["is_read_again"]],
        [row for row in before.set_aside if row["is_closed"]] + [row for row in kept if row["is_set_aside"]],
    )


def histories(chance: random.Random) -> Iterator[Row]:
    """Eighteen hours of partitions that are each spoilt in another way, the rows in order of time."""
    for partition in range(12):
        end, topic_id, cadence = 50_000, "id-1", chance.choice([1, 5, 20, 40, 90])
        minute = chance.randrange(60)
        while minute < 18 * 60:
            end += chance.randrange(600)
            odd = chance.random()
            offset, size = end, end * 100
            if odd < 0.10:
                offset = end * chance.choice([1_000, 2**20]) if odd < 0.03 else end - min(end, 1_000)
            elif odd < 0.13:
                size = 10**14
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
    """The rows in some parts; a row waits for the next one, or the one after it, as long as it is not too late."""
    bounds = sorted(chance.sample(range(BEGIN_MS, BEGIN_MS + 18 * HOUR_MS), chance.choice([5, 15])))
    coming = sorted(rows, key=lambda row: row["taken_ms"])
    latest: dict[int, int] = {}
    waiting: list[Row] = []
    batches: list[list[Row]] = []
    for begin_ms, end_ms in pairwise([BEGIN_MS, *bounds]):
        here = [*waiting, *(row for row in coming if begin_ms <= row["taken_ms"] < end_ms)]
        is_waiting = [chance.random() < 0.3 for _ in here]
        for row in (row for row, waits in zip(here, is_waiting, strict=True) if not waits):
            latest[row["partition"]] = max(latest.get(row["partition"], 0), row["taken_ms"])
        waiting = [row for row, waits in zip(here, is_waiting, strict=True) if waits and in_time(row, latest)]
        batches.append(
            [row for row, waits in zip(here, is_waiting, strict=True) if not (waits and in_time(row, latest))]
        )
    batches.append([*waiting, *(row for row in coming if row["taken_ms"] >= bounds[-1])])
    for batch in batches:
        chance.shuffle(batch)
    return batches


def in_time(row: Row, latest: Mapping[int, int]) -> bool:
    """True if a row may come after the latest row of its partition."""
    return latest.get(row["partition"], 0) - row["taken_ms"] < ALLOWED_LATENESS_MS


CLOSED_BY_AN_ODD_ONE = 1343
"""Of this seed the sample that closed an hour turns out to be odd by those after it: the hour stays closed."""


@pytest.mark.parametrize("seed", [*range(40), CLOSED_BY_AN_ODD_ONE])
def test_parts_in_any_order_make_the_same_hours_as_all_at_once(seed: int) -> None:
    chance = random.Random(seed)
    rows = list(histories(chance))
    together = load(rows)
    stored = NOTHING
    for batch in in_parts(rows, chance):
        stored = load(batch, stored)
    assert sum(not row["is_open"] for row in together.hours) > 30
    # An hour may be closed by parts that is open in one load of all: there what closed it came last.
    assert in_order(stored.hours, *COUNTS) == in_order(together.hours, *COUNTS)
    assert in_order(stored.set_aside, *DECISIONS) == in_order(together.set_aside, *DECISIONS)


@pytest.mark.parametrize("cadence", [5, 40, 150])
@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("spoilt", [0.5, 1_000.0])
def test_a_load_after_every_sample_decides_as_one_that_knows_them_all(cadence: int, count: int, spoilt: float) -> None:
    """Also of readings that are wrong together: what they are, only the samples after them tell."""
    ends = [50_000 + 600 * number for number in range(30)]
    odd = {15 + number: int(ends[15 + number] * spoilt) for number in range(count)}
    rows = [
        {"taken_ms": BEGIN_MS + number * cadence * MINUTE_MS, "end_offset": odd.get(number, end), "size_bytes": 9}
        for number, end in enumerate(ends)
    ]
    together, stored = load(rows), NOTHING
    for row in rows:
        stored = load([row], stored)
    assert in_order(stored.hours, *COUNTS) == in_order(together.hours, *COUNTS)
    assert in_order(stored.set_aside, *DECISIONS) == in_order(together.set_aside, *DECISIONS)


def in_order(rows: list[Row], *left_out: str) -> list[str]:
    """The rows as texts, without some columns: whole numbers and doubles are equal to the last bit."""
    return sorted(str({name: value for name, value in row.items() if name not in left_out}) for row in rows)
