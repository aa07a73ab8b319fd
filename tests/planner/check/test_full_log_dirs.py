from kreassign.planner import LogDirFacts
from kreassign.planner.check.full_log_dirs import full_log_dirs
from kreassign.planner.problem.cluster import Assignment
from kreassign.planner.tasks import balance_disks, rebalance
from tests.planner.small_problems import GIGABYTE, brokers, partition, posed


def problem(*held: tuple[int, str]):
    """Two brokers with directories /a and /b of 100 GB; of broker 1 each of these partitions is held in this one."""
    dirs = tuple(LogDirFacts(path, capacity_bytes=100 * GIGABYTE) for path in ("/a", "/b"))
    loads = [partition(n, 1, gigabytes=size, log_dirs=(path,)) for n, (size, path) in enumerate(held)]
    return posed(brokers(1, 2, log_dirs=dirs), [*loads, partition(9, 2, gigabytes=98, log_dirs=("/b",))])


def told(found) -> tuple[str, ...]:
    return full_log_dirs(found, Assignment.current(found.partitions))


def test_a_full_directory_beside_an_empty_one_is_told_with_what_moves_copies_within_the_broker() -> None:
    found = told(rebalance(problem((95, "/a"), (5, "/b")), None))
    assert [one.partition(": ")[0] for one in found] == [
        "log directory /b of broker 2 holds 98% of what it may, another one of it 0%",
        "log directory /a of broker 1 holds 95% of what it may, another one of it 5%",
    ]
    assert all(one.endswith("`kreassign plan disks` moves copies within brokers") for one in found)


def test_where_all_of_a_broker_are_full_more_brokers_are_the_way() -> None:
    first, *_ = [one for one in told(rebalance(problem((99, "/a"), (96, "/b")), None)) if "broker 1" in one]
    assert first == (
        "log directory /a of broker 1 holds 99% of what it may, and no other one of it has room: it needs more brokers "
        "(`kreassign plan add-brokers`) or shorter retention"
    )


def test_what_is_not_full_or_of_unknown_size_or_among_the_goals_is_not_told() -> None:
    assert [one for one in told(rebalance(problem((89, "/a")), None)) if "broker 1" in one] == []
    unknown = posed(brokers(1, log_dirs=(LogDirFacts("/a"),)), [partition(0, 1, log_dirs=("/a",))])
    assert told(unknown) == ()
    assert told(posed(brokers(1), [partition(0, 1)])) == ()
    assert told(balance_disks(problem((95, "/a")))) == ()
