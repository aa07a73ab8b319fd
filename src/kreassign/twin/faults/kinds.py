"""Every kind of fault as a row: its parameters, what breaks, and what recovery repairs.

A fault does nothing if its target is broken already, or repaired already. Without a recovery it stays, or is over by
itself. `docs/reference/faults.md` has a sentence for each.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from kreassign.errors import InputError
from kreassign.model.cluster import listed_ids
from kreassign.model.documents import finite
from kreassign.model.error_codes import error_codes
from kreassign.model.text import LARGEST_AMOUNT, parse_whole
from kreassign.twin.api import connection, refusals
from kreassign.twin.api.handlers import HANDLERS
from kreassign.twin.cluster import Twin
from kreassign.twin.faults import operator
from kreassign.wire import api

ANY = "any"
"""Placeholder for any API or any node."""
LISTING = api.LIST_PARTITION_REASSIGNMENTS.key


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a kind of fault. `read` raises ValueError for an invalid value.

    `check`, given the twin, the value and the value before it, raises InputError if this twin has no such target.
    """

    name: str
    read: Callable[[Any], Any]
    check: Callable[[Twin, Any, Any], None] = lambda _twin, _value, _before: None
    is_needed: bool = True


Action = Callable[..., None]
"""Called with the twin and a value for each parameter, None for those left out."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of fault, with its parameters in the order of a command line.

    `lasting` takes the place of `inject` where the fault has an end: it goes on until then, instead of hitting once.
    """

    parameters: tuple[Parameter, ...]
    inject: Action
    recover: Action = lambda *_: None
    lasting: Action | None = None


# Read values.

_UNIT_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "": 1_000}
_TIME = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|)", re.ASCII)
LONGEST_TIME_MS = 10 * 366 * 24 * 3_600_000
"""Ten years; no test runs longer."""
_APIS = {handler.api.name.lower(): handler.api.key for handler in HANDLERS}


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


# Check values against a twin.


def need_broker(twin: Twin, broker: int, _before: object = None) -> None:
    """Raise InputError if the cluster has no such broker."""
    if broker not in twin.processes.ids:
        raise InputError(f"a fault names broker {broker}; the cluster has {listed_ids(twin.processes.ids)}")


def _need_node(twin: Twin, node: int | None, _before: object) -> None:
    if node is not None and node not in twin.controller.node_ids:
        need_broker(twin, node)


def _need_registrations(twin: Twin, broker: int, _before: object) -> None:
    need_broker(twin, broker)
    if twin.version.uses_zookeeper:
        raise InputError("a fault unregisters a broker, which a cluster in ZooKeeper mode cannot; let it crash")


def _need_other(twin: Twin, other: int, broker: int) -> None:
    need_broker(twin, other)
    if broker == other:
        raise InputError(f"there is no link between broker {broker} and itself to cut")


def _need_dir(twin: Twin, path: str, broker: int) -> None:
    registered = twin.metadata.brokers.get(broker)
    known = [] if registered is None else [log_dir.path for log_dir in registered.log_dirs]
    if path not in known:
        raise InputError(f"a fault names log directory {path} of broker {broker}, which has {known}")


def _need_part(_twin: Twin, factor: float, _before: object) -> None:
    if not 0 < factor <= 1:
        raise InputError(f"a log directory cannot run at {factor} times its speed; give a part above 0")


def _need_refusable(_twin: Twin, api_key: int, _before: object) -> None:
    if api_key not in refusals.BY_KEY:
        raise InputError("a fault refuses requests that cannot be refused item by item; name another API")


def _need_topic(twin: Twin, topic: str, _before: object) -> None:
    if topic not in twin.metadata.topics:
        raise InputError(f"a fault names topic {topic}; the cluster has {sorted(twin.metadata.topics)[:10]}")


def _need_partition(twin: Twin, partition: int, topic: str) -> None:
    if partition not in twin.metadata.topics[topic].partitions:
        raise InputError(f"a fault names partition {topic}-{partition}, which does not exist")


def _need_brokers(twin: Twin, brokers: tuple[int, ...], _before: object) -> None:
    for broker in brokers:
        need_broker(twin, broker)


# Break and repair brokers, their directories, and what nodes answer.


def start(twin: Twin, broker: int) -> None:
    """Start a broker unless it is running."""
    if not twin.processes.is_running(broker):
        twin.start(broker)


def restart(twin: Twin, broker: int) -> None:
    """Shut a broker down cleanly and start it again; a stopped broker is only started, a frozen one killed first."""
    if twin.processes.is_responsive(broker):
        twin.stop(broker)
    elif twin.processes.is_running(broker):
        twin.crash(broker)
    start(twin, broker)


def _crash(twin: Twin, broker: int) -> None:
    if twin.processes.is_running(broker):
        twin.crash(broker)


def _stop(twin: Twin, broker: int) -> None:
    if twin.processes.is_responsive(broker):
        twin.stop(broker)


def _freeze(twin: Twin, broker: int) -> None:
    if twin.processes.is_responsive(broker):
        twin.freeze(broker)


def _unfreeze(twin: Twin, broker: int) -> None:
    if twin.processes.is_frozen(broker):
        twin.unfreeze(broker)


def _unregister(twin: Twin, broker: int) -> None:
    _crash(twin, broker)
    twin.unregister(broker)


def _hold_back(twin: Twin, node: int, behind: int | None) -> None:
    if not twin.processes.is_frozen(node):  # else it reads nothing anyway
        twin.views.hold_back(node, behind)


def _release(twin: Twin, node: int, _behind: int | None) -> None:
    if not twin.processes.is_frozen(node):  # else it catches up once it is unfrozen
        twin.views.release(node)


def _repair(twin: Twin, broker: int, path: str) -> None:
    # A directory that was offline is used again only after its broker's next start.
    twin.repair_log_dir(broker, path)
    restart(twin, broker)


def _fill(twin: Twin, broker: int, path: str) -> None:
    twin.replication.set_filled(broker, path, is_filled=True)


def _empty(twin: Twin, broker: int, path: str) -> None:
    twin.replication.set_filled(broker, path, is_filled=False)
    _repair(twin, broker, path)


# The rows.

_BROKER, _DIR = Parameter("broker", _whole, need_broker), Parameter("path", _path, _need_dir)
_ONE_API, _API = Parameter("api", _one_api), Parameter("api", _api, is_needed=False)
_NODE = Parameter("node", _node, _need_node, is_needed=False)
_BEHIND = Parameter("behind", _whole, is_needed=False)
_REFUSED = (Parameter("error", _error), Parameter("api", _one_api, _need_refusable), _NODE)
_TOPIC, _PARTITION = Parameter("topic", _name, _need_topic), Parameter("partition", _whole, _need_partition)


def _of_answers(
    make: Callable[..., connection.ResponseFault | connection.RequestFault],
    parameters: tuple[Parameter, ...] = (_API, _NODE),
) -> Kind:
    """A fault of the next matching request or response, or of all of them until recovery.

    `make` gets the values before the API and the node.
    """
    own = parameters.index(next(one for one in parameters if one.name == "api"))

    def inject(twin: Twin, *values: Any, hits_once: bool) -> None:
        affected = connection.AffectedResponses(*values[own:])
        twin.response_faults.add(make(*values[:own]), affected, hits_once=hits_once)

    def recover(twin: Twin, *values: Any) -> None:
        twin.response_faults.remove(make(*values[:own]), connection.AffectedResponses(*values[own:]))

    return Kind(parameters, partial(inject, hits_once=True), recover, partial(inject, hits_once=False))


KINDS: Mapping[str, Kind] = {
    "crash": Kind((_BROKER,), _crash, start),
    "stop": Kind((_BROKER,), _stop, start),
    "freeze": Kind((_BROKER,), _freeze, _unfreeze),
    "isolate": Kind((_BROKER,), _freeze, _unfreeze),
    "unregister": Kind((Parameter("broker", _whole, _need_registrations),), _unregister, start),
    "cut": Kind(
        (_BROKER, Parameter("other", _whole, _need_other)),
        lambda twin, broker, other: twin.replication.set_link(broker, other, is_cut=True),
        lambda twin, broker, other: twin.replication.set_link(broker, other, is_cut=False),
    ),
    # Of controllers, only the answers of inactive ones show it.
    "stale": Kind((Parameter("broker", _whole, _need_node), _BEHIND), _hold_back, _release),
    "stale-answers": Kind(
        (_ONE_API, _NODE, _BEHIND),
        lambda twin, api_key, node, behind: twin.views.hold_back(node, behind, api_key),
        lambda twin, api_key, node, _: twin.views.release(node, api_key),
    ),
    # As of an inactive controller, without an error. A broker stands for the controller to which it forwards.
    "empty-lists": Kind(
        (_NODE,),
        lambda twin, node: twin.views.forget(node, LISTING),
        lambda twin, node: twin.views.release(node, LISTING),
    ),
    "slow": Kind(
        (_BROKER, _DIR, Parameter("factor", _part, _need_part)),
        lambda twin, broker, path, factor: twin.replication.slow_dir(broker, path, factor),
        lambda twin, broker, path, _: twin.replication.slow_dir(broker, path, 1.0),
    ),
    "fail": Kind((_BROKER, _DIR), Twin.fail_log_dir, _repair),
    "fill": Kind((_BROKER, _DIR), _fill, _empty),
    "cut-remote": Kind(
        (_BROKER,),
        lambda twin, broker: twin.replication.set_remote(broker, is_cut=True),
        lambda twin, broker: twin.replication.set_remote(broker, is_cut=False),
    ),
    "failover": Kind((), Twin.fail_over),
    "failover-in": _of_answers(connection.LostInFailover, (_API,)),
    "lose": _of_answers(connection.Lost),
    "delay": _of_answers(connection.Delayed, (Parameter("by", milliseconds), _API, _NODE)),
    "duplicate": _of_answers(connection.Duplicated),
    "drop": _of_answers(connection.Dropped),
    "refuse": _of_answers(connection.Refused, _REFUSED),
    "refuse-after": _of_answers(partial(connection.Refused, is_executed=True), _REFUSED),
    "clear-throttles": Kind((Parameter("broker", _whole, need_broker, is_needed=False),), operator.clear_throttles),
    "clear-lists": Kind((), operator.clear_lists),
    "set-throttles": Kind((Parameter("rate", _whole),), operator.set_throttles, operator.remove_rates),
    "list-replica": Kind(
        (_TOPIC, _PARTITION, Parameter("broker", _whole)), operator.list_replica, operator.unlist_replica
    ),
    "move": Kind((_TOPIC, _PARTITION, Parameter("replicas", _brokers, _need_brokers)), operator.move),
    "cancel-moves": Kind((), operator.cancel_moves),
    "recreate": Kind((_TOPIC,), operator.recreate),
    "delete": Kind((_TOPIC,), operator.delete),
    # These two strike only clients in the twin's own time (`TwinTransport`): one on a socket has its machine's clock.
    "step-clock": Kind(
        (Parameter("by", _step),),
        lambda twin, by_ms: twin.client_clock.step(by_ms),
        lambda twin, by_ms: twin.client_clock.step(-by_ms),
    ),
    "suspend": Kind((Parameter("by", milliseconds),), lambda twin, by_ms: twin.client_clock.suspend(by_ms)),
}
"""Every kind of fault by its name."""
