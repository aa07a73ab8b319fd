"""Slow a run down while its clients suffer: what is asked, what an answer means, and which rate follows from it.

A `ClientGuard` names conditions that hold while clients are well: PromQL compared with a number, and a command. Each
gives a `Reading`, which is good, bad or unknown: what was not answered is never good. The guard `clients` (`guards.py`)
decides what may start, `Backoff` the rate:

    readings                    starts                        rate
    one is bad                  held, or as `--guard` says    halved, and again each minute while it lasts
    none bad, one unknown       held                          stays
    all good                    go on                         5 % of the run's rate more each minute, up to all of it

That is additive increase and multiplicative decrease (Chiu and Jain 1989), as TCP does: a rate that hurts is left
quickly, and looked for again in small steps.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from math import isfinite, isnan
from operator import ge, gt, le, lt
from types import MappingProxyType

from kreassign.errors import InputError
from kreassign.model.listeners import http_address, is_readable
from kreassign.model.run import NO_COST, ClientCost
from kreassign.model.text import printable, shortened
from kreassign.model.throttle import WHOLE

# What is asked.


class Comparison(StrEnum):
    """Comparison of a value with its bound."""

    LESS = "<"
    AT_MOST = "<="
    MORE = ">"
    AT_LEAST = ">="


_HOLDS: Mapping[Comparison, Callable[[float, float], bool]] = MappingProxyType({
    Comparison.LESS: lt,
    Comparison.AT_MOST: le,
    Comparison.MORE: gt,
    Comparison.AT_LEAST: ge,
})  # fmt: skip

_CONDITION = re.compile(r"(?s)(.*\S)\s*(<=|>=|<|>)\s*([-+]?[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?)\s*")


@dataclass(frozen=True, slots=True)
class ClientQuery:
    """A PromQL expression with one value, which is good while the comparison with the bound holds."""

    expression: str
    comparison: Comparison
    bound: float

    @classmethod
    def parse(cls, text: str) -> ClientQuery:
        """Split at the last comparison. Raises InputError if there is none with a number.

        The expression is sent without the comparison: PromQL leaves out what does not meet one, and an empty answer
        would say the same of bad values and of missing ones.
        """
        match = _CONDITION.fullmatch(text.strip())
        if match is None:
            raise InputError(
                f"{shortened(text)!r} is no condition; write PromQL with one value, then <, <=, > or >= and a number: "
                "what holds while clients are well"
            )
        return cls(match[1], Comparison(match[2]), float(match[3]))

    def read(self, value: float) -> ClientAnswer:
        """Judge a value. One that is no number is unknown; an infinite one may be bad, but is never good."""
        holds = not isnan(value) and _HOLDS[self.comparison](value, self.bound)
        if isnan(value) or (holds and not isfinite(value)):
            return self.unknown(f"its value is {value:g}")
        seen = f"{_cut(self.expression)} is {value:g}"
        wanted = "" if holds else f", and is to be {self.comparison} {self.bound:g}"
        return ClientAnswer(str(self), Feeling.GOOD if holds else Feeling.BAD, f"{seen}{wanted}")

    def unknown(self, why: str) -> ClientAnswer:
        """A reading without a value, with the reason."""
        return ClientAnswer(str(self), Feeling.UNKNOWN, why)

    def __str__(self) -> str:
        return f"{_cut(self.expression)} {self.comparison} {self.bound:g}"


@dataclass(frozen=True, slots=True)
class ClientGuard:
    """Sources that tell how clients feel: queries to the Prometheus at `url`, and a command.

    Secrets are not part of it: `login_file` and `ca_file` are paths, which each query reads again.
    """

    queries: tuple[ClientQuery, ...] = ()
    url: str | None = None
    login_file: str | None = None
    ca_file: str | None = None
    command: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if bool(self.queries) != (self.url is not None):
            raise InputError("queries about clients need the address of a Prometheus, and it needs queries: give both")
        if not (self.queries or self.command):
            raise InputError("a guard of clients needs a query or a command")
        if self.url is not None:
            check_address(self.url, has_login=self.login_file is not None)
        elif self.login_file is not None or self.ca_file is not None:
            raise InputError("a login and certificates are for queries; give one, or leave them out")

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the readings that it gives."""
        return (*map(str, self.queries), *([command_name(self.command)] if self.command else ()))


def check_address(text: str, *, has_login: bool = False) -> None:
    """Raise InputError for an address that is none, has a secret in it, or would carry a login without TLS."""
    login, example = "write them into a login file", "https://prometheus:9090"
    parts = http_address(text, "a Prometheus", example=example, login=login)
    if has_login and is_readable(parts):
        raise InputError(
            f"http://{parts.hostname} would carry the login without TLS; use https, or leave the login out"
        )


def command_name(words: Iterable[str]) -> str:
    """The command as readings name it."""
    return f"`{_cut(' '.join(words))}`"


_MOST_SHOWN = 120


def _cut(text: str) -> str:
    """The text on one line, or its beginning: expressions and paths are longer than most names."""
    line = printable(" ".join(text.split()))
    return line if len(line) <= _MOST_SHOWN else f"{line[:_MOST_SHOWN]}…"


# What an answer means.


class Feeling(StrEnum):
    """State of clients, as far as it is known."""

    GOOD = "good"
    BAD = "bad"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class ClientAnswer:
    """Answer of a source, and what was seen: for an unknown one the reason."""

    source: str
    feeling: Feeling
    seen: str


EXIT_CODES: Mapping[int, Feeling] = MappingProxyType({
    0: Feeling.GOOD,
    1: Feeling.BAD,  # a warning of a plugin for Nagios, and what most programs call failed
    2: Feeling.BAD,  # critical
})  # fmt: skip
"""Meaning of exit codes; any other, and a signal, is unknown."""


def read_exit_code(words: tuple[str, ...], code: int, output: str) -> ClientAnswer:
    """Judge how a command ended, with the first line of its output; a negative code is that of a signal."""
    how = f"was ended by signal {-code}" if code < 0 else f"exited with {code}"
    said = next((line.strip() for line in output.splitlines() if line.strip()), "")
    feeling, name = EXIT_CODES.get(code, Feeling.UNKNOWN), command_name(words)
    subject = "it" if feeling is Feeling.UNKNOWN else name
    return ClientAnswer(name, feeling, f"{subject} {how}{said and f': {_cut(said)}'}")


def together(readings: Iterable[ClientAnswer]) -> Feeling:
    """Bad if any is, good only if all are; without any reading nothing is known."""
    feelings = {reading.feeling for reading in readings}
    if Feeling.BAD in feelings:
        return Feeling.BAD
    return Feeling.GOOD if feelings == {Feeling.GOOD} else Feeling.UNKNOWN


# Which rate follows.

LEAST = 10
"""Percent below which the rate never falls, and it never falls below what producers write."""

RAISE = 5
"""Percent that a raise adds."""

SETTLE_MS = 60_000
"""Time in which a change of the rate is felt: rates of PromQL are averages over minutes. No change follows sooner."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Percent of the run's rate that copies have; `lowered_ms` is when it was last lowered, None if never.

    `good_since_ms` counts towards the next raise. An operator who sets the throttle has `overruled` the guard until
    clients feel well again.
    """

    percent: int = WHOLE
    lowered_ms: int | None = None
    good_since_ms: int | None = None
    is_overruled: bool = False

    def after(self, feeling: Feeling, at_ms: int) -> Backoff:
        """The rate after a reading."""
        match feeling:
            case Feeling.GOOD:
                return self._raised(at_ms)
            case Feeling.BAD:
                return self._lowered(at_ms)
        return replace(self, good_since_ms=None)

    @property
    def overruled(self) -> Backoff:
        """The whole rate, as an operator set it."""
        return replace(self, percent=WHOLE, good_since_ms=None, is_overruled=True)

    def _raised(self, at_ms: int) -> Backoff:
        since_ms = at_ms if self.good_since_ms is None else self.good_since_ms
        if at_ms - since_ms < SETTLE_MS:
            return replace(self, good_since_ms=since_ms, is_overruled=False)
        return replace(self, percent=min(WHOLE, self.percent + RAISE), good_since_ms=at_ms, is_overruled=False)

    def _lowered(self, at_ms: int) -> Backoff:
        is_too_soon = self.lowered_ms is not None and at_ms - self.lowered_ms < SETTLE_MS
        if self.is_overruled or is_too_soon:
            return replace(self, good_since_ms=None)
        return replace(self, percent=max(LEAST, self.percent // 2), lowered_ms=at_ms, good_since_ms=None)


def slowed_rate(bytes_per_s: int, percent: int, least_bytes_per_s: int) -> int:
    """Rate of a broker at this percentage, but enough for what is written to its copies, as far as the run's is."""
    return min(bytes_per_s, max(1, least_bytes_per_s, bytes_per_s * percent // WHOLE))


# What a run knows of it.


@dataclass(frozen=True, slots=True)
class ClientWatch:
    """The guard of a run, the last readings, the rate, and what that has cost; `read_ms` is None in a new process."""

    guard: ClientGuard | None = None
    readings: tuple[ClientAnswer, ...] = ()
    backoff: Backoff = Backoff()
    cost: ClientCost = NO_COST
    read_ms: int | None = None

    def after(self, readings: tuple[ClientAnswer, ...], at_ms: int, *, is_holding: bool) -> ClientWatch:
        """Take in readings. A guard that is not `is_holding` only warns: nothing is slowed, and nothing held."""
        if self.guard is None:
            return self
        readings = readings or tuple(
            ClientAnswer(one, Feeling.UNKNOWN, "it was not asked") for one in self.guard.sources
        )
        if not is_holding:
            return replace(self, readings=readings, read_ms=at_ms)
        feeling = together(readings)
        reason = next((one.seen for one in readings if one.feeling is feeling is not Feeling.GOOD), self.cost.reason)
        passed_ms = 0 if self.read_ms is None else max(0, at_ms - self.read_ms)
        was_held = bool(self.readings) and together(self.readings) is not Feeling.GOOD
        cost = self.cost.after(passed_ms if was_held else 0, passed_ms, self.backoff.percent)
        backoff = self.backoff.after(feeling, at_ms)
        return ClientWatch(self.guard, readings, backoff, replace(cost, percent=backoff.percent, reason=reason), at_ms)

    @property
    def resumed(self) -> ClientWatch:
        """After a time in which nothing was read; the rate stays as slow as it was."""
        return replace(self, backoff=replace(self.backoff, good_since_ms=None), readings=(), read_ms=None)

    @property
    def overruled(self) -> ClientWatch:
        """After an operator has set the throttle."""
        if self.guard is None:
            return self
        return replace(self, backoff=self.backoff.overruled, cost=replace(self.cost, percent=WHOLE))

    @property
    def has_slowed(self) -> bool:
        """True if rates are, or were, lower than the run's."""
        return self.backoff.lowered_ms is not None
