"""A run that holds the lease of its cluster, loses it, and gets it back. On the twin."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kreassign.executor.cluster.port import WRITES
from kreassign.executor.events import (
    Event,
    LeaseLost,
    LeaseRefused,
    LeaseTaken,
    SubmissionIntended,
    ThrottleIntended,
    ThrottleRestored,
)
from kreassign.executor.history.run_history import fold
from kreassign.executor.journal import Journal, read_events
from kreassign.executor.lease import (
    GROUP_ID,
    OFFSETS_TOPIC,
    PROTOCOL_TYPE,
    ClusterLease,
    Held,
    Lease,
    LeaseHolder,
    LeasePolicy,
    LeaseStatus,
)
from kreassign.model import ConfigResource, NewTopic
from kreassign.model.error_codes import NONE
from kreassign.model.run import Operator, RunHistory
from kreassign.model.throttle import LEADER_THROTTLED_RATE
from kreassign.operations.leases import LeaseRequest, leased
from kreassign.twin.groups import Candidate, MemberClaim
from tests.approved import approve
from tests.executor.odd_port import OddPort, Real, as_it_is, not_reached
from tests.executor.test_foreign_throttle_on_twin import change
from tests.executor.twin_runs import RATE, TwinRig, pace

pytestmark = pytest.mark.thorough

CHANGES = (ThrottleIntended, SubmissionIntended, ThrottleRestored)
MOVES = {0: (0, 2), 1: (1, 3)}


@pytest.fixture
def rig(tmp_path: Path) -> TwinRig:
    return with_offsets_topic(TwinRig(tmp_path, [[0, 1], [1, 2]]))


def with_offsets_topic(rig: TwinRig) -> TwinRig:
    """A cluster that can keep a lease."""
    rig.client.create_topics([NewTopic(OFFSETS_TOPIC, assignments=((0, 1, 2), (1, 2, 3)))]).raise_if_any()
    return rig


def lease_of(rig: TwinRig, run_id: str, policy: LeasePolicy = LeasePolicy.AUTO) -> ClusterLease:
    holder = LeaseHolder(run_id, "alice", f"host-of-{run_id}", rig.transport.now_ms())
    return ClusterLease(rig.new_client(), rig.transport, holder, policy)


def lost_lease(rig: TwinRig, until_s: int | None = None) -> ClusterLease:
    """A lease that run-1 has, and another run from second 4 on, until it gives it up."""
    lease = lease_of(rig, "run-1")
    lease.take()
    rig.after(4, lambda: take_over(rig))
    if until_s is not None:
        rig.after(until_s, lambda: give_up(rig))
    return lease


def request(rig: TwinRig, run_id: str, folder: str = "elsewhere") -> LeaseRequest:
    """Request the lease as a run of another state directory does."""
    folder_of_host = rig.state_dir / folder
    alice = Operator("alice", "h")
    return LeaseRequest(run_id, rig.twin.cluster_id, folder_of_host, LeasePolicy.AUTO, alice, pytest.fail)


def run(rig: TwinRig, lease: Lease, **options: int) -> RunHistory:
    """Execute the moves with this lease, one after the other."""
    rig.lease = lease
    return rig.run(rig.prepared(MOVES, pace=pace(moves=1), **options))


OTHER = LeaseHolder("run-2", "alice", "host-of-run-2", 0)


def expire(rig: TwinRig) -> None:
    """The coordinator forgets the run, as when its machine was paused for longer than a session."""
    assert rig.twin.groups.leave(GROUP_ID, "", "run-1", rig.twin.now_ms) == NONE


def take_over(rig: TwinRig) -> None:
    """And another run joins."""
    expire(rig)
    name, now_ms = OTHER.run_id, rig.twin.now_ms
    protocols = {name: OTHER.encoded()}
    other = Candidate(GROUP_ID, "", name, "", "", 1_800_000, PROTOCOL_TYPE, protocols, may_be_unknown=True)
    joined = rig.twin.groups.join(other, now_ms)
    assert joined.group is not None
    rig.twin.groups.sync(MemberClaim(GROUP_ID, joined.group.generation, joined.member_id), {}, now_ms)


def give_up(rig: TwinRig) -> None:
    """The other run is done."""
    assert rig.twin.groups.leave(GROUP_ID, "", OTHER.run_id, rig.twin.now_ms) == NONE


def first(events: list[Event], kind: type[Event]) -> int:
    return next(number for number, event in enumerate(events) if isinstance(event, kind))


def test_a_run_tells_that_it_holds_the_lease_and_is_done(rig: TwinRig) -> None:
    lease = lease_of(rig, "run-1")
    lease.take()
    done = run(rig, lease)
    assert done.state == "done"
    assert [type(event) for event in rig.seen[:2]][1] is LeaseTaken
    assert not any(isinstance(event, LeaseLost) for event in rig.seen)


def test_a_run_that_lost_the_lease_changes_nothing_until_it_has_it_again(rig: TwinRig) -> None:
    lease = lost_lease(rig, until_s=200)
    done = run(rig, lease)
    lost, again = first(rig.seen, LeaseLost), first(rig.seen[3:], LeaseTaken) + 3
    between = rig.seen[lost:again]
    assert not [event for event in between if isinstance(event, CHANGES)]
    refused = [event for event in between if isinstance(event, LeaseRefused)]
    assert "run run-2 of alice@host-of-run-2" in refused[0].reason
    assert rig.seen[again].at_ms - rig.seen[lost].at_ms > 150_000
    assert (done.state, rig.replicas) == ("done", {0: (0, 2), 1: (1, 3)})
    assert not rig.throttles
    assert any("was lost" in problem for problem in done.problems)


def test_a_run_with_the_lease_again_sets_its_throttle_again_at_once(rig: TwinRig) -> None:
    """Another run removed it, as it has to, or somebody without a lease did: nobody can tell."""
    lease = lost_lease(rig, until_s=60)
    rig.after(50, lambda: change(rig, ConfigResource.broker(0), LEADER_THROTTLED_RATE, None))
    done = run(rig, lease)
    approve((problem for problem in done.problems if "leader.replication" in problem), "throttle-set-again", RATE=RATE)
    again = rig.seen[first(rig.seen[3:], LeaseTaken) + 3 :]
    set_again = again[first(again, ThrottleIntended)]
    assert set_again.at_ms - again[0].at_ms < 2_000, "it is read once"
    assert (done.state, done.was_throttle_kept, rig.throttles) == ("done", True, {})


@pytest.mark.parametrize("is_read_at_once", [True, False])
def test_a_rate_that_others_set_stays_when_a_run_has_the_lease_again(rig: TwinRig, *, is_read_at_once: bool) -> None:
    if not is_read_at_once:
        odd = OddPort(rig.client)
        rig.odd_port = odd.port
        rig.listener = lambda event, _: (
            odd.answer("describe_configs", *[not_reached] * 4)
            if isinstance(event, LeaseTaken) and event.at_ms > 60_000
            else None
        )
    lease = lost_lease(rig, until_s=60)
    rig.after(50, lambda: change(rig, ConfigResource.broker(0), LEADER_THROTTLED_RATE, "7000000"))
    rig.stop_after(120)
    left = run(rig, lease)
    assert left.state == "paused"
    approve((problem for problem in left.problems if "leaves it" in problem), "foreign-rate-left", RATE=RATE)
    assert rig.throttles == {f"broker 0 {LEADER_THROTTLED_RATE}": "7000000"}


def test_the_journal_of_a_run_that_lost_the_lease_leads_to_the_same_run(rig: TwinRig) -> None:
    lease = lost_lease(rig, until_s=100)
    done = run(rig, lease)
    again = fold(read_events(rig.path()))
    assert (again.phase.value, again.problems, again.control.lease) == (
        done.state,
        done.problems,
        "held since generation 5 of the group",
    )


def test_a_session_that_ran_out_unnoticed_is_had_again_at_once(rig: TwinRig) -> None:
    lease = lease_of(rig, "run-1")
    lease.take()
    rig.after(4, lambda: expire(rig))
    done = run(rig, lease)
    lost, again = first(rig.seen, LeaseLost), first(rig.seen[3:], LeaseTaken) + 3
    assert (done.state, again - lost) == ("done", 1)


class CountedLease:
    """Counts the questions, and is lost at one of them."""

    def __init__(self, rig: TwinRig, lost_at: int | None = None) -> None:
        self.rig, self.lost_at, self.asked = rig, lost_at, 0
        self.lease = lease_of(rig, "run-1")
        self.lease.take()

    @property
    def status(self) -> LeaseStatus | None:
        return self.lease.status

    def beat(self) -> LeaseStatus | None:
        return self.lease.beat()

    def retake(self) -> LeaseStatus | None:
        return self.lease.retake()

    def confirm(self) -> LeaseStatus | None:
        self.asked += 1
        if self.asked == self.lost_at:
            take_over(self.rig)
        return self.lease.confirm()


def test_each_write_is_confirmed_right_before_it_is_sent(rig: TwinRig) -> None:
    lease, odd = CountedLease(rig), OddPort(rig.client)
    asked = [0]

    def written(real: Real, *values: object, **named: object) -> object:
        if named.get("validate_only"):
            return real(*values, **named)
        answer = real(*values, **named)
        assert lease.asked > asked[-1], f"{len(asked)} writes, and only {lease.asked} questions"
        asked.append(lease.asked)
        return answer

    for call in WRITES:
        odd.answer_always(call, written)
    rig.odd_port = odd.port
    assert run(rig, lease).state == "done"
    assert len(asked) > 6


@pytest.mark.parametrize("question", range(2, 14))
def test_nothing_is_written_once_the_lease_is_lost(rig: TwinRig, question: int) -> None:
    """At whichever question, also between the calls of one change; and the run ends as it should later."""
    lease, odd = CountedLease(rig, question), OddPort(rig.client)
    rig.odd_port = odd.port

    def refused(_: Real, *__: object, confirm: Callable[[], None], **___: object) -> object:
        confirm()
        raise AssertionError("written without the lease")

    def forbid() -> None:
        for call in WRITES:
            odd.answer_always(call, refused)

    def give_back() -> None:
        for call in WRITES:
            odd.answer_always(call, as_it_is)
        give_up(rig)

    rig.listener = lambda event, _: forbid() if isinstance(event, LeaseLost) else None
    rig.after(120, give_back)
    done = run(rig, lease)
    assert (done.state, rig.replicas, rig.throttles) == ("done", {0: (0, 2), 1: (1, 3)}, {})
    assert any(isinstance(event, LeaseLost) for event in rig.seen)


def test_a_run_of_another_state_directory_is_refused_meanwhile(rig: TwinRig) -> None:
    with (
        leased(rig.new_client(), request(rig, "run-1"), rig.transport),
        pytest.raises(Exception, match=r"run run-1 of .* holds the lease of the cluster; one run at a time"),
        leased(rig.new_client(), request(rig, "run-2", "another"), rig.transport),
    ):
        pass
    with leased(rig.new_client(), request(rig, "run-2", "another"), rig.transport) as lease:
        assert isinstance(lease.status, Held)


def test_a_dead_run_of_this_host_and_state_directory_is_not_waited_for(rig: TwinRig) -> None:
    started = rig.prepared(MOVES)
    Journal.create(rig.state_dir / "elsewhere", started).close()
    dead = request(rig, started.run_id)
    with leased(rig.new_client(), dead, rig.transport) as lease:
        assert isinstance(lease, ClusterLease)
        lease.membership = None  # as if the process had ended here, without leaving
    with leased(rig.new_client(), request(rig, "run-2"), rig.transport) as lease:
        assert isinstance(lease.status, Held)
