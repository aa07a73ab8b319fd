"""When a throttle is read again, and what is said of one that others changed."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import pytest

from kreassign.executor.events import (
    CallFailed,
    ConfigsRead,
    Event,
    HealthObserved,
    LeaseLost,
    LeaseTaken,
    PlacementState,
    PlannedMove,
    ThrottleChecked,
    VerdictsRecorded,
)
from kreassign.executor.guards import GuardName, Health, Reaction, Verdict
from kreassign.executor.guards.settings import settings
from kreassign.executor.instructions import CheckThrottle, SetThrottle, SubmitMoves
from kreassign.executor.state import health_watch, throttle_watch
from kreassign.executor.state.run import Doubt, Run
from kreassign.executor.state.throttle_watch import DOUBT_EVERY_MS, PROPAGATION_MS
from kreassign.executor.throttle.ledger import ConfigKey, ConfigValue
from kreassign.model import ConfigResource, TopicPartition
from tests.executor.run_events import (
    BEFORE,
    LISTED,
    LISTS,
    LIVE,
    MOVES,
    OVERRIDES,
    PREPARED,
    RATE,
    RATES,
    SUBMITTED,
    look,
    machine_after,
    started,
)
from tests.executor.state.run_changes import Changes, changed, run_after

KEY = RATES[0].key
FOUND = ConfigValue(KEY, "5")
TOPIC = ConfigResource.topic("a")
GUARDED: tuple[Event, ...] = (replace(started(), guards=settings(), rereads_throttle=True), *PREPARED[1:])
LOST: tuple[Event, ...] = (*GUARDED, LeaseLost(3_000, "another member has it"), LeaseTaken(4_000, 7))


def watched(*, since_ms: int | None = None, checked_ms: int | None = None, now_ms: int = 0) -> Run:
    """A run whose throttle is in force, with one doubt since then."""
    run = machine_after(*GUARDED)[0]._run
    run.moves.observed_ms, run.throttle.checked_ms = now_ms, checked_ms
    run.throttle.doubts = {} if since_ms is None else {KEY: Doubt(FOUND, since_ms)}
    return run


def test_a_throttle_nobody_doubts_is_read_again_before_moves_are_sent() -> None:
    assert throttle_watch.is_due(watched(), {TOPIC})
    assert not throttle_watch.is_due(watched(), ())


@pytest.mark.parametrize("lacks", ["rereads_throttle", "reactions", "in_force"])
def test_a_run_that_does_not_guard_its_throttle_does_not_read_it_again(lacks: str) -> None:
    run = watched(since_ms=0)
    match lacks:
        case "rereads_throttle":
            run.identity.rereads_throttle = False
        case "reactions":
            run.identity.reactions = {}
        case _:
            run.throttle.in_force = set()
    assert not throttle_watch.is_due(run, {TOPIC})


@pytest.mark.parametrize(("checked_ms", "now_ms", "is_due"), [
    (None, 1_000, True),
    (1_000, 1_001, True),
    (3_000, 3_000 + DOUBT_EVERY_MS - 1, False),
    (3_000, 3_000 + DOUBT_EVERY_MS, True),
])  # fmt: skip
def test_a_doubt_is_read_again_soon_at_first_and_then_every_five_seconds(
    checked_ms: int | None, now_ms: int, is_due: bool
) -> None:
    run = watched(since_ms=1_000, checked_ms=checked_ms, now_ms=now_ms)
    assert throttle_watch.is_due(run, ()) == is_due


def test_an_odd_answer_holds_moves_and_is_someone_elses_doing_only_when_it_stays() -> None:
    healthy = HealthObserved(5_000, Health(LIVE))
    machine, (question,) = machine_after(*GUARDED, look(5_000, PlacementState.UNTOUCHED), healthy)
    run = machine._run
    assert isinstance(question, CheckThrottle)
    machine.replay(ThrottleChecked(6_000, (FOUND,)))
    assert run.throttle.doubts == {KEY: Doubt(FOUND, 6_000)}
    assert (run.throttle.checked_ms, throttle_watch.allows_start(run)) == (6_000, False)
    throttle_watch.take_in(run, 6_000 + PROPAGATION_MS - 1, (KEY,), (FOUND,), ())
    assert throttle_watch.foreign(run) == ()
    throttle_watch.take_in(run, 6_000 + PROPAGATION_MS, (KEY,), (FOUND,), ())
    assert throttle_watch.foreign(run) == (FOUND,)
    throttle_watch.take_in(run, 20_000, (KEY,), (), ())
    assert throttle_watch.allows_start(run)


def test_what_others_changed_is_told_once_a_guard_has_said_so() -> None:
    run = watched()
    run.throttle.doubts = {KEY: Doubt(FOUND, 0, is_foreign=True)}
    health_watch.take_in(run, VerdictsRecorded(1, (Verdict(GuardName.DISK, Reaction.HOLD, "full", "make room"),)))
    assert run.throttle.told == {}
    said = Verdict(GuardName.FOREIGN_THROTTLE, Reaction.HOLD, "changed", "set it again")
    health_watch.take_in(run, VerdictsRecorded(2, (said,)))
    assert run.throttle.told == {KEY: FOUND}


def test_a_run_that_has_its_lease_again_looks_at_its_throttle_and_tells_what_differs_before_it_sets_it() -> None:
    (question,) = machine_after(*LOST)[1]
    assert isinstance(question, CheckThrottle)
    assert {one.key for one in question.overrides} == {one.key for one in RATES}
    machine, (order,) = machine_after(*LOST, ThrottleChecked(5_000, (FOUND,)), ConfigsRead(6_000, BEFORE))
    assert isinstance(order, SetThrottle)
    assert {one.key for one in order.overrides} == {one.key for one in RATES}
    (told,) = machine.view.problems[:1]
    assert FOUND.then in told
    assert machine._run.throttle.doubts == {}


def test_where_its_throttle_cannot_be_looked_at_it_is_set_again_all_the_same() -> None:
    (order,) = machine_after(*LOST, CallFailed(5_000, "no answer"), ConfigsRead(6_000, BEFORE))[1]
    assert isinstance(order, SetThrottle)
    assert {one.key for one in order.overrides} == {one.key for one in RATES}


def test_a_run_without_guards_looks_at_nothing_and_sends_its_moves() -> None:
    run = machine_after(*LISTED)
    assert isinstance(run[1][0], SubmitMoves)


def test_read_again_are_rates_lists_of_the_topics_about_to_move_and_what_is_in_doubt() -> None:
    run = machine_after(*LISTED)[0]._run
    rates, lists = {one.key for one in RATES}, {one.key for one in LISTS}
    assert {one.key for one in throttle_watch.question(run, ()).overrides} == rates
    assert {one.key for one in throttle_watch.question(run, {TOPIC}).overrides} == rates | lists
    run.throttle.doubts = {LISTS[0].key: Doubt(FOUND, 0)}
    assert {one.key for one in throttle_watch.question(run, ()).overrides} == rates | {LISTS[0].key}


# --- what an odd value means ---------------------------------------------------------------------------------------

FIRST, SECOND, THIRD, LAST = (one.key for one in RATES)
KEYS_SET = {one.key: one for one in OVERRIDES}


def in_force(*events: Event) -> Run:
    """A run whose throttle is in force, with its guard."""
    run = run_after(*(events or SUBMITTED))
    run.identity.reactions, run.identity.rereads_throttle = {GuardName.FOREIGN_THROTTLE: Reaction.HOLD}, True
    return run


def odd(key: ConfigKey, value: str | None = "5") -> ConfigValue:
    return ConfigValue(key, value)


def taken_in(run: Run, at_ms: int, *differ: ConfigValue, unread: tuple[ConfigResource, ...] = ()) -> Changes:
    """What reading all rates changes, where these differ and those were not read."""
    read = [one.key for one in RATES]
    return changed(run, lambda: throttle_watch.take_in(run, at_ms, read, differ, unread))[1]


def test_a_doubt_begins_goes_on_becomes_certain_and_ends() -> None:
    run = in_force()
    assert taken_in(run, 1_000, odd(FIRST)) == {"throttle.doubts": {FIRST: Doubt(odd(FIRST), 1_000)}}
    other = odd(FIRST, "6")
    assert taken_in(run, 999 + PROPAGATION_MS, other) == {"throttle.doubts": {FIRST: Doubt(other, 1_000)}}
    certain = {"throttle.doubts": {FIRST: Doubt(other, 1_000, is_foreign=True)}}
    assert taken_in(run, 1_000 + PROPAGATION_MS, other) == certain
    run.throttle.told = {FIRST: other, SECOND: odd(SECOND)}
    assert taken_in(run, 20_000, unread=(FIRST.resource,)) == {}
    over = {"throttle.doubts": {}, "throttle.told": {SECOND: odd(SECOND)}}
    assert taken_in(run, 20_000) == over


def test_what_was_not_asked_for_is_not_in_doubt() -> None:
    assert taken_in(in_force(), 1_000, odd(LISTS[0].key)) == {}


def test_a_doubt_that_ends_leaves_settings_that_may_not_have_been_taken_to_be_set_again() -> None:
    run = in_force()
    run.throttle.unset = frozenset({TOPIC})
    run.throttle.pending[FIRST] = replace(KEYS_SET[FIRST], unconfirmed=("7",))
    del run.throttle.pending[THIRD]
    run.throttle.doubts = {key: Doubt(odd(key), 1_000) for key in (FIRST, SECOND, THIRD)}
    assert taken_in(run, 2_000) == {"throttle.doubts": {}, "throttle.unset": {TOPIC, FIRST.resource}}


def test_an_old_value_is_not_odd_where_nobody_knows_whether_anything_of_ours_was_written() -> None:
    run = in_force()
    assert taken_in(deepcopy(run), 1_000, odd(FIRST, None)) != {}
    run.throttle.in_force = {*KEYS_SET} - {FIRST}
    assert taken_in(run, 1_000, odd(FIRST, None)) == {}
    assert taken_in(deepcopy(run), 1_000, odd(FIRST)) != {}
    del run.throttle.pending[FIRST]
    assert taken_in(run, 1_000, odd(FIRST, None)) != {}


@pytest.mark.parametrize(("checked_ms", "since_ms", "topics", "is_due"), [
    (None, None, (), False),
    (0, None, (TOPIC,), True),
    (None, 0, (), True),
    (9_000, 8_000, (), False),
    (9_000, 8_999, (), False),
    (9_000, 9_000, (), True),
    (8_000, 0, (TOPIC,), False),
    (5_001, 0, (), False),
    (5_000, 0, (), True),
])  # fmt: skip
def test_what_is_in_doubt_is_read_again_after_as_long_as_it_is_old_and_at_most_five_seconds(
    checked_ms: int | None, since_ms: int | None, topics: tuple[ConfigResource, ...], is_due: bool
) -> None:
    run = in_force()
    run.moves.observed_ms, run.throttle.checked_ms = 10_000, checked_ms
    if since_ms is not None:
        run.throttle.doubts = {FIRST: Doubt(odd(FIRST), since_ms), SECOND: Doubt(odd(SECOND), 9_999)}
    assert throttle_watch.is_due(run, topics) == is_due


def test_asked_for_is_what_is_in_force_with_the_ids_of_topics_in_doubt() -> None:
    named = tuple(replace(move, topic_id="id of a") for move in MOVES)
    run = in_force(started(*named), *SUBMITTED[1:])
    run.throttle.in_force.discard(SECOND)
    rates = tuple(one for one in RATES if one.key != SECOND)
    assert throttle_watch.question(run, ()) == CheckThrottle(rates)
    assert throttle_watch.question(run, {TOPIC}) == CheckThrottle((*rates, *LISTS))
    run.throttle.doubts = {LISTS[0].key: Doubt(odd(LISTS[0].key), 0)}
    assert throttle_watch.question(run, ()) == CheckThrottle((*rates, LISTS[0]), {"a": "id of a"})
    run.throttle.doubts = {FIRST: Doubt(odd(FIRST), 0)}
    assert throttle_watch.question(run, ()) == CheckThrottle(rates)
    assert throttle_watch.question_of_all(run) == CheckThrottle(OVERRIDES, {"a": "id of a"})
    run.throttle.pending = {one.key: one for one in RATES}
    assert throttle_watch.question_of_all(run) == CheckThrottle(RATES)
    assert throttle_watch.in_force(run) == rates


def test_ids_of_other_topics_are_not_asked_about() -> None:
    other = PlannedMove(TopicPartition("b", 0), (0,), (1,), 5, topic_id="id of b")
    named = (replace(MOVES[0], topic_id="id of a"), other)
    run = in_force(started(*named), *PREPARED[1:])
    run.throttle.doubts = {LISTS[0].key: Doubt(odd(LISTS[0].key), 0)}
    assert throttle_watch.question(run, ()).topic_ids == {"a": "id of a"}


@pytest.mark.parametrize(("reaction", "is_guarded", "only_warns"), [
    (None, False, True),
    (Reaction.WARN, True, True),
    (Reaction.HOLD, True, False),
    (Reaction.CANCEL, True, False),
])  # fmt: skip
def test_who_is_only_warned_starts_moves_in_spite_of_a_doubt(
    reaction: Reaction | None, is_guarded: bool, only_warns: bool
) -> None:
    run = in_force()
    run.identity.reactions = {} if reaction is None else {GuardName.FOREIGN_THROTTLE: reaction}
    assert throttle_watch.is_guarded(run) == is_guarded
    assert (throttle_watch.allows_start(run), throttle_watch.was_lost(run)) == (True, False)
    run.throttle.unseen = {FIRST}
    assert throttle_watch.is_to_be_seen(run) == is_guarded
    run.throttle.unseen = set()
    assert not throttle_watch.is_to_be_seen(run)
    run.throttle.is_lost = True
    assert throttle_watch.was_lost(run) == (not only_warns)
    run.throttle.doubts = {key: Doubt(odd(key), 0) for key in (FIRST, LISTS[0].key)}
    assert throttle_watch.allows_start(run) == only_warns
    alone = [key in {FIRST, LISTS[0].key} and not (only_warns and key.broker is None) for key in KEYS_SET]
    assert [throttle_watch.is_left_alone(run, key) for key in KEYS_SET] == alone
    run.throttle.doubts, run.throttle.due = {}, {FIRST}
    assert not throttle_watch.allows_start(run)


def test_a_setting_is_undecided_until_a_second_reading() -> None:
    run = in_force()
    run.throttle.doubts = {FIRST: Doubt(odd(FIRST), 0), SECOND: Doubt(odd(SECOND), 0, is_foreign=True)}
    assert [throttle_watch.is_undecided(run, key) for key in (FIRST, SECOND, THIRD)] == [True, False, False]
    run.throttle.doubts[THIRD] = run.throttle.doubts[LAST] = Doubt(odd(LAST), 0, is_foreign=True)
    assert throttle_watch.foreign(run) == (odd(SECOND), odd(LAST), odd(LAST))
    run.throttle.doubts = {SECOND: Doubt(odd(SECOND), 0, is_foreign=True), FIRST: Doubt(odd(FIRST), 0, is_foreign=True)}
    assert throttle_watch.foreign(run) == (odd(FIRST), odd(SECOND))


# --- what was left, and what is asked for --------------------------------------------------------------------------


def left(run: Run, event: ThrottleChecked) -> Changes:
    return changed(run, lambda: throttle_watch.take_in_all(run, event))[1]


def test_of_what_was_left_unread_and_undecided_settings_are_still_to_be_seen() -> None:
    run = in_force()
    run.throttle.unseen = {*KEYS_SET}
    assert left(run, ThrottleChecked(5_000, (odd(FIRST),), (TOPIC, SECOND.resource))) == {
        "throttle.doubts": {FIRST: Doubt(odd(FIRST), 5_000)},
        "throttle.unseen": {FIRST, SECOND, *(one.key for one in LISTS)},
    }


def told(now: ConfigValue, why: str) -> str:
    return f"someone else had changed a throttle when {why}: {now.then}, and the run had set it to '{RATE}'"


def test_what_others_changed_meanwhile_is_told_once_and_stays_as_it_is() -> None:
    run = in_force()
    run.throttle.doubts = {key: Doubt(odd(key), 0) for key in (FIRST, SECOND)}
    run.throttle.due, run.throttle.told = {*KEYS_SET}, {SECOND: odd(SECOND)}
    changes = {
        "throttle.doubts": {key: Doubt(odd(key), 0, is_foreign=True) for key in (FIRST, SECOND)},
        "throttle.was_found_changed": True,
        "throttle.told": {SECOND: odd(SECOND), FIRST: odd(FIRST)},
        "throttle.due": {*KEYS_SET} - {FIRST, SECOND},
        "problems.noted": [told(odd(FIRST), "the run was resumed")],
    }
    differ = ThrottleChecked(PROPAGATION_MS, (odd(FIRST), odd(SECOND)))
    assert left(run, differ) == changes
    assert left(run, differ) == {}
    assert left(run, ThrottleChecked(20_000)) == {"throttle.doubts": {}, "throttle.told": {}}
    assert run.throttle.was_found_changed


def test_whoever_asked_for_a_throttle_gets_it_also_where_others_had_changed_it() -> None:
    run = in_force()
    run.throttle.is_asked_for = True
    run.throttle.doubts = {FIRST: Doubt(odd(FIRST), 0)}
    changes = left(run, ThrottleChecked(PROPAGATION_MS, (odd(FIRST),)))
    assert changes["throttle.due"] == {FIRST}
    assert changes["problems.noted"] == [told(odd(FIRST), "a throttle was asked for")]


def test_lists_of_a_run_that_is_only_warned_are_set_again_all_the_same() -> None:
    run = in_force()
    run.identity.reactions = {GuardName.FOREIGN_THROTTLE: Reaction.WARN}
    keys = (FIRST, LISTS[0].key)
    run.throttle.doubts, run.throttle.due = {key: Doubt(odd(key), 0) for key in keys}, {*keys}
    left(run, ThrottleChecked(PROPAGATION_MS, tuple(map(odd, keys))))
    assert run.throttle.due == {LISTS[0].key}


def test_what_is_on_brokers_that_are_down_or_of_topics_that_are_gone_is_not_set_again() -> None:
    run = in_force()
    run.throttle.due, run.throttle.live_brokers = {*KEYS_SET}, (0, 1)
    left(run, ThrottleChecked(5_000, gone=(TOPIC,)))
    assert run.throttle.due == {FIRST, SECOND}
    assert [*run.throttle.pending] == [one.key for one in RATES]


@pytest.mark.parametrize(("rereads_first", "is_guarded"), [(True, True), (False, True), (True, False)])
def test_what_is_in_force_is_to_be_seen_before_another_throttle_is_set(rereads_first: bool, is_guarded: bool) -> None:
    run = in_force()
    run.identity.rereads_first = rereads_first
    run.identity.reactions = run.identity.reactions if is_guarded else {}
    run.throttle.in_force = {FIRST, LISTS[0].key, ConfigKey(ConfigResource.broker(9), FIRST.name)}
    run.throttle.unseen, run.throttle.due = {SECOND}, {THIRD}
    run.throttle.doubts = {LAST: Doubt(odd(LAST), 0)}
    run.throttle.is_asked_for = False
    changes = changed(run, lambda: throttle_watch.note_request(run))[1]
    if rereads_first and is_guarded:
        assert changes == {
            "throttle.unseen": {SECOND, FIRST, LISTS[0].key},
            "throttle.due": {THIRD, FIRST, LAST},
            "throttle.is_asked_for": True,
        }
    else:
        assert changes == {"throttle.due": {THIRD, LAST}, "throttle.is_asked_for": True}


def test_where_nothing_is_in_force_nothing_is_to_be_seen() -> None:
    run = in_force()
    run.identity.rereads_first, run.throttle.in_force, run.throttle.is_asked_for = True, set(), True
    assert changed(run, lambda: throttle_watch.note_request(run))[1] == {"throttle.is_asked_for": False}


def test_what_another_run_may_have_restored_is_told_of_what_was_set() -> None:
    run = in_force()
    event = ThrottleChecked(5_000, (odd(FIRST), odd(SECOND), odd(LISTS[0].key)), gone=(TOPIC,))
    throttle_watch.note_differences(run, (FIRST, LISTS[0].key), event)
    again = f"the run had set it to '{RATE}' and set it again"
    assert run.problems.noted == [f"when the run had the lease again, {odd(FIRST).then}; {again}"]
    assert [*run.throttle.pending] == [one.key for one in RATES]


# --- at the end ----------------------------------------------------------------------------------------------------


def at_end(run: Run, event: ConfigsRead, *, is_end: bool = True) -> Changes:
    return changed(run, lambda: throttle_watch.take_in_at_end(run, event, is_end=is_end))[1]


def test_at_the_end_what_is_neither_ours_nor_restored_is_in_doubt() -> None:
    run = in_force()
    run.throttle.in_force = {FIRST, THIRD}
    # The second and the last one are being restored: there the old value is no wonder.
    values = (odd(FIRST, None), odd(SECOND, "7000"), odd(THIRD, "1000000"), odd(LAST, "9"))
    assert at_end(run, ConfigsRead(5_000, values)) == {
        "throttle.doubts": {FIRST: Doubt(odd(FIRST, None), 5_000), LAST: Doubt(odd(LAST, "9"), 5_000)},
    }


def test_at_the_end_a_doubt_about_what_was_read_right_is_over() -> None:
    run = in_force()
    run.throttle.doubts = {FIRST: Doubt(odd(FIRST), 0), SECOND: Doubt(odd(SECOND), 0)}
    assert at_end(run, ConfigsRead(5_000, (odd(FIRST, str(RATE)),))) == {
        "throttle.doubts": {SECOND: Doubt(odd(SECOND), 0)},
    }


def test_settings_of_topics_that_are_gone_have_not_been_changed_by_anybody() -> None:
    run = in_force()
    removed = odd(LISTS[0].key, None)
    assert at_end(deepcopy(run), ConfigsRead(5_000, (removed,))) != {}
    assert at_end(run, ConfigsRead(5_000, (removed,), gone=(TOPIC,))) == {}


@pytest.mark.parametrize(("value", "is_told", "is_end", "was_told"), [
    (None, True, True, False),
    (None, True, False, False),
    (None, False, True, True),
    ("9", False, True, False),
])  # fmt: skip
def test_at_the_end_a_throttle_that_was_taken_away_is_told_and_another_one_only_where_it_stays(
    value: str | None, is_told: bool, is_end: bool, was_told: bool
) -> None:
    run = in_force()
    found = odd(FIRST, value)
    run.throttle.doubts = {FIRST: Doubt(found, 0), SECOND: Doubt(odd(SECOND, "7000"), 4_999)}
    run.throttle.told = {FIRST: found} if was_told else {}
    ours = f"the run had set it to '{RATE}'"
    changes: Changes = {
        "throttle.doubts": {
            FIRST: Doubt(found, 0, is_foreign=True),
            SECOND: Doubt(odd(SECOND, "7000"), 4_999),
        }
    }
    if is_end:
        changes["throttle.is_lost"] = True
    if is_told:
        changes["throttle.told"] = {FIRST: found}
        changes["problems.noted"] = [f"someone else changed a throttle during the run: {found.then}, and {ours}"]
    assert at_end(run, ConfigsRead(PROPAGATION_MS, (found, odd(SECOND, "7000"))), is_end=is_end) == changes
