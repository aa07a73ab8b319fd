"""How a plan is shown: words and tables for people, a document for programs."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from kreassign.cli.output import console, print_json
from kreassign.cli.planning.loads import print_loads
from kreassign.model.plan_facts import PlanFacts, Prediction
from kreassign.model.plan_facts_json import format_facts
from kreassign.model.plan_json import format_plan
from kreassign.operations.plan_files import facts_path
from kreassign.planner.results.outcome import Outcome
from kreassign.report.text import format_bytes, format_duration, format_rate

SHOWN_BROKERS = 40
SHOWN_SENTENCES = 10
_BINDING = {
    "forced": ", copies that must be made whatever the targets",
    "excess": ", what brokers cannot keep",
    "lack": ", what others must receive",
}


def show(outcome: Outcome, out: Path | None, explained: Sequence[str], output_format: str) -> None:
    """Print what a plan costs and brings, and the plan itself unless it went to a file."""
    if output_format == "json":
        print_json(document(outcome, out, explained))
        return
    if out is None:
        click.echo(format_plan(outcome.plan))
    # With the plan on stdout, the words about it go where they do not get into its way.
    terminal = console(stderr=out is None)
    summary(terminal, outcome)
    for sentence in explained:
        terminal.print(sentence)
    if out:
        terminal.print(f"plan {outcome.facts.plan_id} written to {out}, the facts about it to {facts_path(out)}")


def document(outcome: Outcome, out: Path | None, explained: Sequence[str]) -> dict[str, Any]:
    """The facts about a plan and its effect; with the plan unless it went to a file."""
    facts = json.loads(format_facts(outcome.facts))
    return {
        **facts,
        "changed_partitions": len(outcome.plan),
        "goals": [
            {"name": name, "before": _spread(outcome, index, before=True),
             "after": _spread(outcome, index, before=False)}
            for index, name in enumerate(outcome.evaluation.goals)
        ],
        "explained": list(explained),
        **({"file": str(out)} if out else {"plan": json.loads(format_plan(outcome.plan))}),
    }  # fmt: skip


def summary(terminal: Console, outcome: Outcome) -> None:
    """What it costs, what its loads rest on, how near that is to the least possible, how long it takes, each broker."""
    facts = outcome.facts
    terminal.print(_cost(outcome))
    if facts.loads is not None:
        print_loads(terminal, facts.loads)
    terminal.print(_bound(facts))
    if facts.prediction is not None:
        terminal.print(_time(facts.prediction))
    if outcome.evaluation.goals:
        terminal.print(_goals(outcome))
    if len(facts.brokers) <= SHOWN_BROKERS:
        terminal.print(_brokers(facts))
    for sentence in facts.remaining[:SHOWN_SENTENCES]:
        terminal.print(f"remains: {sentence}")
    if more := len(facts.remaining) - SHOWN_SENTENCES:
        terminal.print(f"remains: {more} more" if more > 0 else "", end="\n" if more > 0 else "")


def _cost(outcome: Outcome) -> str:
    totals, count = outcome.facts.totals, len(outcome.plan)
    if not count:
        return f"{outcome.facts.task}: nothing to do"
    copied = f"{totals.moves} replicas are copied, {format_bytes(totals.moved_bytes)}"
    if totals.log_dir_moves:
        copied += f"; {totals.log_dir_moves} change their disk, {format_bytes(totals.log_dir_bytes)}"
    changes = f"{copied}; {totals.leader_changes} leaders change"
    return f"{outcome.facts.task}: {count} partitions change: {changes}"


def _bound(facts: PlanFacts) -> str:
    least, gap = facts.totals.least_bytes, facts.totals.gap
    if gap is not None:
        why = _BINDING.get(facts.totals.binding, "")
        return f"lower bound: {format_bytes(least)}{why} (plan {shown_gap(gap)}){_for_limits(facts)}"
    if facts.totals.moved_bytes and facts.remaining:
        return "some balance targets missed, so there is no lower bound; see below"
    return "nothing has to be copied"


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


def _goals(outcome: Outcome) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("goal")
    for title in ("min/avg before", "after", "max/avg before", "after"):
        table.add_column(title, justify="right")
    for index, name in enumerate(outcome.evaluation.goals):
        before, after = (_spread(outcome, index, before=when) for when in (True, False))
        table.add_row(name, *(f"{one[which]:.3f}" for which in ("least", "most") for one in (before, after)))
    return table


def _spread(outcome: Outcome, goal: int, *, before: bool) -> dict[str, float]:
    """The least and the most loaded broker that takes part, relative to its share."""
    least, most = outcome.evaluation.spread(goal, before=before)
    return {"least": round(least, 6), "most": round(most, 6)}


def _brokers(facts: PlanFacts) -> Table:
    table = Table(box=None, pad_edge=False)
    goals = list(facts.brokers[0].before) if facts.brokers else []
    for title in ("broker", *(f"{goal} {when}" for goal in goals for when in ("before", "after")), "in", "out", "peak"):
        table.add_column(title, justify="right")
    for one in facts.brokers:
        loads = [_amount(goal, when[goal]) for goal in goals for when in (one.before, one.after)]
        table.add_row(str(one.broker), *loads, *map(format_bytes, (one.bytes_in, one.bytes_out, one.peak_bytes)))
    return table


def _amount(goal: str, amount: float) -> str:
    if goal == "disk" or goal.endswith(("-in", "-out")):
        return format_bytes(amount)
    return f"{amount:.6g}"
