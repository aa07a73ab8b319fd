from kreassign.planner.tasks import TopicChoice, rebalance
from tests.planner.worlds import brokers, partition, world

PROBLEM = world(
    brokers(1), [partition(0, 1, topic="a"), partition(0, 1, topic="b"), partition(1, 1, may_move=False, topic="a")]
)


def test_only_chosen_topics_may_move_and_what_was_fixed_stays_so() -> None:
    assert rebalance(PROBLEM, TopicChoice(("a",))).partitions.may_move.tolist() == [True, False, False]
    assert rebalance(PROBLEM).partitions.may_move.tolist() == [True, False, True]
