from typing import Any

import pytest

from kreassign.errors import InputError
from kreassign.model import NewTopic


@pytest.mark.parametrize("counts", [{"partition_count": 1}, {"replication_factor": 1}, {"partition_count": 0}])
def test_counts_and_assignments_exclude_each_other(counts: dict[str, Any]) -> None:
    with pytest.raises(InputError) as refused:
        NewTopic("orders", assignments=((0, 1),), **counts)
    assert str(refused.value) == "topic orders: give either counts or assignments, not both"


def test_either_alone_is_fine_and_so_is_neither() -> None:
    assert NewTopic("orders", 3, 2).assignments == ()
    assert NewTopic("orders", assignments=((0, 1),)).partition_count == -1
    assert NewTopic("orders") == NewTopic("orders", -1, -1)
