"""The policy of an autopilot: one typed schema, with a default for every line, read from TOML.

The fields below are the schema: their names are the keys (with `-` for `_`), their types say what is taken, their
metadata what they mean. Parsing, the reference page and the sentences of `check` follow from them. A file that says
nothing tells, and changes nothing.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from difflib import get_close_matches
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple, cast

from kreassign.errors import InputError
from kreassign.executor.client_guard import ClientGuard, ClientQuery, Comparison
from kreassign.model.documents import read_toml, shown_value
from kreassign.model.pace import Schedule, Window, parse_time_zone, parse_window
from kreassign.model.text import counted, format_amount, format_seconds, least_rate_option, parse_amount, parse_seconds


class Level(StrEnum):
    """How far the autopilot goes with a kind of finding."""

    TELL = "tell"  # it says what is wrong
    PROPOSE = "propose"  # it plans the repair, with its cost, and leaves it to people
    ASK = "ask"  # it repairs when enough people have signed the proposal
    ACT = "act"  # it repairs by itself, when all gates are open


class Kind(StrEnum):
    """Kinds of findings, the most urgent first: only one is repaired at a time."""

    UNREAD = "unread"
    MANY_GONE = "many-gone"
    BROKER_GONE = "broker-gone"
    DISK_FILLS = "disk-fills"
    DIRECTORY_FAILED = "directory-failed"
    PLACEMENT = "placement"
    NEW_BROKER = "new-broker"
    SLOW_BROKER = "slow-broker"
    BAND_LEFT = "band-left"
    LEADERS = "leaders"

    @property
    def urgency(self) -> int:
        """0 for the most urgent."""
        return list(Kind).index(self)


# Forms of values: how each is read and written.


class Form(NamedTuple):
    """A kind of value: what a file may have, and how it is parsed and shown. `parse` raises InputError."""

    allowed: str
    parse: Callable[[Any], Any]
    show: Callable[[Any], str]


def _duration(value: Any) -> float:
    if not isinstance(value, str):
        raise InputError("it is no text")
    return parse_seconds(value)


def _rest(value: Any) -> float:
    seconds = _duration(value)
    return seconds if seconds <= MOST_REST_S else _refuse()


def _bytes(value: Any) -> int:
    return parse_amount(str(value)) if isinstance(value, str) or _is_whole(value) else _refuse()


def _rate(value: Any) -> int:
    return _bytes(value) or _refuse()


def _number(least: float, most: float) -> Callable[[Any], float]:
    """Parse a number between these two, both included."""

    def parse(value: Any) -> float:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return float(value) if is_number and least <= value <= most else _refuse()

    return parse


def _count(value: Any) -> int:
    return int(value) if _is_whole(value) and 0 < value <= _MOST_COUNT else _refuse()


def _flag(value: Any) -> bool:
    return value if isinstance(value, bool) else _refuse()


def _level(value: Any) -> Level:
    return Level(value) if isinstance(value, str) and value in set(Level) else _refuse()


def _each(parse: Callable[[str], Any]) -> Callable[[Any], tuple[Any, ...]]:
    """Parse a list of texts, each of them so."""

    def parse_all(value: Any) -> tuple[Any, ...]:
        is_list = isinstance(value, list) and all(isinstance(one, str) for one in value)
        return tuple(map(parse, value)) if is_list else _refuse()

    return parse_all


def _text(value: Any) -> str:
    return value if isinstance(value, str) else _refuse()


def _clock(value: Any) -> str:
    text = _text(value)
    return text if re.fullmatch(r"(?:(?:[01]\d|2[0-3]):[0-5]\d)?", text) else _refuse()


def _command(value: Any) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(_text(value)))
    except ValueError as error:
        raise InputError(str(error)) from error


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _refuse() -> Any:
    raise InputError


MOST_REST_S = 30 * 86_400.0
"""Repairs are remembered for so long."""

_MOST_FACTOR = 100.0
_MOST_COUNT = 1_000_000

DURATION = Form('a duration such as "30m", "72h" or "7d"', _duration, format_seconds)
REST = Form('a duration up to "30d", such as "72h" or "7d"', _rest, format_seconds)
BYTES = Form('an amount such as "500GB"', _bytes, lambda value: format_amount(value, "B"))
RATE = Form('a rate such as "20MB/s"', _rate, lambda value: format_amount(value, "B/s"))
SHARE = Form("a share from 0 to 1, such as 0.85", _number(0, 1), lambda value: f"{value:.0%}")
FACTOR = Form(
    "a multiple of the mean from 1 to 100, such as 1.25", _number(1, _MOST_FACTOR), lambda value: f"{value:g} times"
)
COUNT = Form(f"a whole number from 1 to {_MOST_COUNT}", _count, str)
FLAG = Form("true or false", _flag, lambda value: "yes" if value else "no")
LEVEL = Form(" or ".join(f'"{one}"' for one in Level), _level, str)
TEXT = Form("a text", _text, lambda value: repr(value) if value else "none")
CLOCK = Form('a time such as "08:00", or "" for none', _clock, lambda value: value or "none")
CONDITIONS = Form(
    'a list of conditions such as ["max(p99) < 0.2"]',
    _each(ClientQuery.parse),
    lambda value: ", ".join(map(str, value)) or "none",
)
COMMAND = Form("a command with its arguments", _command, lambda value: " ".join(value) or "none")
WINDOWS = Form(
    'a list of daily times such as ["22:00-06:00"]',
    _each(parse_window),
    lambda value: ", ".join(map(str, value)) or "any time",
)
ZONE = Form('a time zone such as "Europe/Berlin"', lambda value: parse_time_zone(_text(value)), str)


def _line(form: Form, default: object, meaning: str) -> Any:
    """A line of the schema; defaults of durations and amounts are written as in a file."""
    value = form.parse(default) if isinstance(default, str) else default
    return field(default=value, metadata={"form": form, "meaning": meaning, "written": default})


HOW_FAR = MappingProxyType({"form": LEVEL, "meaning": "How far to go with it", "written": Level.TELL.value})

# The schema.


@dataclass(frozen=True, slots=True)
class Repaired:
    """A kind of finding that has a repair."""

    level: Level = field(default=Level.TELL, metadata=HOW_FAR)


@dataclass(frozen=True, slots=True)
class BrokerGone(Repaired):
    """A broker that is down, or not registered any more, and has replicas."""

    tell_after: float = _line(DURATION, "2m", "Told when it is down for so long")
    propose_after: float = _line(DURATION, "30m", "Proposed then, or earlier where waiting costs more than copying")
    act_after: float = _line(DURATION, "60m", "Repaired by itself never earlier")
    most_share: float = _line(
        SHARE, 0.10, "Repaired by itself only if so much of the brokers is down at most; one broker alone always may be"
    )


@dataclass(frozen=True, slots=True)
class Unread:
    """A cluster, or a part of it, that does not answer: what it hides is neither found nor repaired."""

    tell_after: float = _line(DURATION, "15m", "Told when something could not be read for so long")


@dataclass(frozen=True, slots=True)
class ManyGone:
    """Several brokers at once, or a whole rack: that is the network, and everything stops."""

    tell_after: float = _line(DURATION, "2m", "Told when they are down for so long")
    brokers: int = _line(COUNT, 2, "So many brokers that went within the time below are many")
    within: float = _line(DURATION, "10m", "Brokers that went within this time went at once")


@dataclass(frozen=True, slots=True)
class DiskFills(Repaired):
    """A log directory that is full soon."""

    tell_share: float = _line(SHARE, 0.80, "Told at this used share")
    tell_within: float = _line(DURATION, "72h", "Told when it is full within this time by its growth")
    propose_share: float = _line(SHARE, 0.85, "Proposed at this used share")
    urgent_share: float = _line(SHARE, 0.92, "Urgent at this used share")
    urgent_within: float = _line(DURATION, "6h", "Urgent when it is full within this time by its growth")
    urgent_any_time: bool = _line(FLAG, default=False, meaning="Whether urgent repairs run outside the windows, too")


@dataclass(frozen=True, slots=True)
class DirectoryFailed(Repaired):
    """A log directory that is offline on a live broker."""

    act_after: float = _line(DURATION, "0s", "Repaired by itself when it failed for so long")


@dataclass(frozen=True, slots=True)
class Placement(Repaired):
    """Partitions with fewer replicas than their topic, or more in one rack than needed."""

    propose_after: float = _line(DURATION, "60m", "Proposed when it lasts so long, with no broker and no rack down")


@dataclass(frozen=True, slots=True)
class NewBroker(Repaired):
    """A live broker that has no replicas."""

    propose_after: float = _line(DURATION, "30m", "Proposed when it is live and empty for so long")


@dataclass(frozen=True, slots=True)
class BandLeft(Repaired):
    """A broker that has much more than the mean of what brokers hold."""

    find_at: float = _line(FACTOR, 1.25, "Found at this multiple of the mean, now and in 24 hours by what disks grow")
    lasting: float = _line(DURATION, "6h", "Proposed when it lasts so long without a break")
    ignore_below: float = _line(SHARE, 0.30, "Ignored where no broker uses more than this share of its capacity")


@dataclass(frozen=True, slots=True)
class SlowBroker(Repaired):
    """A broker that is out of sync with most of its leaders, or whose writes take long by a metric."""

    lagging_share: float = _line(SHARE, 0.5, "Found when so much of its following replicas is out of sync")
    metric: str = _line(
        TEXT,
        "",
        "PromQL of the seconds that writes take, with a series for each broker, for the Prometheus of [clients]",
    )
    label: str = _line(TEXT, "broker", "Label with the broker's id in these series")
    slow_above: float = _line(
        DURATION, "1s", "Found above this, if also above three times its own week and three times the others"
    )
    lasting: float = _line(DURATION, "30m", "Proposed when it lasts so long; leaders leave it, replicas stay")
    most_share: float = _line(
        SHARE, 0.10, "More of the brokers slow at once is the infrastructure, and only told; one alone never is"
    )


@dataclass(frozen=True, slots=True)
class Leaders(Repaired):
    """Partitions that their preferred replica does not lead, though it is in sync."""

    propose_after: float = _line(DURATION, "30m", "Proposed when it lasts so long")
    step: int = _line(COUNT, 100, "Leaders that change in one step")


@dataclass(frozen=True, slots=True)
class Runs:
    """How repairs run."""

    throttle: int = _line(RATE, "20MB/s", "Rate of each broker and direction")
    windows: tuple[Window, ...] = _line(
        WINDOWS, (), "Repairs run only in these times of each day, and pause between them"
    )
    time_zone: str = _line(ZONE, "UTC", "Time zone of the windows")

    @property
    def hours(self) -> Schedule:
        """The windows as runs take them."""
        return Schedule(self.windows, self.time_zone)

    @property
    def words(self) -> tuple[str, ...]:
        """Options by which people run a repair as the policy would."""
        windows = tuple(word for one in self.windows for word in ("--window", str(one)))
        zone = ("--time-zone", self.time_zone) if windows and self.time_zone != "UTC" else ()
        return ("--throttle", least_rate_option(self.throttle), *windows, *zone)


@dataclass(frozen=True, slots=True)
class Loads:
    """Measured loads by which repairs are planned: those of the tables that `kreassign load` writes."""

    tables: str = _line(TEXT, "", "Folder or bucket with the tables; without, rates are measured while planning")
    most_age: float = _line(DURATION, "48h", "Loads measured so long ago are stale: nothing is moved for balance")
    most_doubtful: float = _line(SHARE, 0.05, "Loads with more doubtful partitions are no better")


@dataclass(frozen=True, slots=True)
class Clients:
    """Sources that say how clients feel: repairs are held and slowed while they suffer, as by `run --guard-query`."""

    queries: tuple[ClientQuery, ...] = _line(CONDITIONS, (), "Conditions that hold while clients are well, in PromQL")
    url: str = _line(TEXT, "", "Prometheus that is asked")
    login: str = _line(TEXT, "", "File with the login for it")
    ca: str = _line(TEXT, "", "File with the certificates that it is trusted by")
    command: tuple[str, ...] = _line(COMMAND, "", "Command that exits with 0 while clients are well")

    @property
    def guard(self) -> ClientGuard | None:
        """The guard as runs take it; None without a source. Raises InputError for lines that do not fit together."""
        address = (self.url or None, self.login or None, self.ca or None) if self.queries else (None, None, None)
        return ClientGuard(self.queries, *address, self.command) if self.queries or self.command else None


@dataclass(frozen=True, slots=True)
class Budget:
    """What repairs may cost at most."""

    bytes_per_day: int = _line(BYTES, "2TB", "Copied in 24 hours at most")
    bytes_per_week: int = _line(BYTES, "6TB", "Copied in seven days at most")
    share_per_day: float = _line(SHARE, 0.50, "Copied in 24 hours at most, of all bytes that the cluster holds")
    runs_per_day: int = _line(COUNT, 4, "Repairs begun in 24 hours at most")


@dataclass(frozen=True, slots=True)
class Approvals:
    """Who approves repairs of kinds with level "ask"."""

    allowed_signers: str = _line(TEXT, "", "File of those who may sign, as ssh-keygen has it")
    least: int = _line(COUNT, 1, "So many people must sign")
    expire_after: float = _line(DURATION, "24h", "Time for which a proposal can be approved")
    proposer: str = _line(TEXT, "", "Signer who answers for this policy, and so cannot approve")


@dataclass(frozen=True, slots=True)
class Messages:
    """Who is told of each change of a finding, once: for each receiver a file with its address."""

    slack: str = _line(TEXT, "", "File with the address of an incoming webhook of Slack")
    teams: str = _line(TEXT, "", "File with the address of a workflow of Microsoft Teams")
    pagerduty: str = _line(TEXT, "", "File with the address of PagerDuty's events, and below it the routing key")
    alertmanager: str = _line(TEXT, "", "File with the address of Alertmanager's alerts (`…/api/v2/alerts`)")
    webhook: str = _line(TEXT, "", "File with any address, and below it the secret that signs messages")
    digest_at: str = _line(CLOCK, "08:00", "Time of the daily digest, in the time zone of the windows")

    @property
    def files(self) -> Mapping[str, str]:
        """Files of the receivers that are named, by receiver."""
        receivers = (one.name for one in fields(self) if one.name != "digest_at")
        return {name: file for name in receivers if (file := getattr(self, name))}


@dataclass(frozen=True, slots=True)
class Care:
    """Looks, and what is waited for."""

    interval: float = _line(DURATION, "60s", "Time between two looks at the cluster")
    looks_apart: float = _line(
        DURATION, "5m", "A plan is made twice, so far apart, and must be the same to be executed"
    )
    settle: float = _line(DURATION, "60m", "Time after a repair until the next one, and until it is judged")
    quiet: float = _line(DURATION, "15m", "Time without moves of others, and since a broker came back")
    rest: float = _line(REST, "7d", "Time for which a moved partition rests, unless a disk fills")


@dataclass(frozen=True, slots=True)
class Policy:
    """What the autopilot may do, and when."""

    care: Care = Care()
    runs: Runs = Runs()
    loads: Loads = Loads()
    clients: Clients = Clients()
    budget: Budget = Budget()
    approvals: Approvals = Approvals()
    messages: Messages = Messages()
    unread: Unread = Unread()
    many_gone: ManyGone = ManyGone()
    broker_gone: BrokerGone = BrokerGone()
    disk_fills: DiskFills = DiskFills()
    directory_failed: DirectoryFailed = DirectoryFailed()
    placement: Placement = Placement()
    new_broker: NewBroker = NewBroker()
    slow_broker: SlowBroker = SlowBroker()
    band_left: BandLeft = BandLeft()
    leaders: Leaders = Leaders()

    @property
    def write_times(self) -> ClientGuard | None:
        """How the metric of slow brokers is asked, and asked for their week; None without one. Raises InputError."""
        metric, clients = self.slow_broker.metric, self.clients
        if not metric:
            return None
        week = f"quantile_over_time(0.9, ({metric})[7d:10m])"
        queries = tuple(ClientQuery(one, Comparison.MORE, self.slow_broker.slow_above) for one in (metric, week))
        return ClientGuard(queries, clients.url or None, clients.login or None, clients.ca or None)

    def has_remedy(self, kind: Kind) -> bool:
        """True if there is a repair of such findings, and so a level; others are only ever told."""
        return hasattr(self.section(kind), "level")

    def level(self, kind: Kind) -> Level:
        """How far to go with a kind."""
        return Level(self.section(kind).level) if self.has_remedy(kind) else Level.TELL

    def section(self, table: str) -> Any:
        """The table of this name, or of this kind, in a file."""
        return getattr(self, field_of(table))


def key_of(name: str) -> str:
    """The key of a field in a file."""
    return name.replace("_", "-")


def field_of(key: str) -> str:
    """The field of a key, the other way round."""
    return key.replace("-", "_")


class SchemaLine(NamedTuple):
    """A line of the schema: its table, key, form, meaning, and default as it is written."""

    table: str
    key: str
    form: Form
    meaning: str
    written: object


def schema() -> Iterator[tuple[str, str, tuple[SchemaLine, ...]]]:
    """Each table with what it is about, and its lines."""
    for section in fields(Policy):
        table = key_of(section.name)
        kind = type(section.default)
        lines = (SchemaLine(table, key_of(one.name), **one.metadata) for one in fields(cast(Any, kind)))
        yield table, (kind.__doc__ or "").strip(), tuple(lines)


# Parsing.

LONGEST_INTERVAL_S = 300.0
"""Longest time between two looks: evidence needs several."""

RULES: tuple[tuple[str, str, str], ...] = (
    ("care", "interval", "looks-apart"),
    ("broker-gone", "tell-after", "propose-after"),
    ("broker-gone", "propose-after", "act-after"),
    ("disk-fills", "tell-share", "propose-share"),
    ("disk-fills", "propose-share", "urgent-share"),
    ("disk-fills", "urgent-within", "tell-within"),
    ("budget", "bytes-per-day", "bytes-per-week"),
)
"""Lines of a table of which the first may not be more than the second."""


def parse_policy(text: str, name: str) -> Policy:
    """Parse a policy file; `name` is that of the file.

    Raises InputError with file, key, value and what is allowed, of all lines that are wrong.
    """
    if not text.strip():
        raise InputError(f"{name} is empty: a policy that only tells is the line `[care]`")
    try:
        document = read_toml(text)
    except ValueError as error:
        raise InputError(f"{name}: this is not TOML: {error}") from error
    sections = {key_of(one.name): one for one in fields(Policy)}
    problems = list(_strangers(name, document, sections, "table"))
    tables = {
        one.name: _section(f"{name}: [{key}]", document.get(key, {}), type(one.default), problems)
        for key, one in sections.items()
    }
    found = Policy(**tables)
    problems += _contradictions(name, found)
    if len(problems) > 1:
        items = (one.removeprefix(f"{name}: ") for one in problems)
        raise InputError("\n  - ".join((f"{name}: {len(problems)} mistakes:", *items)))
    if problems:
        raise InputError(problems[0])
    return found


def _contradictions(name: str, found: Policy) -> Iterator[str]:
    """Sentences about lines that do not fit together."""
    clients = found.clients
    try:
        guards = [one for one in (clients.guard, found.write_times) if one is not None]
        has_address = clients.url or clients.login or clients.ca
        if has_address and not any(one.queries for one in guards):
            ClientGuard((), clients.url or None, clients.login or None, clients.ca or None)
    except InputError as error:
        yield f"{name}: [clients]: {error}"
    for table, less, more in RULES:
        section = found.section(table)
        low, high = (getattr(section, field_of(key)) for key in (less, more))
        if low > high:
            form = next(one.metadata["form"] for one in fields(section) if key_of(one.name) == less)
            yield (
                f"{name}: [{table}]: {less!r} is {form.show(low)}, more than {more!r} with {form.show(high)}; it must "
                "be at most that"
            )
    if not 0 < found.care.interval <= LONGEST_INTERVAL_S:
        shown = format_seconds(found.care.interval)
        most = format_seconds(LONGEST_INTERVAL_S)
        yield f"{name}: [care]: 'interval' is {shown}; it must be more than 0 and at most {most}"
    if not found.approvals.allowed_signers and (asking := [one for one in Kind if found.level(one) is Level.ASK]):
        yield f"{name}: [{asking[0]}] has level = \"ask\", and [approvals] has no 'allowed-signers'"


def _section(where: str, table: object, kind: Any, problems: list[str]) -> Any:
    """A table of the policy, with defaults in place of lines that are wrong."""
    if not isinstance(table, dict):
        problems.append(f"{where} is {shown_value(table)}; it must be a table")
        return kind()
    lines = {key_of(one.name): one for one in fields(kind)}
    problems += _strangers(where, table, lines, "key")
    values = {}
    for key, line in lines.items():
        if key in table:
            try:
                values[line.name] = _value(where, key, table[key], line)
            except InputError as error:
                problems.append(str(error))
    return kind(**values)


def _value(where: str, key: str, value: object, line: Field[Any]) -> object:
    form: Form = line.metadata["form"]
    try:
        return form.parse(value)
    except InputError as error:
        why = f" ({error})" if str(error) else ""
        raise InputError(f"{where}: {key!r} is {shown_value(value)}{why}; it must be {form.allowed}") from error


def _strangers(where: str, table: Mapping[str, object], known: Mapping[str, object], what: str) -> Iterator[str]:
    for key in (one for one in table if one not in known):
        near = get_close_matches(key, list(known), n=1)
        hint = f" (did you mean {near[0]!r}?)" if near else f"; there are {', '.join(known)}"
        yield f"{where}: there is no {what} {key!r}{hint}"


# What a policy says, in sentences.

_LEVELS: Mapping[Level, str] = MappingProxyType({
    Level.TELL: "only told",
    Level.PROPOSE: "told, and a repair is planned with its cost, for people to run",
    Level.ASK: "told, and repaired by the autopilot when the proposal is approved and all gates are open",
    Level.ACT: "repaired by the autopilot itself when all gates are open",
})  # fmt: skip


def explained(policy: Policy) -> Iterator[str]:
    """What the policy lets happen, a sentence each; lines that differ from their defaults are marked."""
    acting = [kind for kind in Kind if policy.level(kind) is Level.ACT]
    if acting:
        yield f"The autopilot changes the cluster by itself for {', '.join(acting)}; for nothing else."
    else:
        yield 'The autopilot changes nothing by itself: no kind of finding has level = "act".'
    if asking := [kind for kind in Kind if policy.level(kind) is Level.ASK]:
        least = counted(policy.approvals.least, "approval")
        yield f"It changes the cluster after {least} for {', '.join(asking)}."
    for kind in Kind:
        section = policy.section(kind)
        about = (type(section).__doc__ or "").strip()
        what = "only told, and stops all repairs" if kind is Kind.MANY_GONE else _LEVELS[policy.level(kind)]
        yield f"{kind} ({about[0].lower()}{about[1:].rstrip('.')}): {what}. {_lines(section)}"
    for name in ("runs", "loads", "clients", "budget", "approvals", "messages", "care"):
        yield f"{name}: {_lines(policy.section(name))}"


def _lines(section: Any) -> str:
    return "; ".join(
        f"{one.metadata['meaning'][0].lower()}{one.metadata['meaning'][1:]}: "
        f"{one.metadata['form'].show(getattr(section, one.name))}"
        + ("" if one.default is not MISSING and getattr(section, one.name) == one.default else " (set)")
        for one in fields(section)
        if one.name != "level"
    )


def differences(policy: Policy, other: Policy) -> Iterator[tuple[str, str, str, str]]:
    """Lines in which two policies differ: table, key, and both values as they are written."""
    for table, _, lines in schema():
        for line in lines:
            values = (getattr(one.section(table), field_of(line.key)) for one in (policy, other))
            here, there = map(line.form.show, values)
            if here != there:
                yield table, line.key, here, there
