from __future__ import annotations

from typing import Any

import pytest

from kreassign.pipeline.tables.schemas import Row
from tests.pipeline.load.samples import rated


def told(rows: list[Row], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in rated(rows)]


def test_gaps_resets_duplicates_and_late_clocks_are_distinguished() -> None:
    def sample(second: int, end: int, partition: int = 0, topic_id: str | None = "id-1") -> dict[str, Any]:
        return {"taken_ms": 1000 * second, "end_offset": end, "partition": partition, "topic_id": topic_id}

    samples = [
        *(sample(10 * n, 10 * n) for n in (0, 1, 1, 2, 6, 7)),  # three rounds are missing, one is there twice
        *(sample(10 * n, end, 1) for n, end in enumerate((0, 10, 5, 20, 30, 40))),  # 5 came from another clock
        *(sample(10 * n, end, 2, None) for n, end in enumerate((50, 60, 5, 15))),  # another log, and nobody told ids
        *(sample(10 * n, end, 3, f"id-{topic}") for n, (end, topic) in enumerate([(9, 1), (5, 2), (10, 2)])),
        *(sample(10 * n, end, 4) for n, end in enumerate((50, 60, 5, 15))),  # the same log, truncated
    ]
    assert told(samples, "partition", "taken_ms", "seconds", "new_records", "epoch", "verdict") == [
        (0, 0, None, None, 0, "first"),
        (0, 10_000, None, None, 0, "twice"),
        (0, 10_000, 10.0, 10, 0, "good"),
        (0, 20_000, 10.0, 10, 0, "good"),
        (0, 60_000, 40.0, 40, 0, "gap"),
        (0, 70_000, 10.0, 10, 0, "good"),
        (1, 0, None, None, 0, "first"),
        (1, 10_000, 10.0, 10, 0, "good"),
        (1, 20_000, None, None, 0, "odd"),
        (1, 30_000, 20.0, 10, 0, "good"),
        (1, 40_000, 10.0, 10, 0, "good"),
        (1, 50_000, 10.0, 10, 0, "good"),
        (2, 0, None, None, 0, "first"),
        (2, 10_000, 10.0, 10, 0, "good"),
        (2, 20_000, 10.0, None, 1, "reset"),
        (2, 30_000, 10.0, 10, 1, "good"),
        (3, 0, None, None, 0, "first"),
        (3, 10_000, 10.0, None, 1, "reset"),
        (3, 20_000, 10.0, 5, 1, "good"),
        (4, 0, None, None, 0, "first"),
        (4, 10_000, 10.0, 10, 0, "good"),
        (4, 20_000, 10.0, None, 0, "truncated"),
        (4, 30_000, 10.0, 10, 0, "good"),
    ]


def test_collectors_with_other_cadences_make_no_gaps_and_an_outage_does() -> None:
    minute, hour = 60, 3600
    cadences = {
        "one after the other": [range(0, hour, 20), range(hour, 3 * hour, minute), range(3 * hour, 4 * hour, 30)],
        "a third of a minute apart": [range(phase, 4 * hour, minute) for phase in (0, 20, 40)],
        "nearly together": [range(phase, 4 * hour, minute) for phase in (0, 1, 2)],
        "of different cadences": [range(0, 4 * hour, 20), range(3, 4 * hour, 30), range(7, 4 * hour, minute)],
        "slower than the others of the cluster": [range(0, 4 * hour, 300)],
    }
    an_outage = {"an outage": [range(0, hour, minute), range(2 * hour, 4 * hour, minute)]}
    rows = [
        {"topic": name, "taken_ms": 1000 * second, "end_offset": 10 * second}
        for name, collectors in (cadences | an_outage).items()
        for second in sorted(set().union(*collectors))
    ]
    found = [
        (topic, seconds) for topic, seconds, verdict in told(rows, "topic", "seconds", "verdict") if verdict == "gap"
    ]
    assert found == [("an outage", 3660.0)]


def test_two_outages_close_together_are_both_gaps() -> None:
    seconds, rows = 0, []
    for length in (10, 10, 10, 10, 10, 100, 10, 10, 100, 10, 10, 10, 10):
        seconds += length
        rows.append({"taken_ms": 1000 * seconds, "end_offset": seconds})
    assert [row["seconds"] for row in rated(rows) if row["verdict"] == "gap"] == [100.0, 100.0]


def test_a_topic_that_was_recreated_and_grew_past_its_old_end_is_a_reset() -> None:
    samples = [
        {"taken_ms": 1000, "end_offset": 10, "topic_id": "id-1"},
        {"taken_ms": 2000, "end_offset": 50, "topic_id": "id-2"},
        {"taken_ms": 3000, "end_offset": 60, "topic_id": "id-2"},
        {"taken_ms": 4000, "end_offset": 70, "topic_id": None},
        {"taken_ms": 1000, "end_offset": 10, "topic_id": None, "topic": "old broker"},
        {"taken_ms": 2000, "end_offset": 20, "topic_id": None, "topic": "old broker"},
    ]
    assert told(samples, "topic", "taken_ms", "epoch") == [
        ("t", 1000, 0), ("t", 2000, 1), ("t", 3000, 1), ("t", 4000, 1),
        ("old broker", 1000, 0), ("old broker", 2000, 0),
    ]  # fmt: skip


def test_a_change_of_leader_or_a_reset_is_no_growth() -> None:
    samples = [
        {"taken_ms": 1000, "end_offset": 10, "size_bytes": 100, "leader": 1},
        {"taken_ms": 2000, "end_offset": 20, "size_bytes": 900, "leader": 2},
        # Who leads may be told a round before or after the sizes.
        {"taken_ms": 3000, "end_offset": 25, "size_bytes": 950, "leader": 2},
        {"taken_ms": 4000, "end_offset": 30, "size_bytes": 1000, "leader": 2},
        {"taken_ms": 5000, "end_offset": 35, "size_bytes": 1040, "leader": 2, "topic_id": "id-2"},
    ]
    assert told(samples, "taken_ms", "sized_records", "new_bytes") == [
        (1000, None, None), (2000, None, None), (3000, None, None), (4000, 5, 50), (5000, None, None),
    ]  # fmt: skip


def test_of_two_rows_for_one_round_the_one_that_is_ahead_counts() -> None:
    samples = [
        {"end_offset": 10, "size_bytes": 700, "leader": 2},
        {"end_offset": 12, "size_bytes": 600, "leader": 1},
        {"end_offset": 11, "size_bytes": 500, "leader": 3},
        *({"end_offset": end_offset, "taken_ms": 2000} for end_offset in (60, 70, 75)),
    ]
    twice, rounded = "another row has the same time", "taken_ms is that of a later round, too"
    assert told(samples, "end_offset", "verdict", "reason") == [
        (10, "twice", twice), (11, "twice", twice), (12, "first", None),
        (60, "odd", rounded), (70, "odd", rounded), (75, "good", None),
    ]  # fmt: skip


def test_what_was_decided_of_closed_samples_stays() -> None:
    """Also a reason that no rule of today gives, and the epoch that had been counted."""
    closed = {"is_closed": True, "is_new": False, "is_clean": True}
    samples = [
        closed | {"taken_ms": 1000, "end_offset": 10, "epoch": 4},
        closed | {"taken_ms": 2000, "end_offset": 99, "epoch": 4, "is_clean": False, "reason": "of another time"},
        {"taken_ms": 3000, "end_offset": 20},
        {"taken_ms": 4000, "end_offset": 1, "topic_id": "id-2"},
    ]
    assert told(samples, "taken_ms", "new_records", "epoch", "reason") == [
        (1000, None, 4, None), (2000, None, 4, "of another time"), (3000, 10, 4, None), (4000, None, 5, None),
    ]  # fmt: skip


def intervals(*seconds: float) -> list[str]:
    """Verdicts on intervals of these lengths, of a log to which a record a second is written."""
    ends = [0.0]
    for length in seconds:
        ends.append(ends[-1] + length)
    rows: list[Row] = [{"taken_ms": round(1000 * end), "end_offset": int(end)} for end in ends]
    return [verdict for (verdict,) in told(rows, "verdict")][1:]


def test_a_gap_is_more_than_three_times_as_long_as_those_around_it() -> None:
    around = [10.0] * 4
    assert intervals(*around, 30.0, *around) == ["good"] * 9
    assert intervals(*around, 30.001, *around) == ["good"] * 4 + ["gap"] + ["good"] * 4


@pytest.mark.parametrize(("seconds", "gaps"), [
    # Of three around it one can say what is usual, of two not.
    ((10, 100, 10), 0), ((10, 10, 100, 10), 1), ((100, 10, 10, 10), 1), ((100, 10, 10), 0), ((10, 10, 10, 100), 1),
    # Two that are alike are a cadence; one is, where not all around it are known.
    ((10, 10, 10, 10, 100, 10, 10, 100, 10, 10, 10, 10), 2), ((100, 10, 10, 100, 10, 10, 10, 10), 0),
    ((10, 10, 10, 10, 100, 100, 100, 10, 10, 10, 10), 0),
    ((10, 10, 10, 10, 100, 10, 10, 10, 10, 100, 10, 10, 10, 10), 2),
    # Those further away than four say nothing.
    ((100, 10, 10, 10, 10, 100, 10, 10, 10, 10, 100), 3),
])  # fmt: skip
def test_what_is_usual_is_told_by_four_intervals_on_each_side(seconds: tuple[float, ...], gaps: int) -> None:
    assert intervals(*seconds).count("gap") == gaps


def test_without_ids_a_log_with_less_than_half_is_another_one() -> None:
    def ends(*offsets: int, **values: object) -> list[tuple[Any, ...]]:
        rows = [{"taken_ms": 1000 * n, "end_offset": end} | values for n, end in enumerate(offsets)]
        return told(rows, "epoch", "verdict", "new_records")

    half = ends(100, 50, 60, 70, topic_id=None)
    assert half == [(0, "first", None), (0, "truncated", None), (0, "good", 10), (0, "good", 10)]
    less = ends(100, 49, 60, 70, topic_id=None)
    assert less == [(0, "first", None), (1, "reset", None), (1, "good", 11), (1, "good", 10)]
    assert [one[1] for one in ends(100, 49, 60, 70)] == ["first", "truncated", "good", "good"]


def test_an_id_that_is_not_known_is_no_other_one() -> None:
    rows = [
        {"taken_ms": 1000 * n, "end_offset": end, "topic_id": topic_id}
        for n, (end, topic_id) in enumerate([(10, "a"), (20, None), (30, "a"), (40, None), (50, "b"), (60, "b")])
    ]
    # From no id to another one there is no telling; nor is half of it gone.
    assert told(rows, "epoch", "new_records") == [(0, None), (0, 10), (0, 10), (0, 10), (0, 10), (0, 10)]


def test_bytes_are_those_of_a_log_that_only_grew() -> None:
    usual = {"start_offset": 5, "leader": 1}
    samples = [
        {"end_offset": 10, "size_bytes": 100},
        {"end_offset": 20, "size_bytes": 100},  # the same size is no less
        {"end_offset": 30, "size_bytes": 99},
        {"end_offset": 40, "size_bytes": 199, "start_offset": 6},
        *({"end_offset": 50, "size_bytes": 299, "start_offset": 6, "leader": 2} for _ in range(2)),
        {"end_offset": 50, "size_bytes": 300, "start_offset": 6, "leader": 2},  # bytes without records
        {"end_offset": 60, "size_bytes": None, "start_offset": 6, "leader": 2},
        {"end_offset": 70, "size_bytes": 400, "start_offset": 6, "leader": 2},
    ]
    rows: list[Row] = [usual | {"taken_ms": 1000 * n} | sample for n, sample in enumerate(samples)]
    assert told(rows, "new_records", "sized_records", "new_bytes") == [
        (None, None, None), (10, 10, 0), (10, None, None), (10, None, None), (10, None, None),
        (0, None, None), (0, 0, 1), (10, None, None), (10, None, None),
    ]  # fmt: skip


def test_epochs_go_on_from_those_that_had_been_counted() -> None:
    closed = {"is_closed": True, "is_new": False, "is_clean": True, "topic_id": "a"}
    rows = [
        closed | {"taken_ms": 1000, "end_offset": 10, "epoch": 2},
        closed | {"taken_ms": 2000, "end_offset": 10, "epoch": 5, "topic_id": "b"},
        *({"taken_ms": 1000 * n, "end_offset": 10 * n, "topic_id": "b"} for n in (3, 4)),
        *({"taken_ms": 1000 * n, "end_offset": n, "topic_id": "c"} for n in (5, 6)),
        {"partition": 1, "taken_ms": 1000, "end_offset": 10},
    ]
    assert told(rows, "partition", "epoch", "verdict") == [
        (0, 2, "first"), (0, 5, "good"), (0, 5, "good"), (0, 5, "good"), (0, 6, "reset"), (0, 6, "good"),
        (1, 0, "first"),
    ]  # fmt: skip


def reasons(*ends: int) -> list[str | None]:
    """Why samples with these ends, a second apart, do not count."""
    rows: list[Row] = [{"taken_ms": 1000 * n, "end_offset": end} for n, end in enumerate(ends)]
    return [reason for (reason,) in told(rows, "reason")]


def test_an_extra_record_is_told_by_two_later_samples() -> None:
    ahead = "end_offset is ahead of the samples after it, and comes back"
    last = "end_offset is behind the sample before it, and is the last"
    assert reasons(100, 100, 101, 100, 100) == [None, None, ahead, None, None]
    assert reasons(100, 100, 101, 100) == [None, None, None, last]
    assert reasons(100, 100, 102, 100) == [None, None, ahead, None]
    behind = "end_offset is behind the samples before it, and comes back"
    assert reasons(100, 100, 99, 100) == [None, None, behind, None]
    assert reasons(100, 110, 120, 105, 130, 140) == [None, None, None, behind, None, None]


def sizes(*sizes: int | None, records: int = 10, **values: object) -> list[int | None]:
    """Bytes of each interval of a log that gets so many records in each, of 100 bytes at the begin."""
    rows = [{"taken_ms": 1000 * n, "end_offset": records * n, "size_bytes": size} for n, size in enumerate(sizes)]
    return [new_bytes for (new_bytes,) in told([row | values for row in rows], "new_bytes")]


def test_bytes_that_contradict_their_records_do_not_count() -> None:
    usual = [1000 * n for n in range(12)]
    assert sizes(*usual) == [None] + [1000] * 11
    swollen = [size + 12_000 * (n >= 6) for n, size in enumerate(usual)]
    assert sizes(*swollen) == [None, *[1000] * 5, None, *[1000] * 5], "a jump that stays"
    undone = [size + 2000 * (n == 6) for n, size in enumerate(usual)]
    assert sizes(*undone) == [None, *[1000] * 5, None, None, *[1000] * 4], "a jump that is taken back"
    heavier = [size + 20_000 * max(0, n - 5) for n, size in enumerate(usual)]
    assert sizes(*heavier) == [None, *[1000] * 5, *[21_000] * 6], "records that weigh more from now on"
    copied = [max(0, n - 5) * 3000 if n >= 6 else size for n, size in enumerate(usual)]
    assert None in sizes(*copied)[7:], "after it shrank, the log grows three times as fast"
    cleaned = [size - 4000 * (n >= 6) for n, size in enumerate(usual)]
    assert sizes(*cleaned) == [None, *[1000] * 5, None, *[1000] * 5]


@pytest.mark.parametrize(("left", "contradicts"), [(500, False), (499, True)])
def test_a_log_of_which_hardly_anything_is_left_tells_no_size(left: int, *, contradicts: bool) -> None:
    sizes = (3000, 4000, 5000, left, left + 1000)
    rows = [{"taken_ms": 1000 * n, "end_offset": 10 * n, "size_bytes": size} for n, size in enumerate(sizes)]
    assert told(rows, "contradicts") == [(one,) for one in (False, False, False, contradicts, False)]


def test_a_leader_may_have_any_number() -> None:
    assert sizes(0, 1000, 2000, leader=0) == [None, 1000, 1000]


def test_nobody_knows_whose_size_it_is_while_nobody_knows_who_leads() -> None:
    assert sizes(0, 1000, 2000, leader=-1) == [None, None, None]


def test_an_offset_that_jumps_without_bytes_is_no_write() -> None:
    rows: list[Row] = [
        {"taken_ms": 1000 * n, "end_offset": 10 * n + 900 * (n >= 6), "size_bytes": 1000 * n} for n in range(12)
    ]
    found = told(rows, "new_records", "new_bytes", "verdict")
    assert found[1:6] + found[7:] == [(10, 1000, "good")] * 10
    assert found[6] == (None, None, "truncated")
    frozen = [row | {"size_bytes": 5000 if n >= 5 else row["size_bytes"]} for n, row in enumerate(rows)]
    assert told(frozen, "new_records")[6] == (910,), "the size may be the wrong one"
