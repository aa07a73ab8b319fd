"""Throttles that a run finds set when it begins: what it does about them, and what was there before anyone's run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Protocol

from kreassign.executor.throttle.ledger import ConfigKey


class FoundThrottles(StrEnum):
    """What to do about throttles that are set when a run begins, and that no run of this state directory set."""

    REFUSE = "refuse"  # start nothing: they may belong to somebody whose moves go on
    REMOVE = "remove"  # they were left behind: they are gone when the run has ended
    RESTORE = "restore"  # they are meant to be there: they have their values again when the run has ended
    ALONGSIDE = "alongside"  # they belong to moves of others, which go on under the rates of this run


class OriginalSettings(Protocol):
    """A record of what settings were before any run, also one of another machine, changed them."""

    def known(self, keys: Iterable[ConfigKey]) -> Mapping[ConfigKey, str | None]:
        """The original values of those of these settings that the record knows; None for no value."""
        ...


class NoRecord:
    """Nobody has written anything down."""

    def known(self, keys: Iterable[ConfigKey]) -> Mapping[ConfigKey, str | None]:
        """Nothing."""
        del keys
        return {}
