from dataclasses import replace

import pytest

from kreassign.executor.cluster.observations import Answers, ReplicaLocation, news, observe
from kreassign.executor.events import CopyProgress, PartitionObservation, PlacementState, PlannedMove
from kreassign.model import OngoingReassignment, Partition, ReplicaStatus, TopicPartition, TopicPartitionReplica
from kreassign.model.run import LogDirTarget

T0 = TopicPartition("t", 0)
MOVE = PlannedMove(T0, (0, 1), (2, 1), 1_000)


def answers(replicas: tuple[int, ...], ongoing: OngoingReassignment | None = None, *status: ReplicaStatus) -> Answers:
    partition = Partition(T0, replicas, isr=replicas, leader=replicas[0])
    return Answers({T0: partition}, ongoing={T0: ongoing} if ongoing else {}, statuses={T0: status})


@pytest.mark.parametrize(
    ("replicas", "ongoing", "where"),
    [
        ((0, 1), None, PlacementState.UNTOUCHED),
        ((2, 1), None, PlacementState.ARRIVED),
        ((2, 1, 0), None, PlacementState.SETTLING),
        ((1, 0), None, PlacementState.REORDERED),
        ((1, 4), None, PlacementState.DIVERGED),
        ((2, 1, 0), OngoingReassignment((2, 1, 0), (2,), (0,)), PlacementState.MOVING),
        ((0, 1), OngoingReassignment((2, 1, 0), (2,), (0,)), PlacementState.MOVING),
        ((3, 1, 0), OngoingReassignment((3, 1, 0), (3,), (0,)), PlacementState.DIVERGED),
    ],
)
def test_a_partition_is_where_the_controller_lists_it(
    replicas: tuple[int, ...], ongoing: OngoingReassignment | None, where: PlacementState
) -> None:
    (observation,) = observe([MOVE], answers(replicas, ongoing))
    assert observation.placement is where


@pytest.mark.parametrize(("silent", "offline", "rearranging"), [
    ((), (), (0,)), ((0, 1, 2), (), (0, 1)), ((0, 1, 2), (1,), (0,)),
])  # fmt: skip
def test_a_copy_between_directories_does_not_show_that_the_list_was_taken(
    silent: tuple[int, ...], offline: tuple[int, ...], rearranging: tuple[int, ...]
) -> None:
    log_dirs = (*(LogDirTarget(broker, "/b", "/a") for broker in (0, 1, 3)), LogDirTarget(2, "/b"))
    move = replace(MOVE, target=(2, 0, 1), log_dirs=log_dirs)
    partition = Partition(T0, (0, 1), isr=(0, 1), leader=0, offline=offline)
    # The directory of the copy on broker 3 failed: it is listed for good, and goes on no more.
    places = {0: ReplicaLocation("/a", "/b"), 3: ReplicaLocation(None, "/b")}
    locations = {TopicPartitionReplica(broker, *T0): place for broker, place in places.items()}
    (observation,) = observe([move], Answers({T0: partition}, locations=locations, silent=frozenset(silent)))
    assert (observation.placement, observation.rearranging) == (PlacementState.UNTOUCHED, rearranging)


def test_a_plan_that_wants_what_is_there_has_arrived() -> None:
    same = PlannedMove(T0, (0, 1), (0, 1), 0)
    (observation,) = observe([same], answers((0, 1)))
    assert observation.placement is PlacementState.ARRIVED


def test_a_deleted_partition_differs_from_an_unknown_one() -> None:
    (gone,) = observe([MOVE], Answers({}, gone=frozenset({T0})))
    assert gone == PartitionObservation(T0, PlacementState.DELETED, (), (), -1)
    assert observe([MOVE], Answers({})) == ()


def status(broker: int, lag: int | None, size: int | None, *, is_leader: bool = False) -> ReplicaStatus:
    return ReplicaStatus(T0, broker, is_leader, 0, 0, 10, 1, lag, size)


def test_what_is_done_is_the_leaders_size_without_the_lag() -> None:
    ongoing = OngoingReassignment((2, 1, 0), (2,), (0,))
    seen = answers((2, 1, 0), ongoing, status(0, 0, 1_000, is_leader=True), status(1, 0, 990), status(2, 400, 555))
    (observation,) = observe([MOVE], seen)
    assert observation.copies == (CopyProgress(2, 600, 400),)


def test_without_the_leaders_size_the_copys_own_size_is_shown() -> None:
    ongoing = OngoingReassignment((2, 1, 0), (2,), (0,))
    seen = answers((2, 1, 0), ongoing, status(0, 0, None, is_leader=True), status(2, None, 555))
    assert observe([MOVE], seen)[0].copies == (CopyProgress(2, 555, None),)


def test_a_broker_that_did_not_answer_has_no_copy_in_the_observation() -> None:
    ongoing = OngoingReassignment((2, 1, 0), (2,), (0,))
    assert observe([MOVE], answers((2, 1, 0), ongoing, status(0, 0, 1_000, is_leader=True)))[0].copies == ()


@pytest.mark.parametrize(("size_bytes", "copies"), [(400, (CopyProgress(2, 400, 0),)), (1_000, ())])
def test_at_its_end_a_copy_tells_by_how_much_its_log_became_smaller(
    size_bytes: int, copies: tuple[CopyProgress, ...]
) -> None:
    at_leader = status(1, 0, size_bytes, is_leader=True)
    assert observe([MOVE], answers((2, 1), None, at_leader, status(2, 0, size_bytes)))[0].copies == copies


@pytest.mark.parametrize(("size_bytes", "copies"), [(400, (CopyProgress(2, 400, 0),)), (1_000, ())])
def test_a_copied_directory_tells_by_how_much_its_log_became_smaller(
    size_bytes: int, copies: tuple[CopyProgress, ...]
) -> None:
    move = replace(MOVE, original=(2, 1), log_dirs=(LogDirTarget(2, "/b", "/a"),))
    locations = {TopicPartitionReplica(2, *T0): ReplicaLocation("/b", None, size_bytes)}
    (observation,) = observe([move], replace(answers((2, 1)), locations=locations))
    assert (observation.placement, observation.copies) == (PlacementState.ARRIVED, copies)


def test_news_is_what_differs_from_what_is_known() -> None:
    (one,) = observe([MOVE], answers((0, 1)))
    (other,) = observe([MOVE], answers((2, 1)))
    assert news({T0: one}, [one]) == ()
    assert news({T0: one}, [other]) == (other,)
    assert news({T0: None}, [one]) == (one,)
