from dataclasses import replace

from kreassign.planner import LogDirFacts
from kreassign.planner.check.evaluate import full_log_dirs
from kreassign.planner.problem.problem import Assignment
from kreassign.planner.tasks import balance_disks, rebalance
from tests.approved import approve
from tests.planner.sentences import says
from tests.planner.small_problems import GIGABYTE, brokers, moved, partition, posed


def problem(*held: tuple[int, str]):
    """Two brokers with directories /a and /b of 100 GB; of broker 1 each of these partitions is held in this one."""
    dirs = tuple(LogDirFacts(path, capacity_bytes=100 * GIGABYTE) for path in ("/a", "/b"))
    loads = [partition(n, 1, gigabytes=size, log_dirs=(path,)) for n, (size, path) in enumerate(held)]
    return posed(brokers(1, 2, log_dirs=dirs), [*loads, partition(9, 2, gigabytes=98, log_dirs=("/b",))])


def told(found) -> tuple[str, ...]:
    return full_log_dirs(found, Assignment.current(found.partitions))


def test_a_full_directory_beside_an_empty_one_names_plan_disks() -> None:
    found = told(rebalance(problem((95, "/a"), (5, "/b")), None))
    assert [one.partition(": ")[0] for one in found] == [
        says("full directory", "/b", 2, "98%", "another one of it 0%"),
        says("full directory", "/a", 1, "95%", "another one of it 5%"),
    ]
    assert all(one.endswith("`kreassign plan disks` moves copies within brokers") for one in found)


def test_where_all_of_a_broker_are_full_more_brokers_are_the_way() -> None:
    approve(told(rebalance(problem((99, "/a"), (96, "/b")), None)), "full-log-directories")


def test_directories_not_full_or_unknown_or_among_goals_are_not_told() -> None:
    assert [one for one in told(rebalance(problem((89, "/a")), None)) if "broker 1" in one] == []
    unknown = posed(brokers(1, log_dirs=(LogDirFacts("/a"),)), [partition(0, 1, log_dirs=("/a",))])
    assert told(unknown) == ()
    assert told(posed(brokers(1), [partition(0, 1)])) == ()
    assert told(balance_disks(problem((95, "/a")))) == ()


def held(*sizes: int, dirs: tuple[LogDirFacts, ...]) -> list[str]:
    """Sentences about broker 1 with these directories, /0 and so on, of which each holds so many bytes."""
    loads = [replace(partition(n, 1, log_dirs=(f"/{n}",)), size_bytes=size) for n, size in enumerate(sizes)]
    return [one.partition(": ")[0] for one in told(posed(brokers(1, log_dirs=dirs), loads))]


def dirs_of(*capacities: int | None) -> tuple[LogDirFacts, ...]:
    """Directories /0 and so on."""
    return tuple(LogDirFacts(f"/{n}", capacity_bytes=capacity) for n, capacity in enumerate(capacities))


def full(path: str, share: str, other: str = "and no other one of it has room") -> str:
    """Sentence about a directory of broker 1."""
    return says("full directory", path, 1, share, other)


def test_nine_tenths_are_full_and_no_room() -> None:
    assert held(90, 89, dirs=dirs_of(100, 100)) == [full("/0", "90%", "another one of it 89%")]
    assert held(90, 90, dirs=dirs_of(100, 100)) == [full("/0", "90%"), full("/1", "90%")]
    assert held(1, dirs=dirs_of(1)) == [full("/0", "100%")]


def test_only_a_directory_that_may_receive_and_has_a_size_is_another_one() -> None:
    alone = full("/0", "95%")
    first, second = dirs_of(100, 100)
    assert held(95, 5, dirs=(first, replace(second, may_receive=False))) == [alone]
    assert held(95, 5, dirs=dirs_of(100, None)) == [alone]
    assert held(95, dirs=dirs_of(100, 0)) == [alone]
    assert held(95, dirs=dirs_of(100, 100)) == [full("/0", "95%", "another one of it 0%")]
    assert held(95, 99, dirs=(first, replace(second, must_empty=True))) == [alone]


def test_of_many_the_emptiest_has_room_and_the_first_twenty_are_told() -> None:
    assert held(95, 50, 30, dirs=dirs_of(100, 100, 100))[0].endswith("another one of it 30%")

    def all_full(count: int) -> list[str]:
        return [full(f"/{n}", "95%") for n in sorted(range(count), key=str)]

    assert held(*[95] * 20, dirs=dirs_of(*[100] * 20)) == all_full(20)
    assert held(*[95] * 21, dirs=dirs_of(*[100] * 21)) == [*all_full(21)[:20], "and 1 full log directories more"]
    assert held(*[95] * 22, dirs=dirs_of(*[100] * 22)) == [*all_full(22)[:20], "and 2 full log directories more"]


def test_copies_that_come_from_elsewhere_count_for_no_directory() -> None:
    cluster = rebalance(problem((50, "/a"), (45, "/b")), None)
    assert full_log_dirs(cluster, moved(cluster, (9, (1,)))) == ()
