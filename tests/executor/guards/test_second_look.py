"""The inspection that decides whether a run ends: two brokers are asked by name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kreassign.errors import ClusterError, Unreachable
from kreassign.executor.cluster.measurements import inspect_health
from kreassign.executor.events import PlannedMove
from kreassign.executor.guards import GuardName, Health
from kreassign.executor.instructions import CheckHealth
from kreassign.model import NO_LEADER, Batch, ConfigChange, ConfigResource, Topic, TopicPartition
from tests.executor.odd_port import Answer, OddPort, Real
from tests.executor.twin_runs import TwinRig

QUESTION = CheckHealth((), (), second_look=True)


@pytest.fixture
def odd(tmp_path: Path) -> OddPort:
    return OddPort(TwinRig(tmp_path, [[0, 1], [3, 4]]).client)


def troubled_at(*brokers: int | None) -> Answer:
    """Topics, without a leader and with one replica in sync as these brokers show them."""

    def answer(real: Real, *args: Any, broker: int | None = None, **named: Any) -> Batch[str, Topic]:
        found: Batch[str, Topic] = real(*args, broker=broker, **named)
        if broker not in brokers:
            return found
        return Batch({name: replace(one, partitions=tuple(replace(each, leader=NO_LEADER, isr=each.isr[:1])
                                                          for each in one.partitions))
                      for name, one in found.ok.items()})  # fmt: skip

    return answer


def lacking_at(*brokers: int | None) -> Answer:
    """The cluster, without broker 4 as these brokers show it."""

    def answer(real: Real, *args: Any, broker: int | None = None, **named: Any) -> Any:
        found = real(*args, broker=broker, **named)
        return replace(found, brokers=found.brokers[:-1]) if broker in brokers else found

    return answer


def silent_at(*brokers: int) -> Answer:
    def answer(real: Real, *args: Any, broker: int | None = None, **named: Any) -> Any:
        if broker in brokers:
            raise Unreachable(f"broker {broker} does not answer")
        return real(*args, broker=broker, **named)

    return answer


def seen(odd: OddPort) -> Health:
    return inspect_health(odd.port, QUESTION)


@pytest.mark.parametrize(("brokers", "is_trouble"), [((0,), False), ((1,), False), ((0, 1), True)])
def test_trouble_that_one_of_two_brokers_shows_is_none(
    odd: OddPort, brokers: tuple[int, ...], *, is_trouble: bool
) -> None:
    odd.answer_always("describe_topics", troubled_at(*brokers))
    odd.answer_always("describe_cluster", lacking_at(*brokers))
    health = seen(odd)
    assert bool(health.offline.count) is bool(health.under_replicated.count) is is_trouble
    assert (4 not in health.live) is is_trouble


def test_a_silent_broker_is_passed_over_in_a_second_look(odd: OddPort) -> None:
    odd.answer_always("describe_topics", silent_at(0))
    assert seen(odd).offline.count == 0
    odd.answer_always("describe_topics", silent_at(0, 1))
    with pytest.raises(ClusterError, match="broker 1 does not answer"):
        seen(odd)


def test_a_first_look_at_one_broker_takes_nothing_for_healthy(odd: OddPort) -> None:
    move = PlannedMove(TopicPartition("t", 0), (0, 1), (0, 2), size_bytes=0)
    odd.answer_always("describe_topics", silent_at(0, 1))
    unread = inspect_health(odd.port, CheckHealth((move,), ())).unread
    assert {one.guard for one in unread if (one.what, one.why) == ("topic t", "broker 1 does not answer")} == {
        GuardName.OFFLINE, GuardName.MIN_ISR, GuardName.UNDER_REPLICATED
    }  # fmt: skip
    odd.answer_always("describe_topics", lambda real, *args, broker=None, **named: (
        silent_at(0, 1) if broker is not None else troubled_at(None))(real, *args, broker=broker, **named))  # fmt: skip
    assert inspect_health(odd.port, CheckHealth((move,), ())).offline.count == 2


def test_a_broker_of_the_moves_is_not_down_while_no_second_broker_says_so(odd: OddPort) -> None:
    move = PlannedMove(TopicPartition("t", 0), (0, 1), (4, 1), size_bytes=0)
    odd.answer_always("describe_cluster", lacking_and_silent)
    health = inspect_health(odd.port, CheckHealth((move,), ()))
    assert 4 in health.live
    assert (GuardName.BROKER, "which brokers are live") in {(one.guard, one.what) for one in health.unread}
    odd.answer_always("describe_cluster", lacking_at(None, 0, 1))
    assert 4 not in inspect_health(odd.port, CheckHealth((move,), ())).live


def lacking_and_silent(real: Real, *args: Any, broker: int | None = None, **named: Any) -> Any:
    """No answer shows broker 4, and by name nobody answers."""
    if broker is not None:
        raise Unreachable(f"broker {broker} does not answer")
    return lacking_at(None)(real, *args, **named)


def test_trouble_that_one_broker_does_not_know_of_is_seen(tmp_path: Path) -> None:
    """Broker 0, which is asked by default, lags."""
    rig = TwinRig(tmp_path, [[0, 1], [3, 4], [2, 3], [2, 4]])
    asked = {ConfigResource.topic("t"): [ConfigChange.set("min.insync.replicas", "2")]}
    rig.client.incremental_alter_configs(asked).raise_if_any()
    first = inspect_health(rig.client, CheckHealth((), ()))
    rig.twin.views.hold_back(0)
    for broker in (3, 4):
        rig.twin.crash(broker)
    rig.transport.sleep(60)
    assert {one.leader for one in rig.client.describe_topics(["t"])["t"].partitions} == {0, 3, 2}
    for question in (CheckHealth((), (), first), CheckHealth((), (), first, second_look=True)):
        health = inspect_health(rig.client, question)
        assert health.offline.fresh == (TopicPartition("t", 1),)
        assert health.under_min_isr.fresh == (TopicPartition("t", 2), TopicPartition("t", 3))
        assert health.under_replicated.fresh_count == 3
        assert health.live == (0, 1, 2)
