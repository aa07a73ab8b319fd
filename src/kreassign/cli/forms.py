"""Documents for programs in the form that was asked for: JSON, YAML, or the rows of their main table as CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

FORM = "kreassign.form"
"""Where the context of click has the form of documents, unless it is JSON."""

ROWS = ("moves", "runs", "issues", "findings", "plans", "choices", "needs", "copies", "partitions", "brokers")
"""The tables of documents, the main one first: a document has at most a few of them."""


def written(document: Mapping[str, Any], form: str | None) -> str:
    """The document in this form, JSON if it is None."""
    if form == "csv":
        return _csv(document)
    if form == "yaml":
        # Slow to load, and few ask for it.
        text: str = import_module("yaml").safe_dump(
            json.loads(json.dumps(document)), sort_keys=False, allow_unicode=True
        )
        return text.rstrip("\n")
    return json.dumps(document, indent=2, ensure_ascii=False)


def _csv(document: Mapping[str, Any]) -> str:
    """The rows of the main table, or the document as one row. What is nested in a field stays JSON."""
    rows = next((document[name] for name in ROWS if _is_table(document.get(name))), [document])
    columns = list(dict.fromkeys(column for row in rows for column in row))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_cell(row.get(column)) for column in columns] for row in rows)
    return text.getvalue().rstrip("\n")


def _is_table(found: Any) -> bool:
    return isinstance(found, Sequence) and bool(found) and all(isinstance(row, Mapping) for row in found)


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, bool | Mapping | list | tuple):
        return json.dumps(value, ensure_ascii=False)
    return value
