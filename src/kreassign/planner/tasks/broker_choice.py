"""Which brokers a task is about."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from kreassign.errors import InputError
from kreassign.planner.problem.arrays import BoolArray
from kreassign.planner.problem.brokers import Brokers


def chosen_brokers(brokers: Brokers, ids: Iterable[int]) -> BoolArray:
    """Which brokers are named, shape (N,). Raises InputError for one that is not there, or if none is named."""
    wanted, known = set(ids), brokers.ids.tolist()
    if not wanted:
        raise InputError("name at least one broker")
    if unknown := sorted(wanted - set(known)):
        raise InputError(
            f"there is no broker {', '.join(map(str, unknown))} in this cluster; it has {', '.join(map(str, known))}"
        )
    return np.isin(brokers.ids, sorted(wanted))
