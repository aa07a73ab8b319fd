"""One answer decides nothing: what is missing, odd or refused is looked at again, by the names of other brokers."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kreassign.errors import ClusterError, Unreachable
from kreassign.executor.cluster.readings import read_settings, read_topics, settings_of_two
from kreassign.executor.cluster.sizes import read_leader_sizes
from kreassign.model import Batch, ConfigEntry, ConfigResource, ConfigSource, LogDir, Topic
from kreassign.model.error_codes import (
    LEADER_NOT_AVAILABLE,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from kreassign.model.plan_facts import is_another
from kreassign.model.throttle import FOLLOWER_THROTTLED_REPLICAS as KEY
from tests.executor.odd_port import Answer, OddPort, Real, as_it_is, not_reached, refusal
from tests.executor.twin_runs import TwinRig

DESCRIBE = "describe_topics"
UNKNOWN = UNKNOWN_TOPIC_OR_PARTITION


@pytest.fixture
def odd(tmp_path: Path) -> OddPort:
    return OddPort(TwinRig(tmp_path, [[0, 1]]).client)


def each(code: int) -> Answer:
    """Every topic, or setting, is refused with this code."""
    return lambda _, keys, **__: Batch({}, {key: refusal(code, key) for key in keys})


def empty(real: Real, names: object, **named: object) -> Batch[str, Topic]:
    """An answer about none of them."""
    del real, names, named
    return Batch()


def former(real: Real, names: object, **named: Any) -> Batch[str, Topic]:
    """The topic that had the name before."""
    topics: Batch[str, Topic] = real(names, **named)
    return topics.map(lambda topic: replace(topic, topic_id="former"))


def silent(real: Real, brokers: Collection[int], **named: object) -> Batch[int, tuple[LogDir, ...]]:
    """Answer of brokers none of which reports its directories."""
    del real, named
    return Batch({}, dict.fromkeys(brokers, ClusterError("silent")))


def elsewhere(real: Real, names: object, **named: Any) -> Batch[str, Topic]:
    """Former topic with other replicas."""
    topics = former(real, names, **named)
    return topics.map(
        lambda topic: replace(topic, partitions=tuple(replace(one, replicas=(3, 4)) for one in topic.partitions))
    )


@pytest.mark.parametrize(("answers", "outcome"), [
    # A broker that is behind, or refuses for now, is not believed.
    *(((each(code),), "known") for code in (UNKNOWN, LEADER_NOT_AVAILABLE, UNKNOWN_SERVER_ERROR,
                                            TOPIC_AUTHORIZATION_FAILED)),
    ((empty,), "known"),
    ((former,), "known"),
    ((each(UNKNOWN), each(UNKNOWN)), "known"),
    ((each(UNKNOWN), not_reached, each(UNKNOWN)), "known"),
    # Two that are asked by name agree.
    ((each(UNKNOWN),) * 3, "absent"),
    ((each(UNKNOWN), not_reached, each(UNKNOWN), each(UNKNOWN)), "absent"),
    ((former,) * 3, "another"),
    # They do not, or tell nothing.
    ((each(UNKNOWN), former, each(UNKNOWN), former), "another"),
    ((each(UNKNOWN), former, each(UNKNOWN), not_reached), "known"),
    ((each(UNKNOWN), former, each(UNKNOWN), not_reached, former, each(UNKNOWN)), "could not connect"),
    ((each(UNKNOWN), former, each(UNKNOWN), elsewhere), "known"),
    ((each(UNKNOWN), *(former, each(UNKNOWN), elsewhere) * 2), "brokers do not agree about topic t"),
    ((each(TOPIC_AUTHORIZATION_FAILED),) * 4, "authorization"),
    ((each(UNKNOWN), each(UNKNOWN), *[each(LEADER_NOT_AVAILABLE)] * 2), "leader"),
    ((empty,) * 4, "no broker answered about topic t"),
    ((each(UNKNOWN), not_reached, not_reached, not_reached), "could not connect"),
])  # fmt: skip
def test_two_brokers_must_agree_on_an_odd_answer(odd: OddPort, answers: tuple[Answer, ...], outcome: str) -> None:
    topic_id = odd.port.describe_topics(["t"])["t"].topic_id
    odd.answer(DESCRIBE, *answers)
    known, absent, unknown = read_topics(odd.port, ["t"], lambda topic: is_another(topic_id, topic.topic_id))
    shown = "known" if known and known["t"].topic_id == topic_id else "another" if known else "absent" if absent else ""
    assert outcome in shown or outcome in str(unknown.get("t")).lower() or outcome in str(unknown.get("t"))
    assert len(known) + len(absent) + len(unknown) == 1


def test_the_second_look_goes_to_brokers_by_name(odd: OddPort) -> None:
    odd.answer_always(DESCRIBE, each(UNKNOWN))
    read_topics(odd.port, ["t"])
    asked = [named.get("broker") for method, _, named in odd.calls if method == DESCRIBE]
    assert asked == [None, 0, 1]


def test_an_answer_that_is_not_odd_costs_one_call(odd: OddPort) -> None:
    read_topics(odd.port, ["t"])
    assert [method for method, *_ in odd.calls] == [DESCRIBE]


def test_a_cluster_that_does_not_answer_is_an_error(odd: OddPort) -> None:
    odd.answer(DESCRIBE, not_reached)
    with pytest.raises(Unreachable):
        read_topics(odd.port, ["t"])


@pytest.mark.parametrize(("looks", "outcome"), [((as_it_is,), "unknown"), ((each(UNKNOWN),) * 3, "absent")])
def test_settings_of_a_topic_that_others_know_are_unknown(
    odd: OddPort, looks: tuple[Answer, ...], outcome: str
) -> None:
    topic, broker = ConfigResource.topic("t"), ConfigResource.broker(0)
    odd.answer("describe_configs", each(UNKNOWN), each(UNKNOWN))
    odd.answer(DESCRIBE, *looks)
    known, absent, unknown = read_settings(odd.port, [topic], ("retention.ms",))
    assert (known, topic in absent, topic in unknown) == ({}, outcome == "absent", outcome == "unknown")
    assert read_settings(odd.port, [topic, broker], ("retention.ms",)).unknown == {}


def test_two_brokers_that_show_other_settings_are_told_with_the_way_out(tmp_path: Path) -> None:
    """Of a topic that was created again, one that was started since shows the former settings, however often."""
    odd, topic = OddPort(TwinRig(tmp_path, [[0, 1]], brokers=2).client), ConfigResource.topic("t")

    def of_former_topic(real: Real, *args: Any, broker: int | None = None, **named: Any) -> Any:
        found = real(*args, broker=broker, **named)
        shown = ConfigEntry(KEY, "0:1", ConfigSource.DYNAMIC_TOPIC)
        return Batch({topic: {KEY: shown}}) if broker == 1 else found

    odd.answer_always("describe_configs", of_former_topic)
    (error,) = settings_of_two(odd.port, [topic], (KEY,)).unknown.values()
    assert "or was started since the topic was created again" in str(error)
    assert str(error).endswith("set it to another value and delete it (`kafka-configs`)")


def test_a_size_without_an_answer_is_unknown(odd: OddPort) -> None:
    partitions = odd.port.describe_topics(["t"])["t"].partitions
    assert read_leader_sizes(odd.port, partitions).unknown == {}
    odd.answer("describe_log_dirs", *[silent] * 6)
    known, absent, unknown = read_leader_sizes(odd.port, partitions)
    assert (known, absent, [str(error) for error in unknown.values()]) == ({}, frozenset(), ["silent"])
