"""Before a run: what its hours will not hold, at the rate of its throttle."""

from __future__ import annotations

import click

from kreassign.errors import IllegalPlan
from kreassign.executor.events import RunStarted
from kreassign.executor.scheduling import forecast
from kreassign.executor.scheduling.forecast import REACHED, told
from kreassign.executor.state.move import MoveRecord
from kreassign.executor.state.move_index import candidate


def tell_outlook(started: RunStarted) -> None:
    """Warn of what will not end in time. Raises IllegalPlan where it never can, so that waiting for it is in vain.

    Without a throttle nobody knows the rate yet; then the run itself tells.
    """
    hours, limit = started.pace.hours, started.rates.slowest_bytes_per_s
    if not hours.are_limited or limit is None:
        return
    moves = [candidate(MoveRecord(move)) for move in started.moves]
    found = forecast(moves, hours, started.at_ms, limit * REACHED, started.pace.order)
    sentences = told(found, hours, limit * REACHED)
    if (found.endless and hours.deadline_ms is None) or found.fitting == 0:
        raise IllegalPlan(sentences)
    for sentence in sentences:
        click.echo(f"warning: {sentence}", err=True)
