"""Load of each broker before and after, relative to the mean; and bytes between pairs of brokers.

Heat maps, headline, and the matrix of source and destination. Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kreassign.model.text import format_load
from kreassign.report.charts import Chart, Grid, Ranked, Table, heat_map, largest
from kreassign.report.text import format_bytes

EVEN = 1.0
"""Load of a broker with exactly the mean."""


@dataclass(frozen=True, slots=True)
class Resource:
    """A compared resource: its unit, and its means over the brokers with a share of it; None if unknown."""

    name: str
    unit: str
    mean_before: float | None
    mean_after: float | None


@dataclass(frozen=True, slots=True)
class BrokerLoad:
    """Load of one broker by resource, before and after; None if wholly unknown."""

    broker: int
    before: Mapping[str, float] | None
    after: Mapping[str, float] | None


@dataclass(frozen=True, slots=True)
class Hottest:
    """Most loaded broker of a resource, before and after, relative to the mean."""

    resource: str
    before: float
    after: float

    def __str__(self) -> str:
        return f"{self.before:.2f} × → {self.after:.2f} ×"


def hottest(resources: Iterable[Resource], loads: Sequence[BrokerLoad]) -> tuple[Hottest, ...]:
    """Hottest brokers of each resource known before and after, the most uneven resource first."""
    found = [
        Hottest(one.name, before, after)
        for one in resources
        if (before := _highest(one, loads, before=True)) is not None
        and (after := _highest(one, loads, before=False)) is not None
    ]
    return tuple(sorted(found, key=lambda one: -one.before))


def heat_maps(resources: Sequence[Resource], loads: Sequence[BrokerLoad]) -> tuple[Chart, ...]:
    """Heat maps of the brokers before and after, with the same colours and order; none for unknown loads."""
    tops = {one.broker: max(_ratios(one, resources), default=0.0) for one in loads}
    top = min(3.0, max([2.0, *tops.values()]))
    return tuple(
        chart
        for when, title in ((True, "Before"), (False, "After"))
        if (chart := _heat_map(resources, loads, tops, top, before=when, title=title)) is not None
    )


def _heat_map(
    resources: Sequence[Resource],
    loads: Sequence[BrokerLoad],
    tops: Mapping[int, float],
    top: float,
    *,
    before: bool,
    title: str,
) -> Chart | None:
    shown = [one for one in resources if _mean(one, before=before)]
    if not shown or not any(_side(one, before=before) for one in loads):
        return None
    ranked, by_id = largest(tops), {one.broker: one for one in loads}
    rows = [
        (f"broker {broker}", [_ratio(one, by_id[broker], before=before) for one in shown]) for broker in ranked.shown
    ]
    if ranked.others:
        highest = [
            max((value for other in ranked.others if (value := _ratio(one, by_id[other], before=before)) is not None),
                default=None)
            for one in shown
        ]  # fmt: skip
        rows.append((f"most of {ranked.name_of_others}", highest))
    grid = Grid(
        tuple(name for name, _ in rows),
        tuple(one.name for one in shown),
        tuple(tuple(values) for _, values in rows),
        tuple(tuple("" if value is None else f"{value:.2f}×" for value in values) for _, values in rows),
    )
    return Chart(
        f"heat-{title.lower()}",
        title,
        _says(shown, loads, before=before),
        heat_map(grid, middle=EVEN, top=top),
        _table(shown, [by_id[broker] for broker in ranked.shown], len(ranked.others), before=before),
        grid.height_px,
    )


def _says(resources: Sequence[Resource], loads: Sequence[BrokerLoad], *, before: bool) -> str:
    """Sentence with the hottest broker of each resource."""
    found = []
    for one in resources:
        known = [(value, load.broker) for load in loads if (value := _ratio(one, load, before=before)) is not None]
        value, broker = max(known, default=(0.0, -1))
        if broker >= 0:
            found.append(f"{one.name} {value:.2f} × (broker {broker})")
    return f"The load of each broker as a multiple of the mean. Most loaded: {', '.join(found)}."


def _table(resources: Sequence[Resource], loads: Sequence[BrokerLoad], more: int, *, before: bool) -> Table:
    rows = tuple((f"broker {load.broker}", *(_amount(one, load, before=before) for one in resources)) for load in loads)
    return Table(("", *(one.name for one in resources)), rows, more)


def _amount(resource: Resource, load: BrokerLoad, *, before: bool) -> str:
    side = _side(load, before=before)
    value = None if side is None else side.get(resource.name)
    return "-" if value is None else format_load(value, resource.unit, _mean(resource, before=before) or 0.0)


def _highest(resource: Resource, loads: Iterable[BrokerLoad], *, before: bool) -> float | None:
    return max((one for load in loads if (one := _ratio(resource, load, before=before)) is not None), default=None)


def _ratios(load: BrokerLoad, resources: Iterable[Resource]) -> list[float]:
    both = (_ratio(one, load, before=when) for one in resources for when in (True, False))
    return [value for value in both if value is not None]


def _ratio(resource: Resource, load: BrokerLoad, *, before: bool) -> float | None:
    mean, side = _mean(resource, before=before), _side(load, before=before)
    return None if not mean or side is None or resource.name not in side else side[resource.name] / mean


def _mean(resource: Resource, *, before: bool) -> float | None:
    return resource.mean_before if before else resource.mean_after


def _side(load: BrokerLoad, *, before: bool) -> Mapping[str, float] | None:
    return load.before if before else load.after


# Bytes between brokers: the matrix of source and destination.

SHOWN_BROKERS = 24
SHOWN_PAIRS = 100

Flow = tuple[int, int, float]
"""Source, destination, bytes."""


def flow_matrix(flows: Iterable[Flow], says: str) -> Chart | None:
    """Matrix of bytes by source and destination; small brokers are grouped as others. None without any bytes."""
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
        tuple(
            tuple(format_bytes(flow) if (flow := cells.get((row, column))) else "" for column in columns)
            for row in rows
        ),
    )
    busiest = (max(sent, key=lambda one: sent[one]), max(received, key=lambda one: received[one]))
    most = (
        f"Broker {busiest[0]} sends most, {format_bytes(sent[busiest[0]])}; "
        f"broker {busiest[1]} receives most, {format_bytes(received[busiest[1]])}."
    )
    return Chart("matrix", "Who sends to whom", f"{says} {most}", heat_map(grid), _flow_table(total), grid.height_px)


def _sums(total: Mapping[tuple[int, int], float], end: int) -> dict[int, float]:
    """Sum of bytes by broker at one end of the pairs: 0 for source, 1 for destination."""
    found: dict[int, float] = defaultdict(float)
    for pair, size in total.items():
        found[pair[end]] += size
    return found


def _name(broker: int, ranked: Ranked) -> str:
    return f"{broker}" if broker in ranked.shown else ranked.name_of_others


def _names(ranked: Ranked) -> tuple[str, ...]:
    return (*map(str, ranked.shown), *((ranked.name_of_others,) if ranked.others else ()))


def _flow_table(total: Mapping[tuple[int, int], float]) -> Table:
    ranked = sorted(total.items(), key=lambda one: (-one[1], one[0]))
    pairs = [(f"broker {source}", f"broker {target}", format_bytes(size)) for (source, target), size in ranked]
    return Table(("from", "to", "bytes"), tuple(pairs[:SHOWN_PAIRS]), max(0, len(pairs) - SHOWN_PAIRS))
