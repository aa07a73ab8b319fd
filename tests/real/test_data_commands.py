"""Output of `snapshot` and `collect` about a real cluster."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from kreassign.cli.main import kreassign
from kreassign.pipeline.tables.parquet import read_rows
from kreassign.pipeline.tables.schemas import BROKERS, CLUSTERS, LOG_DIRS, PARTITIONS, REPLICAS, SAMPLES, Row, Table
from testbed import KafkaCluster
from testbed.records import load_topic

WRITTEN = {0: 300_000, 1: 100_000}


def invoke(*arguments: object) -> str:
    result = CliRunner().invoke(kreassign, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def of_topic(data: Path, table: Table, topic: str) -> list[Row]:
    return [row for row in read_rows(data, table) if row["topic"] == topic]


def loaded(cluster: KafkaCluster, topic: str) -> None:
    brokers = sorted(cluster.brokers)
    cluster.create_topic(topic, [[brokers[0], brokers[1]], [brokers[1], brokers[2]]])
    load_topic(cluster.bootstrap_servers, topic, WRITTEN, seed=1)


def test_a_snapshot_shows_the_cluster_as_it_is(kafka: KafkaCluster, topic_name: str, tmp_path: Path) -> None:
    check_snapshot(kafka, topic_name, tmp_path)


def test_a_snapshot_of_an_older_cluster_is_as_good(kafka_391: KafkaCluster, topic_name: str, tmp_path: Path) -> None:
    check_snapshot(kafka_391, topic_name, tmp_path)


def test_a_snapshot_of_a_cluster_with_zookeeper_is_as_good(
    kafka_zookeeper: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    check_snapshot(kafka_zookeeper, topic_name, tmp_path)


def check_snapshot(cluster: KafkaCluster, topic_name: str, tmp_path: Path) -> None:
    loaded(cluster, topic_name)
    said = invoke("snapshot", "--bootstrap-server", cluster.bootstrap_servers, "--data", tmp_path)

    (seal,) = read_rows(tmp_path, CLUSTERS)
    assert said.startswith(f"snapshot {seal['snapshot_id']}: {len(cluster.brokers)} brokers, ")
    brokers = read_rows(tmp_path, BROKERS)
    assert [row["broker"] for row in brokers] == sorted(cluster.brokers)
    assert [row["log_dirs_error"] for row in brokers] == [None] * len(brokers)
    assert len(read_rows(tmp_path, LOG_DIRS)) == 2 * len(brokers)

    first, second = of_topic(tmp_path, PARTITIONS, topic_name)
    assert (first["leader"], first["adding"], first["removing"]) == (first["replicas"][0], [], [])
    replicas = of_topic(tmp_path, REPLICAS, topic_name)
    assert [row["broker"] for row in replicas] == first["replicas"] + second["replicas"]
    assert [row["is_leader"] for row in replicas] == [True, False, True, False]
    for row in replicas:
        assert row["log_dir"].startswith("/")
        if row["is_leader"]:
            assert row["size_bytes"] >= WRITTEN[row["partition"]]


def test_samples_have_offsets_and_sizes_of_every_round(kafka: KafkaCluster, topic_name: str, tmp_path: Path) -> None:
    loaded(kafka, topic_name)
    said = invoke(
        *("collect", "--bootstrap-server", kafka.bootstrap_servers, "--data", tmp_path),
        *("--interval", "100ms", "--rounds", 2),
    )
    assert said.count("\n") == 2
    rows = of_topic(tmp_path, SAMPLES, topic_name)
    assert [row["partition"] for row in rows] == [0, 1, 0, 1]
    assert rows[2]["taken_ms"] > rows[0]["taken_ms"]
    for row in rows:
        assert row["start_offset"] == 0
        assert row["end_offset"] > 0
        assert row["size_bytes"] >= WRITTEN[row["partition"]]
        assert row["topic_id"]
