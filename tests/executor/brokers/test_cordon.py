"""Cordons of a broker, and their owners."""

from __future__ import annotations

from kreassign.executor.brokers import CORDON, is_closed, is_our_cordon
from kreassign.model import LogDir


def dirs(*cordoned: bool, offline: bool = False) -> tuple[LogDir, ...]:
    """Directories of a broker; with `offline` one more, which has failed."""
    found = tuple(LogDir(f"/d{number}", None, None, None, closed, ()) for number, closed in enumerate(cordoned))
    return (*found, LogDir("/bad", "disk failed", None, None, False, ())) if offline else found


def test_a_broker_is_closed_when_all_directories_that_work_are_cordoned() -> None:
    assert is_closed("/d0,/d1", dirs(True, True))
    assert not is_closed("/d0", dirs(True, False))
    assert is_closed("/d0", dirs(True, offline=True)), "a directory that has failed takes nothing"
    assert not is_closed(None, dirs(offline=True))


def test_a_broker_that_just_took_our_cordon_counts_as_closed() -> None:
    assert is_closed(CORDON.value, dirs(False, False))


def test_a_list_of_directories_is_not_ours() -> None:
    assert [is_our_cordon(value) for value in (CORDON.value, "/d0", "/d0,/d1", None)] == [True, False, False, False]
