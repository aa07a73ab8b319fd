"""The log in memory."""

from kreassign.twin.metadata import BrokerFenced, BrokerUnfenced
from tests.twin.memory_log import MemoryLog


def test_what_was_appended_is_read_in_order():
    log = MemoryLog()
    log.append([BrokerUnfenced(1), BrokerFenced(1)])
    log.append([])
    log.append(BrokerFenced(number) for number in (2, 3))
    assert list(log.read()) == [BrokerUnfenced(1), BrokerFenced(1), BrokerFenced(2), BrokerFenced(3)]
    assert len(log) == 4


def test_reading_is_not_disturbed_by_what_is_appended_meanwhile():
    log = MemoryLog()
    log.append([BrokerFenced(1)])
    reading = log.read()
    log.append([BrokerFenced(2)])
    assert list(reading) == [BrokerFenced(1)]
    log.close()
