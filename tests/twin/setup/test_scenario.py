"""Scenarios: what their language means, and what it refuses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kreassign.errors import InputError
from kreassign.model import TopicPartition
from kreassign.twin import Twin
from kreassign.twin.blueprint import BrokerPlan
from kreassign.twin.metadata import CORDONED_LOG_DIRS
from kreassign.twin.scenario import Scenario, parse_scenario

THREE = "[[brokers]]\ncount = 3\n"
TOPIC = '[[topics]]\nname = "t"\n'


def scenario(text: str) -> Scenario:
    return parse_scenario(text, "x.toml")


def test_brokers_come_in_groups() -> None:
    found = scenario("""
        cluster_id = "mine"
        seed = 4
        kafka_version = "3.9"
        [[brokers]]
        count = 2
        racks = ["a", "b"]
        log_dirs = [{ count = 2, capacity = "1 GB", read = "2MB/s", write = 3000000 }, { capacity = "4 GB" }]
        network = "5 MB/s"
        [[brokers]]
        [[brokers]]
        first_id = 7
        down = true
        configs = { "leader.replication.throttled.rate" = "100" }
    """)
    assert (found.seed, found.kafka_version, found.blueprint.cluster_id) == (4, "3.9", "mine")
    brokers = {broker.id: broker for broker in found.blueprint.brokers}
    assert {broker: (plan.rack, plan.is_down) for broker, plan in brokers.items()} == {
        0: ("a", False), 1: ("b", False), 2: (None, False), 7: (None, True),
    }  # fmt: skip
    first = brokers[0].hardware
    assert [(d.path, d.capacity_bytes) for d in first.log_dirs] == [
        ("/data/d0", 10**9), ("/data/d1", 10**9), ("/data/d2", 4 * 10**9),
    ]  # fmt: skip
    assert (first.log_dirs[0].read_bytes_per_s, first.log_dirs[0].write_bytes_per_s) == (2e6, 3e6)
    assert (first.net_in_bytes_per_s, first.net_out_bytes_per_s) == (5e6, 5e6)
    assert brokers[2] == BrokerPlan(2, brokers[2].hardware)
    assert found.blueprint.broker_configs == {7: {"leader.replication.throttled.rate": "100"}}


def test_topics_come_in_groups_and_pass_over_empty_brokers() -> None:
    found = scenario("""
        [[brokers]]
        count = 3
        [[brokers]]
        empty = true
        [[topics]]
        name = "t"
        count = 11
        partitions = 4
        replication_factor = 2
        size = "1 MB"
        write_rate = "2 kB/s"
        record_size = 500
        configs = { "retention.bytes" = "2000000" }
    """).blueprint
    assert [topic.name for topic in found.topics][::10] == ["t-00", "t-10"]
    for topic in found.topics:
        assert topic.configs == {"retention.bytes": "2000000"}
        assert len(topic.partitions) == 4
        for partition in topic.partitions:
            assert len(partition.replicas) == 2
            assert 3 not in partition.replicas
            traffic = partition.traffic
            assert (traffic.size_bytes, traffic.write_bytes_per_s, traffic.record_bytes) == (10**6, 2000.0, 500.0)


def test_larger_partitions_are_written_to_in_the_same_measure_more() -> None:
    (topic,) = scenario(f"{THREE}{TOPIC}partitions = 50\nsize = 1000000\nwrite_rate = 100\nspread = 1").blueprint.topics
    sizes = [plan.traffic.size_bytes for plan in topic.partitions]
    assert max(sizes) > 5 * min(sizes)
    for plan in topic.partitions:
        assert plan.traffic.write_bytes_per_s == pytest.approx(plan.traffic.size_bytes / 10_000, rel=1e-3)


def test_another_topic_changes_nothing_that_was_drawn_before() -> None:
    alone = scenario(f"seed = 3\n{THREE}{TOPIC}partitions = 9\nspread = 1\nsize = 100\nskew = 1").blueprint.topics
    both = scenario(
        f'seed = 3\n{THREE}[[topics]]\nname = "s"\npartitions = 5\nskew = 2\n'
        f"{TOPIC}partitions = 9\nspread = 1\nsize = 100\nskew = 1"
    ).blueprint.topics
    assert both[1] == alone[0]


def test_moves_under_way_are_carried_on_under_their_throttle() -> None:
    found = scenario(f"""
        [[brokers]]
        count = 4
        {TOPIC}
        partitions = 2
        size = "10 MB"
        brokers = [0, 1, 2]
        log_dir = "/data/d0"
        [[moves]]
        topic = "t"
        partitions = [1]
        from = 0
        to = 3
        copied = 0.5
        [throttle]
        rate = "1MB/s"
        log_dir_rate = "2MB/s"
    """)
    twin = Twin(found.blueprint)
    key = TopicPartition("t", 1)
    moving = twin.metadata.partition(key)
    assert moving is not None
    assert (moving.adding, moving.removing, len(moving.isr)) == ((3,), (0,), 3)
    assert moving.leader == (found.blueprint.topics[0].partitions[1].leader)
    assert twin.replication.readings.size_bytes(key, 3) == 5_000_000
    assert found.blueprint.topics[0].configs["follower.replication.throttled.replicas"] == "1:3"
    assert {broker: len(configs) for broker, configs in found.blueprint.broker_configs.items()} == {
        0: 3, 1: 3, 2: 3, 3: 3,
    }  # fmt: skip
    twin.advance(4_000)
    assert twin.metadata.reassigning
    twin.advance(3_000)
    assert not twin.metadata.reassigning


def test_brokers_that_are_down_are_out_of_every_isr_and_can_be_started() -> None:
    found = scenario(f"""
        {THREE}
        [[brokers]]
        count = 2
        down = true
        {TOPIC}
        partitions = 20
        replication_factor = 2
        size = 1000
    """)
    twin = Twin(found.blueprint)
    partitions = [twin.metadata.partition(TopicPartition("t", number)) for number in range(20)]
    assert any(partition.leader == -1 for partition in partitions)
    for partition in partitions:
        alive = [broker for broker in partition.replicas if broker < 3]
        assert partition.isr == tuple(alive) or (not alive and len(partition.isr) == 1)
        assert partition.leader == (alive[0] if alive else -1)
    assert not twin.is_running(3)
    twin.start(3)
    twin.start(4)
    twin.advance(60_000)
    assert all(
        sorted(partition.isr) == sorted(partition.replicas)
        for partition in twin.metadata.topics["t"].partitions.values()
    )


def test_a_cordon_of_a_broker_that_is_down_is_known_to_the_controller() -> None:
    blueprint = scenario(f"{THREE}[[brokers]]\ndown = true\n").blueprint
    twin = Twin(replace(blueprint, broker_configs={3: {CORDONED_LOG_DIRS: "*"}}))
    broker = twin.metadata.brokers[3]
    assert (broker.cordon, broker.fenced, twin.is_running(3)) == ("*", True, False)


def test_what_shall_break_is_read_and_refused_by_those_who_break_it() -> None:
    found = scenario(f'{THREE}[[faults]]\nkind = "crash"\nbroker = 2\nat = "60s"\nlasts = "30s"').faults
    assert [(fault.at_ms, fault.lasts_ms) for fault in found] == [(60_000, 30_000)]
    with pytest.raises(InputError, match=r"^x.toml: fault .* is of no kind that the twin knows"):
        scenario(f'{THREE}[[faults]]\nkind = "melt"\nat = "60s"')


@pytest.mark.parametrize(("text", "complaint"), [
    ("", "x.toml: a cluster needs brokers"),
    (f"cout = 1\n{THREE}", "x.toml: there is no key 'cout' here; there are"),
    ("[[brokers]]\ncount = 0", "x.toml: [[brokers]] 1: 'count' is 0; it must be a whole number of at least 1"),
    ("[[brokers]]\n[[brokers]]\nfirst_id = 0", "a cluster needs brokers with different ids"),
    ("[[brokers]]\nfirst_id = 2147483646\ncount = 3", "'count' is 3; it must be a whole number of at least 1 and at"),
    ("[[brokers]]\nlog_dirs = [{ size = 1 }]", "x.toml: [[brokers]] 1: [[log_dirs]] 1: there is no key 'size' here"),
    ("[[brokers]]\nlog_dirs = [{ capacity = 0 }]", "[[brokers]] 1: [[log_dirs]] 1: log directory /data/d0 needs"),
    ("[[brokers]]\n[[topics]]", "x.toml: [[topics]] 1: the key 'name' is missing; it must be a text"),
    (f"[[brokers]]\n{TOPIC}", "x.toml: [[topics]] 1: 3 replicas need as many brokers; there are 0"),
    (f"{THREE}{TOPIC}brokers = [0, 9]", "'brokers' names broker 9, not among the brokers 0,1,2"),
    (f"{THREE}{TOPIC}{TOPIC}", "two topics have the same name"),
    (f"{THREE}[[moves]]\ntopic = 'u'\nfrom = 0\nto = 1", "[[moves]] 1: there is no topic 'u'; there are []"),
    (f"{THREE}{TOPIC}[[moves]]\ntopic = 't'\nfrom = 0\nto = 9", "'to' is 9; it must be one of the brokers 0,1,2"),
    (f"{THREE}{TOPIC}[[moves]]\ntopic = 't'\nfrom = 0\nto = 1", "have no replica to move from broker 0 to 1"),
    (f"{THREE}[throttle]\nrate = 5", "x.toml: [throttle]: 'rate' limits moves that are under way, and there are none"),
    (f"{THREE}[security]\nkey = 'k.pem'", "x.toml: [security]: 'certificate' and 'key' belong together"),
])  # fmt: skip
def test_what_makes_no_sense_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(InputError) as refusal:
        scenario(text)
    assert complaint in str(refusal.value)
    assert str(refusal.value).startswith("x.toml: ")


@pytest.mark.parametrize("where", [
    "x = 1\n[[brokers]]", "[[brokers]]\nx = 1", "[[brokers]]\nlog_dirs = [{ x = 1 }]", f"{THREE}{TOPIC}x = 1",
    f"{THREE}{TOPIC}replication_factor = 1\nbrokers = [0]\n[[moves]]\ntopic = 't'\nfrom = 0\nto = 1\nx = 1",
    f"{THREE}[throttle]\nx = 1", f"{THREE}[security]\nx = 1",
    f"{THREE}[security]\nallow = [{{ principal = 'User:x', operation = 'ALTER', x = 1 }}]",
])  # fmt: skip
def test_every_key_is_explained_on_the_page_of_scenarios(where: str) -> None:
    with pytest.raises(InputError) as refusal:
        scenario(where)
    text, _, keys = str(refusal.value).partition(" here; there are ")
    assert text.endswith("there is no key 'x'")
    page = (Path(__file__).parents[3] / "docs" / "reference" / "scenarios.md").read_text(encoding="utf-8")
    assert [key for key in keys.split(", ") if f"`{key}`" not in page and f"[{key}]" not in page] == []
