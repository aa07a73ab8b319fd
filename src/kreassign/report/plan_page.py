"""PURE. The page of a plan, for those who approve it: what it brings, what it costs, why, and what stays undone."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kreassign.model import TopicPartition
from kreassign.model.plan_facts import PlanFacts, PlannedPartition, Prediction
from kreassign.report.broker_loads import BrokerLoad, Hottest, Resource, heat_maps, hottest
from kreassign.report.chart import MOST_ROWS, Chart, Table, bars
from kreassign.report.flows import matrix
from kreassign.report.page import render_page
from kreassign.report.plan_limits import bound_sentence, limit_amount, unheeded_sentences
from kreassign.report.text import format_bytes, format_duration, format_rate

SHOWN_CHANGES = 300
SHOWN_REMAINING = 20
Targets = Mapping[TopicPartition, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class ChangeLine:
    """One partition of the plan: where it is, where it goes, what is copied for that, and why."""

    name: str
    before: tuple[int, ...]
    after: tuple[int, ...]
    copied_bytes: int
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PlanView:
    """What the page says besides its charts."""

    facts: PlanFacts
    hottest: tuple[Hottest, ...]
    changes: tuple[ChangeLine, ...]
    change_count: int
    remaining: tuple[str, ...]
    more_remaining: int
    bound: str
    time: str
    limits: tuple[tuple[str, str], ...]
    unheeded: tuple[str, ...]


def render_plan(facts: PlanFacts, targets: Targets, name: str) -> str:
    """The page of the plan in the file `name`; `targets` are its replica lists."""
    resources = tuple(Resource(one.goal, one.unit, one.before, one.after) for one in facts.means)
    loads = tuple(BrokerLoad(one.broker, one.before, one.after) for one in facts.brokers)
    heat, flows, causes = heat_maps(resources, loads), _matrix(facts, targets), _causes(facts, targets)
    traffic = _traffic(facts)
    charts = [chart for chart in (*heat, flows, traffic, causes) if chart is not None]
    return render_page(
        "plan.html",
        charts,
        view=plan_view(facts, targets, hottest(resources, loads)),
        file=name,
        heat=heat,
        flows=flows,
        traffic=traffic,
        causes=causes,
    )


def plan_view(facts: PlanFacts, targets: Targets, found: tuple[Hottest, ...]) -> PlanView:
    """What is said of a plan; of its changes the largest."""
    ranked = sorted(facts.partitions, key=lambda one: (-_copied(one, targets), one.topic_partition))
    return PlanView(
        facts=facts,
        hottest=found,
        changes=tuple(_change(one, targets) for one in ranked[:SHOWN_CHANGES]),
        change_count=len(ranked),
        remaining=facts.remaining[:SHOWN_REMAINING],
        more_remaining=max(0, len(facts.remaining) - SHOWN_REMAINING),
        bound=bound_sentence(facts.totals),
        time="no rate was given, so no time is predicted" if facts.prediction is None else _time(facts.prediction),
        limits=tuple((limit_amount(one), one.source) for one in facts.limits),
        unheeded=tuple(unheeded_sentences(facts.unknown_goals, facts.uneven_topics)),
    )


def copies(partition: PlannedPartition, targets: Targets) -> tuple[int, ...]:
    """The brokers that get a copy of a partition."""
    after = targets.get(partition.topic_partition, partition.replicas)
    return tuple(broker for broker in after if broker not in partition.replicas)


def _copied(partition: PlannedPartition, targets: Targets) -> int:
    return len(copies(partition, targets)) * partition.size_bytes


def _change(partition: PlannedPartition, targets: Targets) -> ChangeLine:
    return ChangeLine(
        str(partition.topic_partition),
        partition.replicas,
        targets.get(partition.topic_partition, partition.replicas),
        _copied(partition, targets),
        tuple(map(str, partition.reasons)),
    )


def _time(prediction: Prediction) -> str:
    rate = format_rate(prediction.rate_bytes_per_s)
    if math.isinf(prediction.seconds):
        return f"never ends at {rate} per broker: some partition is written faster than it would be copied"
    least = "" if prediction.gap is None else f"; no plan is done before {format_duration(prediction.least_s)}"
    longest = format_duration(prediction.longest_move_s)
    return f"at {rate} per broker; the longest single copy takes {longest}{least}"


def _matrix(facts: PlanFacts, targets: Targets) -> Chart | None:
    """A new replica fetches from the leader, which is the first of the list unless leading was not where it belongs."""
    flows = (
        (one.replicas[0], broker, float(one.size_bytes))
        for one in facts.partitions
        if one.replicas
        for broker in copies(one, targets)
    )
    return matrix(
        flows, "Bytes that are copied, from preferred leaders (rows) to brokers that get a replica (columns)."
    )


def _traffic(facts: PlanFacts) -> Chart | None:
    """What each broker receives and sends: whoever has most decides how long the plan takes."""
    busy = sorted(
        (one for one in facts.brokers if one.bytes_in or one.bytes_out),
        key=lambda one: (-max(one.bytes_in, one.bytes_out), one.broker),
    )
    if not busy:
        return None
    shown = busy[:MOST_ROWS]
    series = {"received": [one.bytes_in for one in shown], "sent": [one.bytes_out for one in shown]}
    rows = [
        (f"broker {one.broker}", *map(format_bytes, (one.bytes_in, one.bytes_out, one.peak_bytes))) for one in shown
    ]
    more = len(busy) - len(shown)
    return Chart(
        "traffic",
        "What each broker copies",
        f"Bytes that each broker receives and sends{f', of the {len(shown)} busiest' if more else ''}. "
        f"Broker {shown[0].broker} has most to do: {format_bytes(shown[0].bytes_in)} in, "
        f"{format_bytes(shown[0].bytes_out)} out.",
        bars([row[0] for row in rows], series, ("--after", "--second"), "B"),
        Table(("", "received", "sent", "fullest moment of its disks"), tuple(rows), more),
        max(200, 24 * len(shown) + 90),
    )


def _causes(facts: PlanFacts, targets: Targets) -> Chart | None:
    """Copied bytes by why they are copied; a partition with several reasons counts for each in equal parts."""
    sizes, counts = Counter[str](), Counter[str]()
    for one in facts.partitions:
        for reason in one.reasons:
            counts[reason.cause] += 1
            sizes[reason.cause] += round(_copied(one, targets) / len(one.reasons))
    if not counts:
        return None
    ranked = sorted(counts, key=lambda cause: (-sizes[cause], -counts[cause]))
    rows = tuple((cause, format_bytes(sizes[cause]), f"{counts[cause]:,}") for cause in ranked)
    return Chart(
        "causes",
        "Why",
        f"Copied bytes by their cause. {_most(ranked, sizes)}",
        bars(ranked, {"copied": [sizes[cause] for cause in ranked]}, ("--after",), "B"),
        Table(("cause", "bytes", "changes"), rows),
        max(160, 28 * len(ranked) + 80),
    )


def _most(ranked: Sequence[str], sizes: Mapping[str, int]) -> str:
    total = sum(sizes.values())
    return f"Most, {sizes[ranked[0]] / total:.0%}, for: {ranked[0]}." if total else "Nothing is copied."
