"""KIP-1335 on the twin: what the tool sends, when, and what it says."""

from __future__ import annotations

import pytest

from kreassign.kafka_tools.failures import TerseError
from kreassign.kafka_tools.reassign.batches import BatchOptions
from kreassign.model import ConfigResource, NewTopic, TopicPartition
from kreassign.model.throttle import FOLLOWER_THROTTLED_REPLICAS, move_map, rate_changes, topic_changes
from kreassign.twin.controller.reassignments import AlterReassignments, Target, TopicTargets, alter_reassignments
from kreassign.twin.controller.topics import TopicReference, delete_topics
from tests.kips.recorded_tool import Box, Targets
from tests.twin.asking import partition, twin

FOO = [TopicPartition("foo", number) for number in range(10)]
TARGETS: Targets = dict.fromkeys(reversed(FOO), (2, 1))
POLL_MS = 1_000


@pytest.fixture
def box() -> Box:
    return Box(twin({"foo": [[0, 1]] * 10, "bar": [[0, 1]]}))


def _at_end(box: Box) -> list[tuple[int, ...]]:
    box.twin.advance(600_000)
    return [partition(box.twin, "foo", number)[0] for number in range(10)]


def test_size_0_sends_the_whole_plan_in_one_request_and_looks_no_more(box: Box) -> None:
    box.execute(TARGETS, BatchOptions())
    assert box.steps == [tuple(FOO)]
    assert box.lists == 1
    assert _at_end(box) == [(2, 1)] * 10


def test_ten_partitions_in_batches_of_three(box: Box, capsys: pytest.CaptureFixture[str]) -> None:
    box.execute(TARGETS, BatchOptions(3))
    assert box.steps == [tuple(FOO[0:3]), tuple(FOO[3:6]), tuple(FOO[6:9]), (FOO[9],)]
    printed = capsys.readouterr().out.splitlines()
    assert [line for line in printed if line.startswith("Started")] == [
        "Started partition reassignments for foo-0,foo-1,foo-2 (3 of 10)",
        "Started partition reassignments for foo-3,foo-4,foo-5 (6 of 10)",
        "Started partition reassignments for foo-6,foo-7,foo-8 (9 of 10)",
        "Started partition reassignment for foo-9 (10 of 10)",
    ]
    assert printed[-1] == "Successfully started partition reassignments for " + ",".join(map(str, FOO))
    assert _at_end(box) == [(2, 1)] * 10


def test_one_by_one_each_partition_has_a_request_of_its_own(box: Box) -> None:
    box.execute(TARGETS, BatchOptions(1))
    assert box.steps == [(key,) for key in FOO]
    assert _at_end(box) == [(2, 1)] * 10


def test_a_batch_waits_for_all_of_the_one_before_and_the_last_is_not_waited_for(box: Box) -> None:
    box.execute(TARGETS, BatchOptions(5))
    first, second = (sent.at_ms for sent in box.world.sent if sent.api == "alter")
    assert second - first >= POLL_MS
    ongoing = box.client.list_partition_reassignments()
    assert ongoing.keys() == set(FOO[5:])


def test_three_partitions_by_two_need_two_requests_at_least_an_interval_apart(box: Box) -> None:
    box.execute(dict.fromkeys(FOO[:3], (2, 1)), BatchOptions(2))
    assert box.steps == [tuple(FOO[:2]), (FOO[2],)]
    first, second = (sent.at_ms for sent in box.world.sent if sent.api == "alter")
    assert second - first >= POLL_MS
    assert box.lists >= 3  # the guard, and at least two looks


def test_incrementally_never_more_than_the_cap_are_in_flight(box: Box) -> None:
    seen: list[int] = []
    box.twin.watch(lambda watched, _step: seen.append(len(watched.metadata.reassigning)))
    box.execute(TARGETS, BatchOptions(3, is_incremental=True))
    assert [key for step in box.steps for key in step] == FOO
    assert max(seen) == 3
    assert _at_end(box) == [(2, 1)] * 10


def test_incrementally_a_slow_partition_holds_up_no_other(box: Box) -> None:
    slow = move_map({}, {FOO[0]: (2, 1)}, {FOO[0]: (0, 1)})
    box.client.incremental_alter_configs(topic_changes(slow)).raise_if_any()
    box.client.incremental_alter_configs(rate_changes(range(4), 10_000)).raise_if_any()
    box.execute(TARGETS, BatchOptions(3, is_incremental=True))
    assert FOO[0] in box.client.list_partition_reassignments()
    assert [key for step in box.steps for key in step] == FOO


def test_incrementally_the_tool_returns_once_all_is_submitted(box: Box) -> None:
    box.execute(dict.fromkeys(FOO[:3], (2, 1)), BatchOptions(2, is_incremental=True))
    assert box.client.list_partition_reassignments()
    assert sorted(key for step in box.steps for key in step) == FOO[:3]


def test_a_refused_batch_ends_the_run_and_names_what_was_not_submitted(box: Box) -> None:
    def delete() -> None:
        box.twin.commit(delete_topics(box.twin.context, [TopicReference("zoo", None)]))

    # The topic is there when the plan is checked, and gone when its turn comes.
    box.client.create_topics([NewTopic("zoo", assignments=((0,), (0,)))]).raise_if_any()
    box.twin.at(box.twin.now_ms + 50, delete)
    zoo = [TopicPartition("zoo", number) for number in (0, 1)]
    with pytest.raises(TerseError) as caught:
        box.execute({FOO[0]: (2, 1), **dict.fromkeys(zoo, (1,))}, BatchOptions(1))
    assert str(caught.value).splitlines() == [
        "Error reassigning partition(s):",
        "zoo-0: Unable to find a topic named zoo.",
        "Not submitted: zoo-1",
    ]
    assert box.steps == [(FOO[0],), (zoo[0],)]


def test_a_partition_that_someone_else_moved_away_ends_the_run(box: Box) -> None:
    def interfere() -> None:
        targets = TopicTargets("foo", (Target(0, (3, 1)),))
        box.twin.commit(alter_reassignments(box.twin.context, AlterReassignments((targets,))))

    box.twin.at(box.twin.now_ms + 50, interfere)
    with pytest.raises(TerseError) as caught:
        box.execute(dict.fromkeys(FOO[:2], (2, 1)), BatchOptions(1, poll_interval_ms=100))
    assert str(caught.value).splitlines() == [
        "There is no active reassignment of partition foo-0, but replica set is 3,1 rather than 2,1.",
        "Not submitted: foo-1",
    ]


def test_a_deadline_ends_a_wait_that_the_document_would_never_end(box: Box) -> None:
    moves = move_map({}, {FOO[0]: (2, 1)}, {FOO[0]: (0, 1)})
    box.client.incremental_alter_configs(topic_changes(moves)).raise_if_any()
    box.client.incremental_alter_configs(rate_changes(range(4), 10_000)).raise_if_any()
    with pytest.raises(TerseError) as caught:
        box.execute(dict.fromkeys(FOO[:2], (2, 1)), BatchOptions(1, wait_timeout_ms=60_000))
    assert str(caught.value).splitlines() == [
        "Timed out after 60000 ms waiting for reassignment to complete: foo-0",
        "Not submitted: foo-1",
    ]
    assert box.steps == [(FOO[0],)]


def test_throttles_are_set_once_over_the_whole_plan_before_the_first_batch(box: Box) -> None:
    box.execute(TARGETS, BatchOptions(3), throttle=50_000_000)
    topic = ConfigResource.topic("foo")
    listed = box.client.describe_configs([topic])[topic][FOLLOWER_THROTTLED_REPLICAS].value
    assert listed == ",".join(f"{number}:2" for number in range(10))


def test_others_that_move_are_warned_of_if_that_is_wished_for(box: Box, capsys: pytest.CaptureFixture[str]) -> None:
    bar = TopicPartition("bar", 0)
    moves = move_map({}, {bar: (2, 1)}, {bar: (0, 1)})
    box.client.incremental_alter_configs(topic_changes(moves)).raise_if_any()
    box.client.incremental_alter_configs(rate_changes(range(4), 1_000)).raise_if_any()
    box.client.alter_partition_reassignments({bar: (2, 1)}).raise_if_any()
    box.execute({FOO[0]: (2, 1)}, BatchOptions(1), is_additional=True)
    assert capsys.readouterr().err == ""
    box.execute({FOO[1]: (2, 1)}, BatchOptions(1, warns_about_others=True), is_additional=True)
    warned = capsys.readouterr().err
    assert "in progress, which --reassignment-batch-size does not count" in warned
    assert "bar-0" in warned


def test_without_additional_a_running_reassignment_refuses_a_paced_plan_too(box: Box) -> None:
    moves = move_map({}, {FOO[0]: (2, 1)}, {FOO[0]: (0, 1)})
    box.client.incremental_alter_configs(topic_changes(moves)).raise_if_any()
    box.client.incremental_alter_configs(rate_changes(range(4), 1_000)).raise_if_any()
    box.client.alter_partition_reassignments({FOO[0]: (2, 1)}).raise_if_any()
    with pytest.raises(TerseError, match="existing partition assignment"):
        box.execute({FOO[1]: (2, 1)}, BatchOptions(1))
