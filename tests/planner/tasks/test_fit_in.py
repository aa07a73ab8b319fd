import pytest

from kreassign.errors import InputError
from kreassign.planner import Band, solve
from kreassign.planner.check.evaluate import evaluate
from kreassign.planner.check.schedule import predict
from kreassign.planner.goals import DISK
from kreassign.planner.tasks import drain_brokers
from kreassign.planner.tasks.fit_in import fit_in
from tests.planner.worlds import GIGABYTE, brokers, partition, world

LOADS = [
    partition(0, 1, gigabytes=10),
    partition(1, 1, gigabytes=90),
    partition(2, 1, gigabytes=50, write_bytes_per_s=6e8),
]
PROBLEM = world(brokers(1, 2), LOADS)


def test_brokers_receive_and_send_what_the_rate_allows() -> None:
    budget = fit_in(PROBLEM, seconds=60, rate_bytes_per_s=GIGABYTE).budget
    assert (budget.bytes_in_per_broker, budget.bytes_out_per_broker) == (60 * GIGABYTE, 60 * GIGABYTE)


def test_what_is_too_large_or_grows_too_fast_stays_unless_forced() -> None:
    assert fit_in(PROBLEM, 60, GIGABYTE).partitions.may_move.tolist() == [True, False, False]
    assert fit_in(drain_brokers(PROBLEM, (1,)), 60, GIGABYTE).partitions.may_move.all()


@pytest.mark.parametrize(("seconds", "rate"), [(0, 1), (1, 0)])
def test_no_time_and_no_rate_are_refused(seconds: float, rate: float) -> None:
    with pytest.raises(InputError, match="nothing fits into"):
        fit_in(PROBLEM, seconds, rate)


@pytest.mark.parametrize("seconds", [20, 60, 200])
def test_the_plan_is_done_in_time_although_copies_have_to_catch_up(seconds: float) -> None:
    rates = [0, 2e8, 5e8]
    loads = [partition(n, 1 + n % 2, gigabytes=3 + n % 4, write_bytes_per_s=rates[n % 3]) for n in range(60)]
    whole = world(brokers(1, 2, 3, 4), loads, bands=(Band(DISK),))
    problem = fit_in(whole, seconds, GIGABYTE)
    found = solve(problem).assignment
    assert evaluate(problem, found).violations == ()
    needed = predict(problem, found, GIGABYTE).seconds
    assert needed <= seconds * (1 + 1e-9)
    assert needed > 0.7 * seconds or not evaluate(problem, found).misses()
