"""Reading and changing configuration: DescribeConfigs, IncrementalAlterConfigs and AlterConfigs."""

from __future__ import annotations

import pytest

from kreassign.errors import OutcomeUnknown
from kreassign.model.error_codes import error_code
from kreassign.wire import api
from kreassign.wire.api import Message
from tests.conformance.clusters import CONTROLLER, NEWEST, Answered, Cluster, RealKafka

both_releases = pytest.mark.releases(NEWEST, "3.9")
TOPIC, BROKER, NONSENSE = 2, 4, 77
SET, DELETE, APPEND, SUBTRACT, UNKNOWN = 0, 1, 2, 3, 9
DONE = Answered(0, None)
LISTS, RATE = "leader.replication.throttled.replicas", "leader.replication.throttled.rate"
Step = tuple[int, str, str | None]
Fields = dict[str, object]
BAD_LIST = (
    "Invalid value [{value}] for configuration leader.replication.throttled.replicas: "
    "leader.replication.throttled.replicas must be the literal '*' or a list of replicas in the following format: "
    "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
)


def resource(kind: int, name: str, *steps: Step) -> Fields:
    """Resource with its changes."""
    entries = [{"config_operation": step, "name": key, "value": value} for step, key, value in steps]
    return {"resource_type": kind, "resource_name": name, "configs": entries}


def change(cluster: Cluster, *resources: Fields, node: int = 0, **options: object) -> list[tuple[str, Answered]]:
    """Name, code and text of each resource in the answer, by name."""
    answer = cluster.ask(api.INCREMENTAL_ALTER_CONFIGS, 1, node=node, resources=list(resources), **options)
    return sorted((one.resource_name, Answered(one.error_code, one.error_message)) for one in answer.responses)


def change_topic(cluster: Cluster, *steps: Step, node: int = 0, **options: object) -> Answered:
    """Change the test's topic."""
    ((_, outcome),) = change(cluster, resource(TOPIC, cluster.topic, *steps), node=node, **options)
    return outcome


def replace(cluster: Cluster, *settings: tuple[str, str | None], **options: object) -> Answered:
    """Replace all settings of the test's topic in the older way."""
    entries = [{"name": key, "value": value} for key, value in settings]
    entry = {"resource_type": TOPIC, "resource_name": cluster.topic, "configs": entries}
    (one,) = cluster.ask(api.ALTER_CONFIGS, 2, resources=[entry], **options).responses
    return Answered(one.error_code, one.error_message)


def describe(
    cluster: Cluster, kind: int, name: str, *keys: str, node: int = 0, synonyms: bool = False
) -> tuple[Answered, dict[str, Message]]:
    """Code and text, and the settings by key."""
    asked = {"resource_type": kind, "resource_name": name, "configuration_keys": list(keys) or None}
    answer = cluster.ask(api.DESCRIBE_CONFIGS, 4, node=node, resources=[asked], include_synonyms=synonyms)
    (one,) = answer.results
    return Answered(one.error_code, one.error_message), {config.name: config for config in one.configs}


def value(cluster: Cluster, key: str, kind: int = TOPIC, name: str | None = None) -> str | None:
    """The value that holds; None where the key is not in the answer."""
    _, found = describe(cluster, kind, cluster.topic if name is None else name, key)
    return found[key].value if key in found else None


def own_values(cluster: Cluster) -> dict[str, str | None]:
    """Configs of the test's topic itself, as far as brokers know."""
    _, found = describe(cluster, TOPIC, cluster.topic)
    return {name: one.value for name, one in found.items() if one.config_source == 1}


def becomes(cluster: Cluster, **expected: str) -> None:
    """Wait until the test's topic has just these settings of its own."""
    dotted = {name.replace("_", "."): found for name, found in expected.items()}
    cluster.until(lambda: own_values(cluster) == dotted, f"{cluster.topic} with {dotted}")


# Reading


@both_releases
def test_a_topic_tells_every_key_with_its_source(cluster: Cluster) -> None:
    cluster.create((0,), retention_ms="5000")
    outcome, found = describe(cluster, TOPIC, cluster.topic)
    assert outcome == (0, "")
    assert (found["retention.ms"].value, found["retention.ms"].config_source) == ("5000", 1)
    assert (found["cleanup.policy"].value, found["cleanup.policy"].config_source) == ("delete", 5)
    assert (found[LISTS].value, found[LISTS].config_source, found[LISTS].config_type) == ("", 5, 7)
    assert not any(one.read_only or one.is_sensitive for one in found.values())


def test_the_keys_of_a_topic_are_kafkas_with_their_types(cluster: Cluster) -> None:
    cluster.create((0,))
    _, found = describe(cluster, TOPIC, cluster.topic)
    types = {name: one.config_type for name, one in found.items()}
    assert types["retention.ms"] == 5
    assert types["min.insync.replicas"] == 3
    assert types["unclean.leader.election.enable"] == 1
    assert types["cleanup.policy"] == 7
    assert types["compression.type"] == 2
    assert types["min.cleanable.dirty.ratio"] == 6
    # A twin has the keys of the newest release on all (docs/reference/twin-omissions.md).
    is_former = cluster.release != NEWEST and isinstance(cluster.backend, RealKafka)
    assert len(found) == (33 if is_former else 37)


def test_keys_that_are_not_there_are_left_out(cluster: Cluster) -> None:
    cluster.create((0,))
    outcome, found = describe(cluster, TOPIC, cluster.topic, "retention.ms", "zzz")
    assert (outcome, list(found)) == ((0, ""), ["retention.ms"])


def test_synonyms_are_told_when_they_are_asked_for(cluster: Cluster) -> None:
    cluster.create((0,), unclean_leader_election_enable="true")
    key = "unclean.leader.election.enable"
    _, quiet = describe(cluster, TOPIC, cluster.topic, key)
    _, described = describe(cluster, TOPIC, cluster.topic, key, synonyms=True)
    assert quiet[key].synonyms == []
    assert [(one.name, one.value, one.source) for one in described[key].synonyms] == [
        (key, "true", 1),
        (key, "false", 5),
    ]


def test_a_cluster_with_eligible_leaders_has_a_least_isr_for_all(cluster: Cluster) -> None:
    cluster.create((0,))
    _, found = describe(cluster, TOPIC, cluster.topic, "min.insync.replicas")
    assert (found["min.insync.replicas"].value, found["min.insync.replicas"].config_source) == ("1", 3)


@pytest.mark.parametrize(("kind", "name", "code", "text"), [
    (TOPIC, "nope", 3, ""),
    (TOPIC, "a/b", 17, ("Topic name is invalid: 'a/b' contains one or more characters other than ASCII alphanumerics, "
                       "'.', '_' and '-'")),
    (BROKER, "2", 42, "Unexpected broker id, expected 0 or empty string, but received 2"),
    (BROKER, "x", 42, "Broker id must be an integer, but it is: x"),
])  # fmt: skip
def test_what_cannot_be_told_is_refused(cluster: Cluster, kind: int, name: str, code: int, text: str) -> None:
    assert describe(cluster, kind, name) == ((code, text), {})


def test_a_kind_of_resource_that_nobody_knows_fails_the_whole_request(cluster: Cluster) -> None:
    cluster.create((0,))
    asked = [
        {"resource_type": kind, "resource_name": cluster.topic, "configuration_keys": None}
        for kind in (TOPIC, NONSENSE)
    ]
    answer = cluster.ask(api.DESCRIBE_CONFIGS, 4, resources=asked)
    text = error_code(42).text
    assert sorted((one.error_code, one.error_message, one.resource_type, one.configs) for one in answer.results) == [
        (42, text, TOPIC, []),
        (42, text, NONSENSE, []),
    ]


def test_a_broker_tells_its_own_settings(cluster: Cluster) -> None:
    outcome, found = describe(cluster, BROKER, "1", node=1)
    assert outcome == (0, "")
    assert (found["node.id"].value, found["node.id"].read_only) == ("1", True)
    assert found["broker.rack"].value == "b"
    assert RATE not in found
    assert not found["log.retention.ms"].read_only


# Changing topics


@both_releases
def test_a_topic_is_changed_key_by_key(cluster: Cluster) -> None:
    cluster.create((0,), retention_ms="5000")
    assert change_topic(cluster, (SET, "retention.bytes", "7"), (SET, LISTS, "0:0")) == DONE
    becomes(cluster, retention_ms="5000", retention_bytes="7", leader_replication_throttled_replicas="0:0")
    assert change_topic(cluster, (DELETE, "retention.ms", None), (APPEND, LISTS, "0:1")) == DONE
    becomes(cluster, retention_bytes="7", leader_replication_throttled_replicas="0:0,0:1")
    assert change_topic(cluster, (SUBTRACT, LISTS, "0:0"), (DELETE, "segment.ms", None)) == DONE
    becomes(cluster, retention_bytes="7", leader_replication_throttled_replicas="0:1")


@pytest.mark.parametrize(("before", "step", "appended", "after"), [
    ("0:0", APPEND, "0:0", "0:0"),
    ("0:0", APPEND, "0:1,0:2", "0:0,0:1,0:2"),
    ("0:0,0:1,0:2", SUBTRACT, "0:1,0:9", "0:0,0:2"),
    ("0:0", SUBTRACT, "0:0", ""),
    ("", APPEND, "0:1", "0:1"),
])  # fmt: skip
def test_lists_grow_and_shrink(cluster: Cluster, before: str, step: int, appended: str, after: str) -> None:
    cluster.create((0,), leader_replication_throttled_replicas=before)
    assert change_topic(cluster, (step, LISTS, appended)) == DONE
    becomes(cluster, leader_replication_throttled_replicas=after)


@pytest.mark.parametrize("fine", ["", "*", "0:0", "0:1,,1:2", ","])
def test_odd_lists_of_throttled_replicas_are_taken(cluster: Cluster, fine: str) -> None:
    cluster.create((0,))
    assert change_topic(cluster, (SET, LISTS, fine)) == DONE


@pytest.mark.parametrize(("step", "code", "text"), [
    ((SET, "zzz", "1"), 40, "Unknown topic config name: zzz"),
    ((SET, "retention.ms", "x"), 40, "Invalid value x for configuration retention.ms: Not a number of type LONG"),
    ((SET, "retention.ms", "-2"), 40, "Invalid value -2 for configuration retention.ms: Value must be at least -1"),
    ((SET, LISTS, "0-1"), 40, BAD_LIST.format(value="0-1")),
    ((SET, LISTS, "*,0:1"), 40, BAD_LIST.format(value="*, 0:1")),
    ((SET, "retention.ms", None), 42, "Null value not supported for : retention.ms"),
    ((APPEND, LISTS, None), 42, f"Null value not supported for : {LISTS}"),
    ((APPEND, "retention.ms", "1"), 40, "Can't APPEND to key retention.ms because its type is not LIST."),
    ((SUBTRACT, "retention.ms", "1"), 40, "Can't SUBTRACT to key retention.ms because its type is not LIST."),
    ((SET, "unclean.leader.election.enable", "perhaps"), 40,
     ("Invalid value perhaps for configuration unclean.leader.election.enable: Expected value to be either true or "
     "false")),
])  # fmt: skip
def test_an_impossible_step_refuses_the_steps_beside_it(cluster: Cluster, step: Step, code: int, text: str) -> None:
    cluster.create((0,))
    assert change_topic(cluster, (SET, "retention.bytes", "5"), step) == (code, text)
    assert value(cluster, "retention.bytes") == "-1"


def test_an_unknown_topic_is_not_changed(cluster: Cluster) -> None:
    entry = resource(TOPIC, "nope", (SET, "retention.ms", "1"))
    assert change(cluster, entry) == [("nope", Answered(3, "The topic 'nope' does not exist."))]


def test_the_same_key_twice_is_refused(cluster: Cluster) -> None:
    cluster.create((0,))
    twice = ((SET, "retention.ms", "1"), (SET, "retention.ms", "2"))
    assert change_topic(cluster, *twice) == (42, "Error due to duplicate config keys")


def test_the_same_topic_twice_is_refused_in_both_places(cluster: Cluster) -> None:
    cluster.create((0,))
    entry = resource(TOPIC, cluster.topic, (SET, "retention.ms", "1"))
    assert (
        change(cluster, entry, entry) == [(cluster.topic, Answered(42, "Each resource must appear at most once."))] * 2
    )
    assert change(cluster, entry, entry, node=CONTROLLER) == [(cluster.topic, Answered(42, "Duplicate resource."))]


def test_an_operation_that_nobody_knows_fails_without_words(cluster: Cluster) -> None:
    cluster.create((0,))
    assert change_topic(cluster, (UNKNOWN, "retention.ms", "1")) == (-1, None)


@pytest.mark.parametrize(("node", "code", "text"), [
    (0, 42, "Unknown resource type 77"),
    (CONTROLLER, 35, "Unknown resource type 77."),
])  # fmt: skip
def test_a_kind_of_resource_that_nobody_knows_is_not_changed(cluster: Cluster, node: int, code: int, text: str) -> None:
    assert change(cluster, resource(NONSENSE, "x", (SET, "retention.ms", "1")), node=node) == [("x", (code, text))]


def test_trying_out_a_change_changes_nothing(cluster: Cluster) -> None:
    cluster.create((0,))
    assert change_topic(cluster, (SET, "retention.ms", "5"), validate_only=True) == DONE
    assert change_topic(cluster, (SET, "zzz", "5"), validate_only=True) == (40, "Unknown topic config name: zzz")
    assert change_topic(cluster, (SET, "retention.bytes", "6")) == DONE
    becomes(cluster, retention_bytes="6")


def test_a_value_may_have_32767_bytes_and_a_list_may_not_grow_beyond(cluster: Cluster) -> None:
    cluster.create((0,))
    longest = ",".join(["100:100"] * 4_095 + ["1:100"])
    assert len(longest) == 32_765
    assert change_topic(cluster, (SET, LISTS, longest)) == DONE
    text = "The configuration value cannot be added because it exceeds the maximum value size of 32767 bytes."
    assert change_topic(cluster, (APPEND, LISTS, "200:200")) == (40, text)
    with pytest.raises(OutcomeUnknown):
        change_topic(cluster, (SET, LISTS, f"{longest},1:1"))


# Changing brokers


@both_releases
def test_a_broker_takes_its_own_changes_only(cluster: Cluster) -> None:
    assert change(cluster, resource(BROKER, "1", (SET, RATE, "1000")), node=1) == [("1", DONE)]
    cluster.until(lambda: describe(cluster, BROKER, "1", RATE, node=1)[1].keys() == {RATE}, "the rate shown")
    assert change(cluster, resource(BROKER, "1", (DELETE, RATE, None)), node=1) == [("1", DONE)]
    cluster.until(lambda: not describe(cluster, BROKER, "1", RATE, node=1)[1], "no rate shown")
    assert change(cluster, resource(BROKER, "2", (SET, RATE, "1000")), node=1) == [
        ("2", Answered(42, "Unexpected broker id, expected 1, but received 2"))
    ]


@both_releases
def test_the_controller_takes_the_changes_of_every_broker(cluster: Cluster) -> None:
    entries = [resource(BROKER, str(each), (DELETE, RATE, None)) for each in (*cluster.brokers, CONTROLLER)]
    assert change(cluster, *entries, node=CONTROLLER) == sorted(
        (str(each), DONE) for each in (*cluster.brokers, CONTROLLER)
    )
    assert change(cluster, resource(BROKER, "9", (SET, RATE, "1")), node=CONTROLLER) == [
        ("9", Answered(102, "No node with id 9 found."))
    ]


@pytest.mark.parametrize(("name", "step", "code", "text"), [
    ("0", (SET, RATE, "-1"), 42, f"Invalid value -1 for configuration {RATE}: Value must be at least 0"),
    ("0", (SET, RATE, "abc"), 42, f"Invalid value abc for configuration {RATE}: Not a number of type LONG"),
    ("0", (SET, RATE, None), 42, f"Null value not supported for : {RATE}"),
    ("0", (APPEND, RATE, "1"), 40, f"Unknown config name: {RATE}"),
    ("0", (SET, "log.dirs", "/x"), 42, "Cannot update these configs dynamically: [log.dirs]"),
    ("x", (SET, RATE, "1"), 42, "Node id must be an integer, but it is: x"),
    ("0", (UNKNOWN, RATE, "1"), 42, "Unknown operations type 9"),
    ("", (SET, "cordoned.log.dirs", "*"), 42,
     "Cannot update these configs at default cluster level, broker id must be specified: [cordoned.log.dirs]"),
    ("0", (SET, "cordoned.log.dirs", "/nope"), 42,
     ("requirement failed: All entries in cordoned.log.dirs must be present in log.dirs or log.dir. Missing entries : "
     "/nope")),
    ("0", (SET, "cordoned.log.dirs", "*,/nope"), 42,
     "requirement failed: When cordoned.log.dirs is set to *, it must not contain other values"),
    ("0", (SET, "min.insync.replicas", "2"), 40,
     "Broker-level min.insync.replicas cannot be altered while ELR is enabled."),
    ("", (DELETE, "min.insync.replicas", None), 40,
     "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."),
])  # fmt: skip
def test_changes_of_a_broker_that_cannot_be_are_refused(
    cluster: Cluster, name: str, step: Step, code: int, text: str
) -> None:
    assert change(cluster, resource(BROKER, name, step)) == [(name, (code, text))]


def test_a_controller_opens_the_directories_of_a_broker_and_closes_none(cluster: Cluster) -> None:
    key, both = "cordoned.log.dirs", ",".join(cluster.backend.log_dirs(3))
    too_much = Answered(
        40,
        "When updating cordoned.log.dirs via controllers,  the new value must be a subset of the current configuration "
        "value.",
    )
    assert change(cluster, resource(BROKER, "3", (SET, key, "*")), node=CONTROLLER) == [("3", too_much)]
    assert change(cluster, resource(BROKER, "", (SET, key, "*")), node=CONTROLLER) == [("", too_much)]
    assert change(cluster, resource(BROKER, "3", (SET, key, both)), node=3) == [("3", DONE)]
    assert change(cluster, resource(BROKER, "3", (SET, key, "*")), node=CONTROLLER) == [("3", too_much)]
    assert change(cluster, resource(BROKER, "3", (DELETE, key, None)), node=CONTROLLER) == [("3", DONE)]
    cluster.until(lambda: describe(cluster, BROKER, "3", key, node=3)[1][key].value == "", "nothing is cordoned")


@pytest.mark.releases("3.9")
def test_a_release_without_cordons_does_not_tell_the_setting(cluster: Cluster) -> None:
    assert "cordoned.log.dirs" not in describe(cluster, BROKER, "0", "cordoned.log.dirs", "log.retention.ms")[1]


def test_trying_out_a_change_of_a_broker_changes_nothing(cluster: Cluster) -> None:
    assert change(cluster, resource(BROKER, "0", (SET, RATE, "5")), validate_only=True) == [("0", DONE)]
    assert not describe(cluster, BROKER, "0", RATE)[1]


# The older way


@both_releases
def test_the_older_way_replaces_everything(cluster: Cluster) -> None:
    cluster.create((0,), retention_ms="5000", retention_bytes="7")
    assert replace(cluster, ("retention.ms", "6000"), ("segment.ms", "9")) == DONE
    becomes(cluster, retention_ms="6000", segment_ms="9")
    assert replace(cluster) == DONE
    becomes(cluster)


@pytest.mark.parametrize(("setting", "code", "text"), [
    (("zzz", "1"), 40, "Unknown topic config name: zzz"),
    (("retention.ms", "x"), 40, "Invalid value x for configuration retention.ms: Not a number of type LONG"),
    (("retention.ms", None), 42, "Null value not supported for : retention.ms"),
])  # fmt: skip
def test_the_older_way_refuses_alike(cluster: Cluster, setting: tuple[str, str | None], code: int, text: str) -> None:
    cluster.create((0,), retention_bytes="7")
    assert replace(cluster, setting) == (code, text)
    becomes(cluster, retention_bytes="7")


def test_the_older_way_can_be_tried_out(cluster: Cluster) -> None:
    cluster.create((0,), retention_bytes="7")
    assert replace(cluster, ("retention.ms", "1"), validate_only=True) == DONE
    becomes(cluster, retention_bytes="7")
