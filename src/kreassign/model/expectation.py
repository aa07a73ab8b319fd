"""Compare-and-set for reassignments: the replica lists that a plan was made for, against those that there are.

KIP-860 rejected the check of whole lists as too complex for the controller, and settled for their length. On the client
it is a comparison right before submitting: a plan made on stale metadata never runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from kreassign.errors import Drifted
from kreassign.model.partition import TopicPartition
from kreassign.model.reassignment import OngoingReassignment

Replicas = Mapping[TopicPartition, tuple[int, ...]]


def check_expected(
    expected: Replicas, current: Replicas, ongoing: Mapping[TopicPartition, OngoingReassignment] | None = None
) -> None:
    """Raise `Drifted` with a line for each partition that is not as expected: another list, on its way, or gone."""
    if differences := list(_differences(expected, current, ongoing or {})):
        raise Drifted("nothing was submitted, because the cluster is not what was expected:\n" + "\n".join(differences))


def missing_expectations(expected: Replicas, wanted: Iterable[TopicPartition]) -> tuple[TopicPartition, ...]:
    """The partitions of a plan of which it is not said what is expected."""
    return tuple(sorted(set(wanted) - expected.keys()))


def _differences(
    expected: Replicas, current: Replicas, ongoing: Mapping[TopicPartition, OngoingReassignment]
) -> Iterator[str]:
    for partition in sorted(expected):
        wanted = _ids(expected[partition])
        if partition in ongoing:
            target = _ids(ongoing[partition].target)
            yield f"  {partition}: expected at rest on {wanted}, but it is on its way to {target}"
        elif partition not in current:
            yield f"  {partition}: expected on {wanted}, but there is no such partition"
        elif current[partition] != expected[partition]:
            yield f"  {partition}: expected on {wanted}, but it is on {_ids(current[partition])}"


def _ids(brokers: tuple[int, ...]) -> str:
    return ",".join(map(str, brokers))
