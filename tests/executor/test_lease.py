"""One writer per cluster: who gets the lease, who keeps it, what a former holder is told. In the twin's own time."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest

from kreassign.admin import AdminClient, client_settings
from kreassign.errors import ClusterError
from kreassign.executor.lease import (
    GROUP_ID,
    OFFSETS_TOPIC,
    SESSION_MS,
    ClusterLease,
    Forgone,
    Held,
    LeaseHolder,
    LeasePolicy,
    Taken,
    holder_of,
    offsets_topic,
    present_holder,
)
from kreassign.model import Batch, NewTopic, error_codes
from kreassign.model.requests import Group, GroupMember
from kreassign.twin.access import ALL_GROUPS, ANONYMOUS, CLUSTER_OPERATIONS, Allow, Operation, Permissions
from kreassign.twin.cluster import Twin
from kreassign.twin.transport import TwinTransport
from tests.executor.odd_port import (
    Answer,
    OddPort,
    Real,
    as_it_is,
    lost_on_the_way_there,
    not_reached,
    refusal,
    refused,
)
from tests.twin.asking import twin

TOPICS = {OFFSETS_TOPIC: [[0, 1], [1, 2], [2, 3]], "t": [[0, 1]]}


class Hosts:
    """Runs of different machines on one cluster."""

    def __init__(self, cluster: Twin) -> None:
        self.twin = cluster
        self.time = TwinTransport(cluster)

    def client(self) -> AdminClient:
        settings = client_settings(bootstrap_servers="broker-0:9092,broker-1:9092,broker-2:9092,broker-3:9092")
        return AdminClient.connect(settings, clock=self.time, transport=self.time)

    def lease(self, run_id: str, policy: LeasePolicy = LeasePolicy.AUTO, *, was_held: bool = False) -> ClusterLease:
        holder = LeaseHolder(run_id, "alice", f"host-of-{run_id}", self.time.now_ms())
        return ClusterLease(self.client(), self.time, holder, policy, was_held)

    def all_down(self) -> None:
        """Answers of brokers that are down for the group."""
        for broker in self.twin.processes.ids:
            self.twin.freeze(broker)

    def all_back(self) -> None:
        for broker in self.twin.processes.ids:
            self.twin.unfreeze(broker)


@pytest.fixture
def hosts() -> Hosts:
    return Hosts(twin(TOPICS))


def test_two_runs_cannot_hold_the_lease_at_once(hosts: Hosts) -> None:
    first, second = hosts.lease("one"), hosts.lease("two")
    assert first.take() == Held(1)
    refused = second.take()
    assert isinstance(refused, Taken)
    assert "run one of alice@host-of-one (since " in refused.reason
    assert first.confirm() == Held(1)


def test_everybody_can_see_who_holds_it(hosts: Hosts) -> None:
    assert present_holder(hosts.client()) is None
    lease = hosts.lease("one")
    lease.take()
    assert present_holder(hosts.client()) == lease.holder
    lease.release()
    assert present_holder(hosts.client()) is None


@pytest.mark.parametrize("since", ["Infinity", "1e400", "253402300800000", "-1", "true", "[" * 99_999])
def test_a_holder_without_a_readable_time_is_named_all_the_same(since: str) -> None:
    """Any client that may join the group can write any metadata."""
    member = GroupMember("member-1", "run-1", "ann", "10.0.0.1", f'["run-1","ann","host",{since}]'.encode())
    assert str(holder_of(member)).startswith("run run-1 of ann@10.0.0.1 ")


def test_the_next_run_gets_it_at_once_when_the_first_is_done(hosts: Hosts) -> None:
    first, second = hosts.lease("one"), hosts.lease("two")
    first.take()
    first.release()
    assert isinstance(second.take(), Held)


def test_a_session_of_silence_gives_the_lease_to_the_next_run(hosts: Hosts) -> None:
    first, second = hosts.lease("one"), hosts.lease("two")
    first.take()
    hosts.twin.advance(SESSION_MS - 1_000)
    assert isinstance(second.take(), Taken)
    hosts.twin.advance(1_000)
    assert isinstance(second.take(), Held)


def test_a_holder_that_only_waits_keeps_it(hosts: Hosts) -> None:
    first, second = hosts.lease("one"), hosts.lease("two")
    first.take()
    for _ in range(5 * SESSION_MS // 1_000):
        hosts.time.sleep(1.0)
        assert first.beat() == Held(1)
    assert isinstance(second.take(), Taken)


def test_a_frozen_holder_finds_out_before_it_changes_anything(hosts: Hosts) -> None:
    first, second = hosts.lease("one"), hosts.lease("two")
    first.take()
    hosts.twin.advance(SESSION_MS)
    second.take()
    assert isinstance(first.confirm(), Taken)
    told = first.retake()
    assert isinstance(told, Taken)
    assert "run two of alice@host-of-two" in told.reason
    second.release()
    assert isinstance(first.retake(), Held)


def test_a_former_holder_that_leaves_takes_nothing_from_its_successor(hosts: Hosts) -> None:
    first, second = hosts.lease("one"), hosts.lease("two")
    first.take()
    hosts.twin.advance(SESSION_MS)
    second.take()
    first.release()
    assert isinstance(second.confirm(), Held)


def test_a_resumed_run_takes_its_place_and_fences_its_old_process(hosts: Hosts) -> None:
    former, latter = hosts.lease("one"), hosts.lease("one")
    former.take()
    assert isinstance(latter.take(), Held)
    assert isinstance(former.confirm(), Taken)
    # It does not fight for it: the other process is the same run.
    assert isinstance(former.retake(), Taken)
    former.release()
    assert isinstance(latter.confirm(), Held)


def test_the_lease_survives_the_move_of_its_coordinator(hosts: Hosts) -> None:
    lease = hosts.lease("one")
    lease.take()
    for broker in hosts.twin.processes.ids:
        hosts.twin.stop(broker)
        assert isinstance(lease.confirm(), Held)
        hosts.twin.start(broker)
        hosts.twin.advance(5_000)


def test_an_unreachable_coordinator_leaves_the_lease_for_a_session(hosts: Hosts) -> None:
    lease = hosts.lease("one", LeasePolicy.REQUIRE)
    lease.take()
    hosts.all_down()
    assert lease.confirm() == Held(1)
    while isinstance(lease.confirm(), Held):
        assert hosts.time.now_ms() < 2 * SESSION_MS
    found = lease.confirm()
    assert isinstance(found, Taken)
    assert "does not answer" in found.reason
    hosts.all_back()
    hosts.twin.advance(30_000)
    assert isinstance(lease.retake(), Held)


@pytest.mark.parametrize("policy", [LeasePolicy.AUTO, LeasePolicy.REQUIRE])
def test_a_run_cut_off_from_the_coordinator_waits_without_end(hosts: Hosts, policy: LeasePolicy) -> None:
    lease = hosts.lease("one", policy)
    lease.take()
    assert isinstance(lease.port, AdminClient)
    odd = OddPort(lease.port)
    for call in ("heartbeat", "describe_group", "join_group"):
        odd.answer_always(call, not_reached)
    lease.port = odd.port
    began_s = hosts.time.monotonic_s()
    while isinstance(lease.confirm(), Held):
        hosts.time.sleep(1.0)
    assert hosts.time.monotonic_s() - began_s < SESSION_MS / 1000 - 10, "what is sent now arrives within the session"
    hosts.twin.advance(SESSION_MS)
    other = hosts.lease("two")
    assert isinstance(other.take(), Held)
    for _ in range(100):
        hosts.time.sleep(60.0)
        other.confirm()
        assert isinstance(found := lease.retake(), Taken)
        assert "so another may hold it" in found.reason
        assert found == lease.confirm()


@pytest.mark.parametrize("answer", [not_reached, lost_on_the_way_there, refused(error_codes.UNKNOWN_SERVER_ERROR)])
@pytest.mark.parametrize("call", ["describe_topics", "join_group"])
def test_a_silent_coordinator_permits_no_beginning(hosts: Hosts, call: str, answer: Answer) -> None:
    lease = hosts.lease("one")
    assert isinstance(lease.port, AdminClient)
    odd = OddPort(lease.port)
    odd.answer_always(call, answer)
    lease.port = odd.port
    try:
        assert not isinstance(lease.take(), Forgone | Held)
    except ClusterError:
        assert lease.status is None


def no_members(real: Real, *args: object, **named: object) -> Group:
    """The answer of a coordinator that has just taken over."""
    return replace(cast(Group, real(*args, **named)), members=())


def test_one_answer_does_not_make_the_lease_free(hosts: Hosts) -> None:
    lease = hosts.lease("one")
    lease.take()
    odd = OddPort(hosts.client())
    odd.answer("describe_group", no_members)
    assert present_holder(odd.port) == lease.holder
    odd.answer("describe_group", no_members, no_members)
    assert present_holder(odd.port) is None


def test_a_run_without_a_lease_goes_on_once_it_can_look_again() -> None:
    hosts = Hosts(twin())
    lease = hosts.lease("one", LeasePolicy.AUTO)
    assert isinstance(lease.take(), Forgone)
    odd = OddPort(hosts.client())
    lease.port = odd.port
    odd.answer_always("describe_topics", not_reached)
    hosts.time.sleep(lease.beat_s)
    assert isinstance(lease.confirm(), Taken)
    assert isinstance(lease.retake(), Taken)
    odd.answer_always("describe_topics", refused(error_codes.TOPIC_AUTHORIZATION_FAILED))
    assert isinstance(lease.retake(), Taken), "another run may have it where this one may not look"
    odd.answer_always("describe_topics", as_it_is)
    assert isinstance(lease.retake(), Forgone)


def no_topic(real: object, names: list[str], **_: object) -> Batch[str, object]:
    """The answer of a broker that does not know any topic yet."""
    del real
    return Batch({}, {name: refusal(error_codes.UNKNOWN_TOPIC_OR_PARTITION, name) for name in names})


def test_one_broker_that_knows_no_topic_yet_is_not_believed(hosts: Hosts) -> None:
    odd = OddPort(hosts.client())
    odd.answer("describe_topics", no_topic)
    assert offsets_topic(odd.port) is not None
    odd.answer("describe_topics", no_topic, no_topic)
    assert offsets_topic(odd.port) is not None
    odd.answer_always("describe_topics", no_topic)
    assert offsets_topic(odd.port) is None
    odd.answer_always("describe_topics", lambda *_, **__: Batch())
    with pytest.raises(ClusterError, match="no broker answered"):
        offsets_topic(odd.port)


@pytest.mark.parametrize(("call", "answer"), [
    ("join_group", refused(error_codes.GROUP_AUTHORIZATION_FAILED)),
    ("join_group", refused(error_codes.INVALID_SESSION_TIMEOUT)),
    ("describe_topics", no_topic),
])  # fmt: skip
def test_what_was_held_is_not_forgone(hosts: Hosts, call: str, answer: Answer) -> None:
    """In the process that had it, and in one that resumes the run."""
    lease, resumed = hosts.lease("one"), hosts.lease("two", was_held=True)
    lease.take()
    lease.membership = None
    hosts.twin.advance(SESSION_MS)
    for one in (lease, resumed):
        assert isinstance(one.port, AdminClient)
        odd = OddPort(one.port)
        odd.answer_always(call, answer)
        one.port = odd.port
        found = one.retake() if one is lease else one.take()
        assert not isinstance(found, Forgone)
        one.release()
        hosts.twin.advance(SESSION_MS)


def test_a_run_that_had_no_lease_looks_for_one_again() -> None:
    """The first consumer has created the topic, and another run has taken the lease."""
    hosts = Hosts(twin())
    first = hosts.lease("one")
    assert isinstance(first.take(), Forgone)
    hosts.client().create_topics([NewTopic(OFFSETS_TOPIC, assignments=((0, 1, 2),))]).raise_if_any()
    assert isinstance(hosts.lease("two").take(), Held)
    hosts.time.sleep(first.beat_s)
    found = first.confirm()
    assert isinstance(found, Taken)
    assert "run two" in found.reason


def answered_when_joining(lease: ClusterLease, code: int) -> ClusterLease:
    """Lease with another answer of the coordinator to its next attempt to join."""
    assert isinstance(lease.port, AdminClient)
    odd = OddPort(lease.port)
    odd.answer("join_group", refused(code))
    lease.port = odd.port
    return lease


@pytest.mark.parametrize("policy", [LeasePolicy.AUTO, LeasePolicy.REQUIRE])
@pytest.mark.parametrize(
    "code", [error_codes.GROUP_MAX_SIZE_REACHED, error_codes.REBALANCE_IN_PROGRESS, error_codes.UNKNOWN_MEMBER_ID]
)
def test_no_run_goes_on_while_another_holds_the_lease(hosts: Hosts, policy: LeasePolicy, code: int) -> None:
    first = hosts.lease("one")
    first.take()
    found = answered_when_joining(hosts.lease("two", policy), code).take()
    assert isinstance(found, Taken)
    assert "run one of alice@host-of-one (since " in found.reason
    assert first.confirm() == Held(1)


def test_a_lease_whose_holder_left_meanwhile_is_taken_at_once(hosts: Hosts) -> None:
    found = answered_when_joining(hosts.lease("one", LeasePolicy.REQUIRE), error_codes.REBALANCE_IN_PROGRESS).take()
    assert isinstance(found, Held)


def test_a_coordinator_that_took_over_is_asked_until_it_shows_the_holder(hosts: Hosts) -> None:
    """It refuses by what it has read of the group, and shows what its followers have, too."""
    hosts.lease("one").take()
    lease, odd = hosts.lease("two"), OddPort(hosts.client())
    lease.port = odd.port
    odd.answer("describe_group", *[no_members] * 3)
    found = lease.take()
    assert isinstance(found, Taken)
    assert "run one of alice@host-of-one (since " in found.reason


def test_a_free_lease_that_is_not_given_is_told_with_the_refusal(hosts: Hosts) -> None:
    lease = answered_when_joining(hosts.lease("one"), error_codes.REBALANCE_IN_PROGRESS)
    cast(OddPort, lease.port).answer_always("join_group", refused(error_codes.GROUP_MAX_SIZE_REACHED))
    found = lease.take()
    assert isinstance(found, Taken)
    assert "shows nobody who holds it" in found.reason
    assert "GROUP_MAX_SIZE_REACHED" in found.reason


def test_a_resumed_run_takes_its_own_place_in_a_group_with_room_for_one(hosts: Hosts) -> None:
    former, latter = hosts.lease("one"), answered_when_joining(hosts.lease("one"), error_codes.GROUP_MAX_SIZE_REACHED)
    former.take()
    assert isinstance(latter.take(), Held)
    assert isinstance(former.confirm(), Taken)


@pytest.mark.parametrize(("policy", "end"), [(LeasePolicy.AUTO, Forgone), (LeasePolicy.REQUIRE, Taken)])
def test_a_cluster_that_allows_no_such_session_is_told_as_what_it_is(
    hosts: Hosts, policy: LeasePolicy, end: type[Forgone | Taken]
) -> None:
    found = answered_when_joining(hosts.lease("one", policy), error_codes.INVALID_SESSION_TIMEOUT).take()
    assert isinstance(found, end)
    assert "group.max.session.timeout.ms" in found.reason
    assert "does not answer" not in found.reason


def test_a_cluster_without_groups_is_left_alone_unless_required() -> None:
    hosts = Hosts(twin())
    found = hosts.lease("one").take()
    assert isinstance(found, Forgone)
    assert found.is_usual
    assert not hosts.twin.metadata.topics
    assert isinstance(hosts.lease("one", LeasePolicy.REQUIRE).take(), Held)
    assert OFFSETS_TOPIC in hosts.twin.metadata.topics


def allowed(*rules: Allow) -> Hosts:
    everything = {Allow(ANONYMOUS, operation) for operation in CLUSTER_OPERATIONS}
    return Hosts(twin(TOPICS, permissions=Permissions(frozenset({*everything, *rules}))))


@pytest.mark.parametrize(("rules", "missing"), [
    ((), f"Describe on topic {OFFSETS_TOPIC}"),
    ((Allow(ANONYMOUS, Operation.DESCRIBE, OFFSETS_TOPIC),), f"Read on group {GROUP_ID}"),
    (
        (Allow(ANONYMOUS, Operation.DESCRIBE, OFFSETS_TOPIC), Allow(ANONYMOUS, Operation.DESCRIBE, group=GROUP_ID)),
        f"Read on group {GROUP_ID}",
    ),
])  # fmt: skip
def test_a_missing_permission_is_named(rules: tuple[Allow, ...], missing: str) -> None:
    found = allowed(*rules).lease("one").take()
    assert isinstance(found, Forgone)
    assert (missing in found.reason, found.is_usual) == (True, False)


def test_read_on_the_group_is_enough_for_the_lease() -> None:
    rules = (Allow(ANONYMOUS, Operation.DESCRIBE, OFFSETS_TOPIC), Allow(ANONYMOUS, Operation.READ, group=ALL_GROUPS))
    assert isinstance(allowed(*rules).lease("one").take(), Held)
