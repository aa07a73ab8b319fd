"""A simulated cluster from Python, in one call."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from kafka import KafkaAdminClient

import kreassign
from kreassign.errors import ClusterError, InputError
from kreassign.model import NewTopic
from kreassign.operations.twin import equal_brokers, faults_of, scenario_file
from kreassign.twin.blueprint import small_cluster


def test_so_many_equal_brokers_are_served_while_the_block_runs() -> None:
    with kreassign.serve_twin(4, speed=None) as served, kreassign.connect(served.bootstrap_servers) as client:
        assert client.describe_cluster().broker_ids == (0, 1, 2, 3)
        assert len(served.bootstrap_servers.split(",")) == 4
        served.do(lambda twin: twin.stop(3))
        assert len(served.bootstrap_servers.split(",")) == 3
    with pytest.raises(ClusterError), kreassign.connect(served.bootstrap_servers) as client:
        client.describe_cluster(timeout_ms=200)


def test_times_that_a_served_cluster_tells_are_of_today() -> None:
    """A twin begins at 0; served, that is when it was started."""
    before_ms = round(time.time() * 1000)
    with kreassign.serve_twin(2) as served:
        client = KafkaAdminClient(bootstrap_servers=served.bootstrap_servers)
        (partition,) = client.describe_metadata_quorum()["topics"][0]["partitions"]
        client.close()
    told = [each["last_caught_up_timestamp"] for each in (*partition["current_voters"], *partition["observers"])]
    assert len(told) == 3
    assert min(told) > before_ms - 60_000


def test_controllers_are_served_too() -> None:
    with (
        kreassign.serve_twin(1, controllers=3) as served,
        kreassign.connect_controllers(served.bootstrap_controllers) as client,
    ):
        assert client.describe_cluster().broker_ids == (100, 101, 102)


@pytest.mark.parametrize(("cluster", "brokers"), [
    (small_cluster(2), 2), (equal_brokers(3, ("a", "b")), 3), ("skewed", 5), (scenario_file("skewed"), 5),
])  # fmt: skip
def test_any_description_of_a_cluster_can_be_served(cluster: object, brokers: int) -> None:
    with kreassign.serve_twin(cluster) as served, kreassign.connect(served.bootstrap_servers) as client:
        assert len(client.describe_cluster().broker_ids) == brokers


def test_a_snapshot_is_served_as_it_was() -> None:
    with kreassign.serve_twin(3) as served, kreassign.connect(served.bootstrap_servers) as client:
        client.create_topics([NewTopic("orders", 2, 2)]).raise_if_any()
        before = client.describe_topics(["orders"])["orders"].partitions
        seen = kreassign.snapshot(client, measure_for_s=0)
    with kreassign.serve_twin(seen) as served, kreassign.connect(served.bootstrap_servers) as client:
        assert client.describe_topics(["orders"])["orders"].partitions == before


def test_metadata_is_continued_and_faults_strike(tmp_path: Path) -> None:
    with kreassign.serve_twin(3, data_dir=tmp_path) as served, kreassign.connect(served.bootstrap_servers) as client:
        client.create_topics([NewTopic("orders", 1, 2)]).raise_if_any()
    with (
        kreassign.serve_twin(3, data_dir=tmp_path, faults=["stop:1@0s"]) as served,
        kreassign.connect(served.bootstrap_servers) as client,
    ):
        assert sorted(client.list_topics()) == ["orders"]
        assert client.describe_cluster().broker_ids == (0, 2)


@pytest.mark.parametrize(("options", "complaint"), [
    ({"kafka_version": "1.0"}, "1.0"),
    ({"faults": ["crash:7@1s"]}, "names broker 7"),
    ({"port": 70_000}, "no such port"),
])  # fmt: skip
def test_what_cannot_be_served_is_said(options: dict[str, object], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint), kreassign.serve_twin(3, **options):
        pass


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("faults = [1]", "has no tables"),
        ("faults = [['crash']]", "has no tables"),
        ("[[faults]]\nkind = 'crash'\nat = '60 years'\nbroker = 1\n", ": fault .*: at '60 years'"),
        ("[[faults]]\nkind = 'crash'\n", ": fault .* has no at"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_file_of_faults_is_told_with_the_file(tmp_path: Path, content: str, complaint: str) -> None:
    file = tmp_path / "faults.toml"
    file.write_text(content)
    with pytest.raises(InputError, match=rf"faults\.toml ?{complaint}"):
        faults_of((), file)
