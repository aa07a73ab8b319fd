"""The options that every planning task takes, as one value."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from kreassign.cli.options.data_dir import data_or_load_option
from kreassign.cli.output import format_option, parse_duration, parse_quantity
from kreassign.errors import InputError
from kreassign.operations.plan_inputs import Inputs, inputs_of_snapshot, inputs_of_tables
from kreassign.operations.plan_search import Solving
from kreassign.planner import Budget, Problem, RackRule
from kreassign.planner.problem.goals_file import PERCENT, parse_goals, parse_wishes
from kreassign.planner.problem.policy import Wishes, with_tolerance
from kreassign.planner.search.pop import DEFAULT_SEED
from kreassign.planner.tasks import fit_in

Command = TypeVar("Command", bound=Callable[..., Any])

PARTS_ON_SPARK = 4


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """What is asked of a plan, whatever the task; None and empty where the option was not given."""

    data: Path | None
    snapshot: Path | None
    cluster: str | None
    by: str
    out: Path | None
    current_out: Path | None
    goals_file: Path | None
    goals: tuple[str, ...]
    tolerance: float | None
    racks: str | None
    exclude_topics: tuple[str, ...]
    exclude_brokers: tuple[int, ...]
    budget_bytes: int | None
    budget_moves: int | None
    max_leader_changes: int | None
    fit_in_s: float | None
    rate: int | None
    explain: tuple[str, ...]
    on: str
    parts: int | None
    seed: int
    master: str | None
    output_format: str

    @property
    def solving(self) -> Solving:
        """Where and how plans are searched."""
        on_spark = self.on == "spark"
        parts = self.parts or (PARTS_ON_SPARK if on_spark else 1)
        return Solving(on_spark, parts, self.seed, self.master, (self.data or Path()) / "spark.log")

    def inputs(self) -> Inputs:
        """The state to plan from. Raises DataError or InputError."""
        if self.snapshot is not None:
            return inputs_of_snapshot(self.snapshot, self.wishes())
        if self.data is None:
            raise click.UsageError("say what to plan for: --data DIR or --snapshot FILE")
        return inputs_of_tables(self.data, self.cluster, self.wishes(), self.by)

    def wishes(self) -> Wishes:
        """The goals file, with what the flags say in its place. Raises InputError, which names the file."""
        found = self._file()
        if self.tolerance is not None:
            found = replace(found, bands=with_tolerance(found.bands, self.tolerance / PERCENT))
        if self.goals:
            width = 0.1 if self.tolerance is None else self.tolerance / PERCENT
            bands, spread = parse_goals(self.goals, width)
            found = replace(found, bands=bands, topic_spread=spread)
        if self.racks is not None:
            found = replace(found, racks=RackRule[self.racks.upper()])
        return replace(
            found,
            excluded_topics=found.excluded_topics + self.exclude_topics,
            excluded_brokers=found.excluded_brokers + self.exclude_brokers,
        )

    def budgeted(self, problem: Problem) -> Problem:
        """The problem with the budget of the flags. Raises InputError for a time without a rate."""
        budget = Budget(self.budget_bytes, self.budget_moves, self.max_leader_changes)
        problem = replace(problem, budget=budget)
        if self.fit_in_s is None:
            return problem
        if self.rate is None:
            raise InputError("--fit-in needs --rate: what each broker may send and receive, as with `run --throttle`")
        return fit_in(problem, self.fit_in_s, self.rate)

    def _file(self) -> Wishes:
        if self.goals_file is None:
            return Wishes()
        try:
            return parse_wishes(self.goals_file.read_text(encoding="utf-8"))
        except (InputError, UnicodeDecodeError) as error:
            raise InputError(f"{self.goals_file}: {error}") from error


def parse_brokers(_: click.Context, __: click.Parameter, text: str | None) -> tuple[int, ...]:
    """Broker ids, as in `7,8`. For `click.option(callback=…)`."""
    parts = [part.strip() for part in text.split(",")] if text else []
    if not all(part.isdigit() for part in parts):
        raise click.BadParameter(f"{text!r} is not a list of broker ids; write for example 7,8")
    return tuple(map(int, parts))


def planning_options(command: Command) -> Command:
    """Add the options of all tasks; the command gets them as its first argument, a `PlanOptions`."""

    @functools.wraps(command)
    def with_options(**given: Any) -> Any:
        return command(PlanOptions(**{one.name: given.pop(one.name) for one in fields(PlanOptions)}), **given)

    for option in reversed(_OPTIONS):
        with_options = option(with_options)
    return cast("Command", with_options)  # click keeps the parameters in the attributes of the function


_FILE = click.Path(dir_okay=False, path_type=Path)
_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    data_or_load_option,
    click.option("--by", type=click.Choice(["mean", "p95", "p99", "peak", "forecast"]), default="mean",
                 help="Which load of the tables: a percentile, the peak hour, or what is to come.  [default: mean]"),
    click.option("--snapshot", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE",
                 help="Plan for this snapshot file (`kreassign snapshot --out`), instead of the tables in DIR."),
    click.option("--cluster", metavar="ID", help="Which cluster, if the tables hold several."),
    click.option("--out", type=_FILE, metavar="FILE",
                 help="Where to write the plan, in Kafka's JSON, and the facts beside it.  [default: print the plan]"),
    click.option("--current-out", type=_FILE, metavar="FILE",
                 help="Where to write the present replicas of the same partitions, to go back to."),
    click.option("--goals-file", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE",
                 help="Goals, limits and tenants in TOML."),
    click.option("--goal", "goals", multiple=True, metavar="NAME[=PERCENT[xWEIGHT]]",
                 help="A goal to pursue, first the most important; may be repeated.  [default: all]"),
    click.option("--tolerance", type=click.FloatRange(0, 100, max_open=True), metavar="PERCENT",
                 help="How far brokers may be from their share.  [default: 10]"),
    click.option("--racks", type=click.Choice(["strict", "even", "none"]),
                 help="How replicas are spread over racks.  [default: even]"),
    click.option("--exclude-topics", multiple=True, metavar="REGEX", help="Topics that stay; may be repeated."),
    click.option("--exclude-brokers", callback=parse_brokers, metavar="IDS", help="Brokers that receive nothing."),
    click.option("--budget-bytes", type=parse_quantity, metavar="BYTES", help="The most to copy."),
    click.option("--budget-moves", type=click.IntRange(min=0), metavar="N", help="The most replicas to copy."),
    click.option("--max-leader-changes", type=click.IntRange(min=0), metavar="N", help="The most leaders to change."),
    click.option("--fit-in", "fit_in_s", type=parse_duration, metavar="TIME",
                 help="Only what is done in this time at --rate, for example 4h."),
    click.option("--rate", type=parse_quantity, metavar="RATE",
                 help="What each broker may send and receive, to predict the time; as for `run --throttle`."),
    click.option("--explain", multiple=True, metavar="TOPIC-PARTITION",
                 help="Say why this partition moves or stays; may be repeated."),
    click.option("--on", type=click.Choice(["here", "spark"]), default="here",
                 help="Where to search: in this process, or on the executors of Spark.  [default: here]"),
    click.option("--parts", type=click.IntRange(min=1), metavar="K",
                 help="Cut the problem into so many, solve each, repair the whole.  [default: 1; on Spark 4]"),
    click.option("--seed", type=int, default=DEFAULT_SEED, metavar="N", help="Decides how it is cut.  [default: 1]"),
    click.option("--master", metavar="URL", help="Spark master; local[*] by default, or what spark-submit decides."),
    format_option,
)  # fmt: skip
