"""A run that is resumed reads what it left before it sets any of it again, as far as the machine decides that."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kreassign.executor.events import (
    ConfigsRead,
    Event,
    HealthObserved,
    MovesObserved,
    RunResumed,
    RunStarted,
    ThrottleChecked,
    ThrottleIntended,
    ThrottleRequested,
    ThrottleSet,
    TimePassed,
)
from kreassign.executor.guards import DEFAULTS, Health
from kreassign.executor.guards.settings import settings
from kreassign.executor.instructions import CheckThrottle, ObserveMoves, SetThrottle, Wait
from kreassign.executor.state.throttle_watch import PROPAGATION_MS
from kreassign.executor.throttle.ledger import ConfigValue
from kreassign.model import ConfigResource
from tests.executor.run_events import LISTED, LISTS, LIVE, PREPARED, RATE, RATES, SUBMITTED, replayed

RESUMED = RunResumed(10_000, LIVE, rereads_first=True)
REMOVED = ConfigValue(RATES[0].key, RATES[0].before)
READ = ConfigsRead(10_000, tuple(ConfigValue(override.key, None) for override in LISTS))
SINCE_MS = 10_000 + PROPAGATION_MS


def guarded(events: tuple[Event, ...]) -> tuple[Event, ...]:
    """The same of a run with guards, which look before anything is sent."""
    begun, *others = events
    assert isinstance(begun, RunStarted)
    begun = replace(begun, guards=settings(DEFAULTS), rereads_throttle=True, rereads_first=True)
    looked = [index for index, event in enumerate(others) if isinstance(event, MovesObserved)]
    for index in looked[:1]:
        others[index + 1 : index + 1] = [HealthObserved(3_000, Health(LIVE)), ThrottleChecked(3_000)]
    return (begun, *others)


def test_everything_that_was_left_is_read_first() -> None:
    _, instructions = replayed(*guarded(SUBMITTED), RESUMED)
    (question,) = instructions
    assert isinstance(question, CheckThrottle)
    assert {override.key for override in question.overrides} == {override.key for override in (*RATES, *LISTS)}


def test_what_is_as_it_was_set_is_set_again_at_once() -> None:
    _, instructions = replayed(*guarded(SUBMITTED), RESUMED, ThrottleChecked(10_000))
    (order,) = instructions
    assert isinstance(order, SetThrottle)
    assert len(order.overrides) == len(RATES) + len(LISTS)


def test_what_is_odd_is_read_a_second_time_before_anything_is_set() -> None:
    odd = ThrottleChecked(10_000, (REMOVED,))
    _, instructions = replayed(*guarded(SUBMITTED), RESUMED, odd)
    assert instructions == (Wait(),)
    _, instructions = replayed(*guarded(SUBMITTED), RESUMED, odd, TimePassed(11_000), ThrottleChecked(11_000))
    assert isinstance(instructions[0], SetThrottle)
    assert len(instructions[0].overrides) == len(RATES) + len(LISTS)


def test_what_is_odd_twice_is_told_and_left_alone_while_the_rest_is_set_again() -> None:
    odd = ThrottleChecked(10_000, (REMOVED,))
    run, instructions = replayed(*guarded(SUBMITTED), RESUMED, odd, replace(odd, at_ms=SINCE_MS))
    assert isinstance(instructions[0], SetThrottle)
    assert {override.key for override in instructions[0].overrides} == {one.key for one in (*RATES[1:], *LISTS)}
    (told,) = run.problems
    assert told.startswith("someone else had changed a throttle when the run was resumed: ")
    assert not run.was_throttle_kept


def test_whoever_asks_for_a_throttle_meanwhile_gets_it_and_is_told_all_the_same() -> None:
    odd = ThrottleChecked(10_000, (REMOVED,))
    asked = ThrottleRequested(10_500, 1, RATE)
    run, instructions = replayed(*guarded(SUBMITTED), RESUMED, odd, asked, replace(odd, at_ms=SINCE_MS))
    assert isinstance(instructions[0], SetThrottle)
    assert REMOVED.key in {override.key for override in instructions[0].overrides}
    assert len(run.problems) == 1


@pytest.mark.parametrize("value", [RATES[0].before, RATES[0].value])
def test_a_setting_whose_only_intention_got_no_answer_may_be_there_or_not(value: str | None) -> None:
    died = (*guarded(PREPARED)[:2], ThrottleIntended(1_000, RATES))
    seen = () if value == RATES[0].value else (ConfigValue(RATES[0].key, value),)
    run, instructions = replayed(*died, RESUMED, ThrottleChecked(10_000, seen), READ)
    assert isinstance(instructions[0], SetThrottle)
    assert run.problems == ()


def test_a_setting_in_force_whose_next_intention_got_no_answer_may_not_be_as_before_the_run() -> None:
    faster = tuple(replace(one, value="5", unconfirmed=(str(one.value),)) for one in RATES)
    asked = (ThrottleRequested(3_500, 1, 5), ThrottleChecked(3_500))
    died = (*guarded(LISTED), *asked, ThrottleIntended(3_500, faster))
    odd = ThrottleChecked(10_000, (REMOVED,))
    run, _ = replayed(*died, RESUMED, odd, replace(odd, at_ms=SINCE_MS))
    assert len(run.problems) == 1


def test_what_is_in_force_is_read_before_a_throttle_is_set_that_was_asked_for() -> None:
    asked = (*guarded(SUBMITTED), ThrottleRequested(5_000, 1, 5))
    _, (question,) = replayed(*asked)
    assert isinstance(question, CheckThrottle)
    assert {one.key for one in question.overrides} == {one.key for one in (*RATES, *LISTS)}
    _, (order,) = replayed(*asked, ThrottleChecked(5_000))
    assert isinstance(order, SetThrottle)
    assert {(one.key, one.value) for one in order.overrides} == {(one.key, "5") for one in RATES}


def test_a_journal_of_an_earlier_version_has_a_throttle_set_without_reading() -> None:
    _, (order,) = replayed(*SUBMITTED, ThrottleRequested(5_000, 1, 5))
    assert isinstance(order, SetThrottle)


def test_settings_of_a_topic_that_is_gone_are_closed() -> None:
    gone = ThrottleChecked(10_000, gone=(ConfigResource.topic("a"),))
    run, instructions = replayed(*guarded(LISTED), RESUMED, gone, READ)
    assert isinstance(instructions[0], SetThrottle)
    assert {override.key for override in instructions[0].overrides} == {override.key for override in RATES}
    assert {key for key in run.pending_restores if key.broker is None} == set()


def test_a_journal_of_an_earlier_version_goes_on_as_it_was_written() -> None:
    resumed = replace(RESUMED, rereads_first=False)
    again = (ThrottleIntended(10_000, (*RATES, *LISTS)), ThrottleSet(10_000))
    _, instructions = replayed(*guarded(SUBMITTED), resumed, *again)
    assert isinstance(instructions[0], ObserveMoves)
