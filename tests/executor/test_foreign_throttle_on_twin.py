"""The throttle is ours, or nothing starts: a second operator on a twin removes or changes it, and answers come late."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import pytest

from kreassign.errors import OutcomeUnknown
from kreassign.executor.events import (
    CancelRequested,
    HoldRequested,
    MovesObserved,
    PlacementState,
    ReleaseRequested,
    RunStarted,
    SubmissionIntended,
    ThrottleIntended,
    ThrottleRequested,
    VerdictsRecorded,
)
from kreassign.executor.guards import GuardName, Reaction
from kreassign.executor.history.run_history import fold
from kreassign.executor.journal import Journal, post_request, read_events
from kreassign.executor.throttle_ledger import ConfigKey, ConfigValue, FoundThrottles
from kreassign.model import Batch, ConfigEntry, ConfigResource
from kreassign.model.error_codes import NOT_CONTROLLER
from kreassign.model.run import RunHistory
from kreassign.model.throttle import (
    BROKER_THROTTLES,
    FOLLOWER_THROTTLED_REPLICAS,
    LEADER_THROTTLED_RATE,
    LEADER_THROTTLED_REPLICAS,
    TOPIC_THROTTLES,
    AdaptiveThrottle,
    BrokerRate,
)
from kreassign.operations.verify import verify_run
from kreassign.twin.controller.decision import DEFAULT_BROKER, Decision
from kreassign.twin.metadata import ConfigChanged
from tests.executor.odd_port import OddPort, Real, each_refused
from tests.executor.twin_runs import RATE, TwinRig, pace

pytestmark = pytest.mark.thorough

AWAY = {0: (2, 1), 1: (3, 0), 2: (2, 1)}
ONE_BY_ONE = pace(moves=1)
BROKERS = tuple(map(ConfigResource.broker, range(5)))
SENDER = BROKERS[0]


@pytest.fixture
def rig(tmp_path: Path) -> TwinRig:
    return TwinRig(tmp_path, [[0, 1], [1, 0], [0, 1]])


def change(rig: TwinRig, resource: ConfigResource, name: str, value: str | None) -> None:
    """Change a setting as a second operator."""
    rig.twin.commit(Decision((ConfigChanged(resource, name, value),), None))


def clear_all(rig: TwinRig) -> None:
    """Remove all throttles as Kafka's tool does with `--cancel` of any plan."""
    for resource, names in (
        (ConfigResource.topic("t"), TOPIC_THROTTLES),
        *((one, BROKER_THROTTLES) for one in BROKERS),
    ):
        for name in names:
            if name in rig.twin.metadata.configs.get(resource, {}):
                change(rig, resource, name, None)


def append(rig: TwinRig, name: str, entry: str) -> None:
    """Add an entry to a list of the topic as a second operator."""
    topic = ConfigResource.topic("t")
    present = rig.twin.metadata.configs.get(topic, {}).get(name)
    change(rig, topic, name, entry if not present else f"{present},{entry}")


def cancel_after(rig: TwinRig, seconds: float) -> None:
    rig.ask_after(seconds, lambda at_ms, number: CancelRequested(at_ms, number, is_now=False))


def sent_after(rig: TwinRig, seconds: float) -> list[str]:
    """Moves that were sent later than so long after the beginning."""
    sent = (event for event in rig.seen if isinstance(event, SubmissionIntended))
    return [str(name) for event in sent if event.at_ms >= seconds * 1000 for name in event.partitions]


def told_of_throttle(found: RunHistory) -> list[str]:
    return [problem for problem in found.problems if "foreign-throttle" in problem or "someone else" in problem]


def test_a_run_whose_throttle_is_removed_starts_nothing_more(rig: TwinRig) -> None:
    rig.after(5, lambda: clear_all(rig))
    cancel_after(rig, 120)
    found = rig.run(rig.prepared(AWAY, pace=ONE_BY_ONE))
    assert sent_after(rig, 5) == []
    assert (found.state, found.was_throttle_kept, found.throttle_residue) == ("failed", False, ())
    (told,) = told_of_throttle(found)
    assert f"leader.replication.throttled.rate of broker 0 is not set, and the run had set it to '{RATE}'" in told
    assert rig.throttles == {}


def test_what_is_in_flight_without_its_throttle_is_named_with_what_to_do(rig: TwinRig) -> None:
    rig.after(2, lambda: change(rig, SENDER, LEADER_THROTTLED_RATE, None))
    rig.run(rig.prepared({0: (2, 1)}, throttle=RATE // 8))
    told = [verdict for event in rig.seen if isinstance(event, VerdictsRecorded) for verdict in event.verdicts]
    breach = next(verdict for verdict in told if verdict.guard is GuardName.FOREIGN_THROTTLE)
    assert breach.reaction is Reaction.HOLD
    assert "what is in flight goes on without it: t-0" in breach.seen
    assert "kreassign throttle" in breach.advice


def test_setting_the_throttle_again_ends_the_hold_and_the_breach(rig: TwinRig) -> None:
    rig.after(5, lambda: clear_all(rig))
    rig.ask_after(60, lambda at_ms, number: ThrottleRequested(at_ms, number, RATE))
    found = rig.run(rig.prepared(AWAY, pace=ONE_BY_ONE))
    assert sent_after(rig, 60) == ["t-1", "t-2"]
    assert (found.state, found.throttle_residue, found.was_throttle_kept) == ("done", (), False)
    (told,) = told_of_throttle(found)
    assert "(over, from " in told
    assert rig.throttles == {}


def asked(rig: TwinRig, seconds: float) -> list[dict[str, str]]:
    """Ask for another throttle; return the rate a while later."""
    during: list[dict[str, str]] = []
    rig.ask_after(seconds, lambda at_ms, number: ThrottleRequested(at_ms, number, RATE // 5))
    rig.after(seconds + 25, lambda: during.append(rig.throttles))
    return during


@pytest.mark.parametrize("reaction", [Reaction.HOLD, Reaction.WARN])
def test_a_foreign_change_before_a_throttle_request_is_told(rig: TwinRig, reaction: Reaction) -> None:
    """All is in flight, so that nothing but an inspection, every thirty seconds, would have seen it."""
    rig.after(8, lambda: change(rig, SENDER, LEADER_THROTTLED_RATE, "7777777"))
    during = asked(rig, 9)
    found = rig.run(rig.prepared({0: (2, 1)}, throttle=RATE // 10, guards={GuardName.FOREIGN_THROTTLE: reaction}))
    what = f"{LEADER_THROTTLED_RATE} of broker 0 was '7777777', and the run had set it to '{RATE // 10}'"
    assert found.problems == (f"someone else had changed a throttle when a throttle was asked for: {what}",)
    assert during[0][f"broker 0 {LEADER_THROTTLED_RATE}"] == str(RATE // 5)
    assert (found.state, found.was_throttle_kept, rig.throttles) == ("done", False, {})


def test_a_run_that_was_left_sets_its_throttle_again_when_it_is_resumed(rig: TwinRig) -> None:
    rig.after(5, lambda: clear_all(rig))
    rig.stop_after(40)
    assert rig.run(rig.prepared(AWAY, throttle=RATE // 8, pace=ONE_BY_ONE)).state == "paused"
    during: list[dict[str, str]] = []
    rig.after(5, lambda: during.append(rig.throttles))
    found = rig.resume()
    assert f"broker 0 {LEADER_THROTTLED_RATE}" in during[0]
    assert (found.state, found.throttle_residue, rig.throttles) == ("done", (), {})


def test_a_run_that_ends_without_its_throttle_does_not_end_well(rig: TwinRig) -> None:
    """All of it is in flight, so there is nothing to hold; and it ends before any guard could look twice."""
    rig.after(2, lambda: clear_all(rig))
    found = rig.run(rig.prepared({0: (2, 1)}))
    assert {move.status for move in found.moves} == {"complete"}
    assert (found.state, found.was_throttle_kept) == ("failed", False)
    assert told_of_throttle(found)
    assert rig.throttles == {}


def test_who_wants_only_to_be_warned_is_warned_and_not_held(rig: TwinRig) -> None:
    rig.after(2, lambda: clear_all(rig))
    guards = {GuardName.FOREIGN_THROTTLE: Reaction.WARN}
    found = rig.run(rig.prepared(AWAY, pace=ONE_BY_ONE, guards=guards))
    assert (found.state, found.was_throttle_kept, rig.throttles) == ("done", False, {})


def test_a_rate_that_somebody_else_sets_stays_and_is_named_with_its_value(rig: TwinRig) -> None:
    rig.after(2, lambda: change(rig, SENDER, LEADER_THROTTLED_RATE, "2000000"))
    found = rig.run(rig.prepared({0: (2, 1)}, throttle=RATE // 4))
    assert (found.state, found.throttle_residue) == ("failed", ())
    assert rig.throttles == {f"broker 0 {LEADER_THROTTLED_RATE}": "2000000"}
    assert any("broker 0: leader.replication.throttled.rate is '2000000'" in problem for problem in found.problems)


def test_an_entry_that_somebody_adds_to_a_list_survives_the_run(rig: TwinRig) -> None:
    # Before and after the first move ends, so that both kinds of change of ours follow.
    rig.after(2, lambda: append(rig, FOLLOWER_THROTTLED_REPLICAS, "2:4"))
    rig.after(20, lambda: append(rig, FOLLOWER_THROTTLED_REPLICAS, "9:4"))
    found = rig.run(rig.prepared(AWAY, pace=ONE_BY_ONE))
    assert (found.state, found.problems, found.throttle_residue) == ("done", (), ())
    assert rig.throttles == {"topic t follower.replication.throttled.replicas": "2:4,9:4"}


def test_a_list_that_somebody_makes_a_wildcard_is_theirs(rig: TwinRig) -> None:
    topic = ConfigResource.topic("t")
    rig.after(2, lambda: change(rig, topic, FOLLOWER_THROTTLED_REPLICAS, "*"))
    found = rig.run(rig.prepared({0: (2, 1)}, throttle=RATE // 4))
    assert rig.throttles == {"topic t follower.replication.throttled.replicas": "*"}
    assert (found.state, found.throttle_residue) == ("failed", ())


def test_a_found_wildcard_is_left_as_it_was(rig: TwinRig) -> None:
    topic = ConfigResource.topic("t")
    change(rig, topic, FOLLOWER_THROTTLED_REPLICAS, "*")
    found = rig.run(rig.prepared(AWAY, pace=ONE_BY_ONE))
    assert (found.state, found.problems, found.throttle_residue) == ("done", (), ())
    assert rig.throttles == {f"topic t {FOLLOWER_THROTTLED_REPLICAS}": "*"}


@pytest.mark.parametrize("seconds", [5, 15], ids=["before its first entry", "with entries"])
def test_a_run_goes_on_once_somebody_throttles_every_replica(rig: TwinRig, seconds: float) -> None:
    """`*` throttles the replicas of the run, too, and Kafka refuses entries beside it."""
    rig.end_within(600)
    for name in TOPIC_THROTTLES:
        rig.after(seconds, lambda name=name: change(rig, ConfigResource.topic("t"), name, "*"))
    rig.ask_after(10, ReleaseRequested)
    found = rig.run(rig.prepared(AWAY, pace=ONE_BY_ONE), lambda number: HoldRequested(0, number))
    assert (rig.replicas, found.was_throttle_kept) == (AWAY, True)
    assert rig.throttles == {f"topic t {name}": "*" for name in TOPIC_THROTTLES}
    assert {one.split(":")[0] for one in told_of_throttle(found)} == {
        "someone else changed a throttle during the run, and it was left so"
    }


WILDCARD = (ConfigResource.topic("t"), FOLLOWER_THROTTLED_REPLICAS)


def adopting(rig: TwinRig, reaction: Reaction) -> RunStarted:
    """A run on a topic with a forgotten `*`, which is to be gone when the run has ended."""
    change(rig, *WILDCARD, "*")
    none, every = (ConfigValue(ConfigKey(*WILDCARD), value) for value in (None, "*"))
    started = rig.prepared(AWAY, guards={GuardName.FOREIGN_THROTTLE: reaction}, pace=ONE_BY_ONE)
    return replace(started, found=FoundThrottles.REMOVE, originals=(none,), adopted=(every,))


@pytest.mark.parametrize("theirs", [None, "7:0,7:1"], ids=["nothing", "entries"])
@pytest.mark.parametrize("reaction", [Reaction.OFF, Reaction.WARN, Reaction.HOLD])
def test_a_run_goes_on_once_somebody_replaces_an_adopted_wildcard(
    rig: TwinRig, reaction: Reaction, theirs: str | None
) -> None:
    """Kafka refuses `*` in a list together with entries, also when both are appended at once."""
    started = adopting(rig, reaction)
    rig.end_within(600)
    rig.after(5, lambda: change(rig, *WILDCARD, theirs))
    rig.ask_after(60, lambda at_ms, number: ThrottleRequested(at_ms, number, RATE))
    found = rig.run(started)
    left = {} if theirs is None else {f"topic t {FOLLOWER_THROTTLED_REPLICAS}": theirs}
    assert (rig.replicas, found.throttle_residue, rig.throttles) == (AWAY, (), left)


@pytest.mark.parametrize("seconds", [3, 27], ids=["before its first entry", "with entries"])
def test_an_adopted_wildcard_that_others_remove_is_not_set_again(rig: TwinRig, seconds: float) -> None:
    started, shown = adopting(rig, Reaction.OFF), list[str]()
    rig.after(seconds, lambda: change(rig, *WILDCARD, None))
    rig.ask_after(20, ReleaseRequested)
    rig.ask_after(33, lambda at_ms, number: ThrottleRequested(at_ms, number, RATE))
    rig.listener = lambda *_: shown.append(rig.throttles.get(f"topic t {FOLLOWER_THROTTLED_REPLICAS}", ""))
    found = rig.run(started, lambda number: HoldRequested(0, number))
    is_wildcard = [value == "*" for value, _ in groupby(shown)]
    assert (found.state, rig.throttles, is_wildcard.count(True)) == ("done", {}, 1)


@pytest.mark.parametrize(("resource", "name", "value"), [
    (SENDER, LEADER_THROTTLED_RATE, str(RATE)),
    (ConfigResource.topic("t"), FOLLOWER_THROTTLED_REPLICAS, "*"),
])  # fmt: skip
def test_a_throttle_from_before_the_run_that_is_removed_holds_it(
    rig: TwinRig, resource: ConfigResource, name: str, value: str
) -> None:
    """It is as the run needs it, so that the run has nothing to change: without it copies would not be throttled."""
    change(rig, resource, name, value)
    rig.after(5, lambda: change(rig, resource, name, None))
    cancel_after(rig, 60)
    found = rig.run(rig.prepared(AWAY, pace=ONE_BY_ONE))
    assert sent_after(rig, 5) == []
    assert any(f"{name} of {resource} is not set" in one for one in told_of_throttle(found))
    # A list from which entries were taken may be empty, and throttles nothing.
    assert (found.was_throttle_kept, set(rig.throttles.values()) - {""}) == (False, set())


def show_changes_late(rig: TwinRig) -> list[ConfigResource]:
    """Let brokers show the settings of before, the first time that they are asked after a change. Returns which did."""
    before: dict[ConfigResource, Mapping[str, ConfigEntry]] = {}
    late: list[ConfigResource] = []

    def alter(real: Real, changes: Mapping[ConfigResource, object], **options: object) -> object:
        before.update(rig.client.describe_configs(list(changes)).ok)
        return real(changes, **options)

    def describe(real: Real, resources: Iterable[ConfigResource], **options: object) -> object:
        found: Batch[ConfigResource, Mapping[str, ConfigEntry]] = real(resources, **options)
        stale = {one: before.pop(one) for one in found.ok if one in before}
        late.extend(stale)
        return Batch({**found.ok, **stale}, found.failed)

    odd = OddPort(rig.client)
    odd.answer_always("incremental_alter_configs", alter)
    odd.answer_always("describe_configs", describe)
    rig.odd_port = odd.port
    return late


@pytest.mark.parametrize("throttle", [RATE, 4 * RATE])
def test_stale_answers_make_nobody_a_foreigner_and_leave_nothing_behind(rig: TwinRig, throttle: int) -> None:
    shown_late = show_changes_late(rig)
    rig.ask_after(4, lambda at_ms, number: ThrottleRequested(at_ms, number, throttle // 2))
    found = rig.run(rig.prepared(AWAY, throttle=throttle, pace=ONE_BY_ONE))
    assert len(shown_late) > 3
    assert (found.state, found.problems, found.throttle_residue, rig.throttles) == ("done", (), (), {})


@pytest.mark.parametrize("behind_after_s", [0.0, 2.0], ids=["before it has a rate", "with its first rate"])
def test_a_broker_that_stays_behind_keeps_no_rate_when_it_shows_an_old_one(rig: TwinRig, behind_after_s: float) -> None:
    """Seed 567 of the simulation: what such a broker showed for more than a minute was taken for somebody else's."""
    rig.after(behind_after_s, lambda: rig.twin.views.hold_back(1, None))
    rig.ask_after(4, lambda at_ms, number: ThrottleRequested(at_ms, number, 2 * RATE))
    warned = {GuardName.FOREIGN_THROTTLE: Reaction.WARN}
    rig.run(rig.prepared(AWAY, guards=warned, pace=ONE_BY_ONE))
    rig.twin.views.release(1)
    assert rig.throttles == {}


@pytest.mark.parametrize("is_shown_late", [False, True])
@pytest.mark.parametrize("default", [RATE, 90 * RATE])
def test_a_rate_for_all_brokers_is_nobodys_foreign_setting_and_stays(
    rig: TwinRig, default: int, *, is_shown_late: bool
) -> None:
    """A broker without a rate of its own shows that of all brokers, also for a moment after it got its own."""
    for name in BROKER_THROTTLES[:2]:
        change(rig, DEFAULT_BROKER, name, str(default))
    before = dict(rig.twin.metadata.configs[DEFAULT_BROKER])
    shown_late = show_changes_late(rig) if is_shown_late else []
    rig.ask_after(4, lambda at_ms, number: ThrottleRequested(at_ms, number, 2 * RATE))
    found = rig.run(rig.prepared(AWAY, pace=ONE_BY_ONE))
    assert bool(shown_late) is is_shown_late
    assert (found.state, found.problems, found.throttle_residue, rig.throttles) == ("done", (), (), {})
    assert rig.twin.metadata.configs[DEFAULT_BROKER] == before
    assert verify_run(rig.client, rig.path()).is_ok


def test_what_a_run_gave_up_as_somebody_elses_is_found_when_it_is_verified(rig: TwinRig) -> None:
    rig.after(2, lambda: change(rig, SENDER, LEADER_THROTTLED_RATE, "2000000"))
    found = rig.run(rig.prepared({0: (2, 1)}, throttle=RATE // 4))
    assert (fold(read_events(rig.path())).pending_restores, found.throttle_residue) == ({}, ())
    (finding,) = verify_run(rig.client, rig.path()).findings
    assert (finding.kind, finding.subject) == ("throttle", "broker 0")
    assert "2000000" in finding.sentence


def keep_settings_to_themselves(rig: TwinRig, from_ms: int, to_ms: int) -> OddPort:
    """Let brokers not tell their settings for a while. Returns the port."""

    def describe(real: Real, resources: Iterable[ConfigResource], **options: object) -> object:
        found: Batch[ConfigResource, object] = real(resources, **options)
        if not from_ms <= rig.transport.now_ms() < to_ms:
            return found
        return Batch({}, {**found.failed, **{one: OutcomeUnknown("no answer in time") for one in found.ok}})

    odd = OddPort(rig.client)
    odd.answer_always("describe_configs", describe)
    rig.odd_port = odd.port
    return odd


def test_time_in_which_the_throttle_is_unreadable_fails_no_move(rig: TwinRig) -> None:
    """The cluster refuses the move for now. It is not sent again until then, so nothing was sent in vain."""
    odd = keep_settings_to_themselves(rig, 5_000, 200_000)
    odd.answer("alter_partition_reassignments", *[each_refused(NOT_CONTROLLER)] * 3)
    found = rig.run(rig.prepared({0: (2, 1)}))
    assert (found.state, rig.replicas[0], rig.throttles) == ("done", (2, 1), {})


def test_nothing_is_sent_while_the_throttle_is_unreadable(rig: TwinRig) -> None:
    keep_settings_to_themselves(rig, 5_000, 60_000)
    told: list[tuple[str, ...]] = []
    rig.after(40, lambda: told.append(rig.runner.run.problems if rig.runner else ()))
    found = rig.run(rig.prepared(AWAY, pace=ONE_BY_ONE))
    sent = [event.at_ms for event in rig.seen if isinstance(event, SubmissionIntended)]
    assert not [at_ms for at_ms in sent if 5_000 <= at_ms < 60_000]
    assert any(one.startswith("nothing is started while the throttle of broker 0 cannot be read") for one in told[0])
    assert (found.state, rig.throttles) == ("done", {})
    assert all(re.match(r"over, .*(t-\d|each) is not started: min.insync.replicas", one) for one in found.problems)


def test_a_rate_that_follows_the_traffic_does_not_undo_what_others_set(rig: TwinRig) -> None:
    rig.after(5, lambda: change(rig, SENDER, LEADER_THROTTLED_RATE, "7777777"))
    cancel_after(rig, 120)
    adaptive = AdaptiveThrottle(20 * RATE, floor_bytes_per_s=RATE)
    found = rig.run(rig.prepared(AWAY, throttle=None, adaptive=adaptive, pace=ONE_BY_ONE))
    assert told_of_throttle(found)
    assert rig.throttles == {f"broker 0 {LEADER_THROTTLED_RATE}": "7777777"}


def test_a_list_removed_just_before_its_change_stays_removed(tmp_path: Path) -> None:
    """A copy that has caught up is taken off its list. That must not bring back, unseen, what others took off it."""

    def run(folder: str, removed_ms: int | None) -> tuple[TwinRig, RunHistory]:
        rig = TwinRig(tmp_path / folder, [[0, 1], [1, 0]], size_bytes=20 * RATE)
        if removed_ms is not None:
            rig.after(
                removed_ms / 1000, lambda: change(rig, ConfigResource.topic("t"), LEADER_THROTTLED_REPLICAS, None)
            )
        return rig, rig.run(rig.prepared({0: (2, 1), 1: (3, 0)}, per_broker=(BrokerRate(3, RATE // 8),)))

    def first_arrival_ms(rig: TwinRig) -> int:
        observed = (event for event in rig.seen if isinstance(event, MovesObserved))
        return next(
            event.at_ms for event in observed for one in event.observations if one.placement is PlacementState.ARRIVED
        )

    whole, undisturbed = run("whole", None)
    assert (undisturbed.state, told_of_throttle(undisturbed)) == ("done", [])
    rig, found = run("disturbed", first_arrival_ms(whole) - 500)
    assert first_arrival_ms(rig) == first_arrival_ms(whole)
    (told,) = told_of_throttle(found)
    assert f"{LEADER_THROTTLED_REPLICAS} of topic t is not set, and the run had set it to '0:0,0:1,1:0,1:1'" in told
    intended = [one for event in rig.seen if isinstance(event, ThrottleIntended) for one in event.overrides]
    assert [one.value for one in intended if one.key.name == LEADER_THROTTLED_REPLICAS] == ["0:0,0:1,1:0,1:1"]
    assert (found.was_throttle_kept, rig.throttles) == (False, {})


@pytest.mark.parametrize("theirs", ["500000", str(RATE)], ids=["another one", "the same"])
def test_a_rate_set_while_a_run_is_paused_is_not_overwritten(rig: TwinRig, theirs: str) -> None:
    """Nothing was set when the run began, and its pause restored that: a rate is of others, until it is gone."""
    rig.stop_after(3)
    name = f"broker 0 {LEADER_THROTTLED_RATE}"
    assert rig.run(rig.prepared(AWAY), lambda number: HoldRequested(0, number)).state == "paused"
    change(rig, SENDER, LEADER_THROTTLED_RATE, theirs)
    during: list[str | None] = []
    rig.after(50, lambda: during.append(rig.throttles.get(name)))
    rig.after(60, lambda: change(rig, SENDER, LEADER_THROTTLED_RATE, None))
    rig.after(75, lambda: during.append(rig.throttles.get(name)))
    resumed_ms = rig.transport.now_ms()
    found = rig.resume()
    assert during == [theirs, str(RATE)]
    sent_ms = [event.at_ms for event in rig.seen if isinstance(event, SubmissionIntended)]
    assert all(at_ms >= resumed_ms + 60_000 for at_ms in sent_ms)
    (told,) = told_of_throttle(found)
    assert told.endswith(f"{LEADER_THROTTLED_RATE} of broker 0 is '{theirs}'")
    assert (found.state, rig.throttles) == ("done", {})


def test_a_paused_run_that_is_cancelled_sets_nothing(rig: TwinRig) -> None:
    rig.stop_after(3)
    assert rig.run(rig.prepared(AWAY), lambda number: HoldRequested(0, number)).state == "paused"
    rig.seen.clear()

    def cancel() -> None:
        post_request(rig.path(), lambda number: CancelRequested(rig.transport.now_ms(), number, is_now=False))

    journal, events = Journal.resume(rig.path(), rig.twin.cluster_id)
    with journal:
        assert rig.new_runner(journal).resume(events, before_anything=cancel).state == "cancelled"
    assert not [event for event in rig.seen if isinstance(event, ThrottleIntended)]


def test_the_rate_of_a_source_that_comes_back_is_not_overwritten(rig: TwinRig) -> None:
    rig.twin.stop(0)
    rig.transport.sleep(30)
    started = rig.prepared({0: (2, 1)})
    change(rig, SENDER, LEADER_THROTTLED_RATE, "2000000")
    rig.after(20, lambda: rig.twin.start(0))
    found = rig.run(started)
    name = f"broker 0 {LEADER_THROTTLED_RATE}"
    assert rig.throttles == {name: "2000000"}
    assert not [
        one
        for event in rig.seen
        if isinstance(event, ThrottleIntended)
        for one in event.overrides
        if one.key == (SENDER, LEADER_THROTTLED_RATE)
    ]
    assert found.state == "done"
