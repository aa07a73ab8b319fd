"""`kreassign plan fleet` and `kreassign plan grid`: many problems at once, each solved as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from kreassign.cli.options.plan import PlanOptions, planning_options
from kreassign.cli.output import console, print_json
from kreassign.cli.planning.circumstances import circumstances_of, described
from kreassign.cli.planning.finish import origin
from kreassign.model.plan_facts import Totals
from kreassign.operations.plan_files import write_plan
from kreassign.operations.plan_inputs import Inputs, inputs_of_snapshot
from kreassign.pipeline.load.plan_inputs import planned_clusters
from kreassign.planner import tasks
from kreassign.planner.problem.problem import Problem
from kreassign.planner.results.outcome import Outcome, outcome_of
from kreassign.planner.search.pop import Answer
from kreassign.report.text import format_bytes


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """One problem of many: what it is called, where it comes from, and what it is not to touch."""

    name: str
    inputs: Inputs
    problem: Problem
    left: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Reply:
    """The outcome of one question, or in words why there is none."""

    name: str
    outcome: Outcome | None
    refusal: str | None = None


@click.command()
@click.argument("snapshots", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--out-dir", type=click.Path(file_okay=False, path_type=Path), metavar="DIR",
              help="Where to write the plan of each cluster, as CLUSTER.json with its facts.")  # fmt: skip
@planning_options
@click.pass_context
def fleet(context: click.Context, options: PlanOptions, snapshots: tuple[Path, ...], out_dir: Path | None) -> None:
    """Even out many clusters at once: those of the SNAPSHOTS files, or all in the tables.

    Exit code 1 if a cluster has no plan that keeps the rules; the others get theirs.
    """
    inputs = [*_fleet(options, snapshots)]
    questions = [_question(one.cluster_id, one, tasks.rebalance(one.problem), options) for one in inputs]
    replies = _replies(questions, "rebalance", options)
    for reply in replies if out_dir else ():
        assert out_dir is not None
        out_dir.mkdir(parents=True, exist_ok=True)
        if reply.outcome is not None:
            write_plan(out_dir / f"{reply.name}.json", reply.outcome.plan, reply.outcome.facts)
    _show("cluster", replies, options.output_format)
    context.exit(1 if any(reply.outcome is None for reply in replies) else 0)


def _values(kind: Callable[[str], Any]) -> Callable[[click.Context, click.Parameter, str], tuple[Any, ...]]:
    def parse(_: click.Context, __: click.Parameter, text: str) -> tuple[Any, ...]:
        try:
            return tuple(kind(part) for part in text.split(",")) if text else ()
        except ValueError as error:
            raise click.BadParameter(f"{text!r} is not a list of numbers such as 1,2: {error}") from error

    return parse


@click.command()
@click.option("--add-brokers", "added", callback=_values(int), default="0", metavar="N,…", help="So many more brokers.")
@click.option("--factor", callback=_values(int), default="", metavar="N,…", help="Other replication factors.")
@click.option("--traffic", callback=_values(float), default="1", metavar="K,…", help="All rates times this.")
@planning_options
def grid(options: PlanOptions, added: tuple[int, ...], factor: tuple[int, ...], traffic: tuple[float, ...]) -> None:
    """Plan for every combination of other circumstances, and compare the plans."""
    inputs = options.inputs()
    cells = [
        circumstances_of(inputs, at=None, growth=0.0, added=more, factor=copies, traffic=times)
        for more, copies, times in product(added, factor or (None,), traffic)
    ]
    questions = [_question(described(cell), inputs, tasks.what_if(inputs.problem, cell), options) for cell in cells]
    _show("circumstances", _replies(questions, "what if", options), options.output_format)


def _fleet(options: PlanOptions, snapshots: tuple[Path, ...]) -> Iterator[Inputs]:
    if snapshots:
        yield from (inputs_of_snapshot(path, options.wishes()) for path in snapshots)
    elif options.data is None:
        raise click.UsageError("say what to plan for: --data DIR or snapshot files")
    else:
        yield from (replace(options, cluster=cluster).inputs() for cluster in planned_clusters(options.data))


def _question(name: str, inputs: Inputs, problem: Problem, options: PlanOptions) -> Question:
    problem, left = tasks.ignore_dead_brokers(problem)
    return Question(name, inputs, options.budgeted(problem), left)


def _replies(questions: list[Question], task: str, options: PlanOptions) -> list[Reply]:
    answers = options.solving.solve_all([question.problem for question in questions])
    return [_reply(question, answer, task, options) for question, answer in zip(questions, answers, strict=True)]


def _reply(question: Question, answer: Answer, task: str, options: PlanOptions) -> Reply:
    if isinstance(answer, str):
        return Reply(question.name, None, answer)
    facts = origin(question.inputs, task, options, question.left)
    return Reply(question.name, outcome_of(question.problem, answer, facts))


def _show(title: str, replies: list[Reply], output_format: str) -> None:
    if output_format == "json":
        print_json({"plans": [_fields(title, reply) for reply in replies]})
        return
    table = Table(title, "partitions", "copied", "above the bound", "leaders", "brokers outside a band", box=None)
    for reply in replies:
        table.add_row(reply.name, *_cells(reply))
    console().print(table)
    for reply in replies:
        if reply.refusal is not None:
            click.echo(f"{reply.name}: no plan: {reply.refusal}")


def _cells(reply: Reply) -> tuple[str, ...]:
    if reply.outcome is None:
        return ("no plan",)
    totals, missed = reply.outcome.facts.totals, len(reply.outcome.evaluation.misses())
    gap = "-" if totals.gap is None else f"{totals.gap:.1%}"
    return (
        str(len(reply.outcome.plan)), format_bytes(totals.moved_bytes), gap, str(totals.leader_changes), str(missed)
    )  # fmt: skip


def _fields(title: str, reply: Reply) -> dict[str, Any]:
    if reply.outcome is None:
        return {title: reply.name, "refusal": reply.refusal}
    totals: Totals = reply.outcome.facts.totals
    return {
        title: reply.name,
        "plan_id": reply.outcome.facts.plan_id,
        "partitions": len(reply.outcome.plan),
        "moved_bytes": totals.moved_bytes,
        "least_bytes": totals.least_bytes,
        "leader_changes": totals.leader_changes,
        "missed": [str(miss) for miss in reply.outcome.evaluation.misses()],
    }
