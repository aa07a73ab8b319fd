import pytest

from kreassign.executor.cluster.observations import Expectations, Facts, FindingKind, verify
from kreassign.executor.throttle_ledger import ConfigKey, ConfigValue
from kreassign.model import ConfigResource, OngoingReassignment, Partition, TopicPartition, TopicPartitionReplica

T0 = TopicPartition("t", 0)
RATE = ConfigKey(ConfigResource.broker(1), "leader.replication.throttled.rate")
PLAN = Expectations({T0: (1, 2)})


def facts(replicas: tuple[int, ...] = (1, 2), isr: tuple[int, ...] = (1, 2), leader: int = 1) -> Facts:
    return Facts({T0: Partition(T0, replicas, isr, leader)})


def test_a_cluster_that_is_as_planned_gives_no_finding() -> None:
    assert verify(PLAN, facts()) == ()


@pytest.mark.parametrize(("found", "kind", "sentence"), [
    (facts(replicas=(2, 1)), FindingKind.REPLICAS, "t-0: replicas are [2, 1] and not [1, 2]"),
    (facts(isr=(1,)), FindingKind.ISR, "t-0: not in sync: [2]; the ISR is [1]"),
    (facts(leader=2), FindingKind.LEADER, "t-0: led by 2 and not by the preferred leader 1"),
    (facts(leader=-1), FindingKind.LEADER, "t-0: led by nobody and not by the preferred leader 1"),
    (Facts({}), FindingKind.MISSING, "t-0: there is no such partition"),
])  # fmt: skip
def test_each_difference_is_a_finding(found: Facts, kind: FindingKind, sentence: str) -> None:
    (finding,) = verify(PLAN, found)
    assert (finding.kind, str(finding)) == (kind, sentence)


def test_a_move_under_way_is_the_one_finding_of_its_partition() -> None:
    moving = Facts({T0: Partition(T0, (2, 1, 0), (0,), 0)}, {T0: OngoingReassignment((1, 2, 0), (2,), (0,))})
    (finding,) = verify(PLAN, moving)
    assert finding.kind is FindingKind.MOVING


def test_a_partition_that_could_not_be_read_is_unknown_and_not_missing() -> None:
    (finding,) = verify(PLAN, Facts({}, unread=((str(T0), "could not be described: timed out"),)))
    assert finding.kind is FindingKind.UNKNOWN


@pytest.mark.parametrize(("wish", "present", "sentence"), [
    (None, "5", "broker 1: leader.replication.throttled.rate is '5' and should not be set"),
    ("7", None, "broker 1: leader.replication.throttled.rate is not set and should be '7'"),
    ("7", "5", "broker 1: leader.replication.throttled.rate is '5' and should be '7'"),
])  # fmt: skip
def test_a_throttle_that_is_not_as_before_is_a_finding(wish: str | None, present: str | None, sentence: str) -> None:
    (finding,) = verify(Expectations({}, configs=(ConfigValue(RATE, wish),)), Facts({}, configs={RATE: present}))
    assert (finding.kind, str(finding)) == (FindingKind.THROTTLE, sentence)


def test_a_throttle_that_is_as_it_was_is_none() -> None:
    assert verify(Expectations({}, configs=(ConfigValue(RATE, "7"),)), Facts({}, configs={RATE: "7"})) == ()


def test_a_replica_in_another_directory_is_a_finding() -> None:
    replica = TopicPartitionReplica(2, "t", 0)
    wishes = Expectations({T0: (1, 2)}, {replica: "/data/b"})
    partitions = facts().partitions
    assert verify(wishes, Facts(partitions, log_dirs={replica: "/data/b"})) == ()
    (finding,) = verify(wishes, Facts(partitions, log_dirs={replica: "/data/a"}))
    assert str(finding) == "t-0 on broker 2: in /data/a and not in /data/b"
    (finding,) = verify(wishes, Facts(partitions))
    assert "in no directory" in finding.sentence


def test_a_copy_in_sync_of_which_less_than_half_is_there_is_a_finding() -> None:
    def found(size: int) -> Facts:
        sizes = {TopicPartitionReplica(1, "t", 0): 10_000_000, TopicPartitionReplica(2, "t", 0): size}
        return Facts(facts().partitions, sizes=sizes)

    assert verify(PLAN, found(5_000_000)) == verify(PLAN, found(20_000_000)) == ()
    (finding,) = verify(PLAN, found(4_999_999))
    assert finding.kind is FindingKind.SIZE
    assert finding.sentence.startswith("the copy on broker 2 has 5 MB, that of the leader 10 MB")


def test_small_copies_may_differ() -> None:
    sizes = {TopicPartitionReplica(1, "t", 0): 1_000_000, TopicPartitionReplica(2, "t", 0): 0}
    assert verify(PLAN, Facts(facts().partitions, sizes=sizes)) == ()


def test_findings_come_sorted() -> None:
    other = TopicPartition("a", 0)
    found = verify(Expectations({T0: (1, 2), other: (1,)}), Facts({}))
    assert [finding.subject for finding in found] == ["a-0", "t-0"]


def test_a_topic_that_was_created_again_is_not_the_one_that_was_moved() -> None:
    expected = Expectations({T0: (1, 2)}, {TopicPartitionReplica(1, "t", 0): "/data/b"}, topic_ids={"t": "old"})
    (finding,) = verify(expected, Facts(facts().partitions, topic_ids={"t": "new"}))
    assert (finding.kind, str(finding)) == (
        FindingKind.RECREATED,
        "t-0: its topic was deleted, and another one created under its name",
    )
    settled = {TopicPartitionReplica(1, "t", 0): "/data/b"}
    for topic_ids in ({"t": "old"}, {}):  # a broker that tells no ids says nothing of them
        assert verify(expected, Facts(facts().partitions, log_dirs=settled, topic_ids=topic_ids)) == ()
