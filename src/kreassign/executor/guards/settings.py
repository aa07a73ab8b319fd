"""Which guards there are, and what each does when it is breached."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType


class GuardName(StrEnum):
    """What is guarded."""

    OFFLINE = "offline"
    MIN_ISR = "min-isr"
    UNDER_REPLICATED = "under-replicated"
    BROKER = "broker"
    DISK = "disk"
    CORDONED = "cordoned"
    FOREIGN_MOVE = "foreign-move"
    FOREIGN_THROTTLE = "foreign-throttle"
    STALL = "stall"
    RATE = "rate"


class Reaction(StrEnum):
    """What a breach leads to; the later ones include that it is reported."""

    OFF = "off"
    WARN = "warn"
    HOLD = "hold"  # nothing new is started until the breach is over
    CANCEL = "cancel"  # the run comes to its end, and what is in flight is cancelled
    ROLLBACK = "rollback"  # the same, and what was made is undone


@dataclass(frozen=True, slots=True)
class GuardSetting:
    """What one guard does."""

    guard: GuardName
    reaction: Reaction


DEFAULTS: Mapping[GuardName, Reaction] = MappingProxyType({
    GuardName.OFFLINE: Reaction.HOLD,
    GuardName.MIN_ISR: Reaction.HOLD,
    GuardName.UNDER_REPLICATED: Reaction.HOLD,
    GuardName.BROKER: Reaction.WARN,
    GuardName.DISK: Reaction.HOLD,
    GuardName.CORDONED: Reaction.HOLD,
    GuardName.FOREIGN_MOVE: Reaction.WARN,
    GuardName.FOREIGN_THROTTLE: Reaction.HOLD,
    GuardName.STALL: Reaction.WARN,
    GuardName.RATE: Reaction.WARN,
})  # fmt: skip
"""No default throws copied bytes away; what endangers data or disks stops new moves."""


def settings(changed: Mapping[GuardName, Reaction] = MappingProxyType({})) -> tuple[GuardSetting, ...]:
    """All guards, with these reactions in place of the defaults."""
    return tuple(GuardSetting(guard, reaction) for guard, reaction in {**DEFAULTS, **changed}.items())


def reactions(chosen: Iterable[GuardSetting]) -> dict[GuardName, Reaction]:
    """What each of these does, without those that are off."""
    return {setting.guard: setting.reaction for setting in chosen if setting.reaction is not Reaction.OFF}
