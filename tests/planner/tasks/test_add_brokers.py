import pytest

from kreassign.errors import InputError
from kreassign.planner.tasks import add_brokers
from tests.planner.worlds import brokers, partition, world

PROBLEM = world(brokers(1, 2, 3), [partition(0, 1)])


def test_replicas_go_only_onto_the_new_ones_unless_mixed() -> None:
    assert add_brokers(PROBLEM, (3,)).brokers.may_receive.tolist() == [False, False, True]
    assert add_brokers(PROBLEM, (3,), only_onto=False).brokers.may_receive.all()


def test_brokers_that_did_not_join_are_refused() -> None:
    with pytest.raises(InputError, match="no broker 4"):
        add_brokers(PROBLEM, (4,))
