"""The Kafka APIs that kreassign speaks, with the message classes and versions of each.

The classes are kafka-python's, generated from Kafka's published message definitions; they encode and decode both
ways. No other package imports them.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import new_class
from typing import Any

from kafka.protocol import admin as _admin
from kafka.protocol import consumer as _consumer
from kafka.protocol import metadata as _metadata
from kafka.protocol import producer as _producer
from kafka.protocol import sasl as _sasl
from kafka.protocol.api_header import ResponseClassRegistry
from kafka.protocol.api_message import ApiMessage
from kafka.protocol.consumer import ListOffsetsRequest, ListOffsetsResponse
from kafka.protocol.consumer import group as _group

from kreassign.wire import messages

# Kafka's own APIs.

Message = Any
"""A request or response of kafka-python, which has no types; its fields are Kafka's, in snake case."""


@dataclass(frozen=True, slots=True)
class Api:
    """One API: its number, its name in Kafka's documents, and the versions that our client speaks (both included).

    The versions that a broker accepts depend on its release; see the twin's table of releases.
    """

    key: int
    name: str
    request: type[Any]
    response: type[Any]
    min_version: int
    max_version: int

    def __str__(self) -> str:
        return f"{self.name} (API {self.key})"

    def common_version(self, offered: tuple[int, int] | None) -> int | None:
        """The highest version that we and a broker offering this range both speak; None if there is none."""
        if offered is None:
            return None
        low, high = max(self.min_version, offered[0]), min(self.max_version, offered[1])
        return high if low <= high else None


def _api(key: int, name: str, versions: tuple[int, int], home: Any = _admin) -> Api:
    return Api(key, name, getattr(home, f"{name}Request"), getattr(home, f"{name}Response"), *versions)


class _AnswerToStrangers:
    """An answer to ApiVersions: no tagged fields in its header, and version 0 if its own is unknown (KIP-511)."""

    @classmethod
    def parse_header(cls: Any, data: Any, version: int | None = None) -> Any:
        """Decode the header."""
        del version
        return cls.header_class.decode(data, flexible=False)

    def encode_header(self, flexible: bool = False) -> Any:
        """Encode the header."""
        del flexible
        message: Any = super()
        return message.encode_header(flexible=False)

    @classmethod
    def decode(cls, data: Any, version: int | None = None, header: bool = False) -> Any:
        """Decode an answer, which is of version 0 where the node does not know the version of the request."""
        start = _ID_BYTES if header else 0
        is_unknown = int.from_bytes(data[start : start + 2], "big") == _UNSUPPORTED_VERSION
        message: Any = super()
        return message.decode(data, version=0 if is_unknown else version, header=header)


_ID_BYTES, _UNSUPPORTED_VERSION = 4, 35


def _own(key: int, name: str, least: int = 0, *answers: type) -> Api:
    """An API that kafka-python lacks, or has in older versions alone, from the definitions in `messages/`.

    `answers` are further bases of its response.
    """
    request, response = own_message(f"{name}Request"), own_message(f"{name}Response", *answers)
    assert request.API_KEY == response.API_KEY == key
    return Api(key, name, request, response, least, request.max_version)


def own_message(name: str, *bases: type) -> Any:
    """The class of the definition `messages/<name>.json`."""
    # It has no other way back.
    registry = vars(ResponseClassRegistry)["_response_class_registry"]
    known = {**registry}
    made = new_class(
        name, (*bases, ApiMessage), {"load_json": messages}, lambda names: names.update(__module__=__name__)
    )
    # A client of kafka-python's in this process goes on reading what it asked for by its own classes.
    registry.update(known)
    return made


# APIs without a caller in `admin/` are for the twin alone: foreign clients send them.
PRODUCE = _api(0, "Produce", (3, 13), _producer)
FETCH = _api(1, "Fetch", (4, 18), _consumer)
LIST_OFFSETS = Api(2, "ListOffsets", ListOffsetsRequest, ListOffsetsResponse, 1, 11)
METADATA = _api(3, "Metadata", (4, 12), _metadata)
# From version 10 on offsets are committed and fetched by topic id (KIP-848), which is not needed here.
OFFSET_COMMIT = _api(8, "OffsetCommit", (7, 9), _group)
# From version 8 on a request may name many groups; older and newer brokers all know version 7.
OFFSET_FETCH = _api(9, "OffsetFetch", (5, 7), _group)
FIND_COORDINATOR = _api(10, "FindCoordinator", (0, 6), _metadata)
# The first versions with group.instance.id (KIP-345): Kafka 2.4.
JOIN_GROUP = _api(11, "JoinGroup", (5, 9), _group)
HEARTBEAT = _api(12, "Heartbeat", (3, 4), _group)
LEAVE_GROUP = _api(13, "LeaveGroup", (3, 5), _group)
SYNC_GROUP = _api(14, "SyncGroup", (3, 5), _group)
DESCRIBE_GROUPS = _api(15, "DescribeGroups", (4, 6))
LIST_GROUPS = _api(16, "ListGroups", (0, 5))
SASL_HANDSHAKE = _api(17, "SaslHandshake", (1, 1), _sasl)
API_VERSIONS = _own(18, "ApiVersions", 0, _AnswerToStrangers)
CREATE_TOPICS = _api(19, "CreateTopics", (4, 7))
DELETE_TOPICS = _api(20, "DeleteTopics", (1, 6))
DELETE_RECORDS = _api(21, "DeleteRecords", (0, 2))
INIT_PRODUCER_ID = _api(22, "InitProducerId", (0, 5), _producer)
OFFSET_FOR_LEADER_EPOCH = _api(23, "OffsetForLeaderEpoch", (2, 4), _consumer)
ADD_PARTITIONS_TO_TXN = _api(24, "AddPartitionsToTxn", (0, 5), _producer)
ADD_OFFSETS_TO_TXN = _api(25, "AddOffsetsToTxn", (0, 4), _producer)
END_TXN = _api(26, "EndTxn", (0, 5), _producer)
TXN_OFFSET_COMMIT = _api(28, "TxnOffsetCommit", (0, 5), _producer)
DESCRIBE_ACLS = _api(29, "DescribeAcls", (1, 3))
CREATE_ACLS = _api(30, "CreateAcls", (1, 3))
DELETE_ACLS = _api(31, "DeleteAcls", (1, 3))
DESCRIBE_CONFIGS = _api(32, "DescribeConfigs", (1, 4))
ALTER_CONFIGS = _api(33, "AlterConfigs", (0, 2))
ALTER_REPLICA_LOG_DIRS = _api(34, "AlterReplicaLogDirs", (1, 2))
DESCRIBE_LOG_DIRS = _api(35, "DescribeLogDirs", (1, 5))
SASL_AUTHENTICATE = _api(36, "SaslAuthenticate", (0, 2), _sasl)
CREATE_PARTITIONS = _api(37, "CreatePartitions", (0, 3))
DELETE_GROUPS = _own(42, "DeleteGroups", 1)
ELECT_LEADERS = _api(43, "ElectLeaders", (0, 2))
INCREMENTAL_ALTER_CONFIGS = _api(44, "IncrementalAlterConfigs", (0, 1))
ALTER_PARTITION_REASSIGNMENTS = _api(45, "AlterPartitionReassignments", (0, 1))
LIST_PARTITION_REASSIGNMENTS = _api(46, "ListPartitionReassignments", (0, 0))
OFFSET_DELETE = _api(47, "OffsetDelete", (0, 0), _consumer)
DESCRIBE_CLIENT_QUOTAS = _api(48, "DescribeClientQuotas", (0, 1))
ALTER_CLIENT_QUOTAS = _api(49, "AlterClientQuotas", (0, 1))
DESCRIBE_USER_SCRAM_CREDENTIALS = _api(50, "DescribeUserScramCredentials", (0, 0))
ALTER_USER_SCRAM_CREDENTIALS = _api(51, "AlterUserScramCredentials", (0, 0))
DESCRIBE_QUORUM = _api(55, "DescribeQuorum", (0, 2))
UPDATE_FEATURES = _api(57, "UpdateFeatures", (0, 2))
DESCRIBE_CLUSTER = _api(60, "DescribeCluster", (0, 2))
DESCRIBE_PRODUCERS = _api(61, "DescribeProducers", (0, 0))
UNREGISTER_BROKER = _own(64, "UnregisterBroker")
DESCRIBE_TRANSACTIONS = _api(65, "DescribeTransactions", (0, 0))
LIST_TRANSACTIONS = _api(66, "ListTransactions", (0, 2))
CONSUMER_GROUP_HEARTBEAT = _own(68, "ConsumerGroupHeartbeat")
CONSUMER_GROUP_DESCRIBE = _own(69, "ConsumerGroupDescribe")
LIST_CONFIG_RESOURCES = _api(74, "ListConfigResources", (0, 1))
DESCRIBE_TOPIC_PARTITIONS = _api(75, "DescribeTopicPartitions", (0, 0))
UNREGISTER_CONTROLLER = _own(94, "UnregisterController")


# The four requests of KIP-179, which Kafka never shipped.
#
# The document leaves fields, versions and API keys open. The definitions in `messages/` fill them in, with flexible
# versions from the start, and with keys that Kafka does not use: 179 for the document, and two digits. A cluster that
# offers them lists them in its answer to ApiVersions, like any other API; Kafka's own clients ignore unknown keys.

ALTER_PARTITION_COUNTS = _own(17900, "AlterPartitionCounts")
ALTER_REPLICATION_FACTORS = _own(17901, "AlterReplicationFactors")
REASSIGN_PARTITIONS = _own(17902, "ReassignPartitions")
REPLICA_STATUS = _own(17903, "ReplicaStatus")

KIP_179_CHANGES = (ALTER_PARTITION_COUNTS, ALTER_REPLICATION_FACTORS, REASSIGN_PARTITIONS)
"""The KIP-179 requests that go to the controller."""
KIP_179_APIS = (*KIP_179_CHANGES, REPLICA_STATUS)
