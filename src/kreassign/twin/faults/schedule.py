"""Schedule faults: at set times, at random, or by hand while the twin runs.

Faults are written `KIND[:PARAMETER…][@AT[+LASTS]]`, such as `crash:2@60s+30s`, or as tables `[[faults]]` in a file.
Equal seeds and clusters give equal random faults.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from kreassign.errors import InputError
from kreassign.model.documents import finite
from kreassign.model.error_codes import error_codes
from kreassign.model.text import LARGEST_AMOUNT, parse_whole, shortened
from kreassign.twin.api import connection
from kreassign.twin.api.handlers import HANDLERS
from kreassign.twin.cluster import Twin
from kreassign.twin.faults import failures, operator


@dataclass(frozen=True, slots=True)
class PlannedFault:
    """A fault `at_ms` after the plan was made, for `lasts_ms`; None means forever."""

    fault: failures.Fault
    at_ms: int
    lasts_ms: int | None = None


def schedule_faults(twin: Twin, faults: Iterable[PlannedFault]) -> None:
    """Schedule faults, counted from now; on InputError (the twin cannot have a fault) nothing is scheduled."""
    planned = tuple(faults)
    for one in planned:
        one.fault.check(twin)
    for one in planned:
        begins_ms = twin.now_ms + one.at_ms
        twin.schedule(begins_ms, partial(one.fault.inject, twin))
        if one.lasts_ms is not None:
            twin.schedule(begins_ms + one.lasts_ms, partial(one.fault.recover, twin))


# Parse faults from a command line or a file.

ANY = "any"
"""Placeholder for any API or any node."""
_UNIT_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "": 1_000}
_TIME = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|)", re.ASCII)
LONGEST_TIME_MS = 10 * 366 * 24 * 3_600_000
"""Ten years; no test runs longer."""
_APIS = {handler.api.name.lower(): handler.api.key for handler in HANDLERS}


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a kind of fault. `read` raises ValueError for an invalid value.

    `field` is its name in the class of the fault, if that differs from `name`.
    """

    name: str
    read: Callable[[Any], Any]
    is_needed: bool = True
    field: str = ""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of fault: its constructor, and its parameters in the order of a command line."""

    make: Callable[..., failures.Fault]
    parameters: tuple[Parameter, ...]


def milliseconds(value: object) -> int:
    """Parse a time such as `500ms`, `60s`, `5m`, `2h` or a number of seconds; ValueError if it is none."""
    match = _TIME.fullmatch(str(value))
    if match is None:
        raise ValueError("is no time; write for example 500ms, 60s, 5m or 2h")
    found = finite(match[1]) * _UNIT_MS[match[2]]
    if found > LONGEST_TIME_MS:
        raise ValueError(f"is longer than {LONGEST_TIME_MS // _UNIT_MS['h']}h")
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
    found = [one.code for one in error_codes().values() if str(value).upper() in (one.name, str(one.code)) and one.code]
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


def _on_answers(
    fault: Callable[..., connection.ResponseFault | connection.RequestFault],
) -> Callable[..., failures.AnswerFault]:
    def make(api_key: int | None = None, node_id: int | None = None, **own: int) -> failures.AnswerFault:
        return failures.AnswerFault(fault(**own), connection.AffectedResponses(api_key, node_id))

    return make


_BROKER, _DIR = Parameter("broker", _whole), Parameter("path", _path)
_API = Parameter("api", _one_api, field="api_key")
_NODE = Parameter("node", _node, is_needed=False)
_NODE_ID = replace(_NODE, field="node_id")
_ANSWERS = (Parameter("api", _api, is_needed=False, field="api_key"), _NODE_ID)
_ERRORS = (Parameter("error", _error, field="code"), _API, _NODE_ID)
_TOPIC, _PARTITION = Parameter("topic", _name), Parameter("partition", _whole)

KINDS: Mapping[str, Kind] = {
    "crash": Kind(failures.Crash, (_BROKER,)),
    "stop": Kind(failures.Stop, (_BROKER,)),
    "freeze": Kind(failures.Freeze, (_BROKER,)),
    "isolate": Kind(failures.Freeze, (_BROKER,)),
    "unregister": Kind(failures.Unregister, (_BROKER,)),
    "cut": Kind(failures.Cut, (_BROKER, Parameter("other", _whole))),
    "stale": Kind(failures.Stale, (_BROKER, Parameter("behind", _whole, is_needed=False))),
    "stale-answers": Kind(failures.StaleAnswers, (_API, _NODE, Parameter("behind", _whole, is_needed=False))),
    "empty-lists": Kind(failures.EmptyLists, (_NODE,)),
    "slow": Kind(failures.Slow, (_BROKER, _DIR, Parameter("factor", _part))),
    "fail": Kind(failures.Fail, (_BROKER, _DIR)),
    "fill": Kind(failures.Fill, (_BROKER, _DIR)),
    "cut-remote": Kind(failures.CutRemote, (_BROKER,)),
    "failover": Kind(failures.FailOver, ()),
    "failover-in": Kind(_on_answers(connection.LostInFailover), _ANSWERS[:1]),
    "lose": Kind(_on_answers(connection.Lost), _ANSWERS),
    "delay": Kind(_on_answers(connection.Delayed), (Parameter("by", milliseconds, field="by_ms"), *_ANSWERS)),
    "duplicate": Kind(_on_answers(connection.Duplicated), _ANSWERS),
    "drop": Kind(_on_answers(connection.Dropped), _ANSWERS),
    "refuse": Kind(_on_answers(connection.Refused), _ERRORS),
    "refuse-after": Kind(_on_answers(partial(connection.Refused, is_executed=True)), _ERRORS),
    "clear-throttles": Kind(operator.ClearThrottles, (Parameter("broker", _whole, is_needed=False),)),
    "clear-lists": Kind(operator.ClearLists, ()),
    "set-throttles": Kind(operator.SetThrottles, (Parameter("rate", _whole, field="bytes_per_s"),)),
    "list-replica": Kind(operator.ListReplica, (_TOPIC, _PARTITION, _BROKER)),
    "move": Kind(operator.MovePartition, (_TOPIC, _PARTITION, Parameter("replicas", _brokers))),
    "cancel-moves": Kind(operator.CancelMoves, ()),
    "recreate": Kind(operator.Recreate, (_TOPIC,)),
    "delete": Kind(operator.Delete, (_TOPIC,)),
    "step-clock": Kind(failures.StepClock, (Parameter("by", _step, field="by_ms"),)),
    "suspend": Kind(failures.Suspend, (Parameter("by", milliseconds, field="for_ms"),)),
}
"""Every kind of fault by its name."""


def read_faults(entries: Iterable[Mapping[str, Any] | str]) -> tuple[PlannedFault, ...]:
    """Parse the faults of a file: tables with `kind`, `at`, perhaps `lasts`, and the kind's own keys; or texts.

    Times are texts such as `60s`, or numbers of seconds. InputError, with the entry, if it is invalid.
    """
    return tuple(read_fault(entry) if isinstance(entry, str) else _read_table(entry) for entry in entries)


def read_fault(text: str) -> PlannedFault:
    """Parse a fault: `KIND[:PARAMETER…]@AT[+LASTS]`. InputError if it is invalid."""
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
    if isinstance(fault, failures.AnswerFault) and lasts_ms is not None:
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


# Random faults.

LONGEST_DRAWN_MS = 300_000
_LISTS = "list-replica:{topic}:0:{broker}"
_DRAWN = (
    "crash:{broker}", "crash:{broker}", "stop:{broker}", "freeze:{broker}", "freeze:{broker}", "cut:{pair}",
    "stale:{broker}{behind}", "slow:{directory}:0.1", "fail:{directory}", "fill:{directory}", "failover",
    "failover-in", "lose", "duplicate", "delay:{delay}ms", "drop", "{refusal}",
    "stale-answers:{read}:{broker}{behind_or_not}", "empty-lists", "unregister:{broker}", "clear-throttles",
    "set-throttles:{rate}", _LISTS,
)  # fmt: skip
"""The texts of faults that are drawn; what is in braces is drawn by `_PARTS`, from left to right."""


def _directory(rng: random.Random, twin: Twin) -> str:
    broker = rng.choice(twin.processes.ids)
    return f"{broker}:{rng.choice(twin.metadata.brokers[broker].log_dirs).path}"


def _refusal(rng: random.Random, _: Twin) -> str:
    api = rng.choice(("AlterPartitionReassignments", "IncrementalAlterConfigs", "ElectLeaders"))
    return f"{rng.choice(('refuse', 'refuse-after'))}:{rng.choice((-1, 89))}:{api}"


_PARTS: Mapping[str, Callable[[random.Random, Twin], object]] = {
    "broker": lambda rng, twin: rng.choice(twin.processes.ids),
    "pair": lambda rng, twin: ":".join(map(str, rng.sample(twin.processes.ids, 2))),
    "directory": _directory,
    "topic": lambda rng, twin: rng.choice(sorted(twin.metadata.topics)),
    "read": lambda rng, _: rng.choice(("ListPartitionReassignments", "Metadata", "DescribeConfigs")),
    "behind": lambda rng, _: rng.choice(("", ":0", ":1", ":10")),
    "behind_or_not": lambda rng, _: rng.choice(("", ":1", ":10")),
    "delay": lambda rng, _: rng.randint(1, 5_000),
    "rate": lambda rng, _: rng.choice((1_000_000, 20_000_000)),
    "refusal": _refusal,
}


def draw_faults(rng: random.Random, twin: Twin, count: int, within_ms: int) -> tuple[PlannedFault, ...]:
    """Draw `count` faults of any kind that begin within `within_ms`, each over after `LONGEST_DRAWN_MS` at most.

    The twin must have two brokers or more.
    """
    texts = [text for text in _DRAWN if twin.metadata.topics or text != _LISTS]
    return tuple(_draw(rng, twin, rng.choice(texts), within_ms) for _ in range(count))


def _draw(rng: random.Random, twin: Twin, text: str, within_ms: int) -> PlannedFault:
    what = re.sub(r"\{(\w+)\}", lambda part: str(_PARTS[part[1]](rng, twin)), text)
    return read_fault(f"{what}@{rng.randrange(within_ms)}ms+{rng.randint(1, LONGEST_DRAWN_MS)}ms")


# Faults by hand, instead of a schedule made before.


def inject(twin: Twin, text: str) -> None:
    """Inject a fault: `KIND[:PARAMETER…]` now, until it is recovered; or `KIND…@AT[+LASTS]`, counted from now.

    InputError if the text is invalid, or this twin cannot have the fault.
    """
    planned = fault_by_hand(text)
    if _has_time(text):
        schedule_faults(twin, [planned])
        return
    fault = planned.fault
    fault.check(twin)
    fault.inject(twin)


def fault_by_hand(text: str) -> PlannedFault:
    """Parse the fault of an order: `KIND[:PARAMETER…]`, or with its times. InputError if it is invalid."""
    return read_fault(text if _has_time(text) else f"{text}@0")


def recover(twin: Twin, text: str) -> None:
    """Recover a fault, written as it was injected. Does nothing if nothing is broken."""
    fault = read_fault(f"{text}@0").fault
    fault.check(twin)
    fault.recover(twin)


class _Deed(NamedTuple):
    """An action on a broker, and the fault whose recovery undoes it."""

    do: Callable[[Twin, int], None]
    fault: Callable[[int], failures.Fault] | None = None


_DEEDS: Mapping[str, _Deed] = {
    "kill": _Deed(Twin.crash, failures.Crash),
    "stop": _Deed(Twin.stop, failures.Stop),
    # For clients and the rest of the cluster an unreachable broker is like one whose process hangs.
    "isolate": _Deed(Twin.freeze, failures.Freeze),
    "restart": _Deed(failures.restart),
}
_USAGE = f"write inject FAULT, recover FAULT, or {', '.join(_DEEDS)} with a broker and perhaps how long"


def obey(twin: Twin, order: str) -> str:
    """Execute an order such as `kill 4`, `isolate 2 30s` or `inject lose:Metadata`; return a sentence about it.

    InputError if the order is invalid, or impossible for this twin now.
    """
    verb, *words = order.split() or [""]
    if verb in ("inject", "recover") and len(words) == 1:
        (inject if verb == "inject" else recover)(twin, words[0])
        return f"{words[0]} {'injected' if verb == 'inject' else 'recovered'}"
    if verb not in _DEEDS or not 1 <= len(words) <= 2:
        raise InputError(f"cannot read the order {order!r}: {_USAGE}")
    try:
        broker = parse_whole(words[0])
    except ValueError as error:
        raise InputError(f"cannot read the order {shortened(order)!r}: {error}; {_USAGE}") from None
    return _done(twin, verb, broker, words[1] if len(words) == 2 else None)


def _done(twin: Twin, verb: str, broker: int, lasts: str | None) -> str:
    deed = _DEEDS[verb]
    if lasts is not None and deed.fault is None:
        raise InputError(f"{verb} takes no time that it lasts; leave out {lasts}")
    try:
        lasts_ms = None if lasts is None else milliseconds(lasts)
    except ValueError as reason:
        raise InputError(f"{verb} {broker}: {lasts!r} {reason}") from None
    failures.need_broker(twin, broker)
    deed.do(twin, broker)
    if lasts_ms is not None and deed.fault is not None:
        twin.schedule(twin.now_ms + lasts_ms, partial(deed.fault(broker).recover, twin))
    return f"{verb} {broker}: done" if lasts is None else f"{verb} {broker}: done, for {lasts}"


def _has_time(text: str) -> bool:
    """True if a fault's text has a time; a path, which may contain @ too, comes before it and begins with a slash."""
    return "@" in text and "/" not in text.rpartition("@")[2] and text.rpartition("@")[2][:1].isdecimal()
