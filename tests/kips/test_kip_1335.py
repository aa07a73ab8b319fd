"""KIP-1335 on the twin: what the tool sends, when, and what it says."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from itertools import pairwise
from pathlib import Path

import pytest

from kreassign.errors import OutcomeUnknown
from kreassign.kafka_tools.command_line import TerseError, ToolError
from kreassign.kafka_tools.reassign.actions import verify
from kreassign.kafka_tools.reassign.options import BatchOptions
from kreassign.kafka_tools.reassign.requests import ExecuteRequest, VerifyRequest
from kreassign.kafka_tools.reassign.tool_client import ToolClient
from kreassign.model import ConfigResource, NewTopic, TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan, parse_plan
from kreassign.model.throttle import (
    FOLLOWER_THROTTLED_RATE,
    FOLLOWER_THROTTLED_REPLICAS,
    LEADER_THROTTLED_RATE,
    LEADER_THROTTLED_REPLICAS,
    move_map,
    rate_changes,
    topic_changes,
)
from kreassign.twin import Twin
from kreassign.twin.controller.reassignments import AlterReassignments, Target, TopicTargets, alter_reassignments
from kreassign.twin.controller.topics import TopicReference, delete_topics
from kreassign.twin.faults import read_fault, schedule_faults
from tests.approved import approve
from tests.kips.recorded_tool import CONFIGURE, LIST, MOVE_DIRECTORIES, REASSIGN, Request, Targets, ToolOnTwin
from tests.twin.asking import partition, twin

FOO = [TopicPartition("foo", number) for number in range(10)]
TARGETS: Targets = dict.fromkeys(reversed(FOO), (2, 1))
POLL_MS = 1_000


@pytest.fixture
def tool() -> ToolOnTwin:
    return ToolOnTwin(twin({"foo": [[0, 1]] * 10, "bar": [[0, 1]]}))


def hold(tool: ToolOnTwin, *keys: TopicPartition) -> None:
    """Throttle moves of these partitions to brokers 2 and 1, so that they take minutes."""
    moves = move_map({}, dict.fromkeys(keys, (2, 1)), dict.fromkeys(keys, (0, 1)))
    tool.admin.incremental_alter_configs(topic_changes(moves)).raise_if_any()
    tool.admin.incremental_alter_configs(rate_changes(range(4), 1_000)).raise_if_any()


def _at_end(tool: ToolOnTwin) -> list[tuple[int, ...]]:
    tool.twin.advance(600_000)
    return [partition(tool.twin, "foo", number)[0] for number in range(10)]


def test_size_0_sends_the_whole_plan_in_one_request_and_polls_no_more(tool: ToolOnTwin) -> None:
    tool.execute(TARGETS, BatchOptions())
    assert tool.batches == [tuple(FOO)]
    assert len(tool.sent(LIST)) == 2, "an empty list is asked for once more"
    assert _at_end(tool) == [(2, 1)] * 10


def test_ten_partitions_in_batches_of_three(tool: ToolOnTwin, capsys: pytest.CaptureFixture[str]) -> None:
    tool.execute(TARGETS, BatchOptions(3))
    assert tool.batches == [tuple(FOO[0:3]), tuple(FOO[3:6]), tuple(FOO[6:9]), (FOO[9],)]
    approve(capsys.readouterr().out, "kip-1335-batches")
    assert _at_end(tool) == [(2, 1)] * 10


@pytest.mark.parametrize(("batch_size", "directories"), [(0, [2]), (1, [1, 1])])
def test_directories_are_named_once_after_the_batch_of_their_partition(
    tool: ToolOnTwin, batch_size: int, directories: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    tool.execute(dict.fromkeys(FOO[:2], (0, 1)), BatchOptions(batch_size), log_dirs=("any", "/data/1/d1"))
    order = [one.key for one in tool.transport.requests if one.key in (REASSIGN.key, MOVE_DIRECTORIES.key)]
    assert order == [REASSIGN.key, MOVE_DIRECTORIES.key] * len(directories)
    told = [line for line in capsys.readouterr().out.splitlines() if "started moving log directory" in line]
    assert len(told) == sum(directories)
    tool.twin.advance(600_000)
    holds = {log_dir.path: log_dir.replicas for log_dir in tool.admin.describe_log_dirs([1])[1]}
    assert {copy.topic_partition for copy in holds["/data/1/d1"]} >= set(FOO[:2])


def test_one_by_one_each_partition_has_a_request_of_its_own(tool: ToolOnTwin) -> None:
    tool.execute(TARGETS, BatchOptions(1))
    assert tool.batches == [(key,) for key in FOO]
    assert _at_end(tool) == [(2, 1)] * 10


def test_a_batch_waits_for_the_one_before_and_nothing_waits_for_the_last(tool: ToolOnTwin) -> None:
    tool.execute(TARGETS, BatchOptions(5))
    first, second = (request.at_ms for request in tool.sent(REASSIGN))
    assert second - first >= POLL_MS
    ongoing = tool.admin.list_partition_reassignments()
    assert ongoing.keys() == set(FOO[5:])


def test_three_partitions_by_two_need_two_requests(tool: ToolOnTwin) -> None:
    tool.execute(dict.fromkeys(FOO[:3], (2, 1)), BatchOptions(2))
    assert tool.batches == [tuple(FOO[:2]), (FOO[2],)]
    first, second = (request.at_ms for request in tool.sent(REASSIGN))
    assert second - first >= POLL_MS
    assert len(tool.sent(LIST)) >= 3  # the guard, and at least two polls


@pytest.mark.parametrize(("words", "interval_ms"), [
    ((), 1_000),
    (("--reassignment-poll-interval-ms", "250"), 250),
    (("--reassignment-poll-interval-ms", "7000"), 7_000),
], ids=["by default a second", "shorter", "longer"])  # fmt: skip
def test_the_polls_of_a_batch_are_exactly_the_interval_apart(
    tool: ToolOnTwin, tmp_path: Path, words: tuple[str, ...], interval_ms: int
) -> None:
    hold(tool, FOO[0])
    with pytest.raises(TerseError, match="Timed out after 30000 ms"):
        tool.execute_with_options(
            dict.fromkeys(FOO[:2], (2, 1)), tmp_path,
            "--reassignment-batch-size", "1", "--reassignment-wait-timeout-ms", "30000", *words,
        )  # fmt: skip
    _before_the_plan, _once_more, *polls = (request.at_ms for request in tool.sent(LIST))
    assert polls[-1] - polls[0] >= 30_000
    assert {later - earlier for earlier, later in pairwise(polls)} == {interval_ms}


def test_incrementally_never_more_than_the_cap_are_in_flight(tool: ToolOnTwin) -> None:
    seen: list[int] = []
    tool.twin.watch(lambda watched, _step: seen.append(len(watched.metadata.reassigning)))
    tool.execute(TARGETS, BatchOptions(3, is_incremental=True))
    assert [key for batch in tool.batches for key in batch] == FOO
    assert max(seen) == 3
    assert _at_end(tool) == [(2, 1)] * 10


@pytest.mark.parametrize(
    ("batches", "started"), [(BatchOptions(3, wait_timeout_ms=30_000), FOO[:3]),
                             (BatchOptions(3, is_incremental=True, wait_timeout_ms=30_000), FOO)],
    ids=["a batch waits for it", "incrementally it holds up no other"],
)  # fmt: skip
def test_a_slow_partition_holds_up_only_the_batch_that_it_is_in(
    tool: ToolOnTwin, batches: BatchOptions, started: list[TopicPartition]
) -> None:
    """The document's choice: "clear step boundaries" or "less head-of-line blocking"."""
    hold(tool, FOO[2])
    with nullcontext() if batches.is_incremental else pytest.raises(TerseError, match="Timed out after 30000 ms"):
        tool.execute(TARGETS, batches)
    assert [key for batch in tool.batches for key in batch] == started
    assert FOO[2] in tool.admin.list_partition_reassignments()


def test_list_and_verify_show_the_waves_of_a_large_plan(capsys: pytest.CaptureFixture[str]) -> None:
    tool = ToolOnTwin(twin({"large": [[0, 1]] * 60}))
    large = [TopicPartition("large", number) for number in range(60)]
    plan = Plan(tuple(PartitionAssignment(key, (2, 1)) for key in large))
    watching, waves = ToolClient(tool.admin, through_controllers=False), list[tuple[int, int, int]]()

    def watch(request: Request) -> None:
        if request.key == REASSIGN.key:
            capsys.readouterr()
            verify(watching, VerifyRequest(plan, preserves_throttles=True))
            said = capsys.readouterr().out
            waves.append((len(watching.reassignments()), said.count("in progress"), said.count("is completed")))

    tool.transport.after = watch
    tool.execute(dict.fromkeys(large, (2, 1)), BatchOptions(25))
    assert waves == [(25, 25, 0), (25, 25, 25), (10, 10, 50)]


def test_incrementally_the_tool_returns_once_all_is_submitted(tool: ToolOnTwin) -> None:
    tool.execute(dict.fromkeys(FOO[:3], (2, 1)), BatchOptions(2, is_incremental=True))
    assert tool.admin.list_partition_reassignments()
    assert sorted(key for batch in tool.batches for key in batch) == FOO[:3]


def test_a_refused_batch_ends_the_run_and_names_what_was_not_submitted(tool: ToolOnTwin) -> None:
    def delete() -> None:
        tool.twin.commit(delete_topics(tool.twin.context, [TopicReference("zoo", None)]))

    # The topic is there when the plan is checked, and gone when its turn comes.
    tool.admin.create_topics([NewTopic("zoo", assignments=((0,), (0,)))]).raise_if_any()
    tool.twin.schedule(tool.twin.now_ms + 50, delete)
    zoo = [TopicPartition("zoo", number) for number in (0, 1)]
    with pytest.raises(TerseError) as caught:
        tool.execute({FOO[0]: (2, 1), **dict.fromkeys(zoo, (1,))}, BatchOptions(1))
    approve([caught.value], "kip-1335-refused")
    assert tool.batches == [(FOO[0],), (zoo[0],)]


def _move_by_others(
    tool: ToolOnTwin, target: tuple[int, ...] | None, after_ms: int, key: TopicPartition = FOO[0]
) -> None:
    def move() -> None:
        targets = TopicTargets(key.topic, (Target(key.partition, target),))
        tool.twin.commit(alter_reassignments(tool.twin.context, AlterReassignments((targets,))))

    tool.twin.schedule(tool.twin.now_ms + after_ms, move)


def test_a_partition_moved_away_by_others_ends_the_run_after_5_s(tool: ToolOnTwin) -> None:
    """Brokers show the end of a move later than the controller, so that wrong replicas are not believed at once."""
    wrong_since_ms: list[int] = []

    def note(watched: Twin, _step: object) -> None:
        if partition(watched, "foo")[0] == (3, 1):
            wrong_since_ms.append(watched.now_ms)

    tool.twin.watch(note)
    _move_by_others(tool, (3, 1), after_ms=50)
    with pytest.raises(TerseError) as caught:
        tool.execute(dict.fromkeys(FOO[:2], (2, 1)), BatchOptions(1, poll_interval_ms=100))
    approve([caught.value], "kip-1335-moved-by-others")
    assert tool.twin.now_ms - wrong_since_ms[0] in range(5_000, 5_201)


def test_incrementally_a_partition_moved_away_by_others_ends_the_run(tool: ToolOnTwin) -> None:
    """The others are complete within two polls each, so that no wait for the next one lasts five seconds."""
    _move_by_others(tool, (3, 1), after_ms=50)
    with pytest.raises(TerseError) as caught:
        tool.execute(TARGETS, BatchOptions(2, is_incremental=True))
    said, unsubmitted = str(caught.value).splitlines()
    assert said == "There is no active reassignment of partition foo-0, but replica set is 3,1 rather than 2,1."
    submitted = {key for batch in tool.batches for key in batch}
    assert unsubmitted == f"Not submitted: {','.join(map(str, FOO[len(submitted) :]))}"


def test_each_partition_has_five_seconds_of_its_own(tool: ToolOnTwin) -> None:
    """The second is elsewhere from 3.0 to 7.4 s, the first before and after, and neither for five seconds in a row."""
    hold(tool, FOO[1])
    _move_by_others(tool, (3, 1), after_ms=50)
    _move_by_others(tool, None, after_ms=3_000, key=FOO[1])
    _move_by_others(tool, (2, 1), after_ms=4_500)
    _move_by_others(tool, (2, 1), after_ms=7_400, key=FOO[1])
    tool.execute(dict.fromkeys(FOO[:3], (2, 1)), BatchOptions(2, poll_interval_ms=500))
    assert tool.batches == [(FOO[0], FOO[1]), (FOO[2],)]


def test_the_five_seconds_begin_again_once_a_partition_is_on_its_way(tool: ToolOnTwin) -> None:
    hold(tool, FOO[0])
    moves: list[tuple[int, tuple[int, ...] | None]] = [(50, None), (4_500, (2, 1)), (4_900, None), (9_000, (2, 1))]
    for after_ms, target in moves:
        _move_by_others(tool, target, after_ms)
    tool.execute(dict.fromkeys(FOO[:2], (2, 1)), BatchOptions(1, poll_interval_ms=500))
    assert tool.batches == [(FOO[0],), (FOO[1],)]


def test_a_deadline_ends_a_wait_that_the_document_would_never_end(tool: ToolOnTwin) -> None:
    hold(tool, FOO[0])
    with pytest.raises(TerseError) as caught:
        tool.execute(dict.fromkeys(FOO[:2], (2, 1)), BatchOptions(1, wait_timeout_ms=60_000))
    approve([caught.value], "kip-1335-timed-out")
    assert tool.batches == [(FOO[0],)]


def test_throttles_are_set_once_over_the_whole_plan_before_the_first_batch(tool: ToolOnTwin) -> None:
    tool.execute(TARGETS, BatchOptions(3), throttle=50_000_000)
    sent = [request.key for request in tool.transport.requests if request.key in (CONFIGURE.key, REASSIGN.key)]
    assert sent.index(REASSIGN.key) == sent.count(CONFIGURE.key) > 0  # all settings come before any batch
    assert len(tool.batches) == 4
    settings = [setting for request in tool.sent(CONFIGURE) for setting in request.settings]
    assert sorted(settings) == sorted([
        ("foo", LEADER_THROTTLED_REPLICAS, ",".join(f"{number}:0,{number}:1" for number in range(10))),
        ("foo", FOLLOWER_THROTTLED_REPLICAS, ",".join(f"{number}:2" for number in range(10))),
        *((str(broker), name, "50000000") for broker in range(3)
          for name in (LEADER_THROTTLED_RATE, FOLLOWER_THROTTLED_RATE)),
    ])  # fmt: skip
    topic = ConfigResource.topic("foo")
    listed = tool.admin.describe_configs([topic])[topic][FOLLOWER_THROTTLED_REPLICAS].value
    assert listed == ",".join(f"{number}:2" for number in range(10))


def test_others_that_move_are_warned_of_on_request(tool: ToolOnTwin, capsys: pytest.CaptureFixture[str]) -> None:
    bar = TopicPartition("bar", 0)
    hold(tool, bar)
    tool.admin.alter_partition_reassignments({bar: (2, 1)}).raise_if_any()
    tool.execute({FOO[0]: (2, 1)}, BatchOptions(1), is_additional=True)
    assert capsys.readouterr().err == ""
    tool.execute({FOO[1]: (2, 1)}, BatchOptions(1, warns_about_others=True), is_additional=True)
    warned = capsys.readouterr().err
    assert "in progress, which --reassignment-batch-size does not count" in warned
    assert "bar-0" in warned


@pytest.mark.parametrize("warns", [True, False])
def test_moves_of_others_that_begin_during_a_wait_are_warned_of(
    tool: ToolOnTwin, warns: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two others, at different times of the same wait, and each time those that are new are named with the rest."""
    others = [FOO[5], TopicPartition("bar", 0)]
    hold(tool, FOO[0], *others)
    for after_ms, key in zip((1_500, 3_500), others, strict=True):
        _move_by_others(tool, (2, 1), after_ms, key)
    with pytest.raises(TerseError, match="Timed out after 10000 ms"):
        tool.execute(dict.fromkeys(FOO[:2], (2, 1)), BatchOptions(1, warns_about_others=warns, wait_timeout_ms=10_000))
    named = [line.rpartition(" ")[2] for line in capsys.readouterr().err.splitlines() if "outside the plan" in line]
    assert named == (["foo-5", "bar-0,foo-5"] if warns else [])


def test_a_running_reassignment_refuses_a_plan_in_batches(tool: ToolOnTwin) -> None:
    hold(tool, FOO[0])
    tool.admin.alter_partition_reassignments({FOO[0]: (2, 1)}).raise_if_any()
    with pytest.raises(TerseError, match="existing partition assignment"):
        tool.execute({FOO[1]: (2, 1)}, BatchOptions(1))


# Replicas out of sync


@pytest.fixture
def cut(tool: ToolOnTwin) -> ToolOnTwin:
    """Broker 1 gets nothing from broker 0, and so is out of sync, until three minutes have passed."""
    tool.twin.replication.set_write_rate(FOO[0], 1_000)
    schedule_faults(tool.twin, [read_fault("cut:1:0@1s+180s")])
    tool.twin.advance(60_000)
    assert tool.admin.describe_topics(["foo"])["foo"].partitions[0].isr == (0,)
    return tool


NEW_ORDER: Targets = {FOO[0]: (1, 0), FOO[1]: (2, 3)}
"""The first is complete at once, though broker 1 is out of sync."""


def test_a_complete_partition_out_of_sync_is_warned_of(cut: ToolOnTwin, capsys: pytest.CaptureFixture[str]) -> None:
    """The document has both: "current ISR matches target", and the logic of --verify, which looks at no ISR."""
    cut.execute(NEW_ORDER, BatchOptions(1))
    assert cut.batches == [(FOO[0],), (FOO[1],)]
    assert cut.twin.now_ms < 180_000
    approve(capsys.readouterr().err, "kip-1335-complete-and-not-in-sync")


def test_a_partition_is_complete_only_in_sync_if_that_is_asked_for(
    cut: ToolOnTwin, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--reassignment-batch-size", "1", "--reassignment-require-isr")
    cut.execute_with_options(NEW_ORDER, tmp_path, *words)
    first, second = (request.at_ms for request in cut.sent(REASSIGN))
    assert second - first > 60_000
    assert cut.admin.describe_topics(["foo"])["foo"].partitions[0].isr == (0, 1)
    assert capsys.readouterr().err == "Waiting until replicas of foo-0 are in sync: 1\n"  # once, not with each poll


def test_a_wait_for_the_isr_that_takes_too_long_says_for_whom(cut: ToolOnTwin) -> None:
    with pytest.raises(TerseError) as caught:
        cut.execute(NEW_ORDER, BatchOptions(1, wait_timeout_ms=10_000, requires_isr=True))
    approve([caught.value], "kip-1335-not-in-sync")


# What was not submitted


def interrupt(request: Request) -> None:
    if request.key == LIST.key:
        raise KeyboardInterrupt


def lose_every_broker(tool: ToolOnTwin) -> None:
    for broker in range(4):
        tool.twin.crash(broker)


def after_the_first_batch(tool: ToolOnTwin, deed: Callable[[Request], None]) -> None:
    """Do this before every later request."""
    tool.transport.before = lambda request: deed(request) if len(tool.batches) == 1 else None


@pytest.mark.parametrize(("prepare", "ends_with"), [
    (lambda tool: hold(tool, FOO[0]), TerseError),
    (lambda tool: after_the_first_batch(tool, interrupt), KeyboardInterrupt),
    (lambda tool: tool.twin.schedule(tool.twin.now_ms + 500, lambda: lose_every_broker(tool)), ToolError),
], ids=["time is up", "interrupted", "the cluster is lost"])  # fmt: skip
def test_a_plan_that_ends_early_leaves_a_file_with_the_rest(
    tool: ToolOnTwin,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    prepare: Callable[[ToolOnTwin], None],
    ends_with: type[BaseException],
) -> None:
    prepare(tool)
    options = ("--reassignment-batch-size", "2", "--reassignment-wait-timeout-ms", "30000")
    with pytest.raises(ends_with):
        tool.execute_with_options(dict.fromkeys(FOO[:5], (2, 1)), tmp_path, *options)
    file = tmp_path / "plan.not-submitted.json"
    assert parse_plan(file.read_text(encoding="utf-8")).replicas == dict.fromkeys(FOO[2:5], (2, 1))
    assert capsys.readouterr().err == f"What was not submitted (3 of 5 partitions) is in {file}\n"
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["plan.json", "plan.not-submitted.json"]


def lose_the_answer(request: Request) -> None:
    if request.key == REASSIGN.key and request.partitions[0].topic == "zoo":
        raise OutcomeUnknown("the connection was closed", api=REASSIGN.name)


@pytest.mark.parametrize(("is_lost", "said", "kept"), [
    (False, "zoo-0: Unable to find a topic named zoo.\nNot submitted: zz-1", {"zz-1"}),
    (True, "zoo-0: the connection was closed\nzz-0: the connection was closed\nNot submitted: zz-1",
     {"zoo-0", "zz-0", "zz-1"}),
], ids=["refused", "without an answer"])  # fmt: skip
def test_the_rest_has_what_may_be_unsubmitted_and_not_what_was_refused(
    tool: ToolOnTwin, tmp_path: Path, is_lost: bool, said: str, kept: set[str]
) -> None:
    """Refused entries would be refused again; submitting unanswered ones twice does no harm."""

    def delete() -> None:
        tool.twin.commit(delete_topics(tool.twin.context, [TopicReference("zoo", None)]))

    zoo, *others = TopicPartition("zoo", 0), TopicPartition("zz", 0), TopicPartition("zz", 1)
    tool.admin.create_topics([NewTopic("zoo", assignments=((0,),)), NewTopic("zz", assignments=((0,), (0,)))])
    if is_lost:
        tool.transport.before = lose_the_answer
    else:
        tool.twin.schedule(tool.twin.now_ms + 50, delete)
    with pytest.raises(TerseError) as caught:
        tool.execute_with_options(
            {**dict.fromkeys(FOO[:2], (2, 1)), zoo: (1,), **dict.fromkeys(others, (1,))},
            tmp_path, "--reassignment-batch-size", "2",
        )  # fmt: skip
    assert str(caught.value) == f"Error reassigning partition(s):\n{said}"
    rest = parse_plan((tmp_path / "plan.not-submitted.json").read_text(encoding="utf-8")).replicas
    assert rest == {key: (1,) for key in (zoo, *others) if str(key) in kept}
    assert (TopicPartition("zz", 0) in tool.admin.list_partition_reassignments()) is not is_lost


def test_the_file_has_the_rest_until_all_is_submitted(tool: ToolOnTwin, tmp_path: Path) -> None:
    """So it is there after a kill, too."""
    file, seen = tmp_path / "plan.not-submitted.json", []

    def look(request: Request) -> None:
        if request.key == REASSIGN.key:
            seen.append((request.partitions, sorted(parse_plan(file.read_text(encoding="utf-8")).replicas)))

    tool.transport.before = look
    tool.execute_with_options(dict.fromkeys(FOO[:5], (2, 1)), tmp_path, "--reassignment-batch-size", "2")
    assert seen == [(tuple(FOO[:2]), FOO[:5]), (tuple(FOO[2:4]), FOO[2:5]), ((FOO[4],), FOO[4:5])]
    assert [path.name for path in tmp_path.iterdir()] == ["plan.json"]


def test_what_an_earlier_call_left_is_not_overwritten(tool: ToolOnTwin, tmp_path: Path) -> None:
    hold(tool, FOO[0])
    left = tmp_path / "plan.not-submitted.json"
    left.write_text("kept", encoding="utf-8")
    options = ("--reassignment-batch-size", "1", "--reassignment-wait-timeout-ms", "5000")
    with pytest.raises(TerseError):
        tool.execute_with_options(dict.fromkeys(FOO[:2], (2, 1)), tmp_path, *options)
    assert left.read_text(encoding="utf-8") == "kept"
    second = tmp_path / "plan.not-submitted-2.json"
    assert parse_plan(second.read_text(encoding="utf-8")).replicas == {FOO[1]: (2, 1)}


def test_without_a_place_for_the_file_the_rest_is_printed(tool: ToolOnTwin, capsys: pytest.CaptureFixture[str]) -> None:
    """A plan read from /dev/stdin has no such place."""
    nowhere = Path("/dev/null/plan.json")
    hold(tool, FOO[0])
    plan = Plan(tuple(PartitionAssignment(key, (2, 1)) for key in FOO[:2]))
    request = ExecuteRequest(
        plan, False, -1, -1, 10_000, allows_replication_factor_change=True,
        batches=BatchOptions(1, wait_timeout_ms=5_000), beside=nowhere,
    )  # fmt: skip
    with pytest.raises(TerseError):
        tool.execute_request(request)
    warning, said, rest = capsys.readouterr().err.splitlines()
    assert warning.startswith("Warning: cannot write /dev/null/plan.not-submitted.json: ")
    assert said == "What was not submitted (1 of 2 partitions) is in this plan:"
    assert parse_plan(rest).replicas == {FOO[1]: (2, 1)}


def test_others_are_warned_of_once_while_they_are_the_same(
    tool: ToolOnTwin, capsys: pytest.CaptureFixture[str]
) -> None:
    bar = TopicPartition("bar", 0)
    hold(tool, bar)
    tool.admin.alter_partition_reassignments({bar: (2, 1)}).raise_if_any()
    tool.execute(dict.fromkeys(FOO[:6], (2, 1)), BatchOptions(1, warns_about_others=True), is_additional=True)
    warned = [line for line in capsys.readouterr().err.splitlines() if line.startswith("Warning: ")]
    assert len(warned) == 1
