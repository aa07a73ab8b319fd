"""A row of the table: what follows when an event happens in a phase."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from kreassign.executor.events import Event
from kreassign.executor.state.execution import Execution, Instructions, Phase

Key = tuple[Phase, type[Event]]


class Row(NamedTuple):
    """What to do, and the phases to which that may lead."""

    follow: Callable[[Execution, Any], Instructions]
    leads_to: frozenset[Phase]


Rows = Mapping[Key, Row]


def row(follow: Callable[[Execution, Any], Instructions], *leads_to: Phase) -> Row:
    """A row that may lead to these phases."""
    return Row(follow, frozenset(leads_to))
