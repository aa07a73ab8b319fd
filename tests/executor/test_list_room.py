"""Lists of throttled replicas never get longer than Kafka takes: fewer moves are in flight at a time then."""

from __future__ import annotations

from pathlib import Path

import pytest

from kreassign.executor.events import Event
from kreassign.executor.state import RunView, throttling
from kreassign.model import ConfigResource
from kreassign.model.throttle import FOLLOWER_THROTTLED_REPLICAS, LEADER_THROTTLED_REPLICAS
from tests.executor.twin_runs import RATE, TwinRig, pace

pytestmark = pytest.mark.thorough

LISTS = (LEADER_THROTTLED_REPLICAS, FOLLOWER_THROTTLED_REPLICAS)


def test_lists_never_have_more_characters_than_kafka_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttling, "MOST_LIST_CHARACTERS", 40)
    rig = TwinRig(tmp_path, [[0, 1]] * 20)
    longest, told = [0], set[str | None]()

    def listen(event: Event, run: RunView) -> None:
        topic = rig.twin.metadata.configs.get(ConfigResource.topic("t"), {})
        longest.append(max(len(topic.get(name, "")) for name in LISTS))
        told.add(run.hindrance(event.at_ms))

    rig.listener = listen
    done = rig.run(rig.prepared(dict.fromkeys(range(20), (2, 1)), throttle=20 * RATE, pace=pace()))
    assert (done.state, set(rig.replicas.values()), rig.throttles) == ("done", {(2, 1)}, {})
    assert 30 < max(longest) <= 40
    assert any("lists of throttled replicas of t are full" in (why or "") for why in told)
