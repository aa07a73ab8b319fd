import pytest

from kreassign.errors import IllegalPlan
from kreassign.model import TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.planner import Assignment, LogDirFacts, assignment_of, current_plan, plan_of
from kreassign.planner.results import index_of
from tests.planner.small_problems import brokers, moved, partition, plan, posed

DISKS = (LogDirFacts("/a"), LogDirFacts("/b"))


def test_a_plan_survives_the_way_into_arrays_and_back() -> None:
    problem = posed(brokers(1, 2, 3), [partition(0, 1, 2), partition(1, 2, 3), partition(2, 3, 1)])
    lists = plan((0, (3, 2)), (2, (1,)))
    assignment = assignment_of(problem, lists)
    assert plan_of(problem, assignment) == lists
    assert current_plan(problem, assignment) == plan((0, (1, 2)), (2, (3, 1)))


def test_what_stays_as_it_is_is_not_in_the_plan() -> None:
    problem = posed(brokers(1, 2), [partition(0, 1, 2), partition(1, 2, 1)])
    assert plan_of(problem, moved(problem, (0, (1, 2)))) == Plan()
    assert plan_of(problem, moved(problem, (0, (2, 1)))) == plan((0, (2, 1)))


def test_only_directories_that_change_are_named() -> None:
    hosts = brokers(1, 2, log_dirs=DISKS)
    problem = posed(hosts, [partition(0, 1, 2, log_dirs=("/a", "/a"))])
    entry = PartitionAssignment(TopicPartition("t", 0), (1, 2), ("/b", "any"))
    assert plan_of(problem, assignment_of(problem, Plan((entry,)))) == Plan((entry,))
    stays = PartitionAssignment(TopicPartition("t", 0), (1, 2), ("/a", "any"))
    assert plan_of(problem, assignment_of(problem, Plan((stays,)))) == Plan()


def test_the_current_assignment_changes_nothing() -> None:
    problem = posed(brokers(1, 2), [partition(0, 1, 2)])
    assert plan_of(problem, Assignment.current(problem.partitions)) == Plan()


def test_partitions_are_found_among_topics_and_numbers_with_gaps() -> None:
    problem = posed(brokers(1), [partition(0, 1, topic="a"), partition(7, 1, topic="b"), partition(2, 1, topic="b")])
    assert [index_of(problem.partitions, TopicPartition(*name)) for name in (("a", 0), ("b", 2), ("b", 7))] == [0, 1, 2]
    assert index_of(problem.partitions, TopicPartition("b", 3)) is None
    assert index_of(problem.partitions, TopicPartition("b", 8)) is None
    assert index_of(problem.partitions, TopicPartition("c", 0)) is None


@pytest.mark.parametrize(("lists", "words"), [
    (plan((0, (1, 9))), r"t-0: broker 9 is not live; live brokers are 1,2"),
    (plan((0, (1, 1))), "t-0: broker 1 is named more than once"),
    (plan((5, (1, 2))), "t-5: there is no such partition"),
    (plan((0, (2, 1)), (0, (1, 2))), "t-0 is named more than once"),
    (plan((0, ())), "t-0: the list of replicas is empty"),
    (Plan((PartitionAssignment(TopicPartition("t", 0), (1,), ("/z",)),)), "broker 1 has no log directory /z"),
])  # fmt: skip
def test_a_plan_for_another_cluster_is_refused(lists: Plan, words: str) -> None:
    problem = posed(brokers(1, 2, log_dirs=DISKS), [partition(0, 1, 2)])
    with pytest.raises(IllegalPlan, match=words):
        assignment_of(problem, lists)
