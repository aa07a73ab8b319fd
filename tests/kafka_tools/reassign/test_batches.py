"""Partitions of each step: the vectors of KIP-1335, and laws of any plan."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kreassign.kafka_tools.command_line import UsageError, parse
from kreassign.kafka_tools.reassign.options import (
    OPTIONS,
    BatchOptions,
    BatchQueue,
    MoveState,
    choose_action,
    move_states,
    out_of_sync,
)
from kreassign.kafka_tools.reassign.requests import ExecuteRequest, read_request
from kreassign.kafka_tools.reassign_partitions import main
from kreassign.model import Partition, TopicPartition

A_0, A_1, B_1, Z_0 = (TopicPartition(*key) for key in (("a", 0), ("a", 1), ("b", 1), ("z", 0)))
P = [TopicPartition("p", number) for number in range(1, 11)]


def batches(partitions: list[TopicPartition], size: int) -> list[tuple[TopicPartition, ...]]:
    """The steps of a plan when each is complete before the next."""
    queue = BatchQueue(partitions, BatchOptions(size))
    found = [queue.next_batch()]
    while queue.waiting:
        found.append(queue.next_batch(set(queue.in_flight)))
    return found


@pytest.mark.parametrize(("partitions", "size", "expected"), [
    ([B_1, A_0, A_1], 0, [(A_0, A_1, B_1)]),
    ([B_1, A_0, A_1], 50, [(A_0, A_1, B_1)]),
    ([B_1, A_0, A_1], 2, [(A_0, A_1), (B_1,)]),
    ([Z_0, B_1, A_0], 2, [(A_0, B_1), (Z_0,)]),
])  # fmt: skip
def test_steps_go_by_topic_and_partition(
    partitions: list[TopicPartition], size: int, expected: list[tuple[TopicPartition, ...]]
) -> None:
    assert batches(partitions, size) == expected


def test_ten_partitions_in_batches_of_three() -> None:
    """The example of KIP-1335, not incremental: if P3 is slow, P4 cannot start."""
    assert batches(P, 3) == [tuple(P[0:3]), tuple(P[3:6]), tuple(P[6:9]), (P[9],)]
    queue = BatchQueue(P, BatchOptions(3))
    assert queue.next_batch() == tuple(P[0:3])
    assert queue.next_batch({P[0], P[1]}) == ()
    assert queue.in_flight == (P[2],)
    assert queue.next_batch({P[2]}) == tuple(P[3:6])


def test_ten_partitions_incrementally_by_three() -> None:
    """The example of KIP-1335, incremental: if P2 is done first, P4 starts while P1 and P3 still run."""
    queue = BatchQueue(P, BatchOptions(3, is_incremental=True))
    assert queue.next_batch() == tuple(P[0:3])
    assert queue.next_batch({P[1]}) == (P[3],)
    assert queue.in_flight == (P[0], P[2], P[3])
    assert queue.next_batch() == ()
    assert queue.next_batch({P[0], P[3]}) == (P[4], P[5])


@given(
    st.sets(st.builds(TopicPartition, st.sampled_from("abc"), st.integers(0, 20)), min_size=1),
    st.integers(1, 6),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_every_partition_is_submitted_once_and_few_at_a_time(
    partitions: set[TopicPartition], size: int, is_incremental: bool, random: Random
) -> None:
    queue = BatchQueue(partitions, BatchOptions(size, is_incremental))
    submitted = list(queue.next_batch())
    while queue.waiting:
        assert 0 < len(queue.in_flight) <= size
        done = {queue.in_flight[random.randrange(len(queue.in_flight))]}
        submitted += queue.next_batch(done)
    assert submitted == sorted(partitions)


def at(key: TopicPartition, replicas: tuple[int, ...], isr: tuple[int, ...] = (1, 2, 0)) -> Partition:
    return Partition(key, replicas, isr, replicas[0])


def test_a_partition_is_done_when_it_rests_on_its_target() -> None:
    targets = dict.fromkeys((A_0, A_1, B_1, Z_0), (1, 2))
    found = move_states(targets, {A_0}, {A_0: at(A_0, (1, 2, 0)), A_1: at(A_1, (1, 2)), B_1: at(B_1, (2, 1))})
    assert found == {A_0: MoveState.MOVING, A_1: MoveState.COMPLETE, B_1: MoveState.ELSEWHERE, Z_0: MoveState.ELSEWHERE}


def test_a_partition_on_its_target_but_out_of_sync_is_lagging() -> None:
    found = {key: at(key, (1, 2), isr) for key, isr in ((A_0, (1,)), (A_1, (2, 1)), (B_1, ()))}
    assert move_states(dict.fromkeys(found, (1, 2)), set(), found) == {
        A_0: MoveState.LAGGING,
        A_1: MoveState.COMPLETE,
        B_1: MoveState.LAGGING,
    }
    assert [out_of_sync(partition) for partition in found.values()] == [(2,), (), (1, 2)]


EXECUTE = "--bootstrap-server a:1 --execute --reassignment-json-file plan"


@pytest.mark.parametrize(("words", "message"), [
    ("--reassignment-batch-size -1", "must not be negative, but is -1"),
    ("--incremental", "Incremental partition reassignment requires reassignment-batch-size > 0"),
    ("--incremental --reassignment-batch-size 0", "requires reassignment-batch-size > 0"),
    ("--reassignment-batch-size 1 --reassignment-poll-interval-ms 0", "must be greater than 0, but is 0"),
    (f"--reassignment-batch-size 1 --reassignment-poll-interval-ms {2**63 - 1}", "must be at most 2147483647, but"),
    ("--reassignment-batch-size 1 --reassignment-poll-interval-ms -5", "must be greater than 0, but is -5"),
    ("--reassignment-batch-size 1 --reassignment-wait-timeout-ms 0", "must be greater than 0, but is 0"),
    ("--reassignment-poll-interval-ms 0", "must be greater than 0, but is 0"),
    ("--reassignment-wait-timeout-ms 5", "requires reassignment-batch-size > 0"),
    ("--reassignment-require-isr --reassignment-batch-size 0", "requires reassignment-batch-size > 0"),
])  # fmt: skip
def test_what_makes_no_sense_is_rejected_with_the_arguments(words: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        choose_action(parse(OPTIONS, f"{EXECUTE} {words}".split()))


@pytest.mark.parametrize("size", [(), ("--reassignment-batch-size", "0")], ids=["no size", "size 0"])
def test_an_interval_without_batches_is_legacy(size: tuple[str, ...], tmp_path: Path) -> None:
    """KIP-1335 rejects no interval beside a batch size of 0, which "preserves legacy behavior"."""
    plan = tmp_path / "plan.json"
    plan.write_text('{"version":1,"partitions":[{"topic":"a","partition":0,"replicas":[1]}]}', encoding="utf-8")
    words = ("--bootstrap-server", "a:1", "--execute", "--reassignment-json-file", str(plan))
    options = parse(OPTIONS, (*words, *size, "--reassignment-poll-interval-ms", "500"))
    request = read_request(choose_action(options), options)
    assert isinstance(request, ExecuteRequest)
    assert (request.batches.batch_size, request.batches.poll_interval_ms, request.beside) == (0, 500, None)


NUMBERS = ("reassignment-batch-size", "reassignment-poll-interval-ms", "reassignment-wait-timeout-ms")


@pytest.mark.parametrize("value", ["x", "1.5", "", "9223372036854775808"])
@pytest.mark.parametrize("option", NUMBERS)
def test_a_value_that_is_no_number_is_a_wrong_usage(
    option: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*EXECUTE.split(), f"--{option}", value]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"Cannot parse argument '{value}' of option {option}\nOption  ")


def test_a_batch_size_has_the_32_bits_of_an_integer(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*EXECUTE.split(), "--reassignment-batch-size", "2147483648"]) == 1
    assert capsys.readouterr().err.startswith("Cannot parse argument '2147483648' of option reassignment-batch-size\n")


@pytest.mark.parametrize("option", NUMBERS)
def test_a_number_that_is_given_twice_is_a_wrong_usage(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*EXECUTE.split(), f"--{option}", "1", f"--{option}", "2"]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"Found multiple arguments for option {option}, but you asked for only one\nOption  ")


@pytest.mark.parametrize("option", ["reassignment-batch-size", "incremental", "reassignment-poll-interval-ms"])
@pytest.mark.parametrize("action", [
    "--list",
    "--generate --topics-to-move-json-file t --broker-list 1",
    "--verify --reassignment-json-file p",
    "--cancel --reassignment-json-file p",
])  # fmt: skip
def test_pacing_goes_with_execute_only(option: str, action: str) -> None:
    value = "" if option == "incremental" else "3"
    with pytest.raises(UsageError, match=rf"\[{option}\]\" can't be used with action"):
        choose_action(parse(OPTIONS, f"--bootstrap-server a:1 {action} --{option} {value}".split()))
