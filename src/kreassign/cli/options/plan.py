"""Options of every planning task, as one value: `options: PlanOptions`.

Hypothetical changes are a second value: `what_if: WhatIf`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from functools import reduce
from pathlib import Path
from typing import TypeVar

import click

from kreassign.admin import AdminClient
from kreassign.cli.options import values
from kreassign.cli.options.cluster import ClusterOptions, bootstrap_option, config_option, measure_for_option
from kreassign.cli.output import format_option, markdown_format_option, warn
from kreassign.cli.profiles import was_typed
from kreassign.errors import DataError, InputError
from kreassign.model import TopicPartition
from kreassign.model.cluster import first_twice
from kreassign.model.load import AsOf, SparkOptions, spark_log
from kreassign.model.plan_facts import RackPrices, joined_prices, parse_price, refuse_other_cluster
from kreassign.model.text import MOST_REPLICAS, parse_whole, shortened
from kreassign.operations.plan import LOCAL, PlanRequest, SearchPlace
from kreassign.operations.plan_files import shared_file
from kreassign.operations.plan_inputs import Inputs, inputs_of_cluster, inputs_of_columns
from kreassign.operations.plan_tasks import WhatIf
from kreassign.operations.snapshot_files import read_snapshot_columns
from kreassign.operations.text_files import naming, read_filled_text
from kreassign.planner import Budget, RackRule
from kreassign.planner.problem.goals_file import PERCENT, parse_goals, parse_policy
from kreassign.planner.problem.policy import Coordinated, PlanPolicy, parse_names, parse_share_groups
from kreassign.planner.problem.problem import DEFAULT_TOLERANCE

OF_SEARCH = ("--on", "--parts", "--seed", "--master", "--conf")
OF_COPIES = ("--budget-bytes", "--budget-moves", "--max-leader-changes", "--fit-in", "--rate")
OF_ONE_PLAN = ("--out", "--current-out", "--explain")
OF_PLACEMENT = ("--snapshot", "--bootstrap-server", "--command-config", "--cluster", "--measure-for")
OF_TABLES = ("--data", "--as-of", "--by")

IGNORED: Mapping[str, tuple[tuple[str, ...], str]] = {
    "new-topic": (
        (*OF_COPIES, *OF_SEARCH, "--explain", "--current-out", "--rack-price"),
        "has no meaning for partitions that are not there yet",
    ),
    "pareto": ((*OF_ONE_PLAN, *OF_SEARCH), "has no meaning for several plans, searched here; --out-dir writes them"),
    "brokers-needed": ((*OF_ONE_PLAN, *OF_COPIES, *OF_SEARCH), "has no meaning for a number of brokers"),
    "fleet": ((*OF_ONE_PLAN, *OF_PLACEMENT), "has no meaning for the plans of many clusters; --out-dir writes them"),
    "fleet of snapshots": (OF_TABLES, "has no meaning for snapshot files, which have loads of their own"),
}
"""Options of every planning task that a command does not use, and why."""


def refuse_typed(options: Iterable[str], why: str) -> None:
    """Raise InputError, which names it, for one of these options on the command line."""
    for option in options:
        if was_typed(option):
            raise InputError(f"{option} {why}; leave it out")


def refuse_ignored(command: str) -> None:
    """Raise InputError for an option on the command line that this one of `IGNORED` does not use."""
    refuse_typed(*IGNORED[command])


PARTS_ON_SPARK = 4
MOST_PARTS = 10_000
Content = TypeVar("Content")


def accept(_: Inputs) -> None:
    """Judge of commands that name nothing of the cluster."""


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """Options of every plan; None or empty if not given."""

    bootstrap_server: str | None
    command_config: Path | None
    measure_for: float
    max_load_age_s: float | None
    is_wide: bool
    data: Path | str | None
    snapshot: Path | None
    cluster: str | None
    as_of: AsOf | None
    by: str
    require_load: bool
    out: Path | None
    current_out: Path | None
    goals_file: Path | None
    goals: tuple[str, ...]
    tolerance: float | None
    racks: str | None
    exclude_topics: tuple[str, ...]
    exclude_brokers: tuple[int, ...]
    rack_price: tuple[RackPrices, ...]
    groups: Path | None
    transactional_ids: Path | None
    share_groups: Path | None
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
    conf: tuple[tuple[str, str], ...]
    output_format: str

    @property
    def request(self) -> PlanRequest:
        """Budget, search, and demands on loads. Raises InputError for `--fit-in` without `--rate`."""
        if self.fit_in_s is not None and self.rate is None:
            raise InputError("--fit-in needs --rate: what each broker may send and receive, as with `run --throttle`")
        on_spark = self.on == "spark"
        parts = self.parts or (PARTS_ON_SPARK if on_spark else 1)
        search = SearchPlace(
            on_spark, parts, self.seed, SparkOptions(self.master, dict(self.conf)), spark_log(self.data)
        )
        budget = Budget(self.budget_bytes, self.budget_moves, self.max_leader_changes)
        return PlanRequest(budget, self.fit_in_s, self.rate, search, self.require_load, self.max_load_age_s)

    def inputs(self, judge: Callable[[Inputs], object] = accept) -> Inputs:
        """The state to plan from: placement of the cluster as it is, loads of the tables if they have its own.

        Before loads are measured, `judge` gets the placement, to refuse what names no part of it.

        Another placement is used only if asked for: that of a snapshot file, or with `--as-of` that of a load in the
        tables. Raises DataError, InputError, ClusterError.
        """
        self._check_sources()
        if self.snapshot is not None:
            return self._snapshot_inputs(self.snapshot)
        if self.as_of is not None:
            from kreassign.operations.table_inputs import inputs_of_tables

            return inputs_of_tables(self._tables, self.cluster, self.policy(), self.by, as_of=self.as_of)
        if self.bootstrap_server is None:
            raise click.UsageError(
                "a plan starts from the cluster as it is, and DIR has loads only: specify --bootstrap-server, or plan "
                "from an earlier placement, with --as-of last (that of the last load) or --snapshot FILE"
                if self.data is not None
                else "specify --bootstrap-server for the cluster as it is, or --snapshot FILE for an earlier placement"
            )
        return self._present_inputs(ClusterOptions(self.bootstrap_server, self.command_config), judge)

    def _check_sources(self) -> None:
        """Raise UsageError for options that exclude each other."""
        both = shared_file(self.out, self.current_out) if self.out and self.current_out else None
        if both is not None:
            raise click.UsageError(f"--out and --current-out both write {both}; give them different names")
        places = [name for name in ("--snapshot", "--as-of", "--bootstrap-server") if was_typed(name)]
        if len(places) > 1:
            raise click.UsageError(f"a plan is made from one of {' and '.join(places)}; leave out the other")
        rates = [name for name in ("--data", "--measure-for") if was_typed(name)]
        if len(rates) > 1:
            raise click.UsageError("the loads are those of --data or measured (--measure-for); leave out the other")
        if self.snapshot is not None or self.as_of is not None:
            refuse_typed(("--measure-for",), "measures the cluster as it is, and the loads here are of an earlier time")
        if self.on != "spark":
            refuse_typed(("--master", "--conf"), "is for --on spark")
            if self.parts in {None, 1}:
                refuse_typed(("--seed",), "is for subproblems (--parts)")

    @property
    def _tables(self) -> Path | str:
        if self.data is None:
            raise click.UsageError("--as-of and --by choose among the loads of tables; specify --data DIR")
        return self.data

    def _snapshot_inputs(self, snapshot: Path) -> Inputs:
        """The placement of a snapshot file, with its own loads, or those of `--data`."""
        columns = read_snapshot_columns(snapshot)
        refuse_other_cluster(f"{snapshot.name} is of", columns.head.cluster_id, self.cluster or "")
        if not was_typed("--data"):
            refuse_typed(("--by",), "chooses among the loads of tables (--data DIR), and a snapshot has one of its own")
            return inputs_of_columns(columns, self.policy(), snapshot.name)
        from kreassign.operations.table_inputs import inputs_of_placement

        return inputs_of_placement(columns, snapshot.name, self._tables, self.policy(), self.by)

    def _present_inputs(self, cluster: ClusterOptions, judge: Callable[[Inputs], object]) -> Inputs:
        """The placement that the cluster has now, with loads of the tables, or measured where they have none of it."""
        policy = self.policy()
        with cluster.connect() as client:
            refuse_other_cluster("--cluster names", self.cluster, client.describe_cluster().cluster_id)
            if self.by == "mean" and (self.data is None or was_typed("--measure-for")):
                return self._measured_inputs(client, policy, judge)
            from kreassign.operations.table_inputs import inputs_of_present

            try:
                return inputs_of_present(client, self._tables, policy, self.by, warn=warn)
            except DataError as error:
                if self.by != "mean" or was_typed("--data"):
                    raise
                click.echo(f"{error}; so loads are measured", err=True)
            return self._measured_inputs(client, policy, judge)

    def _measured_inputs(self, client: AdminClient, policy: PlanPolicy, judge: Callable[[Inputs], object]) -> Inputs:
        click.echo(f"reading the cluster, and measuring write rates for {self.measure_for:g} s", err=True)
        return inputs_of_cluster(client, policy, measure_for_s=self.measure_for, warn=warn, judge=judge)

    def policy(self) -> PlanPolicy:
        """The goals file, overridden by options. Raises InputError, which names the file."""
        tolerance = None if self.tolerance is None else self.tolerance / PERCENT
        found = read_policy(self.goals_file, tolerance)
        if self.goals:
            named = parse_goals(self.goals, DEFAULT_TOLERANCE if tolerance is None else tolerance)
            found = replace(found, **named._asdict())
        if self.racks is not None:
            found = replace(found, racks=RackRule[self.racks.upper()])
        return replace(
            found,
            excluded_topics=found.excluded_topics + self.exclude_topics,
            excluded_brokers=found.excluded_brokers + self.exclude_brokers,
            coordinated=Coordinated(
                _parsed(self.groups, parse_names) if self.groups else (),
                _parsed(self.transactional_ids, parse_names) if self.transactional_ids else (),
                _parsed(self.share_groups, parse_share_groups) if self.share_groups else (),
            ),
            rack_prices=reduce(joined_prices, self.rack_price, found.rack_prices),
        )


def read_policy(goals_file: Path | None, tolerance: float | None = None) -> PlanPolicy:
    """The policy of a goals file, the default without one. Raises InputError, which names the file.

    `tolerance` is for goals that state none themselves.
    """
    if goals_file is None:
        return parse_policy("", tolerance)
    return replace(_parsed(goals_file, lambda text: parse_policy(text, tolerance)), source=str(goals_file))


def _parsed(path: Path, parse: Callable[[str], Content]) -> Content:
    """Parse a file. Raises InputError, which names it."""
    with naming(path):
        return parse(read_filled_text(path))


def parse_brokers(_: click.Context, __: click.Parameter, text: str | None) -> tuple[int, ...]:
    """Broker ids, as in `7,8`, each once. For `click.option(callback=…)`."""
    try:
        found = tuple(parse_whole(part.strip()) for part in text.split(",")) if text else ()
    except ValueError:
        said = f"{shortened(str(text))!r} is not a list of broker ids; write for example 7,8"
        raise click.BadParameter(said) from None
    if (twice := first_twice(found)) is not None:
        raise click.BadParameter(f"broker {twice} is given twice; name each broker once")
    return found


goals_file_option = click.option(
    "--goals-file",
    type=values.INPUT_FILE,
    help="Goals, limits and tenants in TOML.  [default: all goals, no other limits]",
)
"""Add `--goals-file`: parameter `goals_file`, for `read_policy`."""

_OPTIONS: tuple[values.Decorator, ...] = (
    bootstrap_option("  [default: none; --snapshot and --as-of need no cluster]"),
    config_option,
    measure_for_option("How long to measure write rates: without tables, or if given; 0 to skip."),
    click.option("--max-load-age", "max_load_age_s", type=values.parse_age, default="24h", show_default=True,
                 metavar="TIME", help="Call loads stale that were last measured longer ago; `none` for no limit."),
    click.option("--wide", "is_wide", is_flag=True, help="Show every goal of every broker, beyond 80 columns."),
    values.data_or_load_option,
    click.option("--as-of", type=values.parse_as_of, metavar="TIME|NUMBER|last",
                 help="Plan for the placement, and by the loads, that the tables in DIR had then: of the last load "
                 "that began by this time, as in 2027-01-31T06:00 (UTC unless it says otherwise), that of this "
                 "number, or the `last`.  [default: for the cluster as it is, by the last load]"),
    click.option("--by", type=click.Choice(["mean", "p95", "p99", "peak", "forecast", "forecast-high"]),
                 default="mean", show_default=True,
                 help="Load to plan for: mean, a percentile, the peak hour, the forecast, or its upper end."),
    click.option("--require-load", is_flag=True,
                 help="Refuse to plan with doubtful, unknown or stale loads.  [default: name them; priors stand in]"),
    click.option("--snapshot", type=values.INPUT_FILE,
                 help="Plan for the placement in a snapshot file (from `kreassign snapshot --out`), instead of the "
                 "cluster as it is.  [default: none]"),
    click.option("--cluster", metavar="ID",
                 help="Cluster to plan for.  [default: the one in force; with --as-of the only one in the tables]"),
    click.option("--out", type=values.OUTPUT_FILE,
                 help="Write the plan to FILE in Kafka's JSON, and the facts beside it.  [default: print the plan]"),
    click.option("--current-out", type=values.OUTPUT_FILE,
                 help="Write the current replicas of the same partitions to FILE, to go back to.  "
                 "[default: not written]"),
    goals_file_option,
    click.option("--goal", "goals", multiple=True,
                 type=values.ReadBy("goal", values.checked(lambda text: parse_goals((text,), 0.1))),
                 metavar="NAME[=PERCENT[xWEIGHT]]",
                 help="Goal to pursue, most important first; may be repeated.  [default: all]"),
    click.option("--tolerance", type=values.FiniteRange(0, 100, max_open=True), metavar="PERCENT",
                 help="How far brokers may be from their share, for goals that state no tolerance themselves.  "
                 "[default: 10]"),
    click.option("--racks", type=click.Choice(["strict", "even", "none"]),
                 help="How to spread replicas over racks.  [default: even]"),
    click.option("--exclude-topics", type=values.REGEX, multiple=True, metavar="REGEX",
                 help="Topics to exclude; may be repeated.  [default: none]"),
    click.option("--exclude-brokers", callback=parse_brokers, metavar="IDS", help="Brokers that must not receive "
                 "replicas.  [default: none]"),
    click.option("--rack-price", type=values.ReadBy("price", parse_price), multiple=True, metavar="[FROM:TO=]PRICE",
                 help="Price of a GB that is copied between racks, or from one to another; may be repeated.  "
                 "[default: none]"),
    click.option("--groups", type=values.INPUT_FILE,
                 help="Group ids, one a line, for the goal coordinators.  [default: none]"),
    click.option("--transactional-ids", type=values.INPUT_FILE,
                 help="Transactional ids likewise.  [default: none]"),
    click.option("--share-groups", type=values.INPUT_FILE,
                 help="Share groups likewise, each with a topic that it reads, as GROUP:TOPIC.  [default: none]"),
    click.option("--budget-bytes", type=values.parse_quantity, metavar="BYTES",
                 help="Maximum number of bytes to copy.  [default: no limit]"),
    click.option("--budget-moves", type=values.WholeRange(min=0), help="Maximum number of replicas to "
                 "copy.  [default: no limit]"),
    click.option("--max-leader-changes", type=values.WholeRange(min=0),
                 help="Maximum number of leaders to change.  [default: no limit]"),
    click.option("--fit-in", "fit_in_s", type=values.parse_duration, metavar="TIME",
                 help="Plan only what completes in this time at --rate, for example 4h.  [default: no limit]"),
    click.option("--rate", type=values.parse_speed, metavar="RATE",
                 help="Predict the time with this limit per broker and direction, as for `run --throttle`.  "
                 "[default: no prediction]"),
    click.option("--explain", type=values.ReadBy("partition", values.checked(TopicPartition.parse)), multiple=True,
                 metavar="TOPIC-PARTITION",
                 help="Explain why this partition moves or stays; may be repeated.  [default: none]"),
    click.option("--on", type=click.Choice(["local", "spark"]), default="local", show_default=True,
                 help="Search in this process, or on the executors of Spark."),
    click.option("--parts", type=values.WholeRange(min=1, max=MOST_PARTS), metavar="K",
                 help="Number of subproblems.  [default: 1; on Spark 4]"),
    click.option("--seed", type=values.WholeRange(min=0), default=LOCAL.seed, show_default=True,
                 help="Random seed of the subproblems."),
    values.master_option,
)  # fmt: skip

planning_options = values.option_group("options", (*_OPTIONS, markdown_format_option), PlanOptions)
"""Add the options of all planning tasks."""

comparing_options = values.option_group("options", (*_OPTIONS, format_option), PlanOptions)
"""Add the same for commands that make no single plan for the present cluster."""


# Options for hypothetical changes: `what_if: WhatIf`.

MOST_ADDED = 10_000
MOST_TIMES = 1_000_000

_GROWTH: tuple[values.Decorator, ...] = (
    click.option(
        "--traffic",
        type=values.FiniteRange(0, MOST_TIMES),
        default=1.0,
        show_default=True,
        metavar="K",
        help="Multiply all rates by K.",
    ),
    click.option(
        "--growth",
        type=values.FiniteRange(-PERCENT, MOST_TIMES, min_open=True),
        default=0.0,
        show_default=True,
        metavar="PERCENT",
        help="Growth of rates and sizes in 30 days, until --at.",
    ),
    click.option(
        "--at",
        type=values.parse_date,
        metavar="DATE",
        help="Project growth to this date.  [default: none; --growth needs it]",
    ),
)
_CLUSTER: tuple[values.Decorator, ...] = (
    click.option(
        "--add-brokers",
        "added",
        type=values.WholeRange(min=0, max=MOST_ADDED),
        default=0,
        show_default=True,
        help="Number of brokers to add.",
    ),
    click.option(
        "--remove-brokers",
        "removed",
        callback=parse_brokers,
        metavar="IDS",
        help="Brokers to remove.  [default: none]",
    ),
    click.option(
        "--replication-factor",
        type=values.WholeRange(min=1, max=MOST_REPLICAS),
        help="Change the replication factor.  [default: as it is]",
    ),
)


def read_circumstances(
    *,
    traffic: float,
    growth: float,
    at: date | None,
    added: int = 0,
    removed: tuple[int, ...] = (),
    replication_factor: int | None = None,
) -> WhatIf:
    """Build WhatIf."""
    if growth and at is None:
        raise InputError("--growth needs --at: the date to project growth to")
    return WhatIf(added, removed, replication_factor, traffic, growth / PERCENT, at)


growth_options = values.option_group("what_if", _GROWTH, read_circumstances)
"""Add `--traffic`, `--growth` and `--at`."""

circumstance_options = values.option_group("what_if", (*_CLUSTER, *_GROWTH), read_circumstances)
"""Add these, brokers to add and to remove, and the replication factor."""
