"""Producers with acks=all that a plan locks out: told with topics and time."""

from __future__ import annotations

from pathlib import Path

import pytest

from kreassign.errors import ClusterError
from kreassign.executor.preflight import read_outages
from kreassign.model import Batch, ConfigChange, ConfigResource, Partition, TopicPartition
from kreassign.model.throttle import AdaptiveThrottle, BrokerRate, ThrottleRates
from tests.executor.odd_port import OddPort
from tests.executor.twin_runs import TwinRig, tp
from tests.twin.asking import MEGABYTES

AT_ONE = ThrottleRates(MEGABYTES)
TARGETS = {tp(0): (2,), tp(1): (2,), tp(2): (0, 2)}


def locked_out(folder: Path) -> TwinRig:
    """Two partitions of a replica, and one of two, under min.insync.replicas 2."""
    rig = TwinRig(folder, [[0], [1], [0, 1]])
    two = ConfigChange.set("min.insync.replicas", "2")
    rig.client.incremental_alter_configs({ConfigResource.topic("t"): [two]}).raise_if_any()
    return rig


def present(rig: TwinRig) -> dict[TopicPartition, Partition]:
    return {one.topic_partition: one for one in rig.client.describe_topics(["t"])["t"].partitions}


@pytest.mark.parametrize(("rates", "told"), [
    (AT_ONE, "in sync, at least 10 s under the throttle (the largest has 10 MB): while"),
    (ThrottleRates(MEGABYTES // 60), "in sync, at least 10 min under the throttle (the largest has 10 MB): while"),
    (ThrottleRates(2 * MEGABYTES, (BrokerRate(0, MEGABYTES),)), "in sync, at least 10 s under the throttle"),
    (ThrottleRates(2 * MEGABYTES, (BrokerRate(2, MEGABYTES),)), "in sync, at least 10 s under the throttle"),
    (ThrottleRates(), "for a time that is not known without a fixed throttle (the largest has 10 MB): while"),
    (ThrottleRates(adaptive=AdaptiveThrottle(MEGABYTES)),
     "for a time that is not known without a fixed throttle (the largest has 10 MB): while"),
])  # fmt: skip
def test_locked_out_producers_are_told_with_topic_and_time(rates: ThrottleRates, told: str, tmp_path: Path) -> None:
    rig = locked_out(tmp_path)
    (sentence,) = read_outages(rig.client, TARGETS, present(rig), rates).sentences
    assert sentence.startswith("topic t: producers with acks=all would be refused (NOT_ENOUGH_REPLICAS) at 2 of its ")
    assert told in sentence


def test_an_unread_size_leaves_the_time_of_an_outage_unknown(tmp_path: Path) -> None:
    rig = locked_out(tmp_path)
    odd = OddPort(rig.client)
    silent = Batch({}, dict.fromkeys(range(5), ClusterError("no answer")))
    odd.answer_always("describe_log_dirs", lambda *_, **__: silent)
    (sentence,) = read_outages(odd.port, TARGETS, present(rig), AT_ONE).sentences
    assert "in sync, for a time that is not known: the size of 2 could not be read (no answer): while" in sentence
