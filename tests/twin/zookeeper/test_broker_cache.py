"""Knowledge of a broker after requests of a controller."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kreassign.errors import ProtocolViolation
from kreassign.model import TopicPartition
from kreassign.model.error_codes import NONE, STALE_BROKER_EPOCH, STALE_CONTROLLER_EPOCH
from kreassign.twin.zookeeper.control_requests import (
    BrokerCache,
    CachedPartition,
    ControlRequest,
    HostedReplica,
    SendingController,
    build,
)
from tests.twin.zookeeper.sending import live, sent, step

FOO = TopicPartition("foo", 0)


def broker(*requests: ControlRequest, broker_id: int = 2) -> BrokerCache:
    """A broker that has been told this."""
    caches = BrokerCache(broker_id, 90 + broker_id)
    for request in requests:
        if request.broker_id == broker_id:
            assert caches.take(request) == NONE
    return caches


def test_it_has_the_replica_that_it_was_told_of_and_knows_where_others_are() -> None:
    known = broker(*sent(step(told=(2,)), alive=(1, 2, 3)))
    assert known.replicas == {FOO: HostedReplica(1, 1, 7, (1, 2, 3), (4, 3, 2, 1), (4,), (1,))}
    assert known.partitions == {FOO: CachedPartition(1, 1, (1, 2, 3), (4, 3, 2, 1), (4,))}
    assert (known.live, known.controller_id, known.controller_epoch) == ((1, 2, 3), 0, 3)


def test_a_replica_that_is_stopped_is_kept_until_it_is_to_be_deleted() -> None:
    known = broker(*sent(step(told=(2,))), *sent(step(stopped=((2, False),))))
    assert (set(known.replicas), set(known.stopped)) == (set(), {FOO})
    known.take(sent(step(stopped=((2, True),), leader_epoch=2))[0])
    assert (known.replicas, known.stopped) == ({}, {})


def test_an_older_leader_is_not_followed_and_an_older_stop_not_obeyed() -> None:
    known = broker(*sent(step(told=(2,), leader=3, leader_epoch=5)), *sent(step(told=(2,), leader_epoch=4)))
    assert known.replicas[FOO].leader == 3
    known.take(sent(step(stopped=((2, True),), leader_epoch=4))[0])
    assert FOO in known.replicas


def test_a_deposed_controller_is_refused() -> None:
    known = broker(*sent(step(told=(2,))))
    (late, *_) = build(SendingController(4, 2), (step(told=(2,), leader_epoch=9),), live(2))
    assert known.take(late) == STALE_CONTROLLER_EPOCH
    assert known.replicas[FOO].leader_epoch == 1


def test_what_was_meant_for_an_earlier_registration_is_refused() -> None:
    known = BrokerCache(2, 93)
    assert known.take(sent(step(told=(2,)))[0]) == STALE_BROKER_EPOCH
    assert known.replicas == {}


def test_of_a_topic_that_is_being_deleted_nothing_is_known() -> None:
    known = broker(*sent(step(told=(2,))), *sent(step(leader=-2)))
    assert known.partitions == {}


@pytest.mark.parametrize("end", [-3, 1, 0])
def test_bytes_that_were_cut_off_are_refused(end: int) -> None:
    request = sent(step(told=(2,)))[0]
    with pytest.raises(ProtocolViolation, match="LeaderAndIsr"):
        BrokerCache(2).take(replace(request, body=request.body[:end]))


def test_bytes_that_go_on_are_refused() -> None:
    request = sent(step(told=(2,)))[0]
    with pytest.raises(ProtocolViolation, match="has more than its fields"):
        BrokerCache(2).take(replace(request, body=request.body + b"\0"))
