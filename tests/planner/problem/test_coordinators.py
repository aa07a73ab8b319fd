"""Coordinators, weighed by what they coordinate."""

from __future__ import annotations

from collections import Counter

import pytest

from kreassign.errors import InputError
from kreassign.model.text import share_of, string_hash
from kreassign.planner import Band, PlanPolicy, Problem, evaluate, problem_of, solve, with_policy
from kreassign.planner.goals import COORDINATORS, DISK
from kreassign.planner.problem.policy import (
    GROUPS,
    SHARE_GROUPS,
    TRANSACTIONS,
    Coordinated,
    parse_names,
    parse_share_groups,
    with_coordinated,
)
from kreassign.planner.tasks import leaders_only
from tests.planner.small_problems import brokers, partition

UUID = "AAAAAAAAAAAAAAAAAAAAAQ"


def internal(topic: str, count: int, *replicas: int) -> list:
    return [partition(number, *(replicas or (1, 2)), topic=topic, gigabytes=0.001) for number in range(count)]


def counts(problem: Problem, topic: str) -> list[float]:
    chosen = problem.partitions.topics == problem.partitions.topic_names.index(topic)
    found: list[float] = problem.partitions.coordinated_count[chosen].tolist()
    return found


def test_by_hand_foo_and_bar() -> None:
    """ "foo".hashCode() is 101574, "bar".hashCode() 97299: of 50 partitions 24 and 49."""
    problem = problem_of(brokers(1, 2), internal(GROUPS, 50))
    found = with_coordinated(problem, Coordinated(groups=("foo", "bar", "foo")), {})
    assert {place: one for place, one in enumerate(counts(found, GROUPS)) if one} == {24: 1.0, 49: 1.0}


def test_transactional_ids_and_share_groups_belong_to_their_own_topics() -> None:
    loads = [*internal(GROUPS, 3), *internal(TRANSACTIONS, 5), *internal(SHARE_GROUPS, 7), *internal("t", 2)]
    who = Coordinated(("g",), ("x", "y"), (("s", "t"),))
    found = with_coordinated(problem_of(brokers(1, 2), loads), who, {"t": UUID})
    for topic, keys in ((GROUPS, ["g"]), (TRANSACTIONS, ["x", "y"]), (SHARE_GROUPS, [f"s:{UUID}:0", f"s:{UUID}:1"])):
        size = len(counts(found, topic))
        wanted = Counter(share_of(string_hash(key), size) for key in keys)
        assert counts(found, topic) == [wanted[place] for place in range(size)]
    assert sum(counts(found, "t")) == 0


def test_leaders_are_balanced_by_what_they_coordinate_not_by_bytes() -> None:
    """All groups of partition 0 weigh as much as those of 1 to 3 together, whatever their sizes."""
    loads = internal(GROUPS, 4)
    names = [f"group-{number}" for number in range(2_000)]
    by_place = {place: [one for one in names if share_of(string_hash(one), 4) == place] for place in range(4)}
    who = Coordinated(tuple(by_place[0][:30] + by_place[1][:10] + by_place[2][:10] + by_place[3][:10]))
    problem = with_coordinated(problem_of(brokers(1, 2), loads), who, {})
    problem = leaders_only(with_policy(problem, PlanPolicy(bands=(Band(DISK), Band(COORDINATORS, 0.0)))))
    found = solve(problem).assignment
    judged = evaluate(problem, found)
    assert judged.violations == ()
    assert judged.before[:, 1].tolist() == [60, 0]
    assert judged.after[:, 1].tolist() == [30, 30]
    assert judged.misses() == ()


def test_the_goal_without_anybody_to_coordinate_is_refused() -> None:
    with pytest.raises(InputError, match="goal coordinators: nothing is known of what is coordinated; name it with"):
        with_policy(problem_of(brokers(1, 2), internal(GROUPS, 4)), PlanPolicy(bands=(Band(COORDINATORS),)))


@pytest.mark.parametrize(("who", "words"), [
    (Coordinated(groups=("g",)), "there is no topic __consumer_offsets in this cluster"),
    (Coordinated(transactional_ids=("x",)), "there is no topic __transaction_state in this cluster"),
    (Coordinated(share_groups=(("s", "u"),)), "share group s: there is no topic 'u'"),
    (Coordinated(share_groups=(("s", "t"),)), "share group s: the id of topic t is not known"),
])  # fmt: skip
def test_topics_that_are_not_there_are_named(who: Coordinated, words: str) -> None:
    with pytest.raises(InputError, match=words):
        with_coordinated(problem_of(brokers(1, 2), internal("t", 2)), who, {})


def test_names_are_read_line_by_line() -> None:
    assert parse_names("a b\r\n\nc\nc\n") == ("a b", "c")
    assert parse_share_groups("s:1:t\ns:u\n") == (("s:1", "t"), ("s", "u"))
    for wrong in ("s", ":t", "s:"):
        with pytest.raises(InputError, match=r"line 3: '.*' names no share group and topic; write GROUP:TOPIC"):
            parse_share_groups(f"s:t\n\n{wrong}\n")
    with pytest.raises(InputError, match="line 2: no text, but zero bytes"):
        parse_names("g\n\0\n")
