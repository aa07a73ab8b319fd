"""Every field of every file that is read, with values that it cannot mean: an error of ours, whatever stands there.

What is accepted all the same (a zero, a name of digits) must be fit for what is made of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kreassign.admin.properties import client_settings, read_properties
from kreassign.errors import InputError
from kreassign.model.plan import Plan, format_plan, parse_election, parse_plan, parse_topics
from kreassign.model.plan_facts_json import parse_facts
from kreassign.model.proposals import parse_proposals
from kreassign.model.snapshot import parse_snapshot
from kreassign.operations.plan_inputs import inputs_of_snapshot
from kreassign.planner.problem.goals_file import parse_policy
from kreassign.planner.problem.policy import PlanPolicy
from kreassign.twin.blueprint import TYPICAL, blueprint_of
from kreassign.twin.cluster import Twin
from kreassign.twin.core import TwinSettings
from kreassign.twin.scenario import parse_scenario

LONG, HUGE = "9" * 400, "9" * 5_000
ENDLESS = ("NaN", "Infinity", "-Infinity", "1e400", LONG, HUGE)
ODD_JSON = (*ENDLESS, "9" * 25, "-1", "0", "1.5", r'"\ud800"', r'"\u0000"', r'"\u001b[2J"', '""', '"nan"', "null",
            "true", "[]", "{}")  # fmt: skip
ENDLESS_TOML = ("nan", "inf", "-inf", "1e400", LONG, HUGE)
ODD_TOML = (*ENDLESS_TOML, "9" * 25, "-1", "0", "1.5", r'"\u0000"', r'"\u001b[2J"', '""', '"nan"', '"inf"', "true",
            "[]", "{}")  # fmt: skip
MARK = "@odd@"


class Kind(NamedTuple):
    """A kind of file: a whole one, how it is read, and what is made of it."""

    text: str
    read: Callable[[str], Any]
    use: Callable[[Any], object] = lambda _: None


def use_snapshot(found: Any) -> None:
    inputs_of_snapshot(found, PlanPolicy(), "s")
    blueprint_of(found, TYPICAL)


PLAN = {"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [1, 2], "log_dirs": ["any", "/d"]}]}
FACTS = {
    "version": 1, "plan_id": "p", "input_hash": "h", "task": "rebalance", "cluster_id": "c", "snapshot_id": "s",
    "topic_ids": {"t": "x"}, "totals": {"moved_bytes": 1, "moves": 1, "leader_changes": 0, "gap": 0.5},
    "prediction": {"rate_bytes_per_s": 1.0, "seconds": 2.0, "longest_move_s": 1.0}, "remaining": ["r"], "loads": None,
    "brokers": [{"broker": 1, "before": {"disk": 1.0}, "after": {"disk": 1.0}}],
    "partitions": [{"topic": "t", "partition": 0, "replicas": [1], "size_bytes": 1,
                    "reasons": [{"goal": "disk", "source": 1, "amount": 1.0}]}],
}  # fmt: skip
SNAPSHOT = {
    "format": "kreassign-snapshot", "version": 1, "taken_ms": 1_767_225_600_000, "cluster_id": "c",
    "broker_defaults": {"num.io.threads": "8"},
    "brokers": [{"id": broker, "host": "h", "port": 9092, "rack": "a", "is_fenced": False, "configs": {"a": "b"},
                 "log_dirs": [{"path": "/d", "total_bytes": 1000, "usable_bytes": 500}]} for broker in (1, 2)],
    "topics": [{"name": "t", "topic_id": "AAAAAAAAAAAAAAAAAAAAAQ", "configs": {"retention.ms": "1000"}, "partitions": [
        {"replicas": [1, 2], "isr": [1, 2], "leader": 1, "leader_epoch": 1, "log_dirs": ["/d", "/d"],
         "sizes_bytes": [10, 10], "adding": [], "removing": [], "future_log_dirs": {}, "start_offset": 0,
         "end_offset": 10, "write_bytes_per_s": 1.5}]}],
}  # fmt: skip
PROPOSALS = {
    "proposals": [
        {"topicPartition": {"topic": "t", "partition": 0}, "oldLeader": 1, "oldReplicas": [1, 2], "newReplicas": [3, 2]}
    ]
}
SCENARIO = """
seed = 1
cluster_id = "c"
kafka_version = "4.3"

[[brokers]]
count = 3
first_id = 0
racks = [ "a" ]
network = "1 GB/s"
log_dirs = [ { count = 1, capacity = "1 TB", read = "1 GB/s", write = "1 GB/s" } ]
configs = { "num.io.threads" = "8" }
empty = false
down = false

[[topics]]
name = "t"
count = 1
partitions = 2
replication_factor = 2
size = "1 MB"
write_rate = "1 kB/s"
record_size = "100 B"
skew = 0.5
spread = 0.5
brokers = [ 0 , 1 ]

[[moves]]
topic = "t"
partitions = [ 0 ]
from = 0
to = 2
copied = 0.5

[throttle]
rate = "1 MB/s"
log_dir_rate = "1 MB/s"

[security]
users = { ann = "secret" }
super_users = [ "User:ann" ]
allow = [ { principal = "User:ann", operation = "ALTER" } ]

[[faults]]
kind = "slow"
at = "60s"
lasts = "10m"
broker = 1
path = "/data/1/d0"
factor = 0.1
"""
GOALS = """
tolerance = 10
racks = "even"
excluded-topics = [ "x" ]
excluded-brokers = [ 3 ]
disk-reserve = 5
reads-per-write = 2.0

[[goals]]
name = "disk"
tolerance = 5
weight = 2.0

[capacity]
disk = "2TB"

[broker-capacity.1]
disk = 5

[leader-racks]
"x.*" = [ "a" ]

[consumer-racks."x.*"]
a = 2

[rack-prices]
between = 0.01

[shares]
1 = 2.0

[least-topic-leaders]
t = 1

[broker-sets.a]
brokers = [ 1 ]
topics = [ "a.*" ]
"""


def election(text: str) -> object:
    return parse_election(text, missing="missing", empty="empty")


def plan_of(found: Any) -> None:
    format_plan(found if isinstance(found, Plan) else found.plan).encode()


JSON_FILES = {
    "plan": Kind(json.dumps(PLAN), parse_plan, plan_of),
    "topics to move": Kind(json.dumps({"version": 1, "topics": [{"topic": "t"}]}), parse_topics),
    "facts of a plan": Kind(json.dumps(FACTS), parse_facts),
    "snapshot": Kind(json.dumps(SNAPSHOT), lambda text: parse_snapshot(text, "s.json"), use_snapshot),
    "election": Kind(json.dumps({"partitions": [{"topic": "t", "partition": 0}]}), election),
    "proposals": Kind(json.dumps(PROPOSALS), parse_proposals, plan_of),
}
TOML_FILES = {
    "scenario": Kind(
        SCENARIO, lambda text: parse_scenario(text, "s.toml"), lambda found: Twin(found.blueprint, TwinSettings())
    ),
    "goals": Kind(GOALS, parse_policy),
}
MEANS_NOTHING_THERE = {"gap", "oldLeader"}
"""Fields that nobody reads."""


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of all values in a document that are no lists and no objects."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if items is None:
        yield path
    else:
        for key, one in items:
            yield from leaves(one, (*path, key))


def changed(value: Any, path: tuple[Any, ...], new: object) -> Any:
    """The document with another value in one place."""
    if not path:
        return new
    copy = value.copy()
    copy[path[0]] = changed(value[path[0]], path[1:], new)
    return copy


def with_odd_json(text: str, odd: tuple[str, ...]) -> Iterator[tuple[tuple[Any, ...], str, str]]:
    document = json.loads(text)
    for path in leaves(document):
        marked = json.dumps(changed(document, path, MARK))
        yield from ((path, value, marked.replace(f'"{MARK}"', value)) for value in odd)


_TOML_VALUE = re.compile(r"""(?<=[=\[,:] )("[^"]*"|[\d.]+|true|false)""")


def with_odd_toml(text: str, odd: tuple[str, ...]) -> Iterator[tuple[tuple[Any, ...], str, str]]:
    for match in _TOML_VALUE.finditer(text):
        place = (text.count("\n", 0, match.start()) + 1, match[0])
        yield from ((place, value, text[: match.start()] + value + text[match.end() :]) for value in odd)


def outcomes(
    kind: Kind, documents: Iterator[tuple[tuple[Any, ...], str, str]], endless: tuple[str, ...]
) -> Iterator[str]:
    """A line per document that is neither refused by name nor fit to be used."""
    for place, value, text in documents:
        try:
            kind.use(kind.read(text))
        except InputError as error:
            if not str(error).strip():
                yield f"{place} {value[:20]}: refused without a word"
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            yield f"{place} {value[:20]}: {error!r}"[:300]
        else:
            if value in endless and place[-1] not in MEANS_NOTHING_THERE:
                yield f"{place} {value[:20]}: accepted"


@pytest.mark.parametrize("kind", [*JSON_FILES, *TOML_FILES])
def test_the_files_are_whole(kind: str) -> None:
    chosen = {**JSON_FILES, **TOML_FILES}[kind]
    chosen.use(chosen.read(chosen.text))


@pytest.mark.thorough
@pytest.mark.parametrize("kind", JSON_FILES.values(), ids=JSON_FILES)
def test_a_field_of_json_is_refused_by_an_error_of_ours_or_means_something(kind: Kind) -> None:
    wrong = list(outcomes(kind, with_odd_json(kind.text, ODD_JSON), ENDLESS))
    assert not wrong, "\n".join(wrong)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", TOML_FILES.values(), ids=TOML_FILES)
def test_a_field_of_toml_is_refused_by_an_error_of_ours_or_means_something(kind: Kind) -> None:
    wrong = list(outcomes(kind, with_odd_toml(kind.text, ODD_TOML), ENDLESS_TOML))
    assert not wrong, "\n".join(wrong)


PROPERTIES = {
    "bootstrap.servers": "h:1", "client.id": "c", "default.api.timeout.ms": "1", "request.timeout.ms": "1",
    "retry.backoff.ms": "1", "socket.connection.setup.timeout.ms": "1", "security.protocol": "SASL_SSL",
    "sasl.mechanism": "PLAIN", "ssl.enabled.protocols": "TLSv1.3", "ssl.endpoint.identification.algorithm": "https",
    "sasl.jaas.config": 'x.PlainLoginModule required username="ann" password="secret";',
    "ssl.truststore.location": "/nowhere", "ssl.truststore.type": "PEM", "ssl.keystore.location": "/nowhere",
    "ssl.keystore.type": "PEM", "ssl.key.password": "secret",
}  # fmt: skip
ODD_PROPERTIES = ("nan", "inf", "1e400", HUGE, "-1", "0", "", r"\ud800", r"\u0000", r"\u001b[2J", "²", "/nowhere/x")
TIMES = {name for name in PROPERTIES if name.endswith(".ms")}


@pytest.mark.parametrize("name", PROPERTIES)
def test_a_property_is_refused_by_an_error_of_ours_or_means_something(tmp_path: Path, name: str) -> None:
    needed = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"} if name.startswith(("sasl", "ssl")) else {}
    if name.startswith(("sasl", "ssl")):
        needed["sasl.jaas.config"] = PROPERTIES["sasl.jaas.config"]
    if name.startswith("ssl."):
        needed |= {f"{name.rpartition('.')[0]}.{end}": PROPERTIES[f"{name.rpartition('.')[0]}.{end}"]
                   for end in ("type", "location") if f"{name.rpartition('.')[0]}.{end}" in PROPERTIES}  # fmt: skip
    file = tmp_path / "client.properties"
    for odd in ODD_PROPERTIES:
        file.write_text("".join(f"{key}={value}\n" for key, value in {**needed, name: odd}.items()))
        refusal = ""
        try:
            client_settings(read_properties(file), bootstrap_servers=None if "bootstrap" in name else "h:1")
        except InputError as error:
            refusal = str(error)
        must_be = (name in TIMES and odd != "0") or odd in {r"\ud800", r"\u0000"}
        assert refusal or not must_be, (name, odd)
        assert name in TIMES or "nowhere" not in refusal or name in refusal, refusal
        assert not must_be or name in refusal, refusal
