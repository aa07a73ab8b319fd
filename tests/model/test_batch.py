import pytest

from kreassign.errors import ClusterError, Rejected, Unreachable
from kreassign.model import Batch
from kreassign.model.requests import join

DOWN = Unreachable("down")
REFUSED = Rejected("no", api="X", code=39, name="INVALID_REPLICA_ASSIGNMENT", item="d")
MIXED: Batch[str, int] = Batch({"a": 1, "b": 2}, {"c": DOWN, "d": REFUSED})


def test_a_value_is_had_by_its_key_and_a_failure_raises_its_own_error() -> None:
    assert MIXED["b"] == 2
    with pytest.raises(Rejected) as refused:
        MIXED["d"]
    assert refused.value is REFUSED
    with pytest.raises(KeyError):
        MIXED["z"]


def test_all_keys_are_counted_and_listed_good_ones_first() -> None:
    assert len(MIXED) == 4
    assert list(MIXED) == ["a", "b", "c", "d"]


def test_the_first_failure_is_raised_on_demand() -> None:
    with pytest.raises(Unreachable) as raised:
        MIXED.raise_if_any()
    assert raised.value.__cause__ is DOWN
    assert str(raised.value) == "down (c)"
    assert Batch({"a": 1}).raise_if_any() == {"a": 1}
    assert Batch().raise_if_any() == {}


def test_an_expected_refusal_is_not_raised_and_any_other_failure_is() -> None:
    assert Batch({"a": 1}, {"d": REFUSED}).raise_if_any(39) == {"a": 1}
    with pytest.raises(Rejected):
        Batch({"a": 1}, {"d": REFUSED}).raise_if_any(3)
    with pytest.raises(Unreachable):
        MIXED.raise_if_any(39)


def test_values_change_and_failures_stay() -> None:
    assert MIXED.map(str) == Batch({"a": "1", "b": "2"}, {"c": DOWN, "d": REFUSED})


def test_parts_are_joined_in_their_order() -> None:
    failed: dict[str, ClusterError] = {"c": DOWN}
    joined = join([Batch({"b": 2}), Batch({}, failed), Batch({"a": 1})])
    assert joined == Batch({"b": 2, "a": 1}, {"c": DOWN})
    assert list(joined) == ["b", "a", "c"]
    assert len(join([])) == 0


def test_no_key_both_succeeds_and_fails() -> None:
    with pytest.raises(AssertionError, match="both"):
        Batch({"a": 1}, {"a": DOWN})
