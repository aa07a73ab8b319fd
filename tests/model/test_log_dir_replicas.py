"""Copies in a log directory are packed, and are the same copies."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kreassign.model import LogDir, LogDirReplica, TopicPartition
from kreassign.model.log_dir_replicas import LogDirReplicas

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
