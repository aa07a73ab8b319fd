from __future__ import annotations

from kreassign.model import ConfigResource
from kreassign.twin.cluster import Twin
from kreassign.wire import api
from tests.twin.asking import ask, twin

RESOURCE = api.ALTER_CONFIGS.request.AlterConfigsResource
ORDERS = ConfigResource.topic("orders")


def replace(asked: Twin, **configs: str | None) -> tuple[int, str | None]:
    steps = [RESOURCE.AlterableConfig(name=name.replace("_", "."), value=value) for name, value in configs.items()]
    entry = RESOURCE(resource_type=2, resource_name="orders", configs=steps)
    (one,) = ask(asked, api.ALTER_CONFIGS, 2, resources=[entry]).responses
    return one.error_code, one.error_message


def test_what_is_not_named_is_taken_back() -> None:
    asked = twin({"orders": [[0]]})
    assert replace(asked, retention_ms="5", retention_bytes="7") == (0, None)
    assert asked.metadata.configs[ORDERS] == {"retention.ms": "5", "retention.bytes": "7"}
    assert replace(asked, retention_bytes="8") == (0, None)
    assert asked.metadata.configs[ORDERS] == {"retention.bytes": "8"}
    assert replace(asked) == (0, None)
    assert ORDERS not in asked.metadata.configs


def test_a_refused_change_leaves_everything_as_it_is() -> None:
    asked = twin({"orders": [[0]]})
    replace(asked, retention_ms="5")
    code, text = replace(asked, retention_ms="6", zzz="1")
    assert (code, text) == (40, "Unknown topic config name: zzz")
    assert asked.metadata.configs[ORDERS] == {"retention.ms": "5"}
