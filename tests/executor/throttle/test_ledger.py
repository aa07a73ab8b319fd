from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kreassign.executor.throttle_ledger import (
    ConfigKey,
    ConfigOverride,
    ConfigValue,
    changes_to_before,
    changes_to_ours,
    command_to_restore,
    differing,
    entries_to_drop,
    flows,
    keys_to_change,
    log_dir_keys,
    throttle_keys,
    wanted_lists,
    wanted_rates,
)
from kreassign.model import ConfigChange, ConfigOperation, ConfigResource, Reassignment, TopicPartition
from kreassign.model.throttle import (
    FOLLOWER_THROTTLED_RATE,
    FOLLOWER_THROTTLED_REPLICAS,
    LEADER_THROTTLED_RATE,
    LEADER_THROTTLED_REPLICAS,
    LOG_DIR_RATE,
    BrokerRate,
    ThrottleRates,
)
from tests.approved import approve

T0, T10 = TopicPartition("t", 0), TopicPartition("t", 10)
LEADERS = ConfigKey(ConfigResource.topic("t"), LEADER_THROTTLED_REPLICAS)
FOLLOWERS = ConfigKey(ConfigResource.topic("t"), FOLLOWER_THROTTLED_REPLICAS)
MOVE = flows({T0: Reassignment((1, 2), (2, 3))})


def sending(broker: int) -> ConfigKey:
    return ConfigKey(ConfigResource.broker(broker), LEADER_THROTTLED_RATE)


def receiving(broker: int) -> ConfigKey:
    return ConfigKey(ConfigResource.broker(broker), FOLLOWER_THROTTLED_RATE)


def test_a_broker_gets_its_own_rate_or_keeps_its_former_one() -> None:
    rates = ThrottleRates(100, (BrokerRate(1, 7), BrokerRate(3, None)))
    before = {sending(1): None, sending(2): "5", receiving(3): "9", LEADERS: None}
    assert wanted_rates(before, rates) == {sending(1): "7", sending(2): "100", receiving(3): "9"}


def test_senders_receivers_and_topics_of_a_move_get_one_setting_each_side() -> None:
    assert set(keys_to_change(MOVE, (1, 2, 3, 4))) == {LEADERS, FOLLOWERS, sending(1), sending(2), receiving(3)}


def test_a_broker_that_is_down_gets_no_rate() -> None:
    assert set(keys_to_change(MOVE, (2, 3))) == {LEADERS, FOLLOWERS, sending(2), receiving(3)}
    assert set(keys_to_change(MOVE, (1, 2))) == {LEADERS, FOLLOWERS, sending(1), sending(2)}


def test_only_the_replicas_that_move_are_listed_sorted_as_text() -> None:
    moves = flows({T0: Reassignment((1, 2), (2, 3)), T10: Reassignment((1,), (2,))})
    assert wanted_lists(moves, {LEADERS: None, FOLLOWERS: None}) == {LEADERS: "0:1,0:2,10:1", FOLLOWERS: "0:3,10:2"}


@pytest.mark.parametrize(("before", "wanted"), [
    ("7:4, 0:3", "7:4, 0:3"), (" 0:3", " 0:3"), ("*", "*,0:3"), ("7:4", "0:3,7:4"), ("", "0:3"),
])  # fmt: skip
def test_a_list_of_others_is_extended_unless_it_names_our_replicas(before: str, wanted: str) -> None:
    assert wanted_lists(MOVE, {FOLLOWERS: before}) == {FOLLOWERS: wanted}
    assert wanted_lists({}, {FOLLOWERS: before}) == {FOLLOWERS: before}


def test_a_change_that_copies_nothing_is_not_throttled() -> None:
    assert keys_to_change(flows({T0: Reassignment((1, 2, 3), (3, 1))}), (1, 2, 3)) == ()


def test_the_calls_set_our_values_and_later_the_old_ones_or_none() -> None:
    pending_restores = (
        ConfigOverride(sending(1), "9", "5"),
        ConfigOverride(receiving(1), None, "5"),
        ConfigOverride(FOLLOWERS, "", "0:3"),
    )
    broker, topic = ConfigResource.broker(1), ConfigResource.topic("t")
    assert changes_to_ours(pending_restores) == {
        broker: [ConfigChange.set(LEADER_THROTTLED_RATE, "5"), ConfigChange.set(FOLLOWER_THROTTLED_RATE, "5")],
        topic: [ConfigChange.append(FOLLOWER_THROTTLED_REPLICAS, "0:3")],
    }
    assert changes_to_before(pending_restores) == {
        broker: [ConfigChange.set(LEADER_THROTTLED_RATE, "9"), ConfigChange.delete(FOLLOWER_THROTTLED_RATE)],
        topic: [ConfigChange.subtract(FOLLOWER_THROTTLED_REPLICAS, "0:3")],
    }


def test_only_our_list_entries_are_written_and_empty_lists_deleted() -> None:
    topic, name = ConfigResource.topic("t"), FOLLOWER_THROTTLED_REPLICAS
    beside, alone = ConfigOverride(FOLLOWERS, "7:4", "0:3,7:4"), ConfigOverride(FOLLOWERS, None, "0:3")
    assert changes_to_ours([beside]) == {topic: [ConfigChange.append(name, "0:3")]}
    assert changes_to_before([beside]) == {topic: [ConfigChange.subtract(name, "0:3")]}
    assert changes_to_before([alone]) == {topic: [ConfigChange.delete(name)]}
    assert changes_to_before([alone], shared=[FOLLOWERS]) == {topic: [ConfigChange.subtract(name, "0:3")]}


def test_an_adopted_wildcard_is_never_written() -> None:
    """It is there, or others have removed it since, and Kafka takes no entries beside it."""
    topic, name = ConfigResource.topic("t"), FOLLOWER_THROTTLED_REPLICAS
    assert changes_to_ours([ConfigOverride(FOLLOWERS, None, "*")]) == {}
    assert changes_to_ours([ConfigOverride(FOLLOWERS, None, "*,0:3")]) == {topic: [ConfigChange.append(name, "0:3")]}


def test_an_entry_that_caught_up_is_taken_out_after_the_next_one_is_in() -> None:
    topic, name = ConfigResource.topic("t"), FOLLOWER_THROTTLED_REPLICAS
    changed = ConfigOverride(FOLLOWERS, "7:4", "1:3,7:4", ("0:3,7:4",))
    assert changes_to_ours([changed]) == {topic: [ConfigChange.append(name, "1:3")]}
    assert entries_to_drop([changed]) == {topic: [ConfigChange.subtract(name, "0:3")]}
    emptied = ConfigOverride(FOLLOWERS, None, None, ("0:3",))
    assert changes_to_ours([emptied]) == {}
    assert entries_to_drop([emptied]) == {topic: [ConfigChange.subtract(name, "0:3")]}
    assert entries_to_drop([ConfigOverride(sending(1), "9", "6", ("5",))]) == {}


ENTRIES = st.sets(st.tuples(st.integers(0, 4), st.integers(0, 4)).map(lambda pair: f"{pair[0]}:{pair[1]}"))


@given(before=ENTRIES, values=st.lists(ENTRIES, min_size=1, max_size=5), theirs=ENTRIES)
def test_whatever_others_add_to_a_list_survives_every_change_of_ours(
    before: set[str], values: list[set[str]], theirs: set[str]
) -> None:
    present, unconfirmed = set(before), tuple[str, ...]()
    for number, ours in enumerate(values):
        override = ConfigOverride(FOLLOWERS, ",".join(before) or None, ",".join(before | ours), unconfirmed)
        for calls in (changes_to_ours([override]), entries_to_drop([override])):
            present = applied(present, calls)
        assert before | ours <= present
        present |= theirs if number == 0 else set()
        unconfirmed = (*unconfirmed, override.value or "")
    last = ConfigOverride(FOLLOWERS, ",".join(before) or None, unconfirmed[-1], unconfirmed)
    is_restored = last.is_restored(",".join(present))
    shared = [FOLLOWERS] if present - last.our_items else []
    left = present if is_restored else applied(present, changes_to_before([last], shared))
    assert left >= before
    assert left >= theirs - set().union(*values)
    assert left - before <= theirs


def applied(present: set[str], calls: Mapping[ConfigResource, list[ConfigChange]]) -> set[str]:
    """Return the list after these changes, as Kafka makes them."""
    for change in (one for steps in calls.values() for one in steps):
        match change.operation:
            case ConfigOperation.DELETE:
                present = set()
            case ConfigOperation.APPEND:
                present = present | set((change.value or "").split(","))
            case ConfigOperation.SUBTRACT:
                present = present - set((change.value or "").split(","))
            case ConfigOperation.SET:
                raise AssertionError("a list is never written as a whole")
    return present


def test_settings_read_as_what_is_set_and_what_was() -> None:
    values = [ConfigValue(sending(1), value) for value in ("5", None)]
    overrides = [ConfigOverride(sending(1), *values) for values in ((None, "5"), ("9", None), ("9", "5"))]
    approve([text for each in (*values, *overrides) for text in (each, each.then)], "settings-in-words")


def test_directory_copies_have_a_rate_at_each_live_broker() -> None:
    assert log_dir_keys((3, 1, 2), (2, 3, 4)) == tuple(
        ConfigKey(ConfigResource.broker(broker), LOG_DIR_RATE) for broker in (2, 3)
    )


def test_a_throttle_is_two_lists_per_topic_and_three_rates_per_broker() -> None:
    broker = ConfigResource.broker(1)
    assert set(throttle_keys(["t"], [1])) == {
        LEADERS, FOLLOWERS, sending(1), receiving(1), ConfigKey(broker, LOG_DIR_RATE),
    }  # fmt: skip


RATE = "leader.replication.throttled.rate"
OF_BROKER_1 = ("--entity-type", "brokers", "--entity-name", "1")
LIST = "leader.replication.throttled.replicas"
OF_TOPIC_T = ("--entity-type", "topics", "--entity-name", "t")


@pytest.mark.parametrize(
    ("override", "present", "words"),
    [
        (ConfigOverride(sending(1), "9", "5"), "5", (*OF_BROKER_1, "--add-config", f"{RATE}=[9]")),
        (ConfigOverride(sending(1), None, "5"), "5", (*OF_BROKER_1, "--delete-config", RATE)),
        (ConfigOverride(LEADERS, None, "0:1"), "0:1", (*OF_TOPIC_T, "--delete-config", LIST)),
        # What others added stays, a wildcard that was not there does not, and what was there before is there again.
        (ConfigOverride(LEADERS, None, "0:1"), "9:9,0:1,*,8:8", (*OF_TOPIC_T, "--add-config", f"{LIST}=[8:8,9:9]")),
        (ConfigOverride(LEADERS, "", "0:1"), "0:1", (*OF_TOPIC_T, "--add-config", f"{LIST}=[]")),
        (ConfigOverride(LEADERS, "7:4", "0:1,7:4"), "0:1", (*OF_TOPIC_T, "--add-config", f"{LIST}=[7:4]")),
    ],
)
def test_an_operator_restores_a_setting_with_kafkas_own_tool(
    override: ConfigOverride, present: str, words: tuple[str, ...]
) -> None:
    assert command_to_restore(override, present) == ("kafka-configs", "--alter", *words)


@pytest.mark.parametrize(("override", "values"), [
    (ConfigOverride(sending(1), "9", "5"), ("5",)),
    (ConfigOverride(sending(1), "9", "5", ("6", "5")), ("6", "5")),
    (ConfigOverride(sending(1), "9", "5", ("6",)), ("6", "5")),
    (ConfigOverride(sending(1), "9", None, ("6",)), ("6",)),
    (ConfigOverride(sending(1), "9", None), ()),
])  # fmt: skip
def test_any_of_our_values_may_stand_until_the_last_is_confirmed(
    override: ConfigOverride, values: tuple[str, ...]
) -> None:
    assert override.possible_values == values
    for value in (*values, "9", "77", None):
        assert override.is_ours(value) == (value in values)
        assert override.is_in_force(value) == (value in {override.value, *override.unconfirmed})
        assert override.is_restored(value) == (value == "9")


ALONE, EMPTY = ConfigOverride(FOLLOWERS, None, "0:3"), ConfigOverride(FOLLOWERS, "", "0:3")
BESIDE, UNDER_ALL = ConfigOverride(FOLLOWERS, "7:4", "1:3,7:4", ("0:3,7:4",)), ConfigOverride(FOLLOWERS, "*", "*,0:3")
UNSURE = ConfigOverride(sending(1), "9", "6", ("5",))


@pytest.mark.parametrize(("override", "value", "found"), [
    (ALONE, "0:3", "in force, ours"),
    (ALONE, "0:3,8:8", "in force, ours"),
    (ALONE, "8:8", "ours, restored, without ours"),
    # An empty list is not yet one that was not there.
    (ALONE, "", "ours, without ours"),
    (ALONE, None, "ours, restored, without ours"),
    (ALONE, "*", "in force"),
    (EMPTY, "", "ours, restored, without ours"),
    (EMPTY, "0:3", "in force, ours"),
    # Any value of ours is in force while nobody knows which was written, also without what was there before.
    (BESIDE, "0:3", "in force, ours"),
    (BESIDE, "1:3", "in force, ours"),
    (BESIDE, "0:3,7:4", "in force, ours"),
    (BESIDE, "7:4", "ours, restored, without ours"),
    (BESIDE, "2:3", "ours, restored, without ours"),
    (BESIDE, "*", "in force"),
    # A wildcard that was there before is nobody's change.
    (UNDER_ALL, "*", "in force, ours, restored, without ours"),
    (UNDER_ALL, "*,0:3", "in force, ours"),
    (UNDER_ALL, "0:3", "in force, ours"),
    (UNSURE, "6", "in force, ours"),
    (UNSURE, "5", "in force, ours"),
    (UNSURE, "9", "restored, without ours"),
    (UNSURE, "7", ""),
    (UNSURE, None, ""),
])  # fmt: skip
def test_a_value_is_compared_with_the_old_one_and_ours(override: ConfigOverride, value: str | None, found: str) -> None:
    facts = {
        "in force": override.is_in_force(value),
        "ours": override.is_ours(value),
        "restored": override.is_restored(value),
        "without ours": override.is_without_ours(value),
    }
    assert ", ".join(name for name, is_so in facts.items() if is_so) == found
    present = ConfigValue(override.key, value)
    assert differing([override], [present]) == (() if facts["in force"] else (present,))


def test_a_confirmed_change_has_one_value() -> None:
    assert UNSURE.confirmed() == ConfigOverride(sending(1), "9", "6") == UNSURE.confirmed().confirmed()
    back = ConfigOverride(sending(1), "9", "9", ("6",))
    assert (back.is_open, back.confirmed().is_open) == (True, False)
