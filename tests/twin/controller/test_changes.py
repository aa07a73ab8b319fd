"""The record that an update leads to, field by field: Kafka's PartitionChangeBuilderTest."""

from dataclasses import fields

import pytest

from kreassign.model import NO_LEADER, TopicPartition
from kreassign.twin.controller.decision import rules_of
from kreassign.twin.controller.partition_change import Election, PartitionUpdate, change_of
from kreassign.twin.metadata import UNASSIGNED, LeaderRecovery, PartitionChanged
from tests.twin.controller.small_cluster import SmallCluster

FOO = TopicPartition("foo", 0)
OLDER = rules_of("3.9")


def written(cluster, update):
    """The fields of the record, without those that stay; None if there is no record."""
    change = change_of(cluster.context, cluster.partition(), update)
    if change is None:
        return None
    assert change.topic_partition == FOO
    values = {field.name: getattr(change, field.name) for field in fields(PartitionChanged)[1:]}
    return {name: value for name, value in values.items() if value is not None}


def foo(text="2 1 3 / 2 1 3 / - / - / 1", **options):
    return SmallCluster(**options).topic("foo", text)


def test_an_update_that_changes_nothing_needs_no_record():
    assert written(foo(), PartitionUpdate()) is None
    assert written(foo(), PartitionUpdate(replicas=(2, 1, 3), isr=(2, 1, 3), adding=(), removing=())) is None


USUAL, MOVING = "2 1 3 / 2 1 3 / - / - / 1", "2 3 4 1 / 1 2 3 / 4 / 1 / 1"
LIVE, DEAD = {}, {"dead": (1,)}


@pytest.mark.parametrize(("state", "options", "update", "record"), [
    (USUAL, LIVE, PartitionUpdate(replicas=(3, 2, 1)), {"replicas": (3, 2, 1)}),
    # An ISR that grows completes the move.
    (MOVING, LIVE, PartitionUpdate(isr=(1, 2, 3, 4)),
     {"replicas": (2, 3, 4), "isr": (2, 3, 4), "leader": 2, "adding": (), "removing": (),
      "directories": (UNASSIGNED,) * 3}),
    # Going back raises the epoch under the same leader.
    (MOVING, LIVE, PartitionUpdate(replicas=(2, 3, 1), adding=(), removing=(), isr=(1, 2, 3)),
     {"replicas": (2, 3, 1), "leader": 1, "adding": (), "removing": (), "directories": (UNASSIGNED,) * 3}),
    # Removing completes at once, and keeps the ISR in its order; adding writes no leader.
    (USUAL, LIVE, PartitionUpdate(replicas=(1, 2, 3), removing=(3,)),
     {"replicas": (1, 2), "isr": (2, 1), "leader": 1, "directories": (UNASSIGNED,) * 2}),
    (USUAL, LIVE, PartitionUpdate(replicas=(2, 1, 3, 4), adding=(4,)),
     {"replicas": (2, 1, 3, 4), "adding": (4,), "directories": (UNASSIGNED,) * 4}),
    # An unclean winner is alone in the ISR, and recovers.
    ("1 2 3 / 1 / - / - / 1", DEAD, PartitionUpdate(election=Election.UNCLEAN),
     {"isr": (2,), "leader": 2, "leader_recovery": LeaderRecovery.RECOVERING}),
    # A changed ISR alone leaves the leader's field out; the first replica in sync follows a leader that is not.
    *(("2 1 3 4 / 2 1 3 / - / - / 1", LIVE, PartitionUpdate(isr=isr), {"isr": isr})
      for isr in ((2, 1), (2, 1, 3, 4), (1, 2, 3))),
    (USUAL, LIVE, PartitionUpdate(isr=(3, 2)), {"isr": (3, 2), "leader": 2}),
    # Without eligible leaders the last one in sync stays in the ISR.
    ("1 2 / 1 / - / - / 1", DEAD | {"rules": OLDER}, PartitionUpdate(isr=()), {"leader": NO_LEADER}),
    (USUAL, LIVE, PartitionUpdate(directory=(1, "dir 1.1")), {"directories": (UNASSIGNED, "dir 1.1", UNASSIGNED)}),
])  # fmt: skip
def test_a_record_has_the_fields_that_an_update_changes(state, options, update, record):
    assert written(foo(state, **options), update) == record


def test_another_order_takes_the_directories_along():
    cluster = foo(log_dirs=1)
    cluster.topic("bar", "1 2", directories=("dir 1.0", "dir 2.0"))
    change = change_of(cluster.context, cluster.partition("bar"), PartitionUpdate(replicas=(2, 1)))
    assert change.directories == ("dir 2.0", "dir 1.0")


def test_a_leader_that_leaves_goes_even_if_nobody_can_follow_it():
    cluster = foo("1 2 / 1 2 / - / - / 1", dead=(2,), rules=OLDER)
    assert written(cluster, PartitionUpdate(replicas=(2, 1), removing=(1,)))["leader"] == NO_LEADER


def test_whoever_still_recovers_is_not_marked_again():
    cluster = SmallCluster(dead=(1,)).topic("foo", "1 2 3 / 1 / - / - / 1", leader_recovery=LeaderRecovery.RECOVERING)
    assert written(cluster, PartitionUpdate(election=Election.UNCLEAN)) == {"isr": (2,), "leader": 2}
    assert written(cluster.revive(1), PartitionUpdate(isr=(1, 2))) == {"isr": (1, 2)}


def test_recovery_ends_when_the_leader_says_so():
    cluster = SmallCluster().topic("foo", "1 2 / 1 / - / - / 1", leader_recovery=LeaderRecovery.RECOVERING)
    assert written(cluster, PartitionUpdate(leader_recovery=LeaderRecovery.RECOVERED)) == {
        "leader_recovery": LeaderRecovery.RECOVERED
    }


def test_who_died_with_its_log_is_not_eligible():
    cluster = foo("1 2 3 / 1 2 / - / - / 1").configure("foo", "min.insync.replicas", "2")
    assert written(cluster, PartitionUpdate(isr=(1,))) == {"isr": (1,), "elr": (2,)}
    assert written(cluster, PartitionUpdate(isr=(1,), lost=2)) == {"isr": (1,)}


def test_an_eligible_replica_that_comes_to_lead_is_in_sync():
    cluster = SmallCluster().topic("foo", "1 2 3 / - / - / - / -", elr=(2, 3))
    cluster.configure("foo", "min.insync.replicas", "2")
    assert written(cluster, PartitionUpdate()) == {"isr": (2,), "leader": 2, "elr": (3,)}


def test_without_eligible_leaders_nobody_is_remembered():
    cluster = SmallCluster(rules=OLDER).topic("foo", "1 2 / - / - / - / -", last_known_elr=(1,))
    assert written(cluster, PartitionUpdate()) is None


def test_new_replicas_get_a_directory_only_where_there_is_no_choice():
    cluster = SmallCluster(log_dirs=1).topic("foo", "0 1", directories=("dir 0.0", UNASSIGNED))
    assert written(cluster, PartitionUpdate(replicas=(0, 1, 2), adding=(2,)))["directories"] == (
        "dir 0.0",
        UNASSIGNED,
        "dir 2.0",
    )
    cluster = SmallCluster(log_dirs=2).topic("foo", "0 1", directories=("dir 0.0", "dir 1.1"))
    assert written(cluster, PartitionUpdate(replicas=(2, 0, 1), adding=(2,)))["directories"] == (
        UNASSIGNED,
        "dir 0.0",
        "dir 1.1",
    )


def test_replicas_that_stay_keep_their_directories():
    cluster = SmallCluster(log_dirs=2).topic("foo", "0 1 2", directories=("dir 0.0", "dir 1.1", "dir 2.0"))
    assert written(cluster, PartitionUpdate(replicas=(2, 0, 1), removing=(1,)))["directories"] == ("dir 2.0", "dir 0.0")
