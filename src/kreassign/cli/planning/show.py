"""How a plan is shown: words and tables for people, a document for programs."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from kreassign.cli.next_command import CLUSTER, next_command, print_next
from kreassign.cli.output import MARKDOWN, console, print_json
from kreassign.cli.planning.broker_tables import plan_tables
from kreassign.cli.planning.limits import limit_lines, unheeded
from kreassign.cli.planning.loads import print_loads
from kreassign.cli.typed import typed_words
from kreassign.model.amount import format_load
from kreassign.model.plan_facts import PlanFacts, Prediction, RackBytes, WorstLoss
from kreassign.model.plan_facts_json import format_facts
from kreassign.model.plan_json import format_plan
from kreassign.operations.plan_files import facts_path
from kreassign.planner import Evaluation
from kreassign.planner.results.outcome import Outcome
from kreassign.report.markdown import plan_markdown
from kreassign.report.text import format_bytes, format_duration, format_rate

SHOWN_SENTENCES = 10
SHOWN_PAIRS = 6
SHOWN_DIRS = 20
_BINDING = {
    "forced": ", copies that must be made whatever the targets",
    "excess": ", what brokers cannot keep",
    "lack": ", what others must receive",
}


@dataclass(frozen=True, slots=True)
class Shown:
    """How much of a plan is shown: `is_wide` for every goal of every broker; loads older than `max_age_s` are stale.

    A plan that `can_run` is not only the answer to a question.
    """

    is_wide: bool = False
    max_age_s: float | None = None
    can_run: bool = True


def show(outcome: Outcome, out: Path | None, explained: Sequence[str], output_format: str, how: Shown) -> None:
    """Print what a plan costs and brings, and the plan itself unless it went to a file."""
    if output_format == "json":
        print_json(document(outcome, out, explained))
        return
    if output_format == MARKDOWN:
        click.echo(plan_markdown(outcome.facts, outcome.plan.replicas))
        return
    # The plan that answers a question is of use to programs only.
    is_printed = out is None and how.can_run
    if is_printed:
        click.echo(format_plan(outcome.plan))
    # With the plan on stdout, the words about it go where they do not get into its way.
    terminal = console(stderr=is_printed)
    summary(terminal, outcome, how)
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


def document(outcome: Outcome, out: Path | None, explained: Sequence[str]) -> dict[str, Any]:
    """The facts about a plan and its effect; with the plan unless it went to a file."""
    facts = json.loads(format_facts(outcome.facts))
    return {
        **facts,
        "changed_partitions": len(outcome.plan),
        "goals": [
            {"name": name, "before": spread_of(outcome.evaluation, index, before=True),
             "after": spread_of(outcome.evaluation, index, before=False)}
            for index, name in enumerate(outcome.evaluation.goals)
        ],
        "explained": list(explained),
        **({"file": str(out)} if out else {"plan": json.loads(format_plan(outcome.plan))}),
    }  # fmt: skip


def summary(terminal: Console, outcome: Outcome, how: Shown) -> None:
    """What its loads rest on, what it costs, how near that is to the least possible, how long it takes, each broker.

    Lines wrap, and tables fit 80 columns unless they are to be wide.
    """
    facts = outcome.facts
    terminal.print(_cost(outcome))
    if facts.loads is not None:
        print_loads(terminal, facts.loads, how.max_age_s)
    terminal.print(_bound(facts))
    if facts.racks:
        terminal.print(racks_line(facts.racks))
    if facts.leader_racks is not None:
        found = facts.leader_racks
        where = f"{found.before} of {found.partitions} before, {found.after} after"
        terminal.print(f"leaders in the rack that is preferred for them: {where}")
    if facts.topic_leaders is not None:
        even = facts.topic_leaders
        where = f"{even.uneven_before} of {even.topics} before, {even.uneven_after} after"
        where += f"; by {even.missed_before} and {even.missed_after} leaders"
        terminal.print(f"topics with uneven leaders: {where}")
    if facts.prediction is not None:
        terminal.print(_time(facts.prediction))
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
    if more := len(facts.remaining) - SHOWN_SENTENCES:
        terminal.print(f"remains: {more} more" if more > 0 else "", end="\n" if more > 0 else "")


def _cost(outcome: Outcome) -> str:
    totals, count = outcome.facts.totals, len(outcome.plan)
    if not count:
        return f"{outcome.facts.task}: {_nothing(outcome)}"
    copied = f"{totals.moves} replicas are copied, {format_bytes(totals.moved_bytes)}"
    if totals.log_dir_moves:
        copied += f"; {totals.log_dir_moves} change their disk, {format_bytes(totals.log_dir_bytes)}"
    changes = f"{copied}; {totals.leader_changes} leaders change"
    return f"{outcome.facts.task}: {count} partitions change: {changes}"


def _nothing(outcome: Outcome) -> str:
    """Why a plan changes nothing: there is nothing to do, or nothing helps."""
    if outcome.problem.rules.only_forced or not outcome.evaluation.goals:
        return "nothing to do"
    if outcome.evaluation.misses():
        return "nothing to do, for no change that is allowed brings brokers nearer to their bands"
    return "nothing to do, for all brokers are within their bands"


def _bound(facts: PlanFacts) -> str:
    least, gap = facts.totals.least_bytes, facts.totals.gap
    if gap is not None:
        why = _BINDING.get(facts.totals.binding, "")
        return f"lower bound: {format_bytes(least)}{why} (plan {shown_gap(gap)}){_for_limits(facts)}"
    if facts.totals.moved_bytes and facts.remaining:
        return "some balance targets missed, so there is no lower bound; see below"
    return "nothing has to be copied"


def racks_line(racks: Sequence[RackBytes]) -> str:
    """What is copied between racks, of all that is copied, the most first; and what it costs, as far as it is known."""
    crossing = sorted((one for one in racks if one.crosses), key=lambda one: -one.size_bytes)
    pairs = [f"{one.source} to {one.target} {format_bytes(one.size_bytes)}" for one in crossing[:SHOWN_PAIRS]]
    pairs += [f"{len(crossing) - SHOWN_PAIRS} pairs more"] if len(crossing) > SHOWN_PAIRS else []
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
    """By how much a plan exceeds a bound, in percent with a sign; what rounding takes below the bound is at it."""
    return f"{round(gap, 3) + 0.0:+.1%}"


def _for_limits(facts: PlanFacts) -> str:
    """What a plan copies although its task does not demand it, and for which limits."""
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


def _time(prediction: Prediction) -> str:
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
    table = Table(box=None, pad_edge=False)
    table.add_column("goal")
    for title in ("min/avg before", "after", "max/avg before", "after"):
        table.add_column(title, justify="right")
    for index, name in enumerate(found.goals):
        before, after = (spread_of(found, index, before=when) for when in (True, False))
        table.add_row(name, *(f"{one[which]:.3f}" for which in ("least", "most") for one in (before, after)))
    return table


def _losses(facts: PlanFacts) -> Table:
    """For each goal the worst that the loss of one more broker or rack would bring, before the plan and after it."""
    table = Table(box=None, pad_edge=False)
    for title in ("one more loss", "worst before", "worst after"):
        table.add_column(title)
    for goal in dict.fromkeys(one.goal for one in facts.losses):
        table.add_row(goal, *(_loss(one) for one in facts.losses if one.goal == goal))
    return table


def _loss(worst: WorstLoss) -> str:
    share = f", {worst.use:.0%} of its limit" if math.isfinite(worst.limit) and math.isfinite(worst.use) else ""
    offline = f"; {worst.offline} partitions offline" if worst.offline else ""
    return f"{worst.lost}: broker {worst.broker} has {format_load(worst.load, worst.unit)}{share}{offline}"


def spread_of(found: Evaluation, goal: int, *, before: bool) -> dict[str, float]:
    """The least and the most loaded broker that takes part, relative to its share."""
    least, most = found.spread(goal, before=before)
    return {"least": round(least, 6), "most": round(most, 6)}


def _print_directories(terminal: Console, outcome: Outcome) -> None:
    """What log directories give and take within their brokers, those with most first; nothing if none does."""
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
    table = Table(box=None, pad_edge=False)
    table.add_column("broker", justify="right")
    table.add_column("log directory", overflow="fold")
    for title in ("gives", "takes"):
        table.add_column(title, justify="right", no_wrap=True)
    found = sorted(given.keys() | taken.keys(), key=lambda one: (-given[one] - taken[one], one))
    for broker, path in found[:SHOWN_DIRS]:
        table.add_row(str(broker), path, format_bytes(given[broker, path]), format_bytes(taken[broker, path]))
    if len(found) > SHOWN_DIRS:
        table.add_row("", f"and {len(found) - SHOWN_DIRS} more")
    terminal.print(table)
