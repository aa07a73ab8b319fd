import pytest

from kreassign.wire import api
from kreassign.wire.api import Api
from tests.wire.peer import APIS

# What brokers and controllers of real clusters offer: API key → first and last version.
KAFKA_4_3 = {
    2: (1, 11), 3: (0, 13), 8: (2, 10), 9: (1, 10), 11: (0, 9), 12: (0, 4), 13: (0, 5), 14: (0, 5), 15: (0, 6),
    42: (0, 2), 17: (0, 1), 18: (0, 4), 19: (2, 7), 20: (1, 6), 32: (1, 4), 34: (1, 2), 35: (1, 5),
    36: (0, 2), 37: (0, 3), 43: (0, 2), 44: (0, 1), 45: (0, 1), 46: (0, 0), 60: (0, 2), 75: (0, 0),
}  # fmt: skip
KAFKA_3_9_ZOOKEEPER = {
    2: (0, 9), 3: (0, 12), 17: (0, 1), 18: (0, 4), 19: (0, 7), 20: (0, 6), 32: (0, 4), 34: (0, 2), 35: (0, 4),
    36: (0, 2), 37: (0, 3), 43: (0, 2), 44: (0, 1), 45: (0, 0), 46: (0, 0), 60: (0, 1),
}  # fmt: skip
KAFKA_2_4 = {
    3: (0, 9), 8: (0, 8), 9: (0, 6), 10: (0, 3), 11: (0, 6), 12: (0, 4), 13: (0, 4), 14: (0, 4), 15: (0, 5), 42: (0, 2),
    18: (0, 3), 19: (0, 5), 20: (0, 4), 32: (0, 2), 34: (0, 1), 35: (0, 1), 37: (0, 1), 43: (0, 2),
    44: (0, 1), 45: (0, 0), 46: (0, 0),
}  # fmt: skip


def test_every_api_has_the_key_and_the_name_that_kafka_gave_it() -> None:
    assert {entry.key: entry.name for entry in APIS.values()} == {
        0: "Produce",
        1: "Fetch",
        2: "ListOffsets",
        3: "Metadata",
        8: "OffsetCommit",
        9: "OffsetFetch",
        10: "FindCoordinator",
        11: "JoinGroup",
        12: "Heartbeat",
        13: "LeaveGroup",
        14: "SyncGroup",
        15: "DescribeGroups",
        16: "ListGroups",
        17: "SaslHandshake",
        18: "ApiVersions",
        19: "CreateTopics",
        20: "DeleteTopics",
        21: "DeleteRecords",
        22: "InitProducerId",
        23: "OffsetForLeaderEpoch",
        24: "AddPartitionsToTxn",
        25: "AddOffsetsToTxn",
        26: "EndTxn",
        28: "TxnOffsetCommit",
        29: "DescribeAcls",
        30: "CreateAcls",
        31: "DeleteAcls",
        32: "DescribeConfigs",
        33: "AlterConfigs",
        34: "AlterReplicaLogDirs",
        35: "DescribeLogDirs",
        36: "SaslAuthenticate",
        37: "CreatePartitions",
        42: "DeleteGroups",
        43: "ElectLeaders",
        44: "IncrementalAlterConfigs",
        45: "AlterPartitionReassignments",
        46: "ListPartitionReassignments",
        47: "OffsetDelete",
        48: "DescribeClientQuotas",
        49: "AlterClientQuotas",
        50: "DescribeUserScramCredentials",
        51: "AlterUserScramCredentials",
        55: "DescribeQuorum",
        57: "UpdateFeatures",
        60: "DescribeCluster",
        61: "DescribeProducers",
        64: "UnregisterBroker",
        65: "DescribeTransactions",
        66: "ListTransactions",
        68: "ConsumerGroupHeartbeat",
        69: "ConsumerGroupDescribe",
        74: "ListConfigResources",
        75: "DescribeTopicPartitions",
        94: "UnregisterController",
    }
    assert all((entry.key, entry.key) == (entry.request.API_KEY, entry.response.API_KEY) for entry in APIS.values())


@pytest.mark.parametrize("offered", [KAFKA_4_3, KAFKA_3_9_ZOOKEEPER, KAFKA_2_4], ids=["4.3", "3.9 ZooKeeper", "2.4"])
def test_we_share_a_version_of_everything_that_these_releases_offer(offered: dict[int, tuple[int, int]]) -> None:
    shared = {key: APIS[key].common_version(versions) for key, versions in offered.items()}
    assert None not in shared.values()
    assert all(offered[key][0] <= version <= offered[key][1] for key, version in shared.items() if version is not None)


def test_the_options_that_need_a_version_are_reached_on_a_new_cluster() -> None:
    assert api.ALTER_PARTITION_REASSIGNMENTS.common_version(KAFKA_4_3[45]) == 1  # KIP-860
    assert api.DESCRIBE_CLUSTER.common_version(KAFKA_4_3[60]) == 2  # fenced brokers
    assert api.DESCRIBE_LOG_DIRS.common_version(KAFKA_4_3[35]) == 5  # cordoned directories


@pytest.mark.parametrize(
    ("offered", "version"),
    [((0, 9), 4), ((3, 9), 4), ((0, 2), 2), ((4, 9), 4), ((2, 2), 2), ((5, 9), None), ((0, 1), None), (None, None)],
)
def test_the_highest_version_of_both_ranges_is_chosen(offered: tuple[int, int] | None, version: int | None) -> None:
    assert Api(1, "Some", object, object, 2, 4).common_version(offered) == version


def test_an_api_is_printed_with_name_and_number() -> None:
    assert str(api.ALTER_PARTITION_REASSIGNMENTS) == "AlterPartitionReassignments (API 45)"
