from dataclasses import replace

import numpy as np
import pytest

from kreassign.errors import InputError
from kreassign.model.replica_columns import ReplicaColumns
from kreassign.planner import BrokerFacts, LogDirFacts
from kreassign.planner.problem.build import cpu_per_cost, problem_from
from kreassign.planner.problem.fingerprint import fingerprint
from tests.planner.replica_rows import ReplicaRow, columns_of

NAN = float("nan")
# Replicas of a-0 (1, 2), a-1 (2), b-0 (3, 1), in the order of no table.
COLUMNS = ReplicaColumns(
    topic_names=("a", "b"),
    topics=np.array([1, 0, 0, 1, 0]),
    partitions=np.array([0, 0, 1, 0, 0]),
    brokers=np.array([1, 2, 2, 3, 1]),
    positions=np.array([1, 1, 0, 0, 0]),
    is_reassigning=np.array([False, False, True, False, False]),
    size_bytes=np.array([NAN, 50.0, 60.0, NAN, 50.0]),
    write_bytes_per_s=np.array([NAN, 4.0, 2.0, NAN, 4.0]),
    paths=("/x", "/y"),
    log_dirs=np.array([0, 1, 1, -1, 0]),
)
HOSTS = (BrokerFacts(2, log_dirs=(LogDirFacts("/y"),)), BrokerFacts(1, rack="r", log_dirs=(LogDirFacts("/x"),)))


def test_replicas_become_lists_in_their_order() -> None:
    found = problem_from(HOSTS, COLUMNS)
    names = [str(found.partitions.name(index)) for index in range(len(found.partitions))]
    assert names == ["a-0", "a-1", "b-0"]
    assert [found.brokers.ids[found.partitions.list_of(index)].tolist() for index in range(3)] == [[1, 2], [2], [3, 1]]
    assert found.partitions.size_bytes.tolist() == [50, 60, 0]


def test_what_moves_or_has_no_known_size_is_fixed() -> None:
    assert problem_from(HOSTS, COLUMNS).partitions.may_move.tolist() == [True, False, False]


def test_a_broker_that_holds_replicas_but_is_not_told_of_is_dead() -> None:
    found = problem_from(HOSTS, COLUMNS).brokers
    assert found.ids.tolist() == [1, 2, 3]
    assert found.is_live.tolist() == [True, True, False]


def test_leaders_send_to_followers_and_consumers_and_cpu_follows_the_bytes() -> None:
    found = problem_from(HOSTS, COLUMNS, reads_per_write=3.0).partitions
    assert found.read_bytes_per_s.tolist() == [16.0, 6.0, 0.0]
    assert found.leader_cpu[0] == pytest.approx(0.7 * 4 + 0.15 * 16)
    assert found.follower_cpu[0] == pytest.approx(0.15 * 4)


def test_reads_that_were_measured_count_instead_of_the_assumption() -> None:
    measured = replace(COLUMNS, read_bytes_per_s=np.array([NAN, 20.0, NAN, NAN, 20.0]))
    found = problem_from(HOSTS, measured, reads_per_write=3.0).partitions
    assert found.read_bytes_per_s.tolist() == [24.0, 6.0, 0.0]
    assert found.leader_cpu[0] == pytest.approx(0.7 * 4 + 0.15 * 24)


def test_cpu_that_was_measured_counts_and_the_rest_is_estimated_by_it() -> None:
    """Parts of a broker's CPU, all of them: a limit such as 0.7 means something beside them."""
    plain = problem_from(HOSTS, COLUMNS).partitions
    measured = replace(
        COLUMNS,
        leader_cpu=np.array([NAN, 0.24, NAN, NAN, 0.24]),
        follower_cpu=np.array([NAN, 0.06, NAN, NAN, 0.06]),
    )
    found = problem_from(HOSTS, measured).partitions
    assert (found.leader_cpu[0], found.follower_cpu[0]) == (0.24, 0.06)
    # The bytes of a-0 are known to take 0.3 of a CPU.
    scale = 0.3 / (plain.leader_cpu[0] + plain.follower_cpu[0])
    assert found.leader_cpu[1:].tolist() == pytest.approx((scale * plain.leader_cpu[1:]).tolist())
    assert found.follower_cpu[1] == pytest.approx(scale * plain.follower_cpu[1])
    assert cpu_per_cost(found) == pytest.approx(found.leader_cpu.sum() / plain.leader_cpu.sum())
    assert cpu_per_cost(plain) == 1.0


def test_without_writes_measured_cpu_stays() -> None:
    idle = replace(COLUMNS, write_bytes_per_s=np.zeros(5), leader_cpu=np.array([NAN, 0.02, NAN, NAN, 0.02]))
    found = problem_from(HOSTS, idle).partitions
    assert (found.leader_cpu.tolist(), found.follower_cpu.tolist()) == ([0.02, 0, 0], [0, 0, 0])


def test_directories_are_found_by_broker_and_path() -> None:
    found = problem_from(HOSTS, COLUMNS)
    assert found.log_dirs is not None
    assert found.log_dirs.paths == ("/x", "/y")
    assert found.partitions.log_dirs.tolist() == [0, 1, 1, -1, 0]
    assert problem_from(HOSTS, replace(COLUMNS, log_dirs=None)).partitions.log_dirs.tolist() == [-1] * 5
    elsewhere = replace(COLUMNS, log_dirs=np.array([1, 1, 1, -1, 1]))
    assert problem_from(HOSTS, elsewhere).partitions.log_dirs.tolist() == [-1, 1, 1, -1, -1]


def test_a_copy_in_no_directory_of_a_broker_with_a_failed_one_is_lost() -> None:
    repaired = BrokerFacts(1, log_dirs=(LogDirFacts("/x"),)), BrokerFacts(3, log_dirs=(LogDirFacts("/z"),))
    failed = HOSTS[0], repaired[0], BrokerFacts(3, log_dirs=(LogDirFacts("/z", is_offline=True), LogDirFacts("/y")))
    assert not problem_from((HOSTS[0], *repaired), COLUMNS).partitions.is_lost.any()
    found = problem_from(failed, COLUMNS)
    assert found.partitions.is_lost.tolist() == [False, False, False, True, False]
    assert found.log_dirs is not None
    assert found.log_dirs.may_receive.tolist() == [True, True, True, False]


def test_what_nobody_that_lives_has_a_copy_of_may_not_move() -> None:
    rows = [ReplicaRow("t", number, broker, 0, False, 9, 1.0, None) for number, broker in enumerate((1, 9))]
    assert problem_from((BrokerFacts(1),), columns_of(rows)).partitions.may_move.tolist() == [True, False]


def test_a_broker_twice_in_a_list_is_refused() -> None:
    with pytest.raises(InputError, match="partition a-0 has a broker more than once"):
        problem_from(HOSTS, replace(COLUMNS, brokers=np.array([1, 2, 2, 3, 2])))


def test_rows_are_columns_one_by_one() -> None:
    rows = [
        ReplicaRow("b", 0, 1, 1, False, None, None, "/x"), ReplicaRow("a", 0, 2, 1, False, 50, 4.0, "/y"),
        ReplicaRow("a", 1, 2, 0, True, 60, 2.0, "/y"), ReplicaRow("b", 0, 3, 0, False, None, None, None),
        ReplicaRow("a", 0, 1, 0, False, 50, 4.0, "/x"),
    ]  # fmt: skip
    assert fingerprint(problem_from(HOSTS, columns_of(rows))) == fingerprint(problem_from(HOSTS, COLUMNS))


def test_sizes_that_no_cluster_has_are_refused_with_the_largest() -> None:
    sizes = {0: 2.0**62, 1: 2.0**63, 2: 9.0}
    rows = [ReplicaRow("t", number, 1, 0, False, size, 1.0, None) for number, size in sizes.items()]
    with pytest.raises(InputError, match=r"hold 13.8 EB in all, the largest t-1 with 9.22 EB"):
        problem_from((BrokerFacts(1),), columns_of(rows))
    rows = [ReplicaRow("t", number, 1, 0, False, 10.0**17, 1.0, None) for number in range(10)]
    assert int(problem_from((BrokerFacts(1),), columns_of(rows)).partitions.size_bytes.sum()) == 10**18
