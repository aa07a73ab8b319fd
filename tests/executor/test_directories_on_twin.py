"""Runs on the twin whose plans name log directories: copies between brokers and between directories in one run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from kreassign.errors import Unreachable
from kreassign.executor import events
from kreassign.executor.cluster.observations import replica_locations
from kreassign.executor.cluster.readings import partitions_of
from kreassign.executor.history.run_history import RollbackPlan, rollback_plan
from kreassign.executor.journal import read_events
from kreassign.executor.preflight import RunSettings, prepare
from kreassign.executor.state import RunView
from kreassign.model import Batch, TopicPartition, TopicPartitionReplica, error_codes
from kreassign.model.pace import AtWindowEnd, Cap, Caps, Order, Pace, PaceChange, Schedule, Window
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.run import RunHistory
from kreassign.model.throttle import ThrottleRates
from tests.executor.deaths import Died, die
from tests.executor.odd_port import (
    Answer,
    OddPort,
    Real,
    as_it_is,
    each_refused,
    lost_on_the_way_back,
    lost_on_the_way_there,
    not_reached,
    refusal,
)
from tests.executor.twin_runs import RATE, TwinRig, tp

pytestmark = pytest.mark.thorough

D0, D1 = "/data/{}/d0", "/data/{}/d1"
HOME = {0: (0, 1), 1: (0, 1), 2: (0, 1)}
Expectations = Mapping[int, tuple[tuple[int, ...], tuple[str, ...]]]


@pytest.fixture
def rig(tmp_path: Path) -> TwinRig:
    return TwinRig(tmp_path, [list(replicas) for replicas in HOME.values()])


def where(rig: TwinRig, number: int) -> dict[int, str | None]:
    """In which directory each copy of a partition is, by broker."""
    found = replica_locations(rig.client.describe_log_dirs(range(5), partitions=[tp(number)]).ok)
    return {replica.broker: place.current for replica, place in found.items()}


def other(rig: TwinRig, number: int, broker: int) -> str:
    """The directory of a broker in which a copy is not."""
    return (D1 if where(rig, number)[broker] == D0.format(broker) else D0).format(broker)


def started(
    rig: TwinRig, wishes: Expectations, pace: Pace | None = None, throttle: int | None = RATE
) -> events.RunStarted:
    plan = Plan(tuple(PartitionAssignment(tp(number), *wish) for number, wish in wishes.items()))
    return prepare(
        rig.client, plan, RunSettings("run-1", rig.transport.now_ms(), ThrottleRates(throttle), pace=pace or Pace())
    )


def mixed(rig: TwinRig) -> Expectations:
    """Partition 0 goes to another broker, 1 changes a directory, 2 does both."""
    return {
        0: ((2, 1), (D1.format(2), "any")),
        1: ((0, 1), (other(rig, 1, 0), "any")),
        2: ((3, 1), (D1.format(3), other(rig, 2, 1))),
    }


def assert_in_place(rig: TwinRig, wishes: Expectations) -> None:
    for number, (replicas, log_dirs) in wishes.items():
        assert rig.replicas[number] == replicas
        found = where(rig, number)
        wanted = {broker: path for broker, path in zip(replicas, log_dirs, strict=True) if path != "any"}
        assert {broker: found[broker] for broker in wanted} == wanted


def test_moves_between_brokers_and_between_directories_are_made_in_one_run(rig: TwinRig) -> None:
    wishes = mixed(rig)
    found = rig.run(started(rig, wishes))
    assert (found.state, found.problems, found.throttle_residue, rig.throttles) == ("done", (), (), {})
    assert_in_place(rig, wishes)
    assert [move.bytes_copied // RATE for move in found.moves] == [10, 10, 20]


def test_a_list_that_stays_is_not_sent_beside_its_directories(rig: TwinRig) -> None:
    """It could only undo what others make of it, and Kafka 4.4 refuses it where it names a cordoned broker."""
    sent: set[TopicPartition] = set()

    def listened(real: Real, targets: Mapping[TopicPartition, object], **named: object) -> object:
        sent.update(targets)
        return real(targets, **named)

    port, wishes = OddPort(rig.client), mixed(rig)
    port.answer_always("alter_partition_reassignments", listened)
    rig.odd_port = port.port
    assert rig.run(started(rig, wishes)).state == "done"
    assert_in_place(rig, wishes)
    assert sent == {tp(0), tp(2)}


@pytest.mark.parametrize("seconds", [0, 60], ids=["on its way", "there"])
def test_a_copy_that_others_put_elsewhere_meanwhile_stays_there(rig: TwinRig, seconds: float) -> None:
    """The plan names the directory that it was in, which may be the one that is filling up."""
    wishes = {0: ((2, 1), ("any", where(rig, 0)[1] or "")), 1: ((0, 1), (other(rig, 1, 0), "any"))}
    begin, away = started(rig, wishes), other(rig, 0, 1)
    rig.client.alter_replica_log_dirs({TopicPartitionReplica(1, *tp(0)): away}).raise_if_any()
    rig.transport.sleep(seconds)
    found = rig.run(begin)
    assert [move.status for move in found.moves] == ["failed", "complete"]
    assert (found.moves[0].problem or "").startswith("its copy on broker 1 was put into another directory since")
    rig.transport.sleep(60)
    assert (rig.replicas[0], where(rig, 0)[1]) == (HOME[0], away)


def test_copies_between_directories_are_throttled_with_a_rate_of_their_own(rig: TwinRig) -> None:
    during: list[dict[str, str]] = []
    rig.after(3, lambda: during.append(rig.throttles))
    found = rig.run(started(rig, {1: ((0, 1), (other(rig, 1, 0), "any"))}))
    assert during == [{"broker 0 replica.alter.log.dirs.io.max.bytes.per.second": str(RATE)}]
    assert found.ended_ms is not None
    assert (found.ended_ms - found.started_ms) / 1000 > 8
    assert rig.throttles == {}


def test_a_directory_limit_counts_copies_within_a_broker(rig: TwinRig) -> None:
    wishes = {number: ((0, 1), (D1.format(0), "any")) for number in HOME}
    homes = {number: where(rig, number)[0] for number in HOME}
    moving = [number for number, home in homes.items() if home != D1.format(0)]
    pace = Pace(Order.NAME, Caps(log_dir=Cap(moves=1)))
    found = rig.run(started(rig, wishes, pace))
    assert (found.state, found.problems) == ("done", ())
    sent = [event.partitions for event in rig.seen if isinstance(event, events.SubmissionIntended)]
    assert [[name.partition for name in names] for names in sent] == [[number] for number in moving]
    assert_in_place(rig, wishes)


def way_back(rig: TwinRig, done: RunHistory) -> RollbackPlan:
    copies = rig.client.describe_log_dirs(range(5), partitions=[tp(number) for number in rig.replicas]).ok
    return rollback_plan(done.moves, partitions_of(rig.client.describe_topics(["t"]).ok), replica_locations(copies))


def undo(rig: TwinRig, done: RunHistory) -> RunHistory:
    back = way_back(rig, done)
    settings = RunSettings("run-2", rig.transport.now_ms(), ThrottleRates(5 * RATE))
    return rig.run(prepare(rig.client, back.plan, settings, expected=back.expected))


def test_a_rollback_names_a_copy_that_went_on_with_its_broker(tmp_path: Path) -> None:
    odd_rig = OddRig(tmp_path, 10_000 * RATE)
    rig = odd_rig.rig
    rig.let_reach_controllers()
    rig.after(4, lambda: rig.twin.crash(1))
    rig.ask_after(20, cancel_now)
    done = odd_rig.run(throttle=RATE // 8)
    rig.twin.start(1)
    rig.transport.sleep(6)
    assert set(odd_rig.futures) == {1}
    assert way_back(rig, done).skipped == (
        f"t-0: broker 1 copies it into {odd_rig.futures[1]}; roll back again once it is there",
    )
    rig.transport.sleep(3_600)
    assert (undo(rig, done).state, where(rig, 0), rig.replicas[0]) == ("done", odd_rig.home, (0, 1))
    odd_rig.assert_nothing_left()


def test_a_rollback_brings_copies_back_to_their_directories(rig: TwinRig) -> None:
    homes = {number: where(rig, number) for number in HOME}
    done = rig.run(started(rig, mixed(rig), throttle=None))
    assert done.state == "done"
    undone = undo(rig, done)
    assert (undone.state, undone.problems, rig.replicas) == ("done", (), HOME)
    assert where(rig, 1) == homes[1]
    assert where(rig, 2)[1] == homes[2][1]


def test_cancelling_at_once_gives_up_copies_between_directories_too(rig: TwinRig) -> None:
    homes = {number: where(rig, number) for number in HOME}
    rig.ask_after(4, lambda at_ms, number: events.CancelRequested(at_ms, number, is_now=True))
    found = rig.run(started(rig, mixed(rig)))
    assert (found.state, found.problems, rig.throttles) == ("cancelled", (), {})
    assert {number: where(rig, number) for number in HOME} == homes
    under_way = replica_locations(rig.client.describe_log_dirs(range(5), partitions=None).ok)
    assert not [place for place in under_way.values() if place.future is not None]


@pytest.mark.parametrize("is_written", [True, False], ids=["not done", "done"])
def test_a_run_with_directories_that_dies_at_any_row_is_carried_on(tmp_path: Path, is_written: bool) -> None:
    def new(folder: str) -> tuple[TwinRig, Expectations]:
        rig = TwinRig(tmp_path / folder, [[0, 1]])
        return rig, {0: ((3, 1), (D1.format(3), other(rig, 0, 1)))}

    whole, wishes = new("whole")
    whole.run(started(whole, wishes, throttle=None))
    for row in range(1, len(read_events(whole.path())) - is_written):
        rig, wishes = new(str(row))
        die(rig, started(rig, wishes, throttle=None), row, is_written=is_written)
        found = rig.resume()
        assert (found.state, found.problems) == ("done", ()), row
        assert_in_place(rig, wishes)


def test_with_steps_each_copy_goes_to_its_directory(rig: TwinRig) -> None:
    wishes: Expectations = {0: ((3, 2), (D1.format(3), D0.format(2))), 1: ((4, 1), ("any", other(rig, 1, 1)))}
    found = rig.run(started(rig, wishes, Pace(is_stepwise=True)))
    assert (found.state, found.problems) == ("done", ())
    assert_in_place(rig, wishes)


# --- the list and the directories of one move: two requests, of which one may come to nothing ----------------------

ALTER, ALTER_DIRS = "alter_partition_reassignments", "alter_replica_log_dirs"


class OddRig:
    """A rig with one partition that goes from [0,1] to [3,1] while broker 1 changes the directory of its copy."""

    def __init__(self, folder: Path, size_bytes: int = 10 * RATE) -> None:
        self.rig = TwinRig(folder, [[0, 1]], size_bytes=size_bytes)
        self.home = where(self.rig, 0)
        self.wishes: Expectations = {0: ((3, 1), (D1.format(3), other(self.rig, 0, 1)))}
        self.both: Expectations = {0: ((1, 0), (other(self.rig, 0, 1), other(self.rig, 0, 0)))}
        """Both brokers change the directory of their copy, and the list its order."""
        self.within: Expectations = {0: ((0, 1), self.both[0][1][::-1])}
        """The list stays."""
        self.odd = OddPort(self.rig.client)
        self.rig.odd_port = self.odd.port
        self.rig.end_within(3_600)

    @property
    def futures(self) -> dict[int, str]:
        """Directories into which brokers copy now."""
        found = replica_locations(self.rig.client.describe_log_dirs(range(5), partitions=[tp(0)]).ok)
        return {replica.broker: place.future for replica, place in found.items() if place.future is not None}

    def run(self, wishes: Expectations | None = None, throttle: int | None = RATE) -> RunHistory:
        return self.rig.run(started(self.rig, wishes or self.wishes, throttle=throttle))

    def assert_nothing_left(self) -> None:
        assert (self.futures, self.rig.throttles) == ({}, {})
        assert self.rig.client.list_partition_reassignments() == {}


@pytest.fixture
def odd_rig(tmp_path: Path) -> OddRig:
    return OddRig(tmp_path)


def one_refused(code: int, broker: int = 1) -> Answer:
    """One broker refuses its directories; the others take theirs."""

    def answer(real: Real, targets: Mapping[TopicPartitionReplica, str], **named: object) -> object:
        outcome = real({one: path for one, path in targets.items() if one.broker != broker}, **named)
        failed = {one: refusal(code, one) for one in targets if one.broker == broker}
        return Batch(outcome.ok, {**outcome.failed, **failed})

    return answer


TEMPORARY: dict[str, Answer] = {
    "lost on the way there": lost_on_the_way_there,
    "lost on the way back": lost_on_the_way_back,
    "not reached": not_reached,
    "-1": each_refused(error_codes.UNKNOWN_SERVER_ERROR),
    "41": each_refused(error_codes.NOT_CONTROLLER),
}


@pytest.mark.parametrize("times", [1, 4])
@pytest.mark.parametrize("answer", TEMPORARY.values(), ids=TEMPORARY)
def test_a_list_that_came_to_nothing_is_sent_again_beside_directories(
    odd_rig: OddRig, answer: Answer, times: int
) -> None:
    odd_rig.odd.answer(ALTER, *[answer] * times)
    found = odd_rig.run()
    assert (found.state, found.problems) == ("done", ())
    assert_in_place(odd_rig.rig, odd_rig.wishes)
    odd_rig.assert_nothing_left()


def test_a_run_that_dies_between_directories_and_list_is_carried_on(odd_rig: OddRig) -> None:
    def dies(*_: object, **__: object) -> object:
        raise Died

    odd_rig.odd.answer(ALTER, dies)
    with pytest.raises(Died):
        odd_rig.run()
    assert odd_rig.futures
    found = odd_rig.rig.resume()
    assert (found.state, found.problems) == ("done", ())
    assert_in_place(odd_rig.rig, odd_rig.wishes)
    odd_rig.assert_nothing_left()


@pytest.mark.parametrize("code", [error_codes.INVALID_REPLICA_ASSIGNMENT, error_codes.CLUSTER_AUTHORIZATION_FAILED])
@pytest.mark.parametrize("earlier", [0, 1])
def test_a_refused_list_leaves_no_directory_copy_behind(odd_rig: OddRig, code: int, earlier: int) -> None:
    odd_rig.odd.answer(ALTER, *[lost_on_the_way_there] * earlier, each_refused(code))
    found = odd_rig.run(throttle=RATE // 8)
    assert (found.state, [move.status for move in found.moves]) == ("failed", ["failed"])
    assert "the cluster refused it: " in (found.moves[0].problem or "")
    assert where(odd_rig.rig, 0) == odd_rig.home
    odd_rig.assert_nothing_left()


@pytest.mark.parametrize("wishes", ["both", "within"])
@pytest.mark.parametrize("broker", [0, 1])
def test_a_directory_that_one_broker_refuses_leaves_no_copy_on_another(
    odd_rig: OddRig, wishes: str, broker: int
) -> None:
    odd_rig.odd.answer(ALTER_DIRS, one_refused(error_codes.LOG_DIR_NOT_FOUND, broker))
    found = odd_rig.run(getattr(odd_rig, wishes))
    assert (found.state, [move.status for move in found.moves]) == ("failed", ["failed"])
    assert f"on broker {broker}: " in (found.moves[0].problem or "")
    assert where(odd_rig.rig, 0) == odd_rig.home
    odd_rig.assert_nothing_left()


@pytest.mark.parametrize("code", [error_codes.UNKNOWN_SERVER_ERROR, error_codes.KAFKA_STORAGE_ERROR])
@pytest.mark.parametrize("times", [1, 4])
@pytest.mark.parametrize("wishes", ["wishes", "both", "within"])
def test_a_directory_refused_for_now_is_asked_for_again(odd_rig: OddRig, code: int, times: int, wishes: str) -> None:
    odd_rig.odd.answer(ALTER_DIRS, *[one_refused(code)] * times)
    found = odd_rig.run(getattr(odd_rig, wishes))
    assert (found.state, found.problems) == ("done", ())
    assert_in_place(odd_rig.rig, getattr(odd_rig, wishes))
    odd_rig.assert_nothing_left()


def test_a_list_that_others_cancel_leaves_no_directory_copy_behind(odd_rig: OddRig) -> None:
    rig = odd_rig.rig
    rig.between_steps(4, lambda: rig.client.alter_partition_reassignments({tp(0): None}).raise_if_any())
    found = odd_rig.run(throttle=RATE // 8)
    assert (found.state, [move.status for move in found.moves]) == ("failed", ["failed"])
    assert "someone else cancelled or changed the move" in (found.moves[0].problem or "")
    odd_rig.assert_nothing_left()


def lead_list(rig: TwinRig) -> None:
    """Begin the list of the plan, as another tool does."""
    rig.client.alter_partition_reassignments({tp(0): (3, 1)}).raise_if_any()


def test_a_directory_that_the_run_moved_goes_back_beside_a_list_of_others(odd_rig: OddRig) -> None:
    rig = odd_rig.rig
    odd_rig.odd.answer_always(ALTER, each_refused(error_codes.NOT_CONTROLLER))
    rig.between_steps(40, lambda: lead_list(rig))
    found = odd_rig.run()
    assert (found.state, [move.bytes_copied for move in found.moves]) == ("done", [10 * RATE])
    assert_in_place(rig, odd_rig.wishes)
    back = way_back(rig, found)
    assert back.plan.assignments == (PartitionAssignment(tp(0), (3, 1), ("any", str(odd_rig.home[1]))),)
    assert back.skipped == ()


def test_a_directory_of_a_refused_move_goes_back_beside_their_list(odd_rig: OddRig) -> None:
    rig = odd_rig.rig

    def listen(event: events.Event, _: RunView) -> None:
        if isinstance(event, events.CancelIntended):
            rig.transport.sleep(120)

    rig.listener = listen
    odd_rig.odd.answer(ALTER, each_refused(error_codes.INVALID_REPLICA_ASSIGNMENT))
    found = odd_rig.run(throttle=RATE // 8)
    assert (found.state, where(rig, 0)[1]) == ("failed", odd_rig.wishes[0][1][1])
    lead_list(rig)
    rig.transport.sleep(120)
    back = way_back(rig, found)
    assert back.plan.assignments == (PartitionAssignment(tp(0), (3, 1), ("any", str(odd_rig.home[1]))),)
    assert back.skipped == ("t-0: its replicas are [3, 1], changed since by somebody else; look at it",)


def test_cancelling_leaves_a_list_that_others_lead_beside_its_directories(odd_rig: OddRig) -> None:
    rig = odd_rig.rig
    rig.let_reach_controllers()
    odd_rig.odd.answer(ALTER, *[each_refused(error_codes.NOT_CONTROLLER)] * 4)
    rig.after(9, lambda: rig.twin.stop(3))
    rig.between_steps(10, lambda: lead_list(rig))
    rig.ask_after(20, cancel_now)
    found = odd_rig.run(throttle=RATE // 8)
    assert (found.state, odd_rig.futures, [*rig.client.list_partition_reassignments()]) == ("cancelled", {}, [tp(0)])
    told = "t-0 was reassigned by someone else while the cluster refused it to the run; that is left alone"
    assert told in found.problems
    assert rig.throttles == {}


@pytest.mark.parametrize("wishes", ["wishes", "within"])
def test_directory_copies_end_with_the_window_beside_a_refused_list(odd_rig: OddRig, wishes: str) -> None:
    rig = odd_rig.rig
    minute = rig.transport.now_ms() // 60_000
    later = Window((minute + 5) % (24 * 60), (minute + 50) % (24 * 60))
    change = PaceChange(hours=Schedule((later,), at_end=AtWindowEnd.CANCEL))
    during: list[dict[int, str]] = []
    odd_rig.odd.answer_always(ALTER, each_refused(error_codes.NOT_CONTROLLER))
    for seconds in (18, 40):
        rig.between_steps(seconds, lambda: during.append(odd_rig.futures))
    rig.ask_after(20, lambda at_ms, number: events.PaceRequested(at_ms, number, change))
    rig.between_steps(60, lambda: odd_rig.odd.answer_always(ALTER, as_it_is))
    found = odd_rig.run(getattr(odd_rig, wishes), throttle=RATE // 8)
    assert ([bool(futures) for futures in during], found.state) == ([True, False], "done")
    assert_in_place(rig, getattr(odd_rig, wishes))
    odd_rig.assert_nothing_left()


def test_a_directory_reached_before_its_cancellation_is_complete(odd_rig: OddRig) -> None:
    rig = odd_rig.rig

    def listen(event: events.Event, _: RunView) -> None:
        if isinstance(event, events.CancelIntended):
            rig.transport.sleep(120)

    rig.listener = listen
    odd_rig.odd.answer(ALTER, each_refused(error_codes.NOT_CONTROLLER))
    rig.ask_after(4, cancel_now)
    found = odd_rig.run(odd_rig.within)
    assert ([move.status for move in found.moves], found.problems) == (["complete"], ())
    assert_in_place(rig, odd_rig.within)


def cancel_now(at_ms: int, number: int) -> events.CancelRequested:
    return events.CancelRequested(at_ms, number, is_now=True)


def cancel_unstarted(at_ms: int, number: int) -> events.CancelRequested:
    return events.CancelRequested(at_ms, number, is_now=False)


@pytest.mark.parametrize("ask", [cancel_now, cancel_unstarted])
@pytest.mark.parametrize("answer", [lost_on_the_way_there, not_reached, each_refused(error_codes.NOT_CONTROLLER)])
def test_cancelling_a_move_that_was_not_taken_gives_up_its_directories(
    odd_rig: OddRig, ask: Callable[[int, int], events.CancelRequested], answer: Answer
) -> None:
    odd_rig.odd.answer(ALTER, *[answer] * 3)
    odd_rig.rig.ask_after(1, ask)
    found = odd_rig.run(throttle=RATE // 8)
    assert (found.state, found.problems, where(odd_rig.rig, 0)) == ("cancelled", (), odd_rig.home)
    odd_rig.assert_nothing_left()


@pytest.mark.parametrize("wishes", ["wishes", "both", "within"])
@pytest.mark.parametrize("lost_after_ms", [60_000, None], ids=["given up", "cancelled"])
def test_a_broker_that_is_down_ends_the_move_and_is_named(
    odd_rig: OddRig, wishes: str, lost_after_ms: int | None
) -> None:
    """The list may be where it was, or at its target, which the copy on broker 3 reaches while broker 1 is down."""
    rig = odd_rig.rig
    rig.let_reach_controllers()
    rig.after(4, lambda: rig.twin.crash(1))
    if lost_after_ms is None:
        rig.ask_after(20, cancel_now)
    begun = started(rig, getattr(odd_rig, wishes), throttle=RATE // (4 if lost_after_ms else 8))
    found = rig.run(replace(begun, lost_after_ms=lost_after_ms))
    assert found.state == ("failed" if lost_after_ms else "cancelled")
    left = f"broker 1 or its directory was down: it may go on copying into {odd_rig.wishes[0][1][1]} later"
    assert left in (found.moves[0].problem or "")
    assert rig.throttles == {}


def test_a_silent_broker_keeps_its_copy_from_being_cancelled_by_name(odd_rig: OddRig) -> None:
    def silent(real: Real, brokers: Iterable[int], **named: object) -> object:
        outcome = real(brokers, **named)
        return Batch(
            {broker: dirs for broker, dirs in outcome.ok.items() if broker != 1},
            {**outcome.failed, 1: Unreachable("no answer")},
        )

    rig, told, listed = odd_rig.rig, list[str](), list[set[str]]()

    def look() -> None:
        listed.append({entry for name, entry in rig.throttles.items() if name.startswith("topic ") and entry})

    rig.between_steps(3, look)
    rig.between_steps(4, lambda: odd_rig.odd.answer("describe_log_dirs", *[silent] * 60))
    rig.ask_after(4, cancel_now)
    rig.between_steps(20, lambda: told.extend(rig.runner.run.problems if rig.runner else ()))
    rig.between_steps(20, look)
    found = odd_rig.run(throttle=RATE // 8)
    assert (found.state, where(rig, 0)) == ("cancelled", odd_rig.home)
    assert listed == [{"0:0,0:1", "0:3"}, set()]
    named = "t-0 could not be cancelled: broker 1 did not report its log directories: no answer"
    assert named in told
    assert [one.partition(" UTC: ")[2] for one in found.problems if named in one] == [named]
    odd_rig.assert_nothing_left()


def test_a_move_waits_for_a_silent_broker_to_say_where_its_copy_is(odd_rig: OddRig) -> None:
    """Others have put the copy into another directory, to which it would be brought back."""
    rig, away = odd_rig.rig, other(odd_rig.rig, 0, 1)
    begun = started(rig, {0: ((3, 1), ("any", odd_rig.home[1] or ""))})
    rig.client.alter_replica_log_dirs({TopicPartitionReplica(1, *tp(0)): away}).raise_if_any()
    rig.transport.sleep(60)
    until_ms = rig.transport.now_ms() + 20_000

    def silent(real: Real, brokers: Iterable[int], **named: object) -> object:
        outcome = real(brokers, **named)
        if rig.transport.now_ms() >= until_ms or 1 not in outcome.ok:
            return outcome
        answered = {broker: dirs for broker, dirs in outcome.ok.items() if broker != 1}
        return Batch(answered, {**outcome.failed, 1: Unreachable("no answer")})

    odd_rig.odd.answer_always("describe_log_dirs", silent)
    told: list[str] = []
    rig.between_steps(10, lambda: told.extend(rig.runner.run.problems if rig.runner else ()))
    found = rig.run(begun)
    assert (found.state, rig.replicas[0], where(rig, 0)[1]) == ("failed", HOME[0], away)
    assert (found.moves[0].problem or "").startswith("its copy on broker 1 was put into another directory since")
    assert "t-0 is not started: broker 1 did not report the log directory of its copy" in told


def test_a_list_that_others_moved_off_a_broker_that_is_down_ends_the_move(odd_rig: OddRig) -> None:
    """Broker 1 stays away, and deletes its copy if it is ever back."""
    rig = odd_rig.rig
    rig.let_reach_controllers()
    rig.after(4, lambda: rig.twin.crash(1))
    rig.between_steps(60, lambda: rig.client.alter_partition_reassignments({tp(0): (0, 2)}).raise_if_any())
    found = odd_rig.run({0: ((0, 1), ("any", other(rig, 0, 1)))}, throttle=RATE // 8)
    assert [move.status for move in found.moves] == ["failed"]
    assert "changed" in (found.moves[0].problem or "")
    assert rig.throttles == {}


def test_a_move_whose_list_arrived_is_not_called_cancelled(odd_rig: OddRig) -> None:
    """Broker 1 dies before its directory is there; the copy on broker 3 arrives."""
    rig = odd_rig.rig
    rig.let_reach_controllers()
    rig.after(4, lambda: rig.twin.crash(1))
    rig.ask_after(60, cancel_now)
    found = odd_rig.run(throttle=RATE // 4)
    assert (rig.replicas[0], [move.status for move in found.moves]) == ((3, 1), ["failed"])
    assert "its replicas had moved before it could be cancelled" in (found.moves[0].problem or "")
