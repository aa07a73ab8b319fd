"""Election of leaders."""

import pytest

from kreassign.model import NO_LEADER
from kreassign.twin.controller.partition_change import Candidates, Election, LeaderChoice, choose_leader
from tests.twin.controller.small_cluster import ids

PREFERRED, ONLINE, UNCLEAN = Election.PREFERRED, Election.ONLINE, Election.UNCLEAN
NOBODY = LeaderChoice(NO_LEADER)


def chosen(election, replicas, isr, leader, fit, elr="-", last_leader=None):
    alive = ids(fit)
    candidates = Candidates(ids(replicas), ids(isr), ids(elr), leader, last_leader, lambda broker: broker in alive)
    return choose_leader(candidates, election)


@pytest.mark.parametrize(("election", "isr", "leader", "fit", "choice"), [
    (ONLINE, "2 1 3", 1, "1 2 3", LeaderChoice(1)),  # a leader that can stay does
    (ONLINE, "2 1 3", 9, "1 2 3", LeaderChoice(2)),  # else the first replica in sync, not the first of the ISR's order
    (ONLINE, "1 3", 2, "1 2 3", LeaderChoice(1)),  # a leader out of sync goes
    (ONLINE, "2 1 3", 2, "1 3", LeaderChoice(1)),  # so does one that is not fit
    (ONLINE, "2", 2, "1 3", NOBODY),
    (PREFERRED, "2 1 3", 1, "1 2 3", LeaderChoice(2)),  # the first replica, though the leader could stay
    (PREFERRED, "1 3", 1, "1 2 3", LeaderChoice(1)),  # not if it is out of sync
    (PREFERRED, "2 1 3", 1, "1 3", LeaderChoice(1)),  # nor if it is not fit
    (PREFERRED, "2 1 3", NO_LEADER, "3", LeaderChoice(3)),  # rather another one than nobody
    (PREFERRED, "2", 2, "1 3", NOBODY),  # never one out of sync
    (UNCLEAN, "2 1 3", 1, "1 2 3", LeaderChoice(1)),
    (UNCLEAN, "2 3", 2, "1 3", LeaderChoice(3)),  # in sync is better
    (UNCLEAN, "2", 2, "1 3", LeaderChoice(1, is_unclean=True)),  # than the first that is fit
    (UNCLEAN, "2", 2, "-", NOBODY),
])  # fmt: skip
def test_the_leader_of_replicas_2_1_3(election, isr, leader, fit, choice):
    assert chosen(election, "2 1 3", isr, leader, fit) == choice


@pytest.mark.parametrize("election", Election)
def test_eligible_leaders_stand_in_for_an_empty_isr_only(election):
    assert chosen(election, "1 2 3", "-", NO_LEADER, "2 3", elr="3 2") == LeaderChoice(2)
    assert chosen(election, "1 2 3", "1", NO_LEADER, "2 3", elr="3 2") == (
        LeaderChoice(2, is_unclean=True) if election is UNCLEAN else NOBODY
    )


@pytest.mark.parametrize("election", Election)
def test_who_led_last_leads_again_uncleanly_when_nobody_else_is_left(election):
    assert chosen(election, "1 2 3", "-", NO_LEADER, "2 3", last_leader=3) == LeaderChoice(3, is_unclean=True)
    assert chosen(ONLINE, "1 2 3", "-", NO_LEADER, "2", last_leader=3) == NOBODY
    assert chosen(ONLINE, "1 2 3", "1", NO_LEADER, "2 3", last_leader=3) == NOBODY
    assert chosen(ONLINE, "1 2 3", "-", NO_LEADER, "2 3", elr="1", last_leader=3) == NOBODY
