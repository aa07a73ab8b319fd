"""Whole answers with fields that no broker would send: a result, or an error of ours; never anything else."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress

import pytest

from kreassign.admin import AdminClient, client_settings
from kreassign.errors import KreassignError
from kreassign.model import ConfigChange, ConfigResource, ElectionType, NewPartitions, NewTopic, TopicPartition
from kreassign.model.throttle import BROKER_THROTTLES
from kreassign.twin.transport import TwinTransport
from tests.twin.asking import twin
from tests.wire.mangled import MangledTransport

pytestmark = pytest.mark.thorough

SEEDS = range(30)
NOT_OURS = (ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, OSError, TypeError, ValueError)
ORDERS = TopicPartition("orders", 0)
CALLS: dict[str, Callable[[AdminClient], object]] = {
    "describe_cluster": lambda admin: admin.describe_cluster(include_fenced=True),
    "has_quorum": lambda admin: admin.has_quorum(),
    "allowed_operations": lambda admin: admin.allowed_operations(),
    "list_topics": lambda admin: admin.list_topics(include_internal=True),
    "describe_topics": lambda admin: admin.describe_topics(),
    "create_topics": lambda admin: admin.create_topics([NewTopic("new", 2, 1)]),
    "create_partitions": lambda admin: admin.create_partitions({"orders": NewPartitions(4)}),
    "alter": lambda admin: admin.alter_partition_reassignments({ORDERS: (1, 2)}),
    "cancel": lambda admin: admin.alter_partition_reassignments({ORDERS: None}),
    "permission": lambda admin: admin.check_reassignment_permission(),
    "list": lambda admin: admin.list_partition_reassignments(),
    "elect": lambda admin: admin.elect_leaders(None, ElectionType.PREFERRED),
    "describe_configs": lambda admin: admin.describe_configs(
        [ConfigResource.broker(0), ConfigResource.topic("orders")]
    ),
    "alter_configs": lambda admin: admin.incremental_alter_configs(
        {ConfigResource.broker(1): [ConfigChange.set(BROKER_THROTTLES[0], "1")]}
    ),
    "describe_log_dirs": lambda admin: admin.describe_log_dirs(),
    "list_offsets": lambda admin: admin.list_offsets([ORDERS]),
    "allowed_on_group": lambda admin: admin.allowed_on_group("kreassign-lease"),
    "describe_group": lambda admin: admin.describe_group("kreassign-lease"),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_mangled_answer_is_an_error_of_ours_or_means_something(name: str) -> None:
    settings = client_settings({"request.timeout.ms": "3000"}, bootstrap_servers="broker-0:9092,broker-1:9092")
    mangled, wrong = 0, []
    for seed in SEEDS:
        asked = twin({"orders": [[0, 1], [1, 2]]})
        world = TwinTransport(asked)
        transport = MangledTransport(world, random.Random(f"{name} {seed}"), rate=0.4)
        with AdminClient.connect(settings, clock=world, transport=transport) as admin:
            for _ in range(2):
                try:
                    with suppress(KreassignError):
                        str(CALLS[name](admin))
                except NOT_OURS as error:
                    wrong.append(f"seed {seed}: {error!r}"[:300])
        mangled += transport.mangled
    assert mangled > len(SEEDS)
    assert wrong == []
