"""Kafka's own kafka-topics and ours must do the same and say the same, scenario by scenario."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from testbed import KafkaCluster
from tests.real.tool_comparison import Programs, outcomes
from tests.real.topic_scenarios import SCENARIOS

TOPICS = Programs("org.apache.kafka.tools.TopicCommand", "kreassign.kafka_tools.topics")
_TOPIC_ID = re.compile(r"(?<=TopicId: )[\w-]{22}")


@pytest.mark.parametrize("name", SCENARIOS)
def test_both_tools_do_and_say_the_same(conformance: KafkaCluster, tmp_path: Path, name: str) -> None:
    theirs, ours = outcomes(conformance, f"topics_{name}", SCENARIOS[name], tmp_path, TOPICS)
    assert _TOPIC_ID.sub("<id>", ours) == _TOPIC_ID.sub("<id>", theirs)
