from __future__ import annotations

from kreassign.model import ConfigEntry, ConfigResource, ConfigSource
from kreassign.model.throttle import FOLLOWER_THROTTLED_RATE, LEADER_THROTTLED_RATE, LEADER_THROTTLED_REPLICAS
from kreassign.pipeline.ingest.snapshots import CollectedRound, round_tables
from kreassign.pipeline.tables.schemas import CLUSTERS, SAMPLES, THROTTLES
from tests.pipeline.clusters import TAKEN_MS, observation, sample_round


def entry(value: str, source: ConfigSource) -> ConfigEntry:
    return ConfigEntry("", value, source)


def test_a_round_has_every_table_and_seals_its_snapshot_last() -> None:
    throttles = {
        ConfigResource.broker(1): {
            LEADER_THROTTLED_RATE: entry("500", ConfigSource.DYNAMIC_BROKER),
            FOLLOWER_THROTTLED_RATE: entry("9223372036854775807", ConfigSource.DEFAULT),
        },
        ConfigResource.topic("orders"): {LEADER_THROTTLED_REPLICAS: entry("", ConfigSource.DYNAMIC_TOPIC)},
    }
    tables = list(round_tables(CollectedRound(observation(), sample_round(TAKEN_MS, 120), throttles)))
    assert tables[0][0] is SAMPLES
    assert tables[-1][0] is CLUSTERS
    (throttle,) = next(rows for table, rows in tables if table is THROTTLES)
    assert (throttle["resource_type"], throttle["resource"], throttle["value"]) == ("broker", "1", "500")
