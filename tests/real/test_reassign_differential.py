"""Kafka's own kafka-reassign-partitions and ours must do the same and say the same, scenario by scenario."""

import pytest

from tests.real.broken_scenarios import DEAD, WITH_A_DEAD_BROKER, WITH_SECURITY, wrong_password
from tests.real.reassign_scenarios import SCENARIOS
from tests.real.tool_comparison import answers, outcomes, outcomes_with_a_stopped_broker


@pytest.mark.parametrize("name", SCENARIOS)
def test_both_tools_do_and_say_the_same(conformance, tmp_path, name):
    theirs, ours = outcomes(conformance, name, SCENARIOS[name], tmp_path)
    assert ours == theirs


@pytest.mark.parametrize("name", WITH_SECURITY)
def test_both_tools_do_and_say_the_same_to_a_secure_cluster(kafka_secure, tmp_path, name):
    theirs, ours = outcomes(kafka_secure, name, WITH_SECURITY[name], tmp_path)
    assert ours == theirs


def test_a_wrong_password_is_refused_in_the_brokers_words(kafka_secure, tmp_path):
    theirs, ours = answers(kafka_secure, wrong_password, tmp_path)
    before, exception, words = theirs.partition("SaslAuthenticationException: ")
    assert words.startswith("Authentication failed")
    assert ours == f"{before}{exception}SASL SCRAM-SHA-256 as admin was refused: {words}"


def test_both_tools_do_and_say_the_same_while_a_broker_is_down(conformance, tmp_path):
    theirs, ours = outcomes_with_a_stopped_broker(conformance, DEAD, WITH_A_DEAD_BROKER, tmp_path)
    assert theirs.keys() == WITH_A_DEAD_BROKER.keys()
    assert ours == theirs


def test_there_are_scenarios_enough():
    assert len(SCENARIOS) + len(WITH_SECURITY) + len(WITH_A_DEAD_BROKER) >= 50
