"""Schedule faults: at set times, at random, or by hand while the twin runs.

Faults are written `KIND[:PARAMETER…][@AT[+LASTS]]`, such as `crash:2@60s+30s`, or as tables `[[faults]]` in a file.
Equal seeds and clusters give equal random faults.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from kreassign.errors import InputError
from kreassign.model.documents import shown_value
from kreassign.model.text import parse_whole, shortened
from kreassign.twin.cluster import Twin
from kreassign.twin.faults.kinds import KINDS, Action, Kind, Parameter, milliseconds, need_broker, restart


@dataclass(frozen=True, slots=True)
class PlannedFault:
    """A fault `at_ms` after the plan was made, for `lasts_ms`; None means forever.

    `values` are those of its kind's parameters, None for those left out.
    """

    kind: str
    values: tuple[Any, ...]
    at_ms: int
    lasts_ms: int | None = None

    def check(self, twin: Twin) -> None:
        """Raise InputError if this twin cannot have the fault."""
        before = None
        for parameter, value in zip(KINDS[self.kind].parameters, self.values, strict=True):
            if value is not None:
                parameter.check(twin, value, before)
            before = value

    def inject(self, twin: Twin) -> None:
        """Break the target now."""
        kind = KINDS[self.kind]
        inject = kind.inject if self.lasts_ms is None or kind.lasting is None else kind.lasting
        inject(twin, *self.values)

    def recover(self, twin: Twin) -> None:
        """Repair the target now, where that is part of the fault."""
        KINDS[self.kind].recover(twin, *self.values)


def schedule_faults(twin: Twin, faults: Iterable[PlannedFault]) -> None:
    """Schedule faults, counted from now; on InputError (the twin cannot have a fault) nothing is scheduled."""
    planned = tuple(faults)
    for one in planned:
        one.check(twin)
    for one in planned:
        begins_ms = twin.now_ms + one.at_ms
        twin.schedule(begins_ms, partial(one.inject, twin))
        if one.lasts_ms is not None:
            twin.schedule(begins_ms + one.lasts_ms, partial(one.recover, twin))


# Parse faults from a command line or a file.


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
    read = tuple(_read(shown, one, values[one.name]) if one.name in values else None for one in parameters)
    begins, lasts = times
    at_ms = _read(shown, Parameter("at", milliseconds), begins)
    lasts_ms = None if lasts is None else _read(shown, Parameter("lasts", milliseconds), lasts)
    return PlannedFault(name, read, at_ms, lasts_ms)


def _read(shown: object, parameter: Parameter, value: object) -> Any:
    try:
        return parameter.read(value)
    except ValueError as reason:
        raise InputError(f"fault {_brief(shown)}: {parameter.name} {_brief(value)} {reason}") from None


def _brief(value: object) -> str:
    return repr(shortened(value)) if isinstance(value, str) else shown_value(value)


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
    planned.check(twin)
    planned.inject(twin)


def fault_by_hand(text: str) -> PlannedFault:
    """Parse the fault of an order: `KIND[:PARAMETER…]`, or with its times. InputError if it is invalid."""
    return read_fault(text if _has_time(text) else f"{text}@0")


def recover(twin: Twin, text: str) -> None:
    """Recover a fault, written as it was injected. Does nothing if nothing is broken."""
    fault = read_fault(f"{text}@0")
    fault.check(twin)
    fault.recover(twin)


class _Deed(NamedTuple):
    """An action on a broker, and what undoes it."""

    do: Callable[[Twin, int], None]
    undo: Action | None = None


_DEEDS: Mapping[str, _Deed] = {
    "kill": _Deed(Twin.crash, KINDS["crash"].recover),
    "stop": _Deed(Twin.stop, KINDS["stop"].recover),
    # For clients and the rest of the cluster an unreachable broker is like one whose process hangs.
    "isolate": _Deed(Twin.freeze, KINDS["isolate"].recover),
    "restart": _Deed(restart),
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
    if lasts is not None and deed.undo is None:
        raise InputError(f"{verb} takes no time that it lasts; leave out {lasts}")
    try:
        lasts_ms = None if lasts is None else milliseconds(lasts)
    except ValueError as reason:
        raise InputError(f"{verb} {broker}: {lasts!r} {reason}") from None
    need_broker(twin, broker)
    deed.do(twin, broker)
    if lasts_ms is not None and deed.undo is not None:
        twin.schedule(twin.now_ms + lasts_ms, partial(deed.undo, twin, broker))
    return f"{verb} {broker}: done" if lasts is None else f"{verb} {broker}: done, for {lasts}"


def _has_time(text: str) -> bool:
    """True if a fault's text has a time; a path, which may contain @ too, comes before it and begins with a slash."""
    return "@" in text and "/" not in text.rpartition("@")[2] and text.rpartition("@")[2][:1].isdecimal()
