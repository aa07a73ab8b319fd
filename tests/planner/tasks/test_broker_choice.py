import pytest

from kreassign.errors import InputError
from kreassign.planner.tasks.broker_choice import chosen_brokers
from tests.planner.worlds import brokers, partition, world

BROKERS = world(brokers(3, 1, 7), [partition(0, 1)]).brokers


def test_brokers_are_chosen_by_id() -> None:
    assert chosen_brokers(BROKERS, (7, 1)).tolist() == [True, False, True]


@pytest.mark.parametrize(("ids", "words"), [
    ((4, 9, 1), "there is no broker 4, 9 in this cluster; it has 1, 3, 7"),
    ((), "name at least one broker"),
])  # fmt: skip
def test_brokers_that_are_not_there_are_refused(ids: tuple[int, ...], words: str) -> None:
    with pytest.raises(InputError, match=words):
        chosen_brokers(BROKERS, ids)
