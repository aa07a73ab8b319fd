"""Faults as people write them: `crash:2@60s+30s` on a command line, a table `[[faults]]` in a file."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kreassign.errors import InputError
from kreassign.model.strict_json import finite
from kreassign.twin.api.response_faults import AffectedResponses, Delayed, Duplicated, Lost, LostInFailover
from kreassign.twin.api.table import HANDLERS
from kreassign.twin.faults.answers import AnswerFault, FailOver
from kreassign.twin.faults.disks import Fail, Fill, Slow
from kreassign.twin.faults.nodes import Crash, Cut, Freeze, Stale, Stop
from kreassign.twin.faults.plan import Fault, PlannedFault

ANY = "any"
"""Written in place of an API or a node that does not matter."""
_UNIT_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "": 1_000}
_TIME = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|)")
_APIS = {handler.api.name.lower(): handler.api.key for handler in HANDLERS}


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a kind of fault. `read` raises ValueError for an invalid value."""

    name: str
    read: Callable[[Any], Any]
    is_needed: bool = True


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of fault: how it is made of its parameters, which a command line gives in this order."""

    make: Callable[..., Fault]
    parameters: tuple[Parameter, ...]


def _milliseconds(value: object) -> int:
    match = _TIME.fullmatch(str(value))
    if match is None:
        raise ValueError("is no time; write for example 500ms, 60s, 5m or 2h")
    return round(finite(match[1]) * _UNIT_MS[match[2]])


def _whole(value: object) -> int:
    if isinstance(value, bool) or not re.fullmatch(r"\d+", str(value)):
        raise ValueError("is no number of the kind 0, 1, 2 …")
    return int(str(value))


def _part(value: object) -> float:
    try:
        return finite(str(value))
    except ValueError:
        raise ValueError("is no number") from None


def _path(value: object) -> str:
    if not str(value).startswith("/"):
        raise ValueError("is no absolute path")
    return str(value)


def _api(value: object) -> int | None:
    if value == ANY:
        return None
    if str(value).lower() not in _APIS:
        raise ValueError(f"is no API of the twin; it has {', '.join(handler.api.name for handler in HANDLERS)}")
    return _APIS[str(value).lower()]


def _node(value: object) -> int | None:
    return None if value == ANY else _whole(value)


def _lost(api: int | None = None, node: int | None = None) -> AnswerFault:
    return AnswerFault(Lost(), AffectedResponses(api, node))


def _delayed(by: int, api: int | None = None, node: int | None = None) -> AnswerFault:
    return AnswerFault(Delayed(by), AffectedResponses(api, node))


def _duplicated(api: int | None = None, node: int | None = None) -> AnswerFault:
    return AnswerFault(Duplicated(), AffectedResponses(api, node))


def _lost_in_failover(api: int | None = None) -> AnswerFault:
    return AnswerFault(LostInFailover(), AffectedResponses(api))


_BROKER, _DIR = Parameter("broker", _whole), Parameter("path", _path)
_ANSWERS = (Parameter("api", _api, is_needed=False), Parameter("node", _node, is_needed=False))

KINDS: Mapping[str, Kind] = {
    "crash": Kind(Crash, (_BROKER,)),
    "stop": Kind(Stop, (_BROKER,)),
    "freeze": Kind(Freeze, (_BROKER,)),
    "cut": Kind(Cut, (_BROKER, Parameter("other", _whole))),
    "stale": Kind(Stale, (_BROKER, Parameter("behind", _whole, is_needed=False))),
    "slow": Kind(Slow, (_BROKER, _DIR, Parameter("factor", _part))),
    "fail": Kind(Fail, (_BROKER, _DIR)),
    "fill": Kind(Fill, (_BROKER, _DIR)),
    "failover": Kind(FailOver, ()),
    "failover-in": Kind(_lost_in_failover, _ANSWERS[:1]),
    "lose": Kind(_lost, _ANSWERS),
    "delay": Kind(_delayed, (Parameter("by", _milliseconds), *_ANSWERS)),
    "duplicate": Kind(_duplicated, _ANSWERS),
}
"""Every kind of fault by its name."""


def read_faults(entries: Iterable[Mapping[str, Any] | str]) -> tuple[PlannedFault, ...]:
    """The faults of a file: tables with `kind`, `at`, perhaps `lasts`, and the kind's own keys; or texts.

    Times are texts such as `60s`, or numbers of seconds. InputError, with the entry, for what makes no sense.
    """
    return tuple(read_fault(entry) if isinstance(entry, str) else _read_table(entry) for entry in entries)


def read_fault(text: str) -> PlannedFault:
    """The fault of a text: `KIND[:PARAMETER…]@AT[+LASTS]`. InputError for what makes no sense."""
    what, at, when = text.rpartition("@")
    if not at:
        raise InputError(f"fault {text!r} does not say when; write for example crash:2@60s or crash:2@60s+30s")
    name, *values = what.split(":")
    begins, plus, lasts = when.partition("+")
    kind = _kind(text, name)
    if len(values) > len(kind.parameters):
        raise InputError(f"fault {text!r} has too many parts; {_usage(name)}")
    named = {parameter.name: value for parameter, value in zip(kind.parameters, values, strict=False)}
    return _planned(text, name, named, (begins, lasts if plus else None))


def _read_table(table: Mapping[str, Any]) -> PlannedFault:
    values = dict(table)
    for key in ("kind", "at"):
        if key not in values:
            raise InputError(f"fault {table!r} has no {key}; write for example kind = 'crash', at = '60s', broker = 2")
    name, times = values.pop("kind"), (values.pop("at"), values.pop("lasts", None))
    kind = _kind(table, name)
    if unknown := values.keys() - {parameter.name for parameter in kind.parameters}:
        raise InputError(f"fault {table!r} says {', '.join(sorted(unknown))}; {_usage(name)}")
    return _planned(table, name, values, times)


def _planned(shown: object, name: str, values: Mapping[str, Any], times: Sequence[Any]) -> PlannedFault:
    parameters = KINDS[name].parameters
    if missing := [one.name for one in parameters if one.is_needed and one.name not in values]:
        raise InputError(f"fault {shown!r} does not say {' and '.join(missing)}; {_usage(name)}")
    read = {one.name: _read(shown, one, values[one.name]) for one in parameters if one.name in values}
    begins, lasts = times
    at_ms = _read(shown, Parameter("at", _milliseconds), begins)
    lasts_ms = None if lasts is None else _read(shown, Parameter("lasts", _milliseconds), lasts)
    fault = KINDS[name].make(**read)
    if isinstance(fault, AnswerFault) and lasts_ms is not None:
        fault = replace(fault, hits_once=False)
    return PlannedFault(fault, at_ms, lasts_ms)


def _read(shown: object, parameter: Parameter, value: object) -> Any:
    try:
        return parameter.read(value)
    except ValueError as reason:
        raise InputError(f"fault {shown!r}: {parameter.name} {value!r} {reason}") from None


def _kind(shown: object, name: object) -> Kind:
    if name not in KINDS:
        raise InputError(f"fault {shown!r} is of no kind that the twin knows: {', '.join(KINDS)}")
    return KINDS[str(name)]


def _usage(name: str) -> str:
    parts = (f":{one.name.upper()}" if one.is_needed else f"[:{one.name.upper()}]" for one in KINDS[name].parameters)
    return f"its form is {name}{''.join(parts)}@AT[+LASTS]"
