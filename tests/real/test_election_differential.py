"""Kafka's own election tools and ours must do the same and say the same, scenario by scenario."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from testbed import KafkaCluster
from tests.real.election_scenarios import PREFERRED_SCENARIOS, SCENARIOS, through_zookeeper, without_the_right
from tests.real.tool_comparison import Programs, outcomes

LEADER = Programs("org.apache.kafka.tools.LeaderElectionCommand", "kreassign.kafka_tools.leader_election")
PREFERRED = Programs(
    "kafka.admin.PreferredReplicaLeaderElectionCommand", "kreassign.kafka_tools.preferred_replica_election", "2.8.2"
)

_UNNEEDED = re.compile(r"(?<=Preferred replica already elected for partitions ).*")


@pytest.mark.parametrize("name", SCENARIOS)
def test_both_leader_elections_do_and_say_the_same(conformance: KafkaCluster, tmp_path: Path, name: str) -> None:
    theirs, ours = outcomes(conformance, name, SCENARIOS[name], tmp_path, LEADER)
    assert ours == theirs


@pytest.mark.parametrize("name", PREFERRED_SCENARIOS)
def test_both_preferred_elections_do_and_say_the_same(conformance: KafkaCluster, tmp_path: Path, name: str) -> None:
    theirs, ours = outcomes(conformance, name, PREFERRED_SCENARIOS[name], tmp_path, PREFERRED)
    # Kafka's tool names the wrong ones here: those for which an election was completed.
    assert _UNNEEDED.sub("…", ours) == _UNNEEDED.sub("…", theirs)


def test_both_are_refused_alike_without_the_right(kafka_secure: KafkaCluster, tmp_path: Path) -> None:
    theirs, ours = outcomes(kafka_secure, "without_the_right", without_the_right, tmp_path, LEADER)
    assert ours == theirs


_ZOOKEEPER_IS_DEPRECATED = re.compile(r"Warning: --zookeeper is deprecated.*\nUse --bootstrap-server instead.*\n")
_NAMES = re.compile(r"(?<=path with )\S+|(?<=for partitions Set\().*(?=\))")
_SKIPPED = re.compile(r"(?:^Skipping .*\n)+", re.MULTILINE)


def test_both_preferred_elections_leave_the_same_order_in_zookeeper(
    kafka_zookeeper: KafkaCluster, tmp_path: Path
) -> None:
    theirs, ours = (
        _NAMES.sub(_sorted_names, _SKIPPED.sub(_sorted_lines, text))
        for text in outcomes(kafka_zookeeper, "through_zookeeper", through_zookeeper, tmp_path, PREFERRED)
    )
    assert len(_ZOOKEEPER_IS_DEPRECATED.findall(theirs)) == len(_ZOOKEEPER_IS_DEPRECATED.findall(ours)) == 1
    assert _ZOOKEEPER_IS_DEPRECATED.sub("", ours) == _ZOOKEEPER_IS_DEPRECATED.sub("", theirs)


def _sorted_names(match: re.Match[str]) -> str:
    return ",".join(sorted(name.strip() for name in match[0].split(",")))


def _sorted_lines(match: re.Match[str]) -> str:
    return "".join(sorted(match[0].splitlines(keepends=True)))
