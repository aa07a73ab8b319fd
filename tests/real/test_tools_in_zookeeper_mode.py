"""Kafka's tools and ours through the brokers of a cluster with ZooKeeper: they must do the same and say the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from testbed import KafkaCluster
from tests.real.election_scenarios import SCENARIOS as ELECTIONS
from tests.real.reassign_scenarios import SCENARIOS as REASSIGNMENTS
from tests.real.test_election_differential import LEADER
from tests.real.test_topics_differential import TOPICS
from tests.real.tool_comparison import REASSIGN, Programs, Scenario, outcomes
from tests.real.topic_scenarios import SCENARIOS as TOPIC_CHANGES

# Only scenarios that do not hang on a throttle being in force at once: here brokers learn of it late.
THROUGH_BROKERS: dict[str, tuple[Programs, Scenario]] = {
    name: (programs, scenarios[name])
    for programs, scenarios, names in (
        (
            REASSIGN,
            REASSIGNMENTS,
            (
                "execute_a_move",
                "execute_while_another_runs",
                "execute_in_addition_to_another",
                "execute_with_every_replication_factor_refused",
                "throttle_a_move_and_raise_the_limit",
            ),
        ),
        (LEADER, ELECTIONS, ("elect_those_of_a_file",)),
        (TOPICS, TOPIC_CHANGES, ("alter",)),
    )
    for name in names
}
TOPIC_ID = re.compile(r"(?<=TopicId: )[\w-]{22}")


@pytest.mark.parametrize("name", THROUGH_BROKERS)
def test_both_tools_do_and_say_the_same(zookeeper_mode: KafkaCluster, tmp_path: Path, name: str) -> None:
    programs, scenario = THROUGH_BROKERS[name]
    theirs, ours = (_without_ids(text) for text in outcomes(zookeeper_mode, name, scenario, tmp_path, programs))
    assert ours == theirs


def _without_ids(text: str) -> str:
    return TOPIC_ID.sub("<id>", text)
