"""Metrics in a query of Prometheus, and for each of them the labels that it must have."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import promql_parser as promql


@dataclass(frozen=True, slots=True)
class Selected:
    """A metric that a query names, labels that it relies on, and the values that it expects some of them to have."""

    metric: str
    labels: frozenset[str]
    values: tuple[tuple[str, str], ...]


def selected(query: str) -> tuple[Selected, ...]:
    """Selectors of a query. Raises ValueError where Prometheus would not read it."""
    return tuple(_selected(promql.parse(query), frozenset()))


def _selected(expression: promql.Expr, needed: frozenset[str]) -> Iterator[Selected]:
    match expression:
        case promql.VectorSelector():
            matchers = expression.matchers.matchers
            labels = needed | {one.name for one in matchers}
            values = tuple((one.name, value) for one in matchers for value in _values(str(one.value)))
            yield Selected(str(expression.name), labels, values)
        case promql.AggregateExpr():
            by = frozenset(expression.modifier.labels) if expression.modifier else frozenset()
            yield from _selected(expression.expr, needed | by)
        case promql.BinaryExpr():
            matching = expression.modifier.matching if expression.modifier else None
            on = frozenset(matching.labels) if matching else frozenset()
            for side in (expression.lhs, expression.rhs):
                yield from _selected(side, needed | on)
        case promql.Call():
            for argument in expression.args:
                yield from _selected(argument, needed)
        case promql.MatrixSelector():
            yield from _selected(expression.vector_selector, needed)
        case promql.ParenExpr() | promql.UnaryExpr():
            yield from _selected(expression.expr, needed)
        case promql.NumberLiteral() | promql.StringLiteral():
            return
        case _:
            raise AssertionError(f"an expression of a kind that no test reads: {expression}")


def _values(pattern: str) -> list[str]:
    """The values of which a matcher names each; none where it takes any, or a variable of the dashboard."""
    return pattern.split("|") if re.fullmatch(r"[a-z |-]+", pattern) else []
