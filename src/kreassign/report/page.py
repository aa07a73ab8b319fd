"""Pages as self-contained HTML documents, and the page of a load. Pure."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from kreassign import __version__
from kreassign.model.cluster import listed_ids
from kreassign.model.load import HOT, DailyCurve, History, LoadAccount, LoadCharts, LoadSummary
from kreassign.model.text import printable
from kreassign.report import charts
from kreassign.report.charts import Chart
from kreassign.report.text import (
    format_bytes,
    format_change,
    format_count,
    format_duration,
    format_rate,
    format_signed_bytes,
    format_time,
)

# Template environment: filters for amounts, and charts. All text is escaped.


def _shown(value: object) -> object:
    """Value as the page shows it: names and messages of a cluster without deceptive characters."""
    return value if isinstance(value, Markup) else printable(str(value))


def page_environment() -> Environment:
    """Create a template environment for one page."""
    environment = Environment(
        loader=PackageLoader("kreassign.report"),
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "bytes": format_bytes,
        "signed_bytes": format_signed_bytes,
        "rate": format_rate,
        "duration": format_duration,
        "time": format_time,
        "count": format_count,
        "replicas": listed_ids,
    }
    environment.globals |= {
        "charts": charts,
        "change": format_change,
        "format_bytes": format_bytes,
        "format_rate": format_rate,
    }
    return environment


# Pages with charts: one self-contained HTML document each, with a policy that forbids all requests.
#
# The policy in the head of a page names its scripts by hash, so no other script runs, whatever its source. A server
# that serves a page may add a policy of its own; the stricter one applies.


def render_page(template: str, charts: Iterable[Chart], **values: object) -> str:
    """Render a template that extends `base.html`; `charts` are all that it shows with `picture`."""
    # plotly.js is its bundle of charts with two axes, as it comes from the npm registry.
    scripts = (script("plotly.js"), script("charts.js"))
    return (
        page_environment()
        .get_template(template)
        .render(
            figures=_as_data({chart.name: chart.figure for chart in charts}),
            scripts=scripts,
            policy=policy(scripts),
            version=__version__,
            **values,
        )
    )


@cache
def policy(scripts: tuple[str, ...]) -> str:
    """Content security policy: only these scripts, inline styles and embedded pictures."""
    digests = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    hashes = " ".join(f"'sha256-{digest}'" for digest in digests)
    rest = "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    return f"default-src 'none'; script-src {hashes}; {rest}"


@cache
def script(name: str) -> str:
    """Content of a file of the templates, verbatim: an included template would interpret braces in scripts."""
    return PackageLoader("kreassign.report").get_source(page_environment(), name)[0]


def _as_data(figures: object) -> str:
    """Encode JSON that cannot close its HTML element."""
    text = json.dumps(figures, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


# The page of a load: its clusters, and the quality of the rows, load by load.

CHARTED_LOADS = 60
TOLD_LOADS = 10
SHOWN_REASONS = 30


@dataclass(frozen=True, slots=True)
class ClusterView:
    """View of one cluster; `largest_*` are the tops of the scales that adjacent charts share."""

    summary: LoadSummary
    charts: LoadCharts
    largest_broker_rate: float
    largest_partition_rate: float
    largest_ratio: float


@dataclass(frozen=True, slots=True)
class TreatmentChart:
    """Rows of each load with one treatment, oldest load first."""

    treatment: str
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ReasonLine:
    """Rows of each of the last loads with one treatment for one reason, oldest load first."""

    table_name: str
    treatment: str
    reason: str
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class QualityView:
    """Accounts of the loads: charts of all, details of the last by table and reason; `more` reasons are not shown."""

    charted: tuple[LoadAccount, ...]
    charts: tuple[TreatmentChart, ...]
    told: tuple[LoadAccount, ...]
    treatments: tuple[str, ...]
    reasons: tuple[ReasonLine, ...]
    more: int


def render_load(clusters: Iterable[tuple[LoadSummary, LoadCharts]], accounts: Sequence[LoadAccount]) -> str:
    """Render the page. `accounts` are those of the loads, oldest first; empty if there is no table of them."""
    views = tuple(cluster_view(summary, charts) for summary, charts in clusters)
    page = page_environment().get_template("load.html")
    return page.render(
        clusters=views, quality=quality_view(accounts), version=__version__, hot=HOT, largest_of=largest_of
    )


def cluster_view(summary: LoadSummary, charts: LoadCharts) -> ClusterView:
    """View of one cluster, with its scales."""
    ratios = [topic.hottest_ratio or 0.0 for topic in charts.skew]
    return ClusterView(
        summary=summary,
        charts=charts,
        largest_broker_rate=largest_rate(charts.brokers),
        largest_partition_rate=largest_rate(charts.partitions),
        largest_ratio=max([1.1 * HOT, *ratios]),
    )


def largest_rate(curves: Iterable[DailyCurve]) -> float:
    """Highest point of all curves, plus 5 %."""
    return 1.05 * max((value for curve in curves for value in curve.hours if value is not None), default=0.0)


def largest_of(history: History) -> float:
    """Highest value of a history (days, present and band), plus 5 %."""
    ahead = [] if history.expected is None else [history.expected.high]
    return 1.05 * max([0.0, history.now or 0.0, *(value for _, value in history.days), *ahead])


def quality_view(accounts: Sequence[LoadAccount]) -> QualityView:
    """View of the accounts: charts, and details of the last loads."""
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
