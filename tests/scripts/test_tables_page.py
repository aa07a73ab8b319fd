"""The reference of the tables is what their description says."""

from __future__ import annotations

from kreassign.pipeline.tables.schemas import INT, STRING, Column, Table
from scripts.tables_page import PAGE, tables_page

TABLE = Table(
    "things",
    "Things that are.",
    "kreassign make",
    ("id", "place"),
    (Column("id", INT, "its number"), Column("place", STRING, "where it is; NULL when lost", nullable=True)),
)
SECTION = """\
## things

Things that are.

Written by `kreassign make`. One row per `id`, `place`.
Files of a date become one with `kreassign compact`, and dates before its `--keep-days` go.

| Column | Type | Meaning |
|---|---|---|
| `id` | int | its number |
| `place` | string, nullable | where it is; NULL when lost |
"""


def test_a_table_becomes_a_section() -> None:
    assert tables_page((TABLE,)).endswith("\n" + SECTION)


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == tables_page(), "run `python scripts/tables_page.py`"
