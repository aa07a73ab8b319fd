"""A plan for its approvers, as a page and as Markdown: benefit, cost, reasons, and what stays undone.

The Markdown is for comments on pull requests; it also shows how a cluster drifts from its placement. Pure.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kreassign.model import TopicPartition
from kreassign.model.cluster import listed_ids, without
from kreassign.model.load import LoadBasis
from kreassign.model.placement import Drift
from kreassign.model.plan_facts import PlanFacts, PlannedPartition, Prediction, Totals, reason_sentences
from kreassign.model.text import counted, format_load
from kreassign.report import text as texts
from kreassign.report.broker_loads import BrokerLoad, Hottest, flow_matrix, heat_maps, hottest
from kreassign.report.charts import MOST_ROWS, Chart, Table, bars
from kreassign.report.page import render_page

SHOWN_CHANGES = 300
SHOWN_REMAINING = 20
Targets = Mapping[TopicPartition, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class ChangeLine:
    """One partition of the plan: its present and target brokers, its copied bytes, and the reasons."""

    name: str
    before: tuple[int, ...]
    after: tuple[int, ...]
    copied_bytes: int
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PlanView:
    """Content of the page besides its charts; `bound`, `time` and `loads` are values with a note each."""

    facts: PlanFacts
    hottest: tuple[Hottest, ...]
    changes: tuple[ChangeLine, ...]
    remaining: tuple[str, ...]
    bound: tuple[str, str]
    time: tuple[str, str]
    loads: tuple[str, str] | None
    limits: tuple[tuple[str, str], ...]


def render_plan(facts: PlanFacts, targets: Targets, name: str) -> str:
    """Render the page of the plan in the file `name`; `targets` are its replica lists."""
    heat = heat_maps(facts.means, _loads_of_brokers(facts))
    flows, traffic, causes = _matrix(facts, targets), _traffic(facts), _causes(facts, targets)
    charts = [chart for chart in (*heat, flows, traffic, causes) if chart is not None]
    return render_page(
        "plan.html",
        charts,
        view=_plan_view(facts, targets),
        file=name,
        heat=heat,
        flows=flows,
        traffic=traffic,
        causes=causes,
    )


def _loads_of_brokers(facts: PlanFacts) -> tuple[BrokerLoad, ...]:
    return tuple(BrokerLoad(one.broker, one.before, one.after) for one in facts.brokers)


def _plan_view(facts: PlanFacts, targets: Targets) -> PlanView:
    return PlanView(
        facts=facts,
        hottest=hottest(facts.means, _loads_of_brokers(facts)),
        changes=tuple(_change(one, targets) for one in _largest_first(facts, targets)[:SHOWN_CHANGES]),
        remaining=(*_shown_remaining(facts), *texts.unheeded_sentences(facts.unknown_goals, facts.uneven_topics)),
        bound=(texts.bound_amount(facts.totals), texts.bound_sentence(facts.totals)),
        time=_time(facts.prediction),
        loads=None if facts.loads is None else _loads(facts.loads),
        limits=tuple((texts.limit_amount(one), one.source) for one in facts.limits),
    )


def copies(partition: PlannedPartition, targets: Targets) -> tuple[int, ...]:
    """Brokers that get a copy of a partition."""
    after = targets.get(partition.topic_partition, partition.replicas)
    return without(after, partition.replicas)


def _largest_first(facts: PlanFacts, targets: Targets) -> list[PlannedPartition]:
    return sorted(facts.partitions, key=lambda one: (-_copied(one, targets), one.topic_partition))


def _copied(partition: PlannedPartition, targets: Targets) -> int:
    return len(copies(partition, targets)) * partition.size_bytes


def _change(partition: PlannedPartition, targets: Targets) -> ChangeLine:
    return ChangeLine(
        str(partition.topic_partition),
        partition.replicas,
        targets.get(partition.topic_partition, partition.replicas),
        _copied(partition, targets),
        reason_sentences(partition.reasons),
    )


def _shown_remaining(facts: PlanFacts) -> Iterator[str]:
    yield from facts.remaining[:SHOWN_REMAINING]
    if len(facts.remaining) > SHOWN_REMAINING:
        yield f"and {len(facts.remaining) - SHOWN_REMAINING:,} more"


def _loads(basis: LoadBasis) -> tuple[str, str]:
    count = f"{basis.doubtful_count:,}" if basis.doubtful_count else "none"
    doubtful = f"{count} of {counted(basis.partitions, 'partition')} doubtful"
    value, _, how = texts.loads_origin(basis).removeprefix("those of the ").partition(" ")
    return value, f"{how} until {texts.format_time(basis.measured_ms)}, {doubtful}".lstrip()


def _time(prediction: Prediction | None) -> tuple[str, str]:
    if prediction is None:
        return "unknown", "no rate was given: plan with --rate, or rehearse the plan"
    rate = texts.format_rate(prediction.rate_bytes_per_s)
    if math.isinf(prediction.seconds):
        never = f"never ends at {rate} per broker: some partition is written faster than it would be copied"
        return "never", never
    least = "" if prediction.gap is None else f"; no plan is done before {texts.format_duration(prediction.least_s)}"
    longest = texts.format_duration(prediction.longest_move_s)
    seconds = texts.format_duration(prediction.seconds)
    return seconds, f"at {rate} per broker; the longest single copy takes {longest}{least}"


def _matrix(facts: PlanFacts, targets: Targets) -> Chart | None:
    """Matrix of copied bytes. Replicas fetch from the present leader, assumed to be the preferred leader."""
    flows = (
        (one.replicas[0], broker, float(one.size_bytes))
        for one in facts.partitions
        if one.replicas
        for broker in copies(one, targets)
    )
    return flow_matrix(
        flows, "Bytes that are copied, from preferred leaders (rows) to brokers that get a replica (columns)."
    )


def _traffic(facts: PlanFacts) -> Chart | None:
    """Bytes received and sent by each broker: the busiest one decides how long the plan takes."""
    busy = sorted(
        (one for one in facts.brokers if one.bytes_in or one.bytes_out),
        key=lambda one: (-max(one.bytes_in, one.bytes_out), one.broker),
    )
    if not busy:
        return None
    shown = busy[:MOST_ROWS]
    series = {"received": [one.bytes_in for one in shown], "sent": [one.bytes_out for one in shown]}
    rows = [
        (f"broker {one.broker}", *map(texts.format_bytes, (one.bytes_in, one.bytes_out, one.peak_bytes)))
        for one in shown
    ]
    more = len(busy) - len(shown)
    return Chart(
        "traffic",
        "What each broker copies",
        f"Bytes that each broker receives and sends{f', of the {len(shown)} busiest' if more else ''}. "
        f"Broker {shown[0].broker} has most to do: {texts.format_bytes(shown[0].bytes_in)} in, "
        f"{texts.format_bytes(shown[0].bytes_out)} out.",
        bars([row[0] for row in rows], series, ("--after", "--second"), "B"),
        Table(("", "received", "sent", "fullest moment of its disks"), tuple(rows), more),
        max(200, 24 * len(shown) + 90),
    )


def _causes(facts: PlanFacts, targets: Targets) -> Chart | None:
    """Copied bytes by reason; a partition with several reasons counts for each in equal parts."""
    sizes, counts = Counter[str](), Counter[str]()
    for one in facts.partitions:
        for reason in one.reasons:
            counts[reason.cause] += 1
            sizes[reason.cause] += round(_copied(one, targets) / len(one.reasons))
    if not counts:
        return None
    ranked = sorted(counts, key=lambda cause: (-sizes[cause], -counts[cause]))
    rows = tuple((cause, texts.format_bytes(sizes[cause]), f"{counts[cause]:,}") for cause in ranked)
    total = sum(sizes.values())
    most = f"Most, {sizes[ranked[0]] / total:.0%}, for: {ranked[0]}." if total else "Nothing is copied."
    return Chart(
        "causes",
        "Why",
        f"Copied bytes by their cause. {most}",
        bars(ranked, {"copied": [sizes[cause] for cause in ranked]}, ("--after",), "B")
        if total
        else bars(ranked, {"changes": [counts[cause] for cause in ranked]}, ("--after",), ""),
        Table(("cause", "bytes", "changes"), rows),
        max(160, 28 * len(ranked) + 80),
    )


# A plan, or the drift of a cluster from its placement, as Markdown for comments on pull requests.

MOST_CHARACTERS = 60_000
"""GitHub limits a comment to 65,536."""

MOST_BROKERS = 60
_ACTIVE = re.compile(r"([\\`*_{}\[\]<>|~#!&])")
_UNSEEN = "…"


def plan_markdown(facts: PlanFacts, targets: Targets) -> str:
    """Cost and effect of a plan, its brokers, and its partitions with their reasons; the largest come first."""
    view = _plan_view(facts, targets)
    head = [f"### Plan: {escaped(facts.task)}", ""]
    if not facts.partitions:
        return "\n".join([*head, "Nothing to do.", *_remaining(facts)])
    head += [f"**{escaped(sentence)}**\n" for sentence in facts.factors]
    head.append(f"**{_counted(len(facts.partitions), 'partition')} to change**: {_cost(facts.totals)}.")
    head += ["", f"- Bytes: {escaped(view.bound[1])}", f"- Time: {escaped(view.time[1])}"]
    head += [f"- Hottest broker by {escaped(one.resource)}: {one} the mean" for one in view.hottest[:3]]
    if facts.loads is not None and facts.loads.doubtful_count:
        head.append(f"- Doubtful loads: {facts.loads.doubtful_count} of {facts.loads.partitions} partitions")
    head += _remaining(facts)
    head += ["", *_brokers(facts)]
    rows = [_cells(_change(one, targets)) for one in _largest_first(facts, targets)]
    # The table opens on a click on its title.
    head.append(f"<details><summary>{_counted(len(rows), 'partition')}</summary>\n")
    return _table("\n".join(head), ("partition", "from", "to", "copied", "why"), rows) + "\n\n</details>"


def drift_markdown(found: Sequence[Drift], declared_count: int) -> str:
    """Markdown list of all partitions that differ from the declared placement."""
    if not found:
        return f"### Placement\n\nAll {_counted(declared_count, 'declared partition')} are as declared."
    head = f"### Placement\n\n**{_counted(len(found), 'partition')} not as declared**, of {declared_count:,}.\n"
    rows = [
        (escaped(str(one.topic_partition)), _list(one.declared), _list(one.found), escaped(one.how)) for one in found
    ]
    return _table(head, ("partition", "declared", "in the cluster", "how"), rows)


def escaped(text: str) -> str:
    """Escape text for Markdown, on one line: no formatting, no links, no mentions."""
    return _ACTIVE.sub(r"\\\1", " ".join(text.split())).replace("@", "@\u200b")


def _cost(totals: Totals) -> str:
    copied = f"{_counted(totals.moves, 'replica')} to copy, {texts.format_bytes(totals.moved_bytes)}"
    if totals.log_dir_moves:
        copied += f"; {totals.log_dir_moves} to another disk, {texts.format_bytes(totals.log_dir_bytes)}"
    return f"{copied}; {_counted(totals.leader_changes, 'leader')} to change"


def _remaining(facts: PlanFacts) -> list[str]:
    return [f"- Remains: {escaped(one)}" for one in facts.remaining[:10]] + (
        [f"- Remains: {len(facts.remaining) - 10} more"] if len(facts.remaining) > 10 else []
    )


def _cells(change: ChangeLine) -> tuple[str, ...]:
    return (
        escaped(change.name),
        listed_ids(change.before),
        listed_ids(change.after),
        texts.format_bytes(change.copied_bytes) if change.copied_bytes else "–",
        escaped("; ".join(change.reasons)),
    )


def _brokers(facts: PlanFacts) -> Iterator[str]:
    """One row per broker with any change: its first goal before and after, and its copied bytes."""
    busy = [one for one in facts.brokers if one.bytes_in or one.bytes_out or one.before != one.after]
    if not busy:
        return
    first = facts.means[0] if facts.means else None
    titles = ("broker", *((f"{first.goal} before", "after") if first else ()), "receives", "sends")
    yield from _lines(titles)
    for one in busy[:MOST_BROKERS]:
        sides = (one.before, one.after) if first else ()
        loads = (format_load(side.get(first.goal, 0.0), first.unit, first.before) for side in sides if first)
        yield _row((str(one.broker), *loads, texts.format_bytes(one.bytes_in), texts.format_bytes(one.bytes_out)))
    if len(busy) > MOST_BROKERS:
        yield _row((f"{len(busy) - MOST_BROKERS} more", *[""] * (len(titles) - 1)))
    yield ""


def _table(begin: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Text and a table with as many rows as a comment can hold, and the number of the others."""
    lines = [begin, *_lines(columns)]
    room = MOST_CHARACTERS - sum(map(len, lines))
    for number, row in enumerate(rows):
        line = _row(row)
        room -= len(line) + 1
        if room < 0:
            lines.append(_row((f"{_UNSEEN} {len(rows) - number:,} more", *[""] * (len(columns) - 1))))
            break
        lines.append(line)
    return "\n".join(lines)


def _lines(columns: Sequence[str]) -> Iterator[str]:
    yield _row(columns)
    yield _row(["---"] * len(columns))


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _list(brokers: tuple[int, ...] | None) -> str:
    return "–" if brokers is None else listed_ids(brokers)


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
