from dataclasses import replace

import pytest

from kreassign.errors import InputError
from kreassign.model import TopicPartition
from kreassign.model.plan_facts import Reason
from kreassign.planner import Band, Problem, Rules
from kreassign.planner.goals import DISK, LEADERS
from kreassign.planner.results import Origin, explain, outcome_of
from tests.planner.small_problems import brokers, moved, partition, posed

UNEVEN = [partition(number, 1, gigabytes=10) for number in range(4)]


def explained(problem: Problem, *lists, number: int = 0) -> tuple[str, ...]:
    return explain(outcome_of(problem, moved(problem, *lists), Origin("test")), TopicPartition("t", number))


def test_a_move_is_explained_by_its_goal_brokers_and_amount() -> None:
    problem = posed(brokers(1, 2), UNEVEN, bands=(Band(DISK, 0.0),))
    assert explained(problem, (0, (2,)), (1, (2,))) == (
        "t-0 goes from [1] to [2]",
        "a copy goes from broker 1 to broker 2: brings disk 20 GB closer to balance",
    )


def test_a_change_of_leader_is_called_so() -> None:
    reason = Reason("leaders", 1, 2, 2.0, leading=True)
    assert str(reason) == "leading goes from broker 1 to broker 2: brings leaders 2 closer to balance"


@pytest.mark.parametrize(("reason", "words"), [
    (Reason("factor", None, 2), "broker 2 gets a copy: the number of replicas is to change"),
    (Reason("factor", 2, None), "the copy on broker 2 goes: the number of replicas is to change"),
    (Reason("drain", 1, 2), "a copy goes from broker 1 to broker 2: broker 1 is to be emptied"),
    (Reason("log-dirs", 1, 1), "a copy goes to another log directory of broker 1: its log directories are uneven"),
])  # fmt: skip
def test_forced_changes_say_what_forces_them(reason: Reason, words: str) -> None:
    assert str(reason) == words


BALANCED = posed(brokers(1, 2, 3), [partition(0, 1, 2), partition(1, 2, 3), partition(2, 3, 1)], bands=(Band(DISK),))


def test_a_replica_stays_where_no_move_of_it_would_help() -> None:
    first, *rest = explained(BALANCED)
    assert first == "t-0 stays on [1, 2]"
    assert len(rest) == 2
    assert all("its broker is within all bands, and moving it, at best to broker 3" in line for line in rest)


def test_a_replica_stays_where_nobody_can_take_it() -> None:
    problem = posed(brokers(1, 2, racks="ab"), [partition(0, 1, 2)], bands=(Band(DISK),))
    assert "no other broker can take it (2 has a replica already)" in explained(problem)[1]
    racked = posed(brokers(1, 2, 3, racks="aba"), [partition(0, 1, 2)], bands=(Band(DISK),))
    assert "the replica on broker 2 stays: no other broker can take it (2 has a replica already, 1 rack)" in explained(
        racked
    )
    barred = posed([replace(host, may_receive=host.id < 3) for host in brokers(1, 2, 3)], [partition(0, 1, 2)])
    assert "1 may receive nothing" in explained(barred)[1]


def test_a_replica_stays_although_a_move_would_help() -> None:
    problem = posed(brokers(1, 2), UNEVEN, bands=(Band(DISK),))
    (line,) = explained(problem, number=1)[1:]
    assert line.startswith(
        "the replica on broker 1 stays: broker 2 could take it and disk would gain, but for its 10 GB"
    )


def test_what_the_task_or_the_policy_forbids_is_said() -> None:
    fixed = posed(brokers(1, 2), [partition(0, 1, may_move=False)])
    assert explained(fixed)[1].startswith("it must stay")
    led = posed(brokers(1, 2), [partition(0, 1)], rules=Rules(between_brokers=False), bands=(Band(LEADERS),))
    assert explained(led)[1] == "this task copies nothing from broker to broker"


def test_a_partition_that_is_not_there_is_refused() -> None:
    with pytest.raises(InputError, match="there is no partition t-9 in this cluster"):
        explained(BALANCED, number=9)
