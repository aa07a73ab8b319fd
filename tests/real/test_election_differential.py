"""Kafka's own election tools and ours must do the same and say the same, scenario by scenario."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from testbed import KafkaCluster
from tests.real.both_tools import Programs, outcomes
from tests.real.election_scenarios import PREFERRED_SCENARIOS, SCENARIOS, without_the_right

LEADER = Programs("org.apache.kafka.tools.LeaderElectionCommand", "kreassign.cli.kafka.leader_election")
PREFERRED = Programs(
    "kafka.admin.PreferredReplicaLeaderElectionCommand", "kreassign.cli.kafka.preferred_replica_election", "2.8.2"
)

_UNNEEDED = re.compile(r"(?<=Preferred replica already elected for partitions ).*")


@pytest.mark.parametrize("name", SCENARIOS)
def test_both_leader_elections_do_and_say_the_same(kafka: KafkaCluster, tmp_path: Path, name: str) -> None:
    theirs, ours = outcomes(kafka, name, SCENARIOS[name], tmp_path, LEADER)
    assert ours == theirs


@pytest.mark.parametrize("name", PREFERRED_SCENARIOS)
def test_both_preferred_elections_do_and_say_the_same(kafka: KafkaCluster, tmp_path: Path, name: str) -> None:
    theirs, ours = outcomes(kafka, name, PREFERRED_SCENARIOS[name], tmp_path, PREFERRED)
    # Kafka's tool names the wrong ones here: those for which an election was completed.
    assert _UNNEEDED.sub("…", ours) == _UNNEEDED.sub("…", theirs)


def test_both_are_refused_alike_without_the_right(kafka_secure: KafkaCluster, tmp_path: Path) -> None:
    theirs, ours = outcomes(kafka_secure, "without_the_right", without_the_right, tmp_path, LEADER)
    assert ours == theirs
