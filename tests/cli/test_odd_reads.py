"""One odd answer to any read of any command: a second look makes up for it, or the command refuses, or it is told.

`READS` lists what each command reads; a read that is added fails the first test until it stands there, and then is
tried with every kind of odd answer by the others. What is odd is one answer only: of a node that hangs up, that has not
read the metadata yet, that shows the cluster before the last change, or that refuses. The last change is the command's
own, or before it made any, that of others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from kreassign.model.error_codes import CLUSTER_AUTHORIZATION_FAILED, KAFKA_STORAGE_ERROR, UNKNOWN_SERVER_ERROR
from kreassign.wire import api
from kreassign.wire.api import Api
from tests.cli.odd_answers import (
    INTERRUPTED_BY_CTRL_C,
    Command,
    Odd,
    Outcome,
    Shape,
    at_rest,
    empty,
    fault,
    outcome,
    refused,
    silent,
    stale,
    with_moves_of_others,
)
from tests.cli.test_permissions import ASKS_ITS_ID, ASKS_NONE, ELSEWHERE, NEEDS, RUN, SERVES, STATE, WITH_SPARK

ID = (api.DESCRIBE_CLUSTER, api.METADATA)
"""Which cluster it is."""
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
PLACES = (api.DESCRIBE_CLUSTER, api.DESCRIBE_TOPIC_PARTITIONS, api.LIST_PARTITION_REASSIGNMENTS, api.METADATA)
MOVES = (api.LIST_PARTITION_REASSIGNMENTS, api.METADATA)
SLOW_RUN = f"{RUN.replace('plan.json', 'slow.json')} --throttle 1GB/s"
INTERRUPTED_RUN = (fault("cut:3:1").inject, f"{INTERRUPTED_BY_CTRL_C}{SLOW_RUN}")
"""Its only move is to a broker that does not reach the leader."""
MOVE_OF_A_TOOL = (
    fault("cut:3:1").inject,
    "kafka-reassign-partitions --execute --additional --reassignment-json-file slow.json",
)
FURTHER = {
    "resume": Command(f"resume {STATE} --poll-interval 0.1", (*INTERRUPTED_RUN, fault("cut:3:1").recover)),
    "cancel": Command(f"cancel {STATE} --poll-interval 0.1", INTERRUPTED_RUN),
    "status": Command(f"status {STATE}", (RUN,)),
    "pause": Command(f"pause {STATE}", INTERRUPTED_RUN),
    "verify a run": Command(f"verify last {STATE}", (RUN,)),
    "home": Command("home"),
    "page cluster": Command("page cluster"),
    "page plan": Command("page plan"),
    "page preview": Command("page preview"),
    "tool list": Command("kafka-reassign-partitions --list"),
    "tool generate": Command(
        "kafka-reassign-partitions --generate --topics-to-move-json-file topics.json --broker-list 1,2,3"
    ),
    "tool execute": Command(
        "kafka-reassign-partitions --execute --reassignment-json-file plan.json --throttle 1000000000"
    ),
    "tool execute within brokers": Command("kafka-reassign-partitions --execute --reassignment-json-file dirs.json"),
    "tool verify": Command("kafka-reassign-partitions --verify --reassignment-json-file plan.json"),
    "tool verify within brokers": Command("kafka-reassign-partitions --verify --reassignment-json-file dirs.json"),
    "tool cancel": Command("kafka-reassign-partitions --cancel --reassignment-json-file slow.json", MOVE_OF_A_TOOL),
    "tool cancel all": Command("kafka-reassign-partitions --cancel --all", MOVE_OF_A_TOOL),
    "tool elect": Command("kafka-leader-election --election-type preferred --all-topic-partitions"),
    "tool elect preferred": Command("kafka-preferred-replica-election"),
    "tool topics list": Command("kafka-topics --list"),
    "tool topics describe": Command("kafka-topics --describe --topic t"),
    "tool topics create": Command("kafka-topics --create --topic new --replica-assignment 0:1,1:2"),
    "tool topics alter": Command(
        "kafka-topics --alter --topic t --partitions 5 --replica-assignment 0:1,1:2,2:0,3:0,1:0"
    ),
    "tool topics delete": Command("kafka-topics --delete --topic t"),
}
"""Commands that are not among those of `NEEDS`."""
COMMANDS = {name: Command(need.words, need.before) for name, need in NEEDS.items() if name not in WITH_SPARK} | FURTHER
SEARCHED = tuple(name for name in NEEDS if name.startswith("plan ") and name != "plan check")
READS: dict[str, tuple[Api, ...]] = {
    "snapshot": (*MEASURED, *RECORD),
    "collect": MEASURED,
    "plan check": PLACES,
    **dict.fromkeys(SEARCHED, (*MEASURED, *RECORD)),
    "run": (*MEASURED, *LEASED),
    "run without a throttle": (*MEASURED, *LEASED),
    "run within brokers": (*LOOK, *LEASED),
    "rollback": (*MEASURED, *LEASED),
    "resume": (*MEASURED, *LEASED),
    "cancel": (*MEASURED, *LEASED),
    "maintenance enter": (*LOOK, *NAMEABLE, *RECORD),
    "maintenance exit": (*LOOK, *NAMEABLE, *RECORD),
    "decommission": (*MEASURED, *NAMEABLE, *LEASED),
    "decommission, called off": (*LOOK, *RECORD),
    "verify": LOOK,
    "verify a run": LOOK,
    "doctor": (*LOOK, *LEASED),
    "autopilot watch": (*LOOK, *LEASED),
    "autopilot why": (*LOOK, *LEASED),
    "throttle with --remove-left": (
        *(one for one in LOOK if one is not api.DESCRIBE_LOG_DIRS), api.FIND_COORDINATOR, api.DESCRIBE_GROUPS
    ),
    "status": ID,
    "pause": ID,
    "home": (*PLACES, api.DESCRIBE_LOG_DIRS),
    "page cluster": (*MEASURED, *LEASED),
    "page plan": (*MEASURED, *RECORD),
    "page preview": (*LOOK, api.FIND_COORDINATOR, api.DESCRIBE_GROUPS),
    "tool list": MOVES,
    "tool generate": (*PLACES, api.DESCRIBE_LOG_DIRS),
    "tool execute": (*PLACES, api.DESCRIBE_LOG_DIRS),
    "tool execute within brokers": (*PLACES, api.DESCRIBE_LOG_DIRS),
    "tool verify": PLACES,
    "tool verify within brokers": (*PLACES, api.DESCRIBE_LOG_DIRS),
    "tool cancel": (*MOVES, api.DESCRIBE_CLUSTER),
    "tool cancel all": (*MOVES, api.DESCRIBE_CLUSTER, api.DESCRIBE_LOG_DIRS),
    "tool elect": (api.METADATA,),
    "tool elect preferred": (api.METADATA,),
    "tool topics list": (api.METADATA,),
    "tool topics describe": (*PLACES, api.DESCRIBE_CONFIGS),
    "tool topics create": (api.METADATA,),
    "tool topics alter": (api.METADATA, api.DESCRIBE_TOPIC_PARTITIONS),
    "tool topics delete": (api.METADATA,),
}  # fmt: skip
ODD: dict[str, Odd] = {
    "silent": silent,
    "empty": empty,
    "stale": stale,
    "refused": refused(UNKNOWN_SERVER_ERROR),
    "denied": refused(CLUSTER_AUTHORIZATION_FAILED),
}
REFUSALS = {code: refused(code) for code in (3, 5, 6, 7, 13, 14, 29, 35, 41, 42, KAFKA_STORAGE_ERROR, 58)}
"""Refusals with further codes."""
TURNS = 12
"""Answers of each kind of read that are made odd: a run reads some kinds a hundred times."""
NO_READS = {
    api.API_VERSIONS, api.ALTER_PARTITION_REASSIGNMENTS, api.ALTER_REPLICA_LOG_DIRS, api.ELECT_LEADERS,
    api.INCREMENTAL_ALTER_CONFIGS, api.JOIN_GROUP, api.SYNC_GROUP, api.HEARTBEAT, api.LEAVE_GROUP, api.OFFSET_COMMIT,
    api.CREATE_PARTITIONS, api.DELETE_TOPICS,
}  # fmt: skip
CREATES = {"tool topics create"}
"""The only command whose CreateTopics creates."""


def read(name: str, found: Outcome) -> set[str]:
    writes = NO_READS | ({api.CREATE_TOPICS} if name in CREATES else set())
    return {one.name for one in found.counts.keys() - writes}


def test_every_command_that_reads_a_cluster_stands_in_the_table() -> None:
    assert COMMANDS.keys() == READS.keys()
    pages = {"web"}
    assert pages == SERVES
    assert ELSEWHERE.keys() <= READS.keys()
    # They ask for the id by the same function as these two, and no more of a cluster.
    assert {"status", "pause"} <= ASKS_ITS_ID & READS.keys()
    assert not ASKS_NONE & READS.keys()


@pytest.mark.parametrize("name", READS)
def test_the_table_has_every_read_of_a_command(name: str, tmp_path: Path) -> None:
    assert read(name, outcome(COMMANDS[name], tmp_path)) == {one.name for one in READS[name]}


def test_a_warning_counts_only_if_it_names_what_was_not_read() -> None:
    whole = Outcome(0, ("done",), "lists", "lists", Counter())
    for warning, counts in (("something", False), ("log directories of broker 1", True)):
        warned = replace(whole, words=("done", f"warning: {warning} could not be read"))
        assert (warned.is_fine_beside(whole, api.DESCRIBE_LOG_DIRS, is_tool=False) is None) == counts


OF_ONE_BROKER = {
    api.DESCRIBE_CLUSTER, api.DESCRIBE_CONFIGS, api.DESCRIBE_TOPIC_PARTITIONS, api.LIST_PARTITION_REASSIGNMENTS,
}  # fmt: skip
"""Like Kafka's, our drop-in tools show what the broker that they ask, and its controller, know, however old that is."""


def is_shown_as_it_is(command: Command, asked: Api, odd: Odd) -> bool:
    """True also for a directory that a broker calls failed: replicas in it are in `any`, as Kafka's tools say."""
    has_failed = asked is api.DESCRIBE_LOG_DIRS and odd is REFUSALS[KAFKA_STORAGE_ERROR]
    return command.is_tool and (has_failed or (odd is stale and asked in OF_ONE_BROKER))


Turns = Callable[[Api, int], Iterator[tuple[int, str, Odd]]]


def attacked(
    name: str, folder: Path, turns: Turns, reads: Sequence[Api] = (), shape: Callable[[], Shape] = at_rest
) -> list[str]:
    """Sentences about odd answers to these reads (all, if none is named) that a command did not tell."""
    command = COMMANDS[name]
    whole = outcome(command, folder / "whole", shape=shape)
    wrong = []
    for asked in reads or READS[name]:
        for turn, kind, odd in turns(asked, whole.counts[asked]):
            if is_shown_as_it_is(command, asked, odd):
                continue
            found = outcome(command, folder / f"{asked.name} {kind} {turn}", asked, odd, turn, shape)
            if said := found.is_fine_beside(whole, asked, is_tool=command.is_tool):
                wrong.append(f"{asked.name}, answer {turn} of {whole.counts[asked]}, {kind}: {said}")
    return wrong


def first(_asked: Api, _count: int) -> Iterator[tuple[int, str, Odd]]:
    return ((1, kind, odd) for kind, odd in ODD.items())


def one_each(name: str) -> Turns:
    """The first answer to each read in one way, another with each read and command, so that all come up."""
    kinds, reads, offset = list(ODD.items()), READS[name], list(READS).index(name)
    odd = {asked: (1, *kinds[(offset + number) % len(kinds)]) for number, asked in enumerate(reads)}
    return lambda asked, _count: iter([odd[asked]])


def first_with_every_code(_asked: Api, _count: int) -> Iterator[tuple[int, str, Odd]]:
    return ((1, f"refused with {code}", odd) for code, odd in REFUSALS.items())


def spread(_asked: Api, count: int) -> Iterator[tuple[int, str, Odd]]:
    """Answers from the first to the last in every way; of the further codes one each, in turn."""
    further = list(REFUSALS.items())
    for turn in sorted({1 + round(step * (count - 1) / (TURNS - 1)) for step in range(TURNS)}):
        code, refusal = further[turn % len(further)]
        for kind, odd in {**ODD, f"refused with {code}": refusal}.items():
            yield turn, kind, odd


@pytest.mark.parametrize("name", READS)
def test_one_odd_answer_to_each_read_permits_nothing(name: str, tmp_path: Path) -> None:
    assert attacked(name, tmp_path, one_each(name)) == []


@pytest.mark.parametrize("name", READS)
def test_the_first_odd_answer_permits_nothing(name: str, tmp_path: Path) -> None:
    assert attacked(name, tmp_path, first) == []


WAITING = {
    "rollback", "resume", "cancel", "status", "pause", "verify a run", "maintenance enter", "maintenance exit",
    "decommission", "decommission, called off", "autopilot why",
}  # fmt: skip
"""They wait for the end of moves of others, or come after what does; and here these moves never end."""
BESIDE_MOVES = [name for name in READS if name not in WAITING]


@pytest.mark.parametrize("name", BESIDE_MOVES)
def test_the_first_odd_answer_permits_nothing_while_others_move(name: str, tmp_path: Path) -> None:
    assert attacked(name, tmp_path, first, shape=with_moves_of_others) == []


@pytest.mark.parametrize(
    "name", [name for name, reads in READS.items() if api.DESCRIBE_LOG_DIRS in reads and not COMMANDS[name].is_tool]
)
def test_a_directory_that_failed_in_one_answer_changes_nothing(name: str, tmp_path: Path) -> None:
    whole = outcome(COMMANDS[name], tmp_path / "whole")
    # The broker answers, and leaves out what is in the directory.
    failed = outcome(COMMANDS[name], tmp_path / "failed", api.DESCRIBE_LOG_DIRS, refused(KAFKA_STORAGE_ERROR), 1)
    assert failed == whole


@pytest.mark.parametrize("name", READS)
def test_no_code_of_a_first_refusal_permits_anything(name: str, tmp_path: Path) -> None:
    assert attacked(name, tmp_path, first_with_every_code) == []


EACH_READ = pytest.mark.parametrize(
    ("name", "asked"),
    [pytest.param(name, one, id=f"{name}-{one.name}") for name, reads in READS.items() for one in reads],
)


@EACH_READ
def test_no_odd_answer_permits_anything(name: str, asked: Api, tmp_path: Path) -> None:
    assert attacked(name, tmp_path, spread, [asked]) == []


@pytest.mark.parametrize("name", BESIDE_MOVES)
def test_no_odd_answer_permits_anything_while_others_move(name: str, tmp_path: Path) -> None:
    assert attacked(name, tmp_path, spread, shape=with_moves_of_others) == []
