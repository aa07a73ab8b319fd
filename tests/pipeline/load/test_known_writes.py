"""Partitions whose writes are known to the byte: what the load calls enough to plan by is right to a tenth."""

from __future__ import annotations

import pytest

from bench.load_cohorts import COHORTS, cohorts
from bench.load_truth import is_wrong, loads_of

# Sizes that are those of something else: each was called enough once, and wrong up to thirteenfold.
BY_SIZES = [name for name in COHORTS if any(word in name for word in ("replica", "follower", "size", "KiB", "lead"))]
OTHERS = [
    "clean", "compaction", "retention", "records × 10 at midday", "the first or last reading wrong",
    "times of whole 5 min", "two leaders by turns, told a round late", "partitions added",
    "answers repeated for up to 5 min", "answers of a cache of 6 min", "rounds of up to 40 s", "an offset that jumps",
    "a follower answers by turns, a minute behind", "offsets ahead by a tenth for 3 h", "a clock set back by an hour",
    "a log put back from a backup of 6 h", "a clock set ahead by an hour", "a cleaner that takes less than comes",
    "retention by bytes, the start told a round late", "records sent 6 h late",
]  # fmt: skip
KNOWN_FOR_SURE = {
    "clean",
    "compaction",
    "retention",
    "records × 10 at midday",
    "a lasting jump of the size",
    "partitions added",
    "an offset that jumps",
    "a log put back from a backup of 6 h",
    "sizes of records that vary by 30 %",
    "sizes of records by another compression",
    "a replica in another directory and back",
    "records sent 6 h late",
}


@pytest.mark.parametrize("name", [*BY_SIZES, *OTHERS])
def test_what_is_enough_to_plan_by_is_right_to_a_tenth(name: str) -> None:
    (cohort,) = cohorts(12, 3, [name])
    found = loads_of(cohort)
    assert len(found) == 12
    enough = [row for row in found if row["verdict"] == "enough"]
    assert [row for row in enough if is_wrong(cohort, row)] == []
    if name in KNOWN_FOR_SURE:
        assert len(enough) == 12


def test_sizes_that_contradict_records_are_told_as_doubtful() -> None:
    for cohort in cohorts(5, 3, ["sizes in KiB since some time", "sizes in MB"]):
        assert {row["verdict"] for row in loads_of(cohort)} == {"doubtful"}
