"""The log in a file, whole, torn and damaged."""

import pytest

from kreassign.errors import DataError, InputError
from kreassign.model import TopicPartition
from kreassign.twin.metadata import BrokerFenced, BrokerUnfenced, PartitionChanged, TopicCreated
from kreassign.twin.store import SIGNATURE, FileLog

DECISIONS = (
    (TopicCreated("fôo", "id"),),
    (PartitionChanged(TopicPartition("fôo", 0), isr=(1, 2)), BrokerFenced(3), BrokerFenced(4)),
    (BrokerUnfenced(3),),
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "below" / "metadata.log"


@pytest.fixture
def written(path):
    """A log with all decisions, and how long it was before and after each of them."""
    log = FileLog(path)
    sizes = [path.stat().st_size]
    for decision in DECISIONS:
        log.append(decision)
        sizes.append(path.stat().st_size)
    log.close()
    return sizes


def records(path):
    log = FileLog(path)
    found = list(log.read())
    log.close()
    return found


def test_a_new_log_is_empty(path):
    assert records(path) == []
    assert path.read_bytes() == SIGNATURE


def test_what_was_appended_is_read_again_later(path, written):
    assert records(path) == [record for decision in DECISIONS for record in decision]


def test_a_log_goes_on_where_it_ended(path, written):
    log = FileLog(path)
    log.append([BrokerFenced(9)])
    *_, last = log.read()
    log.close()
    assert last == BrokerFenced(9)
    assert len(records(path)) == 6


def test_a_decision_without_records_leaves_no_trace(path, written):
    log = FileLog(path)
    log.append([])
    log.close()
    assert path.stat().st_size == written[-1]


@pytest.mark.thorough
def test_a_cut_off_log_keeps_its_whole_decisions_and_goes_on(path, written):
    whole = path.read_bytes()
    for length in range(len(whole) + 1):
        path.write_bytes(whole[:length])
        finished = sum(size <= length for size in written[1:])
        expected = [record for decision in DECISIONS[:finished] for record in decision]
        assert records(path) == expected, length
        log = FileLog(path)
        log.append([BrokerFenced(9)])
        log.close()
        assert records(path) == [*expected, BrokerFenced(9)], length


def test_a_single_wrong_bit_anywhere_is_refused_with_its_place(path, written):
    whole = path.read_bytes()
    starts = [len(SIGNATURE), *_later_starts(whole)]
    for place in range(len(SIGNATURE), len(whole)):
        start = max(start for start in starts if start <= place)
        wrong = whole[place] ^ 1 << place % 8
        path.write_bytes(whole[:place] + bytes([wrong]) + whole[place + 1 :])
        with pytest.raises(DataError, match=rf"damaged in the record that begins at byte {start}; .* cut it to"):
            FileLog(path)


def _later_starts(whole):
    """Starts of the records after the first, by the lengths in their headers."""
    place = len(SIGNATURE)
    while (place := place + 12 + int.from_bytes(whole[place : place + 4], "big")) < len(whole):
        yield place


def test_a_refused_log_is_left_as_it_was(path, written):
    damaged = bytearray(path.read_bytes())
    damaged[-1] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(DataError):
        FileLog(path)
    assert path.read_bytes() == damaged


@pytest.mark.parametrize("content", [b"something else entirely, and long enough", b"x", b"kreassign twin metadata 2\n"])
def test_another_kind_of_file_is_refused(path, content):
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(DataError, match="is not a metadata log of a twin"):
        FileLog(path)
    assert path.read_bytes() == content


def test_a_log_in_use_is_refused(path):
    log = FileLog(path)
    with pytest.raises(InputError, match="in use by another twin"):
        FileLog(path)
    log.close()
    assert records(path) == []


def test_reading_stops_at_what_was_there_when_it_began(path, written):
    log = FileLog(path)
    reading = log.read()
    first = next(reading)
    log.append([BrokerFenced(9)])
    assert [first, *reading] == [record for decision in DECISIONS for record in decision]
    log.close()
