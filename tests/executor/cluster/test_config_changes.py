"""Outcomes of changes of settings, of which some have no answer."""

from __future__ import annotations

import pytest

from kreassign.errors import OutcomeUnknown
from kreassign.executor.cluster.changes import change_configs
from kreassign.model import Batch, ConfigChange, ConfigResource
from kreassign.model.throttle import FOLLOWER_THROTTLED_REPLICAS, LEADER_THROTTLED_RATE, TOPIC_THROTTLES
from tests.executor.odd_port import OddPort, Real, as_it_is, not_reached
from tests.executor.twin_runs import RATE, TwinRig

pytestmark = pytest.mark.thorough


def test_a_change_without_an_answer_may_be_made_if_the_repeat_fails(rig: TwinRig, odd: OddPort) -> None:
    """A list that has `*` by now has the rest of its topic repeated; the rate of the broker may still be set later."""
    topic, broker = ConfigResource.topic("t"), ConfigResource.broker(0)
    rig.client.incremental_alter_configs({topic: [ConfigChange.set(FOLLOWER_THROTTLED_REPLICAS, "*")]}).raise_if_any()

    def unanswered(real: Real, changes: object, **named: object) -> object:
        outcome = real(changes, **named)
        return Batch({}, {**outcome.failed, broker: OutcomeUnknown("no answer in time")})

    odd.answer("incremental_alter_configs", unanswered, not_reached)
    changes = {
        topic: [ConfigChange.append(name, "0:2") for name in TOPIC_THROTTLES],
        broker: [ConfigChange.set(LEADER_THROTTLED_RATE, str(RATE))],
    }
    found = change_configs(odd.port, None, changes)
    assert (found.failed, found.may_pass, found.may_be_made) == ((topic, broker), True, True)


def test_entries_refused_beside_a_wildcard_are_sent_again_until_it_is_read(rig: TwinRig, odd: OddPort) -> None:
    topic, name = ConfigResource.topic("t"), FOLLOWER_THROTTLED_REPLICAS
    rig.client.incremental_alter_configs({topic: [ConfigChange.set(name, "*")]}).raise_if_any()
    odd.answer_always("describe_configs", not_reached)
    entries = {topic: [ConfigChange.append(name, "0:2")]}
    unread = change_configs(odd.port, None, entries)
    assert (unread.failed, unread.may_pass, len(unread.problems)) == ((topic,), True, 1)
    odd.answer_always("describe_configs", as_it_is)
    assert change_configs(odd.port, None, entries).problems == ()
