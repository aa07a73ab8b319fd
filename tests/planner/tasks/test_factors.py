import pytest

from kreassign.errors import InputError
from kreassign.planner.tasks import TopicChoice, change_factors
from tests.planner.worlds import brokers, partition, world

PROBLEM = world(brokers(1, 2, 3), [partition(0, 1, topic="a"), partition(0, 1, 2, topic="b")])


def test_chosen_topics_get_the_factor() -> None:
    assert change_factors(PROBLEM, 3).partitions.wanted_factors.tolist() == [3, 3]
    assert change_factors(PROBLEM, 3, TopicChoice(("a",))).partitions.wanted_factors.tolist() == [3, 2]


@pytest.mark.parametrize("factor", [0, 4])
def test_a_factor_that_cannot_be_is_refused(factor: int) -> None:
    with pytest.raises(InputError, match="there are 3"):
        change_factors(PROBLEM, factor)
