"""Descriptions of configs."""

import pytest

from kreassign.model.cluster import ConfigSource
from kreassign.model.error_codes import error_code
from kreassign.twin.controller.config_keys import TOPIC_KEYS, ValueType
from kreassign.twin.controller.decision import ServerSettings
from kreassign.twin.controller.described_configs import Synonym, broker_setting, describe_configs
from kreassign.twin.metadata import BrokerRegistered, ConfigChanged
from tests.twin.controller.small_cluster import SmallCluster, directories, resource_of

TOPIC, BROKER = 2, 4
RATE, MIN_ISR = "leader.replication.throttled.rate", "min.insync.replicas"


def cluster(**options):
    made = SmallCluster(**options).topic("foo", "0 1")
    made.write(
        ConfigChanged(resource_of(""), MIN_ISR, "1"),
        ConfigChanged(resource_of("foo"), "retention.ms", " 5 "),
        ConfigChanged(resource_of(0), RATE, "1000"),
        ConfigChanged(resource_of(0), "listener.name.x.ssl.keystore.password", "secret"),
    )
    return made


def told(made, kind, name, keys=None, node=0):
    answer = describe_configs(made.context, node, (kind, name), keys)
    assert (answer.outcome.code, answer.outcome.message) == (0, "")
    return {config.name: config for config in answer.configs}


def brief(config):
    return config.value, config.source, config.type


def test_a_topic_tells_every_key_and_where_its_value_comes_from():
    configs = told(cluster(), TOPIC, "foo")
    assert configs.keys() == TOPIC_KEYS.keys()
    assert brief(configs["retention.ms"]) == ("5", ConfigSource.DYNAMIC_TOPIC, ValueType.LONG)
    assert brief(configs[MIN_ISR]) == ("1", ConfigSource.DYNAMIC_DEFAULT_BROKER, ValueType.INT)
    assert brief(configs["segment.ms"]) == ("604800000", ConfigSource.DEFAULT, ValueType.LONG)
    assert configs["segment.ms"].synonyms == ()
    assert configs["segment.bytes"].synonyms == (Synonym("log.segment.bytes", "1073741824", ConfigSource.DEFAULT),)
    key = "follower.replication.throttled.replicas"
    assert brief(configs[key]) == ("", ConfigSource.DEFAULT, ValueType.LIST)


def test_synonyms_come_most_particular_first():
    made = cluster(server=ServerSettings(static={"log.retention.ms": "9"}))
    made.write(ConfigChanged(resource_of(0), "log.retention.ms", "7"))
    made.write(ConfigChanged(resource_of(""), "log.retention.ms", "8"))
    (config,) = told(made, TOPIC, "foo", ["retention.ms"]).values()
    assert [(synonym.name, synonym.value, synonym.source.value) for synonym in config.synonyms] == [
        ("retention.ms", "5", 1),
        ("log.retention.ms", "7", 2),
        ("log.retention.ms", "8", 3),
        ("log.retention.ms", "9", 4),
        ("log.retention.hours", "168", 5),
    ]


def test_only_the_broker_itself_counts_its_own_settings():
    made = cluster()
    made.write(ConfigChanged(resource_of(0), "log.retention.bytes", "7"))
    values = [told(made, TOPIC, "foo", node=node)["retention.bytes"].value for node in (0, 1)]
    assert values == ["7", "-1"]


def test_secrets_are_not_told():
    config = told(cluster(), BROKER, "0")["listener.name.x.ssl.keystore.password"]
    assert (config.value, config.type, config.is_sensitive) == (None, ValueType.PASSWORD, True)
    assert config.synonyms == (Synonym("listener.name.x.ssl.keystore.password", None, ConfigSource.DYNAMIC_BROKER),)


def test_what_nobody_knows_may_be_a_secret():
    made = cluster()
    made.write(ConfigChanged(resource_of(0), "my.key", "x"))
    config = told(made, BROKER, "0")["my.key"]
    assert (config.value, config.type) == (None, ValueType.UNKNOWN)
    assert config.is_sensitive
    assert config.is_read_only


def test_settings_of_a_listener_are_told():
    made = cluster()
    made.write(ConfigChanged(resource_of(0), "listener.name.x.ssl.keystore.location", "/x"))
    config = told(made, BROKER, "0")["listener.name.x.ssl.keystore.location"]
    assert (config.value, config.type, config.is_sensitive) == ("/x", ValueType.STRING, False)


def test_of_its_own_file_the_controller_tells_its_id_only():
    configs = told(cluster(), BROKER, "100", node=100)
    assert {name for name, config in configs.items() if config.source is ConfigSource.STATIC_BROKER} == {"node.id"}


@pytest.mark.parametrize(("kind", "name"), [(TOPIC, "foo"), (BROKER, "0")])
def test_no_keys_are_none_that_were_asked_for(kind, name):
    assert told(cluster(), kind, name, []) == {}


@pytest.mark.parametrize(("kind", "name", "code", "message"), [
    (TOPIC, "", 17, "Topic name is invalid: the empty string is not allowed"),
    (BROKER, "-1", 42, "Unexpected broker id, expected 0 or empty string, but received -1"),
    *((BROKER, name, 42, f"Broker id must be an integer, but it is: {name}") for name in ("--1", "1x", " 0", "-")),
    (77, "x", 42, error_code(42).text),
    *((kind, "0", 44, "This is a twin: it keeps configs of topics and brokers only.") for kind in (8, 16, 32)),
])  # fmt: skip
def test_what_cannot_be_told(kind, name, code, message):
    answer = describe_configs(cluster().context, 0, (kind, name))
    assert (answer.outcome.code, answer.outcome.message, answer.configs) == (code, message, ())


def test_all_that_a_brokers_file_says_is_told_with_its_synonyms():
    made = cluster()
    made.write(BrokerRegistered(7, "host7", 9093, "a", directories(7, 2), 99))
    configs = told(made, BROKER, "7", node=7)
    static = ConfigSource.STATIC_BROKER
    expected = {
        "node.id": ("7",), "broker.id": ("7", "-1"), "process.roles": ("broker",), "broker.rack": ("a",),
        "listeners": ("PLAINTEXT://host7:9093", "PLAINTEXT://:9092"), "log.dirs": ("/data0,/data1",),
    }  # fmt: skip
    for name, values in expected.items():
        config, sources = configs[name], (static, ConfigSource.DEFAULT)
        assert (config.name, config.value, config.source, config.is_sensitive) == (name, values[0], static, False)
        assert config.synonyms == tuple(
            Synonym(name, value, source) for value, source in zip(values, sources, strict=False)
        )
        assert len(config.documentation) > 20
    alone = cluster()
    alone.write(BrokerRegistered(8, "host8", 9092, None, directories(8, 1), 99))
    found = told(alone, BROKER, "8", node=8)["broker.rack"]
    assert (found.value, found.source) == (None, ConfigSource.DEFAULT)


def test_what_all_brokers_have_is_told_by_name_with_one_synonym():
    made = cluster()
    made.write(
        ConfigChanged(resource_of(""), "background.threads", "11"),
        ConfigChanged(resource_of(""), "listener.name.x.ssl.key.password", "secret"),
        ConfigChanged(resource_of(""), "ssl.protocol", "TLS"),
    )
    answer = describe_configs(made.context, 0, (BROKER, ""))
    shared = ConfigSource.DYNAMIC_DEFAULT_BROKER
    assert [(one.name, one.value, one.source, one.is_sensitive, one.is_read_only) for one in answer.configs] == [
        ("background.threads", "11", shared, False, False),
        ("listener.name.x.ssl.key.password", None, shared, True, True),
        (MIN_ISR, "1", shared, False, False),
        ("ssl.protocol", "TLS", shared, False, False),
    ]
    assert answer.configs[0].synonyms == (Synonym("background.threads", "11", shared),)
    assert (answer.type, answer.name) == (BROKER, "")


def test_a_key_of_a_broker_is_told_wherever_it_is_set():
    made = cluster(server=ServerSettings(static={"background.threads": "12"}))
    made.write(ConfigChanged(resource_of(""), "background.threads", "11"))
    made.write(ConfigChanged(resource_of(0), "background.threads", "10"))
    (config,) = told(made, BROKER, "0", ["background.threads"]).values()
    assert [(one.name, one.value, one.source) for one in config.synonyms] == [
        ("background.threads", "10", ConfigSource.DYNAMIC_BROKER),
        ("background.threads", "11", ConfigSource.DYNAMIC_DEFAULT_BROKER),
        ("background.threads", "12", ConfigSource.STATIC_BROKER),
        ("background.threads", "10", ConfigSource.DEFAULT),
    ]
    assert broker_setting(made.context, 1, "background.threads") == "11"
    assert broker_setting(made.context, 1, "num.io.threads") == "8"
    assert broker_setting(made.context, 1, RATE) is None
