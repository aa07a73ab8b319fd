"""The worked examples of KIP-455 on twins of every release."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kreassign.admin import AdminClient, client_settings
from kreassign.model import TopicPartition
from kreassign.twin import TwinTransport
from kreassign.twin.version import RELEASES, KafkaVersion
from tests.kips.kip_455_examples import BROKERS, EXAMPLES, Stage
from tests.twin.asking import twin

SLOW = 1_000


def stage(version: KafkaVersion) -> Stage:
    """A twin with the partition orders-0."""
    asked = twin({"orders": [[1, 2, 3]]}, brokers=BROKERS, version=version)
    transport = TwinTransport(asked)

    def wait(condition: Callable[[], bool], what: str) -> None:
        for _ in range(600):
            if condition():
                return
            asked.advance(1_000)
        raise TimeoutError(what)

    settings = client_settings(bootstrap_servers="broker-0:9092")
    client = AdminClient.connect(settings, clock=transport, transport=transport)
    return Stage(client, TopicPartition("orders", 0), wait, SLOW)


@pytest.mark.parametrize("version", RELEASES, ids=str)
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.__name__)
def test_the_example_on_a_twin(example: Callable[[Stage], None], version: KafkaVersion) -> None:
    example(stage(version))
