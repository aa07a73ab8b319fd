"""What was set before anyone's run, as texts beside offsets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kreassign.executor.lease.record import (
    MOST_BYTES,
    PIECE_CHARACTERS,
    OriginalValues,
    cut_into_pieces,
    left_settings,
    pieces_of_record,
    present_values,
    record_of_pieces,
    text_of_pieces,
)
from kreassign.executor.throttle_ledger import ConfigKey, ConfigOverride, ConfigValue
from kreassign.model import ConfigResource
from kreassign.model.throttle import LEADER_THROTTLED_RATE, LEADER_THROTTLED_REPLICAS

RATE = ConfigKey(ConfigResource.broker(1), LEADER_THROTTLED_RATE)
OTHER = ConfigKey(ConfigResource.broker(2), LEADER_THROTTLED_RATE)
HEAD_CHARACTERS = 40

keys = st.one_of(
    st.builds(lambda broker: ConfigKey(ConfigResource.broker(broker), LEADER_THROTTLED_RATE), st.integers(0, 2_000)),
    st.builds(lambda topic: ConfigKey(ConfigResource.topic(topic), LEADER_THROTTLED_REPLICAS), st.text(min_size=1)),
)
records = st.builds(
    lambda run_id, at_ms, values, scope: OriginalValues(
        run_id, at_ms, tuple(ConfigValue(*one) for one in values.items()), scope
    ),
    st.text(),
    st.integers(0, 2**50),
    st.dictionaries(keys, st.text()),
    st.none() | st.frozensets(keys.map(lambda key: key.resource)),
)


@given(records)
def test_a_record_is_read_back_as_it_was_written(record: OriginalValues) -> None:
    assert record_of_pieces(dict(enumerate(pieces_of_record(record)))) == record


def long_record() -> OriginalValues:
    lists = (",".join(f"{number}:{(number * 7919 + topic) % 9973}" for number in range(200)) for topic in range(60))
    values = (
        ConfigValue(ConfigKey(ConfigResource.topic(f"topic-{number}"), LEADER_THROTTLED_REPLICAS), value)
        for number, value in enumerate(lists)
    )
    return OriginalValues("run-1", 1, tuple(values))


def test_a_long_record_is_cut_into_pieces_that_a_broker_keeps() -> None:
    found = pieces_of_record(long_record())
    assert len(found) > 2
    assert max(map(len, found)) <= PIECE_CHARACTERS + HEAD_CHARACTERS
    assert record_of_pieces(dict(enumerate(found))) == long_record()


def test_a_record_that_somebody_forged_to_fill_the_memory_is_refused() -> None:
    found = cut_into_pieces("0" * (MOST_BYTES + 1))
    assert sum(map(len, found)) < MOST_BYTES // 100
    with pytest.raises(ValueError, match=f"more than {MOST_BYTES} bytes"):
        text_of_pieces(dict(enumerate(found)))


def test_what_a_record_does_not_name_was_not_set() -> None:
    assert OriginalValues("run-1", 1).known([RATE]) == {RATE: None}
    assert OriginalValues("run-1", 1, (ConfigValue(RATE, "500"),)).known([RATE]) == {RATE: "500"}


def test_a_record_knows_nothing_of_what_its_run_could_not_change() -> None:
    record = present_values("run-1", 1, [ConfigValue(RATE, "500")], frozenset({OTHER.resource}))
    assert record.known([RATE, OTHER]) == {OTHER: None}
    assert left_settings(record, [ConfigValue(RATE, "9"), ConfigValue(OTHER, "9")]) == (
        ConfigOverride(OTHER, None, "9"),
    )


def test_a_later_run_adds_what_it_may_change_itself_and_keeps_the_rest() -> None:
    record = present_values("run-1", 1, [ConfigValue(RATE, "500")], frozenset({RATE.resource}))
    now = [ConfigValue(RATE, "20000000"), ConfigValue(OTHER, "7")]
    longer = record.extended(now, frozenset({RATE.resource, OTHER.resource}))
    assert longer.known([RATE, OTHER]) == {RATE: "500", OTHER: "7"}


@pytest.mark.parametrize("found", [{}, {0: ""}, {1: "kreassign-1 1 2 00000000 eA=="}])
def test_without_a_first_piece_there_is_no_record(found: dict[int, str]) -> None:
    assert record_of_pieces(found) is None


@pytest.mark.parametrize("damage", ["missing", "another", "shortened", "older"])
def test_a_record_that_is_not_whole_is_refused(damage: str) -> None:
    found = dict(enumerate(pieces_of_record(long_record())))
    other = dict(enumerate(pieces_of_record(OriginalValues("run-2", 2, long_record().values))))
    match damage:
        case "missing":
            del found[1]
        case "another":
            found[1] = other[1]
        case "shortened":
            found[1] = found[1][:-4]
        case "older":
            found[0] = found[0].replace("kreassign-1", "kreassign-0")
    with pytest.raises(ValueError, match=r"piece 2|form|checksum"):
        record_of_pieces(found)


@pytest.mark.parametrize(
    "forged",
    [
        "[[], 1, [], null]", '["r", [], [], null]', '["r", 1, 5, null]', '["r", 1, [5], null]', '["r", 1, [[4]], null]',
        '["r", 1, [[4, "1", "x", 5]], null]', '["r", 1, [], [5]]', '["r", 1, [], [[4, []]]]', '["r", 1e999, [], null]',
        '["r"]', "5", "null", "[" * 100_000,
    ],
    ids=lambda text: text[:30],
)  # fmt: skip
def test_a_record_that_somebody_else_wrote_is_refused(forged: str) -> None:
    with pytest.raises(ValueError, match="it holds what this version does not write"):
        record_of_pieces(dict(enumerate(cut_into_pieces(forged))))
