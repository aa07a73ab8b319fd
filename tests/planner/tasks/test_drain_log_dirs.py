import pytest

from kreassign.errors import InputError
from kreassign.planner import LogDirFacts
from kreassign.planner.tasks import drain_log_dirs
from tests.planner.worlds import brokers, partition, world

PROBLEM = world(brokers(1, 2, log_dirs=(LogDirFacts("/a"), LogDirFacts("/b"))), [partition(0, 1, log_dirs=("/a",))])


def test_directories_must_become_empty_and_replicas_stay_on_their_broker() -> None:
    found = drain_log_dirs(PROBLEM, [(2, "/a")])
    assert found.log_dirs is not None
    assert found.log_dirs.must_empty.tolist() == [False, False, True, False]
    assert (found.rules.between_log_dirs, found.rules.between_brokers) == (True, False)
    assert drain_log_dirs(PROBLEM, [(2, "/a")], between_brokers=True).rules.between_brokers


@pytest.mark.parametrize(("places", "words"), [
    ([(1, "/c")], "broker 1 has no log directory /c; it has /a, /b"),
    ([(7, "/a")], "broker 7 has no log directory /a; it has none"),
])  # fmt: skip
def test_directories_that_are_not_there_are_refused(places: list[tuple[int, str]], words: str) -> None:
    with pytest.raises(InputError, match=words):
        drain_log_dirs(PROBLEM, places)


def test_without_any_directory_known_it_is_refused() -> None:
    with pytest.raises(InputError, match="nothing is known of log directories"):
        drain_log_dirs(world(brokers(1), [partition(0, 1)]), [(1, "/a")])
