"""PURE. Which broker sends how much to which: the matrix of source and destination."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from kreassign.report.chart import Chart, Grid, Ranked, Table, heat_map, largest
from kreassign.report.text import format_bytes

SHOWN_BROKERS = 24
SHOWN_PAIRS = 100

Flow = tuple[int, int, float]
"""Source, destination, bytes."""


def matrix(flows: Iterable[Flow], says: str) -> Chart | None:
    """Bytes by source and destination; those who send or receive little are put together. None where nothing goes."""
    total: dict[tuple[int, int], float] = defaultdict(float)
    for source, destination, size in flows:
        total[source, destination] += size
    if not any(total.values()):
        return None
    sent, received = _sums(total, 0), _sums(total, 1)
    senders, receivers = largest(sent, SHOWN_BROKERS), largest(received, SHOWN_BROKERS)
    cells: dict[tuple[str, str], float] = defaultdict(float)
    for (source, destination), size in total.items():
        cells[f"from {_name(source, senders)}", f"to {_name(destination, receivers)}"] += size
    rows = tuple(f"from {name}" for name in _names(senders))
    columns = tuple(f"to {name}" for name in _names(receivers))
    grid = Grid(
        rows,
        columns,
        tuple(tuple(cells.get((row, column)) for column in columns) for row in rows),
        tuple(tuple(_text(cells.get((row, column), 0.0)) for column in columns) for row in rows),
    )
    busiest = (max(sent, key=lambda one: sent[one]), max(received, key=lambda one: received[one]))
    most = (
        f"Broker {busiest[0]} sends most, {format_bytes(sent[busiest[0]])}; "
        f"broker {busiest[1]} receives most, {format_bytes(received[busiest[1]])}."
    )
    return Chart("matrix", "Who sends to whom", f"{says} {most}", heat_map(grid), _table(total), grid.height_px)


def _sums(total: Mapping[tuple[int, int], float], end: int) -> dict[int, float]:
    """Bytes by broker at one end: 0 the source, 1 the destination."""
    found: dict[int, float] = defaultdict(float)
    for pair, size in total.items():
        found[pair[end]] += size
    return found


def _name(broker: int, ranked: Ranked) -> str:
    return f"{broker}" if broker in ranked.shown else ranked.name_of_others


def _names(ranked: Ranked) -> tuple[str, ...]:
    return (*map(str, ranked.shown), *((ranked.name_of_others,) if ranked.others else ()))


def _text(size: float) -> str:
    return format_bytes(size) if size else ""


def _table(total: Mapping[tuple[int, int], float]) -> Table:
    ranked = sorted(total.items(), key=lambda one: (-one[1], one[0]))
    pairs = [(f"broker {source}", f"broker {target}", format_bytes(size)) for (source, target), size in ranked]
    return Table(("from", "to", "bytes"), tuple(pairs[:SHOWN_PAIRS]), max(0, len(pairs) - SHOWN_PAIRS))
