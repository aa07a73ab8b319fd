"""Elections: those asked for, and those that the controller holds by itself."""

import pytest

from kreassign.model import ElectionType
from kreassign.twin.controller.decision import rules_of
from kreassign.twin.controller.leader_and_isr import (
    ElectLeaders,
    elect_leaders,
    elect_unclean_leaders,
    restore_preferred_leaders,
)
from kreassign.twin.metadata import LeaderRecovery
from tests.twin.controller.small_cluster import SmallCluster

PREFERRED, UNCLEAN = ElectionType.PREFERRED, ElectionType.UNCLEAN
OLDER = rules_of("3.9")
DONE = (0, None)
NOT_NEEDED = (84, "Leader election not needed for topic partition.")
NO_PREFERRED = (80, "The preferred leader was not available.")
NOBODY = (83, "Eligible topic partition leaders are not available.")
UNCLEAN_KEY = "unclean.leader.election.enable"


@pytest.mark.parametrize(("state", "dead", "outcome", "leader"), [
    ("0 1 2", (), NOT_NEEDED, 0),
    ("0 1 2 / 0 1 2 / - / - / 1", (), DONE, 0),
    ("0 1 2 / 1 2 / - / - / 1", (), NO_PREFERRED, 1),  # not in sync
    ("0 1 2 / 0 1 2 / - / - / 1", (0,), NO_PREFERRED, 1),  # not alive
    ("2 3 0 1 / 0 1 2 / 2 3 / 0 1 / 0", (), DONE, 2),  # during a move it is the first of the target
    ("2 3 0 1 / 0 1 / 2 3 / 0 1 / 0", (), NO_PREFERRED, 0),
    ("0 1 2 / 0 2 / - / - / -", (0,), DONE, 2),  # without a leader another one in sync will do
    ("0 1 2 / 0 / - / - / -", (0,), NO_PREFERRED, -1),
])  # fmt: skip
def test_preferred_elections(state, dead, outcome, leader):
    cluster = SmallCluster(dead=dead).topic("foo", state)
    assert cluster.elect(PREFERRED, ("foo", 0)) == [outcome]
    assert cluster.partition().leader == leader


def test_a_preferred_election_never_loses_records():
    cluster = (
        SmallCluster(dead=(0,), rules=OLDER).topic("foo", "0 1 / 0 / - / - / -").configure("foo", UNCLEAN_KEY, "true")
    )
    assert cluster.elect(PREFERRED, ("foo", 0)) == [NO_PREFERRED]


@pytest.mark.parametrize(("state", "dead", "outcome", "after"), [
    ("0 1 2", (), NOT_NEEDED, "0 1 2 / 0 1 2 / - / - / 0"),
    ("0 1 2 / 0 1 2 / - / - / 1", (), NOT_NEEDED, "0 1 2 / 0 1 2 / - / - / 1"),
    ("0 1 2 / 0 2 / - / - / -", (0,), DONE, "0 1 2 / 0 2 / - / - / 2"),  # in sync is better
    ("0 1 2 / 0 / - / - / -", (0,), DONE, "0 1 2 / 1 / - / - / 1"),
    ("0 1 2 / 0 / - / - / -", (0, 1, 2), NOBODY, "0 1 2 / 0 / - / - / -"),
    ("3 4 0 1 / 0 / 3 4 / 0 1 / -", (0, 3), DONE, "3 4 0 1 / 4 / 3 4 / 0 1 / 4"),  # during a move
])  # fmt: skip
def test_unclean_elections(state, dead, outcome, after):
    cluster = SmallCluster(dead=dead, rules=OLDER).topic("foo", state)
    assert cluster.elect(UNCLEAN, ("foo", 0)) == [outcome]
    assert cluster.state() == after


def test_a_leader_elected_uncleanly_has_to_recover():
    cluster = SmallCluster(dead=(0,)).topic("foo", "0 1 2 / 0 / - / - / -")
    cluster.elect(UNCLEAN, ("foo", 0))
    assert cluster.partition().leader_recovery is LeaderRecovery.RECOVERING


def test_an_unclean_election_may_end_a_move():
    cluster = SmallCluster(dead=(4,)).topic("foo", "0 4 / - / 0 / 4 / -")
    assert cluster.elect(UNCLEAN, ("foo", 0)) == [DONE]
    assert cluster.state() == "0 4 / 0 / 0 / 4 / 0"
    cluster.report_isr("0")
    assert cluster.idle() == "0 / 0"


def test_a_request_that_would_write_too_much_is_refused_as_a_whole():
    cluster = SmallCluster().topic("foo", *["0 1 / 0 1 / - / - / 1"] * 10_001)
    decision = elect_leaders(cluster.context, ElectLeaders(0, None))
    refusal = (44, "Unable to perform excessively large batch operation.")
    assert ((decision.answer.outcome.code, decision.answer.outcome.message), decision.records) == (refusal, ())
    decision = elect_leaders(cluster.context, ElectLeaders(0, (("foo", tuple(range(10_000))),)))
    assert len(decision.records) == 10_000


# By the controller itself


def test_preferred_leaders_come_back_where_they_can():
    cluster = (
        SmallCluster(dead=(3,)).topic("foo", "0 1 / 0 1 / - / - / 1", "3 1 / 1", "2 1 / 1").topic("bar", "2 1 / 1 2")
    )
    assert cluster.commit(restore_preferred_leaders) is False
    assert [cluster.partition("foo", index).leader for index in range(3)] == [0, 1, 1]
    assert cluster.partition("bar").leader == 2


def test_preferred_leaders_come_back_in_passes():
    cluster = SmallCluster().topic("foo", *["0 1 / 0 1 / - / - / 1"] * 1_005)
    decision = restore_preferred_leaders(cluster.context)
    assert (len(decision.records), decision.answer) == (1_000, True)  # Kafka's MAX_ELECTIONS_PER_IMBALANCE
    cluster.write(*decision.records)
    decision = restore_preferred_leaders(cluster.context)
    assert (len(decision.records), decision.answer) == (5, False)


def test_leaderless_partitions_get_a_leader_where_their_topic_allows_it():
    cluster = (
        SmallCluster(dead=(0,), rules=OLDER).topic("foo", "0 1 / 0 / - / - / -").topic("bar", "0 1 / 0 / - / - / -")
    )
    cluster.configure("foo", UNCLEAN_KEY, "true")
    assert cluster.commit(elect_unclean_leaders) is False
    assert (cluster.state("foo"), cluster.partition("bar").leader) == ("0 1 / 1 / - / - / 1", -1)


# Kafka's ReplicationControlManagerTest


def test_elect_unclean_leaders_without_eligible_leaders():
    cluster = SmallCluster(brokers=range(5), dead=(0, 1), rules=OLDER)
    cluster.topic("foo", "1 2 3 / 1 / - / - / -", "2 3 4", "0 2 1 / 0 2 1 / - / - / 2")
    cluster.kill(2, 3)
    asked = (("foo", 0), ("foo", 1), ("foo", 2), ("bar", 0))
    expected = [NOBODY, NOT_NEEDED, NOT_NEEDED, (3, "No such topic as bar")]
    assert cluster.elect(UNCLEAN, *asked) == expected
    cluster.revive(2)
    assert cluster.elect(UNCLEAN, *asked) == [DONE, *expected[1:]]
    assert cluster.state() == "1 2 3 / 2 / - / - / 2"
    assert cluster.partition(index=2).leader == 2  # nobody was moved along the way
