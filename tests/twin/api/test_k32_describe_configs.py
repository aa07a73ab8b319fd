from __future__ import annotations

import pytest

from kreassign.model import ConfigChange, ConfigResource
from kreassign.model.error_codes import error_code
from kreassign.twin.access import Permissions
from kreassign.twin.cluster import Twin
from kreassign.twin.controller.decision import Decision
from kreassign.twin.metadata import ConfigChanged
from kreassign.twin.version import KAFKA_3_9
from kreassign.wire import api
from kreassign.wire.api import Message
from tests.twin.asking import ask, twin

RESOURCE = api.DESCRIBE_CONFIGS.request.DescribeConfigsResource
TOPIC, BROKER = 2, 4


def described(
    asked: Twin,
    kind: int,
    name: str,
    *,
    keys: list[str] | None = None,
    node: int = 1,
    version: int = 4,
    **options: object,
) -> Message:
    resource = RESOURCE(resource_type=kind, resource_name=name, configuration_keys=keys)
    (result,) = ask(asked, api.DESCRIBE_CONFIGS, version, node=node, resources=[resource], **options).results
    return result


def values(result: Message) -> dict[str, tuple[str | None, int]]:
    return {config.name: (config.value, config.config_source) for config in result.configs}


def configured(resource: ConfigResource, change: ConfigChange) -> Twin:
    asked = twin({"orders": [[0, 1]]})
    asked.commit(Decision((ConfigChanged(resource, change.name, change.value),), None))
    return asked


def test_a_topic_tells_all_of_its_keys_and_where_they_come_from() -> None:
    asked = configured(ConfigResource.topic("orders"), ConfigChange.set("retention.ms", "5000"))
    shown = values(described(asked, TOPIC, "orders"))
    assert shown["retention.ms"] == ("5000", 1)
    assert shown["min.insync.replicas"] == ("1", 3)
    assert shown["cleanup.policy"] == ("delete", 5)


@pytest.mark.parametrize(("keys", "told"), [(["retention.ms", "nope"], {"retention.ms"}), (None, None), ([], None)])
def test_only_the_keys_asked_for_are_told_and_none_means_all(keys: list[str] | None, told: set[str] | None) -> None:
    shown = values(described(twin({"orders": [[0]]}), TOPIC, "orders", keys=keys)).keys()
    assert len(shown) > 30 if told is None else shown == told


def test_what_would_hold_otherwise_is_told_if_asked_for() -> None:
    asked = configured(ConfigResource.topic("orders"), ConfigChange.set("min.insync.replicas", "2"))
    without = described(asked, TOPIC, "orders", keys=["min.insync.replicas"])
    assert without.configs[0].synonyms == []
    (config,) = described(asked, TOPIC, "orders", keys=["min.insync.replicas"], include_synonyms=True).configs
    assert [(one.name, one.value, one.source) for one in config.synonyms] == [
        ("min.insync.replicas", "2", 1), ("min.insync.replicas", "1", 3), ("min.insync.replicas", "1", 5),
    ]  # fmt: skip
    assert (config.config_type, config.is_sensitive, config.read_only) == (3, False, False)


def test_throttles_of_a_broker_are_told_once_they_are_set() -> None:
    rate = "leader.replication.throttled.rate"
    assert rate not in values(described(twin(), BROKER, "1"))
    asked = configured(ConfigResource.broker(1), ConfigChange.set(rate, "1000"))
    shown = described(asked, BROKER, "1")
    assert values(shown)[rate] == ("1000", 2)
    assert values(shown)["log.dirs"] == ("/data/1/d0,/data/1/d1", 4)
    assert [config.read_only for config in shown.configs if config.name == "log.dirs"] == [True]


def test_the_settings_of_all_brokers_have_no_name() -> None:
    assert values(described(twin(), BROKER, "")) == {"min.insync.replicas": ("1", 3)}


def test_a_broker_does_not_speak_for_another() -> None:
    result = described(twin(), BROKER, "2", node=1)
    assert (result.error_code, result.error_message) == (
        42, "Unexpected broker id, expected 1 or empty string, but received 2",
    )  # fmt: skip


def test_what_is_not_there_is_unknown() -> None:
    result = described(twin(), TOPIC, "nope")
    assert (result.error_code, result.configs) == (3, [])
    assert described(twin(), 8, "1").error_code == 42


def test_a_kind_of_resource_that_no_release_knows_fails_the_whole_request() -> None:
    asked = [RESOURCE(resource_type=kind, resource_name="orders", configuration_keys=None) for kind in (TOPIC, 77)]
    results = ask(twin({"orders": [[0]]}), api.DESCRIBE_CONFIGS, 4, resources=asked).results
    assert [(one.resource_type, one.error_code, one.configs) for one in results] == [(TOPIC, 42, []), (77, 42, [])]
    assert {one.error_message for one in results} == {error_code(42).text}


def test_version_0_tells_defaults_only() -> None:
    asked = twin({"orders": [[0]]}, version=KAFKA_3_9)
    defaults = {config.name: config.is_default for config in described(asked, TOPIC, "orders", version=0).configs}
    assert defaults["retention.ms"] is True


@pytest.mark.parametrize(
    ("kind", "name", "code", "text"),
    [(TOPIC, "orders", 29, "Topic authorization failed."), (BROKER, "1", 31, "Cluster authorization failed.")],
)
def test_who_may_not_see_is_told_so(kind: int, name: str, code: int, text: str) -> None:
    asked = twin({"orders": [[0]]}, permissions=Permissions(frozenset()))
    result = described(asked, kind, name)
    assert (result.error_code, result.error_message, result.configs) == (code, text, [])
