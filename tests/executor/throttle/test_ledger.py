from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kreassign.executor.throttle_ledger import (
    ConfigKey,
    ConfigOverride,
    ConfigValue,
    Flows,
    Restoration,
    brokers_of,
    changes,
    changes_to_before,
    changes_to_ours,
    command_to_restore,
    differing,
    entries_to_drop,
    flows,
    keys_to_change,
    log_dir_keys,
    restoration,
    throttle_keys,
    wanted_lists,
    wanted_rates,
)
from kreassign.executor.throttle_rates import BrokerRate, ThrottleRates
from kreassign.model import ConfigChange, ConfigOperation, ConfigResource, Reassignment, TopicPartition
from kreassign.model.throttle import (
    FOLLOWER_THROTTLED_RATE,
    FOLLOWER_THROTTLED_REPLICAS,
    LEADER_THROTTLED_RATE,
    LEADER_THROTTLED_REPLICAS,
    LOG_DIR_RATE,
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


def list_overrides(moves: Flows, **before: str | None) -> tuple[ConfigOverride, ...]:
    """What listing these flows changes, given the lists that are there."""
    known = {key: before[name] for key, name in ((LEADERS, "leaders"), (FOLLOWERS, "followers")) if name in before}
    return changes(wanted_lists(moves, known), known, {})


def test_a_broker_gets_its_own_rate_and_one_without_a_limit_keeps_what_it_had() -> None:
    rates = ThrottleRates(100, (BrokerRate(1, 7), BrokerRate(3, None)))
    before = {sending(1): None, sending(2): "5", receiving(3): "9", LEADERS: None}
    assert wanted_rates(before, rates) == {sending(1): "7", sending(2): "100", receiving(3): "9"}


def rate_overrides(
    rate: int | None, before: dict[ConfigKey, str | None], *pending_restores: ConfigOverride
) -> tuple[ConfigOverride, ...]:
    return changes(
        wanted_rates(before, ThrottleRates(rate)), before, {override.key: override for override in pending_restores}
    )


def test_senders_receivers_and_topics_of_a_move_get_one_setting_each_side() -> None:
    assert set(keys_to_change(MOVE, (1, 2, 3, 4))) == {LEADERS, FOLLOWERS, sending(1), sending(2), receiving(3)}


def test_a_broker_that_is_down_gets_no_rate() -> None:
    assert set(keys_to_change(MOVE, (2, 3))) == {LEADERS, FOLLOWERS, sending(2), receiving(3)}
    assert set(keys_to_change(MOVE, (1, 2))) == {LEADERS, FOLLOWERS, sending(1), sending(2)}


def test_a_setting_back_at_its_value_from_before_is_open_while_an_earlier_value_of_ours_may_be_there() -> None:
    override = ConfigOverride(sending(1), "5", "5", unconfirmed=("100",))
    assert override.is_open
    assert not override.confirmed().is_open


def test_a_change_that_copies_nothing_is_not_throttled() -> None:
    assert keys_to_change(flows({T0: Reassignment((1, 2, 3), (3, 1))}), (1, 2, 3)) == ()


def test_only_the_replicas_that_move_are_listed_sorted_as_text() -> None:
    moves = flows({T0: Reassignment((1, 2), (2, 3)), T10: Reassignment((1,), (2,))})
    found = {override.key: override.value for override in list_overrides(moves, leaders=None, followers=None)}
    assert found == {LEADERS: "0:1,0:2,10:1", FOLLOWERS: "0:3,10:2"}


def test_a_list_that_names_our_replicas_already_is_left_alone() -> None:
    assert list_overrides(MOVE, followers="7:4, 0:3") == ()
    assert list_overrides(MOVE, followers="*") == ()


def test_a_list_of_others_is_extended_and_remembered() -> None:
    assert list_overrides(MOVE, followers="7:4") == (ConfigOverride(FOLLOWERS, "7:4", "0:3,7:4"),)
    assert list_overrides(MOVE, followers="") == (ConfigOverride(FOLLOWERS, "", "0:3"),)


def test_a_rate_of_others_is_replaced_and_remembered_and_one_like_ours_left_alone() -> None:
    present = {sending(1): "9", sending(2): "5", receiving(3): None}
    assert rate_overrides(5, present) == (ConfigOverride(sending(1), "9", "5"), ConfigOverride(receiving(3), None, "5"))


def test_a_rate_that_changes_during_the_run_keeps_the_value_before_it_and_remembers_ours() -> None:
    known, first = {sending(1): "9"}, ConfigOverride(sending(1), "9", "5")
    assert rate_overrides(5, known, first) == ()
    assert rate_overrides(6, known, first) == (ConfigOverride(sending(1), "9", "6", ("5",)),)
    assert rate_overrides(None, known, first) == (ConfigOverride(sending(1), "9", "9", ("5",)),)


def test_a_list_is_as_before_once_nothing_copies() -> None:
    known = {FOLLOWERS: "7:4"}
    pending_restores = {FOLLOWERS: ConfigOverride(FOLLOWERS, "7:4", "0:3,7:4")}
    assert changes(wanted_lists({}, known), known, pending_restores) == (
        ConfigOverride(FOLLOWERS, "7:4", "7:4", ("0:3,7:4",)),
    )


def test_a_value_of_ours_whose_successor_was_perhaps_never_written_is_not_taken_for_someone_elses() -> None:
    override = ConfigOverride(sending(1), "9", "6", ("5",))
    assert restoration([override], [ConfigValue(sending(1), "5")]).changes == (override,)
    assert restoration([override.confirmed()], [ConfigValue(sending(1), "5")]).foreign == (
        ConfigValue(sending(1), "5"),
    )


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


def test_of_a_list_only_our_own_entries_are_written_and_it_is_deleted_only_if_there_was_none() -> None:
    topic, name = ConfigResource.topic("t"), FOLLOWER_THROTTLED_REPLICAS
    beside, alone = ConfigOverride(FOLLOWERS, "7:4", "0:3,7:4"), ConfigOverride(FOLLOWERS, None, "0:3")
    assert changes_to_ours([beside]) == {topic: [ConfigChange.append(name, "0:3")]}
    assert changes_to_before([beside]) == {topic: [ConfigChange.subtract(name, "0:3")]}
    assert changes_to_before([alone]) == {topic: [ConfigChange.delete(name)]}
    assert changes_to_before([alone], shared=[FOLLOWERS]) == {topic: [ConfigChange.subtract(name, "0:3")]}


def test_a_list_that_others_replaced_is_never_deleted() -> None:
    alone, theirs = ConfigOverride(FOLLOWERS, None, "0:3"), ConfigValue(FOLLOWERS, "7:4")
    assert restoration([alone], [theirs]) == Restoration((), (FOLLOWERS,), (), (FOLLOWERS,))


def test_an_entry_that_caught_up_is_taken_out_after_the_next_one_is_in() -> None:
    topic, name = ConfigResource.topic("t"), FOLLOWER_THROTTLED_REPLICAS
    changed = ConfigOverride(FOLLOWERS, "7:4", "1:3,7:4", ("0:3,7:4",))
    assert changes_to_ours([changed]) == {topic: [ConfigChange.append(name, "1:3")]}
    assert entries_to_drop([changed]) == {topic: [ConfigChange.subtract(name, "0:3")]}
    emptied = ConfigOverride(FOLLOWERS, None, None, ("0:3",))
    assert changes_to_ours([emptied]) == {}
    assert entries_to_drop([emptied]) == {topic: [ConfigChange.subtract(name, "0:3")]}
    assert entries_to_drop([ConfigOverride(sending(1), "9", "6", ("5",))]) == {}


@pytest.mark.parametrize(
    ("value", "is_in_force", "is_restored"),
    [
        ("0:3", True, False),
        ("0:3,8:8", True, False),
        ("8:8", False, True),
        ("", False, False),
        (None, False, True),
        ("*", False, False),
    ],
)
def test_a_list_is_in_force_with_all_our_entries_and_restored_without_any(
    value: str | None, is_in_force: bool, is_restored: bool
) -> None:
    override = ConfigOverride(FOLLOWERS, None, "0:3")
    assert (override.is_in_force(value), override.is_restored(value)) == (is_in_force, is_restored)
    assert differing([override], [ConfigValue(FOLLOWERS, value)]) == (
        () if is_in_force else (ConfigValue(FOLLOWERS, value),)
    )


def test_a_list_in_which_others_have_entries_too_is_told_as_shared() -> None:
    override = ConfigOverride(FOLLOWERS, None, "0:3")
    assert restoration([override], [ConfigValue(FOLLOWERS, "0:3")]) == Restoration((override,), (), ())
    assert restoration([override], [ConfigValue(FOLLOWERS, "0:3,8:8")]) == Restoration(
        (override,), (), (), shared=(FOLLOWERS,)
    )
    theirs = ConfigValue(FOLLOWERS, "*")
    assert restoration([override], [theirs]).foreign == (theirs,)


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
    found = restoration([last], [ConfigValue(FOLLOWERS, ",".join(present))])
    left = applied(present, changes_to_before(found.changes, found.shared))
    assert left >= before
    assert left >= theirs - set().union(*values)
    assert left - before <= theirs


def applied(present: set[str], calls: Mapping[ConfigResource, list[ConfigChange]]) -> set[str]:
    """What a list is after these changes, as Kafka makes them."""
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


def test_restoring_writes_what_is_ours_settles_what_is_back_and_leaves_what_others_set() -> None:
    value, back, foreign, unread = (ConfigOverride(sending(broker), "9", "5") for broker in range(4))
    now = [ConfigValue(value.key, "5"), ConfigValue(back.key, "9"), ConfigValue(foreign.key, "77")]
    assert restoration((value, back, foreign, unread), now) == Restoration(
        changes=(value,), restored=(back.key,), foreign=(ConfigValue(foreign.key, "77"),)
    )


def test_a_list_that_kafkas_own_tool_cleared_meanwhile_counts_as_restored_if_there_was_none() -> None:
    assert restoration([ConfigOverride(LEADERS, None, "0:1")], [ConfigValue(LEADERS, None)]).restored == (LEADERS,)


def test_settings_read_as_what_is_set_and_what_was() -> None:
    values = [ConfigValue(sending(1), value) for value in ("5", None)]
    overrides = [ConfigOverride(sending(1), *values) for values in ((None, "5"), ("9", None), ("9", "5"))]
    approve([text for each in (*values, *overrides) for text in (each, each.then)], "settings-in-words")


def test_a_wildcard_that_was_there_before_does_not_make_a_list_somebody_elses() -> None:
    assert ConfigOverride(LEADERS, "*", "0:1,*").is_ours("*,0:1")
    assert not ConfigOverride(LEADERS, None, "0:1").is_ours("*,0:1")


def test_a_wildcard_that_was_there_before_may_stay_when_a_list_is_restored() -> None:
    assert ConfigOverride(LEADERS, "*", "0:1,*").is_without_ours("*")
    assert not ConfigOverride(LEADERS, None, "0:1").is_without_ours("*")


def test_a_list_is_in_force_though_what_was_there_before_is_gone() -> None:
    assert ConfigOverride(LEADERS, "7:4", "0:1,7:4").is_in_force("0:1")


def test_an_override_is_confirmed_as_it_is() -> None:
    settled = ConfigOverride(sending(1), "5", "7")
    assert settled.confirmed() == settled
    assert ConfigOverride(sending(1), "5", "7", ("6",)).confirmed() == settled


def test_a_list_with_the_same_entries_in_another_order_keeps_its_text() -> None:
    assert wanted_lists(MOVE, {FOLLOWERS: " 0:3"}) == {FOLLOWERS: " 0:3"}


def test_copies_between_directories_have_a_rate_at_each_broker_of_theirs_that_is_live() -> None:
    assert log_dir_keys((3, 1, 2), (2, 3, 4)) == tuple(
        ConfigKey(ConfigResource.broker(broker), LOG_DIR_RATE) for broker in (2, 3)
    )


def test_every_setting_of_a_throttle_is_two_lists_of_each_topic_and_three_rates_of_each_broker() -> None:
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
def test_every_value_of_ours_may_be_there_until_the_last_one_is_known_to_be(
    override: ConfigOverride, values: tuple[str, ...]
) -> None:
    assert override.possible_values == values
    for value in (*values, "9", "77", None):
        assert override.is_ours(value) == (value in values)
        assert override.is_in_force(value) == (value in {override.value, *override.unconfirmed})
        assert override.is_restored(value) == (value == "9")


@pytest.mark.parametrize(("before", "value", "is_restored", "is_without_ours"), [
    (None, "", False, True),
    ("", "", True, True),
    (None, None, True, True),
    ("7:4", "7:4", True, True),
    ("7:4", "0:3,7:4", False, False),
    ("0:3", "0:3", True, True),
    ("*", "*", True, True),
    ("*", "*,8:8", True, True),
])  # fmt: skip
def test_an_empty_list_is_not_yet_one_that_was_not_there(
    before: str | None, value: str | None, is_restored: bool, is_without_ours: bool
) -> None:
    ours = ConfigOverride(FOLLOWERS, before, "0:3", ("1:3",))
    assert (ours.is_restored(value), ours.is_without_ours(value)) == (is_restored, is_without_ours)


def test_a_list_that_had_a_wildcard_before_is_restored_with_it_and_without_our_entries() -> None:
    override = ConfigOverride(LEADERS, "*", "*,0:1")
    assert (override.is_restored("*"), override.is_restored("*,0:1"), override.is_restored("0:1")) == (
        True,
        False,
        False,
    )
    assert override.is_restored("8:8")
    assert not ConfigOverride(LEADERS, "7:4", "0:1,7:4").is_restored("*,7:4")


def test_an_empty_list_is_what_was_there_only_if_there_was_one() -> None:
    assert not ConfigOverride(LEADERS, None, "0:1").is_restored("")
    assert ConfigOverride(LEADERS, "", "0:1").is_restored("")
    assert ConfigOverride(sending(1), "", "5").is_restored("")
    words = (*OF_TOPIC_T, "--add-config", f"{LIST}=[]")
    assert command_to_restore(ConfigOverride(LEADERS, "", "0:1"), "0:1") == ("kafka-configs", "--alter", *words)


def test_every_value_of_ours_that_may_be_there_is_named_once() -> None:
    def possible(value: str | None, *unconfirmed: str) -> tuple[str, ...]:
        return ConfigOverride(sending(1), "9", value, unconfirmed).possible_values

    assert (possible("5"), possible("5", "6"), possible("5", "6", "5"), possible(None, "6"), possible(None)) == (
        ("5",), ("6", "5"), ("6", "5"), ("6",), (),
    )  # fmt: skip


def test_any_value_of_ours_is_in_force_while_nobody_knows_which_was_written() -> None:
    rate = ConfigOverride(sending(1), "9", "6", ("5",))
    assert [rate.is_in_force(value) for value in ("6", "5", "9", None)] == [True, True, False, False]
    listed = ConfigOverride(LEADERS, "7:4", "1:3,7:4", ("0:3,7:4",))
    assert [listed.is_in_force(value) for value in ("0:3", "1:3", "7:4", "2:3")] == [True, True, False, False]


def test_every_broker_that_sends_or_receives_is_one_of_the_moves() -> None:
    assert brokers_of(MOVE) == {1, 2, 3}
    assert brokers_of({}) == frozenset()


def test_what_is_unset_is_set_again_though_it_is_as_wanted() -> None:
    known = {sending(1): "9", sending(2): "9"}
    pending = {key: ConfigOverride(key, "9", "5") for key in known}
    wanted = wanted_rates(known, ThrottleRates(5))
    assert changes(wanted, known, pending) == ()
    assert changes(wanted, known, pending, [ConfigResource.broker(2)]) == (
        ConfigOverride(sending(2), "9", "5", ("5",)),
    )
    assert changes({sending(3): "9"}, {sending(3): "9"}, {}, [ConfigResource.broker(3)]) == ()
