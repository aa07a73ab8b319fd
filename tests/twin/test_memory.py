"""A twin that is used for long stays as large as what it has."""

from __future__ import annotations

import gc
from types import FunctionType, ModuleType

from kreassign.admin import AdminClient, client_settings
from kreassign.model import ConfigChange, ConfigResource, NewPartitions, NewTopic
from kreassign.twin import Twin, TwinTransport, small_cluster
from tests.twin.asking import twin

ROUNDS = 4
TOPICS = 10


def churn(admin: AdminClient, transport: TwinTransport, first: int) -> None:
    """Create, configure and delete topics whose names never come again."""
    for number in range(first, first + ROUNDS):
        names = [f"topic-{number}-{each}" for each in range(TOPICS)]
        admin.create_topics([NewTopic(name, assignments=((0, 1), (1, 2))) for name in names]).raise_if_any()
        changes = [
            ConfigChange.set("retention.ms", "5000"), ConfigChange.set("retention.bytes", "999"),
            ConfigChange.set("leader.replication.throttled.replicas", "*"),
        ]  # fmt: skip
        admin.incremental_alter_configs({ConfigResource.topic(name): changes for name in names}).raise_if_any()
        transport.sleep(1.0)
        admin.delete_topics(names).raise_if_any()
    transport.sleep(120.0)  # Until the files of what was deleted are deleted, too.


def remembered(holder: object) -> set[str]:
    """The names of topics that can be reached from an object."""
    found: set[str] = set()
    seen: set[int] = set()
    ahead = [holder]
    while ahead:
        one = ahead.pop()
        if id(one) in seen or isinstance(one, type | ModuleType | FunctionType):
            continue
        seen.add(id(one))
        if isinstance(one, str) and one.startswith("topic-"):
            found.add(one)
        ahead.extend(gc.get_referents(one))
    return found


def test_topics_that_are_gone_are_forgotten() -> None:
    made = Twin(small_cluster(3))
    transport = TwinTransport(made)
    settings = client_settings(bootstrap_servers="broker-0:9092")
    with AdminClient.connect(settings, clock=transport, transport=transport) as admin:
        for number in range(3):
            churn(admin, transport, number * ROUNDS)
    # The places of names are used again, so that the last ones may still be in them.
    assert len(remembered(made)) <= TOPICS


def test_a_request_for_impossibly_many_partitions_is_answered() -> None:
    asked = twin({"orders": [[0, 1]]})
    transport = TwinTransport(asked)
    settings = client_settings(bootstrap_servers="broker-0:9092")
    with AdminClient.connect(settings, clock=transport, transport=transport) as admin:
        refused = admin.create_partitions({"orders": NewPartitions(2**31 - 1)}).failed["orders"]
    assert "UNKNOWN_SERVER_ERROR" in str(refused)
    # As on real brokers all that fits into one request was created.
    assert len(asked.metadata.topics["orders"].partitions) == 10_001
