from dataclasses import replace

import pytest

from kreassign.errors import InputError
from kreassign.planner import Band, LogDirFacts, Problem, Rules, plan_of, solve
from kreassign.planner.check.cost import predict
from kreassign.planner.check.evaluate import evaluate
from kreassign.planner.goals import DISK, LEADERS
from kreassign.planner.tasks import (
    TopicChoice,
    add_brokers,
    balance_disks,
    change_factors,
    demote,
    drain_brokers,
    drain_log_dirs,
    leaders_only,
    only_forced,
    rebalance,
)
from kreassign.planner.tasks.tasks import fit_in, forced
from tests.planner.small_problems import GIGABYTE, brokers, partition, posed

REBALANCED = posed(
    brokers(1), [partition(0, 1, topic="a"), partition(0, 1, topic="b"), partition(1, 1, may_move=False, topic="a")]
)


def test_only_chosen_topics_may_move_and_what_was_fixed_stays_so() -> None:
    assert rebalance(REBALANCED, TopicChoice(("a",))).partitions.may_move.tolist() == [True, False, False]
    assert rebalance(REBALANCED).partitions.may_move.tolist() == [True, False, True]


GROWN = posed(brokers(1, 2, 3), [partition(0, 1)])


def test_replicas_go_only_onto_the_new_ones_unless_mixed() -> None:
    assert add_brokers(GROWN, (3,)).brokers.may_receive.tolist() == [False, False, True]
    assert add_brokers(GROWN, (3,), only_onto=False).brokers.may_receive.all()


def test_brokers_that_did_not_join_are_refused() -> None:
    with pytest.raises(InputError, match="no broker 4"):
        add_brokers(GROWN, (4,))


LED = posed(brokers(1, 2, 3), [partition(0, 1, 2)])


def test_nothing_is_copied() -> None:
    for found in (leaders_only(LED), demote(LED, (1,))):
        assert (found.rules.between_brokers, found.rules.between_log_dirs, found.rules.leaders) == (False, False, True)


def test_demoted_brokers_may_not_lead() -> None:
    assert demote(LED, (1, 3)).brokers.may_lead.tolist() == [False, True, False]


ON_DISKS = posed(brokers(1, 2, log_dirs=(LogDirFacts("/a"),)), [partition(0, 1)])


def test_replicas_change_directories_alone_or_along_with_brokers() -> None:
    alone, together = balance_disks(ON_DISKS).rules, balance_disks(ON_DISKS, between_brokers=True).rules
    assert (alone.between_log_dirs, alone.between_brokers, alone.leaders) == (True, False, False)
    assert (together.between_log_dirs, together.between_brokers, together.leaders) == (True, True, True)


def test_directories_have_a_band_even_if_the_goals_have_none() -> None:
    assert balance_disks(replace(ON_DISKS, bands=())).bands == (Band(DISK),)
    assert balance_disks(replace(ON_DISKS, bands=(Band(DISK, None), Band(LEADERS)))).bands == (
        Band(DISK),
        Band(LEADERS),
    )
    assert balance_disks(replace(ON_DISKS, bands=(Band(DISK, 0.2),))).bands == (Band(DISK, 0.2),)


def test_directories_of_other_brokers_than_the_chosen_ones_get_nothing() -> None:
    dirs = balance_disks(ON_DISKS, (2,)).log_dirs
    assert dirs is not None
    assert dirs.may_receive.tolist() == [False, True]
    with pytest.raises(InputError, match="no broker 7"):
        balance_disks(ON_DISKS, (7,))


def test_without_any_directory_known_it_is_refused() -> None:
    with pytest.raises(InputError, match="nothing is known of log directories"):
        balance_disks(posed(brokers(1), [partition(0, 1)]))


DISKS = (LogDirFacts("/a"), LogDirFacts("/b"))
FORCED_LOADS = [partition(0, 1, 2, log_dirs=("/a", "/a")), partition(1, 2, 3, log_dirs=("/b", "/b"))]
FORCED = posed(brokers(1, 2, 3, racks="xxy", log_dirs=DISKS), FORCED_LOADS)


@pytest.mark.parametrize(("task", "movable"), [
    (drain_brokers(FORCED, (1,)), [True, False]),
    (drain_brokers(FORCED, (2,)), [True, True]),
    (change_factors(FORCED, 2), [False, False]),
    (change_factors(FORCED, 3), [True, True]),
    (demote(FORCED, (2,)), [False, True]),
    (drain_log_dirs(FORCED, [(2, "/a")]), [True, False]),
    (replace(FORCED, rules=Rules(repair_racks=True)), [True, False]),
])  # fmt: skip
def test_only_what_the_task_demands_may_move(task: Problem, movable: list[bool]) -> None:
    assert forced(task).tolist() == movable


def test_what_is_fixed_stays_fixed() -> None:
    fixed = posed(brokers(1, 2, 3), [partition(0, 1, may_move=False)])
    problem = only_forced(change_factors(fixed, 2))
    assert not problem.partitions.may_move.any()


TIMED_LOADS = [
    partition(0, 1, gigabytes=10),
    partition(1, 1, gigabytes=90),
    partition(2, 1, gigabytes=50, write_bytes_per_s=6e8),
]
TIMED = posed(brokers(1, 2), TIMED_LOADS)


def test_brokers_receive_and_send_what_the_rate_allows() -> None:
    budget = fit_in(TIMED, seconds=60, rate_bytes_per_s=GIGABYTE).budget
    assert (budget.bytes_in_per_broker, budget.bytes_out_per_broker) == (60 * GIGABYTE, 60 * GIGABYTE)


def test_what_is_too_large_or_grows_too_fast_stays_unless_forced() -> None:
    assert fit_in(TIMED, 60, GIGABYTE).partitions.may_move.tolist() == [True, False, False]
    assert fit_in(drain_brokers(TIMED, (1,)), 60, GIGABYTE).partitions.may_move.all()


@pytest.mark.parametrize(("seconds", "rate"), [(0, 1), (1, 0)])
def test_no_time_and_no_rate_are_refused(seconds: float, rate: float) -> None:
    with pytest.raises(InputError, match="nothing fits into"):
        fit_in(TIMED, seconds, rate)


@pytest.mark.parametrize("seconds", [20, 60, 200])
def test_the_plan_is_done_in_time_although_copies_have_to_catch_up(seconds: float) -> None:
    rates = [0, 2e8, 5e8]
    loads = [partition(n, 1 + n % 2, gigabytes=3 + n % 4, write_bytes_per_s=rates[n % 3]) for n in range(60)]
    whole = posed(brokers(1, 2, 3, 4), loads, bands=(Band(DISK),))
    problem = fit_in(whole, seconds, GIGABYTE)
    found = solve(problem).assignment
    assert evaluate(problem, found).violations == ()
    needed = predict(problem, found, GIGABYTE).seconds
    assert needed <= seconds * (1 + 1e-9)
    assert needed > 0.7 * seconds or not evaluate(problem, found).misses()


def test_copies_that_a_broker_moves_already_count_where_they_go() -> None:
    """A run refuses to move them again; the others even out the directories around them."""
    hosts = brokers(1, log_dirs=(LogDirFacts("/a"), LogDirFacts("/b")))
    loads = [partition(number, 1, log_dirs=("/a",)) for number in range(2, 6)]
    going = [partition(number, 1, log_dirs=("/a",), future_log_dirs={1: "/b"}) for number in range(2)]
    problem = balance_disks(posed(hosts, [*going, *loads]))
    (moved,) = plan_of(problem, solve(problem).assignment).assignments
    assert (moved.topic_partition.partition > 1, moved.log_dirs) == (True, ("/b",))
    problem = balance_disks(posed(hosts, [*going, *loads[:2]]))
    assert plan_of(problem, solve(problem).assignment).assignments == ()
