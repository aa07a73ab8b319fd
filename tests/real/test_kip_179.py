"""KIP-179 on real Kafka, which has none of its requests: put together from those that it has."""

import pytest

from testbed import KafkaCluster
from tests.kips.topic_change_checks import CHECKS, Check
from tests.real.admin_checks import client_of


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_on_the_newest(check: Check, kafka: KafkaCluster, topic_name: str) -> None:
    with client_of(kafka) as client:
        check(client, topic_name)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_on_3_9(check: Check, kafka_391: KafkaCluster, topic_name: str) -> None:
    with client_of(kafka_391) as client:
        check(client, topic_name)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_in_zookeeper_mode(check: Check, kafka_zookeeper: KafkaCluster, topic_name: str) -> None:
    with client_of(kafka_zookeeper) as client:
        check(client, topic_name)
