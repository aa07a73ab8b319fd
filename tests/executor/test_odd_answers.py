"""Answers that are lost, stale or refuse for now: a move is over only when it is, and its throttle stays as long."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from kreassign.errors import Unsupported
from kreassign.executor.events import CancelRequested, Event, MovesSubmitted
from kreassign.executor.state import RunView
from kreassign.executor.state.attempts import LAST_WORD_MS
from kreassign.model import Batch, ConfigChange, ConfigOperation, Topic, error_codes
from kreassign.model.run import IN_FLIGHT, MoveStatus
from kreassign.model.throttle import FOLLOWER_THROTTLED_REPLICAS
from tests.executor.odd_port import (
    Answer,
    OddPort,
    Real,
    as_it_is,
    each_refused,
    lost_on_the_way_back,
    lost_on_the_way_there,
    not_reached,
    nothing_listed,
    refusal,
    refused,
)
from tests.executor.twin_runs import RATE, TwinRig, pace, tp

pytestmark = pytest.mark.thorough

ALTER = "alter_partition_reassignments"
CONFIGURE = "incremental_alter_configs"
LIST = "list_partition_reassignments"
GROW = {0: (0, 1, 2)}
AWAY = {0: (2, 1)}

THROTTLING_QUOTA_EXCEEDED = 89


class Watched:
    """A rig whose answers may be odd, and in which every event is checked against the truth."""

    def __init__(self, folder: Path, replicas: list[list[int]] | None = None) -> None:
        self.rig = TwinRig(folder, replicas or [[0, 1]])
        self.odd = OddPort(self.rig.client)
        self.rig.odd_port = self.odd.port
        self.rig.listener = self.check

    def check(self, event: Event, run: RunView) -> None:
        del event
        for name, record in run.records.items():
            state = self.rig.twin.metadata.partition(name)
            assert state is not None
            if record.status is MoveStatus.COMPLETE:
                assert set(record.move.target) <= set(state.isr), f"{name} is not done, but in sync on {state.isr}"
            if state.adding and set(state.adding) - set(state.isr):
                assert record.status in IN_FLIGHT, f"{name} is {record.status}, but copies to {state.adding}"
                assert FOLLOWER_THROTTLED_REPLICAS in str(self.rig.throttles), f"{name} copies without a throttle"


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path)


# --- done means done -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stale_looks", [1, 2, 5])
@pytest.mark.parametrize("targets", [GROW, AWAY], ids=["addition", "move"])
def test_an_inactive_controllers_empty_list_ends_no_move(
    watched: Watched, stale_looks: int, targets: dict[int, tuple[int, ...]]
) -> None:
    started = watched.rig.prepared(targets)
    # The calls before are of the look before it is sent, and two of the health check.
    watched.odd.answer(LIST, *[as_it_is] * 3, *[nothing_listed] * stale_looks)
    done = watched.rig.run(started)
    assert (done.state, done.problems, watched.rig.replicas) == ("done", (), targets)
    assert watched.rig.throttles == {}


def test_an_addition_sent_during_a_look_counts_as_under_way(watched: Watched) -> None:
    """The list is asked for before the lost request arrives, the brokers after it."""
    late: list[Callable[[], object]] = []

    def arrives_later(real: Callable[..., object], *args: object, **named: object) -> object:
        late.append(lambda: real(*args, **named))
        return lost_on_the_way_there(real)

    def then_arrives(real: Callable[..., object], *args: object, **named: object) -> object:
        found = real(*args, **named)
        late.pop()()
        return found

    started = watched.rig.prepared(GROW)
    watched.odd.answer(ALTER, arrives_later)
    watched.odd.answer(LIST, *[as_it_is] * 3, then_arrives)
    done = watched.rig.run(started)
    assert (done.state, done.problems, watched.rig.replicas) == ("done", (), GROW)


def test_a_broker_that_lacks_a_topic_ends_no_listed_move(watched: Watched) -> None:
    def unknown(real: Callable[..., object], *args: object, **named: object) -> object:
        del real, args, named
        return Batch({}, {"t": refusal(error_codes.UNKNOWN_TOPIC_OR_PARTITION, "t")})

    watched.odd.answer("describe_topics", *[as_it_is] * 3, unknown)
    done = watched.rig.run(watched.rig.prepared(AWAY))
    assert (done.state, watched.rig.replicas) == ("done", AWAY)


def unknown_topic(real: Real, names: object, **named: object) -> object:
    """The answer of a broker that does not know the topic yet, or that is cut off since before it was created."""
    del real, names, named
    return Batch({}, {"t": refusal(error_codes.UNKNOWN_TOPIC_OR_PARTITION, "t")})


def no_partition(real: Real, names: object, **named: object) -> Batch[str, Topic]:
    """The answer of a broker that does not know the partitions of the topic yet."""
    topics: Batch[str, Topic] = real(names, **named)
    return topics.map(lambda topic: replace(topic, partitions=()))


def former_topic(real: Real, names: object, **named: object) -> Batch[str, Topic]:
    """The answer of a broker that still has another topic under the name."""
    topics: Batch[str, Topic] = real(names, **named)
    return topics.map(lambda topic: replace(topic, topic_id="former"))


def former_replicas(real: Real, names: object, **named: object) -> Batch[str, Topic]:
    """The answer of a broker that is behind by a move that is over."""
    topics: Batch[str, Topic] = real(names, **named)
    return topics.map(
        lambda topic: replace(topic, partitions=tuple(replace(one, replicas=(3, 4)) for one in topic.partitions))
    )


ODD_TOPICS = (unknown_topic, no_partition, former_topic, former_replicas)


@pytest.mark.parametrize("answer", ODD_TOPICS)
@pytest.mark.parametrize("number", range(10))
def test_no_odd_answer_about_a_topic_ends_anything(watched: Watched, answer: Answer, number: int) -> None:
    """Wherever it comes: before the run, before a move is sent, while it copies, and after it."""
    watched.odd.answer("describe_topics", *[as_it_is] * number, answer)
    watched.odd.answer(LIST, *[as_it_is] * number, nothing_listed, nothing_listed)
    done = watched.rig.run(watched.rig.prepared(AWAY))
    assert (done.state, watched.rig.replicas, watched.rig.throttles) == ("done", AWAY, {})


@pytest.mark.parametrize("method", ["describe_configs", "describe_topics", "describe_log_dirs"])
@pytest.mark.parametrize("number", range(10))
def test_no_refusal_of_a_reading_ends_a_run(watched: Watched, method: str, number: int) -> None:
    def refused_reading(real: Real, keys: Iterable[object] | None, **named: object) -> object:
        del real, named
        return Batch({}, {key: refusal(error_codes.UNKNOWN_TOPIC_OR_PARTITION, key) for key in keys or ()})

    watched.odd.answer(method, *[as_it_is] * number, refused_reading)
    done = watched.rig.run(watched.rig.prepared(AWAY))
    assert (done.state, watched.rig.replicas, watched.rig.throttles) == ("done", AWAY, {})


# --- lost and retriable answers ------------------------------------------------------------------------------------

TEMPORARY: dict[str, Answer] = {
    "lost on the way there": lost_on_the_way_there,
    "lost on the way back": lost_on_the_way_back,
    "not reached": not_reached,
    "-1, not done": each_refused(error_codes.UNKNOWN_SERVER_ERROR),
    "-1, done": each_refused(error_codes.UNKNOWN_SERVER_ERROR, is_done=True),
    "-1 for all": refused(error_codes.UNKNOWN_SERVER_ERROR),
    "89": each_refused(THROTTLING_QUOTA_EXCEEDED),
    "41": each_refused(error_codes.NOT_CONTROLLER),
    "41 for all": refused(error_codes.NOT_CONTROLLER),
}


@pytest.mark.parametrize("times", [1, 4])
@pytest.mark.parametrize("answer", TEMPORARY.values(), ids=TEMPORARY)
@pytest.mark.parametrize("targets", [GROW, AWAY], ids=["addition", "move"])
def test_a_temporary_answer_to_a_submission_does_not_lose_the_move(
    watched: Watched, targets: dict[int, tuple[int, ...]], answer: Answer, times: int
) -> None:
    watched.odd.answer(ALTER, *[answer] * times)
    done = watched.rig.run(watched.rig.prepared(targets))
    assert (done.state, done.problems, watched.rig.replicas) == ("done", (), targets)
    assert watched.rig.throttles == {}


@pytest.mark.parametrize("times", [1, 6])
@pytest.mark.parametrize(
    "answer", {**TEMPORARY, "not reached": not_reached}.values(), ids={**TEMPORARY, "not reached": 0}
)
def test_a_temporary_answer_to_a_throttle_delays_the_start(watched: Watched, answer: Answer, times: int) -> None:
    started = watched.rig.prepared(AWAY)
    watched.odd.answer(CONFIGURE, *[answer] * times)
    done = watched.rig.run(started)
    assert (done.state, watched.rig.replicas, watched.rig.throttles) == ("done", AWAY, {})


def test_a_throttle_whose_lost_request_arrives_at_the_end_is_taken_back(tmp_path: Path) -> None:
    """It was sent again, and the copy took a second."""
    rig = TwinRig(tmp_path, [[0, 1]], size_bytes=RATE)
    odd, requests, arrived = OddPort(rig.client), list[Callable[[], object]](), list[object]()
    rig.odd_port = odd.port

    def arrive() -> None:
        if not arrived:
            arrived.append(requests[0]())

    def lost(real: Real, changes: Mapping[object, Iterable[ConfigChange]], **named: object) -> object:
        appends = any(one.operation is ConfigOperation.APPEND for each in changes.values() for one in each)
        if requests or not appends:
            return real(changes, **named)
        requests.append(partial(real, changes, **named))
        rig.between_steps(12, arrive)
        return lost_on_the_way_there(real)

    odd.answer_always(CONFIGURE, lost)
    done = rig.run(rig.prepared(AWAY))
    rig.transport.sleep(LAST_WORD_MS / 1000)
    arrive()
    assert (done.state, rig.throttles) == ("done", {})


def test_a_throttle_that_cannot_be_set_ends_the_run_unsent(watched: Watched) -> None:
    started = watched.rig.prepared(AWAY)
    watched.odd.answer(CONFIGURE, *[lost_on_the_way_there] * 200)
    done = watched.rig.run(started)
    assert done.state == "failed"
    assert "the throttle could not be set, so nothing more was started" in done.problems
    assert any("the connection broke before the answer came" in problem for problem in done.problems)
    assert not any(isinstance(event, MovesSubmitted) for event in watched.rig.seen)


def test_a_throttle_that_may_not_be_set_fails_at_once_with_the_reason(watched: Watched) -> None:
    started = watched.rig.prepared(AWAY)
    watched.odd.answer(CONFIGURE, refused(error_codes.CLUSTER_AUTHORIZATION_FAILED))
    begun = watched.rig.transport.now_ms()
    done = watched.rig.run(started)
    assert done.state == "failed"
    assert any("Cluster authorization failed" in problem for problem in done.problems)
    assert watched.rig.transport.now_ms() - begun < 10_000


def test_a_move_that_never_arrives_fails_with_the_answer(watched: Watched) -> None:
    watched.odd.answer(ALTER, *[each_refused(THROTTLING_QUOTA_EXCEEDED)] * 50)
    done = watched.rig.run(watched.rig.prepared(AWAY))
    assert done.state == "failed"
    problem = done.moves[0].problem or ""
    assert "times in" in problem
    assert "quota" in problem
    assert watched.rig.throttles == {}


def test_a_refusal_ends_no_move_that_may_be_under_way(watched: Watched) -> None:
    """The first request arrives; a look that does not show it leads to a second one, which is refused."""
    watched.odd.answer(ALTER, lost_on_the_way_back, each_refused(error_codes.INVALID_REPLICA_ASSIGNMENT))
    watched.odd.answer(LIST, *[as_it_is] * 4, nothing_listed, nothing_listed, nothing_listed)

    def as_before(real: Callable[..., object], *args: object, **named: object) -> object:
        del args, named
        return before.pop() if before else real(["t"])

    before = [watched.rig.client.describe_topics(["t"]) for _ in range(3)]
    watched.odd.answer("describe_topics", *[as_it_is] * 3, *[as_before] * 3)
    done = watched.rig.run(watched.rig.prepared(AWAY))
    assert (done.state, watched.rig.replicas, watched.rig.throttles) == ("done", AWAY, {})


@pytest.mark.parametrize("times", [1, 4])
@pytest.mark.parametrize("answer", TEMPORARY.values(), ids=TEMPORARY)
def test_a_cancellation_is_repeated_until_nothing_is_under_way(watched: Watched, answer: Answer, times: int) -> None:
    watched.odd.answer(ALTER, as_it_is, *[answer] * times)
    watched.rig.ask_after(4, lambda at_ms, number: CancelRequested(at_ms, number, is_now=True))
    done = watched.rig.run(watched.rig.prepared(AWAY, throttle=RATE // 8))
    assert (done.state, watched.rig.throttles) == ("cancelled", {})
    assert set(watched.rig.replicas[0]) == {0, 1}
    assert watched.rig.client.list_partition_reassignments() == {}


def test_an_uncancellable_move_keeps_its_throttle_to_the_end(watched: Watched) -> None:
    watched.odd.answer(ALTER, as_it_is, *[each_refused(error_codes.CLUSTER_AUTHORIZATION_FAILED)] * 1_000)
    watched.rig.ask_after(4, lambda at_ms, number: CancelRequested(at_ms, number, is_now=True))
    done = watched.rig.run(watched.rig.prepared(AWAY, throttle=RATE // 4))
    assert (watched.rig.replicas, watched.rig.throttles) == (AWAY, {})
    assert [move.status for move in done.moves] == ["complete"]
    assert any("Cluster authorization failed" in problem for problem in done.problems)
    assert any("cancelling it had no effect" in problem for problem in done.problems)


def test_a_cancelled_run_also_cancels_what_may_have_been_sent(watched: Watched) -> None:
    """The request is carried out, its answer lost, and the look after it is stale."""
    watched.odd.answer(ALTER, lost_on_the_way_back)
    watched.odd.answer(LIST, *[as_it_is] * 4, nothing_listed)
    before = watched.rig.client.describe_topics(["t"])
    watched.odd.answer("describe_topics", *[as_it_is] * 3, lambda *_, **__: before)
    watched.rig.ask_after(0.5, lambda at_ms, number: CancelRequested(at_ms, number, is_now=True))
    done = watched.rig.run(watched.rig.prepared(AWAY))
    assert (done.state, watched.rig.throttles) == ("cancelled", {})
    assert watched.rig.client.list_partition_reassignments() == {}


@pytest.mark.parametrize("arrives_after_s", [4, 9, 14])
def test_a_move_that_begins_after_its_cancellation_is_cancelled(watched: Watched, arrives_after_s: int) -> None:
    """The request is on its way while the controller still has nothing to cancel."""

    def arrives_later(real: Real, *args: object, **named: object) -> object:
        watched.rig.between_steps(arrives_after_s, lambda: real(*args, **named))
        return lost_on_the_way_there(real)

    watched.odd.answer(ALTER, arrives_later)
    watched.rig.ask_after(1, lambda at_ms, number: CancelRequested(at_ms, number, is_now=True))
    done = watched.rig.run(watched.rig.prepared(AWAY))
    assert (done.state, done.problems, watched.rig.throttles) == ("cancelled", (), {})
    assert watched.rig.client.list_partition_reassignments() == {}
    assert set(watched.rig.replicas[0]) == {0, 1}
    assert sum(method == ALTER for method, _, _ in watched.odd.calls) == 3


def test_a_lost_request_that_begins_a_cancelled_move_again_is_cancelled(watched: Watched) -> None:
    """The request that was sent in its place is carried out and cancelled before it arrives."""
    late: list[Callable[[], object]] = []

    def arrive() -> None:
        while late:
            late.pop()()

    def arrives_later(real: Real, *args: object, **named: object) -> object:
        late.append(lambda: real(*args, **named))
        watched.rig.between_steps(8, arrive)
        return lost_on_the_way_there(real)

    watched.odd.answer(ALTER, arrives_later)
    watched.rig.ask_after(5, lambda at_ms, number: CancelRequested(at_ms, number, is_now=True))
    done = watched.rig.run(watched.rig.prepared(AWAY))
    arrive()
    assert (done.state, watched.rig.throttles) == ("cancelled", {})
    assert watched.rig.client.list_partition_reassignments() == {}


# --- the replication factor ----------------------------------------------------------------------------------------


def test_a_factor_changed_just_before_a_move_is_not_changed_back(watched: Watched) -> None:
    def grown_by_somebody(real: Real, *args: object, **named: object) -> object:
        client = watched.rig.client
        client.alter_partition_reassignments({tp(0): (0, 1, 3)}).raise_if_any()
        watched.rig.transport.sleep(60)
        return real(*args, **named)

    watched.odd.answer(ALTER, grown_by_somebody)
    done = watched.rig.run(watched.rig.prepared(AWAY, throttle=None))
    assert (done.state, watched.rig.replicas) == ("failed", {0: (0, 1, 3)})
    assert "replication factor" in (done.moves[0].problem or "")


def test_a_cluster_without_factor_checks_is_asked_without_them(tmp_path: Path) -> None:
    def does_not_know_it(real: Real, *args: object, **named: object) -> object:
        del real, args, named
        raise Unsupported("The broker does not support the AllowReplicationFactorChange option")

    watched = Watched(tmp_path, [[0, 1], [0, 1]])
    watched.odd.answer(ALTER, does_not_know_it)
    done = watched.rig.run(watched.rig.prepared({0: (2, 1), 1: (0, 3)}, pace=pace(moves=1)))
    assert (done.state, watched.rig.replicas) == ("done", {0: (2, 1), 1: (0, 3)})
    asked = [named for method, _, named in watched.odd.calls if method == ALTER]
    assert [named["allow_replication_factor_change"] for named in asked] == [False, True, True]


def test_moves_that_change_the_factor_are_sent_beside_those_that_keep_it(tmp_path: Path) -> None:
    watched = Watched(tmp_path, [[0, 1], [0, 1]])
    done = watched.rig.run(watched.rig.prepared({0: (2, 1), 1: (0, 1, 3)}))
    assert (done.state, watched.rig.replicas) == ("done", {0: (2, 1), 1: (0, 1, 3)})
    asked = [(set(args[0]), named) for method, args, named in watched.odd.calls if method == ALTER]
    assert [(names, named["allow_replication_factor_change"]) for names, named in asked] == [
        ({tp(0)}, False),
        ({tp(1)}, True),
    ]


# --- a queue that changes while it waits ---------------------------------------------------------------------------


def test_moves_of_a_deleted_topic_fail_and_the_run_ends(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1], [1, 0], [0, 1]])
    rig.between_steps(5, lambda: rig.client.delete_topics(["t"]))
    done = rig.run(rig.prepared({0: (2, 1), 1: (3, 0), 2: (0, 4)}, pace=pace(moves=1)))
    assert {move.status for move in done.moves} <= {"complete", "failed"}
    assert done.state == "failed"
    assert "its partition was deleted" in {move.problem for move in done.moves}


def test_a_permission_lost_during_a_run_is_named_while_it_waits(
    watched: Watched,
) -> None:
    denied_ms: list[int] = []
    told: list[tuple[int, str, bool]] = []

    def denies(real: Callable[..., object], *args: object, **named: object) -> object:
        del real, args, named
        denied_ms.append(watched.rig.transport.now_ms())
        return Batch({}, {"t": refusal(error_codes.TOPIC_AUTHORIZATION_FAILED, "t", api="Metadata")})

    def listen(event: Event, run: RunView) -> None:
        watched.check(event, run)
        told.extend((event.at_ms, problem, not run.in_flight) for problem in run.problems)

    watched.rig.listener = listen
    watched.odd.answer("describe_topics", *[as_it_is] * 6, *[denies] * 40)
    done = watched.rig.run(watched.rig.prepared(AWAY))
    at_ms, sentence, was_over = told[0]
    assert (at_ms - denied_ms[0] <= 1_000, at_ms < denied_ms[-1], was_over) == (True, True, False)
    assert "topic t could not be described: " in sentence
    assert "permission is missing: Describe on topic t; allow it with `kafka-acls --add" in sentence
    assert "--operation Describe --topic t`" in sentence
    assert [move.status for move in done.moves] == ["complete"]


@pytest.mark.parametrize(
    "answer", [each_refused(error_codes.PREFERRED_LEADER_NOT_AVAILABLE), not_reached, lost_on_the_way_there]
)
def test_a_leader_is_elected_although_its_first_election_failed(watched: Watched, answer: Answer) -> None:
    watched.odd.answer("elect_leaders", answer)
    found = watched.rig.run(watched.rig.prepared(AWAY))
    assert (found.state, watched.rig.twin.metadata.topics["t"].partitions[0].leader) == ("done", AWAY[0][0])
