#!/usr/bin/env python3
"""Write docs/reference/load-rules.md from the rules of the load and of a topic of metrics.

python scripts/load_rules_page.py
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kreassign.pipeline.ingest.metric_records import STREAM_RULES
from kreassign.pipeline.load.rates import SERIES_RULES, SeriesRule
from kreassign.pipeline.load.rules import RULES, Rule
from kreassign.pipeline.tables.schemas import SAMPLES

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "load-rules.md"

_HEAD = """\
# Rules of the load

`kreassign load` believes no row of its sources before these rules have judged it. A row whose column must not be NULL
and is, is quarantined first of all. The first rule that is true of a row names the reason that the tables tell. One row
is all that a reading costs: the interval across it is measured between its neighbours.

- **good**: the row counts.
- **quarantined**: it does not, and is in table [`quarantine`](tables.md#quarantine) as JSON with its reason.
- **late**: it does not count, but is not wrong. It stays in its table.
- **counted**: it counts, and how many there are is told.
- **skipped**: a whole file is not read: it is cut off, lacks a column that must not be NULL, has one in another type,
  or is no Parquet file. Where that costs the latest snapshot its partitions or replicas, the one before stands in.

How many rows of each load were treated how is in table [`load_quality`](tables.md#load_quality), and `kreassign load
--quality` prints it.

Conditions of one row are in Spark's SQL; what is NULL is not true. `:now_ms` is the time of the load. The rules of keys
are told in words. Samples that pass them are judged among their neighbours, in NumPy: NaN is what is not known, and
no comparison with it is true. `near` is a sample and what is around it: samples of the same partition and topic id in
order of time. `end_before` and `end_after` are the end offsets of the neighbours, `median_before` and `median_after`
the medians of the three before and after, `rise_before` and `rise_after` the largest of three steps up, `step_before`
and `step_after` their medians, `size_before`, `size_after` and `start_before` what the neighbours say. `clean` is one
that none of these rules has set aside, among others of that kind.

The rules of `metric_hours` are about the metrics of the last seven days, which each load reads again; its counts of
table `metrics` are about these.

The rules of `metrics` are those of `kreassign stream-metrics`, and `written_ms` is the time of the record. What is
quarantined is in table [`metrics_quarantine`](tables.md#metrics_quarantine); what is late is in `metrics` already; what
is skipped is a single record there. How many there were is in table [`metric_batches`](tables.md#metric_batches).

This page is written by `python scripts/load_rules_page.py` from `rules.py` in
`src/kreassign/pipeline/load/` and from `src/kreassign/pipeline/ingest/metric_records.py`; change these instead.
"""


def load_rules_page(
    rules: Sequence[Rule] = RULES + STREAM_RULES, of_series: Sequence[SeriesRule[Any]] = SERIES_RULES
) -> str:
    """The page in Markdown."""
    sections: dict[str, list[str]] = {}
    for rule in rules:
        sections.setdefault(rule.table.name, []).append(_line(rule, rule.is_broken))
    for each in of_series:
        sections.setdefault(SAMPLES.name, []).append(_line(each, _expression(each)))
    return "\n".join([_HEAD, *(_section(name, lines) for name, lines in sections.items())])


def main() -> None:
    """Write the page."""
    PAGE.write_text(load_rules_page(), encoding="utf-8")


def _section(name: str, lines: list[str]) -> str:
    return "\n".join([f"## {name}", "", "| Reason | Condition | The row is | Why |", "|---|---|---|---|", *lines, ""])


def _line(rule: Rule | SeriesRule[Any], condition: str) -> str:
    # A bar would end the cell, also in code.
    return f"| {rule.reason} | `{condition.replace('|', chr(92) + '|')}` | {rule.treatment} | {rule.why} |"


def _expression(rule: SeriesRule[Any]) -> str:
    """Returned expression of a rule's function, as it is written."""
    source = textwrap.dedent(inspect.getsource(rule.is_broken)).rstrip().removesuffix(",")
    (found,) = ast.parse(source).body
    match found:
        case ast.Expr(ast.Lambda(body=condition)):
            return ast.unparse(condition)
        case ast.FunctionDef(body=[*_, ast.Return(ast.expr() as condition)]):
            return ast.unparse(condition)
    raise TypeError(f"the condition of '{rule.reason}' is no function of one expression")


if __name__ == "__main__":
    main()
