"""The worked examples of KIP-455 on twins of every release."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kreassign.admin import AdminClient, client_settings
from kreassign.model import TopicPartition
from kreassign.model.throttle import clear_broker_changes, move_map, rate_changes, topic_changes
from kreassign.twin import Twin, TwinTransport
from kreassign.twin.version import RELEASES, KafkaVersion
from tests.kips.kip_455_examples import EXAMPLES, Stage
from tests.twin.asking import twin

BROKERS = 6
SLOW = 1_000


class TwinStage:
    """A twin with the partition orders-0 on 1, 2 and 3, held by a throttle."""

    def __init__(self, version: KafkaVersion) -> None:
        self.twin: Twin = twin({"orders": [[1, 2, 3]]}, brokers=BROKERS, version=version)
        transport = TwinTransport(self.twin)
        self.client = AdminClient.connect(
            client_settings(bootstrap_servers="broker-0:9092"), clock=transport, transport=transport
        )
        self.partition = TopicPartition("orders", 0)

    def hold(self) -> None:
        moves = move_map({}, {self.partition: (3, 4, 5)}, {self.partition: (1, 2, 3)})
        self.client.incremental_alter_configs(topic_changes(moves)).raise_if_any()
        self.client.incremental_alter_configs(rate_changes(range(BROKERS), SLOW)).raise_if_any()

    def release(self) -> None:
        self.client.incremental_alter_configs(clear_broker_changes(range(BROKERS))).raise_if_any()

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        for _ in range(600):
            if condition():
                return
            self.twin.advance(1_000)
        raise TimeoutError(what)


@pytest.mark.parametrize("version", RELEASES, ids=str)
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.__name__)
def test_the_example_on_a_twin(example: Callable[[Stage], None], version: KafkaVersion) -> None:
    example(TwinStage(version))
