"""What may be different from now, as options: `what_if: WhatIf`."""

from __future__ import annotations

from datetime import datetime

import click

from kreassign.cli.options.group import Decorator, option_group
from kreassign.cli.options.plan import parse_brokers
from kreassign.cli.options.values import FiniteRange, WholeRange
from kreassign.errors import InputError
from kreassign.model.whole_number import MOST_REPLICAS
from kreassign.operations.plan_tasks import WhatIf
from kreassign.planner.problem.goals_file import PERCENT

MOST_ADDED = 10_000
MOST_TIMES = 1_000_000

_GROWTH: tuple[Decorator, ...] = (
    click.option(
        "--traffic",
        type=FiniteRange(0, MOST_TIMES),
        default=1.0,
        show_default=True,
        metavar="K",
        help="Multiply all rates by K.",
    ),
    click.option(
        "--growth",
        type=FiniteRange(-PERCENT, MOST_TIMES, min_open=True),
        default=0.0,
        show_default=True,
        metavar="PERCENT",
        help="Growth of rates and sizes in 30 days, until --at.",
    ),
    click.option(
        "--at",
        type=click.DateTime(["%Y-%m-%d"]),
        metavar="DATE",
        help="Project growth to this date.  [default: none; --growth needs it]",
    ),
)
_CLUSTER: tuple[Decorator, ...] = (
    click.option(
        "--add-brokers",
        "added",
        type=WholeRange(min=0, max=MOST_ADDED),
        default=0,
        show_default=True,
        metavar="N",
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
        type=WholeRange(min=1, max=MOST_REPLICAS),
        metavar="N",
        help="Change the replication factor.  [default: as it is]",
    ),
)


def read_circumstances(
    *,
    traffic: float,
    growth: float,
    at: datetime | None,
    added: int = 0,
    removed: tuple[int, ...] = (),
    replication_factor: int | None = None,
) -> WhatIf:
    """The value of the options."""
    if growth and at is None:
        raise InputError("--growth needs --at: the date to project growth to")
    day = None if at is None else at.date()
    return WhatIf(added, removed, replication_factor, traffic, growth / PERCENT, day)


growth_options = option_group("what_if", _GROWTH, read_circumstances)
"""Add `--traffic`, `--growth` and `--at`."""

circumstance_options = option_group("what_if", (*_CLUSTER, *_GROWTH), read_circumstances)
"""Add brokers to add and to remove, and the replication factor, as well."""
