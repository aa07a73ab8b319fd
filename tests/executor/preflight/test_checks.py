from dataclasses import replace

import pytest

from kreassign.executor.preflight import ClusterNow, is_met, violations
from kreassign.model import (
    Batch,
    Broker,
    Cluster,
    LogDir,
    LogDirReplica,
    OngoingReassignment,
    Partition,
    TopicPartition,
)
from kreassign.model.closures import REFUSES, Closure
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.throttle import BrokerRate, ThrottleRates

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
CLUSTER = Cluster("c", 0, tuple(Broker(number, "localhost", 9092) for number in range(3)))
SITUATION = ClusterNow(CLUSTER, {T0: Partition(T0, (0, 1), (0, 1), 0)})


def plan(*wishes: PartitionAssignment) -> Plan:
    return Plan(wishes)


def to(partition: TopicPartition, *replicas: int) -> PartitionAssignment:
    return PartitionAssignment(partition, replicas)


def test_a_plan_that_fits_the_cluster_has_no_violation() -> None:
    assert violations(plan(to(T0, 1, 2)), SITUATION, ThrottleRates(1_000)) == ()


@pytest.mark.parametrize(
    ("wishes", "sentence"),
    [
        ([], "it names no partition"),
        ([to(T0)], "t-0: the list of replicas is empty"),
        ([to(T0, 1, 1)], "t-0: broker 1 is named more than once"),
        ([to(T0, 2, 2, 2)], "t-0: broker 2 is named more than once"),
        ([to(T0, 1, 7)], "t-0: broker 7 is not live; live brokers are 0,1,2"),
        ([to(T0, 1, 2), to(T0, 2, 1)], "t-0 is named more than once"),
        ([to(T1, 1, 2)], "t-1: there is no such partition: leave it out, or plan again"),
        ([to(T0, 1), to(TopicPartition("nope", 0), 1)], "nope-0: there is no topic nope: leave it out, or plan again"),
        (
            [PartitionAssignment(T0, (1,), ("/data/a",))],
            "t-0: broker 1 did not report its log directories, of which /data/a is named",
        ),
    ],
)
def test_each_thing_that_is_wrong_is_a_sentence(wishes: list[PartitionAssignment], sentence: str) -> None:
    assert sentence in violations(plan(*wishes), SITUATION, ThrottleRates())
    assert sentence in violations(plan(*wishes), replace(SITUATION, is_stepwise=True), ThrottleRates())


def test_a_broker_that_is_down_does_not_hinder_what_stays_as_it_is() -> None:
    beside = {**SITUATION.partitions, T1: Partition(T1, (2, 7), (2,), 2)}
    seen = replace(SITUATION, partitions=beside)
    assert violations(plan(to(T0, 1, 2), to(T1, 2, 7)), seen, ThrottleRates()) == ()
    for wish in (to(T1, 7, 2), PartitionAssignment(T1, (2, 7), ("any", "/data/a"))):
        assert violations(plan(wish), seen, ThrottleRates()) == ("t-1: broker 7 is not live; live brokers are 0,1,2",)


BINDING = Closure.CORDONED | Closure.BINDING


@pytest.mark.parametrize(("closure", "wanted", "said"), [
    (BINDING, (1, 2), "t-0: broker 1 stays in its list, which changes, but all its working log directories are cordon"),
    (BINDING, (1, 0), "t-0: broker 1 stays in its list, which changes, but "),
    (BINDING, (0, 1), ""),
    (BINDING, (0, 2), ""),
    (Closure.CORDONED, (1, 2), ""),
    (Closure.UNREAD | Closure.BINDING, (1, 2), "t-0: broker 1 stays in its list, which changes, but it did not report"),
    (Closure.UNREAD, (1, 2), ""),
])  # fmt: skip
def test_a_list_that_kafka_refuses_for_a_cordon_is_refused_before(
    closure: Closure, wanted: tuple[int, ...], said: str
) -> None:
    view = replace(SITUATION, closures={1: closure})
    found = violations(plan(to(T0, *wanted)), view, ThrottleRates())
    assert bool(found) is bool(said)
    assert all(one.startswith(said) and REFUSES in one for one in found)


@pytest.mark.parametrize(("original", "wanted", "closure", "is_refused"), [
    ((0, 1), (2, 3), BINDING, True),
    ((1, 0), (2, 3), BINDING, False),
    ((0, 1), (2, 1), BINDING, False),
    ((0, 1), (2, 3), Closure.CORDONED, False),
])  # fmt: skip
def test_a_list_between_steps_that_kafka_refuses_is_refused_before(
    original: tuple[int, ...], wanted: tuple[int, ...], closure: Closure, *, is_refused: bool
) -> None:
    live = replace(CLUSTER, brokers=tuple(Broker(number, "localhost", 9092) for number in range(4)))
    present = {T0: Partition(T0, original, original, original[0])}
    view = replace(SITUATION, cluster=live, partitions=present, closures={0: closure}, is_stepwise=True)
    found = violations(plan(to(T0, *wanted)), view, ThrottleRates())
    assert [one.startswith("t-0: broker 0 stays in a list between two steps, but ") for one in found] == (
        [True] * is_refused
    )
    assert violations(plan(to(T0, *wanted)), replace(view, is_stepwise=False), ThrottleRates()) == ()


@pytest.mark.parametrize(("closure", "words"), [
    (BINDING, "all its working log directories are cordoned, and Kafka 4.4, and 4.3 with KAFKA-20832, refuse"),
    (Closure.UNREAD, "it did not report whether its log directories are cordoned; see why it does not answer"),
    (Closure.CORDONED, ""),
])  # fmt: skip
def test_a_closed_destination_is_refused_unless_kafka_is_known_to_take_it(closure: Closure, words: str) -> None:
    found = violations(plan(to(T0, 0, 2)), replace(SITUATION, closures={2: closure}), ThrottleRates())
    assert [one.startswith(f"t-0: broker 2 gets a copy, but {words}") for one in found] == [True] * bool(words)


@pytest.mark.parametrize(("topics", "said"), [
    (("a",), "its topic a is not here (cluster id {id}); check which cluster it was made for"),
    (tuple(f"x{number}" for number in range(1_000)),
     "none of its 1,000 topics is here (cluster id {id}); check which cluster it was made for"),
])  # fmt: skip
def test_a_plan_for_another_cluster_is_one_sentence(topics: tuple[str, ...], said: str) -> None:
    strange = plan(*(to(TopicPartition(topic, number), 7, 7) for topic in topics for number in range(3)))
    assert violations(strange, SITUATION, ThrottleRates()) == (said.format(id=CLUSTER.cluster_id),)


def test_a_partition_that_someone_else_is_moving_is_not_touched() -> None:
    moving = ClusterNow(CLUSTER, SITUATION.partitions, {T0: OngoingReassignment((2, 0, 1), (2,), (0,))})
    (sentence,) = violations(plan(to(T0, 1, 2)), moving, ThrottleRates())
    assert sentence.startswith("t-0: it is being reassigned already (replicas: 2,0,1. adding: 2. removing: 0.)")


def test_a_plan_made_for_other_replicas_is_refused_with_the_difference() -> None:
    stale = ClusterNow(CLUSTER, SITUATION.partitions, expected={T0: (2, 0)})
    (sentence,) = violations(plan(to(T0, 1, 2)), stale, ThrottleRates())
    assert sentence == "t-0: its replicas are [0, 1], but the plan was made for [2, 0]; replan"


def test_a_cancelled_plan_may_run_again_after_reordered_replicas() -> None:
    cancelled = ClusterNow(CLUSTER, SITUATION.partitions, expected={T0: (1, 0)})
    assert violations(plan(to(T0, 1, 2)), cancelled, ThrottleRates()) == ()


@pytest.mark.parametrize("wish", [(0, 1), (1, 0)])
def test_partitions_that_are_where_the_plan_puts_them_do_not_make_it_stale(wish: tuple[int, ...]) -> None:
    half_done = ClusterNow(CLUSTER, SITUATION.partitions, expected={T0: (2, 0), T1: (2, 0)})
    assert not [one for one in violations(plan(to(T0, *wish)), half_done, ThrottleRates()) if one.startswith("t-0")]


@pytest.mark.parametrize(
    ("leader", "target", "nothing_is_left"), [(0, (0, 1), True), (0, (1, 0), False), (1, (0, 1), False)]
)
def test_a_plan_is_met_if_lists_and_leaders_are_its_own(
    leader: int, target: tuple[int, ...], nothing_is_left: bool
) -> None:
    seen = replace(SITUATION, partitions={T0: replace(SITUATION.partitions[T0], leader=leader)})
    assert is_met(plan(to(T0, *target)), seen) == nothing_is_left


def test_a_throttle_that_lets_nothing_through_is_refused() -> None:
    assert violations(plan(to(T0, 1, 2)), SITUATION, ThrottleRates(0)) == (
        "a throttle of 0 B/s would never let it end",
    )


def test_a_rate_for_a_broker_that_is_not_there_is_refused() -> None:
    assert violations(plan(to(T0, 1, 2)), SITUATION, ThrottleRates(None, (BrokerRate(7, 5),))) == (
        "a rate of its own is given, but broker 7 is not live; live brokers are 0,1,2",
    )


def test_all_violations_are_told_at_once() -> None:
    assert len(violations(plan(to(T0, 7, 7), to(T1)), SITUATION, ThrottleRates(-1))) == 5


def _with(*log_dirs: LogDir) -> ClusterNow:
    return replace(SITUATION, log_dirs=Batch({1: log_dirs}))


def _log_dir(path: str, *copies: LogDirReplica, error: str | None = None, is_cordoned: bool = False) -> LogDir:
    return LogDir(path, error, None, None, is_cordoned, copies)


@pytest.mark.parametrize(
    ("log_dirs", "sentence"),
    [
        ((_log_dir("/b"),), "t-0: there is no log directory /a of broker 1; it has /b"),
        ((_log_dir("/a", error="disk error"),), "t-0: log directory /a of broker 1 is offline (disk error)"),
        (
            (_log_dir("/a", is_cordoned=True),),
            "t-0: log directory /a of broker 1 is cordoned (KIP-1066) and takes no copies",
        ),
        (
            (_log_dir("/a"), _log_dir("/b", LogDirReplica(T0, 5, 1, is_future=True))),
            "t-0: its copy on broker 1 is being moved to /b already; wait for that",
        ),
    ],
)
def test_a_log_directory_that_takes_no_copy_is_refused_beforehand(log_dirs: tuple[LogDir, ...], sentence: str) -> None:
    wish = PartitionAssignment(T0, (1, 2), ("/a", "any"))
    assert violations(plan(wish), _with(*log_dirs), ThrottleRates()) == (sentence,)


def test_a_copy_that_is_in_a_cordoned_directory_may_stay_there() -> None:
    here = _log_dir("/a", LogDirReplica(T0, 5, 0, is_future=False), is_cordoned=True)
    assert violations(plan(PartitionAssignment(T0, (1, 2), ("/a", "any"))), _with(here), ThrottleRates()) == ()


def test_a_target_that_keeps_a_lagging_replica_for_one_in_sync_is_refused() -> None:
    lagging = ClusterNow(CLUSTER, {T0: Partition(T0, (0, 1, 2), (0, 2), 0)})
    (sentence,) = violations(plan(to(T0, 0, 1)), lagging, ThrottleRates())
    assert sentence.startswith("t-0: broker 2, in sync, would go, and broker 1, which is not, would stay")
    assert violations(plan(to(T0, 2, 0)), lagging, ThrottleRates()) == ()
