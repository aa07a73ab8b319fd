"""The scenarios that come with kreassign are what their paragraphs say."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from kreassign.operations.twin import SCENARIOS, scenario_file
from kreassign.twin import Blueprint, PartitionPlan, Twin
from kreassign.twin.access import Operation
from kreassign.twin.scenario import Scenario, parse_scenario

FOLDER = SCENARIOS
FILES = sorted(FOLDER.rglob("*.toml"))
PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "scenarios.md").read_text(encoding="utf-8")
TB, GB = 10**12, 10**9


def scenario(name: str) -> Scenario:
    file = FOLDER / f"{name}.toml"
    return parse_scenario(file.read_text(encoding="utf-8"), file.name)


def plans(blueprint: Blueprint) -> list[PartitionPlan]:
    return [plan for topic in blueprint.topics for plan in topic.partitions]


def held(blueprint: Blueprint) -> Counter[int]:
    """Bytes by broker."""
    counts: Counter[int] = Counter()
    for plan in plans(blueprint):
        counts.update(dict.fromkeys(plan.replicas, plan.traffic.size_bytes))
    return counts


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_scenario_begins_with_a_paragraph_and_is_on_the_page(file: Path) -> None:
    comment = file.read_text(encoding="utf-8").partition("\n\n")[0].splitlines()
    assert len(comment) > 3
    assert all(line.startswith("#") for line in comment)
    name = file.relative_to(FOLDER).with_suffix("").as_posix()
    assert f"`{name}`" in PAGE
    assert scenario_file(name) == file


def test_adversaries_have_every_kind_of_fault_but_the_clusters_own() -> None:
    strikes = {
        one.kind for file in FOLDER.glob("adversary/*.toml")
        for one in parse_scenario(file.read_text(encoding="utf-8"), file.name).faults
    }  # fmt: skip
    assert strikes >= {
        "cancel-moves", "clear-throttles", "empty-lists", "list-replica", "move", "recreate", "set-throttles",
        "stale-answers", "step-clock", "suspend", "unregister",
    }  # fmt: skip
    assert strikes & {"lose", "delay", "duplicate", "drop", "refuse", "refuse-after", "failover-in"}


def test_scale_out_leaves_a_broker_of_each_rack_empty() -> None:
    blueprint = scenario("scale-out").blueprint
    racks = {broker.id: broker.rack for broker in blueprint.brokers}
    sizes = held(blueprint)
    assert set(sizes) == set(range(6))
    assert [racks[broker] for broker in (6, 7, 8)] == ["a", "b", "c"]
    assert sum(sizes.values()) == pytest.approx(1.85 * TB, rel=0.01)
    assert all({racks[broker] for broker in plan.replicas} == {"a", "b", "c"} for plan in plans(blueprint))


def test_decommission_has_begun_and_is_throttled() -> None:
    twin = Twin(scenario("decommission").blueprint)
    assert {key.topic for key in twin.metadata.reassigning} == {"clicks"}
    assert len(twin.metadata.reassigning) == 12
    twin.advance(60_000)
    assert len(twin.metadata.reassigning) == 12
    twin.advance(3 * 3_600_000)
    assert not twin.metadata.reassigning
    assert any(5 in plan.replicas for plan in plans(scenario("decommission").blueprint) if not plan.adding)


def test_the_skewed_cluster_is_skewed() -> None:
    blueprint = scenario("skewed").blueprint
    sizes = held(blueprint)
    assert 4 not in sizes
    assert sizes[0] / sum(sizes.values()) == pytest.approx(0.47, abs=0.02)
    assert sizes[3] / sum(sizes.values()) < 0.1
    assert Counter(plan.first_leader() for plan in plans(blueprint))[0] == len(plans(blueprint)) / 2


def test_the_full_disk_fills_up_within_about_half_an_hour() -> None:
    twin = Twin(scenario("full-disk").blueprint)
    first, *others = twin.replication.readings.log_dirs(0)
    assert first.usable_bytes / first.total_bytes == pytest.approx(0.03, abs=0.003)
    assert all(other.usable_bytes / other.total_bytes > 0.98 for other in others)
    twin.advance(25 * 60_000)
    assert twin.replication.readings.log_dirs(0)[0].error is None
    twin.advance(15 * 60_000)
    assert any(twin.replication.readings.log_dirs(broker)[0].error is not None for broker in range(3))
    assert all(twin.is_running(broker) for broker in range(3))


def test_a_rack_is_down_and_comes_back() -> None:
    twin = Twin(scenario("rack-down").blueprint)
    partitions = [state for topic in twin.metadata.topics.values() for state in topic.partitions.values()]
    assert all(len(partition.isr) == 2 and partition.leader < 6 for partition in partitions)
    twin.advance(10 * 60_000)
    for broker in (6, 7, 8):
        twin.start(broker)
    twin.advance(10 * 60_000)
    assert all(len(state.isr) == 3 for topic in twin.metadata.topics.values() for state in topic.partitions.values())


def test_a_million_replicas_are_described() -> None:
    """Building the twin of it takes seconds; `python -m bench twin-million` does that."""
    text = (FOLDER / "million-replicas.toml").read_text(encoding="utf-8")
    few = parse_scenario(text.replace("count = 3334", "count = 2"), "few").blueprint
    assert 3334 * len(few.topics[0].partitions) * len(few.topics[0].partitions[0].replicas) == 1_000_200
    assert len(few.brokers) == 300
    assert all({broker % 3 for broker in plan.replicas} == {0, 1, 2} for plan in plans(few))


def test_the_locked_down_cluster_lets_a_mover_move_but_not_throttle() -> None:
    found = scenario("locked-down").security.permissions
    assert found is not None
    assert found.allows("User:mover", Operation.ALTER)
    assert found.allows("User:mover", Operation.DESCRIBE, "orders")
    assert not found.allows("User:mover", Operation.DESCRIBE, "salaries")
    assert not found.allows("User:mover", Operation.ALTER_CONFIGS, "orders")
    assert found.allows("User:watcher", Operation.DESCRIBE, "salaries")
    assert not found.allows("User:watcher", Operation.ALTER)
    assert found.allows("User:admin", Operation.ALTER_CONFIGS)
