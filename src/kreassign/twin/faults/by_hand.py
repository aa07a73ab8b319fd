"""Faults at once: what somebody does to a twin while it runs, in place of a timetable made before."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

from kreassign.errors import InputError
from kreassign.model.printable import shortened
from kreassign.model.whole_number import parse_whole
from kreassign.twin.cluster import Twin
from kreassign.twin.faults.nodes import Crash, Freeze, Stop, need_broker
from kreassign.twin.faults.plan import Fault, PlannedFault, schedule_faults
from kreassign.twin.faults.read import milliseconds, read_fault


def inject(twin: Twin, text: str) -> None:
    """Let a fault begin: `KIND[:PARAMETER…]` now, until it is recovered; or `KIND…@AT[+LASTS]`, counted from now.

    InputError for what makes no sense, or cannot befall this twin.
    """
    planned = fault_by_hand(text)
    if _has_time(text):
        schedule_faults(twin, [planned])
        return
    fault = planned.fault
    fault.check(twin)
    fault.inject(twin)


def fault_by_hand(text: str) -> PlannedFault:
    """The fault of an order: `KIND[:PARAMETER…]`, or with its times. InputError for what makes no sense."""
    return read_fault(text if _has_time(text) else f"{text}@0")


def recover(twin: Twin, text: str) -> None:
    """Let a fault be over, written as it was injected. Nothing happens where nothing is broken."""
    fault = _fault(text)
    fault.check(twin)
    fault.recover(twin)


def restart(twin: Twin, broker: int) -> None:
    """Shut a broker down in order and start it again; one that is down is started, one that hangs is killed first."""
    need_broker(twin, broker)
    if twin.processes.is_responsive(broker):
        twin.stop(broker)
    elif twin.processes.is_running(broker):
        twin.crash(broker)
    twin.start(broker)


class _Deed(NamedTuple):
    """Something done to a broker, and the fault whose recovery undoes it."""

    do: Callable[[Twin, int], None]
    fault: Callable[[int], Fault] | None = None


_DEEDS: Mapping[str, _Deed] = {
    "kill": _Deed(Twin.crash, Crash),
    "stop": _Deed(Twin.stop, Stop),
    # To clients and to the rest of the cluster a broker that nobody reaches is one whose process hangs.
    "isolate": _Deed(Twin.freeze, Freeze),
    "restart": _Deed(restart),
}
_USAGE = f"write inject FAULT, recover FAULT, or {', '.join(_DEEDS)} with a broker and perhaps how long"


def obey(twin: Twin, order: str) -> str:
    """Do what a line says, such as `kill 4`, `isolate 2 30s` or `inject lose:Metadata`; a sentence about it.

    InputError for what makes no sense, or cannot be done to this twin now.
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
    need_broker(twin, broker)
    deed.do(twin, broker)
    if lasts_ms is not None and deed.fault is not None:
        twin.schedule(twin.now_ms + lasts_ms, partial(deed.fault(broker).recover, twin))
    return f"{verb} {broker}: done" if lasts is None else f"{verb} {broker}: done, for {lasts}"


def _has_time(text: str) -> bool:
    """Whether a fault's text says when; a path, which may have an @ too, stands before that and begins with a slash."""
    return "@" in text and "/" not in text.rpartition("@")[2] and text.rpartition("@")[2][:1].isdecimal()


def _fault(text: str) -> Fault:
    return read_fault(f"{text}@0").fault
