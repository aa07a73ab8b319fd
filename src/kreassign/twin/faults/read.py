"""Faults as people write them: `crash:2@60s+30s` on a command line, a table `[[faults]]` in a file."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from kreassign.errors import InputError
from kreassign.model.amount import LARGEST_AMOUNT
from kreassign.model.error_codes import CODES
from kreassign.model.printable import shortened
from kreassign.model.strict_json import finite
from kreassign.model.whole_number import parse_whole
from kreassign.twin.api.response_faults import (
    AffectedResponses,
    Delayed,
    Dropped,
    Duplicated,
    Lost,
    LostInFailover,
    Refused,
    RequestFault,
    ResponseFault,
)
from kreassign.twin.api.table import HANDLERS
from kreassign.twin.faults.answers import AnswerFault, EmptyLists, FailOver, StaleAnswers
from kreassign.twin.faults.clients import StepClock, Suspend
from kreassign.twin.faults.disks import CutRemote, Fail, Fill, Slow
from kreassign.twin.faults.nodes import Crash, Cut, Freeze, Stale, Stop, Unregister
from kreassign.twin.faults.operator import (
    CancelMoves,
    ClearThrottles,
    Delete,
    ListReplica,
    MovePartition,
    Recreate,
    SetThrottles,
)
from kreassign.twin.faults.plan import Fault, PlannedFault

ANY = "any"
"""Written in place of an API or a node that does not matter."""
_UNIT_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "": 1_000}
_TIME = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|)", re.ASCII)
LONGEST_MS = 10 * 366 * 24 * 3_600_000
"""Ten years; no test plays longer."""
_APIS = {handler.api.name.lower(): handler.api.key for handler in HANDLERS}


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a kind of fault. `read` raises ValueError for an invalid value.

    `field` is what it is called where the fault is made, if that is not its name.
    """

    name: str
    read: Callable[[Any], Any]
    is_needed: bool = True
    field: str = ""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of fault: how it is made of its parameters, which a command line gives in this order."""

    make: Callable[..., Fault]
    parameters: tuple[Parameter, ...]


def milliseconds(value: object) -> int:
    """A time such as `500ms`, `60s`, `5m`, `2h` or a number of seconds; ValueError for what is none."""
    match = _TIME.fullmatch(str(value))
    if match is None:
        raise ValueError("is no time; write for example 500ms, 60s, 5m or 2h")
    found = finite(match[1]) * _UNIT_MS[match[2]]
    if found > LONGEST_MS:
        raise ValueError(f"is longer than {LONGEST_MS // _UNIT_MS['h']}h")
    return round(found)


def _step(value: object) -> int:
    text = str(value)
    length = milliseconds(text.lstrip("+-"))
    return -length if text.startswith("-") else length


def _whole(value: object) -> int:
    try:
        return parse_whole("" if isinstance(value, bool) else str(value), most=LARGEST_AMOUNT)
    except ValueError:
        raise ValueError("is no number of the kind 0, 1, 2 …") from None


def _part(value: object) -> float:
    try:
        return finite(str(value))
    except ValueError:
        raise ValueError("is no number") from None


def _path(value: object) -> str:
    if not str(value).startswith("/") or not str(value).isprintable():
        raise ValueError("is no absolute path")
    return str(value)


def _name(value: object) -> str:
    if not str(value) or not str(value).isprintable():
        raise ValueError("is no name")
    return str(value)


def _brokers(value: object) -> tuple[int, ...]:
    listed = value if isinstance(value, list) else str(value).split(",")
    return tuple(map(_whole, listed))


def _error(value: object) -> int:
    found = [one.code for one in CODES if str(value).upper() in (one.name, str(one.code)) and one.code]
    if not found:
        raise ValueError("is no error of Kafka; write for example 89 or THROTTLING_QUOTA_EXCEEDED")
    return found[0]


def _one_api(value: object) -> int:
    found = _api(value)
    if found is None:
        raise ValueError("must be one API")
    return found


def _api(value: object) -> int | None:
    if value == ANY:
        return None
    if str(value).lower() not in _APIS:
        raise ValueError(f"is no API of the twin; it has {', '.join(handler.api.name for handler in HANDLERS)}")
    return _APIS[str(value).lower()]


def _node(value: object) -> int | None:
    return None if value == ANY else _whole(value)


def _on_answers(fault: Callable[..., ResponseFault | RequestFault]) -> Callable[..., AnswerFault]:
    def make(api_key: int | None = None, node_id: int | None = None, **own: int) -> AnswerFault:
        return AnswerFault(fault(**own), AffectedResponses(api_key, node_id))

    return make


_BROKER, _DIR = Parameter("broker", _whole), Parameter("path", _path)
_API = Parameter("api", _one_api, field="api_key")
_NODE = Parameter("node", _node, is_needed=False)
_NODE_ID = replace(_NODE, field="node_id")
_ANSWERS = (Parameter("api", _api, is_needed=False, field="api_key"), _NODE_ID)
_ERRORS = (Parameter("error", _error, field="code"), _API, _NODE_ID)
_TOPIC, _PARTITION = Parameter("topic", _name), Parameter("partition", _whole)

KINDS: Mapping[str, Kind] = {
    "crash": Kind(Crash, (_BROKER,)),
    "stop": Kind(Stop, (_BROKER,)),
    "freeze": Kind(Freeze, (_BROKER,)),
    "isolate": Kind(Freeze, (_BROKER,)),
    "unregister": Kind(Unregister, (_BROKER,)),
    "cut": Kind(Cut, (_BROKER, Parameter("other", _whole))),
    "stale": Kind(Stale, (_BROKER, Parameter("behind", _whole, is_needed=False))),
    "stale-answers": Kind(StaleAnswers, (_API, _NODE, Parameter("behind", _whole, is_needed=False))),
    "empty-lists": Kind(EmptyLists, (_NODE,)),
    "slow": Kind(Slow, (_BROKER, _DIR, Parameter("factor", _part))),
    "fail": Kind(Fail, (_BROKER, _DIR)),
    "fill": Kind(Fill, (_BROKER, _DIR)),
    "cut-remote": Kind(CutRemote, (_BROKER,)),
    "failover": Kind(FailOver, ()),
    "failover-in": Kind(_on_answers(LostInFailover), _ANSWERS[:1]),
    "lose": Kind(_on_answers(Lost), _ANSWERS),
    "delay": Kind(_on_answers(Delayed), (Parameter("by", milliseconds, field="by_ms"), *_ANSWERS)),
    "duplicate": Kind(_on_answers(Duplicated), _ANSWERS),
    "drop": Kind(_on_answers(Dropped), _ANSWERS),
    "refuse": Kind(_on_answers(Refused), _ERRORS),
    "refuse-after": Kind(_on_answers(partial(Refused, is_executed=True)), _ERRORS),
    "clear-throttles": Kind(ClearThrottles, (Parameter("broker", _whole, is_needed=False),)),
    "set-throttles": Kind(SetThrottles, (Parameter("rate", _whole, field="bytes_per_s"),)),
    "list-replica": Kind(ListReplica, (_TOPIC, _PARTITION, _BROKER)),
    "move": Kind(MovePartition, (_TOPIC, _PARTITION, Parameter("replicas", _brokers))),
    "cancel-moves": Kind(CancelMoves, ()),
    "recreate": Kind(Recreate, (_TOPIC,)),
    "delete": Kind(Delete, (_TOPIC,)),
    "step-clock": Kind(StepClock, (Parameter("by", _step, field="by_ms"),)),
    "suspend": Kind(Suspend, (Parameter("by", milliseconds, field="for_ms"),)),
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
        raise InputError(f"fault {_brief(text)} does not say when; write for example crash:2@60s or crash:2@60s+30s")
    name, *values = what.split(":")
    begins, plus, lasts = when.partition("+")
    kind = _kind(text, name)
    if len(values) > len(kind.parameters):
        raise InputError(f"fault {_brief(text)} has too many parts; {_usage(name)}")
    named = {parameter.name: value for parameter, value in zip(kind.parameters, values, strict=False)}
    return _planned(text, name, named, (begins, lasts if plus else None))


def _read_table(table: Mapping[str, Any]) -> PlannedFault:
    values = dict(table)
    for key in ("kind", "at"):
        if key not in values:
            raise InputError(
                f"fault {_brief(table)} has no {key}; write for example kind = 'crash', at = '60s', broker = 2"
            )
    name, times = values.pop("kind"), (values.pop("at"), values.pop("lasts", None))
    kind = _kind(table, name)
    if unknown := values.keys() - {parameter.name for parameter in kind.parameters}:
        raise InputError(f"fault {_brief(table)} says {', '.join(sorted(unknown))}; {_usage(name)}")
    return _planned(table, name, values, times)


def _planned(shown: object, name: str, values: Mapping[str, Any], times: Sequence[Any]) -> PlannedFault:
    parameters = KINDS[name].parameters
    if missing := [one.name for one in parameters if one.is_needed and one.name not in values]:
        raise InputError(f"fault {_brief(shown)} does not say {' and '.join(missing)}; {_usage(name)}")
    read = {one.field or one.name: _read(shown, one, values[one.name]) for one in parameters if one.name in values}
    begins, lasts = times
    at_ms = _read(shown, Parameter("at", milliseconds), begins)
    lasts_ms = None if lasts is None else _read(shown, Parameter("lasts", milliseconds), lasts)
    fault = KINDS[name].make(**read)
    if isinstance(fault, AnswerFault) and lasts_ms is not None:
        fault = replace(fault, hits_once=False)
    return PlannedFault(fault, at_ms, lasts_ms)


def _read(shown: object, parameter: Parameter, value: object) -> Any:
    try:
        return parameter.read(value)
    except ValueError as reason:
        raise InputError(f"fault {_brief(shown)}: {parameter.name} {_brief(value)} {reason}") from None


def _brief(value: object) -> str:
    return repr(shortened(value)) if isinstance(value, str) else shortened(repr(value))


def _kind(shown: object, name: object) -> Kind:
    if not isinstance(name, str) or name not in KINDS:
        raise InputError(f"fault {_brief(shown)} is of no kind that the twin knows: {', '.join(KINDS)}")
    return KINDS[name]


def _usage(name: str) -> str:
    parts = (f":{one.name.upper()}" if one.is_needed else f"[:{one.name.upper()}]" for one in KINDS[name].parameters)
    return f"its form is {name}{''.join(parts)}@AT[+LASTS]"
