from dataclasses import replace

import pytest

from kreassign.model import TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.plan_facts import Reason
from kreassign.planner import Assignment, Band, LogDirFacts, Problem, Rules, assignment_of
from kreassign.planner.check.evaluate import evaluate
from kreassign.planner.goals import DISK, LEADERS
from kreassign.planner.reasons import reasons_of
from tests.planner.small_problems import GIGABYTE, brokers, moved, partition, posed


def reasons(problem: Problem, assignment: Assignment) -> dict[int, tuple[Reason, ...]]:
    return reasons_of(problem, assignment, evaluate(problem, assignment))


def test_a_move_is_worth_what_would_be_missed_without_it() -> None:
    loads = [partition(number, 1, gigabytes=10) for number in range(4)]
    problem = posed(brokers(1, 2), loads, bands=(Band(DISK, 0.0),))
    found = reasons(problem, moved(problem, (0, (2,)), (1, (2,))))
    assert found == {number: (Reason("disk", 1, 2, 20.0 * GIGABYTE, "B"),) for number in (0, 1)}


def test_a_change_of_leader_is_distinguished_from_a_copy() -> None:
    problem = posed(brokers(1, 2), [partition(0, 1, 2), partition(1, 1, 2)], bands=(Band(LEADERS, 0.0),))
    assert reasons(problem, moved(problem, (0, (2, 1)))) == {0: (Reason("leaders", 1, 2, 2.0, leading=True),)}


def test_a_move_that_others_make_up_for_is_told_by_what_it_takes_off_today() -> None:
    loads = [partition(0, 1, gigabytes=3), partition(1, 1, gigabytes=3), partition(2, 1, gigabytes=54),
             partition(3, 2, gigabytes=40)]  # fmt: skip
    problem = posed(brokers(1, 2), loads, bands=(Band(DISK, 0.15),))
    found = reasons(problem, moved(problem, (0, (2,)), (1, (2,))))
    assert [(one.goal, one.source, one.destination) for one in found[0]] == [("disk", 1, 2)]
    assert found[0][0].amount == pytest.approx(5.0 * GIGABYTE)


def test_a_move_that_serves_no_goal_alone_is_made_together_with_others() -> None:
    problem = posed(brokers(1, 2), [partition(0, 1), partition(1, 2)], bands=(Band(DISK, 0.5),))
    found = reasons(problem, moved(problem, (0, (2,)), (1, (1,))))
    assert {one.goal for reason in found.values() for one in reason} == {"disk"}
    wide = replace(problem, bands=(Band(DISK, 2.0),))
    assert reasons(wide, moved(wide, (0, (2,)), (1, (1,))))[0] == (Reason("together", 1, 2),)


HOSTS = brokers(1, 2, 3, racks="aab")


def changed(broker: int, **facts):
    return [replace(host, **facts) if host.id == broker else host for host in HOSTS]


FORCED = [
    (posed(changed(1, must_empty=True), [partition(0, 1)]), (0, (3,)), Reason("drain", 1, 3, 10.0 * GIGABYTE, "B")),
    (posed(changed(1, is_live=False), [partition(0, 1)]), (0, (3,)), Reason("repair", 1, 3, 10.0 * GIGABYTE, "B")),
    (posed(HOSTS, [partition(0, 1, wanted_factor=2)]), (0, (1, 3)), Reason("factor", None, 3, 10.0 * GIGABYTE, "B")),
    (posed(HOSTS, [partition(0, 1, 3, wanted_factor=1)]), (0, (1,)), Reason("factor", 3, None, 10.0 * GIGABYTE, "B")),
    (posed(HOSTS, [partition(0, 1, 2)], rules=Rules(repair_racks=True)), (0, (1, 3)), Reason("racks", 2, 3, 1.0)),
    (posed(changed(1, may_lead=False), [partition(0, 1, 3)]), (0, (3, 1)), Reason("demote", 1, 3, 1.0, leading=True)),
]  # fmt: skip


@pytest.mark.parametrize(("problem", "change", "reason"), FORCED, ids=lambda value: getattr(value, "goal", ""))
def test_forced_changes_are_named_by_what_forces_them(problem: Problem, change, reason: Reason) -> None:
    assert reasons(problem, moved(problem, change)) == {0: (reason,)}


def test_changes_of_directory_are_drains_or_evenness() -> None:
    for must_empty, goal in ((True, "drain-dirs"), (False, "log-dirs")):
        dirs = (LogDirFacts("/a", must_empty=must_empty), LogDirFacts("/b"))
        problem = posed(
            brokers(1, log_dirs=dirs), [partition(0, 1, log_dirs=("/a",))], rules=Rules(between_log_dirs=True)
        )
        to_b = assignment_of(problem, Plan((PartitionAssignment(TopicPartition("t", 0), (1,), ("/b",)),)))
        assert reasons(problem, to_b) == {0: (Reason(goal, 1, 1, 10.0 * GIGABYTE, "B"),)}


def test_another_order_of_followers_has_a_reason_too() -> None:
    problem = posed(brokers(1, 2, 3), [partition(0, 1, 2, 3)])
    assert reasons(problem, moved(problem, (0, (1, 3, 2)))) == {0: (Reason("together"),)}
