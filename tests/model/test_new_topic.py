import pytest

from kreassign.errors import InputError
from kreassign.model import NewTopic


@pytest.mark.parametrize("counts", [{"partition_count": 3}, {"replication_factor": 2}])
def test_counts_and_assignments_exclude_each_other(counts: dict[str, int]) -> None:
    with pytest.raises(InputError, match="topic orders: give either counts or assignments, not both"):
        NewTopic("orders", assignments=((0, 1),), **counts)


def test_either_alone_is_fine_and_so_is_neither() -> None:
    assert NewTopic("orders", 3, 2).assignments == ()
    assert NewTopic("orders", assignments=((0, 1),)).partition_count == -1
    assert NewTopic("orders") == NewTopic("orders", -1, -1)
