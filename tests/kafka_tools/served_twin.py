"""A twin with something to elect, and the address where it is served."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from kreassign.model import TopicPartition
from kreassign.twin.access import Permissions
from kreassign.twin.blueprint import PartitionPlan, TopicPlan, small_cluster
from kreassign.twin.cluster import Twin
from kreassign.twin.core import TwinSettings
from kreassign.twin.server import serving

PARTITIONS = 4


def twin(permissions: Permissions | None = None) -> Twin:
    """Preferred replicas lead partition 0 alone; those of 1 and 3 could, that of 2 is out of sync and down."""
    plans = (
        PartitionPlan((0, 1)),
        PartitionPlan((1, 2), isr=(2, 1)),
        PartitionPlan((3, 0), isr=(0,)),
        PartitionPlan((2, 1), isr=(1, 2)),
    )
    blueprint = replace(small_cluster(4), topics=(TopicPlan("t", plans),))
    asked = Twin(blueprint, TwinSettings(permissions=permissions))
    asked.crash(3)
    return asked


@contextmanager
def served(asked: Twin) -> Iterator[str]:
    """The address of its first broker."""
    with serving(asked) as server:
        yield server.bootstrap_servers.split(",")[0]


def leaders(asked: Twin) -> list[int]:
    """Leaders of the partitions."""
    states = (asked.metadata.partition(TopicPartition("t", number)) for number in range(PARTITIONS))
    return [state.leader for state in states if state is not None]
