import pytest

from kreassign.errors import InputError
from kreassign.model import TopicPartition
from kreassign.planner import ByteBand, ByteProblem, PartitionLoad, PlanningBroker
from tests.planner.thin_problems import problem

T0 = TopicPartition("t", 0)
BROKERS = (PlanningBroker(0), PlanningBroker(1))


def test_a_replica_on_an_unknown_broker_is_refused_by_name() -> None:
    with pytest.raises(InputError, match=r"t-0 has replicas on \[7\]"):
        ByteProblem(BROKERS, (PartitionLoad(T0, (0, 7), 1),))


@pytest.mark.parametrize("replicas", [(), (1, 1)])
def test_a_replica_list_that_no_cluster_has_is_refused(replicas: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="no legal replica list"):
        PartitionLoad(T0, replicas, 1)


def test_a_partition_given_twice_is_refused() -> None:
    with pytest.raises(InputError, match="more than once: partition t-0"):
        ByteProblem(BROKERS, (PartitionLoad(T0, (0,), 1), PartitionLoad(T0, (1,), 1)))


def test_a_broker_given_twice_is_refused() -> None:
    with pytest.raises(InputError, match="more than once: broker 1"):
        ByteProblem((*BROKERS, PlanningBroker(1, "a")), ())


def test_no_brokers_a_negative_size_and_a_wild_tolerance_are_refused() -> None:
    with pytest.raises(InputError, match="no broker"):
        ByteProblem((), ())
    with pytest.raises(InputError, match="negative size"):
        PartitionLoad(T0, (0,), -1)
    with pytest.raises(InputError, match=r"tolerance of 1\.5"):
        ByteProblem(BROKERS, (), tolerance=1.5)


def test_the_band_is_the_mean_and_a_tenth_to_either_side() -> None:
    assert problem(((0,), 100), ((1,), 300), brokers=2).band == ByteBand(180_000_000, 220_000_000)


def test_a_load_misses_the_band_by_what_it_exceeds_or_lacks() -> None:
    band = ByteBand(10, 20)
    assert [band.missed(load) for load in (7, 10, 15, 20, 26)] == [3, 0, 0, 0, 6]


def test_racks_are_left_aside_unless_every_broker_names_one() -> None:
    assert ByteProblem((PlanningBroker(0, "a"), PlanningBroker(1, "b")), ()).racks == {0: "a", 1: "b"}
    assert ByteProblem((PlanningBroker(0, "a"), PlanningBroker(1)), ()).racks == {}
