"""PURE. The page of a load: its clusters, and how good the rows were, load after load. One file, nothing fetched."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kreassign import __version__
from kreassign.model.load_quality import LoadAccount
from kreassign.model.load_summary import HOT, DailyCurve, History, LoadCharts, LoadSummary
from kreassign.report.environment import page_environment

CHARTED_LOADS = 60
TOLD_LOADS = 10
SHOWN_REASONS = 30


@dataclass(frozen=True, slots=True)
class ClusterView:
    """What is shown of one cluster; `largest_*` are the tops of the scales that charts side by side share."""

    summary: LoadSummary
    charts: LoadCharts
    largest_broker_rate: float
    largest_partition_rate: float
    largest_ratio: float


@dataclass(frozen=True, slots=True)
class TreatmentChart:
    """How many rows of each load were treated in one way, oldest load first."""

    treatment: str
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ReasonLine:
    """How many rows each of the last loads treated in one way for one reason, oldest load first."""

    table_name: str
    treatment: str
    reason: str
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class QualityView:
    """The accounts of the loads: charts of all, the last ones by table and by reason; `more` reasons are not shown."""

    charted: tuple[LoadAccount, ...]
    charts: tuple[TreatmentChart, ...]
    told: tuple[LoadAccount, ...]
    treatments: tuple[str, ...]
    reasons: tuple[ReasonLine, ...]
    more: int


def render_load(clusters: Iterable[tuple[LoadSummary, LoadCharts]], accounts: Sequence[LoadAccount]) -> str:
    """The whole page. `accounts` are those of the loads, oldest first; none where no table tells them."""
    views = tuple(cluster_view(summary, charts) for summary, charts in clusters)
    page = page_environment().get_template("load.html")
    return page.render(
        clusters=views, quality=quality_view(accounts), version=__version__, hot=HOT, largest_of=largest_of
    )


def cluster_view(summary: LoadSummary, charts: LoadCharts) -> ClusterView:
    """One cluster with its scales."""
    ratios = [topic.hottest_ratio or 0.0 for topic in charts.skew]
    return ClusterView(
        summary=summary,
        charts=charts,
        largest_broker_rate=largest_rate(charts.brokers),
        largest_partition_rate=largest_rate(charts.partitions),
        largest_ratio=max([1.1 * HOT, *ratios]),
    )


def largest_rate(curves: Iterable[DailyCurve]) -> float:
    """The highest point of all of them, with a little room above."""
    return 1.05 * max((value for curve in curves for value in curve.hours if value is not None), default=0.0)


def largest_of(history: History) -> float:
    """The top of the chart of a history: of its days, the present and the band."""
    ahead = [] if history.expected is None else [history.expected.high]
    return 1.05 * max([0.0, history.now or 0.0, *(value for _, value in history.days), *ahead])


def quality_view(accounts: Sequence[LoadAccount]) -> QualityView:
    """The accounts as the page shows them."""
    charted, told = tuple(accounts[-CHARTED_LOADS:]), tuple(accounts[-TOLD_LOADS:])
    treatments = tuple(dict.fromkeys(kind for load in charted for counts in load.tables.values() for kind in counts))
    found = [TreatmentChart(kind, tuple(load.count(kind) for load in charted)) for kind in treatments[1:]]
    lines = sorted(_reason_lines(told), key=lambda line: (-line.counts[-1], -sum(line.counts)))
    return QualityView(
        charted=charted,
        charts=tuple(chart for chart in found if any(chart.counts)),
        told=told,
        treatments=treatments,
        reasons=tuple(lines[:SHOWN_REASONS]),
        more=max(0, len(lines) - SHOWN_REASONS),
    )


def _reason_lines(loads: Sequence[LoadAccount]) -> Iterable[ReasonLine]:
    found: dict[tuple[str, str, str], list[int]] = {}
    for place, load in enumerate(loads):
        for one in load.reasons:
            counts = found.setdefault((one.table_name, one.treatment, one.reason), [0] * len(loads))
            counts[place] += one.row_count
    return [ReasonLine(*key, tuple(counts)) for key, counts in found.items()]
