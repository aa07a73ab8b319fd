"""`kreassign plan pareto` and `kreassign plan brokers-needed`: answers to choose by, rather than one plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.table import Table

from kreassign.cli.options.plan import PlanOptions, planning_options
from kreassign.cli.output import console, print_json
from kreassign.cli.planning.circumstances import circumstance_options, circumstances_of, described
from kreassign.cli.planning.finish import origin
from kreassign.model.amount import format_amount
from kreassign.operations.plan_files import write_plan
from kreassign.planner.problem.goals_file import PERCENT
from kreassign.planner.results.outcome import outcome_of
from kreassign.planner.results.pareto import ANY_RATE, Choice
from kreassign.planner.results.pareto import pareto as pareto_choices
from kreassign.planner.tasks import ignore_dead_brokers
from kreassign.planner.tasks.brokers_needed import RightSize
from kreassign.planner.tasks.brokers_needed import brokers_needed as right_size
from kreassign.planner.tasks.what_if import what_if
from kreassign.report.text import format_bytes, format_duration


@click.command()
@click.option("--out-dir", type=click.Path(file_okay=False, path_type=Path), metavar="DIR",
              help="Where to write every plan, as ID.json with its facts.")  # fmt: skip
@planning_options
def pareto(options: PlanOptions, out_dir: Path | None) -> None:
    """Show several plans of which none beats another in bytes, balance, time and changes of leaders."""
    inputs = options.inputs()
    problem, left = ignore_dead_brokers(inputs.problem)
    problem = options.budgeted(problem)
    choices = pareto_choices(problem, options.rate or ANY_RATE)
    for choice in choices if out_dir else ():
        assert out_dir is not None
        out_dir.mkdir(parents=True, exist_ok=True)
        outcome = outcome_of(problem, choice.assignment, origin(inputs, f"rebalance, {choice.wish}", options, left))
        write_plan(out_dir / f"{choice.id}.json", outcome.plan, outcome.facts)
    if options.output_format == "json":
        print_json({"choices": [_fields(choice, timed=options.rate is not None) for choice in choices]})
    else:
        console().print(_table(choices, timed=options.rate is not None))


@click.command("brokers-needed")
@click.option("--at-most", type=click.FloatRange(0, 100, min_open=True), default=70.0, show_default=True,
              metavar="PERCENT", help="How much of its limits a broker may use.")  # fmt: skip
@circumstance_options
@planning_options
def brokers_needed(options: PlanOptions, at_most: float, **wishes: Any) -> None:
    """Say how many brokers like these the load needs, now or under other circumstances."""
    inputs = options.inputs()
    circumstances = circumstances_of(inputs, **wishes)
    found = right_size(what_if(inputs.problem, circumstances), at_most / PERCENT)
    if options.output_format == "json":
        print_json(_size_document(found))
        return
    terminal = console()
    terminal.print(
        f"{described(circumstances)}: {found.brokers} brokers carry this load at {found.at_most:.0%} of their limits; "
        f"there are {found.present}"
    )
    for need in found.needs:
        total, limit = format_amount(need.total, need.unit), format_amount(need.limit, need.unit)
        terminal.print(f"{need.goal} alone needs {need.brokers}: {total} at {limit} each")


def _fields(choice: Choice, *, timed: bool) -> dict[str, Any]:
    return {
        "id": choice.id,
        "wish": choice.wish,
        "moved_bytes": choice.moved_bytes,
        "imbalance": round(choice.imbalance, 9),
        "seconds": choice.seconds if timed else None,
        "leader_changes": choice.leader_changes,
    }


def _table(choices: tuple[Choice, ...], *, timed: bool) -> Table:
    table = Table(box=None, pad_edge=False)
    for title in ("plan", "asked for", "copied", "widest miss", "time", "leaders"):
        table.add_column(title, justify="left" if title in {"plan", "asked for"} else "right")
    for choice in choices:
        time = format_duration(choice.seconds) if timed else "-"
        miss = f"{choice.imbalance:.1%}"
        table.add_row(choice.id, choice.wish, format_bytes(choice.moved_bytes), miss, time, str(choice.leader_changes))
    return table


def _size_document(found: RightSize) -> dict[str, Any]:
    needs = [
        {"goal": need.goal, "unit": need.unit, "total": need.total, "limit": need.limit, "brokers": need.brokers}
        for need in found.needs
    ]
    return {"brokers": found.brokers, "present": found.present, "at_most": found.at_most, "needs": needs}
