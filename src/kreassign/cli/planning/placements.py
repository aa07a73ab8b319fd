"""The planning commands that place what does not exist yet: new-topic and partitions."""

from __future__ import annotations

import json
from typing import Any

import click
from rich.console import Console

from kreassign.cli.next_command import CLUSTER, next_command, print_next
from kreassign.cli.options.plan import PlanOptions, comparing_options
from kreassign.cli.options.values import WholeRange, parse_quantity
from kreassign.cli.output import console, examples, print_json
from kreassign.cli.planning.broker_tables import evaluated_tables
from kreassign.cli.planning.loads import print_loads
from kreassign.cli.planning.show import goals_table, spread_of
from kreassign.cli.typed import typed_words
from kreassign.cli.working import working
from kreassign.errors import InputError
from kreassign.model.load_basis import LoadBasis
from kreassign.model.plan_facts_json import load_fields
from kreassign.model.plan_json import format_plan
from kreassign.model.whole_number import MOST_REPLICAS
from kreassign.operations.new_partitions import ExpectedRates, Placement, Savings, place_partitions, place_topic
from kreassign.operations.plan_files import write_plan
from kreassign.report.text import format_bytes, format_rate

MOST_PARTITIONS = 100_000
SHOWN_MISSES = 10


@click.command(
    "new-topic",
    epilog=examples(
        "kreassign plan new-topic clicks --partitions 12 --replication-factor 3 --like orders --data ./data",
        "kreassign plan new-topic clicks --partitions 12 --replication-factor 3 --size 20GB --write-rate 1MB/s "
        "--snapshot cluster.json.gz",
    ),
)
@click.argument("name")
@click.option("--partitions", type=WholeRange(min=1, max=MOST_PARTITIONS), required=True, metavar="N",
              help="Number of partitions.")  # fmt: skip
@click.option("--replication-factor", type=WholeRange(min=1, max=MOST_REPLICAS), required=True, metavar="N",
              help="Number of replicas of each.")  # fmt: skip
@click.option("--like", metavar="TOPIC", help="Expect the load that this topic has per partition.  [default: none]")
@click.option("--size", type=parse_quantity, metavar="BYTES", help="Expect a partition to hold so much.  [default: 0]")
@click.option("--write-rate", type=parse_quantity, metavar="RATE", help="Expect so much to be written to a partition.  "
              "[default: 0]")  # fmt: skip
@click.option("--read-rate", type=parse_quantity, metavar="RATE", help="Expect consumers to read so much of each.  "
              "[default: 0]")  # fmt: skip
@comparing_options
def new_topic(
    options: PlanOptions,
    name: str,
    partitions: int,
    replication_factor: int,
    like: str | None,
    size: int | None,
    write_rate: int | None,
    read_rate: int | None,
) -> None:
    """Place the partitions of a new topic so that brokers level without a copy."""
    rates = (size, write_rate, read_rate)
    if like is not None and rates != (None, None, None):
        raise click.UsageError("--like says what to expect; leave out --size, --write-rate and --read-rate")
    expected = like if like is not None else ExpectedRates(size or 0, float(write_rate or 0), float(read_rate or 0))
    inputs = options.inputs()
    _refuse_ignored(options)
    options.request.check_loads(inputs)
    with working(f"searching places for {partitions} partitions, and what a rebalance saves by them"):
        found = place_topic(inputs, options.policy(), name, partitions, replication_factor, expected)
    _show(found, options, inputs.loads)


@click.command(
    epilog=examples(
        "kreassign plan partitions orders 24 --snapshot cluster.json.gz",
    )
)
@click.argument("topic")
@click.argument("total", type=WholeRange(min=1, max=MOST_PARTITIONS), metavar="N")
@comparing_options
def partitions(options: PlanOptions, topic: str, total: int) -> None:
    """Place more partitions of a topic, N in all, so that brokers level without a copy."""
    inputs = options.inputs()
    _refuse_ignored(options)
    options.request.check_loads(inputs)
    with working(f"searching places for partitions of {topic}, and what a rebalance saves by them"):
        found = place_partitions(inputs, topic, total)
    _show(found, options, inputs.loads)


def said(savings: Savings, what: str) -> str:
    """What a later rebalance saves, as a sentence."""
    if savings.saved is None:
        return "what a rebalance would copy is not known: there is no plan that keeps the rules"
    less = f"{format_bytes(abs(savings.saved))} {'less' if savings.saved >= 0 else 'more'}"
    return f"a rebalance copies {format_bytes(savings.before)} now, {format_bytes(savings.after)} {what}: {less}"


def _refuse_ignored(options: PlanOptions) -> None:
    """Nothing is copied and nothing that is there changes, so that these would have no meaning."""
    given = {
        "--budget-bytes": options.budget_bytes, "--budget-moves": options.budget_moves,
        "--max-leader-changes": options.max_leader_changes, "--fit-in": options.fit_in_s, "--rate": options.rate,
        "--explain": options.explain or None, "--current-out": options.current_out, "--parts": options.parts,
        "--rack-price": options.rack_price or None,
        "--on": "spark" if options.on == "spark" else None,
    }  # fmt: skip
    for name, value in given.items():
        if value is not None:
            raise InputError(f"{name} has no meaning for partitions that are not there yet; leave it out")


def _show(found: Placement, options: PlanOptions, loads: LoadBasis) -> None:
    if options.out:
        write_plan(options.out, found.plan)
    if options.output_format == "json":
        print_json(_document(found, loads))
        return
    if not options.out:
        click.echo(format_plan(found.plan))
    terminal = console(stderr=options.out is None)
    _summary(terminal, found, loads, options.max_load_age_s, is_wide=options.is_wide)
    # Whole, whatever the width of the terminal: it is there to be copied.
    click.echo(f"create with: {found.command}", err=options.out is None)
    if options.out:
        terminal.print(f"where they go written to {options.out}, for a topic that was created otherwise and is empty")
        print_next(next_command("verify", options.out, takes=CLUSTER))
    else:
        print_next(next_command(*typed_words(), "--out", "placement.json"))


def _summary(terminal: Console, found: Placement, loads: LoadBasis, max_age_s: float | None, *, is_wide: bool) -> None:
    count, replicas = len(found.lists), sum(map(len, found.lists))
    kind = "more partitions of" if found.first else "new topic"
    terminal.print(f"{kind} {found.topic}: {count} partitions, {replicas} replicas; nothing that is there moves")
    expected = f"{format_bytes(found.load.size_bytes)}, {format_rate(found.load.write_bytes_per_s)} written"
    known = found.load.size_bytes or found.load.write_bytes_per_s
    terminal.print(f"expected of each: {expected}" if known else "nothing is expected of them: only counts decide")
    print_loads(terminal, loads, max_age_s)
    terminal.print(said(found.savings, "with them"))
    if found.evaluation.goals:
        terminal.print(goals_table(found.evaluation))
    for part in evaluated_tables(found.evaluation, is_wide=is_wide):
        terminal.print(part)
    misses = found.evaluation.misses()
    for miss in misses[:SHOWN_MISSES]:
        terminal.print(f"remains: {miss}")
    if len(misses) > SHOWN_MISSES:
        terminal.print(f"remains: {len(misses) - SHOWN_MISSES} more")


def _document(found: Placement, loads: LoadBasis) -> dict[str, Any]:
    load, savings = found.load, found.savings
    return {
        "topic": found.topic,
        "first": found.first,
        "expected": {"size_bytes": load.size_bytes, "write_bytes_per_s": load.write_bytes_per_s,
                     "read_bytes_per_s": load.read_bytes_per_s},
        "rebalance_bytes": {"before": savings.before, "after": savings.after, "saved": savings.saved},
        "goals": [
            {"name": name, "before": spread_of(found.evaluation, index, before=True),
             "after": spread_of(found.evaluation, index, before=False)}
            for index, name in enumerate(found.evaluation.goals)
        ],
        "remaining": [str(miss) for miss in found.evaluation.misses()],
        "command": found.command,
        "loads": load_fields(loads),
        "plan": json.loads(format_plan(found.plan)),
    }  # fmt: skip
