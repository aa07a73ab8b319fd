"""PURE. Samples that somebody took himself → rows of table `samples`: each a row, or the reason why it is none.

A row has the columns of table `samples` by their names, in any order: `taken_ms`, `topic`, `partition`, `start_offset`
and `end_offset`; `cluster_id` unless it is given for the whole file; and if they are known `topic_id`, `leader` and
`size_bytes`. Other columns are passed over. Whole numbers may be written as CSV files from data frames have them,
`120.0`; what is empty or NaN is unknown. A row is judged by itself, and a bad one costs nothing but itself.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kreassign.errors import InputError
from kreassign.model import strict_json
from kreassign.model.strict_json import is_half
from kreassign.model.whole_number import signed_number
from kreassign.pipeline.ingest.readings import NO_TEXT, BadRow
from kreassign.pipeline.tables.schemas import BIGINT, INT, SAMPLES, STRING, Column, ColumnType, Row

Given = Mapping[str, Any]
"""A row of a file, as its format has it: column → value."""
Placed = tuple[str, Row | BadRow]
"""Where in its file something is, and the row there, or why it is none."""

_NUMBERS = {INT: 2**31 - 1, BIGINT: 2**63 - 1}
_LEAST = {"leader": -1}
_DEFAULTS: Row = {"leader": -1}
_FORGIVEN = ("cluster_id", *_DEFAULTS, *(column.name for column in SAMPLES.columns if column.nullable))
REQUIRED = tuple(name for name in SAMPLES.column_names if name not in _FORGIVEN)
"""Columns that every file has to have."""
_WHOLE_FLOAT = re.compile(r"(-?\d{1,19})\.0*", re.ASCII)


def text_rows(lines: Iterable[bytes], cluster_id: str | None) -> Iterator[Placed]:
    """Rows of a file of CSV, with a header, or of JSON lines. Raises InputError where it is neither."""
    numbered = ((number, line.decode(errors="surrogateescape")) for number, line in enumerate(lines, start=1))
    filled = ((number, line.strip("\ufeff\r\n")) for number, line in numbered if line.strip("\ufeff \t\r\n"))
    first = next(filled, None)
    if first is None:
        raise InputError("it is empty")
    number, line = first
    if line.lstrip().startswith("["):
        raise InputError("it is one JSON array; write an object per line: jq -c '.[]'")
    if line.lstrip().startswith("{"):
        yield _json_row(number, line, cluster_id)
        yield from (_json_row(number, line, cluster_id) for number, line in filled)
    else:
        yield from _csv_rows(line, filled, cluster_id)


def given_rows(rows: Iterable[Given], cluster_id: str | None) -> Iterator[Placed]:
    """Rows of a Parquet file that has the columns."""
    for number, given in enumerate(rows, start=1):
        place = f"row {number}"
        yield place, sample_row(given, place, cluster_id)


def check_columns(names: Iterable[str], cluster_id: str | None) -> None:
    """Raise InputError, which names them, unless all columns are there that must be."""
    there = set(names)
    wanted = REQUIRED if cluster_id is not None else ("cluster_id", *REQUIRED)
    if missing := [name for name in wanted if name not in there]:
        hint = "; specify --cluster, or add the column" if missing == ["cluster_id"] else ""
        raise InputError(f"it lacks the columns {', '.join(missing)} of table samples{hint}")


def sample_row(given: Given, place: str, cluster_id: str | None) -> Row | BadRow:
    """A row of table `samples`, or what is wrong with it; a cluster that the row names comes before this one."""
    try:
        return {column.name: _required(column, given, cluster_id) for column in SAMPLES.columns}
    except InputError as error:
        return BadRow(place, str(error), json.dumps(dict(given), default=str))


def _required(column: Column, given: Given, cluster_id: str | None) -> Any:
    value = _value(column, given.get(column.name))
    if value is None:
        value = cluster_id if column.name == "cluster_id" else _DEFAULTS.get(column.name)
    if value is None and not column.nullable:
        raise InputError(f"{column.name} is missing")
    return value


def _csv_rows(header: str, lines: Iterable[tuple[int, str]], cluster_id: str | None) -> Iterator[Placed]:
    delimiter = max(",;\t", key=header.count)
    names = [name.strip() for name in _fields(header, delimiter)]
    check_columns(names, cluster_id)
    for number, line in lines:
        # Line by line: a quote that is not closed would swallow the rest of the file. No name has a line end.
        fields = _fields(line, delimiter)
        place = f"line {number}"
        if len(fields) != len(names):
            yield place, BadRow(place, f"has {len(fields)} fields in place of {len(names)}", line)
        else:
            yield place, sample_row(dict(zip(names, fields, strict=True)), place, cluster_id)


def _fields(line: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:
        return []


def _json_row(number: int, line: str, cluster_id: str | None) -> Placed:
    place = f"line {number}"
    if is_half(line):
        return place, BadRow(place, NO_TEXT, line)
    try:
        given = strict_json.loads(line)
    except ValueError:
        return place, BadRow(place, "is not JSON", line)
    if not isinstance(given, dict):
        return place, BadRow(place, "is no object", line)
    return place, sample_row(given, place, cluster_id)


def _value(column: Column, value: Any) -> Any:
    if value is None or value == "" or (isinstance(value, float) and math.isnan(value)):
        return None
    if column.type is STRING:
        return _text(column.name, value)
    return _whole(column.name, column.type, value)


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InputError(f"{name} is not a text")
    if is_half(value):
        raise InputError(f"{name} {NO_TEXT}")
    return value


def _whole(name: str, kind: ColumnType, value: Any) -> int | None:
    if isinstance(value, str):
        text = value.strip()
        if text.lower() in ("", "nan", "null", "none"):
            return None
        match = _WHOLE_FLOAT.fullmatch(text)
        number = signed_number(match[1] if match else text)
    elif isinstance(value, float):
        number = int(value) if value.is_integer() else None
    else:
        number = value if isinstance(value, int) and not isinstance(value, bool) else None
    if number is None or not _LEAST.get(name, -_NUMBERS[kind]) <= number <= _NUMBERS[kind]:
        raise InputError(f"{name} is not a whole number of {'32' if kind is INT else '64'} bits")
    return number
