"""The bounded differential run, 500 random steps on real Kafka and on a twin; and that it can find something."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kreassign.twin.controller.decision import CompletionRule
from testbed import ClusterSpec, KafkaCluster
from testbed.releases import DEFAULT, FORMER
from tests.conformance.clusters import NEWEST, Cluster, InProcess
from tests.conformance.differential.comparing import SPEC, Course, both_sides, compare, differential_twin
from tests.conformance.differential.side import Side

pytestmark = pytest.mark.thorough

SEED, STEPS = 20, 500
QUICK_SEED, QUICK_STEPS = 38, 90
KINDS = {"Alter", "Configure", "Cordon", "Create", "Delete", "Elect", "Grow", "Start", "Stop", "Throttle", "Uncordon"}


def with_a_twin(**rules: Any) -> Course:
    """Compare a twin with a twin that stands for Kafka, and has other rules."""
    twin, other = differential_twin(), differential_twin()
    version = other.settings.version
    other.settings = replace(other.settings, version=replace(version, rules=replace(version.rules, **rules)))
    clusters = [Cluster(InProcess(NEWEST, each), "d") for each in (twin, other)]
    with clusters[0] as one, clusters[1] as two:
        return compare(Side(one), Side(two), QUICK_SEED, QUICK_STEPS)


def test_a_twin_is_like_itself_through_steps_of_every_kind() -> None:
    course = with_a_twin()
    assert course.divergence is None, str(course.divergence)
    assert course.steps.keys() == KINDS
    assert course.refused > 10
    assert course.cordoned


def test_another_rule_of_completion_is_found() -> None:
    divergence = with_a_twin(completion=CompletionRule.V2).divergence
    assert divergence is not None
    assert "Kafka Partition(" in str(divergence)


def test_cordons_that_do_not_bind_are_found() -> None:
    divergence = with_a_twin(cordons_bind=False).divergence
    assert divergence is not None
    assert "but all its log directories are cordoned." in str(divergence)


@pytest.mark.kafka
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("release", [DEFAULT, FORMER])
def test_the_twin_and_kafka_stay_alike_for_500_steps(
    release: str, start_cluster: Callable[[ClusterSpec], KafkaCluster]
) -> None:
    with both_sides(start_cluster(replace(SPEC, version=release))) as (twin, kafka):
        course = compare(twin, kafka, SEED, STEPS)
    assert course.divergence is None, str(course.divergence)
    assert sum(course.steps.values()) == STEPS
    assert course.held > STEPS  # More than one move open at rest on average: they are not all done at once.
