"""Calls of KIP-179, on a cluster with its requests and on one without.

A check gets a client of a cluster with four brokers on racks a, b, a, b (a, b, c, a on real Kafka), and a name for a
topic of its own. It returns nothing that could differ between clusters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from kreassign.admin import AdminClient
from kreassign.errors import ClusterError, Rejected
from kreassign.model import Batch, ConfigChange, ConfigResource, ReplicaStatus, Topic, TopicPartition
from testbed.waiting import wait_until
from tests.real.admin_checks import created, wait_everywhere

Check = Callable[[AdminClient, str], None]


def _min_in_sync(client: AdminClient, name: str) -> set[str | None]:
    """The setting as each broker has it: they learn of it one after the other, and any of them may be asked."""
    resource, setting = ConfigResource.topic(name), "min.insync.replicas"
    brokers = client.describe_cluster().broker_ids
    told = [client.describe_configs([resource], names=[setting], broker=broker)[resource] for broker in brokers]
    return {one[setting].value for one in told}


def _soon(condition: Callable[[], bool], what: str) -> None:
    wait_until(condition, what=what)


def _comes_to(client: AdminClient, name: str, *lists: tuple[int, ...]) -> None:
    _soon(lambda: _replicas(client, name) == list(lists), f"{name} at {lists}")


def _topic(client: AdminClient, name: str) -> Topic:
    return client.describe_topics([name])[name]


def _replicas(client: AdminClient, name: str) -> list[tuple[int, ...]]:
    ongoing = client.list_partition_reassignments([entry.topic_partition for entry in _topic(client, name).partitions])
    return [
        ongoing[entry.topic_partition].target if entry.topic_partition in ongoing else entry.replicas
        for entry in _topic(client, name).partitions
    ]


def _refusals(failed: Mapping[object, ClusterError]) -> dict[str, tuple[int, str]]:
    assert all(isinstance(error, Rejected) for error in failed.values())
    return {str(key): (error.code, error.message) for key, error in failed.items() if isinstance(error, Rejected)}


def counts_grow_and_the_rest_is_refused(client: AdminClient, name: str) -> None:
    created(client, name, (0, 1), (1, 2))
    result = client.alter_partition_counts({name: 4, "nope": 2})
    assert list(result.ok) == [name]
    assert _refusals(result.failed) == {"nope": (17, "Unable to find a topic named nope.")}
    wait_everywhere(client, name, lambda found: [bool(one.isr) for one in found] == [True] * 4, what="four partitions")
    again = client.alter_partition_counts({name: 4})
    assert _refusals(again.failed) == {name: (37, "Topic already has 4 partition(s).")}
    fewer = client.alter_partition_counts({name: 3})
    text = f"The topic {name} currently has 4 partition(s); 3 would not be an increase."
    assert _refusals(fewer.failed) == {name: (37, text)}
    most = client.alter_partition_counts({name: 2**31 - 1})
    text = f"The topic {name} would get 2147483643 more partitions; a controller creates at most 10000 per request."
    assert _refusals(most.failed) == {name: (37, text)}


def a_dry_run_of_counts_changes_nothing(client: AdminClient, name: str) -> None:
    created(client, name, (0, 1))
    result = client.alter_partition_counts({name: 9, "nope": 2}, validate_only=True)
    assert list(result.ok) == [name]
    assert _refusals(result.failed) == {"nope": (17, "Unable to find a topic named nope.")}
    assert len(_topic(client, name).partitions) == 1


def a_larger_factor_keeps_what_is_there_and_adds_to_other_racks(client: AdminClient, name: str) -> None:
    created(client, name, (0,), (1,))
    client.alter_replication_factors({name: 2}).raise_if_any()
    _soon(lambda: [len(replicas) for replicas in _replicas(client, name)] == [2, 2], "two replicas each")
    racks = {broker.id: broker.rack for broker in client.describe_cluster().brokers}
    for first, replicas in zip((0, 1), _replicas(client, name), strict=True):
        assert replicas[0] == first
        assert len(replicas) == len({racks[broker] for broker in replicas}) == 2


def a_smaller_factor_keeps_the_leader(client: AdminClient, name: str) -> None:
    created(client, name, (0, 1, 2), (2, 0, 1))
    client.alter_replication_factors({name: 1}).raise_if_any()
    _comes_to(client, name, (0,), (2,))


def factors_that_cannot_be_are_refused(client: AdminClient, name: str) -> None:
    created(client, name, (0, 1, 2))
    resource = ConfigResource.topic(name)
    client.incremental_alter_configs({resource: [ConfigChange.set("min.insync.replicas", "2")]}).raise_if_any()
    _soon(lambda: _min_in_sync(client, name) == {"2"}, "the setting everywhere")
    below = client.alter_replication_factors({name: 1, "nope": 1})
    assert _refusals(below.failed) == {
        name: (38, f"Replication factor 1 is below min.insync.replicas=2 of topic {name}."),
        "nope": (17, "Unable to find a topic named nope."),
    }
    (refused,) = _refusals(client.alter_replication_factors({name: 9}).failed).values()
    assert refused[0] == 38
    assert refused[1].startswith("Unable to replicate the partition 9 time(s): ")
    assert _refusals(client.alter_replication_factors({name: 0}).failed)[name][0] == 38
    assert _replicas(client, name) == [(0, 1, 2)]
    client.alter_replication_factors({name: 1}, may_undercut_min_in_sync=True).raise_if_any()
    _comes_to(client, name, (0,))
    # A run that moves it would keep producers out until its copy is in sync: no neighbour shall meet it.
    client.delete_topics([name]).raise_if_any()


def a_dry_run_of_factors_changes_nothing(client: AdminClient, name: str) -> None:
    created(client, name, (0, 1))
    result = client.alter_replication_factors({name: 3, "nope": 1}, validate_only=True)
    assert list(result.ok) == [name]
    assert list(result.failed) == ["nope"]
    assert _replicas(client, name) == [(0, 1)]


ILLEGAL = {
    (1, 1): (39, "The manual partition assignment includes the broker 1 more than once."),
    (): (39, "The manual partition assignment includes an empty replica list."),
    (0, 77): (25, "The manual partition assignment includes broker 77, but no such broker is registered."),
    (0, -1): (25, "The manual partition assignment includes broker -1, but no such broker is registered."),
}


def partitions_are_moved_and_the_rest_is_refused(client: AdminClient, name: str) -> None:
    created(client, name, *[(0, 1)] * (len(ILLEGAL) + 1))
    moved, *others = (TopicPartition(name, number) for number in range(len(ILLEGAL) + 1))
    nowhere, unknown = TopicPartition("nope", 0), TopicPartition(name, 99)
    requested = {moved: (2, 1), nowhere: (0,), unknown: (0,), **dict(zip(others, ILLEGAL, strict=True))}
    expected = {
        **{str(key): refusal for key, refusal in zip(others, ILLEGAL.values(), strict=True)},
        "nope-0": (17, "Unable to find a topic named nope."),
        str(unknown): (39, f"Unable to find partition {name}:99."),
    }
    dry = client.reassign_partitions(requested, validate_only=True)
    assert (list(dry.ok), _refusals(dry.failed)) == ([moved], expected)
    assert _replicas(client, name) == [(0, 1)] * (len(ILLEGAL) + 1)
    result = client.reassign_partitions(requested)
    assert (list(result.ok), _refusals(result.failed)) == ([moved], expected)
    _comes_to(client, name, (2, 1), *[(0, 1)] * len(ILLEGAL))


def nothing_asked_is_nothing_done(client: AdminClient, name: str) -> None:
    del name
    assert not len(client.alter_partition_counts({}))
    assert not len(client.alter_replication_factors({}))
    assert not len(client.reassign_partitions({}))
    assert not len(client.replica_status([]))


def the_status_tells_of_each_replica_and_of_what_is_not_there(client: AdminClient, name: str) -> None:
    created(client, name, (0, 1))
    there, unknown = TopicPartition(name, 0), TopicPartition("nope", 0)
    # A follower that has not made its copy yet cannot tell of it.
    expected = [(0, True, 0, 0), (1, False, 0, 0)]
    _soon(lambda: _told(client, there) == expected, f"the status of {there} to be {expected}")
    result = client.replica_status([there, unknown])
    assert list(result.ok) == [there]
    with pytest.raises(Rejected, match="Unable to find a topic named nope"):
        result[unknown]


def what_a_status_cannot_tell_of_has_the_codes_of_the_document(client: AdminClient, name: str) -> None:
    created(client, name, (0, 1))
    there, no_topic, no_partition = TopicPartition(name, 0), TopicPartition("nope", 0), TopicPartition(name, 44)
    _soon(lambda: len(_told(client, there)) == 2, f"both replicas of {there} to be told of")
    named = client.replica_status([there, no_topic, no_partition], brokers={there: [1]})
    assert [status.broker for status in named[there]] == [1]
    assert _code(named, no_topic) == (17, "Unable to find a topic named nope.")
    assert _code(named, no_partition) == (37, f"Unable to find partition {name}:44.")
    # A broker that is there and has no replica, and one that nobody knows; the first that is wrong is told of.
    for brokers, expected in (
        ([0, 2], (3, f"{there}: broker 2 has no replica of it")),
        ([1, 77], (25, f"{there}: broker 77 is not registered")),
        ([77, 2], (25, f"{there}: broker 77 is not registered")),
    ):
        assert _code(client.replica_status([there], brokers={there: brokers}), there) == expected


def _code(outcome: Batch[TopicPartition, tuple[ReplicaStatus, ...]], key: TopicPartition) -> tuple[int, str]:
    error = outcome.failed[key]
    assert isinstance(error, Rejected)
    return error.code, error.message


def _told(client: AdminClient, key: TopicPartition) -> list[tuple[int, bool, int, int | None]]:
    found = client.replica_status([key]).ok.get(key, ())
    return [(one.broker, one.is_leader, one.lag_records, one.lag_bytes) for one in found]


CHECKS: tuple[Check, ...] = (
    counts_grow_and_the_rest_is_refused,
    a_dry_run_of_counts_changes_nothing,
    a_larger_factor_keeps_what_is_there_and_adds_to_other_racks,
    a_smaller_factor_keeps_the_leader,
    factors_that_cannot_be_are_refused,
    a_dry_run_of_factors_changes_nothing,
    partitions_are_moved_and_the_rest_is_refused,
    nothing_asked_is_nothing_done,
    the_status_tells_of_each_replica_and_of_what_is_not_there,
    what_a_status_cannot_tell_of_has_the_codes_of_the_document,
)
