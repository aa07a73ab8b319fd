from collections.abc import Callable
from dataclasses import replace

import pytest

from kreassign.errors import Infeasible, InputError
from kreassign.model import TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.planner import Band, BrokerFacts, Budget, LogDirFacts, PartitionFacts, Problem, Rules, plan_of, solve
from kreassign.planner.check.evaluate import evaluate
from kreassign.planner.goals import DISK
from kreassign.planner.problem.policy import PlanPolicy, with_policy
from kreassign.planner.tasks import drain_brokers, drain_log_dirs, in_unknown_log_dirs, only_forced, replace_brokers
from tests.planner.small_problems import GIGABYTE, brokers, partition, plan, posed

LOADS = [partition(0, 1, 2), partition(1, 2, 3)]
WITHOUT_T = PlanPolicy(excluded_topics=("t",))


def test_drained_brokers_must_become_empty() -> None:
    assert drain_brokers(posed(brokers(1, 2, 3), LOADS), (2,)).brokers.must_empty.tolist() == [False, True, False]


def test_somebody_must_be_left() -> None:
    with pytest.raises(InputError, match="no broker would be left"):
        drain_brokers(posed(brokers(1, 2, 3), LOADS), (1, 2, 3))


def test_a_successor_takes_every_place_of_its_broker_and_no_other() -> None:
    problem, assignment = replace_brokers(posed(brokers(1, 2, 3, 4), LOADS), {2: 4})
    assert plan_of(problem, assignment) == plan((0, (1, 4)), (1, (4, 3)))
    assert evaluate(problem, assignment).legal


def test_a_dead_broker_can_be_replaced() -> None:
    hosts = [replace(host, is_live=host.id != 2) for host in brokers(1, 2, 3, 4)]
    problem, assignment = replace_brokers(posed(hosts, LOADS), {2: 4})
    assert evaluate(problem, assignment).legal


def test_replicas_keep_the_path_of_their_directory_if_possible() -> None:
    hosts = [replace(host, log_dirs=tuple(LogDirFacts(path) for path in paths))
             for host, paths in zip(brokers(1, 2), (("/a", "/b"), ("/b", "/c")), strict=True)]  # fmt: skip
    loads = [partition(0, 1, log_dirs=("/a",)), partition(1, 1, log_dirs=("/b",))]
    problem, assignment = replace_brokers(posed(hosts, loads), {1: 2})
    assert [entry.log_dirs for entry in plan_of(problem, assignment).assignments] == [("any",), ("/b",)]


@pytest.mark.parametrize(("successors", "words"), [
    ({2: 3}, "broker 3 already has a replica of t-1"),
    ({2: 9}, "there is no broker 9"),
    ({1: 2, 2: 4}, "broker 2 cannot take over from 1"),
    ({1: 4, 2: 4}, "a successor of its own"),
    ({2: 5}, "broker 5 cannot take over from 2"),
])  # fmt: skip
def test_a_successor_that_cannot_take_over_is_refused(successors: dict[int, int], words: str) -> None:
    hosts = [replace(host, may_receive=host.id != 5) for host in brokers(1, 2, 3, 4, 5)]
    with pytest.raises(InputError, match=words):
        replace_brokers(posed(hosts, LOADS), successors)


def test_excluded_partitions_on_a_drained_broker_are_named_with_the_way() -> None:
    problem = drain_brokers(with_policy(posed(brokers(1, 2, 3, 4), LOADS), WITHOUT_T), (2,))
    with pytest.raises(Infeasible) as refused:
        solve(problem)
    assert "broker 2 cannot be emptied: t-0, t-1 must stay (of an excluded topic); take" in str(refused.value)
    way = "if these may stay on brokers that leave, take those out with `kreassign decommission 2 --may-stay t`"
    assert way in str(refused.value)


def test_an_excluded_partition_on_the_successor_is_named_as_excluded() -> None:
    problem, assignment = replace_brokers(with_policy(posed(brokers(1, 2, 3), LOADS), WITHOUT_T), {2: 3})
    assert "t-1 must stay (of an excluded topic)" in str(evaluate(problem, assignment).violations)


PROBLEM = posed(brokers(1, 2, log_dirs=(LogDirFacts("/a"), LogDirFacts("/b"))), [partition(0, 1, log_dirs=("/a",))])


def test_directories_must_become_empty_and_replicas_stay_on_their_broker() -> None:
    found = drain_log_dirs(PROBLEM, [(2, "/a")])
    assert found.log_dirs is not None
    assert found.log_dirs.must_empty.tolist() == [False, False, True, False]
    assert (found.rules.between_log_dirs, found.rules.between_brokers) == (True, False)
    assert drain_log_dirs(PROBLEM, [(2, "/a")], between_brokers=True).rules.between_brokers


@pytest.mark.parametrize(("places", "words"), [
    ([(1, "/c")], "broker 1 has no log directory /c; it has /a, /b"),
    ([(7, "/a")], "broker 7 has no log directory /a; it has none"),
])  # fmt: skip
def test_directories_that_are_not_there_are_refused(places: list[tuple[int, str]], words: str) -> None:
    with pytest.raises(InputError, match=words):
        drain_log_dirs(PROBLEM, places)


def test_copies_on_their_way_into_a_drained_directory_are_named() -> None:
    hosts = brokers(1, 2, log_dirs=(LogDirFacts("/a"), LogDirFacts("/b")))
    problem = posed(hosts, [partition(0, 1, log_dirs=("/b",), future_log_dirs={1: "/a"})])
    with pytest.raises(Infeasible, match="broker 1 is moving copies into /a: t-0; wait for that, then plan again"):
        drain_log_dirs(problem, [(1, "/a")])


def test_copies_on_their_way_out_of_a_drained_directory_stay_so() -> None:
    hosts = brokers(1, 2, log_dirs=(LogDirFacts("/a"), LogDirFacts("/b"), LogDirFacts("/c")))
    loads = [partition(0, 1, log_dirs=("/a",), future_log_dirs={1: "/c"}), partition(1, 1, log_dirs=("/a",))]
    problem = drain_log_dirs(posed(hosts, loads), [(1, "/a")])
    assert plan_of(problem, solve(problem).assignment) == Plan(
        (PartitionAssignment(TopicPartition("t", 1), (1,), ("/b",)),)
    )


@pytest.mark.parametrize("between_brokers", [True, False])
def test_held_copies_in_a_drained_directory_are_refused_by_name(between_brokers: bool) -> None:
    hosts = brokers(1, 2, log_dirs=(LogDirFacts("/a"), LogDirFacts("/b")))
    loads = [partition(0, 1, log_dirs=("/a",)), partition(1, 1, log_dirs=("/a",), may_move=False)]
    problem = drain_log_dirs(posed(hosts, loads), [(1, "/a")], between_brokers=between_brokers)
    with pytest.raises(Infeasible) as refused:
        solve(problem)
    assert str(refused.value) == (
        "no plan keeps the rules:\n"
        "  - log directory /a of broker 1 cannot be emptied: t-1 must stay (to stay); plan without that"
    )


def test_without_any_directory_known_it_is_refused() -> None:
    with pytest.raises(InputError, match="nothing is known of log directories"):
        drain_log_dirs(posed(brokers(1), [partition(0, 1)]), [(1, "/a")])


def test_a_broker_without_another_directory_gives_its_replicas_away() -> None:
    alone = posed(brokers(1, 2, log_dirs=(LogDirFacts("/a"),)), [partition(0, 1, log_dirs=("/a",))])
    for problem, places in ((alone, [(1, "/a")]), (PROBLEM, [(1, "/a"), (1, "/b")])):
        with pytest.raises(Infeasible, match=r"broker 1 would have no log directory left; .*drain-brokers 1`"):
            drain_log_dirs(problem, places)
        drained = drain_log_dirs(problem, places, between_brokers=True)
        found = solve(drained).assignment
        assert evaluate(drained, found).violations == ()
        assert found.lists() == [[1]]


CLOSED, SMALL = LogDirFacts("/b", may_receive=False), LogDirFacts("/b", 5 * GIGABYTE)
FOR_ONE = LogDirFacts("/b", 15 * GIGABYTE)


def half_closed(other: LogDirFacts, *more: BrokerFacts) -> Problem:
    """Broker 1 has two partitions of 10 GB in /a and a small one in `other`; the task empties /a."""
    loads = [partition(number, 1, log_dirs=("/a",)) for number in range(2)]
    loads += [partition(2, 1, gigabytes=1, log_dirs=("/b",))]
    hosts = [BrokerFacts(1, log_dirs=(LogDirFacts("/a"), other)), *more]
    return drain_log_dirs(posed(hosts, loads, bands=(Band(DISK, None),)), [(1, "/a")], between_brokers=True)


@pytest.mark.parametrize(("other", "leaving"), [(CLOSED, 2), (SMALL, 2), (FOR_ONE, 1)])
@pytest.mark.parametrize("task", [only_forced, lambda problem: problem])
def test_what_has_no_room_in_its_broker_goes_to_others(
    other: LogDirFacts, leaving: int, task: Callable[[Problem], Problem]
) -> None:
    problem = task(half_closed(other, BrokerFacts(2, log_dirs=(LogDirFacts("/a"),))))
    found = solve(problem).assignment
    judged = evaluate(problem, found)
    assert (judged.violations, judged.unfinished, judged.moves) == ((), (), leaving)
    assert found.lists()[2] == [0]


@pytest.mark.parametrize(("rules", "loads"), [
    (Rules(topic_leaders=0.0), [partition(0, 1, log_dirs=("/a",)), partition(1, 2, log_dirs=("/a",))]),
    (Rules(failover=0.0), [partition(0, 1, 2, log_dirs=("/a", "/a")), partition(1, 2, 3, log_dirs=("/a", "/a")),
                           partition(2, 3, 1, log_dirs=("/a", "/b"))]),
])  # fmt: skip
def test_copies_without_room_leave_where_a_goal_is_met_better_now(rules: Rules, loads: list[PartitionFacts]) -> None:
    hosts = [BrokerFacts(1, log_dirs=(LogDirFacts("/a"), CLOSED)), *brokers(2, 3, log_dirs=(LogDirFacts("/a"),))]
    problem = posed(hosts[: len(loads)], loads, bands=(Band(DISK, None),), rules=rules)
    problem = drain_log_dirs(problem, [(1, "/a")], between_brokers=True)
    found = solve(problem).assignment
    judged = evaluate(problem, found)
    assert (judged.violations, judged.unfinished) == ((), ())
    assert 0 not in found.lists()[0]


@pytest.mark.parametrize(("other", "beside"), [(CLOSED, 1), (SMALL, 1), (FOR_ONE, 10)])
@pytest.mark.parametrize("task", [only_forced, lambda problem: problem])
def test_copies_may_crowd_a_rack_where_no_other_directory_takes_them(
    other: LogDirFacts, beside: int, task: Callable[[Problem], Problem]
) -> None:
    """The other directory is closed, too small, or full of a partition that must stay in it."""
    hosts = [BrokerFacts(1, "a", log_dirs=(LogDirFacts("/a"), other))]
    hosts += brokers(2, 3, racks="bb", log_dirs=(LogDirFacts("/a"),))
    loads = [partition(0, 1, 2, log_dirs=("/a", "/a"))]
    loads += [partition(1, 1, gigabytes=beside, log_dirs=("/b",), may_move=False)]
    problem = posed(hosts, loads, bands=(Band(DISK, None),))
    problem = task(drain_log_dirs(problem, [(1, "/a")], between_brokers=True))
    found = solve(problem).assignment
    assert (sorted(found.lists()[0]), evaluate(problem, found).violations) == ([1, 2], ())


def with_room(room: dict[int, float]) -> Problem:
    """Broker 1 empties its only open directory, of 10 GB; each of the two of any other has so many GB of room."""
    hosts = [BrokerFacts(1, log_dirs=(LogDirFacts("/a"), CLOSED))]
    loads = [partition(0, 1, log_dirs=("/a",))]
    for broker, gigabytes in room.items():
        size = int((gigabytes + 10) * GIGABYTE)
        hosts += brokers(broker, log_dirs=(LogDirFacts("/a", size), LogDirFacts("/b", size)))
        loads += [partition(10 * broker + one, broker, log_dirs=(path,)) for one, path in enumerate(("/a", "/b"))]
    return drain_log_dirs(posed(hosts, loads, bands=(Band(DISK, None),)), [(1, "/a")], between_brokers=True)


@pytest.mark.parametrize("roomy", [2, 3, 4])
@pytest.mark.parametrize("task", [only_forced, lambda problem: problem])
def test_a_copy_goes_to_the_broker_whose_directories_have_room(roomy: int, task: Callable[[Problem], Problem]) -> None:
    problem = task(with_room({broker: 10 if broker == roomy else 6 for broker in (2, 3, 4)}))
    found = solve(problem).assignment
    assert evaluate(problem, found).violations == ()
    assert found.lists()[0] == [roomy - 1]


@pytest.mark.parametrize("task", [only_forced, lambda problem: problem])
def test_why_no_broker_takes_a_copy_of_a_drained_directory_is_said(task: Callable[[Problem], Problem]) -> None:
    with pytest.raises(Infeasible) as refused:
        solve(task(with_room({2: 6, 3: 6})))
    assert str(refused.value) == (
        "t-0 must leave a drained log directory, and no other one of the broker has room: 1 replica (10 GB) must be "
        "placed and no broker may take them: t-0; every other receiver has lost its copy of it, or none of its log "
        "directories has room for it"
    )


@pytest.mark.parametrize("more", [[], [BrokerFacts(2, log_dirs=(SMALL,), capacity={"disk": 5.0 * GIGABYTE})]])
def test_a_directory_drain_without_room_anywhere_is_refused(more: list[BrokerFacts]) -> None:
    with pytest.raises(Infeasible) as refused:
        solve(only_forced(half_closed(SMALL, *more)))
    larger = "a replica of 10 GB is larger than any log directory that may take it; the largest may hold 5 GB"
    assert str(refused.value) == (
        "t-0, t-1 must leave a drained log directory, and no other one of the broker has room: no plan keeps the "
        f"rules:\n  - t-0: {larger}\n  - t-1: {larger}"
    )


def test_a_budget_leaves_the_rest_of_a_directory_drain() -> None:
    problem = only_forced(half_closed(CLOSED, BrokerFacts(2, log_dirs=(LogDirFacts("/a"),))))
    problem = replace(problem, budget=Budget(moves=1))
    judged = evaluate(problem, solve(problem).assignment)
    assert (judged.violations, len(judged.unfinished), judged.moves) == ((), 1, 1)


def test_copies_in_an_unknown_directory_are_told() -> None:
    hosts = brokers(1, 2, log_dirs=(LogDirFacts("/a"), LogDirFacts("/b")))
    loads = [partition(0, 1, 2, log_dirs=("/a", "/a")), partition(1, 1, 2)]
    told = (
        "broker 1 did not report in which log directory it has t-1: a drained one may keep copies; take a new "
        "snapshot, then plan again"
    )
    assert tuple(in_unknown_log_dirs(drain_log_dirs(posed(hosts, loads), [(1, "/a")]))) == (told,)
