"""One odd answer to any read of any command: a second look makes up for it, or the command refuses, or it is told.

`READS` lists what each command reads; a read that is added fails the first test until it stands there, and then is
tried with every kind of odd answer by the others. What is odd is one answer only: of a node that hangs up, that has not
read the metadata yet, or that refuses.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import Result

from kreassign.model.error_codes import CLUSTER_AUTHORIZATION_FAILED, UNKNOWN_SERVER_ERROR
from kreassign.twin.api.connection import CLOSED, AffectedResponses, FailsOver, Refused, Reply
from kreassign.twin.api.handlers import HANDLERS_BY_KEY
from kreassign.twin.cluster import Twin
from kreassign.wire import api
from kreassign.wire.api import Api
from tests.cli.test_permissions import NEEDS, serving_everything

LOOK = (
    api.DESCRIBE_CLUSTER, api.DESCRIBE_CONFIGS, api.DESCRIBE_LOG_DIRS, api.DESCRIBE_TOPIC_PARTITIONS,
    api.LIST_PARTITION_REASSIGNMENTS, api.METADATA,
)  # fmt: skip
MEASURED = (*LOOK, api.LIST_OFFSETS)
READS: dict[str, tuple[Api, ...]] = {
    "snapshot": MEASURED,
    "plan check": (api.DESCRIBE_CLUSTER, api.DESCRIBE_TOPIC_PARTITIONS, api.LIST_PARTITION_REASSIGNMENTS, api.METADATA),
    "plan rebalance": MEASURED,
    "run": MEASURED,
    "run without a throttle": MEASURED,
    "run within brokers": LOOK,
    "rollback": MEASURED,
    "maintenance enter": LOOK,
    "maintenance exit": LOOK,
    "decommission": MEASURED,
    "decommission, called off": LOOK,
    "verify": LOOK,
    "doctor": LOOK,
}
"""Of plans only one: all of them read the same, which the first test holds."""
NO_READS = {
    api.API_VERSIONS, api.ALTER_PARTITION_REASSIGNMENTS, api.ALTER_REPLICA_LOG_DIRS, api.ELECT_LEADERS,
    api.INCREMENTAL_ALTER_CONFIGS, api.CREATE_TOPICS,
}  # fmt: skip
TOLD = re.compile(r"could not be|cannot be|is not known|passed over|UNREAD|PERMISSION|warning:")
"""What was not read is named."""


class Odd(NamedTuple):
    """An odd answer: what is done before it is made, and what comes instead."""

    before: Callable[[Twin, Api], None]
    instead: Callable[[Twin, Api, Reply], Reply]


def nothing(_twin: Twin, _asked: Api) -> None:
    pass


def as_it_is(_twin: Twin, _asked: Api, reply: Reply) -> Reply:
    return reply


def forgotten(twin: Twin, asked: Api) -> None:
    twin.views.forget(None, asked.key)


def known_again(twin: Twin, asked: Api, reply: Reply) -> Reply:
    twin.views.release(None, asked.key)
    return reply


def refusing(code: int) -> Callable[[Twin, Api], None]:
    return lambda twin, asked: twin.response_faults.add(Refused(code), AffectedResponses(asked.key), hits_once=True)


ODD = {
    "silent": Odd(nothing, lambda _twin, _asked, _reply: CLOSED),
    "empty": Odd(forgotten, known_again),
    "refused": Odd(refusing(UNKNOWN_SERVER_ERROR), as_it_is),
    "denied": Odd(refusing(CLUSTER_AUTHORIZATION_FAILED), as_it_is),
}


@dataclass
class Noted:
    """Counts the answers of one API, and makes one of them odd."""

    twin: Twin
    asked: Api
    odd: Odd | None = None
    turn: int = 0
    count: int = 0

    def __post_init__(self) -> None:
        self._prepare()

    def apply(self, controller: FailsOver, reply: Reply) -> Reply:
        """The answer as the client gets it."""
        del controller
        self.count += 1
        if self.odd and self.count == self.turn:
            return self.odd.instead(self.twin, self.asked, reply)
        self._prepare()
        return reply

    def _prepare(self) -> None:
        if self.odd and self.count == self.turn - 1:
            self.odd.before(self.twin, self.asked)


@dataclass(frozen=True)
class Outcome:
    """What came of a command: its exit code, its words but for what differs each time, and what the cluster is then."""

    code: int
    words: tuple[str, ...]
    cluster: str
    was: str = field(compare=False)
    counts: Counter[Api] = field(compare=False)

    def is_fine_beside(self, whole: Outcome) -> str | None:
        """What is wrong with it, if one answer was odd and `whole` came otherwise; None if nothing is."""
        if self == whole:
            return None
        told = [line for line in self.words if line not in whole.words]
        if self.code not in {0, whole.code}:
            named = any("error" in line or TOLD.search(line) for line in told)
            return None if named and self.cluster in {self.was, whole.cluster} else f"ended with {self.code}: {told}"
        if any(TOLD.search(line) for line in told) and self.cluster == whole.cluster:
            return None
        return f"went on as if all were known: {told}"


CHANGING = re.compile(
    r"\d{8}T\d{6}(\.\d+)?Z-\w+|127\.0\.0\.1:\d+|\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?|\d+:\d\d(:\d\d)?"
    r"|\(\d+ seconds? ago\)|\(just now\)|for [\d.]+ s only"
)
"""Runs, addresses and times."""


def outcome(name: str, folder: Path, asked: Api | None = None, odd: Odd | None = None, turn: int = 0) -> Outcome:
    """Give a command to a twin of its own, whose answer number `turn` of an API is odd."""
    need = NEEDS[name]
    with serving_everything(folder) as given:
        for words in need.before:
            assert given.give(words).exit_code == 0
        noted: dict[Api, Noted] = {}

        def begin(twin: Twin) -> str:
            for one in (handler.api for handler in HANDLERS_BY_KEY.values()):
                noted[one] = Noted(twin, one, *((odd, turn) if one == asked else ()))
                twin.response_faults.add(noted[one], AffectedResponses(one.key), hits_once=False)
            return state(twin)

        was = given.server.do(begin)
        found: Result = given.give(need.words)
        counts = Counter({one: noted[one].count for one in noted if noted[one].count})
        words = tuple(sorted({CHANGING.sub("…", line).strip() for line in found.output.splitlines()}))
        return Outcome(found.exit_code, words, given.server.do(state), was, counts)


def state(twin: Twin) -> str:
    """The replicas and the settings."""
    lists = [
        (str(one.topic_partition), one.replicas)
        for topic in twin.metadata.topics.values()
        for one in topic.partitions.values()
    ]
    configs = [(str(one), sorted(entries.items())) for one, entries in twin.metadata.configs.items() if entries]
    return f"{sorted(lists)} {sorted(configs)}"


def read(counts: Counter[Api]) -> set[Api]:
    return counts.keys() - NO_READS


@pytest.mark.parametrize("name", READS)
def test_the_table_has_every_read_of_a_command(name: str, tmp_path: Path) -> None:
    assert read(outcome(name, tmp_path).counts) == set(READS[name])


def attacked(name: str, folder: Path, turns: Callable[[int], Iterator[int]]) -> list[str]:
    whole = outcome(name, folder / "whole")
    wrong = []
    for asked in READS[name]:
        for kind, odd in ODD.items():
            for turn in turns(whole.counts[asked]):
                found = outcome(name, folder / f"{asked.name} {kind} {turn}", asked, odd, turn)
                if said := found.is_fine_beside(whole):
                    wrong.append(f"{asked.name}, answer {turn} of {whole.counts[asked]}, {kind}: {said}")
    return wrong


@pytest.mark.parametrize("name", READS)
def test_the_first_odd_answer_permits_nothing(name: str, tmp_path: Path) -> None:
    assert attacked(name, tmp_path, lambda _count: iter((1,))) == []


@pytest.mark.parametrize("name", READS)
def test_no_odd_answer_permits_anything(name: str, tmp_path: Path) -> None:
    assert attacked(name, tmp_path, lambda count: iter(range(1, count + 1))) == []
