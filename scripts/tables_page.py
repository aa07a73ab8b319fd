#!/usr/bin/env python3
"""Write docs/reference/tables.md from the description of the tables.

python scripts/tables_page.py
"""

from __future__ import annotations

from pathlib import Path

from kreassign.pipeline.tables.schemas import (
    AUDIT_TABLES,
    AUDITED_RUN_TABLES,
    MERGED_BY_LOADS,
    METRIC_TABLES,
    RUN_TABLES,
    TABLES,
    Table,
)

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "tables.md"

_HEAD = """\
# Tables of the data directory

Every command that takes `--data DIR` reads or writes tables there. A table is a
[Delta table](../design/decisions/delta.md): a folder with the table's name, of Parquet files and a log, `_delta_log`,
that says which of them are the table. Any tool that reads Delta Lake can open it. A file that lies in the folder and is
not in the log is not part of it.

Times are milliseconds since the epoch, sizes are bytes, and a column marked *nullable* is NULL only for the reason
given.

This page is written by `python scripts/tables_page.py` from `src/kreassign/pipeline/tables/schemas.json`; change that
instead.
"""


LIFECYCLES = {
    "dated": "Files of a date become one with `kreassign compact`, and dates before its `--keep-days` go.",
    "a part per run": "A run that is audited again replaces its rows; `kreassign compact` drops runs that ended before "
    "its `--keep-days`.",
    "a part per reading": "A label that is read again replaces its rows; `kreassign compact` drops labels whose "
    "topics were all read again before its `--keep-days`.",
    "replaced by audits": "Each audit replaces it, by the runs that are still in `runs` or the two readings "
    "that it compares.",
    "replaced by loads": "Each load replaces it; `kreassign compact` deletes older ones after 7 days.",
    MERGED_BY_LOADS: "Each load adds a file; loads merge them when there are more than 24 small ones.",
}


def tables_page(
    tables: tuple[Table, ...] = (*TABLES, *METRIC_TABLES, *AUDIT_TABLES, *RUN_TABLES, *AUDITED_RUN_TABLES),
) -> str:
    """The page in Markdown."""
    return "\n".join([_HEAD, *(_section(table) for table in tables)])


def main() -> None:
    """Write the page."""
    PAGE.write_text(tables_page(), encoding="utf-8")


def _section(table: Table) -> str:
    lines = [
        f"## {table.name}",
        "",
        table.comment,
        "",
        f"Written by `{table.made_by}`. One row per {', '.join(f'`{name}`' for name in table.key)}.{_grouped(table)}",
        LIFECYCLES[table.lifecycle] + _kept(table),
        "",
        "| Column | Type | Meaning |",
        "|---|---|---|",
        *(
            f"| `{column.name}` | {column.type}{', nullable' if column.nullable else ''} | {column.comment} |"
            for column in table.columns
        ),
        "",
    ]
    return "\n".join(lines)


def _grouped(table: Table) -> str:
    part = table.partition_by
    if part is None:
        return ""
    return f" The log groups its files by `{part.name}`{', the UTC date' if part.is_date else ''} of `{part.column}`."


def _kept(table: Table) -> str:
    if table.kept is None:
        return ""
    return (
        f" Rows are dropped then whose `{table.kept.column}` is {table.kept.days} days or more before the newest, and "
        "before the window of the load."
    )


if __name__ == "__main__":
    main()
