"""Which rows of imported files are not stored, and why: the rules of `metric_rules.py`, asked of SQLite row by row.

Rules are written once, in SQL, for files and for topics. Spark judges records of a topic by them; to import a file no
Java is started, and SQLite, which comes with Python, reads the same conditions.
"""

from __future__ import annotations

import re
import sqlite3

from kreassign.pipeline.ingest.metric_rules import IMPORT_RULES
from kreassign.pipeline.tables.schemas import Row, Table

_LARGEST_INTEGER = 2**63 - 1


class Judge:
    """The rules of `metrics` or `samples`, at the time of an import. For one thread."""

    def __init__(self, table: Table, now_ms: int) -> None:
        self._names, self._now_ms = table.column_names, now_ms
        self._rules = IMPORT_RULES[table]
        self._asked = sqlite3.connect(":memory:")
        # As in Spark, where texts of another case are other texts.
        self._asked.execute("PRAGMA case_sensitive_like = ON")
        self._asked.create_function("regexp", 2, _has_match, deterministic=True)
        # SQLite takes NaN for NULL.
        self._asked.create_function("isnan", 1, lambda value: value is None, deterministic=True)
        reasons = (f"WHEN {rule.is_broken} THEN {number}" for number, rule in enumerate(self._rules))
        columns = ", ".join(f":{name} AS {name}" for name in self._names)
        self._question = " ".join(["SELECT CASE", *reasons, "END FROM (SELECT", columns, ")"])

    def why_not(self, row: Row) -> str | None:
        """The reason of the first rule that is true of a row; None if none is. A column that is missing is NULL."""
        values = {name: _storable(row.get(name)) for name in self._names} | {"now_ms": self._now_ms}
        (number,) = self._asked.execute(self._question, values).fetchone()
        return None if number is None else self._rules[number].reason


def _has_match(pattern: str, text: str | None) -> bool | None:
    return None if text is None else re.search(pattern, text) is not None


def _storable(value: object) -> object:
    """What SQLite takes: integers of 64 bits, and no half surrogates, which stand for bytes that are not UTF-8."""
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    return float(value) if isinstance(value, int) and abs(value) > _LARGEST_INTEGER else value
