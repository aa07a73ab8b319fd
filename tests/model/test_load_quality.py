"""Treatment of the rows that a load read."""

from __future__ import annotations

from kreassign.model.load import LoadAccount


def test_rows_are_counted_over_all_tables() -> None:
    tables = {"samples": {"good": 5, "late": 0}, "disks": {"good": 7, "late": 2}}
    account = LoadAccount(load_ms=1, tables=tables, reasons=())
    assert [account.count(treatment) for treatment in ("good", "late")] == [12, 2]
    assert LoadAccount(1, {}, ()).count("good") == 0
