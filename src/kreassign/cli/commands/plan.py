"""`kreassign plan TASK`: from the load model to a plan in Kafka's JSON, with what it costs, what it brings, and why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click

from kreassign.cli.options.plan import PlanOptions, parse_brokers, planning_options
from kreassign.cli.options.run import state_dir_option
from kreassign.cli.planning.choices import brokers_needed, pareto
from kreassign.cli.planning.circumstances import circumstance_options, circumstances_of, described
from kreassign.cli.planning.finish import given, solved
from kreassign.cli.planning.many import fleet, grid
from kreassign.errors import InputError
from kreassign.executor.history.run_history import read_history
from kreassign.model import TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.operations.journals import find_journal
from kreassign.operations.plan_files import read_plan
from kreassign.planner import tasks
from kreassign.planner.goals import DISK
from kreassign.planner.problem.problem import Band, Problem
from kreassign.planner.tasks import TopicChoice

Command = TypeVar("Command", bound=Callable[..., Any])

DEFAULT_TASK = "rebalance"


class TaskGroup(click.Group):
    """Tasks by name; options alone mean the default task."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the name of the default task in front where no task is named."""
        if not args or (args[0].startswith("-") and args[0] not in ctx.help_option_names):
            args = [DEFAULT_TASK, *args]
        return super().parse_args(ctx, args)


@click.group(cls=TaskGroup)
def plan() -> None:
    """Compute a plan for a task (rebalance, if none is named).

    Reads the tables of `kreassign snapshot` and `kreassign load`, or a snapshot file; copies as few bytes as it can,
    and says how few any plan would need. Partitions that are being moved already stay.
    """


plan.add_command(pareto)
plan.add_command(brokers_needed)
plan.add_command(fleet)
plan.add_command(grid)


def topic_options(command: Command) -> Command:
    """Add `--topic NAME` and `--topics REGEX`: parameters `topic` and `topics`."""
    by_name = click.option("--topic", multiple=True, metavar="NAME", help="Only this topic; may be repeated.")
    by_pattern = click.option(
        "--topics", multiple=True, metavar="REGEX", help="Only topics that match; may be repeated."
    )
    return by_name(by_pattern(command))


balance_option = click.option(
    "--and-balance", is_flag=True, help="Even out the brokers in the same plan.  [default: change only what must be]"
)
BROKERS = click.argument("brokers", callback=parse_brokers, metavar="IDS")


@plan.command()
@planning_options
@topic_options
def rebalance(options: PlanOptions, topic: tuple[str, ...], topics: tuple[str, ...]) -> None:
    """Even out the brokers, with all topics or with some."""
    inputs = options.inputs()
    problem = tasks.rebalance(inputs.problem, TopicChoice(topic, topics) if topic or topics else None)
    solved(inputs, problem, f"rebalance{_of(topic, topics)}", options)


@plan.command("add-brokers")
@BROKERS
@click.option("--mixed", is_flag=True, help="Even out the others too.  [default: replicas go only to the new ones]")
@planning_options
def add_brokers(options: PlanOptions, brokers: tuple[int, ...], mixed: bool) -> None:
    """Fill brokers that joined the cluster."""
    inputs = options.inputs()
    problem = tasks.add_brokers(inputs.problem, brokers, only_onto=not mixed)
    solved(inputs, problem, f"add brokers {_listed(brokers)}", options)


@plan.command("drain-brokers")
@BROKERS
@click.option("--replace-with", callback=parse_brokers, metavar="IDS",
              help="Give each broker's replicas to its successor, and change nothing else.")  # fmt: skip
@balance_option
@planning_options
def drain_brokers(
    options: PlanOptions, brokers: tuple[int, ...], replace_with: tuple[int, ...], and_balance: bool
) -> None:
    """Empty brokers, live or dead, so that they can be taken away."""
    inputs = options.inputs()
    if replace_with:
        if len(replace_with) != len(brokers) or and_balance:
            raise InputError("--replace-with needs one successor for each broker, and goes without --and-balance")
        problem, assignment = tasks.replace_brokers(inputs.problem, dict(zip(brokers, replace_with, strict=True)))
        given(inputs, problem, assignment, f"replace brokers {_listed(brokers)} by {_listed(replace_with)}", options)
        return
    problem = tasks.drain_brokers(inputs.problem, brokers)
    solved(inputs, _limited(problem, and_balance), f"drain brokers {_listed(brokers)}", options)


@plan.command("drain-dirs")
@click.argument("places", nargs=-1, required=True, metavar="BROKER:PATH...")
@click.option("--between-brokers", is_flag=True, help="Replicas may leave their broker.  [default: they stay on it]")
@balance_option
@planning_options
def drain_dirs(options: PlanOptions, places: tuple[str, ...], between_brokers: bool, and_balance: bool) -> None:
    """Empty log directories, so that a disk can be taken out."""
    inputs = options.inputs()
    problem = tasks.drain_log_dirs(inputs.problem, map(_place, places), between_brokers=between_brokers)
    if not (between_brokers or and_balance):
        problem = replace(problem, bands=(Band(DISK, None),))  # with no band to meet, only what must goes
    solved(inputs, _limited(problem, and_balance), f"drain log directories {', '.join(places)}", options)


@plan.command()
@click.argument("count", type=click.IntRange(min=1), metavar="FACTOR")
@topic_options
@balance_option
@planning_options
def factor(
    options: PlanOptions, count: int, topic: tuple[str, ...], topics: tuple[str, ...], and_balance: bool
) -> None:
    """Give partitions this many replicas."""
    inputs = options.inputs()
    problem = tasks.change_factors(inputs.problem, count, TopicChoice(topic, topics))
    solved(inputs, _limited(problem, and_balance), f"replication factor {count}{_of(topic, topics)}", options)


@plan.command()
@click.option("--mend-racks/--leave-racks", default=True, help="Mend partitions with too many replicas in one rack.")
@click.option("--mend-factors/--leave-factors", default=True, help="Fill up to the usual factor of the topic.")
@balance_option
@planning_options
def repair(options: PlanOptions, mend_racks: bool, mend_factors: bool, and_balance: bool) -> None:
    """Bring back what is missing: replicas on dead brokers, replicas too few, racks with too many."""
    inputs = options.inputs()
    problem = tasks.repair(inputs.problem, racks=mend_racks, factors=mend_factors)
    solved(inputs, _limited(problem, and_balance), "repair", options, dead_are_mended=True)


@plan.command()
@planning_options
def leaders(options: PlanOptions) -> None:
    """Even out leading by the order of replica lists; nothing is copied."""
    inputs = options.inputs()
    solved(inputs, tasks.leaders_only(inputs.problem), "leaders", options)


@plan.command()
@BROKERS
@planning_options
def demote(options: PlanOptions, brokers: tuple[int, ...]) -> None:
    """Let brokers lead nothing that another can lead; nothing is copied."""
    inputs = options.inputs()
    solved(inputs, tasks.demote(inputs.problem, brokers), f"demote brokers {_listed(brokers)}", options)


@plan.command()
@click.option("--between-brokers", is_flag=True, help="Even out the brokers in the same plan.")
@planning_options
def disks(options: PlanOptions, between_brokers: bool) -> None:
    """Even out the log directories of each broker."""
    inputs = options.inputs()
    solved(inputs, tasks.balance_disks(inputs.problem, between_brokers=between_brokers), "disks", options)


@plan.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path), required=False)
@click.option("--run", metavar="RUN", help="The state before this run, by its id or journal.")
@state_dir_option
@planning_options
def restore(options: PlanOptions, file: Path | None, run: str | None, state_dir: Path) -> None:
    """Bring back the assignment in FILE (Kafka's JSON or Cruise Control's proposals), or that before a run."""
    if (file is None) == (run is None):
        raise InputError("give either a file or --run RUN")
    wanted = read_plan(file) if file else _before_run(find_journal(state_dir, str(run)))
    inputs = options.inputs()
    problem, assignment = tasks.restore(inputs.problem, wanted)
    given(inputs, problem, assignment, f"restore {file or run}", options)


@plan.command("what-if")
@click.option(
    "--add-brokers", "added", type=click.IntRange(min=0), default=0, metavar="N", help="So many more brokers."
)
@click.option("--remove-brokers", "removed", callback=parse_brokers, metavar="IDS", help="Without these brokers.")
@click.option("--factor", type=click.IntRange(min=1), metavar="N", help="Another replication factor.")
@circumstance_options
@planning_options
def what_if(options: PlanOptions, **wishes: Any) -> None:
    """Plan under other circumstances. The plan answers a question; brokers in it may not exist."""
    inputs = options.inputs()
    circumstances = circumstances_of(inputs, **wishes)
    solved(inputs, tasks.what_if(inputs.problem, circumstances), f"what if {described(circumstances)}", options)


def _limited(problem: Problem, and_balance: bool) -> Problem:
    return problem if and_balance else tasks.only_forced(problem)


def _place(text: str) -> tuple[int, str]:
    broker, colon, path = text.partition(":")
    if not (colon and broker.isdigit() and path):
        raise InputError(f"{text!r} is not a log directory; write BROKER:PATH, for example 3:/data/kafka-1")
    return int(broker), path


def _before_run(journal: Path) -> Plan:
    moves = read_history(journal).moves
    return Plan(tuple(PartitionAssignment(TopicPartition(one.topic, one.partition), one.original) for one in moves))


def _of(names: tuple[str, ...], patterns: tuple[str, ...]) -> str:
    return f" of {', '.join((*names, *patterns))}" if names or patterns else ""


def _listed(brokers: tuple[int, ...]) -> str:
    return ", ".join(map(str, brokers))
