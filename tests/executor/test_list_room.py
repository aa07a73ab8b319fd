"""Lists of throttled replicas never get longer than Kafka takes: fewer moves are in flight at a time then."""

from __future__ import annotations

from pathlib import Path

import pytest

from kreassign.executor.events import Event, ThrottleIntended
from kreassign.executor.state import RunView, throttling
from kreassign.model import ConfigResource
from kreassign.model.throttle import FOLLOWER_THROTTLED_REPLICAS, LEADER_THROTTLED_REPLICAS
from kreassign.twin.controller.decision import Decision
from kreassign.twin.metadata import ConfigChanged
from tests.executor.twin_runs import RATE, TwinRig, pace

pytestmark = pytest.mark.thorough

LISTS = (LEADER_THROTTLED_REPLICAS, FOLLOWER_THROTTLED_REPLICAS)


def longest_list(rig: TwinRig, count: int, rate: int) -> tuple[int, bool]:
    """Move all partitions at once as far as lists allow: characters of the longest list, and whether any was full."""
    longest, told = [0], set[str | None]()

    def listen(event: Event, run: RunView) -> None:
        topic = rig.twin.metadata.configs.get(ConfigResource.topic("t"), {})
        longest.append(max(len(topic.get(name, "")) for name in LISTS))
        told.add(run.hindrance(event.at_ms))

    rig.listener = listen
    done = rig.run(rig.prepared(dict.fromkeys(range(count), (2, 1)), throttle=rate, pace=pace()))
    assert (done.state, set(rig.replicas.values()), rig.throttles) == ("done", {(2, 1)}, {})
    return max(longest), any("lists of throttled replicas of t are full" in (why or "") for why in told)


def test_lists_never_have_more_characters_than_kafka_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttling, "MOST_LIST_CHARACTERS", 40)
    longest, was_full = longest_list(TwinRig(tmp_path, [[0, 1]] * 20), 20, 20 * RATE)
    assert (30 < longest <= 40, was_full) == (True, True)


def test_a_topic_of_2500_partitions_is_moved_within_the_limit_of_kafka(tmp_path: Path) -> None:
    # With those at rest the twin is so large that its checkers look at all of it now and then.
    rig = TwinRig(tmp_path, [[0, 1]] * 2500, size_bytes=10_000, others={"at-rest": [[2]] * 2501})
    longest, was_full = longest_list(rig, 2500, 40 * RATE)
    assert (32_000 < longest <= 32_767, was_full) == (True, True)


def test_entries_beside_a_wildcard_stay_within_the_limit_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client sends no longer text: the run would end in an error, and could be neither resumed nor cancelled."""
    monkeypatch.setattr(throttling, "MOST_LIST_CHARACTERS", 40)
    rig = TwinRig(tmp_path, [[0, 1]] * 20)
    topic = ConfigResource.topic("t")
    rig.twin.commit(Decision(tuple(ConfigChanged(topic, name, "*") for name in LISTS), None))
    done = rig.run(rig.prepared(dict.fromkeys(range(20), (2, 1)), throttle=20 * RATE, pace=pace()))
    assert (done.state, rig.throttles) == ("done", {f"topic t {name}": "*" for name in LISTS})
    intended = [event for event in rig.seen if isinstance(event, ThrottleIntended)]
    lists = [one.value or "" for event in intended for one in event.overrides if one.is_list]
    assert 30 < max(map(len, lists)) <= 40
