"""Bytes sent by each broker where consumers fetch from followers; more in `tests/planner/problem/test_consumers`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kreassign.planner import Assignment, Band, PartitionFacts, RackRule, Rules
from kreassign.planner.check.evaluate import bytes_sent_by_brokers, evaluate
from kreassign.planner.goals import DISK, NET_OUT
from tests.planner.sentences import says
from tests.planner.small_problems import GIGABYTE, brokers, moved, partition, posed

HOSTS = brokers(1, 2, 3, 4, racks="abbc")
RULES = Rules(consumer_racks={"t": {"b": 0.5, "c": 0.25}})
FIRST = partition(0, 1, 2, 3, write_bytes_per_s=10.0, read_bytes_per_s=110.0)
OTHER = partition(0, 4, 1, topic="u", write_bytes_per_s=5.0, read_bytes_per_s=25.0)


def sent(*loads: PartitionFacts) -> list[float]:
    problem = posed(HOSTS, loads, rules=RULES)
    found: list[float] = bytes_sent_by_brokers(problem, Assignment.current(problem.partitions)).tolist()
    return found


def test_followers_share_the_reads_of_a_rack_and_the_leader_the_rest() -> None:
    # 20 of 110 go to followers. Of the other 90 half go to rack b, which has two; of c there is no replica.
    assert sent(FIRST) == [20 + 45, 22.5, 22.5, 0]


def test_each_partition_is_read_in_the_racks_that_it_has() -> None:
    # 10 of 50 go to the follower. Of the other 40 a quarter is for rack c.
    last = partition(1, 1, 4, write_bytes_per_s=10.0, read_bytes_per_s=50.0)
    assert sent(FIRST, last) == [65 + 40, 22.5, 22.5, 10]
    assert sent(FIRST, last, partition(2, 1, read_bytes_per_s=7.0)) == [65 + 40 + 7, 22.5, 22.5, 10]


def test_of_topics_and_racks_that_are_not_named_leaders_send_all() -> None:
    assert sent(OTHER) == [0, 0, 0, 25]
    assert sent(FIRST, OTHER) == [65, 22.5, 22.5, 25]
    near = partition(1, 4, 1, write_bytes_per_s=5.0, read_bytes_per_s=25.0)
    assert sent(near) == [0, 0, 0, 25]


def test_more_is_written_than_read_while_nobody_consumes() -> None:
    assert sent(partition(0, 1, 2, write_bytes_per_s=100.0, read_bytes_per_s=50.0)) == [50, 0, 0, 0]


def test_what_followers_send_now_is_part_of_what_is_read() -> None:
    problem = posed(HOSTS, [replace(FIRST, read_bytes_per_s=50.0)], rules=RULES)
    problem = replace(problem, partitions=replace(problem.partitions, follower_reads=np.array([30.0])))
    assert bytes_sent_by_brokers(problem, Assignment.current(problem.partitions)).tolist() == [65, 22.5, 22.5, 0]


def test_readers_follow_the_replicas_of_a_plan() -> None:
    problem = posed(HOSTS, [FIRST], rules=RULES)
    # Now led in b: its half comes from the leader, though 3 is there too. What is copied to c is read there.
    assert bytes_sent_by_brokers(problem, moved(problem, (0, (2, 3, 4)))).tolist() == [0, 20 + 67.5, 0, 22.5]


def test_where_consumers_read_changes_no_limit() -> None:
    hosts = [replace(host, capacity={"net-out": 109.0 if host.id == 4 else 1e9}) for host in HOSTS]
    problem = posed(hosts, [FIRST], rules=replace(RULES, racks=RackRule.NONE), bands=(Band(NET_OUT), Band(DISK)))
    found = evaluate(problem, moved(problem, (0, (4, 2, 3))))
    assert found.before.tolist() == [[65, 10 * GIGABYTE], [22.5, 10 * GIGABYTE], [22.5, 10 * GIGABYTE], [0, 0]]
    # Led in c, half of 90 is read in b; of the other half a quarter is for c itself.
    assert found.after[:, 0].tolist() == [0, 22.5, 22.5, 65]
    assert found.violations == (says("over a limit", "broker 4: net-out", "110 B/s", "1 B/s", "109 B/s"),)
    without = evaluate(replace(problem, rules=Rules(racks=RackRule.NONE)), Assignment.current(problem.partitions))
    assert without.before[:, 0].tolist() == [110, 0, 0, 0]
