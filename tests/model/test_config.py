from kreassign.model import ConfigChange, ConfigOperation, ConfigResource, ConfigSource, ResourceType


def test_resources_carry_kafkas_numbers_and_names() -> None:
    assert ConfigResource.topic("orders") == (ResourceType.TOPIC, "orders") == (2, "orders")
    assert ConfigResource.broker(7) == (ResourceType.BROKER, "7") == (4, "7")
    assert [str(ConfigResource.topic("orders")), str(ConfigResource.broker(7))] == ["topic orders", "broker 7"]
    assert ConfigResource.all_brokers() == (ResourceType.BROKER, "")
    assert [str(ConfigResource.all_brokers()), str(ConfigResource.topic(""))] == ["all brokers", "topic "]


def test_changes_carry_kafkas_numbers_and_only_delete_has_no_value() -> None:
    assert [
        ConfigChange.set("k", "v"),
        ConfigChange.delete("k"),
        ConfigChange.append("k", "v"),
        ConfigChange.subtract("k", "v"),
    ] == [
        ConfigChange(ConfigOperation.SET, "k", "v"),
        ConfigChange(ConfigOperation.DELETE, "k", None),
        ConfigChange(ConfigOperation.APPEND, "k", "v"),
        ConfigChange(ConfigOperation.SUBTRACT, "k", "v"),
    ]
    assert [int(operation) for operation in ConfigOperation] == [0, 1, 2, 3]


def test_sources_have_kafkas_numbers() -> None:
    assert [source.name for source in sorted(ConfigSource)] == [
        "UNKNOWN",
        "DYNAMIC_TOPIC",
        "DYNAMIC_BROKER",
        "DYNAMIC_DEFAULT_BROKER",
        "STATIC_BROKER",
        "DEFAULT",
        "DYNAMIC_BROKER_LOGGER",
        "CLIENT_METRICS",
        "GROUP",
    ]
    assert sorted(ConfigSource) == list(range(9))
