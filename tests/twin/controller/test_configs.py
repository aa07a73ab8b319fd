"""Changing configuration: what real brokers and controllers answered, and what it does to the metadata."""

from dataclasses import replace

import pytest

from kreassign.model import ConfigOperation
from kreassign.twin.controller.configs import AlterConfigs, KeyChange, ResourceChanges, alter_configs, first_records
from kreassign.twin.controller.decision import ServerSettings, rules_of
from kreassign.twin.metadata import ConfigChanged
from tests.twin.controller.small_cluster import SmallCluster, resource_of

SET, DELETE, APPEND, SUBTRACT = ConfigOperation
LEADERS, RATE = "leader.replication.throttled.replicas", "leader.replication.throttled.rate"
MIN_ISR = "min.insync.replicas"
DONE = (0, None)
ONLY_OPENS = (
    40,
    (
        "When updating cordoned.log.dirs via controllers,  the new value must be a subset of the current configuration "
        "value."
    ),
)
OTHER_KIND = (44, "This is a twin: it keeps configs of topics and brokers only.")
STRANGE_DIRS = "requirement failed: All entries in cordoned.log.dirs must be present in log.dirs or log.dir."


def resource(owner, *changes):
    """Changes of a topic (by name) or a broker (by number, "" for all), each as (operation, key, value)."""
    kind, name = resource_of(owner)
    return ResourceChanges(int(kind), name, tuple(KeyChange(int(how), key, value) for how, key, value in changes))


def change(cluster, *resources, at=0, **options):
    """Ask for changes; code and message of each resource, in the order of the answer."""
    answers = cluster.commit(alter_configs, AlterConfigs(resources, broker_id=at, **options))
    return [(answer.outcome.code, answer.outcome.message) for answer in answers]


def foo(**options):
    return SmallCluster(**options).topic("foo", "0 1")


def values(cluster, owner="foo"):
    return cluster.metadata.configs.get(resource_of(owner), {})


@pytest.fixture
def cluster():
    return foo()


# Steps


@pytest.mark.parametrize("at", [0, None])
@pytest.mark.parametrize(("before", "step", "after"), [
    ("0:1", (DELETE, LEADERS, None), None),
    (None, (APPEND, LEADERS, "0:1"), "0:1"),
    (None, (SUBTRACT, LEADERS, "0:1"), ""),
    (None, (APPEND, "cleanup.policy", "compact"), "delete,compact"),
])  # fmt: skip
def test_steps_on_a_topic(cluster, before, step, after, at):
    if before is not None:
        cluster.configure("foo", LEADERS, before)
    assert change(cluster, resource("foo", step), at=at) == [DONE]
    assert values(cluster).get(step[1]) == after


def test_only_brokers_get_a_record_for_an_unchanged_value(cluster):
    for owner, key, value in (("foo", LEADERS, "*"), (0, RATE, "5")):
        command = AlterConfigs((resource(owner, (SET, key, value)),), broker_id=0)
        counts = []
        for _ in range(2):
            decision = alter_configs(cluster.context, command)
            cluster.write(*decision.records)
            counts.append(len(decision.records))
        assert counts == ([1, 0] if owner == "foo" else [1, 1])


# Refusals


@pytest.mark.parametrize(("changes", "at_broker", "at_controller"), [
    (
        resource("foo", (SET, "retention.ms", None), (SET, LEADERS, None)),
        (42, f"Null value not supported for : retention.ms, {LEADERS}"),
        DONE,
    ),
    (resource("foo", (SET, LEADERS, "*"), (DELETE, LEADERS, None)), (42, "Error due to duplicate config keys"), DONE),
    (resource("nope", (SET, LEADERS, "*")), (3, "The topic 'nope' does not exist."), ...),
    (
        resource("foo", (SUBTRACT, "zzz", "1")),
        (40, "Can't SUBTRACT to key zzz because its type is not LIST."),
        ...,
    ),
    (
        resource("foo", (SET, LEADERS, "0:1," * 10_000)),
        (40, "The configuration value cannot be added because it exceeds the maximum value size of 32767 bytes."),
        ...,
    ),
    (ResourceChanges(2, "", (KeyChange(0, LEADERS, "*"),)), (42, "Default topic resources are not allowed."), ...),
    (ResourceChanges(2, ".", ()), (17, "Topic name is invalid: '.' is not allowed"), ...),
    (ResourceChanges(77, "x", ()), (42, "Unknown resource type 77"), (35, "Unknown resource type 77.")),
    *((ResourceChanges(kind, "0", (KeyChange(0, "x", "1"),)), OTHER_KIND, ...) for kind in (8, 16, 32)),
    (
        resource(0, (SET, RATE, "-1")),
        (42, f"Invalid value -1 for configuration {RATE}: Value must be at least 0"),
        DONE,
    ),
    (resource(0, (SET, "log.dirs", "/x")), (42, "Cannot update these configs dynamically: [log.dirs]"), DONE),
    (resource(2, (SET, RATE, "1")), (42, "Unexpected broker id, expected 0, but received 2"), DONE),
    (
        resource(9, (SET, RATE, "1")),
        (42, "Unexpected broker id, expected 0, but received 9"),
        (102, "No node with id 9 found."),
    ),
    (
        ResourceChanges(4, "x", (KeyChange(0, RATE, "1"),)),
        (42, "Node id must be an integer, but it is: x"),
        (42, "Unable to parse broker name as a base 10 number."),
    ),
    (
        ResourceChanges(4, "-1", (KeyChange(0, RATE, "1"),)),
        (42, "Unexpected broker id, expected 0, but received -1"),
        (42, "Invalid negative broker ID."),
    ),
    (
        ResourceChanges(4, "", (KeyChange(0, "cordoned.log.dirs", "*"),)),
        (
            42,
            "Cannot update these configs at default cluster level, broker id must be specified: [cordoned.log.dirs]",
        ),
        ONLY_OPENS,
    ),
    (
        resource(0, (SET, "cordoned.log.dirs", "/data1,/nope")),
        (
            42,
            f"{STRANGE_DIRS} Missing entries : /nope",
        ),
        ONLY_OPENS,
    ),
    (
        resource(0, (APPEND, "num.io.threads", "1")),
        (40, "Config value append is not allowed for config key: num.io.threads"),
        (40, "Can't APPEND to key num.io.threads because its type is not LIST."),
    ),
    (
        resource(0, (APPEND, RATE, "1")),
        (40, f"Unknown config name: {RATE}"),
        (40, f"Can't APPEND to key {RATE} because its type is not LIST."),
    ),
    (resource(0, (9, RATE, "1")), (42, "Unknown operations type 9"), (-1, None)),
    (resource("foo", (9, LEADERS, "1")), (-1, None), (-1, None)),
])  # fmt: skip
def test_refusals_of_a_broker_and_of_the_controller(changes, at_broker, at_controller):
    """`...` means the same at both."""
    for at, expected in ((0, at_broker), (None, at_broker if at_controller is ... else at_controller)):
        assert change(foo(), changes, at=at) == [expected]


def test_bad_values_are_found_before_missing_topics():
    ((code, message),) = change(foo(), resource("nope", (SET, LEADERS, "x")))
    assert code == 40
    assert message.startswith("Invalid value [x] for configuration")


def test_an_unknown_operation_fails_all_changes_at_the_controller():
    cluster = foo().topic("bar", "0 1")
    answers = change(
        cluster,
        resource("foo", (9, LEADERS, "1")),
        resource("bar", (SET, LEADERS, "*")),
        resource(2, (SET, RATE, "1")),
    )
    assert answers == [(-1, None), (-1, None), (42, "Unexpected broker id, expected 0, but received 2")]
    assert values(cluster, "bar") == {}


def test_a_request_that_would_write_too_much_is_refused_as_a_whole():
    many = resource(0, *((SET, f"key{number}", "1") for number in range(10_001)))
    refusal = (44, "Unable to perform excessively large batch operation.")
    cluster = foo()
    assert change(cluster, many, resource("foo", (SET, LEADERS, "*")), resource(2)) == [
        refusal,
        refusal,
        (42, "Unexpected broker id, expected 0, but received 2"),
    ]
    assert cluster.metadata.configs == {}


# Brokers


def test_the_controller_takes_settings_of_a_dead_broker():
    cluster = foo(dead=(3,))
    assert change(cluster, resource(3, (SET, RATE, "1000")), at=None) == [DONE]
    assert values(cluster, 3) == {RATE: "1000"}


def test_a_broker_judges_all_that_it_would_then_have(cluster):
    change(cluster, resource(0, (SET, RATE, "-5")), at=None)
    ((code, _),) = change(cluster, resource(0, (SET, "num.io.threads", "4")))
    assert code == 42
    assert change(cluster, resource(0, (DELETE, RATE, None))) == [DONE]


def test_keys_of_ones_own_are_stored_as_they_are(cluster):
    assert change(cluster, resource(0, (SET, "my.plugin.key", "x"))) == [DONE]
    assert values(cluster, 0) == {"my.plugin.key": "x"}


@pytest.mark.parametrize(("key", "wanted", "why"), [
    ("num.io.threads", "4", None), ("num.io.threads", "16", None),
    ("num.io.threads", "3", "value should be at least half the current value 8"),
    ("num.io.threads", "17", "value should not be greater than double the current value 8"),
    ("num.network.threads", "1", None), ("num.network.threads", "6", None),
    ("num.network.threads", "7", "value should not be greater than double the current value 3"),
    ("num.replica.fetchers", "2", None),
    ("num.replica.fetchers", "3", "value should not be greater than double the current value 1"),
    ("log.cleaner.threads", "100", None),
])  # fmt: skip
def test_pools_of_threads_are_halved_or_doubled_at_the_most(key, wanted, why):
    text = (
        "Invalid value org.apache.kafka.common.config.ConfigException: Dynamic thread count update validation failed "
        f"for {key}={wanted}, {why} for configuration Invalid dynamic configuration"
    )
    assert change(foo(), resource(0, (SET, key, wanted))) == [DONE if why is None else (42, text)]


def test_threads_are_compared_with_those_that_the_broker_has_now(cluster):
    for count in ("16", "32"):
        assert change(cluster, resource(0, (SET, "num.io.threads", count))) == [DONE]
    ((code, message),) = change(cluster, resource("", (SET, "num.io.threads", "8")))
    assert (code, "at least half the current value 32" in message) == (42, True)
    # Who asks the controller is not compared, and of two pools the first by name is told.
    assert change(cluster, resource(0, (SET, "num.io.threads", "1")), at=None) == [DONE]
    two = resource(0, (SET, "num.replica.fetchers", "9"), (SET, "background.threads", "99"))
    assert "background.threads=99" in change(foo(), two)[0][1]


def test_a_broker_judges_what_a_list_becomes():
    only_star = "requirement failed: When cordoned.log.dirs is set to *, it must not contain other values"
    cluster = foo().configure(0, "cordoned.log.dirs", "/data0")
    assert change(cluster, resource(0, (APPEND, "cordoned.log.dirs", "*"))) == [(42, only_star)]
    assert change(cluster, resource(0, (APPEND, "cordoned.log.dirs", "/data1"))) == [DONE]
    assert values(cluster, 0) == {"cordoned.log.dirs": "/data0,/data1"}
    assert change(cluster, resource(0, (SUBTRACT, "cordoned.log.dirs", "/data0"))) == [DONE]
    assert values(cluster, 0) == {"cordoned.log.dirs": "/data1"}
    missing = f"{STRANGE_DIRS} Missing entries : /a, /b"
    assert change(cluster, resource(0, (APPEND, "cordoned.log.dirs", "/b,/a"))) == [(42, missing)]
    # Another setting of the broker is judged with them.
    strange = foo().configure(0, "cordoned.log.dirs", "/nope")
    assert change(strange, resource(0, (SET, RATE, "5"))) == [(42, f"{STRANGE_DIRS} Missing entries : /nope")]


def test_older_controllers_know_no_cordons():
    older = foo(rules=rules_of("4.2"))
    for at in (None, 0):
        assert change(older, resource(0, (SET, "cordoned.log.dirs", "/x")), at=at) == [DONE]


def test_a_topic_is_tiered_where_servers_are_and_can_be_untiered():
    tiered = (SET, "remote.storage.enable", "true")
    disabled = (
        "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage."
    )
    assert change(foo(), resource("foo", tiered)) == [(40, disabled)]
    cluster = foo(server=ServerSettings(static={"remote.log.storage.system.enable": "true"}))
    assert change(cluster, resource("foo", tiered)) == [DONE]
    ((code, message),) = change(cluster, resource("foo", (DELETE, "remote.storage.enable", None)))
    assert (code, message[:47]) == (40, "It is invalid to disable remote storage without")
    gone = resource("foo", (DELETE, "remote.storage.enable", None), (SET, "remote.log.delete.on.disable", "true"))
    assert change(cluster, gone) == [DONE]
    assert values(cluster) == {"remote.log.delete.on.disable": "true"}


def test_replacing_takes_back_keys_in_their_order_and_before_what_is_new():
    cluster = (
        foo().configure("foo", "retention.ms", "5").configure("foo", LEADERS, "*").configure("foo", "flush.ms", "1")
    )
    command = AlterConfigs((resource("foo", (SET, "segment.ms", "9")),), broker_id=0, replaces=True)
    assert [(one.name, one.value) for one in alter_configs(cluster.context, command).records] == [
        ("flush.ms", None), (LEADERS, None), ("retention.ms", None), ("segment.ms", "9"),
    ]  # fmt: skip


def test_a_controller_that_is_no_broker_can_be_configured(cluster):
    context = replace(cluster.context, controllers=frozenset({100}))
    for node, code in ((100, 0), (101, 102)):
        command = AlterConfigs((resource(node, (SET, RATE, "5")),))
        (answer,) = alter_configs(context, command).answer
        assert (answer.type, answer.name, answer.outcome.code) == (4, str(node), code)


def test_replacing_does_not_judge_what_goes(cluster):
    change(cluster, resource(0, (SET, RATE, "-5")), at=None)
    assert change(cluster, resource(0, (SET, "num.io.threads", "4")), replaces=True) == [DONE]
    assert values(cluster, 0) == {"num.io.threads": "4"}


# The least ISR and who is eligible


@pytest.mark.parametrize(("owner", "forgotten"), [("foo", {"foo"}), ("", {"foo", "bar"})])
def test_another_least_isr_makes_void_who_was_eligible(owner, forgotten):
    cluster = SmallCluster()
    for name in ("foo", "bar"):
        cluster.topic(name, "0 1 2 / 0", elr=(1, 2)).configure(name, MIN_ISR, "3")
    assert change(cluster, resource(owner, (SET, MIN_ISR, "2"))) == [DONE]
    assert {name for name in ("foo", "bar") if not cluster.partition(name).elr} == forgotten


def test_another_setting_leaves_those_who_were_eligible():
    cluster = SmallCluster().topic("foo", "0 1 2 / 0", elr=(1, 2))
    assert change(cluster, resource("foo", (SET, "retention.ms", "5")), resource(0, (SET, RATE, "5"))) == [DONE, DONE]
    assert cluster.partition("foo").elr == (1, 2)


def test_brokers_may_have_a_min_isr_without_eligible_leaders():
    cluster = foo(rules=rules_of("3.9"))
    assert change(cluster, resource(0, (SET, MIN_ISR, "2"))) == [DONE]


def test_formatting_sets_min_isr_where_eligible_leaders_are_kept():
    assert first_records(SmallCluster(rules=rules_of("3.9")).context) == ()
    everybody = resource_of("")
    assert first_records(SmallCluster().context) == (ConfigChanged(everybody, MIN_ISR, "1"),)
    server = ServerSettings(static={MIN_ISR: "2"})
    assert first_records(SmallCluster(server=server).context) == (ConfigChanged(everybody, MIN_ISR, "2"),)
