"""Show plans: text and tables for people, a document for programs.

Lines for people fit a terminal of 80 columns.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console, RenderableType
from rich.table import Column, Table

from kreassign.cli.next_command import CLUSTER, next_command, print_next
from kreassign.cli.output import MARKDOWN, console, figures, names, print_json, print_verbatim, text_table
from kreassign.cli.profiles import typed_words
from kreassign.clock import SYSTEM_CLOCK
from kreassign.model.load import ForecastBasis, LoadBasis
from kreassign.model.plan import format_plan
from kreassign.model.plan_facts import GoalLimit, GoalMean, PlanFacts, Prediction, RackBytes, WorstLoss
from kreassign.model.plan_facts_json import format_facts
from kreassign.model.text import HOUR_MS, agreeing, counted, format_load, shortened
from kreassign.operations.plan import NO_BUDGET
from kreassign.operations.plan_files import facts_path
from kreassign.planner import Evaluation
from kreassign.planner.results import Outcome, means_of
from kreassign.report.plan_page import plan_markdown
from kreassign.report.text import (
    format_bytes,
    format_duration,
    format_rate,
    limit_amount,
    uneven_parts,
    unheeded_sentences,
)

# Brokers before and after a plan: one row each in 80 columns, or every goal of every broker.

WIDTH = 80
LONGEST_BAR, SHORTEST_BAR = 22, 6
SHOWN_BROKERS = 40
COPIED = ("in", "out", "peak disk")
_GAP = 2


@dataclass(frozen=True, slots=True)
class BrokerRow:
    """A broker: its load by goal before and after, and what the plan copies, if anything."""

    broker: int
    before: Mapping[str, float]
    after: Mapping[str, float]
    copied: tuple[str, ...] = ()


def plan_tables(facts: PlanFacts, *, is_wide: bool) -> Iterator[RenderableType]:
    """Tables about the brokers of a plan."""
    rows = [
        BrokerRow(
            one.broker, one.before, one.after, tuple(map(format_bytes, (one.bytes_in, one.bytes_out, one.peak_bytes)))
        )
        for one in facts.brokers
    ]
    return _tables(rows, facts.means, is_wide=is_wide)


def evaluated_tables(found: Evaluation, *, is_wide: bool) -> Iterator[RenderableType]:
    """Tables about the brokers of an evaluation that copies nothing."""
    loads = zip(found.broker_ids, found.before.tolist(), found.after.tolist(), strict=True)
    rows = [
        BrokerRow(broker, dict(zip(found.goals, before, strict=True)), dict(zip(found.goals, after, strict=True)))
        for broker, before, after in loads
    ]
    return _tables(rows, means_of(found), is_wide=is_wide)


def _tables(rows: Sequence[BrokerRow], means: Sequence[GoalMean], *, is_wide: bool) -> Iterator[RenderableType]:
    if not rows:
        return
    if is_wide or not means:
        yield wide_table(rows, means)
        return
    first, shown = next((one for one in means if _is_changed(one, rows)), means[0]), rows
    if len(rows) > SHOWN_BROKERS:
        shown = sorted(rows, key=lambda one: (-_most(one, first.goal), one.broker))[:SHOWN_BROKERS]
    yield f"{first.goal} of brokers (█ stays ▒ comes ░ goes):"
    yield narrow_table(shown, first)
    if hidden := len(rows) - len(shown):
        yield f"and {counted(hidden, 'broker')} more with less {first.goal} before and after; --wide shows all"


def _is_changed(mean: GoalMean, rows: Sequence[BrokerRow]) -> bool:
    return any(_amount(mean, row.before) != _amount(mean, row.after) for row in rows)


def _most(row: BrokerRow, goal: str) -> float:
    return max(row.before[goal], row.after[goal])


def narrow_table(rows: Sequence[BrokerRow], mean: GoalMean) -> Table:
    """One row per broker in 80 columns: one goal before and after, as figures and bar, and bytes copied.

    Without room for the bar it is left out.
    """
    goal = mean.goal
    titles = ("broker", "before", "after", *(COPIED if rows and rows[0].copied else ()))
    cells = [(str(one.broker), _amount(mean, one.before), f"→ {_amount(mean, one.after)}", *one.copied) for one in rows]
    width = sum(max(map(len, column)) for column in zip(titles, *cells, strict=True)) + _GAP * len(titles)
    longest = min(LONGEST_BAR, WIDTH - width)
    columns = [*figures(*titles[:2]), Column(titles[2], no_wrap=True), *figures(*titles[3:])]
    if longest >= SHORTEST_BAR:
        columns.insert(3, Column(no_wrap=True))
        most = max((_most(one, goal) for one in rows), default=0.0)
        bars = [_bar(one.before[goal], one.after[goal], most, longest) for one in rows]
        cells = [(*one[:3], bar, *one[3:]) for one, bar in zip(cells, bars, strict=True)]
    return text_table(columns, cells)


def wide_table(rows: Sequence[BrokerRow], means: Sequence[GoalMean]) -> Table:
    """One row per broker with every goal before and after."""
    titles = (f"{one.goal} {when}" for one in means for when in ("before", "after"))
    cells = (
        (str(one.broker), *(_amount(mean, when) for mean in means for when in (one.before, one.after)), *one.copied)
        for one in rows
    )
    return text_table(figures("broker", *titles, *(COPIED if rows and rows[0].copied else ())), cells)


def _bar(before: float, after: float, most: float, longest: int) -> str:
    if most <= 0:
        return ""
    held, either = (round(longest * amount / most) for amount in (min(before, after), max(before, after)))
    return "█" * held + ("▒" if after > before else "░") * (either - held)


def _amount(mean: GoalMean, loads: Mapping[str, float]) -> str:
    """A load with its unit; an estimate relative to the mean before the plan."""
    return format_load(loads[mean.goal], mean.unit, mean.before)


# The basis of a plan's loads as text, in lines of 80 columns.

LOAD_WIDTH = 78
_FROM = {"unknown": "as 0, unknown", "size": "by size", "topic": "topic's median", "measured": "as measured"}
"""Priors as text, the weakest first: the end of a long line is cut."""

_LOAD = "`kreassign load`"
_RENEW = {"snapshot": "`kreassign snapshot`"}
"""The command that renews loads of a source."""


def print_loads(terminal: Console, basis: LoadBasis, max_age_s: float | None = None) -> None:
    """Print the basis of loads with their present age; a warning about stale loads comes first."""
    for line in load_lines(basis, SYSTEM_CLOCK.now_ms(), max_age_s):
        terminal.print(line)


def load_lines(basis: LoadBasis, now_ms: int, max_age_s: float | None = None) -> Iterator[str]:
    """Lines: source and age of the loads, doubtful ones and why, their priors, and the brokers concerned."""
    since = f"{_moment(basis.measured_ms)} ({_age(now_ms - basis.measured_ms)})"
    end = "" if basis.doubtful_count or basis.is_glimpse else "; none doubtful"
    if basis.is_stale(now_ms, max_age_s):
        renewed = _RENEW.get(basis.source, _LOAD)
        yield f"stale loads: last measured {_age(now_ms - basis.measured_ms)}; renew them with {renewed}"
    if basis.source not in {"cluster", "snapshot"}:
        yield _placement(basis, now_ms)
    if basis.source == "cluster":
        only = " only" if basis.is_glimpse else ""
        yield f"loads: measured for {basis.measured_for_s or 0:g} s{only}, {since}{end}"
    elif basis.source == "snapshot":
        yield f"loads: those of the snapshot, {since}{end}"
    elif basis.last_hour_ms is None:
        yield f"loads: {basis.source}, snapshot of {since}{end}"
    else:
        yield f"loads: {basis.source}, samples until {_hour(basis.last_hour_ms, now_ms)}{end}"
    if basis.is_glimpse:
        yield _glimpse(basis)
    if basis.forecast is not None:
        yield from _forecast(basis.forecast)
    if basis.gone:
        gone = f"{counted(basis.gone, 'partition')} of the tables, which {agreeing(basis.gone, 'are')}"
        yield f"  left out: {gone} not in the cluster any more"
    if basis.doubtful_count:
        yield from _doubts(basis)
    if basis.unsized:
        yield f"unknown sizes: {basis.unsized} of {basis.partitions} partitions, which stay"
    if basis.assumed_reads:
        count = f"{basis.assumed_reads} of {basis.partitions} partitions"
        yield f"assumed net-out: {count}, as consumer traffic was not measured:"
        yield f"  taken to read {basis.reads_per_write:g} x what is written (reads-per-write of the goals file)"


def _glimpse(basis: LoadBasis) -> str:
    if basis.source == "snapshot":
        return f"  measured for {basis.measured_for_s or 0:g} s only; other hours of the day are unknown"
    return f"  other hours of the day are unknown: run `kreassign collect`, then {_LOAD}"


def _hour(begun_ms: int, now_ms: int) -> str:
    """The hour of the last samples, and how long it is over: when in it they were taken is not known."""
    ended_ms = begun_ms + HOUR_MS
    over = "this hour" if now_ms < ended_ms else _age(now_ms - ended_ms)
    hours = f"{_moment(begun_ms).removesuffix(':00 UTC')}-{_moment(ended_ms)[-9:-7]}h UTC"
    return f"{hours} ({over})"


def _placement(basis: LoadBasis, now_ms: int) -> str:
    """Time at which the placement was read; the loads may be of another time."""
    if basis.placed_ms is None:
        return f"placement: that of the load, {_moment(basis.taken_ms)} ({_age(now_ms - basis.taken_ms)})"
    return f"placement: read {_moment(basis.placed_ms)} ({_age(now_ms - basis.placed_ms)})"


def _doubts(basis: LoadBasis) -> Iterator[str]:
    reasons = [f"{count} {reason}" for reason, count in basis.reasons.items()]
    yield _fit(f"doubtful loads: {basis.doubtful_count} of {basis.partitions} partitions: ", reasons)
    yield _fit(
        "  planned with: ",
        [f"{basis.priors[prior]} {words}" for prior, words in _FROM.items() if prior in basis.priors],
    )
    named = [shortened(str(one.topic_partition)) for one in basis.doubtful]
    yield _fit("  largest: ", named, basis.doubtful_count)
    most = sorted(basis.brokers, key=lambda one: (-one.write_share, -one.size_share, one.broker))
    shares = [f"{one.broker}: {one.write_share:.0%}/{one.size_share:.0%}" for one in most]
    yield _fit("  doubtful share per broker (writes/bytes): ", shares)


def _forecast(basis: ForecastBasis) -> Iterator[str]:
    ahead = f"forecast: {basis.horizon_days:g} days ahead"
    if basis.low_ratio is None or basis.high_ratio is None:
        yield ahead
    else:
        yield f"{ahead}, 95% interval from x {basis.low_ratio:.2f} to x {basis.high_ratio:.2f} (median)"
    if basis.median_error is None or basis.covered_share is None:
        yield "  not tested: that takes two whole weeks of samples"
    else:
        tested = f"  tested on {counted(basis.tested_partitions, 'partition')}: "
        yield f"{tested}error {basis.median_error:.0%}, {basis.covered_share:.0%} in the interval"


def _fit(title: str, parts: Sequence[str], total: int = 0) -> str:
    """As many parts as fit, at least one, and how many more of `total` (or of all parts) there are."""
    total = max(total, len(parts))
    count = len(parts)
    while count > 1 and len(_joined(title, parts[:count], total)) > LOAD_WIDTH:
        count -= 1
    return _joined(title, parts[:count], total)


def _joined(title: str, parts: Sequence[str], total: int) -> str:
    more = f" and {total - len(parts)} more" if total > len(parts) else ""
    return f"{title}{', '.join(parts)}{more}"


def _moment(time_ms: int) -> str:
    try:
        return f"{datetime.fromtimestamp(time_ms / 1000, UTC):%Y-%m-%d %H:%M} UTC"
    except (OverflowError, ValueError, OSError):  # a file may hold any number
        return f"{time_ms} ms"


def _age(age_ms: int) -> str:
    seconds = age_ms / 1000
    if seconds < 0:
        return "ahead of this clock"
    for unit, length, least in (("days", 86_400, 2), ("hours", 3_600, 2), ("minutes", 60, 2)):
        if seconds >= least * length:
            return f"{seconds // length:.0f} {unit} ago"
    return f"{counted(round(seconds), 'second')} ago"


# Limits of a plan and their sources, and goals that it could not regard, as lines.

SHOWN_TOPICS = 3


def limit_lines(limits: Sequence[GoalLimit]) -> Iterator[str]:
    """Each limit of brokers, with its source below."""
    if not limits:
        yield "limits: none of the brokers is known"
    for one in limits:
        yield f"limit: {limit_amount(one)}"
        yield f"  {one.source}"


def unheeded(facts: PlanFacts) -> Iterator[str]:
    """Goals without known loads, and topics with partitions of unequal size."""
    yield from unheeded_sentences(facts.unknown_goals, ())
    for one in facts.uneven_topics[:SHOWN_TOPICS]:
        first, second = uneven_parts(one)
        yield first
        yield f"  {second}"
    if (more := len(facts.uneven_topics) - SHOWN_TOPICS) > 0:
        yield f"unequal partitions: {counted(more, 'topic')} more"


SHOWN_SENTENCES = 10
SHOWN_PAIRS = 6
SHOWN_DIRS = 20
_BINDING = {
    "forced": ", copies that must be made whatever the targets",
    "excess": ", what overloaded brokers must give away",
    "lack": ", what others must receive",
}


@dataclass(frozen=True, slots=True)
class ShownPlan:
    """How to show a plan: `is_wide` shows every goal of every broker; loads older than `max_age_s` are stale.

    A plan that `can_run` is for execution, not only the answer to a question.
    """

    is_wide: bool = False
    max_age_s: float | None = None
    can_run: bool = True


def show_plan(outcome: Outcome, out: Path | None, explained: Sequence[str], output_format: str, how: ShownPlan) -> None:
    """Print cost and benefit of a plan, and the plan itself unless it was written to a file."""
    if output_format == "json":
        print_json(plan_document(outcome, out, explained))
        return
    if output_format == MARKDOWN:
        print_verbatim(plan_markdown(outcome.facts, outcome.plan.replicas))
        return
    # A plan that only answers a question is of use to programs alone.
    is_printed = out is None and how.can_run
    if is_printed:
        print_verbatim(format_plan(outcome.plan, outcome.facts.cluster_id))
    # With the plan on stdout, text about it goes to stderr.
    terminal = console(stderr=is_printed)
    plan_summary(terminal, outcome, how)
    for sentence in explained:
        terminal.print(sentence)
    if out:
        terminal.print(f"plan {outcome.facts.plan_id} written to {out}, the facts about it to {facts_path(out)}")
    if len(outcome.plan) and how.can_run:
        _print_next(out)


def _print_next(out: Path | None) -> None:
    if out is None:
        print_next(next_command(*typed_words(), "--out", "plan.json"))
    else:
        print_next(next_command("run", out, "--dry-run", takes=CLUSTER), next_command("run", out, takes=CLUSTER))


def plan_document(outcome: Outcome, out: Path | None, explained: Sequence[str]) -> dict[str, Any]:
    """Facts and effect of a plan; with the plan itself unless it was written to a file."""
    facts = json.loads(format_facts(outcome.facts))
    return {
        **facts,
        "changed_partitions": len(outcome.plan),
        "goals": spreads_of(outcome.evaluation),
        "explained": list(explained),
        **({"file": str(out)} if out else {"plan": json.loads(format_plan(outcome.plan, outcome.facts.cluster_id))}),
    }  # fmt: skip


def plan_summary(terminal: Console, outcome: Outcome, how: ShownPlan) -> None:
    """Print changed factors, the basis of loads, the cost and its lower bound, the duration, and each broker.

    Lines wrap; tables fit 80 columns unless they are wide.
    """
    facts = outcome.facts
    terminal.print("\n".join((*facts.factors, _cost(outcome))))
    if facts.loads is not None:
        print_loads(terminal, facts.loads, how.max_age_s)
    for line in _measures(outcome):
        terminal.print(line)
    if outcome.evaluation.goals:
        terminal.print(goals_table(outcome.evaluation))
    if facts.losses:
        terminal.print(_losses(facts))
    for part in plan_tables(facts, is_wide=how.is_wide):
        terminal.print(part)
    _print_directories(terminal, outcome)
    for line in (*limit_lines(facts.limits), *unheeded(facts)):
        terminal.print(line)
    for sentence in facts.remaining[:SHOWN_SENTENCES]:
        terminal.print(f"remains: {sentence}")
    if (more := len(facts.remaining) - SHOWN_SENTENCES) > 0:
        terminal.print(f"remains: {more} more")


def _measures(outcome: Outcome) -> Iterator[str]:
    """The lower bound, copies between racks, leaders by rack and topic, the time; bound and time of changes only."""
    facts, changes = outcome.facts, len(outcome.plan)
    if changes:
        yield _bound(outcome)
    if facts.racks:
        yield racks_line(facts.racks)
    if facts.leader_racks is not None:
        found = facts.leader_racks
        where = f"{found.before} of {found.partitions} before, {found.after} after"
        yield f"leaders in the rack that is preferred for them: {where}"
    if facts.topic_leaders is not None:
        even = facts.topic_leaders
        where = f"{even.uneven_before} of {even.topics} before, {even.uneven_after} after"
        yield f"topics with uneven leaders: {where}; by {even.missed_before} and {counted(even.missed_after, 'leader')}"
    if facts.prediction is not None and changes:
        yield _time_text(facts.prediction)


def _cost(outcome: Outcome) -> str:
    totals, count = outcome.facts.totals, len(outcome.plan)
    if not count:
        return f"{outcome.facts.task}: {_nothing(outcome)}"
    copied = f"{_does(totals.moves, 'replica', 'are')} copied, {format_bytes(totals.moved_bytes)}"
    if totals.log_dir_moves:
        moved = _does(totals.log_dir_moves, "replica", "change")
        copied += f"; {moved} disk, {format_bytes(totals.log_dir_bytes)}"
    changes = f"{copied}; {_does(totals.leader_changes, 'leader', 'change')}"
    return f"{outcome.facts.task}: {_does(count, 'partition', 'change')}: {changes}"


def _does(count: int, noun: str, verb: str) -> str:
    return f"{counted(count, noun)} {agreeing(count, verb)}"


def _nothing(outcome: Outcome) -> str:
    """Why a plan changes nothing: no need, or no change helps."""
    if not len(outcome.problem.partitions):
        return "nothing to do, for the cluster has no partition that this client may see"
    if outcome.problem.rules.is_given:
        return "nothing to do, for every partition is already where it is to be"
    if outcome.problem.rules.only_forced or not outcome.evaluation.goals:
        return "nothing to do"
    if outcome.evaluation.misses() and outcome.problem.budget != NO_BUDGET:
        return "nothing to do, for no change that fits into the budget brings brokers nearer to their bands"
    if outcome.evaluation.misses():
        return "nothing to do, for no change that is allowed brings brokers nearer to their bands"
    return "nothing to do, for all brokers are within their bands"


def _bound(outcome: Outcome) -> str:
    facts, missed = outcome.facts, {one.goal for one in outcome.evaluation.misses()}
    least, gap = facts.totals.least_bytes, facts.totals.gap
    if gap is not None:
        why = _BINDING.get(facts.totals.binding, "")
        return f"lower bound: {format_bytes(least)}{why} (plan {shown_gap(gap)}){_for_limits(facts)}"
    if facts.totals.moved_bytes and (outcome.evaluation.unfinished or missed & outcome.problem.aimed_goals):
        return "some balance targets missed, so there is no lower bound; see below"
    return "nothing has to be copied"


def racks_line(racks: Sequence[RackBytes]) -> str:
    """Bytes copied between racks, of all bytes copied, by pair, largest first; with the cost as far as it is known."""
    crossing = sorted((one for one in racks if one.crosses), key=lambda one: -one.size_bytes)
    pairs = [f"{one.source} to {one.target} {format_bytes(one.size_bytes)}" for one in crossing[:SHOWN_PAIRS]]
    pairs += [f"{counted(len(crossing) - SHOWN_PAIRS, 'pair')} more"] if len(crossing) > SHOWN_PAIRS else []
    costs = [one.cost for one in racks if one.cost is not None]
    unpriced = sum(one.size_bytes for one in crossing if one.cost is None) if costs else 0
    unknown = sum(one.size_bytes for one in racks if None in (one.source, one.target))
    total = sum(one.size_bytes for one in crossing)
    return "".join((
        f"across racks: {format_bytes(total)} of {format_bytes(sum(one.size_bytes for one in racks))}",
        f" ({', '.join(pairs)})" if pairs else "",
        f", which costs {sum(costs):.2f}" if costs else "",
        f", and {format_bytes(unpriced)} without a price" if unpriced else "",
        f"; the racks of {format_bytes(unknown)} are not known" if unknown else "",
    ))  # fmt: skip


def shown_gap(gap: float) -> str:
    """By how much a plan exceeds a bound, as a signed percentage; rounding below the bound gives +0.0%."""
    return f"{round(gap, 3) + 0.0:+.1%}"


def _for_limits(facts: PlanFacts) -> str:
    """Copies beyond the demands of the task, and the limits that require them."""
    found = [
        (fact.size_bytes, reason.limit)
        for fact in facts.partitions
        for reason in fact.reasons
        if reason.limit and reason.source != reason.destination
    ]
    if not found:
        return ""
    limits = ", ".join(sorted({limit for _, limit in found}))
    copied = format_bytes(sum(size for size, _ in found))
    more = f"{len(found)} replica{'s' if len(found) > 1 else ''} more than the task demands, {copied}"
    return f"; {more}, so that no broker exceeds its limit of {limits}"


def _time_text(prediction: Prediction) -> str:
    rate = format_rate(prediction.rate_bytes_per_s)
    if math.isinf(prediction.seconds):
        return f"at {rate} it never ends: some partition is written faster than it would be copied"
    longest = format_duration(prediction.longest_move_s)
    time = f"at {rate} it takes about {format_duration(prediction.seconds)}, the longest single copy {longest}"
    if prediction.gap is None:
        return time
    least = format_duration(prediction.least_s)
    return f"{time}; no plan is done before {least} (plan {shown_gap(prediction.gap)})"


def goals_table(found: Evaluation) -> Table:
    """The least and the most loaded broker of each goal, before and after."""
    rows = (
        (one["name"], *(f"{one[when][which]:.3f}" for which in ("least", "most") for when in ("before", "after")))
        for one in spreads_of(found)
    )
    columns = [*names("goal"), *figures("min/avg before", "after", "max/avg before", "after")]
    return text_table(columns, rows)


def _losses(facts: PlanFacts) -> Table:
    """For each goal the worst loss of one more broker or rack, before and after the plan."""
    goals = dict.fromkeys(one.goal for one in facts.losses)
    rows = ((goal, *(_loss(one) for one in facts.losses if one.goal == goal)) for goal in goals)
    return text_table(names("one more loss", "worst before", "worst after"), rows)


def _loss(worst: WorstLoss) -> str:
    share = f", {worst.use:.0%} of its limit" if math.isfinite(worst.limit) and math.isfinite(worst.use) else ""
    offline = f"; {counted(worst.offline, 'partition')} offline" if worst.offline else ""
    return f"{worst.lost}: broker {worst.broker} has {format_load(worst.load, worst.unit)}{share}{offline}"


def spreads_of(found: Evaluation) -> list[dict[str, Any]]:
    """Of each goal its name, and before and after the least and most loaded broker, relative to its share."""

    def rounded(goal: int, *, before: bool) -> dict[str, float]:
        least, most = found.spread(goal, before=before)
        return {"least": round(least, 6), "most": round(most, 6)}

    return [
        {"name": name, "before": rounded(index, before=True), "after": rounded(index, before=False)}
        for index, name in enumerate(found.goals)
    ]


def _print_directories(terminal: Console, outcome: Outcome) -> None:
    """Print what log directories give and take within their brokers, most first; nothing if none does."""
    if not outcome.facts.totals.log_dir_moves:
        return
    facts = {fact.topic_partition: fact for fact in outcome.facts.partitions}
    given: Counter[tuple[int, str]] = Counter()
    taken: Counter[tuple[int, str]] = Counter()
    for replica, target in outcome.plan.log_dirs.items():
        fact = facts[replica.topic_partition]
        held = dict(zip(fact.replicas, fact.log_dirs, strict=False))
        if (before := held.get(replica.broker)) is not None and before != target:
            given[replica.broker, before] += fact.size_bytes
            taken[replica.broker, target] += fact.size_bytes
    found = sorted(given.keys() | taken.keys(), key=lambda one: (-given[one] - taken[one], one))
    rows = [
        (str(broker), path, format_bytes(given[broker, path]), format_bytes(taken[broker, path]))
        for broker, path in found[:SHOWN_DIRS]
    ]
    more = [("", f"and {len(found) - SHOWN_DIRS} more")] if len(found) > SHOWN_DIRS else []
    columns = [*figures("broker"), *names("log directory"), *figures("gives", "takes")]
    terminal.print(text_table(columns, [*rows, *more]))
