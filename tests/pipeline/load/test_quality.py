from __future__ import annotations

from kreassign.model.load import LoadAccount, ReasonCount
from kreassign.pipeline.load.rules import GOOD, Judged, Treatment, load_accounts, quality_lines, quality_rows
from tests.approved import approve

BEGUN_MS = 1_762_250_400_000


def test_rows_are_told_load_after_load_and_the_reasons_of_the_last_one() -> None:
    first = quality_rows(BEGUN_MS, [Judged("samples", GOOD, None, 12), Judged("samples", Treatment.LATE, "twice", 0)])
    odd = [Judged("samples", Treatment.QUARANTINED, why, count) for why, count in (("too large", 1_000), ("late", 2))]
    second = quality_rows(BEGUN_MS + 60_000, [*odd, Judged("samples", GOOD, None, 0)])
    approve(quality_lines([*second, *first]), "quality-of-two-loads")


def test_only_the_last_ten_loads_are_shown() -> None:
    loads = [row for number in range(12) for row in quality_rows(BEGUN_MS + number, [Judged("samples", GOOD, None, 1)])]
    assert len(list(quality_lines(loads))) == 1 + 10


def test_rows_of_a_load_say_what_happened_and_how_many_were_good() -> None:
    told = [
        Judged("samples", GOOD, None, 0),
        Judged("samples", Treatment.LATE, "twice", 3),
        Judged("samples", Treatment.COUNTED, "gone", 0),
        Judged("replicas", Treatment.SKIPPED, "not read", 1),
    ]
    assert quality_rows(7, told) == [
        {"load_ms": 7, "table_name": "samples", "treatment": "good", "reason": None, "row_count": 0},
        {"load_ms": 7, "table_name": "samples", "treatment": "late", "reason": "twice", "row_count": 3},
        {"load_ms": 7, "table_name": "replicas", "treatment": "skipped", "reason": "not read", "row_count": 1},
    ]


def test_accounts_come_load_by_load_with_tables_and_reasons_by_name() -> None:
    first = [
        Judged("samples", Treatment.QUARANTINED, "b", 2),
        Judged("samples", Treatment.QUARANTINED, "a", 5),
        Judged("samples", Treatment.COUNTED, "z", 4),
        Judged("samples", GOOD, None, 30),
        Judged("samples", GOOD, None, 12),
        Judged("replicas", GOOD, None, 1),
    ]
    rows = [*quality_rows(2_000, [Judged("brokers", Treatment.LATE, "c", 1)]), *quality_rows(1_000, first)]
    nothing = dict.fromkeys(("good", "quarantined", "late", "counted", "skipped"), 0)
    assert load_accounts(rows) == (
        LoadAccount(
            1_000,
            {"replicas": nothing | {"good": 1}, "samples": nothing | {"good": 42, "quarantined": 7, "counted": 4}},
            (
                ReasonCount("samples", "counted", "z", 4),
                ReasonCount("samples", "quarantined", "a", 5),
                ReasonCount("samples", "quarantined", "b", 2),
            ),
        ),
        LoadAccount(2_000, {"brokers": nothing | {"late": 1}}, (ReasonCount("brokers", "late", "c", 1),)),
    )
    assert list(load_accounts(rows)[0].tables) == ["replicas", "samples"]


def test_a_treatment_of_a_newer_version_is_counted_too() -> None:
    rows = [
        {"load_ms": 1, "table_name": "t", "treatment": "mended", "reason": "r", "row_count": count} for count in (3, 4)
    ]
    (account,) = load_accounts(rows)
    assert account.tables["t"]["mended"] == 7


def test_each_table_has_a_line_of_quality() -> None:
    judged = [Judged("samples", GOOD, None, 1_234_567), Judged("brokers", Treatment.SKIPPED, "old", 1)]
    lines = list(quality_lines(quality_rows(BEGUN_MS + 999, judged)))
    approve(lines, "quality-of-two-tables")
    assert list(quality_lines([])) == lines[:1]


def test_the_ten_loads_that_are_shown_are_the_last_ones() -> None:
    loads = [
        row for day in range(12) for row in quality_rows(BEGUN_MS + day * 86_400_000, [Judged("t", GOOD, None, 1)])
    ]
    assert [line[:10] for line in quality_lines(loads)][1:] == [f"2025-11-{day:02}" for day in range(6, 16)]
