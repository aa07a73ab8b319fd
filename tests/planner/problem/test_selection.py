import pytest

from kreassign.errors import InputError
from kreassign.planner.problem.policy import TopicChoice, chosen_brokers
from tests.planner.small_problems import brokers, partition, posed

BROKERS = posed(brokers(3, 1, 7), [partition(0, 1)]).brokers


def test_brokers_are_chosen_by_id() -> None:
    assert chosen_brokers(BROKERS, (7, 1)).tolist() == [True, False, True]


@pytest.mark.parametrize(("ids", "words"), [
    ((4, 9, 1), "there is no broker 4,9 in this cluster; it has 1,3,7"),
    ((), "specify at least one broker"),
])  # fmt: skip
def test_brokers_that_are_not_there_are_refused(ids: tuple[int, ...], words: str) -> None:
    with pytest.raises(InputError, match=words):
        chosen_brokers(BROKERS, ids)


NAMES = ("orders", "orders-late", "users")
PARTITIONS = posed(brokers(1), [partition(0, 1, topic=name) for name in NAMES]).partitions


@pytest.mark.parametrize(("choice", "chosen"), [
    (TopicChoice(), {"orders", "orders-late", "users"}),
    (TopicChoice(("orders",)), {"orders"}),
    (TopicChoice(patterns=("orders.*",)), {"orders", "orders-late"}),
    (TopicChoice(("users",), ("orders-.*",)), {"users", "orders-late"}),
    (TopicChoice(excluded=("orders",)), {"orders-late", "users"}),
    (TopicChoice(patterns=("orders.*",), excluded=(".*late",)), {"orders"}),
    (TopicChoice(excluded=("__.*",)), {"orders", "orders-late", "users"}),
])  # fmt: skip
def test_topics_are_chosen_by_name_and_whole_pattern(choice: TopicChoice, chosen: set[str]) -> None:
    assert {name for name, is_in in zip(NAMES, choice.of(PARTITIONS), strict=True) if is_in} == chosen


@pytest.mark.parametrize(("choice", "words"), [
    (TopicChoice(("order",)), "there is no topic 'order' in this cluster; did you mean 'orders', 'orders-late'"),
    (TopicChoice(("x",)), "there is no topic 'x' in this cluster$"),
    (TopicChoice(("ordrs",)), "there is no topic 'ordrs' in this cluster; did you mean 'orders'"),
    (TopicChoice(("orders,users",)), "no topic 'orders,users' in this cluster; a name has no comma: give each"),
    (TopicChoice(patterns=("ordr",)), "no topic matches 'ordr'; did you mean 'orders'.*; a pattern must match"),
    (TopicChoice(patterns=("orders,users",)), "no topic matches 'orders,users'; .*give the option once for each"),
    (TopicChoice(excluded=("x.*",)), "no topic matches 'x"),
    (TopicChoice(patterns=("(",)), "'\\(' is not a regular expression"),
    (TopicChoice(patterns=("x{99999999999}",)), "is not a regular expression: the repetition number"),
    (TopicChoice(patterns=("(" * 5_000,)), "is not a regular expression: it is nested too deeply"),
    (TopicChoice(patterns=("[a-z&&b]+",)), "has a set of characters within a set"),
])  # fmt: skip
def test_a_choice_of_nothing_is_refused(choice: TopicChoice, words: str) -> None:
    with pytest.raises(InputError, match=words):
        choice.of(PARTITIONS)
