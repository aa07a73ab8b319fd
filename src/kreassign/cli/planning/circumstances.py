"""What may be different from now: options, and their value."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

import click

from kreassign.errors import InputError
from kreassign.operations.plan_inputs import Inputs
from kreassign.planner.problem.goals_file import PERCENT
from kreassign.planner.tasks import Circumstances

Command = TypeVar("Command", bound=Callable[..., Any])

SECONDS_PER_DAY = 86_400


def circumstance_options(command: Command) -> Command:
    """Add `--traffic`, `--growth` and `--at`: parameters `traffic`, `growth`, `at`."""
    growth = "Growth of rates and sizes in 30 days, until --at."
    options = (
        click.option("--traffic", type=float, default=1.0, metavar="K", help="All rates times this."),
        click.option("--growth", type=float, default=0.0, metavar="PERCENT", help=growth),
        click.option("--at", type=click.DateTime(["%Y-%m-%d"]), metavar="DATE", help="The day to which all grows."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def circumstances_of(inputs: Inputs, *, at: datetime | None, growth: float, **wishes: Any) -> Circumstances:
    """The value of the options; days count from the snapshot. Raises InputError for a day before it."""
    days = 0.0
    if at is not None:
        days = (at.replace(tzinfo=UTC).timestamp() - inputs.taken_ms / 1000) / SECONDS_PER_DAY
        if days < 0:
            raise InputError(f"{at:%Y-%m-%d} is before the snapshot was taken; give a later day")
    elif growth:
        raise InputError("--growth needs --at: the day to which all grows")
    return Circumstances(growth_per_month=growth / PERCENT, days=days, **wishes)


def described(found: Circumstances) -> str:
    """The circumstances in words, or that nothing changes."""
    parts = (
        f"{found.added} brokers more" if found.added else "",
        f"without brokers {', '.join(map(str, found.removed))}" if found.removed else "",
        f"traffic x {found.traffic:g}" if found.traffic != 1 else "",
        f"{found.growth_per_month:.1%} growth a month for {found.days:.0f} days" if found.growth_per_month else "",
        f"factor {found.factor}" if found.factor else "",
    )
    return ", ".join(filter(None, parts)) or "nothing changes"
