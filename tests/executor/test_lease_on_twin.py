"""A run that holds the lease of its cluster, loses it, and gets it back; and what an earlier run left. On the twin."""

from __future__ import annotations

from pathlib import Path

import pytest

from kreassign.admin import AdminClient, client_settings
from kreassign.executor.events import (
    Event,
    LeaseLost,
    LeaseRefused,
    LeaseTaken,
    Operator,
    StopRequested,
    SubmissionIntended,
    ThrottleIntended,
    ThrottleRestored,
)
from kreassign.executor.history.run_history import RunHistory, fold
from kreassign.executor.journal import Journal, read_events
from kreassign.executor.lease import ClusterLease, Held, LeaseHolder, LeasePolicy
from kreassign.executor.lease.lease import GROUP_ID, OFFSETS_TOPIC, PROTOCOL_TYPE
from kreassign.executor.lease.originals import read_record
from kreassign.executor.preflight.others import agreed, read_others
from kreassign.executor.runner import Runner
from kreassign.executor.throttle.originals import FoundThrottles
from kreassign.model import ConfigChange, ConfigResource, NewTopic
from kreassign.model.error_codes import NONE
from kreassign.model.throttle import FOLLOWER_THROTTLED_RATE, LEADER_THROTTLED_RATE
from kreassign.operations.lease import LeaseRequest, leased, originals_of
from kreassign.twin.groups.coordinator import Candidate, Claim
from tests.executor.twin_runs import RATE, World, pace

CHANGES = (ThrottleIntended, SubmissionIntended, ThrottleRestored)
MOVES = {0: (0, 2), 1: (1, 3)}


@pytest.fixture
def world(tmp_path: Path) -> World:
    found = World(tmp_path, [[0, 1], [1, 2]])
    found.client.create_topics([NewTopic(OFFSETS_TOPIC, assignments=((0, 1, 2), (1, 2, 3)))]).raise_if_any()
    return found


def client_of(world: World) -> AdminClient:
    settings = client_settings(bootstrap_servers="broker-0:9092,broker-1:9092")
    return AdminClient.connect(settings, clock=world.transport, transport=world.transport)


def lease_of(world: World, run_id: str, policy: LeasePolicy = LeasePolicy.AUTO) -> ClusterLease:
    holder = LeaseHolder(run_id, "alice", f"host-of-{run_id}", world.transport.now_ms())
    return ClusterLease(client_of(world), world.transport, holder, policy)


def request(world: World, run_id: str, folder: str = "elsewhere") -> LeaseRequest:
    """As a run of another state directory asks."""
    folder_of_host = world.state_dir / folder
    scope = frozenset({ConfigResource.topic("t"), *map(ConfigResource.broker, range(5))})
    return LeaseRequest(
        run_id, world.twin.cluster_id, folder_of_host, LeasePolicy.AUTO, Operator("alice", "h"), pytest.fail, scope
    )


def run(world: World, lease: ClusterLease, **options: int) -> RunHistory:
    """Execute the moves with this lease, one after the other."""
    started = world.prepared(MOVES, pace=pace(moves=1), **options)
    with Journal.create(world.state_dir, started) as journal:
        runner = Runner(
            world.client, world.transport, journal, listener=lambda event, _: world.seen.append(event), lease=lease
        )
        world.runner = runner
        return runner.start(started)


OTHER = LeaseHolder("run-2", "alice", "host-of-run-2", 0)


def expire(world: World) -> None:
    """The coordinator forgets the run, as when its machine was paused for longer than a session."""
    assert world.twin.groups.leave(GROUP_ID, "", "run-1", world.twin.now_ms) == NONE


def take_over(world: World) -> None:
    """And another run joins."""
    expire(world)
    name, now_ms = OTHER.run_id, world.twin.now_ms
    protocols = {name: OTHER.encoded()}
    other = Candidate(GROUP_ID, "", name, "", "", 1_800_000, PROTOCOL_TYPE, protocols, may_be_unknown=True)
    joined = world.twin.groups.join(other, now_ms)
    assert joined.group is not None
    world.twin.groups.sync(Claim(GROUP_ID, joined.group.generation, joined.member_id), {}, now_ms)


def give_up(world: World) -> None:
    """The other run is done."""
    assert world.twin.groups.leave(GROUP_ID, "", OTHER.run_id, world.twin.now_ms) == NONE


def first(events: list[Event], kind: type[Event]) -> int:
    return next(number for number, event in enumerate(events) if isinstance(event, kind))


def test_a_run_tells_that_it_holds_the_lease_and_is_done(world: World) -> None:
    lease = lease_of(world, "run-1")
    lease.take()
    done = run(world, lease)
    assert done.state == "done"
    assert [type(event) for event in world.seen[:2]][1] is LeaseTaken
    assert not any(isinstance(event, LeaseLost) for event in world.seen)


def test_a_run_that_lost_the_lease_changes_nothing_until_it_has_it_again(world: World) -> None:
    lease = lease_of(world, "run-1")
    lease.take()
    world.after(4, lambda: take_over(world))
    world.after(200, lambda: give_up(world))
    done = run(world, lease)
    lost, again = first(world.seen, LeaseLost), first(world.seen[3:], LeaseTaken) + 3
    between = world.seen[lost:again]
    assert not [event for event in between if isinstance(event, CHANGES)]
    refused = [event for event in between if isinstance(event, LeaseRefused)]
    assert "run run-2 of alice@host-of-run-2" in refused[0].reason
    assert world.seen[again].at_ms - world.seen[lost].at_ms > 150_000
    assert (done.state, world.replicas) == ("done", {0: (0, 2), 1: (1, 3)})
    assert not world.throttles
    assert any("was lost" in problem for problem in done.problems)


def test_a_run_that_waits_for_the_lease_can_be_stopped_and_writes_nothing_back(world: World) -> None:
    lease = lease_of(world, "run-1")
    lease.take()
    world.after(4, lambda: take_over(world))

    def stop() -> None:
        assert world.runner is not None
        world.runner.request_stop()

    world.after(60, stop)
    left = run(world, lease)
    assert left.state == "paused"
    assert isinstance(world.seen[-1], StopRequested)
    assert not [event for event in world.seen[first(world.seen, LeaseLost) :] if isinstance(event, CHANGES)]


def test_the_journal_of_a_run_that_lost_the_lease_leads_to_the_same_run(world: World) -> None:
    lease = lease_of(world, "run-1")
    lease.take()
    world.after(4, lambda: take_over(world))
    world.after(100, lambda: give_up(world))
    done = run(world, lease)
    again = fold(read_events(world.path()))
    assert (again.phase.value, again.problems, again.lease) == (
        done.state,
        done.problems,
        "held since generation 5 of the group",
    )


def test_a_session_that_ran_out_unnoticed_is_had_again_at_once(world: World) -> None:
    lease = lease_of(world, "run-1")
    lease.take()
    world.after(4, lambda: expire(world))
    done = run(world, lease)
    lost, again = first(world.seen, LeaseLost), first(world.seen[3:], LeaseTaken) + 3
    assert (done.state, again - lost) == ("done", 1)


# What an earlier run left


def set_rate(world: World, broker: int, name: str, value: str) -> None:
    change = {ConfigResource.broker(broker): [ConfigChange.set(name, value)]}
    world.client.incremental_alter_configs(change).raise_if_any()


def killed_run(world: World) -> None:
    """A run of another host that left its throttle set and nothing in flight."""
    with leased(client_of(world), request(world, "killed"), world.transport):
        set_rate(world, 0, LEADER_THROTTLED_RATE, "20000000")
        set_rate(world, 4, FOLLOWER_THROTTLED_RATE, "20000000")


def test_a_later_run_restores_what_was_before_the_earlier_one(world: World) -> None:
    set_rate(world, 0, LEADER_THROTTLED_RATE, "555")
    killed_run(world)
    others = read_others(world.client, prepared := world.prepared(MOVES, throttle=RATE))
    originals = originals_of(world.client, LeasePolicy.AUTO)
    started = agreed(prepared, others, FoundThrottles.REFUSE, originals)
    with (
        leased(client_of(world), request(world, "run-1"), world.transport) as lease,
        Journal.create(world.state_dir, started) as journal,
    ):
        done = Runner(world.client, world.transport, journal, lease=lease).start(started)
    assert done.state == "done"
    assert world.throttles == {f"broker 0 {LEADER_THROTTLED_RATE}": "555"}
    assert read_record(world.client) is None


def test_the_record_goes_when_all_is_restored_and_stays_while_it_is_not(world: World) -> None:
    killed_run(world)
    left = read_record(world.client)
    assert left is not None
    with leased(client_of(world), request(world, "later"), world.transport):
        assert read_record(world.client) == left
        changes = {ConfigResource.broker(0): LEADER_THROTTLED_RATE, ConfigResource.broker(4): FOLLOWER_THROTTLED_RATE}
        steps = {broker: [ConfigChange.delete(name)] for broker, name in changes.items()}
        world.client.incremental_alter_configs(steps).raise_if_any()
    assert read_record(world.client) is None


def test_a_run_of_another_state_directory_is_refused_while_this_one_goes_on(world: World) -> None:
    with (
        leased(client_of(world), request(world, "run-1"), world.transport),
        pytest.raises(Exception, match=r"run run-1 of .* holds the lease of the cluster; one run at a time"),
        leased(client_of(world), request(world, "run-2", "another"), world.transport),
    ):
        pass
    with leased(client_of(world), request(world, "run-2", "another"), world.transport) as lease:
        assert isinstance(lease.status, Held)


def test_a_dead_run_of_this_host_and_state_directory_is_not_waited_for(world: World) -> None:
    started = world.prepared(MOVES)
    Journal.create(world.state_dir / "elsewhere", started).close()
    dead = request(world, started.run_id)
    with leased(client_of(world), dead, world.transport) as lease:
        assert isinstance(lease, ClusterLease)
        lease.membership = None  # as if the process had ended here, without leaving
    with leased(client_of(world), request(world, "run-2"), world.transport) as lease:
        assert isinstance(lease.status, Held)
