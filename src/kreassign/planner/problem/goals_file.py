"""The goals file: TOML → policy. Every key: docs/reference/goals-file.md."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from kreassign.errors import InputError
from kreassign.model.documents import finite, read_toml, shown_value
from kreassign.model.plan_facts import RackPrices, joined_prices
from kreassign.model.text import LARGEST_AMOUNT, LARGEST_ID, name_pattern, parse_amount, parse_whole, shortened
from kreassign.planner.goals import FAILOVER, TOPIC_LEADERS, TOPIC_SPREAD, goal_named
from kreassign.planner.problem.policy import CORES, BrokerSet, PlanPolicy, with_tolerance
from kreassign.planner.problem.problem import DEFAULT_BANDS, WIDEST_TOLERANCE, Band, RackRule

PERCENT = 100
ANY = "any"
"""In place of a tolerance: no band, only the brokers' limits apply."""

NO_LOADS = {TOPIC_SPREAD: "topic_spread", TOPIC_LEADERS: "topic_leaders", FAILOVER: "failover"}
"""Goals that are not loads of brokers, with the policy field that holds their tolerance."""

# A TOML value as read; every use checks its type first.
Toml = Any
_Value = TypeVar("_Value")


def parse_policy(text: str, tolerance: float | None = None) -> PlanPolicy:
    """Parse a goals file. Raises InputError, which names the wrong line or key.

    `tolerance` replaces that of the file, for goals that state none themselves.
    """
    try:
        document = read_toml(text)
    except ValueError as error:
        raise InputError(f"not TOML: {error}") from error
    if unknown := sorted(document.keys() - _KEYS.keys() - {"tolerance", "goals"}):
        raise InputError(f"unknown key {unknown[0]!r}; known are {', '.join(['goals', *_KEYS, 'tolerance'])}")
    common = _percent("tolerance", document.get("tolerance", 10))
    width = common if tolerance is None else tolerance
    values: dict[str, Any] = {_FIELDS.get(key, key): _KEYS[key](key, document[key]) for key in document if key in _KEYS}
    if "goals" in document:
        entries = _tables("goals", document["goals"])
        if not entries:
            raise InputError("goals: none is named; leave the key out for the usual ones")
        _refuse_repeated(str(entry.get("name")) for entry in entries)
        loads = [entry for entry in entries if str(entry.get("name")) not in NO_LOADS]
        weights = _weights_by_order(len(loads))
        values["bands"] = tuple(_band(*entry, width) for entry in zip(loads, weights, strict=True))
        values |= {NO_LOADS[entry["name"]]: _no_load(entry, width) for entry in entries if entry not in loads}
    elif "tolerance" in document or tolerance is not None:
        values["bands"] = with_tolerance(DEFAULT_BANDS, width)
    return PlanPolicy(**values)


class NamedGoals(NamedTuple):
    """Goals named one by one; a tolerance is None unless its goal (which is not a load) is named."""

    bands: tuple[Band, ...]
    topic_spread: float | None
    topic_leaders: float | None
    failover: float | None


def parse_goals(texts: Iterable[str], tolerance: float) -> NamedGoals:
    """Parse goals given as flags; `tolerance` applies where a flag has none."""
    given = tuple(texts)
    named = {text: text.partition("=")[0] for text in given}
    _refuse_repeated(text.partition("=")[0] for text in given)
    loads = [text for text in given if named[text] not in NO_LOADS]
    weights = _weights_by_order(len(loads))
    bands = tuple(parse_band(text, tolerance, weight) for text, weight in zip(loads, weights, strict=True))
    others = {NO_LOADS[name]: _no_load_flag(text, tolerance) for text, name in named.items() if name in NO_LOADS}
    return NamedGoals(bands, *(others.get(field) for field in NO_LOADS.values()))


def _weights_by_order(count: int) -> tuple[float, ...]:
    """Weights of `count` goals named in order, from 2 for the first down to 1 for the last."""
    return tuple(1 + (count - 1 - place) / max(1, count - 1) for place in range(count))


def _no_load_flag(text: str, tolerance: float) -> float:
    name, equals, width = text.partition("=")
    try:
        if name == FAILOVER and width == ANY:
            return math.inf
        found = finite(width) / PERCENT if equals else tolerance
    except ValueError as error:
        raise InputError(f"{text!r} is not a goal; write for example {name} or {name}=5") from error
    return _no_load_width(name, found)


def _no_load_width(name: str, tolerance: float) -> float:
    if not 0 <= tolerance <= WIDEST_TOLERANCE:
        raise InputError(f"goal {name}: a tolerance of {tolerance:g} is not from 0 to {WIDEST_TOLERANCE:g}")
    return tolerance


def _no_load(entry: Mapping[str, Toml], tolerance: float) -> float:
    name = entry["name"]
    if unknown := sorted(entry.keys() - {"name", "tolerance"}):
        raise InputError(f"goal {name}: unknown key {unknown[0]!r}; it has a tolerance alone, and comes last")
    if name == FAILOVER and entry.get("tolerance") == ANY:
        return math.inf
    width = _percent(f"goal {name}: tolerance", entry["tolerance"]) if "tolerance" in entry else tolerance
    return _no_load_width(name, width)


def parse_band(text: str, tolerance: float, usual_weight: float = 1.0) -> Band:
    """Parse a goal from a flag: `disk`, `disk=5` (±5 %), `disk=5x2` (weight 2), `disk=any` (only a limit counts)."""
    name, equals, rest = text.partition("=")
    width, _, weight = rest.partition("x")
    try:
        given = None if width == ANY else finite(width) / PERCENT if equals else tolerance
        return Band(goal_named(name, NO_LOADS), given, finite(weight) if weight else usual_weight)
    except ValueError as error:
        raise InputError(f"{text!r} is not a goal; write for example disk, disk=5 or disk=5x2") from error


def _band(entry: Mapping[str, Toml], usual_weight: float, tolerance: float) -> Band:
    if unknown := sorted(entry.keys() - {"name", "tolerance", "weight"}):
        raise InputError(f"goals: unknown key {unknown[0]!r}; known are name, tolerance, weight")
    name, width, weight = entry.get("name"), entry.get("tolerance"), entry.get("weight", usual_weight)
    if not isinstance(name, str):
        raise InputError("goals: every goal needs a name, for example name = 'disk'")
    given = tolerance if width is None else None if width == ANY else _percent(f"goal {name}: tolerance", width)
    return Band(goal_named(name, NO_LOADS), given, _positive(f"goal {name}: weight", weight))


def _refuse_repeated(names: Iterable[str]) -> None:
    counts = Counter(names)
    if repeated := sorted(name for name, count in counts.items() if count > 1):
        raise InputError(f"goal {repeated[0]} is named more than once")


def _racks(key: str, value: Toml) -> RackRule:
    names = {rule.name.lower(): rule for rule in RackRule}
    if not isinstance(value, str) or value not in names:
        raise InputError(f"{key}: {shown_value(value)} is none of {', '.join(names)}")
    return names[value]


def _sets(key: str, value: Toml) -> tuple[BrokerSet, ...]:
    found = tuple(_set(f"{key}.{name}", name, entry) for name, entry in sorted(_table(key, value).items()))
    set_of: dict[int, str] = {}
    for one in found:
        for broker in one.brokers:
            if set_of.setdefault(broker, one.name) != one.name:
                raise InputError(f"{key}: broker {broker} is in {set_of[broker]} and in {one.name}: put it into one")
    return found


def _set(key: str, name: str, entry: Toml) -> BrokerSet:
    if unknown := sorted(_table(key, entry).keys() - {"brokers", "topics"}):
        raise InputError(f"{key}: unknown key {unknown[0]!r}; known are brokers, topics")
    brokers, topics = _integers(f"{key}.brokers", entry.get("brokers")), entry.get("topics")
    if not brokers:
        raise InputError(f"{key}.brokers names no broker")
    return BrokerSet(name, brokers, _patterns(f"{key}.topics", topics))


def _of_brokers(parse: Callable[[str, Toml], _Value]) -> Callable[[str, Toml], dict[int, _Value]]:
    """Parse a value for each broker."""
    return lambda key, value: {broker: parse(f"{key}.{broker}", one) for broker, one in _by_broker(key, value).items()}


def _amounts(key: str, value: Toml) -> dict[str, float]:
    found = {
        name if name == CORES else goal_named(name).name: _amount(f"{key}.{name}", one)
        for name, one in _table(key, value).items()
    }
    if found.get(CORES) == 0:
        raise InputError(f"{key}.{CORES}: a broker has some; leave it out where nothing is known")
    return found


def _amount(key: str, value: Toml) -> float:
    """Parse a number, or a text such as `2TB` or `120 MB/s`."""
    if not isinstance(value, str):
        amount = _positive(key, value)
        if amount > LARGEST_AMOUNT:
            raise InputError(f"{key}: {shown_value(value)} is too large; the largest is {LARGEST_AMOUNT} (2^63 - 1)")
        return amount
    try:
        return float(parse_amount(value))
    except InputError as error:
        raise InputError(f"{key}: {error}") from error


def _rack(key: str, value: Toml) -> str:
    if not isinstance(value, str) or not value:
        raise InputError(f'{key} must be the name of a rack, for example "a"')
    return value


def _prices(key: str, value: Toml) -> RackPrices:
    found = RackPrices()
    for name, price in _table(key, value).items():
        number = _positive(f"{key}.{name}", price)
        source, colon, target = name.partition(":")
        if name != "between" and not (colon and source and target):
            raise InputError(f'{key}: {shortened(name)!r} names no two racks; write "a:b" for from a to b, or between')
        found = joined_prices(
            found, RackPrices(number) if name == "between" else RackPrices(pairs={(source, target): number})
        )
    return found


def _leader_racks(key: str, value: Toml) -> dict[str, tuple[str, ...]]:
    _patterns(key, [*_table(key, value)])
    found = {pattern: _texts(f"{key}.{pattern}", racks) for pattern, racks in value.items()}
    for pattern, racks in found.items():
        if not racks or len(set(racks)) != len(racks):
            raise InputError(f'{key}.{pattern} must name each rack once, the preferred one first, as in ["a", "b"]')
    return found


def _consumer_racks(key: str, value: Toml) -> dict[str, dict[str, float]]:
    _patterns(key, [*_table(key, value)])
    found = {
        pattern: {
            rack: _positive(f"{key}.{pattern}.{rack}", one) for rack, one in _table(f"{key}.{pattern}", racks).items()
        }
        for pattern, racks in value.items()
    }
    for pattern, weights in found.items():
        if not 0 < sum(weights.values()) < math.inf:
            raise InputError(f"{key}.{pattern} must say how much is read from which rack, as in {{ a = 1, b = 3 }}")
    return found


def _counts(key: str, value: Toml) -> dict[str, int]:
    counts = {name: _positive(f"{key}.{name}", one) for name, one in _table(key, value).items()}
    for name, count in counts.items():
        if not count.is_integer() or count > LARGEST_ID:
            raise InputError(f"{key}.{name}: {shown_value(value[name])} is not a whole number up to {LARGEST_ID}")
    return {name: int(count) for name, count in counts.items()}


def _by_broker(key: str, value: Toml) -> dict[int, Toml]:
    """The table by broker. A broker may be there once, however its id is spelt: `1` and `01` are one."""
    spelt: dict[int, str] = {}
    for name in _table(key, value):
        try:
            broker = parse_whole(name)
        except ValueError:
            raise InputError(f"{key}: {shortened(name)!r} is not the id of a broker") from None
        if (before := spelt.setdefault(broker, name)) != name:
            raise InputError(f"{key}: {before} and {name} are one broker; write it once")
    return {broker: value[name] for broker, name in spelt.items()}


def _table(key: str, value: Toml) -> dict[str, Toml]:
    if not isinstance(value, dict):
        raise InputError(f"{key} must be a table")
    return value


def _tables(key: str, value: Toml) -> list[dict[str, Toml]]:
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise InputError(f"{key} must be an array of tables, [[{key}]]")
    return value


def _texts(key: str, value: Toml) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise InputError(f"{key} must be an array of texts")
    return tuple(value)


def _patterns(key: str, value: Toml) -> tuple[str, ...]:
    """Parse patterns of topics; each is tried, so that the error names the file and the key."""
    found = _texts(key, value)
    for pattern in found:
        try:
            name_pattern(pattern)
        except InputError as error:
            raise InputError(f"{key}: {error}") from error
    return found


def _integers(key: str, value: Toml) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(type(one) is int and 0 <= one <= LARGEST_ID for one in value):
        raise InputError(f"{key} must be an array of broker ids")
    return tuple(value)


def _positive(key: str, value: Toml) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= sys.float_info.max:
        raise InputError(f"{key}: {shown_value(value)} is not a number of 0 or more")
    return float(value)


def _percent(key: str, value: Toml) -> float:
    return _positive(key, value) / PERCENT


def _reserve(key: str, value: Toml) -> float:
    found = _percent(key, value)
    if found >= 1:
        raise InputError(
            f"{key}: {shown_value(value)} is not below 100; it is the percentage of a disk that stays free"
        )
    return found


_KEYS: dict[str, Callable[[str, Toml], Any]] = {
    "racks": _racks,
    "broker-racks": _of_brokers(_rack),
    "capacity": _amounts,
    "broker-capacity": _of_brokers(_amounts),
    "shares": _of_brokers(_positive),
    "broker-sets": _sets,
    "least-topic-leaders": _counts,
    "excluded-topics": _patterns,
    "excluded-brokers": _integers,
    "disk-reserve": _reserve,
    "reads-per-write": _positive,
    "rack-prices": _prices,
    "leader-racks": _leader_racks,
    "consumer-racks": _consumer_racks,
}
_FIELDS = {key: key.replace("-", "_") for key in _KEYS}
