import pytest
from hypothesis import given
from hypothesis import strategies as st

from kreassign.model import OngoingReassignment, Reassignment

REPLICAS = st.lists(st.integers(0, 6), min_size=1, max_size=5, unique=True).map(tuple)

# What real controllers stored: original, target, then the full list, adding and removing.
SEEN_ON_KAFKA = [
    ((2, 1, 0), (2, 5, 1, 0, 4), (2, 5, 1, 0, 4), (4, 5), ()),
    ((3, 2, 1, 0), (3, 1), (3, 1, 0, 2), (), (0, 2)),
    ((3, 2, 1, 0), (5, 3, 1, 4), (5, 3, 1, 4, 0, 2), (4, 5), (0, 2)),
    ((0, 1), (2, 3), (2, 3, 0, 1), (2, 3), (0, 1)),
    ((0, 1, 2), (4, 1, 0), (4, 1, 0, 2), (4,), (2,)),
]


@pytest.mark.parametrize(("original", "target", "replicas", "adding", "removing"), SEEN_ON_KAFKA)
def test_a_change_shows_what_the_controller_stores(
    original: tuple[int, ...],
    target: tuple[int, ...],
    replicas: tuple[int, ...],
    adding: tuple[int, ...],
    removing: tuple[int, ...],
) -> None:
    change = Reassignment(original, target)
    assert (change.replicas, change.adding, change.removing) == (replicas, adding, removing)


def test_what_is_added_and_removed_is_also_known_in_the_order_of_the_lists() -> None:
    change = Reassignment((3, 2, 1, 0), (5, 3, 1, 4))
    assert (change.adding_in_order, change.removing_in_order) == ((5, 4), (2, 0))


def test_a_broker_that_a_list_names_twice_is_added_or_removed_once() -> None:
    change = Reassignment((3, 1, 3), (5, 1, 4, 5))
    assert (change.adding_in_order, change.removing_in_order) == ((5, 4), (3,))
    assert (change.adding, change.removing, change.replicas) == ((4, 5), (3,), (5, 1, 4, 5, 3))


def test_the_full_list_keeps_its_order_without_what_comes_or_goes() -> None:
    ongoing = OngoingReassignment((4, 2, 3, 1), adding=(2, 4), removing=(3,))
    assert (ongoing.target, ongoing.sources) == ((4, 2, 1), (3, 1))


@given(REPLICAS, REPLICAS)
def test_target_and_sources_are_read_back_from_what_is_stored(
    original: tuple[int, ...], target: tuple[int, ...]
) -> None:
    change = Reassignment(original, target)
    ongoing = OngoingReassignment(change.replicas, change.adding, change.removing)
    assert ongoing.target == target
    assert set(ongoing.sources) == set(original)
    assert not ongoing.can_never_complete


@pytest.mark.parametrize(("replicas", "adding", "removing", "is_stuck"), [
    ((0, 1, 4, 5), (4, 5), (4, 5), True),  # a move undone by submitting the old list
    ((1, 2, 3, 4), (4,), (3, 4), True),  # an override that adds nothing
    ((2, 3, 0, 1), (2, 3), (0, 1), False),
    ((1, 2, 3), (), (3,), False),
])  # fmt: skip
def test_a_replica_both_adding_and_removing_can_never_complete(
    replicas: tuple[int, ...], adding: tuple[int, ...], removing: tuple[int, ...], is_stuck: bool
) -> None:
    assert OngoingReassignment(replicas, adding, removing).can_never_complete is is_stuck


@pytest.mark.parametrize(("ongoing", "text"), [
    (OngoingReassignment((2, 3, 0), (3,), (0,)), "replicas: 2,3,0. adding: 3. removing: 0."),
    (OngoingReassignment((2, 3), (3,), ()), "replicas: 2,3. adding: 3."),
    (OngoingReassignment((2,), (), ()), "replicas: 2."),
    (OngoingReassignment((2, 3), (), (2, 3)), "replicas: 2,3. removing: 2,3."),
])  # fmt: skip
def test_an_ongoing_reassignment_reads_as_kafkas_tool_prints_it(ongoing: OngoingReassignment, text: str) -> None:
    assert str(ongoing) == text
