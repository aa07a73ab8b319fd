"""Proposals of leaders."""

import pytest

from kreassign.twin.controller.decision import rules_of
from kreassign.twin.metadata import LeaderRecovery, LogDirFailed
from tests.twin.controller.small_cluster import SmallCluster


@pytest.mark.parametrize(("isr", "code", "after"), [
    ("-", 42, "0 1 2"),
    ("0 1 9", 42, "0 1 2"),
    ("1 2", 42, "0 1 2"),
    ("0 1", 0, "0 1"),
    ("1 0", 0, "1 0"),
    ("0 1 2", 0, "0 1 2"),
])  # fmt: skip
def test_an_isr_has_the_leader_and_replicas_alone(isr, code, after):
    made = SmallCluster().topic("foo", "0 1 2")
    assert made.report_isr(isr) == code
    assert made.state() == f"0 1 2 / {after} / - / - / 0"


@pytest.mark.parametrize("options", [{"dead": (2,)}, {"stopping": (2,)}, {"brokers": (0, 1)}])
def test_only_active_brokers_may_join(options):
    made = SmallCluster(**options).topic("foo", "0 1 2 / 0 1 / - / - / 0")
    assert made.report_isr("0 1 2") == 107
    assert made.state() == "0 1 2 / 0 1 / - / - / 0"


def test_a_broker_that_came_back_may_join():
    made = SmallCluster(dead=(2,)).topic("foo", "0 1 2 / 0 1 / - / - / 0")
    assert made.report_isr("0 1 2") == 107
    made.revive(2)
    assert made.report_isr("0 1 2") == 0


def test_a_leader_has_recovered_once_it_proposes_an_isr():
    made = SmallCluster().topic("foo", "0 1 2 / 0 / - / - / 0", leader_recovery=LeaderRecovery.RECOVERING)
    assert made.report_isr("0") == 0
    assert made.partition().leader_recovery is LeaderRecovery.RECOVERED
    assert made.report_isr("0 1") == 0


def test_who_completes_a_move_by_which_it_loses_the_lead_is_told_so():
    made = SmallCluster().topic("foo", "3 4 5 0 1 2 / 0 1 2 3 4 / 3 4 5 / 0 1 2 / 0")
    assert made.report_isr("0 1 2 3 4 5") == 108
    assert made.state() == "3 4 5 / 3 4 5 / - / - / 3"


@pytest.mark.parametrize(("allowed", "after"), [("true", "1 2 / 2 / - / - / 2"), ("false", "1 2 / 1 / - / - / -")])
def test_a_leader_without_a_disk_is_only_the_last_choice(allowed, after):
    made = SmallCluster().topic("foo", "1 2 0 / 0 / 1 / 0 / 0", directories=("dir 1.0", "dir 2.0", "dir 0.0"))
    made.configure("foo", "unclean.leader.election.enable", allowed)
    made.write(LogDirFailed(1, "dir 1.0"))
    assert made.report_isr("0 1") == 108
    assert made.state() == after


def test_who_completes_a_move_and_stays_leads_under_a_new_epoch():
    made = SmallCluster().topic("foo", "0 1 3 2 / 0 1 2 / 3 / 2 / 0")
    assert made.report_isr("0 1 2 3") == 0
    assert (made.idle(), made.partition().leader_epoch) == ("0 1 3 / 0 1 3", 1)


@pytest.mark.parametrize("rules", [rules_of("3.9"), rules_of("4.3")])
def test_an_isr_that_shrinks_and_grows_moves_only_the_partition_epoch(rules):
    made = SmallCluster(rules=rules).topic("foo", "0 1 2")
    made.report_isr("0")
    made.report_isr("0 1")
    assert (made.partition().leader_epoch, made.partition().partition_epoch) == (0, 2)


def test_nobody_becomes_eligible_while_the_isr_is_as_large_as_it_has_to_be():
    made = SmallCluster().topic("foo", "0 1 2").configure("foo", "min.insync.replicas", "2")
    made.report_isr("0 1")
    assert made.partition().elr == ()


def test_members_below_the_least_isr_are_eligible_only_below_it():
    made = SmallCluster().topic("foo", "0 1 2").configure("foo", "min.insync.replicas", "3")
    made.report_isr("0 1")
    assert made.partition().elr == (2,)
    made.report_isr("0")
    assert made.partition().elr == (1, 2)
    made.report_isr("0 1")
    assert made.partition().elr == (2,)
    made.report_isr("0 1 2")
    assert made.partition().elr == ()
