"""The tables of a setting: each state and event, and each value that is read."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kreassign.executor.state.setting import (
    OPEN,
    PROPAGATION_MS,
    RULES,
    Conclusion,
    Doubt,
    Seen,
    Setting,
    SettingEvent,
    SettingState,
    ThrottleLedger,
)
from kreassign.executor.throttle_ledger import ConfigKey, ConfigOverride, ConfigValue
from kreassign.model import ConfigResource
from tests.executor.state.played import FOLLOWERS, LEADER_0, LEADER_1

S, E = SettingState, SettingEvent
AS_SET, DOUBT, WRITE, RESTORED, THEIRS = Conclusion
ODD = ConfigValue(LEADER_0, "77")
RATE = ConfigOverride(LEADER_0, "9", "6", ("5",))
LIST = ConfigOverride(FOLLOWERS, None, "0:3")
BESIDE = ConfigOverride(FOLLOWERS, "7:4", "0:3,1:3,7:4")


def setting(override: ConfigOverride = RATE, state: SettingState = S.IN_FORCE) -> Setting:
    return Setting(override.key, state, override=override, given=frozenset({"4"}))


@pytest.mark.parametrize(("event", "intended", "in_force", "restoring"), [
    (E.BEGIN, S.INTENDED, S.INTENDED, S.INTENDED),
    (E.CHANGE, S.INTENDED, S.IN_FORCE, S.INTENDED),
    (E.CONFIRM, S.IN_FORCE, S.IN_FORCE, S.IN_FORCE),
    (E.UNWATCHED, S.INTENDED, S.INTENDED, S.RESTORING),
    (E.WRITE_BACK, S.RESTORING, S.RESTORING, S.RESTORING),
    (E.READ_BACK, S.RESTORED, S.IN_FORCE, S.RESTORED),
    (E.FOREIGN, S.THEIRS, S.THEIRS, S.THEIRS),
    (E.LEAVE, S.LEFT, S.LEFT, S.LEFT),
    (E.TOPIC_GONE, S.GONE, S.GONE, S.GONE),
    (E.CONTROLLER_TOOK, S.CARRIED, S.CARRIED, S.CARRIED),
    (E.FORGET, S.FORGOTTEN, S.FORGOTTEN, S.FORGOTTEN),
])  # fmt: skip
def test_an_event_leads_an_open_setting_to_its_next_state(
    event: SettingEvent, intended: SettingState, in_force: SettingState, restoring: SettingState
) -> None:
    for state, after in ((S.INTENDED, intended), (S.IN_FORCE, in_force), (S.RESTORING, restoring)):
        ended = replace(setting(state=state), doubt=Doubt(ODD, 0), is_due=True, is_unread=True).after(event)
        assert ended.state is after, state
        # Nothing is asked of, or doubted about, a setting that ended.
        assert (ended.doubt is not None, ended.is_due, ended.is_unread) == (ended.is_open,) * 3
        assert ended.was_given_up == (ended.state in {S.GONE, S.FORGOTTEN})


def test_a_setting_that_is_not_open_changes_only_by_another_change() -> None:
    for state in set(SettingState) - OPEN:
        assert {event for event in E if setting(state=state).after(event).state is not state} == {E.BEGIN}
    assert setting(state=S.GONE).after(E.BEGIN).after(E.WRITE_BACK).after(E.READ_BACK).state is S.RESTORED
    assert set(RULES) == set(SettingEvent)


@pytest.mark.parametrize(("before", "present", "found"), [
    # What was agreed is about the value of that time; without one, about the first value read.
    (Setting(LEADER_0), "77", "77"),
    (Setting(LEADER_0, original=ConfigValue(LEADER_0, None)), "77", None),
    (Setting(LEADER_0, original=ConfigValue(LEADER_0, None), adopted=ODD), "77", None),
    (Setting(LEADER_0, original=ConfigValue(LEADER_0, None), adopted=ODD), "78", "78"),
    # A value of the run that it left, or may have left, is not one from before it.
    (setting(state=S.LEFT), "6", "9"),
    (setting(state=S.LEFT), "77", "77"),
    (setting().after(E.FORGET), "6", "9"),
    (setting().after(E.FORGET), "77", "77"),
    (setting(state=S.RESTORED), "6", "6"),
])  # fmt: skip
def test_the_value_before_the_run_is_the_agreed_one_or_the_one_read(
    before: Setting, present: str, found: str | None
) -> None:
    read = before.first_read(ConfigValue(LEADER_0, present))
    assert read.found == ConfigValue(LEADER_0, found)
    assert (read.adopted is None) == (before.adopted is None or found is not None)


def test_what_was_agreed_about_a_setting_ends_with_it() -> None:
    agreed = replace(setting(state=S.RESTORING), original=ODD, adopted=ODD)
    ended = {event: agreed.after(event) for event in (E.READ_BACK, E.FOREIGN, E.LEAVE)}
    assert {event for event, one in ended.items() if one.original == one.adopted == ODD} == {E.LEAVE}
    assert {event for event, one in ended.items() if one.resumed(reads_first=True).was_ended} == {
        E.READ_BACK,
        E.FOREIGN,
    }


@pytest.mark.parametrize(("override", "value", "seen", "in_force", "intended", "certain"), [
    # While the run moves, then at its end; of a setting in force, then of one intended or restoring.
    (RATE, "6", Seen.OURS, (AS_SET, WRITE), (AS_SET, WRITE), WRITE),
    (RATE, "5", Seen.OURS, (AS_SET, WRITE), (AS_SET, WRITE), WRITE),
    (replace(RATE, value="9"), "9", Seen.BOTH, (AS_SET, WRITE), (AS_SET, RESTORED), WRITE),
    (replace(RATE, value=None), None, Seen.COVERED, (AS_SET, THEIRS), (AS_SET, DOUBT), THEIRS),
    (RATE, "9", Seen.OLD, (DOUBT, DOUBT), (AS_SET, RESTORED), WRITE),
    (RATE, "4", Seen.EARLIER, (DOUBT, DOUBT), (DOUBT, DOUBT), WRITE),
    (RATE, "77", Seen.OTHER, (DOUBT, DOUBT), (DOUBT, DOUBT), THEIRS),
    (RATE, None, Seen.OTHER, (DOUBT, DOUBT), (DOUBT, DOUBT), THEIRS),
    (LIST, "0:3", Seen.OURS, (AS_SET, WRITE), (AS_SET, WRITE), WRITE),
    (LIST, "0:3,8:8", Seen.OURS, (AS_SET, WRITE), (AS_SET, WRITE), WRITE),
    (LIST, None, Seen.OLD, (DOUBT, DOUBT), (AS_SET, RESTORED), WRITE),
    (LIST, "8:8", Seen.OLD, (DOUBT, DOUBT), (AS_SET, RESTORED), WRITE),
    (LIST, "", Seen.EMPTY, (DOUBT, DOUBT), (AS_SET, WRITE), WRITE),
    (LIST, "*", Seen.COVERED, (AS_SET, THEIRS), (AS_SET, DOUBT), THEIRS),
    (BESIDE, "0:3,7:4", Seen.PARTLY, (DOUBT, DOUBT), (DOUBT, WRITE), WRITE),
    (BESIDE, "7:4", Seen.OLD, (DOUBT, DOUBT), (AS_SET, RESTORED), WRITE),
    (BESIDE, None, Seen.OLD, (DOUBT, DOUBT), (AS_SET, RESTORED), WRITE),
    (BESIDE, "0:3,1:3", Seen.OURS, (AS_SET, WRITE), (AS_SET, WRITE), WRITE),
])  # fmt: skip
def test_a_value_means_what_the_table_says(
    override: ConfigOverride,
    value: str | None,
    seen: Seen,
    in_force: tuple[Conclusion, Conclusion],
    intended: tuple[Conclusion, Conclusion],
    certain: Conclusion,
) -> None:
    for state, expected in ((S.IN_FORCE, in_force), (S.INTENDED, intended), (S.RESTORING, intended)):
        read = setting(override, state)
        assert (read.seen(value), read.certain(value)) == (seen, certain)
        assert (read.meaning(value), read.meaning_at_end(value)) == expected


def test_the_missing_list_of_a_deleted_topic_is_no_doubt() -> None:
    assert setting(LIST).meaning_at_end(None, is_gone=True) is WRITE
    assert setting(LIST, S.RESTORING).meaning_at_end(None, is_gone=True) is RESTORED


def test_a_doubt_is_certain_after_ten_seconds_and_passes_with_its_report() -> None:
    first = setting().doubted(ODD, 1_000)
    second = first.doubted(ODD, 999 + PROPAGATION_MS)
    assert (first.is_undecided, second.is_undecided, second.is_foreign) == (True, True, False)
    assert second.doubted(ODD, 1_000 + PROPAGATION_MS).is_foreign
    assert replace(second, told=ODD).settled() == setting()
    assert replace(setting(), told=ODD).settled().told == ODD


@pytest.mark.parametrize(("begun", "value", "again", "change"), [
    (Setting(LEADER_0), "6", False, None),
    (Setting(LEADER_0, found=ConfigValue(LEADER_0, "9")), "6", False, ConfigOverride(LEADER_0, "9", "6")),
    (Setting(LEADER_0, found=ConfigValue(LEADER_0, "9")), "9", True, None),
    (replace(setting(), found=ConfigValue(LEADER_0, "9")), "6", False, None),
    (replace(setting(), found=ConfigValue(LEADER_0, "9")), "6", True, replace(RATE, unconfirmed=("5", "6"))),
    (replace(setting(), found=ConfigValue(LEADER_0, "9")), "9", False, ConfigOverride(LEADER_0, "9", "9", ("5", "6"))),
    (replace(setting(state=S.RESTORED), found=ConfigValue(LEADER_0, "9")), "6", False,
     ConfigOverride(LEADER_0, "9", "6")),
], ids=["unread", "other", "same", "same of ours", "again", "back", "ended"])  # fmt: skip
def test_a_change_keeps_the_old_value_and_remembers_ours(
    begun: Setting,
    value: str,
    again: bool,
    change: ConfigOverride | None,
) -> None:
    assert begun.change_to(value, again=again) == change


def test_a_setting_in_force_stays_so_while_a_value_of_ours_is_there() -> None:
    faster, back = ConfigOverride(LEADER_0, "9", "7", ("6",)), ConfigOverride(LEADER_0, "9", "9", ("6",))
    assert setting().intended(faster).state is S.IN_FORCE
    assert setting().intended(back).state is S.IN_FORCE
    taken_off = setting().intended(back).confirmed()
    assert (taken_off.state, taken_off.intended(faster).state) == (S.IN_FORCE, S.INTENDED)


def test_every_value_that_was_given_may_be_there() -> None:
    rate = Setting(LEADER_0).intended(ConfigOverride(LEADER_0, "9", "5")).confirmed()
    rate = rate.intended(ConfigOverride(LEADER_0, "9", "6", ("5",))).confirmed()
    lists = Setting(FOLLOWERS).intended(LIST).intended(ConfigOverride(FOLLOWERS, None, "1:3"))
    assert rate.ever_ours == ConfigOverride(LEADER_0, "9", "6", ("5",))
    assert lists.ever_ours == ConfigOverride(FOLLOWERS, None, "1:3", ("0:3,1:3",))
    assert Setting(LEADER_0).ever_ours is None
    # A rate that was put back, or removed for others, is not the run's.
    assert not Setting(LEADER_0).intended(ConfigOverride(LEADER_0, "9", "9")).given


def test_another_process_knows_the_journal_only() -> None:
    left = replace(setting(), found=ConfigValue(LEADER_0, "9"), doubt=Doubt(ODD, 0), told=ODD)
    again = replace(left, found=None, doubt=None, is_due=True)
    assert left.resumed(reads_first=True) == replace(again, is_unread=True)
    assert left.resumed(reads_first=False) == replace(again, state=S.INTENDED)
    over = replace(left, state=S.RESTORED, doubt=None)
    assert over.resumed(reads_first=True) == replace(over, found=None, was_ended=True)


def test_open_settings_are_in_the_order_of_their_first_change() -> None:
    ledger, key = ThrottleLedger(), ConfigKey(ConfigResource.broker(7), LEADER_0.name)
    for found in (FOLLOWERS, LEADER_1, LEADER_0):
        ledger.put(Setting(found, found=ConfigValue(found, None)))
    for override in (RATE, ConfigOverride(key, None, "5"), LIST, replace(RATE, value="7")):
        ledger.intend(override)
    assert [*ledger.pending] == [LEADER_0, key, FOLLOWERS]


def test_a_change_that_was_doubted_unconfirmed_is_repeated() -> None:
    ledger = ThrottleLedger()
    for override in (RATE, ConfigOverride(LEADER_1, None, "5")):
        ledger.settle(setting(override).doubted(replace(ODD, key=override.key), 0))
    assert ledger.unset == {LEADER_0.resource}
    assert not ledger.doubtful
