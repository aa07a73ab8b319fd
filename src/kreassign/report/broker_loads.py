"""Load of each broker before and after, relative to the mean; and bytes between pairs of brokers.

Heat maps, headline, and the matrix of source and destination. Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kreassign.model.plan_facts import GoalMean
from kreassign.model.text import format_load
from kreassign.report.charts import Chart, Grid, Ranked, Table, heat_map, largest
from kreassign.report.text import format_bytes

EVEN = 1.0
"""Load of a broker with exactly the mean."""


@dataclass(frozen=True, slots=True)
class BrokerLoad:
    """Load of one broker by goal, before and after; None if wholly unknown."""

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


def hottest(resources: Sequence[GoalMean], loads: Sequence[BrokerLoad]) -> tuple[Hottest, ...]:
    """Hottest brokers of each resource known before and after, the most uneven resource first."""
    before, after = (_ratios(resources, loads, before=when) for when in (True, False))
    found = [
        Hottest(one.goal, max(before[one.goal].values()), max(after[one.goal].values()))
        for one in resources
        if before.get(one.goal) and after.get(one.goal)
    ]
    return tuple(sorted(found, key=lambda one: -one.before))


def heat_maps(resources: Sequence[GoalMean], loads: Sequence[BrokerLoad]) -> tuple[Chart, ...]:
    """Heat maps of the brokers before and after, with the same colours and order; none for unknown loads."""
    tops = {one.broker: 0.0 for one in loads}
    for before in (True, False):
        for ratios in _ratios(resources, loads, before=before).values():
            tops |= {broker: max(tops[broker], ratio) for broker, ratio in ratios.items()}
    top = min(3.0, max([2.0, *tops.values()]))
    return tuple(
        chart
        for before, title in ((True, "Before"), (False, "After"))
        if (chart := _heat_map(resources, loads, largest(tops), top, before=before, title=title)) is not None
    )


def _ratios(resources: Iterable[GoalMean], loads: Iterable[BrokerLoad], *, before: bool) -> dict[str, dict[int, float]]:
    """Loads by resource with a known mean, and by broker with a known load, as multiples of the mean."""
    sides = _sides(loads, before=before)
    return {
        one.goal: {broker: side[one.goal] / mean for broker, side in sides.items() if one.goal in side}
        for one in resources
        if (mean := one.before if before else one.after)
    }


def _sides(loads: Iterable[BrokerLoad], *, before: bool) -> dict[int, Mapping[str, float]]:
    return {one.broker: (one.before if before else one.after) or {} for one in loads}


def _heat_map(
    resources: Sequence[GoalMean],
    loads: Sequence[BrokerLoad],
    ranked: Ranked,
    top: float,
    *,
    before: bool,
    title: str,
) -> Chart | None:
    ratios, sides = _ratios(resources, loads, before=before), _sides(loads, before=before)
    if not ratios or not any(sides.values()):
        return None
    rows = [(f"broker {broker}", [known.get(broker) for known in ratios.values()]) for broker in ranked.shown]
    if ranked.others:
        others = [[known[other] for other in ranked.others if other in known] for known in ratios.values()]
        rows.append((f"most of {ranked.name_of_others}", [max(known, default=None) for known in others]))
    grid = Grid(
        tuple(name for name, _ in rows),
        tuple(ratios),
        tuple(tuple(values) for _, values in rows),
        tuple(tuple("" if value is None else f"{value:.2f}×" for value in values) for _, values in rows),
    )
    busiest = {name: max((ratio, broker) for broker, ratio in known.items()) for name, known in ratios.items() if known}
    most = ", ".join(f"{name} {ratio:.2f} × (broker {broker})" for name, (ratio, broker) in busiest.items())
    means = {one: one.before if before else one.after for one in resources if one.goal in ratios}
    amounts = (
        (f"broker {broker}", *(_amount(one, sides[broker].get(one.goal), mean) for one, mean in means.items()))
        for broker in ranked.shown
    )
    return Chart(
        f"heat-{title.lower()}",
        title,
        f"The load of each broker as a multiple of the mean. Most loaded: {most}.",
        heat_map(grid, middle=EVEN, top=top),
        Table(("", *ratios), tuple(amounts), len(ranked.others)),
        grid.height_px,
    )


def _amount(resource: GoalMean, value: float | None, mean: float) -> str:
    return "-" if value is None else format_load(value, resource.unit, mean)


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
