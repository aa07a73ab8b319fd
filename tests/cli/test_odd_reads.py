"""One odd answer to any read of any command: a second look makes up for it, or the command refuses, or it is told.

`READS` lists what each command reads; a read that is added fails the first test until it stands there, and then is
tried with every kind of odd answer by the others. What is odd is one answer only: of a node that hangs up, that has not
read the metadata yet, that shows the cluster before the last change, or that refuses.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from click.testing import Result

from kreassign.model.error_codes import CLUSTER_AUTHORIZATION_FAILED, KAFKA_STORAGE_ERROR, UNKNOWN_SERVER_ERROR
from kreassign.twin.api.connection import AffectedResponses, Execute, Refused, ResponseFaults
from kreassign.twin.api.request import Request
from kreassign.twin.cluster import Twin
from kreassign.wire import api
from kreassign.wire.api import Api, Message
from tests.cli.test_permissions import NEEDS, WITH_SPARK, serving_everything

LOOK = (
    api.DESCRIBE_CLUSTER, api.DESCRIBE_CONFIGS, api.DESCRIBE_LOG_DIRS, api.DESCRIBE_TOPIC_PARTITIONS,
    api.LIST_PARTITION_REASSIGNMENTS, api.METADATA,
)  # fmt: skip
MEASURED = (*LOOK, api.LIST_OFFSETS)
NAMEABLE = (api.CREATE_TOPICS,)
"""Asks, by a topic that is only validated, whether changed lists may name a cordoned broker."""
RECORD = (api.FIND_COORDINATOR, api.OFFSET_FETCH)
"""The record of brokers in maintenance."""
LEASED = (*RECORD, api.DESCRIBE_GROUPS)
"""And the lease: who holds it."""
READS: dict[str, tuple[Api, ...]] = {
    "snapshot": (*MEASURED, *RECORD),
    "collect": MEASURED,
    "plan check": (api.DESCRIBE_CLUSTER, api.DESCRIBE_TOPIC_PARTITIONS, api.LIST_PARTITION_REASSIGNMENTS, api.METADATA),
    "plan import": (*MEASURED, *RECORD),
    "plan rebalance": (*MEASURED, *RECORD),
    "plan restore": (*MEASURED, *RECORD),
    "run": (*MEASURED, *LEASED),
    "run without a throttle": (*MEASURED, *LEASED),
    "run within brokers": (*LOOK, *LEASED),
    "rollback": (*MEASURED, *LEASED),
    "maintenance enter": (*LOOK, *NAMEABLE, *RECORD),
    "maintenance exit": (*LOOK, *NAMEABLE, *RECORD),
    "decommission": (*MEASURED, *NAMEABLE, *LEASED),
    "decommission, called off": (*LOOK, api.FIND_COORDINATOR),
    "verify": LOOK,
    "doctor": (*LOOK, *LEASED),
    "autopilot watch": (*LOOK, *LEASED),
    "autopilot why": (*LOOK, *LEASED),
    "throttle with --remove-left": (
        *(one for one in LOOK if one is not api.DESCRIBE_LOG_DIRS), api.FIND_COORDINATOR, api.DESCRIBE_GROUPS
    ),
}  # fmt: skip
"""Of plans that are searched only one: all of them read the same, which the first test holds."""
NO_READS = {
    api.API_VERSIONS, api.ALTER_PARTITION_REASSIGNMENTS, api.ALTER_REPLICA_LOG_DIRS, api.ELECT_LEADERS,
    api.INCREMENTAL_ALTER_CONFIGS, api.JOIN_GROUP, api.SYNC_GROUP, api.HEARTBEAT, api.LEAVE_GROUP, api.OFFSET_COMMIT,
}  # fmt: skip
TOLD = re.compile(
    r"could not be|cannot be|is not known|does not answer|has not answered|passed over|UNREAD|PERMISSION|LOG-DIR"
    r"|warning:|^wait: "
)
"""What was not read is named, or looked at again after a wait."""


Odd = Callable[["Noted", Request, Execute], Message | None]
"""Makes the odd answer to a request; None hangs up."""


def silent(_noted: Noted, _request: Request, _execute: Execute) -> None:
    pass


def empty(noted: Noted, request: Request, execute: Execute) -> Message:
    noted.twin.views.forget(None, request.called.key)
    try:
        return execute(request)
    finally:
        noted.twin.views.release(None, request.called.key)


def stale(noted: Noted, request: Request, execute: Execute) -> Message:
    return execute(replace(request, cluster=noted.past or noted.twin))


def refused(code: int) -> Odd:
    return lambda _noted, request, execute: Refused(code).meet(request, execute)


ODD: dict[str, Odd] = {
    "silent": silent,
    "empty": empty,
    "stale": stale,
    "refused": refused(UNKNOWN_SERVER_ERROR),
    "denied": refused(CLUSTER_AUTHORIZATION_FAILED),
}
CODES = (3, 5, 6, 7, 13, 14, 29, 35, 41, 42, 56, 58)
"""Further codes of refusals."""
TURNS = 12
"""Answers of each kind of read that are made odd: a run reads some kinds a hundred times."""
INTERRUPTED = 130
WRITES = {
    api.ALTER_PARTITION_REASSIGNMENTS,
    api.ALTER_REPLICA_LOG_DIRS,
    api.ELECT_LEADERS,
    api.INCREMENTAL_ALTER_CONFIGS,
}


@dataclass
class Noted:
    """Counts the answers of each API, and makes one of them odd; `past` is the cluster before the last change."""

    twin: Twin
    asked: Api | None = None
    odd: Odd | None = None
    turn: int = 0
    counts: Counter[Api] = field(default_factory=Counter)
    past: Twin | None = None

    def meet(self, request: Request, execute: Execute) -> Message | None:
        """Answer a request."""
        self.counts[request.called] += 1
        if request.called == self.asked and self.odd and self.counts[request.called] == self.turn:
            return self.odd(self, request, execute)
        if self.odd is stale and request.called in WRITES:
            return self._changed(request, execute)
        return execute(request)

    def _changed(self, request: Request, execute: Execute) -> Message:
        before = self._copy()
        answer = execute(request)
        if self.twin.metadata.offset != before.metadata.offset:
            self.past = before
        return answer

    def _copy(self) -> Twin:
        """The cluster as it is now, without this: what would note would be copied as well."""
        faults, self.twin.response_faults = self.twin.response_faults, ResponseFaults()
        try:
            return deepcopy(self.twin)
        finally:
            self.twin.response_faults = faults


@dataclass(frozen=True)
class Outcome:
    """Result of a command: its exit code, its output without what differs each time, and the cluster afterwards."""

    code: int
    words: tuple[str, ...]
    cluster: str
    was: str = field(compare=False)
    counts: Counter[Api] = field(compare=False)

    def is_fine_beside(self, whole: Outcome) -> str | None:
        """Sentence about the difference from `whole` after one odd answer; None if there is none."""
        if self == whole:
            return None
        told = [line for line in self.words if line not in whole.words]
        if self.code == INTERRUPTED:
            return f"did not end by itself: {told}"
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
PROGRESS = re.compile(r"\s*\d+/\d+ moves, ")
"""How many lines of this there are depends on how quick the machine is."""


def outcome(name: str, folder: Path, asked: Api | None = None, odd: Odd | None = None, turn: int = 0) -> Outcome:
    """Give a command to a twin of its own, whose answer number `turn` of an API is odd."""
    need = NEEDS[name]
    with serving_everything(folder, with_groups=True) as given:
        noted: Noted = given.server.do(lambda twin: Noted(twin, odd=odd))
        given.server.do(lambda twin: twin.response_faults.add(noted, AffectedResponses(), hits_once=False))
        for words in need.before:
            assert given.give(words).exit_code == 0
        noted.asked, noted.turn = asked, turn
        noted.counts.clear()
        was = given.server.do(state)
        found: Result = given.give(need.words)
        lines = (line for line in found.output.splitlines() if not PROGRESS.match(line))
        words = tuple(sorted({CHANGING.sub("…", line).strip() for line in lines}))
        return Outcome(found.exit_code, words, given.server.do(state), was, noted.counts)


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


def test_every_command_that_reads_a_cluster_stands_in_the_table() -> None:
    searched = {name for name in NEEDS if name.startswith("plan ")}
    assert NEEDS.keys() - searched - WITH_SPARK == READS.keys() - searched


@pytest.mark.parametrize("name", READS)
def test_the_table_has_every_read_of_a_command(name: str, tmp_path: Path) -> None:
    assert {one.name for one in read(outcome(name, tmp_path).counts)} == {one.name for one in READS[name]}


Turns = Callable[[Api, int], Iterator[tuple[int, str, Odd]]]


def attacked(name: str, folder: Path, turns: Turns, reads: Sequence[Api] = ()) -> list[str]:
    """Sentences about odd answers to these reads (all, if none is named) that a command did not tell."""
    whole = outcome(name, folder / "whole")
    wrong = []
    for asked in reads or READS[name]:
        for turn, kind, odd in turns(asked, whole.counts[asked]):
            found = outcome(name, folder / f"{asked.name} {kind} {turn}", asked, odd, turn)
            if said := found.is_fine_beside(whole):
                wrong.append(f"{asked.name}, answer {turn} of {whole.counts[asked]}, {kind}: {said}")
    return wrong


def first(_asked: Api, _count: int) -> Iterator[tuple[int, str, Odd]]:
    """The first answer in every way but an old one, which differs from a new one only after a change."""
    return ((1, kind, odd) for kind, odd in ODD.items() if odd is not stale)


def first_with_every_code(_asked: Api, _count: int) -> Iterator[tuple[int, str, Odd]]:
    return ((1, f"refused with {code}", refused(code)) for code in CODES)


def spread(_asked: Api, count: int) -> Iterator[tuple[int, str, Odd]]:
    """Answers from the first to the last in every way; of the further codes one each, in turn."""
    for turn in sorted({1 + round(step * (count - 1) / (TURNS - 1)) for step in range(TURNS)}):
        code = CODES[turn % len(CODES)]
        for kind, odd in {**ODD, f"refused with {code}": refused(code)}.items():
            yield turn, kind, odd


@pytest.mark.parametrize("name", READS)
def test_the_first_odd_answer_permits_nothing(name: str, tmp_path: Path) -> None:
    assert attacked(name, tmp_path, first) == []


@pytest.mark.parametrize("name", [name for name, reads in READS.items() if api.DESCRIBE_LOG_DIRS in reads])
def test_a_directory_that_failed_in_one_answer_changes_nothing(name: str, tmp_path: Path) -> None:
    whole = outcome(name, tmp_path / "whole")
    # The broker answers, and leaves out what is in the directory.
    failed = outcome(name, tmp_path / "failed", api.DESCRIBE_LOG_DIRS, refused(KAFKA_STORAGE_ERROR), 1)
    assert failed == whole


@pytest.mark.parametrize("name", READS)
def test_no_code_of_a_first_refusal_permits_anything(name: str, tmp_path: Path) -> None:
    assert attacked(name, tmp_path, first_with_every_code) == []


@pytest.mark.parametrize(
    ("name", "asked"),
    [pytest.param(name, one, id=f"{name}-{one.name}") for name, reads in READS.items() for one in reads],
)
def test_no_odd_answer_permits_anything(name: str, asked: Api, tmp_path: Path) -> None:
    assert attacked(name, tmp_path, spread, [asked]) == []
