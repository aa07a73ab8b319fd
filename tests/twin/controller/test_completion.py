"""End of a move, by the rule of each release."""

import pytest

from kreassign.model.cluster import without
from kreassign.twin.controller.decision import CompletionRule
from kreassign.twin.controller.partition_change import MoveLists, completed_lists
from tests.twin.controller.small_cluster import ids, shown

V1, V2, V3 = CompletionRule.V1, CompletionRule.V2, CompletionRule.V3
EVERY = {V1, V2, V3}


def after(rule, replicas, isr, adding, removing):
    result = completed_lists(rule, MoveLists(ids(replicas), ids(isr), ids(adding), ids(removing)))
    return result and f"{shown(result.replicas)} / {shown(result.isr)}"


@pytest.mark.parametrize(("replicas", "isr", "adding", "removing", "completing", "result"), [
    # 0 1 2 to 3 4 5
    ("3 4 5 0 1 2", "0 1 2 3 4", "3 4 5", "0 1 2", set(), None),
    ("3 4 5 0 1 2", "0 1 2 3 4 5", "3 4 5", "0 1 2", EVERY, "3 4 5 / 3 4 5"),
    # 0 1 2 to 0 1 3
    ("0 1 3 2", "0 1 2 3", "3", "2", EVERY, "0 1 3 / 0 1 3"),
    ("0 1 3 2", "3", "3", "2", {V1, V3}, "0 1 3 / 3"),
    ("0 1 3 2", "0 1 2", "3", "2", set(), None),
    # One more replica, with an old one out of sync
    ("0 3 1", "0 1", "1", "-", {V1, V3}, "0 3 1 / 0 1"),
    # More replicas than before
    ("0 3 4 5 1", "0 1 4 5", "4 5", "1", {V1, V3}, "0 3 4 5 / 0 4 5"),
    # As many as before
    ("0 3 4 5 1 2", "0 1 2 4 5", "4 5", "1 2", {V1, V3}, "0 3 4 5 / 0 4 5"),
    # Fewer than before
    ("0 3 4 1 2", "0 1 2 4", "4", "1 2", {V1}, "0 3 4 / 0 4"),
    ("0 3 2", "0 2", "-", "2", {V1}, "0 3 / 0"),
    ("3 1 0 2", "2 1 0", "-", "0 2", {V1}, "3 1 / 1"),
    ("0 1 2 3", "0 1 2", "-", "3", EVERY, "0 1 2 / 0 1 2"),
    # Nobody of the target is in sync
    ("3 0 1", "0 1", "-", "0 1", set(), None),
    # Everything is being removed
    ("0 1", "0 1", "-", "0 1", set(), None),
    # A replica that is being added and removed at once
    ("0 1 2 3", "0 1 2 3", "2 3", "2 3", {V2}, "0 1 / 0 1"),
    # No move
    ("0 1 2", "0 1 2", "-", "-", set(), None),
    ("0 1 2", "0", "-", "-", set(), None),
])  # fmt: skip
def test_a_move_ends_when_the_rule_of_the_release_says_so(replicas, isr, adding, removing, completing, result):
    outcomes = {rule: after(rule, replicas, isr, adding, removing) for rule in CompletionRule}
    assert {rule for rule, outcome in outcomes.items() if outcome is not None} == completing
    assert {outcome for outcome in outcomes.values() if outcome is not None} <= {result}


def test_the_isr_keeps_its_own_order():
    assert after(V3, "1 2 3", "2 1 3", "-", "3") == "1 2 / 2 1"


def test_what_has_ended_is_empty():
    result = completed_lists(V3, MoveLists((1, 2), (1, 2), (), (2,)))
    assert result == MoveLists((1,), (1,), (), ())


def test_without_keeps_the_order():
    assert without((3, 1, 2), (1, 9)) == (3, 2)
