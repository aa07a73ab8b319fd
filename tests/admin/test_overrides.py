"""`AdminClient` and partitions that are being reassigned: it warns, and knows the way without surprises."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kreassign.admin import AdminClient, OverrideWarning, client_settings
from kreassign.errors import Rejected
from kreassign.model import TopicPartition
from kreassign.model.throttle import move_map, rate_changes, topic_changes
from kreassign.twin import Twin, TwinTransport
from tests.approved import approve
from tests.kips.recorded_tool import client_of_a_replaced_controller
from tests.twin.asking import twin
from tests.twin.zookeeper.zookeeper_cluster import ZooKeeperCluster

FOO, BAR = TopicPartition("foo", 0), TopicPartition("bar", 0)


def client_of(asked: Twin, by: int = 1) -> AdminClient:
    transport = TwinTransport(asked)
    address = asked.address(by, asked.listener)
    settings = client_settings(bootstrap_servers=f"{address.host}:{address.port}")
    return AdminClient.connect(settings, transport=transport, clock=transport)


@pytest.fixture
def asked() -> Twin:
    return twin({"foo": [[0, 1]], "bar": [[1, 0]]})


@pytest.fixture
def client(asked: Twin) -> Iterator[AdminClient]:
    """Client of a twin in which foo-0 is on its way from 0, 1 to 2, 3, and held by a throttle."""
    with client_of(asked) as made:
        moves = move_map({}, {FOO: (2, 3), BAR: (2, 3)}, {FOO: (0, 1), BAR: (1, 0)})
        made.incremental_alter_configs(topic_changes(moves)).raise_if_any()
        made.incremental_alter_configs(rate_changes(range(4), 1_000)).raise_if_any()
        made.alter_partition_reassignments({FOO: (2, 3)}).raise_if_any()
        yield made


def test_an_override_that_can_never_end_is_warned_of_and_submitted(client: AdminClient) -> None:
    with pytest.warns(OverrideWarning) as caught:
        client.alter_partition_reassignments({FOO: (0, 1), BAR: (2, 0)}).raise_if_any()
    (warning,) = caught
    approve([warning.message], "override-warning")
    assert warning.filename == __file__
    assert client.list_partition_reassignments([FOO])[FOO].can_never_complete


def test_who_has_looked_already_is_not_warned(client: AdminClient) -> None:
    assert list(client.risky_overrides({FOO: (0, 1), BAR: (2, 0)})) == [FOO]
    client.alter_partition_reassignments({FOO: (0, 1)}, warns_of_overrides=False).raise_if_any()


@pytest.mark.parametrize("target", [(2, 3), (3, 2), None])
def test_the_same_target_another_order_and_a_cancel_are_no_risk(
    client: AdminClient, target: tuple[int, ...] | None
) -> None:
    client.alter_partition_reassignments({FOO: target}).raise_if_any()


def test_a_controller_of_zookeeper_mode_overrides_as_the_document_has_it() -> None:
    cluster = ZooKeeperCluster([1, 2, 3]).begin()
    with client_of(cluster.twin) as client:
        client.alter_partition_reassignments({FOO: (4, 5, 6)}).raise_if_any()
        client.alter_partition_reassignments({FOO: (1, 2, 3)}).raise_if_any()
        assert client.list_partition_reassignments() == {}


def test_replacing_cancels_waits_and_submits(client: AdminClient, asked: Twin) -> None:
    outcome = client.replace_reassignments({FOO: (1, 3), BAR: (2, 0), TopicPartition("foo", 9): (1,)})
    assert set(outcome.ok) == {FOO, BAR}
    assert set(outcome.failed) == {TopicPartition("foo", 9)}
    move = client.list_partition_reassignments([FOO])[FOO]
    assert (move.sources, move.adding, move.removing) == ((1, 0), (3,), (0,))


def test_replacing_believes_no_single_empty_list(client: AdminClient, asked: Twin) -> None:
    """A controller that has just lost its place lists nothing, before the cancel and after it."""
    other, _clock = client_of_a_replaced_controller(asked)
    with other:
        other.replace_reassignments({FOO: (1, 3)}).raise_if_any()
    assert client.list_partition_reassignments([FOO])[FOO].removing == (0,), "its move was cancelled first"


def test_replacing_what_does_not_move_only_submits(client: AdminClient) -> None:
    client.replace_reassignments({BAR: (2, 0)}).raise_if_any()
    assert client.list_partition_reassignments([BAR])[BAR].target == (2, 0)
    assert client.replace_reassignments({}).ok == {}


def test_a_move_that_cannot_be_cancelled_stays() -> None:
    """Only a new replica is in sync, so that Kafka refuses to take it away."""
    asked = twin({"foo": [[0, 1]], "bar": [[2]]}, brokers=5)
    asked.crash(3)
    with client_of(asked, by=4) as client:
        client.alter_partition_reassignments({FOO: (2, 3)}).raise_if_any()
        asked.advance(60_000)
        asked.crash(0)
        asked.crash(1)
        asked.advance(60_000)
        outcome = client.replace_reassignments({FOO: (2, 4), BAR: (4,)})
        assert set(outcome.ok) == {BAR}
        refused = outcome.failed[FOO]
        assert isinstance(refused, Rejected)
        assert (refused.code, "unclean leader election" in refused.message) == (39, True)
        assert client.list_partition_reassignments([FOO])[FOO].target == (2, 3)
