"""Times at which a throttle is read again, and reports of foreign changes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kreassign.executor.events import (
    BrokersForgotten,
    CallFailed,
    ConfigsRead,
    Event,
    HealthObserved,
    PlacementState,
    PlannedMove,
    RunResumed,
    RunStarted,
    StopRequested,
    ThrottleChecked,
    ThrottleRequested,
    ThrottleRestored,
    ThrottleSet,
)
from kreassign.executor.guards import GuardName, Health, Reaction
from kreassign.executor.state.setting import PROPAGATION_MS
from kreassign.executor.throttle_ledger import ConfigKey, ConfigValue
from kreassign.model import TopicPartition
from tests.executor.run_events import LIVE, MOVES, RATE, look
from tests.executor.state.played import (
    FOLLOWER_2,
    FOLLOWER_3,
    FOLLOWERS,
    LEADER_0,
    LEADER_1,
    MOVING,
    UNTOUCHED,
    Played,
    begun,
    guarded,
)

AT_PLACE = PlacementState.ARRIVED
ALL = "all rates, both lists"
NAMED = tuple(replace(move, topic_id="id of a") for move in MOVES)
OTHER = PlannedMove(TopicPartition("b", 0), (0, 1), (2, 1), 5, topic_id="id of b")


def odd(key: ConfigKey, value: str | None = "5") -> ConfigValue:
    return ConfigValue(key, value)


def checked(at_ms: int, *differ: ConfigValue) -> Played:
    """A run that read its throttle before moves were to start, which was odd."""
    return Played(guarded()).go("check all").on(ThrottleChecked(at_ms, differ))


@pytest.mark.parametrize(("begin", "is_read"), [
    (guarded(), True),
    (guarded(reaction=Reaction.OFF), False),
    (guarded(throttle=None), False),
    (begun(guards={GuardName.STALL: Reaction.HOLD}), False),
])  # fmt: skip
def test_a_guarded_throttle_is_read_before_moves_start(begin: RunStarted, is_read: bool) -> None:
    assert ("check all rates" in Played(begin).go("submit").path) == is_read


@pytest.mark.parametrize(("events", "decided"), [
    ([look(1_001, UNTOUCHED)], "check all rates"),
    ([look(2_000, UNTOUCHED), ThrottleChecked(2_000, (odd(LEADER_0),)), look(6_999, UNTOUCHED)], "wait"),
    ([look(2_000, UNTOUCHED), ThrottleChecked(2_000, (odd(LEADER_0),)), look(7_000, UNTOUCHED)], "check all rates"),
    # Of several doubts the oldest counts.
    ([look(2_000, UNTOUCHED), ThrottleChecked(2_000, (odd(LEADER_0), odd(LEADER_1))), look(3_000, UNTOUCHED)], "wait"),
    ([look(2_000, UNTOUCHED), CallFailed(2_000, "no answer"), look(3_000, UNTOUCHED)], "check all rates"),
])  # fmt: skip
def test_a_doubt_is_read_again_soon_at_first_and_then_every_five_seconds(events: list[Event], decided: str) -> None:
    assert checked(1_000, odd(LEADER_0)).on(*events).decided == decided


def test_lists_in_doubt_are_read_with_the_ids_of_their_topics() -> None:
    run = Played(guarded(*NAMED, OTHER)).go("wait").on(look(1_000, AT_PLACE, NAMED[0]))
    assert run.decided == f"check {ALL}"
    run.on(ThrottleChecked(1_000, (odd(FOLLOWERS),))).go("check")
    assert run.decided == "check followers of a, all rates (id of a)"
    assert run.on(RunResumed(5_000, LIVE)).decided.endswith("(id of a, id of b)")


def test_a_setting_that_is_not_in_force_is_not_read() -> None:
    run = Played(guarded(live_brokers=(0, 1, 2, 4))).go("check health").on(HealthObserved(0, Health((0, 1, 2, 4))))
    assert run.decided == "check leader 0, leader 1, follower 2"


ONCE, TWICE = ThrottleChecked(1_000, (odd(LEADER_0),)), ThrottleChecked(1_000 + PROPAGATION_MS, (odd(LEADER_0, "6"),))
DOUBT = "its throttle is checked before anything is started: {}"
FOREIGN = "somebody else changed its throttle: {}"


@pytest.mark.parametrize(("second", "hindrance"), [
    (replace(TWICE, at_ms=TWICE.at_ms - 1), DOUBT.format(odd(LEADER_0, "6"))),
    (TWICE, FOREIGN.format(odd(LEADER_0, "6"))),
    (replace(TWICE, differ=()), None),
    (replace(TWICE, differ=(), unread=(LEADER_0.resource,)), DOUBT.format(odd(LEADER_0))),
    (replace(TWICE, differ=(odd(LEADER_1),)), DOUBT.format(odd(LEADER_1))),
    # Lists of topics that do not start were not asked for.
    (replace(TWICE, differ=(odd(FOLLOWERS),)), None),
])  # fmt: skip
def test_an_odd_value_must_stay_for_ten_seconds_to_count_as_foreign(
    second: ThrottleChecked, hindrance: str | None
) -> None:
    run = checked(1_000, odd(LEADER_0)).go("check all").on(second)
    assert run.view.hindrance(second.at_ms) == hindrance


@pytest.mark.parametrize(("reaction", "decided"), [
    (Reaction.HOLD, "wait"), (Reaction.CANCEL, "wait"), (Reaction.WARN, "set both lists"),
])  # fmt: skip
def test_a_run_that_only_warns_starts_moves_despite_a_doubt(reaction: Reaction, decided: str) -> None:
    run = Played(guarded(reaction=reaction)).go("check all")
    assert run.on(ThrottleChecked(0, (odd(LEADER_0),))).decided == decided


def test_a_setting_that_may_not_be_made_is_set_again_after_a_doubt() -> None:
    run = Played(guarded()).go("wait").on(ThrottleRequested(0, 1, 5)).go("set")
    run.intend().on(ThrottleSet(0, ("no",)))
    doubts = (odd(LEADER_0, "9"), odd(LEADER_1, "9"))
    run.on(look(1_000, AT_PLACE, MOVES[0]), ThrottleChecked(1_000, doubts)).go("check")
    assert run.on(ThrottleChecked(2_500)).decided == f"set leader 0=5|{RATE}|5, leader 1=5|{RATE}|5"


WARNED = Played(guarded(reaction=Reaction.WARN)).go("wait")
HELD = Played(guarded()).go("wait")
RESUMED = RunResumed(10_000, LIVE)
BOTH_ODD = ThrottleChecked(10_000, (odd(LEADER_0), odd(FOLLOWERS)))


@pytest.mark.parametrize(("run", "decided"), [
    (HELD, "set leader 1, follower 2, follower 3, leaders of a"),
    (WARNED, "set leader 1, follower 2, follower 3, both lists"),
])  # fmt: skip
def test_foreign_changes_are_left_alone_but_for_lists_of_a_warned_run(run: Played, decided: str) -> None:
    run = run.copy().on(RESUMED, BOTH_ODD, replace(BOTH_ODD, at_ms=20_000))
    assert run.decided == decided
    # What was told once is not told again, unless it is another value.
    assert len(run.problems) == 2
    run.on(replace(RESUMED, at_ms=30_000), replace(BOTH_ODD, at_ms=30_000), replace(BOTH_ODD, at_ms=40_000))
    assert len(run.problems) == 2


def at_end(*events: Event, reaction: Reaction = Reaction.HOLD) -> Played:
    return Played(guarded(reaction=reaction)).go("wait").on(*events).go("read", AT_PLACE)


TOLD = f"someone else changed a throttle during the run: {odd(LEADER_0, None).then}, and the run had set it to '{RATE}'"
LEFT = f"someone else changed a throttle during the run, and it was left so: {odd(LEADER_0).then}"


def test_a_run_that_only_pauses_is_not_failed_by_what_others_changed() -> None:
    run = Played(guarded()).go("check all").on(StopRequested(0))
    removed = ConfigsRead(5_000, (odd(LEADER_0, None),))
    run.on(removed, replace(removed, at_ms=5_000 + PROPAGATION_MS)).go("restore").go("read").go("")
    assert (run.step, run.problems, run.view.was_throttle_kept) == ("Paused", (TOLD,), True)


def test_what_a_guard_said_is_not_repeated_at_the_end() -> None:
    foreign = Health(LIVE, foreign_configs=(odd(LEADER_0, None),))
    differs = ThrottleChecked(31_000, foreign.foreign_configs)
    run = Played(guarded()).go("wait").on(look(31_000, MOVING), HealthObserved(31_000, foreign), differs)
    run.on(look(62_000, MOVING), HealthObserved(62_000, foreign)).go("").on(replace(differs, at_ms=62_000))
    run.on(look(63_000, AT_PLACE), ConfigsRead(63_000, foreign.foreign_configs))
    assert run.decided == "restore leader 0"
    assert [problem.partition(":")[0] for problem in run.problems] == ["foreign-throttle"]


def test_a_deleted_topic_is_no_foreign_change() -> None:
    removed = ConfigsRead(5_000, (odd(FOLLOWERS, None),))
    assert at_end().on(removed).decided == "wait"
    assert at_end().on(replace(removed, gone=(FOLLOWERS.resource,))).decided == "restore followers of a"


def test_values_under_restore_raise_no_doubt() -> None:
    run = at_end().go("restore").on(ThrottleRestored(5_000))
    values = (odd(LEADER_1, "7000"), odd(FOLLOWER_2, None), odd(FOLLOWER_3, "9"))
    run.on(ConfigsRead(5_000, values))
    assert (run.decided, run.pending) == ("wait", "leader 0, follower 3, both lists")
    # Of the one with another value a second reading decides.
    run.on(ConfigsRead(5_000 + PROPAGATION_MS, values[2:]))
    assert run.pending == "leader 0, both lists"


def test_no_doubt_remains_about_a_broker_given_up_while_it_was_read() -> None:
    run = Played(guarded()).go("wait").on(look(31_000, MOVING), BrokersForgotten(31_000, (0,)))
    assert run.on(HealthObserved(31_000, Health(LIVE, foreign_configs=(odd(LEADER_0),)))).decided == "wait"
