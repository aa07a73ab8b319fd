"""The amount that a repair is to change, before it begins and once it has settled. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from kreassign.autopilot.detectors import DETECTORS, astray, fullest_brokers
from kreassign.autopilot.events import CLUSTER, Gained, Planned
from kreassign.autopilot.growth import uses_of
from kreassign.autopilot.memory import UNBEGUN, Act
from kreassign.autopilot.observation import last_copies
from kreassign.autopilot.policy import Kind
from kreassign.autopilot.symptoms import Look
from kreassign.model.text import counted, format_amount

Repair = Act | Planned
"""A repair that is planned, or ran: its finding, its partitions, and the brokers that it is for."""


def amount_of(look: Look, repair: Repair) -> str:
    """The amount that a repair changes, as it is now; empty where it could not be read."""
    kind, subject = repair.name
    needs_sight = subject == CLUSTER or kind is Kind.DIRECTORY_FAILED
    is_hidden = needs_sight and DETECTORS[kind].blind(look, subject) is not None
    return "" if is_hidden or look.now.unread() else AMOUNTS[kind](look, repair)


def gained(look: Look, act: Act | None) -> Gained | None:
    """The event that says what a repair has gained; None where it is said, or not known."""
    if act is None or act.ended_ms is None or act.result in UNBEGUN or act.gain or not act.before:
        return None
    now = amount_of(look, act)
    return Gained(look.now.at_ms, act.name, f"{act.before} before, {now} now") if now else None


def _copies(look: Look, repair: Repair) -> str:
    moves = frozenset(repair.moves)
    moved = tuple(one for one in look.now.placed if one.topic_partition in moves)
    behind = sum(len(set(one.replicas).difference(one.isr)) for one in moved)
    alone = f", {counted(count, 'partition')} with one copy left" if (count := last_copies(moved)) else ""
    return f"{counted(behind, 'replica')} out of sync{alone}"


def _disk(look: Look, repair: Repair) -> str:
    uses = uses_of(look, repair.name)
    return next((f"{use.used_bytes / use.total_bytes:.0%} full" for use in uses if use is not None), "")


def _misplaced(look: Look, repair: Repair) -> str:
    shown = (one.partitions or () for one in DETECTORS[repair.name.kind].find(look))
    return f"{counted(sum(map(len, shown)), 'partition')} misplaced"


def _filled(look: Look, repair: Repair) -> str:
    held = [one.topic_partition for broker in repair.brokers for one in look.now.holding(broker)]
    return f"{counted(len(held), 'replica')} of {format_amount(sum(look.now.sizes.get(one, 0) for one in held), 'B')}"


def _led(look: Look, repair: Repair) -> str:
    return counted(sum(one.leader in repair.brokers for one in look.now.placed), "leader")


def _fullest(look: Look, _: Repair) -> str:
    found = fullest_brokers(look)
    return "" if found is None else f"the fullest broker at {found[0].times:.2f} times the mean"


AMOUNTS: Mapping[Kind, Callable[[Look, Repair], str]] = MappingProxyType({
    Kind.BROKER_GONE: _copies,
    Kind.DIRECTORY_FAILED: _copies,
    Kind.DISK_FILLS: _disk,
    Kind.PLACEMENT: _misplaced,
    Kind.NEW_BROKER: _filled,
    Kind.SLOW_BROKER: _led,
    Kind.BAND_LEFT: _fullest,
    Kind.LEADERS: lambda look, _: f"{counted(len(astray(look)), 'partition')} not led by the preferred replica",
})  # fmt: skip
"""Amounts by the kinds that have repairs."""
