"""The bounded differential run, 500 random steps on real Kafka and on a twin; and that it can find something."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from testbed import ClusterSpec, KafkaCluster
from tests.conformance.clusters import NEWEST, Cluster, InProcess
from tests.conformance.differential.comparing import SPEC, Course, both_sides, compare, differential_twin
from tests.conformance.differential.side import Side

pytestmark = pytest.mark.thorough

SEED, STEPS = 20, 500
QUICK_SEED, QUICK_STEPS = 32, 60
KINDS = {"Alter", "Configure", "Create", "Delete", "Elect", "Grow", "Start", "Stop", "Throttle"}


def with_a_twin_of(release: str) -> Course:
    """Compare a twin with a twin that stands for Kafka."""
    twins = (differential_twin(each) for each in (NEWEST, release))
    clusters = [Cluster(InProcess(NEWEST, twin), "d") for twin in twins]
    with clusters[0] as one, clusters[1] as other:
        return compare(Side(one), Side(other), QUICK_SEED, QUICK_STEPS)


def test_a_twin_is_like_itself_through_steps_of_every_kind() -> None:
    course = with_a_twin_of(NEWEST)
    assert course.divergence is None, str(course.divergence)
    assert course.steps.keys() == KINDS
    assert course.refused > 10


def test_another_rule_of_completion_is_found() -> None:
    divergence = with_a_twin_of("4.2").divergence
    assert divergence is not None
    assert "Kafka Partition(" in str(divergence)


@pytest.mark.kafka
@pytest.mark.timeout(1200)
def test_the_twin_and_kafka_stay_alike_for_500_steps(start_cluster: Callable[[ClusterSpec], KafkaCluster]) -> None:
    with both_sides(start_cluster(SPEC)) as (twin, kafka):
        course = compare(twin, kafka, SEED, STEPS)
    assert course.divergence is None, str(course.divergence)
    assert sum(course.steps.values()) == STEPS
    assert course.held > STEPS  # More than one move open at rest on average: they are not all done at once.
