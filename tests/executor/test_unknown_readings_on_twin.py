"""A reading that failed permits nothing: the run is refused, or held until it succeeds."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kreassign.errors import ClusterError, IllegalPlan, Unreachable
from kreassign.executor.cluster.measurements import inspect_health
from kreassign.executor.cluster.requests import read_moves
from kreassign.executor.events import HealthObserved, MovesObserved, SubmissionIntended, VerdictsRecorded
from kreassign.executor.guards import GuardName, Reaction
from kreassign.executor.instructions import CheckHealth, ProducerGuard
from kreassign.executor.preflight import read_others
from kreassign.model import (
    NO_LEADER,
    Batch,
    ConfigChange,
    ConfigResource,
    LogDir,
    ResourceType,
    TopicPartition,
    TopicPartitionReplica,
)
from kreassign.model.error_codes import CLUSTER_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED
from kreassign.model.pace import Order
from kreassign.model.throttle import (
    FOLLOWER_THROTTLED_RATE,
    LEADER_THROTTLED_RATE,
    LEADER_THROTTLED_REPLICAS,
    LOG_DIR_RATE,
)
from kreassign.twin.controller.decision import Decision
from kreassign.twin.metadata import ConfigChanged
from tests.executor.odd_port import Answer, OddPort, Real, as_it_is, nothing_listed, refusal
from tests.executor.test_directories_on_twin import other, started
from tests.executor.twin_runs import RATE, TwinRig, pace, tp
from tests.twin.asking import MEGABYTES

pytestmark = pytest.mark.thorough

AWAY = {0: (2, 1)}
OTHER = tp(0, "other")
U = ConfigResource.topic("u")
BREAK_S = 60


@pytest.fixture
def rig(tmp_path: Path) -> TwinRig:
    return TwinRig(tmp_path, [[0, 1], [3, 4]])


NO_ANSWER = Unreachable("no answer")


def silent(*keys: object, why: ClusterError = NO_ANSWER) -> Answer:
    """These keys of a call that answers for each fail so, the others get their own answer."""

    def answer(real: Real, asked: Collection[Any], *args: Any, **named: Any) -> Batch[Any, Any]:
        wanted = list(asked)
        found: Batch[Any, Any] = real([key for key in wanted if key not in keys], *args, **named)
        return Batch(found.ok, {**found.failed, **{key: why for key in wanted if key in keys}})

    return answer


def no_copies(real: Real, asked: Collection[int], **named: Any) -> Batch[int, tuple[LogDir, ...]]:
    """Every broker answers that it has no copy of anything."""
    found: Batch[int, tuple[LogDir, ...]] = real(asked, **named)
    return Batch({broker: tuple(replace(one, replicas=()) for one in dirs) for broker, dirs in found.ok.items()}, {})


def guard_words(rig: TwinRig) -> list[str]:
    noted = [event for event in rig.seen if isinstance(event, VerdictsRecorded)]
    return [str(verdict) for event in noted for verdict in event.verdicts]


def submitted_ms(rig: TwinRig) -> int:
    return next(event.at_ms for event in rig.seen if isinstance(event, SubmissionIntended))


def test_a_leader_that_stays_silent_is_stood_in_for_by_a_copy_in_sync(rig: TwinRig, odd: OddPort) -> None:
    whole = rig.prepared(AWAY)
    odd.answer_always("describe_log_dirs", silent(0))
    assert rig.prepared(AWAY).moves == whole.moves


def test_a_run_is_refused_while_no_copy_in_sync_tells_a_size(rig: TwinRig, odd: OddPort) -> None:
    odd.answer_always("describe_log_dirs", silent(0, 1))
    with pytest.raises(ClusterError, match=r"the size of t-0 could not be read, .*: no answer"):
        rig.prepared(AWAY)


def test_a_leader_that_has_no_copy_is_looked_up_again(rig: TwinRig, odd: OddPort) -> None:
    whole = rig.prepared(AWAY)
    odd.answer("describe_log_dirs", as_it_is, no_copies)  # the first answer is about directories, not about copies
    assert rig.prepared(AWAY).moves == whole.moves


@pytest.mark.parametrize(("method", "key", "what"), [
    ("describe_log_dirs", 2, "the free space of broker 2"),
    ("describe_configs", ConfigResource.topic("t"), "min.insync.replicas of topic t"),
])  # fmt: skip
def test_nothing_starts_until_a_guard_can_read_what_it_needs(
    rig: TwinRig, odd: OddPort, method: str, key: object, what: str
) -> None:
    rig.twin.crash(4)  # so that a partition has replicas out of sync, and its min.insync.replicas matters
    rig.transport.sleep(BREAK_S)
    started = rig.prepared(AWAY, throttle=None)
    odd.answer_always(method, silent(key))
    rig.after(BREAK_S, lambda: odd.answer_always(method, as_it_is))
    begun_ms = rig.transport.now_ms()
    assert rig.run(started).state == "done"
    assert submitted_ms(rig) >= begun_ms + BREAK_S * 1000
    (told,) = [words for words in guard_words(rig) if what in words]
    assert f"{what} could not be read: no answer; nothing new is started meanwhile" in told


def test_trouble_from_before_the_run_that_was_read_late_holds_no_run(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1]], others={"u": [[3, 4]]})
    rig.odd_port = (odd := OddPort(rig.client)).port
    rig.client.incremental_alter_configs({U: [ConfigChange.set("min.insync.replicas", "2")]}).raise_if_any()
    rig.twin.crash(4)
    rig.transport.sleep(BREAK_S)
    started = rig.prepared(AWAY, throttle=None)
    odd.answer_always("describe_configs", silent(U))
    rig.after(BREAK_S, lambda: odd.answer_always("describe_configs", as_it_is))
    rig.end_within(10 * BREAK_S)
    assert rig.run(started).state == "done"
    assert not any("which was not so when the run began" in words for words in guard_words(rig))


def without_sizes(*brokers: int) -> Answer:
    """These brokers do not tell how large the disks of their directories are."""

    def answer(real: Real, asked: Collection[int], **named: Any) -> Batch[int, tuple[LogDir, ...]]:
        found: Batch[int, tuple[LogDir, ...]] = real(asked, **named)
        untold = {
            broker: tuple(replace(one, total_bytes=None, usable_bytes=None) for one in dirs)
            for broker, dirs in found.ok.items()
            if broker in brokers
        }
        return Batch({**found.ok, **untold}, found.failed)

    return answer


@pytest.mark.parametrize("silent_ones", [(2,), (1, 2)], ids=["one of two", "all that the plan names"])
def test_nothing_starts_while_a_broker_tells_no_size_of_its_disks(
    rig: TwinRig, odd: OddPort, silent_ones: tuple[int, ...]
) -> None:
    started = rig.prepared(AWAY, throttle=None)
    odd.answer_always("describe_log_dirs", without_sizes(*silent_ones))
    rig.after(BREAK_S, lambda: odd.answer_always("describe_log_dirs", as_it_is))
    begun_ms = rig.transport.now_ms()
    assert rig.run(started).state == "done"
    assert submitted_ms(rig) >= begun_ms + BREAK_S * 1000
    assert "the free space of broker 2 could not be read: it does not tell that of each" in guard_words(rig)[0]


def test_where_no_broker_tells_sizes_of_disks_a_run_goes_on(rig: TwinRig, odd: OddPort) -> None:
    """None does before Kafka 3.3, and the preview says so."""
    started = rig.prepared(AWAY, throttle=None)
    odd.answer_always("describe_log_dirs", without_sizes(*range(5)))
    assert rig.run(started).state == "done"
    assert guard_words(rig) == []


def listed_by_nobody(real: Real, names: object = None, *, broker: int | None = None, **named: Any) -> Any:
    """No broker that is asked by name lists its topics; asked for single ones they answer."""
    if names is None and broker is not None:
        raise NO_ANSWER
    return real(names, broker=broker, **named)


@pytest.mark.parametrize("guard", [GuardName.OFFLINE, GuardName.MIN_ISR, GuardName.UNDER_REPLICATED])
def test_any_guard_of_topics_holds_a_run_alone_while_they_are_unread(
    rig: TwinRig, odd: OddPort, guard: GuardName
) -> None:
    only = {one: Reaction.HOLD if one is guard else Reaction.OFF for one in GuardName}
    started = rig.prepared(AWAY, throttle=None, guards=only)
    odd.answer_always("describe_topics", listed_by_nobody)
    rig.after(BREAK_S, lambda: odd.answer_always("describe_topics", as_it_is))
    begun_ms = rig.transport.now_ms()
    assert rig.run(started).state == "done"
    assert submitted_ms(rig) >= begun_ms + BREAK_S * 1000
    assert any(f"{guard}: topic t could not be read: no answer" in words for words in guard_words(rig))


def slow_down(rig: TwinRig) -> None:
    """Copies of `other-0` and between directories of broker 3 take 100 s: ten megabytes at 100 kB/s."""
    rate = ConfigChange.set(LEADER_THROTTLED_RATE, "100000")
    within = ConfigChange.set(LOG_DIR_RATE, "100000")
    listed = ConfigChange.set(LEADER_THROTTLED_REPLICAS, "*")
    changes = {ConfigResource.broker(broker): [rate, within] for broker in (2, 3)}
    rig.client.incremental_alter_configs(changes | {ConfigResource.topic("other"): [listed]}).raise_if_any()


def between_brokers(rig: TwinRig) -> None:
    rig.client.alter_partition_reassignments({OTHER: (3, 2)}).raise_if_any()


def between_directories(rig: TwinRig, name: TopicPartition = OTHER) -> None:
    shown = rig.client.describe_log_dirs([3])[3]
    (away,) = (one.path for one in shown if name not in {copy.topic_partition for copy in one.replicas})
    rig.client.alter_replica_log_dirs({TopicPartitionReplica(3, *name): away}).raise_if_any()


def without_present_copies(real: Real, asked: Collection[int], **named: Any) -> Batch[int, tuple[LogDir, ...]]:
    """Copies that are not on their way are left out of every directory."""
    found: Batch[int, tuple[LogDir, ...]] = real(asked, **named)
    dirs = {
        broker: tuple(replace(one, replicas=tuple(copy for copy in one.replicas if copy.is_future)) for one in dirs)
        for broker, dirs in found.ok.items()
    }
    return Batch(dirs, found.failed)


@pytest.mark.parametrize(("copy", "answer", "destination", "what"), [
    (between_brokers, silent(3), 2, "the size of other-0, which others copy to broker 2, could not be read: no answer"),
    (between_brokers, no_copies, 2, "to broker 2, could not be read: none reported one"),
    (between_directories, without_present_copies, 3, "to broker 3, could not be read: its directory reported none"),
])  # fmt: skip
def test_a_copy_of_others_of_unknown_size_holds_the_run(
    tmp_path: Path, copy: Callable[[TwinRig], None], answer: Answer, destination: int, what: str
) -> None:
    rig = TwinRig(tmp_path, [[0, 1]], others={"other": [[3]]})
    odd = OddPort(rig.client)
    rig.odd_port = odd.port
    started = rig.prepared({0: (destination, 1)}, throttle=None)
    slow_down(rig)
    copy(rig)
    odd.answer_always("describe_log_dirs", answer)
    rig.after(BREAK_S, lambda: odd.answer_always("describe_log_dirs", as_it_is))
    begun_ms = rig.transport.now_ms()
    assert rig.run(started).state == "done"
    assert submitted_ms(rig) >= begun_ms + BREAK_S * 1000
    assert any(what in words and "nothing new is started meanwhile" in words for words in guard_words(rig))


def test_a_copy_of_others_counts_although_the_run_moves_its_partition(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 3], [0, 1]], others={"other": [[3]]})
    slow_down(rig)
    started = rig.prepared({0: (2, 3), 1: (0, 3)}, throttle=None)
    between_directories(rig, tp(0))
    rig.run(started)
    health = next(event.health for event in rig.seen if isinstance(event, HealthObserved))
    assert {(copy.topic_partition, copy.broker) for copy in health.foreign_copies} == {(tp(0), 3)}


def test_a_copy_that_others_began_for_a_waiting_move_has_room(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1], [0, 1], [0, 1]])
    listed = ConfigChange.set(LEADER_THROTTLED_REPLICAS, "2:0")
    rig.client.incremental_alter_configs({ConfigResource.topic("t"): [listed]}).raise_if_any()
    started = rig.prepared(dict.fromkeys(range(3), (2, 1)), throttle=RATE // 4, pace=pace(moves=1))
    rig.between_steps(8, lambda: rig.client.alter_partition_reassignments({tp(2): (2, 1)}).raise_if_any())
    assert rig.run(started).state == "done"
    inspections = [event.health for event in rig.seen if isinstance(event, HealthObserved)]
    assert {(copy.topic_partition, copy.broker) for each in inspections for copy in each.foreign_copies} == {(tp(2), 2)}


@pytest.mark.parametrize("reaction", [Reaction.CANCEL, Reaction.ROLLBACK])
def test_no_answer_neither_cancels_a_run_nor_undoes_it(rig: TwinRig, odd: OddPort, reaction: Reaction) -> None:
    started = rig.prepared(AWAY, guards={GuardName.DISK: reaction})
    odd.answer_always("describe_log_dirs", silent(2))
    rig.after(BREAK_S, lambda: odd.answer_always("describe_log_dirs", as_it_is))
    assert rig.run(started).state == "done"


def test_a_guard_that_only_warns_says_what_it_could_not_read(rig: TwinRig, odd: OddPort) -> None:
    started = rig.prepared(AWAY, guards={GuardName.DISK: Reaction.WARN, GuardName.CORDONED: Reaction.WARN})
    odd.answer_always("describe_log_dirs", silent(2))
    assert rig.run(started).state == "done"
    assert any("the free space of broker 2 could not be read: no answer. " in words for words in guard_words(rig))


def test_a_plan_that_would_refuse_producers_is_refused(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0], [1, 2]])
    rig.client.incremental_alter_configs({ConfigResource.topic("t"): [ConfigChange.set("min.insync.replicas", "2")]})
    with pytest.raises(
        IllegalPlan, match=r"topic t: producers with acks=all would be refused .* at 1 of its partitions"
    ):
        rig.prepared({0: (3,), 1: (3, 4)})
    assert rig.run(rig.prepared({1: (3, 4)})).state == "done"


def test_a_min_isr_that_is_raised_during_a_run_holds_it(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0], [1]])
    started = rig.prepared({0: (3,), 1: (4,)}, throttle=RATE // 8, pace=pace(moves=1))
    raised = ConfigChanged(ConfigResource.topic("t"), "min.insync.replicas", "2")
    lowered = ConfigChanged(ConfigResource.topic("t"), "min.insync.replicas", "1")
    rig.after(2, lambda: rig.twin.commit(Decision((raised,), None)))
    rig.after(200, lambda: rig.twin.commit(Decision((lowered,), None)))
    assert rig.run(started).state == "done"
    assert any(words.startswith("min-isr: 1 partition has fewer replicas in sync") for words in guard_words(rig))


def test_copies_of_the_run_explain_themselves_where_no_move_is_listed(rig: TwinRig, odd: OddPort) -> None:
    """The guard said of the run's own copies that the run does not explain them."""

    def without_moves(real: Real, names: object = None) -> object:
        return {} if names is None else real(names)  # as of a controller that was just elected

    started = rig.prepared(AWAY, throttle=RATE // 4)
    odd.answer_always("list_partition_reassignments", without_moves)
    assert rig.run(started).state == "done"
    assert not [words for words in guard_words(rig) if "does not explain" in words]


@pytest.mark.parametrize(("topic", "is_held"), [("other", False), ("t", True)])
def test_a_hidden_setting_holds_a_run_of_its_topic_only(tmp_path: Path, topic: str, is_held: bool) -> None:
    """Another topic is out of sync, and this client may not read its settings."""
    rig = TwinRig(tmp_path, [[0, 1], [3, 4]], others={"other": [[0, 4]]})
    odd = OddPort(rig.client)
    rig.odd_port = odd.port
    rig.twin.crash(4)
    rig.transport.sleep(BREAK_S)
    started = rig.prepared(AWAY, throttle=None)
    hidden = silent(ConfigResource.topic(topic), why=refusal(TOPIC_AUTHORIZATION_FAILED))
    odd.answer_always("describe_configs", hidden)
    rig.after(BREAK_S, lambda: odd.answer_always("describe_configs", as_it_is))
    assert rig.run(started).state == "done"
    assert any(words.startswith("min-isr") for words in guard_words(rig)) == is_held


def set_rate(rig: TwinRig, broker: int) -> None:
    rig.client.incremental_alter_configs(
        {ConfigResource.broker(broker): [ConfigChange.set(FOLLOWER_THROTTLED_RATE, "5000000")]}
    )


def test_a_throttle_of_a_broker_that_is_silent_once_is_found(rig: TwinRig, odd: OddPort) -> None:
    set_rate(rig, 2)
    started = rig.prepared(AWAY)
    odd.answer("describe_configs", silent(ConfigResource.broker(2)))
    (found,) = read_others(rig.port, started).settings
    assert (found.key.resource, found.value) == (ConfigResource.broker(2), "5000000")


@pytest.mark.parametrize("throttle", [RATE, None])
def test_a_run_is_refused_while_a_broker_does_not_tell_its_throttle(
    rig: TwinRig, odd: OddPort, throttle: int | None
) -> None:
    started = rig.prepared(AWAY, throttle=throttle)
    odd.answer_always("describe_configs", silent(ConfigResource.broker(2)))
    with pytest.raises(
        ClusterError, match="whether throttles are set is not known: broker 2 could not be read: no answer"
    ):
        read_others(rig.port, started)


@pytest.mark.parametrize(("resource", "throttle", "is_refused"), [
    (ConfigResource.topic("other"), RATE, False),
    (ConfigResource.topic("t"), None, False),
    (ConfigResource.topic("t"), RATE, True),
    (ConfigResource.broker(2), None, False),
    (ConfigResource.broker(2), RATE, True),
])  # fmt: skip
def test_what_may_not_be_read_matters_to_a_run_that_sets_it(
    tmp_path: Path, resource: ConfigResource, throttle: int | None, is_refused: bool
) -> None:
    rig = TwinRig(tmp_path, [[0, 1]], others={"other": [[0]]})
    odd = OddPort(rig.client)
    rig.odd_port = odd.port
    started = rig.prepared(AWAY, throttle=throttle)
    code = TOPIC_AUTHORIZATION_FAILED if resource.type is ResourceType.TOPIC else CLUSTER_AUTHORIZATION_FAILED
    odd.answer_always("describe_configs", silent(resource, why=refusal(code)))
    with pytest.raises(ClusterError) if is_refused else nullcontext():
        read_others(rig.port, started)


# Between the preflight and the start of a move.


def set_min_isr(rig: TwinRig, value: str | None) -> None:
    change = ConfigChanged(ConfigResource.topic("t"), "min.insync.replicas", value)
    rig.twin.commit(Decision((change,), None))


def told(rig: TwinRig) -> set[str]:
    return {one.message for event in rig.seen if isinstance(event, MovesObserved) for one in event.unread}


def test_a_move_that_would_lock_producers_out_by_now_is_not_started(rig: TwinRig) -> None:
    started = rig.prepared(AWAY, throttle=None)
    set_min_isr(rig, "3")
    begun_ms = rig.transport.now_ms()
    rig.after(BREAK_S, lambda: set_min_isr(rig, "2"))
    assert rig.run(started).state == "done"
    assert submitted_ms(rig) >= begun_ms + BREAK_S * 1000
    (words,) = told(rig)
    assert words == (
        "is not started: 2 of its replicas are in sync, and with min.insync.replicas 3 producers with acks=all "
        "would be refused"
    )


def test_a_move_that_waits_for_producers_lets_others_start(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1], [0, 1], [2, 3, 4]])
    rig.after(1, lambda: set_min_isr(rig, "3"))
    rig.after(BREAK_S, lambda: set_min_isr(rig, "2"))
    targets = {0: (2, 1), 1: (2, 1), 2: (0, 3, 4)}
    assert rig.run(rig.prepared(targets, pace=pace(Order.NAME, moves=1))).state == "done"
    sent = [name for event in rig.seen if isinstance(event, SubmissionIntended) for name in event.partitions]
    assert sent == [TopicPartition("t", number) for number in (0, 2, 1)]


def test_a_move_of_a_partition_that_has_become_short_is_not_started(rig: TwinRig) -> None:
    set_min_isr(rig, "2")
    (move,) = rig.prepared(AWAY).moves
    rig.twin.crash(0)
    rig.transport.sleep(BREAK_S)
    for short, is_withheld in ((frozenset[TopicPartition](), True), (frozenset({move.topic_partition}), False)):
        answers = read_moves(rig.client, [move], {move.topic_partition}, ProducerGuard(short))
        assert bool(answers.unread) is is_withheld
    assert not read_moves(rig.client, [move], {move.topic_partition}, ProducerGuard()).unread


def test_a_partition_short_from_the_beginning_is_no_reason_to_wait(rig: TwinRig) -> None:
    set_min_isr(rig, "2")
    rig.twin.crash(1)
    rig.transport.sleep(BREAK_S)
    assert rig.run(rig.prepared({0: (2, 0)}, throttle=None)).state == "done"
    assert told(rig) == set()


def test_nothing_starts_while_min_insync_replicas_cannot_be_read(rig: TwinRig, odd: OddPort) -> None:
    started = rig.prepared(AWAY, throttle=None)
    odd.answer_always("describe_configs", silent(ConfigResource.topic("t")))
    rig.after(BREAK_S, lambda: odd.answer_always("describe_configs", as_it_is))
    assert rig.run(started).state == "done"
    assert submitted_ms(rig) >= BREAK_S * 1000
    assert [words for words in told(rig) if "not started: min.insync.replicas of its topic could not be read" in words]


@pytest.mark.parametrize("allowed", [True, False])
def test_who_warns_or_agreed_starts_all_the_same(rig: TwinRig, *, allowed: bool) -> None:
    guards = {} if allowed else {GuardName.MIN_ISR: Reaction.WARN}
    started = rig.prepared(AWAY, throttle=None, guards=guards, allows_producer_outage=allowed)
    set_min_isr(rig, "3")
    assert rig.run(started).state == "done"
    assert told(rig) == set()


def test_copies_of_others_count_though_one_list_of_moves_is_empty(tmp_path: Path) -> None:
    """A controller that is active no longer lists nothing, without an error; the disk of broker 2 is soon theirs."""
    rig = TwinRig(tmp_path, [[0, 1]], others={"other": [[3]]})
    odd = OddPort(rig.client)
    slow_down(rig)
    moves = rig.prepared(AWAY).moves
    between_brokers(rig)
    odd.answer("list_partition_reassignments", nothing_listed)
    health = inspect_health(odd.port, CheckHealth(moves, ()))
    assert [(copy.topic_partition, copy.broker) for copy in health.foreign_copies] == [(OTHER, 2)]


def test_a_copy_between_directories_has_a_size_without_a_leader(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[3, 4]])
    for deed in (lambda: rig.twin.crash(3), lambda: rig.twin.crash(4), lambda: rig.twin.start(3)):
        deed()
        rig.transport.sleep(BREAK_S)
    assert rig.client.describe_topics()["t"].partitions[0].leader == NO_LEADER
    (move,) = started(rig, {0: ((3, 4), (other(rig, 0, 3), "any"))}).moves
    assert move.size_bytes == 10 * MEGABYTES
