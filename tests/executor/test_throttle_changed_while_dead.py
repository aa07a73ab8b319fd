"""Others change the throttle of a run while no process executes it: that is told, and nothing starts over it.

The run dies at every row of its journal, as in `test_crashes.py`. What it knows is what is written: what was intended,
and got no answer, may be there or not, and is nobody's offence either way.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest

from kreassign.executor.events import (
    CancelRequested,
    ConfigsRead,
    Event,
    MovesObserved,
    RunResumed,
    RunStarted,
    SubmissionIntended,
    ThrottleIntended,
    ThrottleRequested,
    ThrottleSet,
    VerdictsRecorded,
)
from kreassign.executor.guards import Reaction
from kreassign.executor.journal import read_events
from kreassign.executor.state.setting import PROPAGATION_MS
from kreassign.executor.throttle_ledger import ConfigKey, items
from kreassign.model import ConfigResource, NewTopic
from kreassign.model.run import RunHistory
from kreassign.model.throttle import (
    FOLLOWER_THROTTLED_RATE,
    FOLLOWER_THROTTLED_REPLICAS,
    LEADER_THROTTLED_RATE,
    LEADER_THROTTLED_REPLICAS,
)
from tests.executor.test_crashes import die
from tests.executor.test_foreign_throttle_on_twin import ONE_BY_ONE, SENDER, append, change, clear_all
from tests.executor.twin_runs import RATE, TwinRig
from tests.twin.asking import MEGABYTES

pytestmark = pytest.mark.thorough

TOPIC = ConfigResource.topic("t")
RATE_OF_SENDER = ConfigKey(SENDER, LEADER_THROTTLED_RATE)
LIST = ConfigKey(TOPIC, FOLLOWER_THROTTLED_REPLICAS)
TWO_MOVES = {0: (2, 1), 2: (2, 1)}
LATER_S = 25
"""So long after it is resumed a run gets its throttle back, where it still waits for that."""

FOUND = "someone else had changed a throttle when the run was resumed: "


def new_rig(folder: Path) -> TwinRig:
    return TwinRig(folder, [[0, 1], [1, 0], [0, 1]], size_bytes=4 * MEGABYTES)


def prepared(rig: TwinRig) -> RunStarted:
    return rig.prepared(TWO_MOVES, pace=ONE_BY_ONE)


@pytest.fixture
def rig(tmp_path: Path) -> TwinRig:
    return new_rig(tmp_path)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Event, ...]:
    """The journal of a run that nobody disturbs."""
    rig = new_rig(tmp_path_factory.mktemp("whole"))
    rig.run(prepared(rig))
    return read_events(rig.path())


def in_flight(events: Iterable[Event]) -> int:
    """The first row after which a copy is known to be under way."""
    sent = next(number for number, event in enumerate(events, 1) if isinstance(event, SubmissionIntended))
    return sent + 2


def resume(rig: TwinRig) -> RunHistory:
    """Resume the run, and set its throttle again much later, if it waits for that."""
    rig.seen.clear()
    rig.ask_after(LATER_S, lambda at_ms, number: ThrottleRequested(at_ms, number, RATE))
    return rig.resume()


def sent_before_that(rig: TwinRig) -> list[str]:
    resumed_ms = next(event.at_ms for event in rig.seen if isinstance(event, RunResumed))
    sent = [event for event in rig.seen if isinstance(event, SubmissionIntended)]
    soon = [event for event in sent if event.at_ms - resumed_ms < LATER_S * 1_000]
    return [str(name) for event in soon for name in event.partitions]


def told(found: RunHistory, key: ConfigKey) -> bool:
    """True if a foreign change of this setting is reported."""
    said = [one for one in found.problems if "foreign-throttle" in one or "someone else" in one]
    ways = (f"{key.name} of {key.resource} was", f"{key.name} of {key.resource} is", f"{key.resource}: {key.name} is")
    return any(way in one for one in said for way in ways)


class Known:
    """A journal's facts about one setting: the values of the run that may be there, if any certainly was."""

    def __init__(self, events: Iterable[Event], key: ConfigKey) -> None:
        self.may_be: list[str | None] = []
        self.was_in_force = False
        self.readings_at_end = 0
        is_moving = False
        for event in events:
            is_moving = is_moving or isinstance(event, MovesObserved)
            if isinstance(event, ThrottleIntended):
                self.may_be += [one.value for one in event.overrides if one.key == key]
            elif isinstance(event, ThrottleSet):
                self.may_be, self.was_in_force = self.may_be[-1:], self.was_in_force or bool(self.may_be)
            elif isinstance(event, ConfigsRead) and is_moving:
                self.readings_at_end += 1

    @property
    def is_missed(self) -> bool:
        """True if the run cannot have removed the missing setting itself."""
        return self.was_in_force and not self.readings_at_end and all(map(items, self.may_be))


def remove_rate(rig: TwinRig) -> None:
    if LEADER_THROTTLED_RATE in rig.twin.metadata.configs.get(SENDER, {}):
        change(rig, SENDER, LEADER_THROTTLED_RATE, None)


def remove_list(rig: TwinRig) -> None:
    if FOLLOWER_THROTTLED_REPLICAS in rig.twin.metadata.configs.get(TOPIC, {}):
        change(rig, TOPIC, FOLLOWER_THROTTLED_REPLICAS, None)


def raise_rate(rig: TwinRig) -> None:
    change(rig, SENDER, LEADER_THROTTLED_RATE, "7777777")


def add_entry(rig: TwinRig) -> None:
    append(rig, FOLLOWER_THROTTLED_REPLICAS, "9:4")


@pytest.mark.parametrize("is_written", [True, False], ids=["not done", "done"])
def test_a_removal_during_death_is_told_and_a_doubt_is_not(
    tmp_path: Path, whole: tuple[Event, ...], is_written: bool
) -> None:
    outcomes = set()
    for row in range(1, len(whole) - is_written):
        rig = new_rig(tmp_path / str(row))
        die(rig, prepared(rig), row, is_written=is_written)
        written = read_events(rig.path())
        missed = {key for key in (RATE_OF_SENDER, LIST) if Known(written, key).is_missed}
        remove_rate(rig)
        remove_list(rig)
        found = resume(rig)
        assert {key for key in (RATE_OF_SENDER, LIST) if told(found, key)} == missed, (row, found.problems)
        assert not (missed and sent_before_that(rig)), row
        assert (rig.throttles, found.throttle_residue) == ({}, ()), row
        assert {move.status for move in found.moves} == {"complete"}, row
        # What ended before anybody set the throttle again was not throttled as it was to be.
        assert found.state == ("done" if not missed or was_set_again(rig) else "failed"), (row, found.problems)
        assert found.was_throttle_kept == (not missed), row
        outcomes.add(len(missed))
    assert outcomes == {0, 1, 2}


def was_set_again(rig: TwinRig) -> bool:
    return any(isinstance(event, ThrottleRequested) for event in rig.seen)


def test_a_rate_raised_during_death_is_told_before_it_is_set(tmp_path: Path, whole: tuple[Event, ...]) -> None:
    for row in range(1, len(whole) - 1):
        rig = new_rig(tmp_path / str(row))
        die(rig, prepared(rig), row, is_written=True)
        known = Known(read_events(rig.path()), RATE_OF_SENDER)
        if known.readings_at_end > 1:
            break  # It is restored, and no more the run's.
        raise_rate(rig)
        found = resume(rig)
        # Also a rate that the run has not yet set is theirs since: it is not what the run found before.
        assert told(found, RATE_OF_SENDER), (row, found.problems)
        assert not sent_before_that(rig), row
    else:
        pytest.fail("the run was never done with its throttle")


def test_an_entry_added_during_death_is_no_offence_and_survives(tmp_path: Path, whole: tuple[Event, ...]) -> None:
    for row in range(1, len(whole) - 1):
        rig = new_rig(tmp_path / str(row))
        die(rig, prepared(rig), row, is_written=True)
        add_entry(rig)
        found = resume(rig)
        assert not [one for one in found.problems if "throttle" in one], (row, found.problems)
        assert rig.throttles == {f"{TOPIC} {FOLLOWER_THROTTLED_REPLICAS}": "9:4"}, row


def test_the_first_process_that_sees_it_says_so_at_once_and_in_the_journal(
    rig: TwinRig, whole: tuple[Event, ...]
) -> None:
    die(rig, prepared(rig), in_flight(whole), is_written=True)
    remove_rate(rig)
    during: list[tuple[str, ...]] = []
    rig.after(PROPAGATION_MS / 1_000 + 5, lambda: during.append(rig.runner.run.problems if rig.runner else ()))
    found = resume(rig)
    sentence = f"{FOUND}leader.replication.throttled.rate of broker 0 was not set, and the run had set it to '{RATE}'"
    assert sentence in during[0]
    assert sentence in found.problems
    verdicts = [verdict for event in rig.seen if isinstance(event, VerdictsRecorded) for verdict in event.verdicts]
    assert [verdict.reaction for verdict in verdicts] == [Reaction.HOLD]
    assert any(one.startswith("foreign-throttle (over, from ") for one in found.problems)


def test_a_dying_reader_leaves_the_finding_to_the_next_process(tmp_path: Path, whole: tuple[Event, ...]) -> None:
    """Whatever of the second process is on disk, the third one reports the change, and holds."""
    for row in range(1, 18):
        rig = new_rig(tmp_path / str(row))
        die(rig, prepared(rig), in_flight(whole), is_written=True)
        remove_list(rig)
        die_again(rig, row)
        found = resume(rig)
        assert told(found, LIST), row
        assert sent_before_that(rig) == [], row
        assert (found.state, rig.throttles) == ("done", {}), (row, found.problems)


@pytest.mark.parametrize("is_written", [True, False], ids=["not done", "done"])
def test_a_throttle_taken_off_by_the_run_is_not_called_foreign(tmp_path: Path, is_written: bool) -> None:
    """The rate is off when the run dies before setting it once more; the run itself took it off."""

    def asked(folder: str) -> TwinRig:
        rig = new_rig(tmp_path / folder)
        rig.ask_after(2, lambda at_ms, number: ThrottleRequested(at_ms, number, None))
        rig.ask_after(3, lambda at_ms, number: ThrottleRequested(at_ms, number, RATE))
        return rig

    whole = asked("whole")
    whole.run(prepared(whole))
    kinds = [type(event) for event in read_events(whole.path())]
    requests = [row for row, kind in enumerate(kinds, 1) if kind is ThrottleRequested]
    assert len(requests) == 2
    for row in range(requests[0], requests[1] + 8):
        rig = asked(str(row))
        die(rig, prepared(rig), row, is_written=is_written)
        found = rig.resume()
        assert not [one for one in found.problems if "throttle" in one], (row, kinds[row - 1], found.problems)
        assert (found.state, rig.throttles) == ("done", {}), row


def die_again(rig: TwinRig, rows: int) -> None:
    """Resume the run and die after so many rows."""
    left = rows

    class Gone(BaseException):
        pass

    def listen(event: Event, _: object) -> None:
        nonlocal left
        left -= 1
        if not left:
            raise Gone

    rig.listener = listen
    with pytest.raises(Gone):
        rig.resume()
    rig.listener = None


def test_a_journal_that_was_copied_to_another_host_tells_it_there(
    rig: TwinRig, whole: tuple[Event, ...], tmp_path: Path
) -> None:
    die(rig, prepared(rig), in_flight(whole), is_written=True)
    remove_rate(rig)
    elsewhere = tmp_path / "another host"
    shutil.copytree(rig.path().parent, elsewhere / rig.path().parent.relative_to(rig.state_dir))
    rig.state_dir = elsewhere
    found = resume(rig)
    assert told(found, RATE_OF_SENDER)
    assert sent_before_that(rig) == []


def test_a_cancelled_run_reports_the_change_at_its_end(rig: TwinRig, whole: tuple[Event, ...]) -> None:
    die(rig, prepared(rig), in_flight(whole), is_written=True)
    clear_all(rig)
    rig.ask_after(0, lambda at_ms, number: CancelRequested(at_ms, number, is_now=True))
    found = rig.resume()
    assert told(found, RATE_OF_SENDER)
    assert told(found, LIST)
    assert (found.was_throttle_kept, found.throttle_residue, rig.throttles) == (False, (), {})


@pytest.mark.parametrize("is_made_again", [True, False], ids=["recreated", "deleted"])
def test_the_settings_of_a_topic_that_is_gone_were_not_changed_by_anybody(
    rig: TwinRig, whole: tuple[Event, ...], is_made_again: bool
) -> None:
    die(rig, prepared(rig), in_flight(whole), is_written=True)
    rig.client.delete_topics(["t"]).raise_if_any()
    if is_made_again:
        rig.client.create_topics([NewTopic("t", assignments=((0, 1), (1, 0), (0, 1)))]).raise_if_any()
    found = resume(rig)
    assert not told(found, LIST), found.problems
    assert found.was_throttle_kept
    lists = {FOLLOWER_THROTTLED_REPLICAS, LEADER_THROTTLED_REPLICAS}
    changed = [one.key for event in rig.seen if isinstance(event, ThrottleIntended) for one in event.overrides]
    assert not [key for key in changed if key.name in lists]
    assert (rig.throttles, found.throttle_residue) == ({}, ())


def test_a_broker_down_at_resume_is_read_when_it_is_back(rig: TwinRig, whole: tuple[Event, ...]) -> None:
    """The controller takes the settings of a broker that is down, from others as from the run."""
    rig.let_reach_controllers()
    die(rig, prepared(rig), in_flight(whole), is_written=True)
    rig.twin.stop(2)
    change(rig, ConfigResource.broker(2), FOLLOWER_THROTTLED_RATE, None)
    rig.after(5, lambda: rig.twin.start(2))
    found = resume(rig)
    assert told(found, ConfigKey(ConfigResource.broker(2), FOLLOWER_THROTTLED_RATE)), found.problems
    assert (found.state, rig.throttles) == ("done", {}), found.problems
