"""`kreassign plan TASK`: from the load model to a plan in Kafka's JSON, with its cost, benefit and reasons."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click

from kreassign.cli.options.cluster import ClusterOptions
from kreassign.cli.options.plan import PlanOptions, circumstance_options, parse_brokers, planning_options
from kreassign.cli.options.run import factor_change_option
from kreassign.cli.options.run_id import meant_journal, state_dir_option
from kreassign.cli.options.values import INPUT_FILE, REGEX, InputPath, ReadBy, WholeRange
from kreassign.cli.output import examples
from kreassign.cli.plan_alternatives import brokers_needed, fleet, pareto
from kreassign.cli.plan_placements import CHECK, check, new_topic, partitions, savings_text
from kreassign.cli.plan_text import ShownPlan, show_plan
from kreassign.cli.streams import uncollected, working
from kreassign.errors import InputError
from kreassign.model import TopicPartition
from kreassign.model.text import MOST_REPLICAS, counted
from kreassign.operations import plan_tasks
from kreassign.operations.plan import leaders_alone, make_plan
from kreassign.operations.plan_files import keep_approved, read_assignments, read_plan_file, write_plan
from kreassign.operations.plan_inputs import Inputs
from kreassign.operations.run_journals import status
from kreassign.planner.results import explain, known_partition
from kreassign.planner.tasks import TopicChoice


def finish(
    options: PlanOptions, task: plan_tasks.Task, *, savings: bool = False, allow_factor_change: bool = False
) -> None:
    """Make the plan, write it if asked to, and show it.

    With `savings` a rebalance is searched both without and with the plan, to show what the plan saves.
    """
    with uncollected():
        explained_names = [TopicPartition.parse(name) for name in options.explain]

        def judge(present: Inputs) -> None:
            task.pose(present)
            for name in explained_names:
                known_partition(present.problem.partitions, name)

        inputs = options.inputs(judge)
        with working("searching a plan") as watch:
            request = replace(options.request, allow_factor_change=allow_factor_change)
            outcome = make_plan(inputs, task, request, watch)
        explained = [line for name in explained_names for line in explain(outcome, name)]
        if savings:
            explained.append(
                savings_text(plan_tasks.savings_of_leaders(outcome), "after this, if it changes no leader")
            )
        if isinstance(task, plan_tasks.Rebalance) and (alone := leaders_alone(outcome)) is not None:
            explained.append(str(alone))
        if options.current_out:
            keep_approved(options.current_out, outcome.current)
        if options.out:
            write_plan(options.out, outcome.plan, outcome.facts)
        if options.current_out:
            write_plan(options.current_out, outcome.current, outcome.facts.cluster_id)
    show_plan(
        outcome,
        options.out,
        explained,
        options.output_format,
        ShownPlan(options.is_wide, options.max_load_age_s, not isinstance(task, plan_tasks.WhatIf)),
    )


@examples(
    "kreassign plan import proposals.json --snapshot cluster.json.gz --out plan.json",
    "kreassign plan import maps/ --bootstrap-server localhost:9092 --out plan.json",
)
@click.command("import")
@click.argument("files", nargs=-1, required=True, type=InputPath(takes_directory=True), metavar="FILE|DIRECTORY...")
@factor_change_option
@planning_options
def import_plan(options: PlanOptions, files: tuple[Path, ...], allow_factor_change: bool) -> None:
    """Import a plan of Cruise Control, topicmappr or any tool that writes Kafka's JSON.

    Checks it against the cluster: every partition, broker and log directory must be there, and where the file says what
    it was made from, the same brokers must hold it still. Shows what it costs and brings, as of a plan of our own.
    """
    finish(options, plan_tasks.Import(read_assignments(files)), allow_factor_change=allow_factor_change)


Command = TypeVar("Command", bound=Callable[..., Any])

DEFAULT_TASK = "rebalance"


class TaskGroup(click.Group):
    """Commands by task; options without a task mean the default task."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert the default task if none is named."""
        if args and args[0].partition("=")[0] == f"--{CHECK}":  # other tools have it as an option
            args = [CHECK, *args[0].split("=", 1)[1:], *args[1:]]
        is_completed = ctx.resilient_parsing and not args  # a shell asks for completions, and must be offered the tasks
        if not is_completed and (not args or (args[0].startswith("-") and args[0] not in ctx.help_option_names)):
            args = [DEFAULT_TASK, *args]
        return super().parse_args(ctx, args)


@examples(
    "kreassign plan --bootstrap-server localhost:9092 --out plan.json",
    "kreassign plan --snapshot cluster.json.gz --out plan.json",
    "kreassign plan drain-brokers 3 --snapshot cluster.json.gz --out plan.json",
)
@click.group(cls=TaskGroup)
def plan() -> None:
    """Compute a plan for a task (default: rebalance).

    Reads the cluster as it is, and measures its write rates for some seconds; where `kreassign load` has made tables of
    its history (--data), loads are those of its last load. Copies as few bytes as it can, and reports the
    lower bound for any plan. Partitions that are being reassigned already stay.
    """


for command in (import_plan, check, new_topic, partitions, pareto, brokers_needed, fleet):
    plan.add_command(command)


def topic_options(command: Command) -> Command:
    """Add `--topic NAME` and `--topics REGEX`: parameters `topic` and `topics`."""
    by_name = click.option(
        "--topic", multiple=True, metavar="NAME", help="Only this topic; may be repeated.  [default: all]"
    )
    by_pattern = click.option(
        "--topics",
        type=REGEX,
        multiple=True,
        metavar="REGEX",
        help="Only topics that match; may be repeated.  [default: all]",
    )
    return by_name(by_pattern(command))


balance_option = click.option(
    "--and-balance", is_flag=True, help="Balance the brokers in the same plan.  [default: change only what must be]"
)
BROKERS = click.argument("brokers", callback=parse_brokers, metavar="IDS")


@examples(
    "kreassign plan rebalance --snapshot cluster.json.gz --out plan.json",
    "kreassign plan rebalance --by p95 --topics 'orders.*' --budget-bytes 100GB",
)
@plan.command()
@planning_options
@topic_options
def rebalance(options: PlanOptions, topic: tuple[str, ...], topics: tuple[str, ...]) -> None:
    """Balance the brokers, with all topics or with some."""
    finish(options, plan_tasks.Rebalance(TopicChoice(topic, topics)))


@examples("kreassign plan add-brokers 7,8 --snapshot cluster.json.gz --out plan.json")
@plan.command("add-brokers")
@BROKERS
@click.option("--mixed", is_flag=True, help="Balance the other brokers too.  [default: move only to the new ones]")
@planning_options
def add_brokers(options: PlanOptions, brokers: tuple[int, ...], mixed: bool) -> None:
    """Move replicas to brokers that joined the cluster."""
    finish(options, plan_tasks.AddBrokers(brokers, mixed))


@examples(
    "kreassign plan drain-brokers 3 --snapshot cluster.json.gz --out plan.json",
    "kreassign plan drain-brokers 3 --replace-with 7 --snapshot cluster.json.gz --out plan.json",
)
@plan.command("drain-brokers")
@BROKERS
@click.option("--replace-with", callback=parse_brokers, metavar="IDS",
              help="Give each broker's replicas to its successor, and change nothing else.  "
              "[default: spread them over the others]")  # fmt: skip
@balance_option
@planning_options
def drain_brokers(
    options: PlanOptions, brokers: tuple[int, ...], replace_with: tuple[int, ...], and_balance: bool
) -> None:
    """Move all replicas off brokers, live or dead, so that they can be removed."""
    if replace_with and and_balance:
        raise InputError("--replace-with changes nothing else; leave out --and-balance")
    if replace_with and len(replace_with) != len(brokers):
        left, come = counted(len(brokers), "broker"), counted(len(replace_with), "successor")
        raise InputError(f"--replace-with needs one successor for each broker: {left} and {come} are given")
    task = (
        plan_tasks.ReplaceBrokers(brokers, replace_with)
        if replace_with
        else plan_tasks.DrainBrokers(brokers, and_balance)
    )
    finish(options, task)


@examples("kreassign plan drain-dirs 3:/data/kafka-1 --snapshot cluster.json.gz --out plan.json")
@plan.command("drain-dirs")
@click.argument(
    "places", nargs=-1, required=True, type=ReadBy("log directory", plan_tasks.parse_log_dir), metavar="BROKER:PATH..."
)
@click.option("--between-brokers", is_flag=True, help="Allow replicas to leave their broker.")
@balance_option
@planning_options
def drain_dirs(
    options: PlanOptions, places: tuple[tuple[int, str], ...], between_brokers: bool, and_balance: bool
) -> None:
    """Move all replicas off log directories, so that a disk can be removed."""
    finish(options, plan_tasks.DrainLogDirs(places, between_brokers, and_balance))


@examples("kreassign plan replication-factor 3 --topic payments --snapshot cluster.json.gz --out plan.json")
@plan.command("replication-factor")
@click.argument("count", type=WholeRange(min=1, max=MOST_REPLICAS), metavar="N")
@topic_options
@balance_option
@factor_change_option
@planning_options
def replication_factor(
    options: PlanOptions,
    count: int,
    topic: tuple[str, ...],
    topics: tuple[str, ...],
    and_balance: bool,
    allow_factor_change: bool,
) -> None:
    """Change the replication factor to N.

    Below min.insync.replicas that takes --allow-factor-change; `kreassign run` asks for it whenever a factor falls.
    """
    task = plan_tasks.ChangeReplicationFactor(count, TopicChoice(topic, topics), and_balance)
    finish(options, task, allow_factor_change=allow_factor_change)


@examples("kreassign plan repair --snapshot cluster.json.gz --out plan.json")
@plan.command()
@click.option("--fix-racks/--no-fix-racks", default=True, show_default=True,
              help="Spread partitions that have too many replicas in one rack.")  # fmt: skip
@click.option("--fix-replication-factors/--no-fix-replication-factors", default=True, show_default=True,
              help="Add replicas up to the usual replication factor of the topic.")  # fmt: skip
@balance_option
@planning_options
def repair(options: PlanOptions, fix_racks: bool, fix_replication_factors: bool, and_balance: bool) -> None:
    """Replace replicas on dead brokers, add missing replicas, and spread them over racks."""
    finish(options, plan_tasks.Repair(fix_racks, fix_replication_factors, and_balance))


@examples("kreassign plan leaders --snapshot cluster.json.gz --out plan.json")
@plan.command()
@click.option("--savings", is_flag=True, help="Also plan a rebalance without and with it, and say how many bytes it "
              "saves.  [default: takes no time for that]")  # fmt: skip
@planning_options
def leaders(options: PlanOptions, savings: bool) -> None:
    """Balance leadership by reordering replica lists; copy nothing."""
    finish(options, plan_tasks.BalanceLeaders(), savings=savings)


@examples("kreassign plan demote 3 --snapshot cluster.json.gz --out plan.json")
@plan.command()
@BROKERS
@planning_options
def demote(options: PlanOptions, brokers: tuple[int, ...]) -> None:
    """Move leadership off brokers; copy nothing."""
    finish(options, plan_tasks.DemoteBrokers(brokers))


@examples("kreassign plan disks --snapshot cluster.json.gz --out plan.json")
@plan.command()
@click.option("--between-brokers", is_flag=True, help="Balance the brokers in the same plan.")
@planning_options
def disks(options: PlanOptions, between_brokers: bool) -> None:
    """Balance the log directories of each broker."""
    finish(options, plan_tasks.BalanceLogDirs(between_brokers))


@examples(
    "kreassign plan restore current.json --snapshot cluster.json.gz --out plan.json",
    "kreassign plan restore --run 20270131T220000Z-1a2b3c4d --snapshot cluster.json.gz --out plan.json",
)
@plan.command()
@click.argument("file", type=INPUT_FILE, required=False)
@click.option("--run", metavar="RUN_ID|JOURNAL", help="Restore the state before this run.  "
              "[default: restore what FILE says]")  # fmt: skip
@state_dir_option
@factor_change_option
@planning_options
def restore(
    options: PlanOptions, file: Path | None, run: str | None, state_dir: Path, allow_factor_change: bool
) -> None:
    """Restore the assignment in FILE (Kafka's JSON or Cruise Control's proposals), or that before a run."""
    if (file is None) == (run is None):
        raise InputError("specify either FILE or --run RUN_ID")
    if file is not None:
        wanted = read_plan_file(file, takes_two=False)
        task = plan_tasks.Restore(wanted.plan, str(file), wanted.origin)
    else:
        cluster = ClusterOptions(options.bootstrap_server, options.command_config)
        task = plan_tasks.before_run(status(meant_journal(state_dir, run, cluster)))
    finish(options, task, allow_factor_change=allow_factor_change)


@examples(
    "kreassign plan what-if --remove-brokers 3 --snapshot cluster.json.gz",
    "kreassign plan what-if --add-brokers 2 --traffic 1.5 --data ./data --as-of last",
)
@plan.command("what-if")
@circumstance_options
@planning_options
def what_if(options: PlanOptions, what_if: plan_tasks.WhatIf) -> None:
    """Plan under other circumstances. The plan answers a question; brokers in it may not exist."""
    finish(options, what_if)
