from kreassign.planner.tasks import demote, leaders_only
from tests.planner.worlds import brokers, partition, world

PROBLEM = world(brokers(1, 2, 3), [partition(0, 1, 2)])


def test_nothing_is_copied() -> None:
    for found in (leaders_only(PROBLEM), demote(PROBLEM, (1,))):
        assert (found.rules.between_brokers, found.rules.between_log_dirs, found.rules.leaders) == (False, False, True)


def test_demoted_brokers_may_not_lead() -> None:
    assert demote(PROBLEM, (1, 3)).brokers.may_lead.tolist() == [False, True, False]
