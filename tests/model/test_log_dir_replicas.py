"""Copies in a log directory are packed, and are the same copies."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kreassign.model import LogDir, LogDirReplica, TopicPartition
from kreassign.model.cluster import LogDirReplicas

copies = st.lists(
    st.builds(
        LogDirReplica,
        st.builds(TopicPartition, st.sampled_from(["a", "b", "ü"]), st.integers(0, 2**31 - 1)),
        st.integers(-1, 2**63 - 1),
        st.integers(-(2**63), 2**63 - 1),
        st.booleans(),
    )
)


@given(copies)
def test_what_is_packed_is_unpacked(found: list[LogDirReplica]) -> None:
    packed = LogDirReplicas.of(found)
    assert (list(packed), len(packed)) == (found, len(found))
    assert packed == tuple(found)
    assert packed == LogDirReplicas.of(found)
    assert [packed[place] for place in range(len(found))] == found
    assert packed[1:3] == tuple(found[1:3])


def test_directories_are_equal_whether_their_copies_are_packed_or_not() -> None:
    found = (LogDirReplica(TopicPartition("t", 0), 5, 0, is_future=False),)
    packed, plain = (LogDir("/d", None, 1, 1, False, one) for one in (LogDirReplicas.of(found), found))
    assert packed == plain
    assert plain == packed
    assert hash(packed) == hash(plain)
    assert packed != LogDir("/d", None, 1, 1, False, ())
    assert "LogDirReplica(topic_partition=" in repr(packed)


A, B = (LogDirReplica(TopicPartition(topic, 3), 5, 7, is_future=True) for topic in ("a", "b"))


def test_packed_copies_are_equal_to_tuples_and_to_nothing_else() -> None:
    packed = LogDirReplicas.of((A, B))
    assert packed == (A, B)
    assert packed not in ([A, B], (B, A), (A,), LogDirReplicas.of((B, A)), 5, None)


def test_copies_of_a_topic_are_packed_together_while_they_come_together() -> None:
    packed = LogDirReplicas()
    packed.add("a", [(0, 5, 0, False), (1, 6, -1, True)])
    packed.add("a", [(2, 7, 0, False)])
    packed.add("b", [])
    packed.add("a", [(3, 8, 0, False)])
    assert (packed.topics, list(packed.ends)) == (["a", "b", "a"], [0, 3, 3, 4])
    assert [(copy.topic_partition, copy.size_bytes, copy.offset_lag, copy.is_future) for copy in packed] == [
        (TopicPartition("a", 0), 5, 0, False),
        (TopicPartition("a", 1), 6, -1, True),
        (TopicPartition("a", 2), 7, 0, False),
        (TopicPartition("a", 3), 8, 0, False),
    ]
    assert packed[1].is_future is True
    assert (len(packed), packed[-1].size_bytes, packed[2:]) == (4, 8, tuple(packed)[2:])


def test_packed_copies_show_what_they_are_made_of() -> None:
    assert repr(LogDirReplicas.of((A,))) == f"LogDirReplicas.of(({A!r},))"
    assert (list(LogDirReplicas.of(())), len(LogDirReplicas.of(()))) == ([], 0)
