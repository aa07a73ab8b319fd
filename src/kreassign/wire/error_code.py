"""Kafka's error codes: number, name, the Java client's exception and the text shown when the wire carries none.

Only the codes that the admin APIs answer with are spelled out; any other gets its name from kafka-python.
Texts and class names are Kafka 4.3's, because operators search for them and scripts match them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

NONE = 0
UNKNOWN_SERVER_ERROR = -1
OFFSET_OUT_OF_RANGE = 1
UNKNOWN_TOPIC_OR_PARTITION = 3
LEADER_NOT_AVAILABLE = 5
NOT_LEADER_OR_FOLLOWER = 6
REQUEST_TIMED_OUT = 7
REPLICA_NOT_AVAILABLE = 9
STALE_CONTROLLER_EPOCH = 11
COORDINATOR_NOT_AVAILABLE = 15
INVALID_TOPIC_EXCEPTION = 17
UNKNOWN_MEMBER_ID = 25
TOPIC_AUTHORIZATION_FAILED = 29
GROUP_AUTHORIZATION_FAILED = 30
CLUSTER_AUTHORIZATION_FAILED = 31
UNSUPPORTED_SASL_MECHANISM = 33
ILLEGAL_SASL_STATE = 34
UNSUPPORTED_VERSION = 35
TOPIC_ALREADY_EXISTS = 36
INVALID_PARTITIONS = 37
INVALID_REPLICATION_FACTOR = 38
INVALID_REPLICA_ASSIGNMENT = 39
INVALID_CONFIG = 40
NOT_CONTROLLER = 41
INVALID_REQUEST = 42
UNSUPPORTED_FOR_MESSAGE_FORMAT = 43
POLICY_VIOLATION = 44
KAFKA_STORAGE_ERROR = 56
LOG_DIR_NOT_FOUND = 57
SASL_AUTHENTICATION_FAILED = 58
REASSIGNMENT_IN_PROGRESS = 60
FENCED_LEADER_EPOCH = 74
UNKNOWN_LEADER_EPOCH = 75
OFFSET_NOT_AVAILABLE = 78
STALE_BROKER_EPOCH = 77
PREFERRED_LEADER_NOT_AVAILABLE = 80
ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
ELECTION_NOT_NEEDED = 84
NO_REASSIGNMENT_IN_PROGRESS = 85
INVALID_UPDATE_VERSION = 95
UNKNOWN_TOPIC_ID = 100
DUPLICATE_BROKER_REGISTRATION = 101
BROKER_ID_NOT_REGISTERED = 102
INELIGIBLE_REPLICA = 107
NEW_LEADER_ELECTED = 108
MISMATCHED_ENDPOINT_TYPE = 114
UNSUPPORTED_ENDPOINT_TYPE = 115


@dataclass(frozen=True, slots=True)
class ErrorCode:
    """One code. `java_exception` is a class of `org.apache.kafka.common.errors`; `text` is Kafka's default."""

    code: int
    name: str
    java_exception: str
    text: str
    retriable: bool = False

    def __str__(self) -> str:
        return f"{self.name} ({self.code})"


def error_code(code: int) -> ErrorCode:
    """What this number means; a number that nobody knows is a plain server error with its number in the text."""
    return _known().get(code) or _from_library(code)


def by_name(name: str) -> ErrorCode | None:
    """The spelled-out code of this name."""
    return next((known for known in CODES if known.name == name), None)


@cache
def _known() -> dict[int, ErrorCode]:
    return {known.code: known for known in CODES}


def _from_library(code: int) -> ErrorCode:
    from kafka.errors import kafka_errors  # noqa: PLC0415 - rare codes only; keeps the common start fast

    error = kafka_errors.get(code)
    name = getattr(error, "message", None) or f"UNKNOWN_ERROR_CODE_{code}"
    text = getattr(error, "description", None) or f"The broker answered with error code {code}."
    return ErrorCode(code, name, "UnknownServerException", text, bool(getattr(error, "retriable", False)))


# fmt: off
CODES: tuple[ErrorCode, ...] = (
    ErrorCode(-1, "UNKNOWN_SERVER_ERROR", "UnknownServerException", "The server experienced an unexpected error when processing the request."),
    ErrorCode(3, "UNKNOWN_TOPIC_OR_PARTITION", "UnknownTopicOrPartitionException", "This server does not host this topic-partition.", retriable=True),
    ErrorCode(5, "LEADER_NOT_AVAILABLE", "LeaderNotAvailableException", "There is no leader for this topic-partition as we are in the middle of a leadership election.", retriable=True),
    ErrorCode(6, "NOT_LEADER_OR_FOLLOWER", "NotLeaderOrFollowerException", "For requests intended only for the leader, this error indicates that the broker is not the current leader. For requests intended for any replica, this error indicates that the broker is not a replica of the topic partition.", retriable=True),
    ErrorCode(7, "REQUEST_TIMED_OUT", "TimeoutException", "The request timed out.", retriable=True),
    ErrorCode(8, "BROKER_NOT_AVAILABLE", "BrokerNotAvailableException", "The broker is not available."),
    ErrorCode(9, "REPLICA_NOT_AVAILABLE", "ReplicaNotAvailableException", "The replica is not available for the requested topic-partition. Produce/Fetch requests and other requests intended only for the leader or follower return NOT_LEADER_OR_FOLLOWER if the broker is not a replica of the topic-partition.", retriable=True),
    ErrorCode(10, "MESSAGE_TOO_LARGE", "RecordTooLargeException", "The request included a message larger than the max message size the server will accept."),
    ErrorCode(13, "NETWORK_EXCEPTION", "NetworkException", "The server disconnected before a response was received.", retriable=True),
    ErrorCode(17, "INVALID_TOPIC_EXCEPTION", "InvalidTopicException", "The request attempted to perform an operation on an invalid topic."),
    ErrorCode(18, "RECORD_LIST_TOO_LARGE", "RecordBatchTooLargeException", "The request included message batch larger than the configured segment size on the server."),
    ErrorCode(19, "NOT_ENOUGH_REPLICAS", "NotEnoughReplicasException", "Messages are rejected since there are fewer in-sync replicas than required.", retriable=True),
    ErrorCode(20, "NOT_ENOUGH_REPLICAS_AFTER_APPEND", "NotEnoughReplicasAfterAppendException", "Messages are written to the log, but to fewer in-sync replicas than required.", retriable=True),
    ErrorCode(29, "TOPIC_AUTHORIZATION_FAILED", "TopicAuthorizationException", "Topic authorization failed."),
    ErrorCode(31, "CLUSTER_AUTHORIZATION_FAILED", "ClusterAuthorizationException", "Cluster authorization failed."),
    ErrorCode(33, "UNSUPPORTED_SASL_MECHANISM", "UnsupportedSaslMechanismException", "The broker does not support the requested SASL mechanism."),
    ErrorCode(34, "ILLEGAL_SASL_STATE", "IllegalSaslStateException", "Request is not valid given the current SASL state."),
    ErrorCode(35, "UNSUPPORTED_VERSION", "UnsupportedVersionException", "The version of API is not supported."),
    ErrorCode(36, "TOPIC_ALREADY_EXISTS", "TopicExistsException", "Topic with this name already exists."),
    ErrorCode(37, "INVALID_PARTITIONS", "InvalidPartitionsException", "Number of partitions is below 1."),
    ErrorCode(38, "INVALID_REPLICATION_FACTOR", "InvalidReplicationFactorException", "Replication factor is below 1 or larger than the number of available brokers."),
    ErrorCode(39, "INVALID_REPLICA_ASSIGNMENT", "InvalidReplicaAssignmentException", "Replica assignment is invalid."),
    ErrorCode(40, "INVALID_CONFIG", "InvalidConfigurationException", "Configuration is invalid."),
    ErrorCode(41, "NOT_CONTROLLER", "NotControllerException", "This is not the correct controller for this cluster.", retriable=True),
    ErrorCode(42, "INVALID_REQUEST", "InvalidRequestException", "This most likely occurs because of a request being malformed by the client library or the message was sent to an incompatible broker. See the broker logs for more details."),
    ErrorCode(43, "UNSUPPORTED_FOR_MESSAGE_FORMAT", "UnsupportedForMessageFormatException", "The message format version on the broker does not support the request."),
    ErrorCode(44, "POLICY_VIOLATION", "PolicyViolationException", "Request parameters do not satisfy the configured policy."),
    ErrorCode(45, "OUT_OF_ORDER_SEQUENCE_NUMBER", "OutOfOrderSequenceException", "The broker received an out of order sequence number."),
    ErrorCode(54, "SECURITY_DISABLED", "SecurityDisabledException", "Security features are disabled."),
    ErrorCode(55, "OPERATION_NOT_ATTEMPTED", "OperationNotAttemptedException", "The broker did not attempt to execute this operation. This may happen for batched RPCs where some operations in the batch failed, causing the broker to respond without trying the rest."),
    ErrorCode(56, "KAFKA_STORAGE_ERROR", "KafkaStorageException", "Disk error when trying to access log file on the disk.", retriable=True),
    ErrorCode(57, "LOG_DIR_NOT_FOUND", "LogDirNotFoundException", "The user-specified log directory is not found in the broker config."),
    ErrorCode(58, "SASL_AUTHENTICATION_FAILED", "SaslAuthenticationException", "SASL Authentication failed."),
    ErrorCode(59, "UNKNOWN_PRODUCER_ID", "UnknownProducerIdException", "This exception is raised by the broker if it could not locate the producer metadata associated with the producerId in question. This could happen if, for instance, the producer's records were deleted because their retention time had elapsed. Once the last records of the producerId are removed, the producer's metadata is removed from the broker, and future appends by the producer will return this exception."),
    ErrorCode(60, "REASSIGNMENT_IN_PROGRESS", "ReassignmentInProgressException", "A partition reassignment is in progress."),
    ErrorCode(61, "DELEGATION_TOKEN_AUTH_DISABLED", "DelegationTokenDisabledException", "Delegation Token feature is not enabled."),
    ErrorCode(74, "FENCED_LEADER_EPOCH", "FencedLeaderEpochException", "The leader epoch in the request is older than the epoch on the broker.", retriable=True),
    ErrorCode(75, "UNKNOWN_LEADER_EPOCH", "UnknownLeaderEpochException", "The leader epoch in the request is newer than the epoch on the broker.", retriable=True),
    ErrorCode(77, "STALE_BROKER_EPOCH", "StaleBrokerEpochException", "Broker epoch has changed."),
    ErrorCode(78, "OFFSET_NOT_AVAILABLE", "OffsetNotAvailableException", "The leader high watermark has not caught up from a recent leader election so the offsets cannot be guaranteed to be monotonically increasing.", retriable=True),
    ErrorCode(80, "PREFERRED_LEADER_NOT_AVAILABLE", "PreferredLeaderNotAvailableException", "The preferred leader was not available.", retriable=True),
    ErrorCode(83, "ELIGIBLE_LEADERS_NOT_AVAILABLE", "EligibleLeadersNotAvailableException", "Eligible topic partition leaders are not available.", retriable=True),
    ErrorCode(84, "ELECTION_NOT_NEEDED", "ElectionNotNeededException", "Leader election not needed for topic partition.", retriable=True),
    ErrorCode(85, "NO_REASSIGNMENT_IN_PROGRESS", "NoReassignmentInProgressException", "No partition reassignment is in progress."),
    ErrorCode(87, "INVALID_RECORD", "InvalidRecordException", "This record has failed the validation on broker and hence will be rejected."),
    ErrorCode(89, "THROTTLING_QUOTA_EXCEEDED", "ThrottlingQuotaExceededException", "The throttling quota has been exceeded.", retriable=True),
    ErrorCode(95, "INVALID_UPDATE_VERSION", "InvalidUpdateVersionException", "The given update version was invalid."),
    ErrorCode(99, "POSITION_OUT_OF_RANGE", "PositionOutOfRangeException", "Requested position is not greater than or equal to zero, and less than the size of the snapshot."),
    ErrorCode(100, "UNKNOWN_TOPIC_ID", "UnknownTopicIdException", "This server does not host this topic ID.", retriable=True),
    ErrorCode(101, "DUPLICATE_BROKER_REGISTRATION", "DuplicateBrokerRegistrationException", "This broker ID is already in use."),
    ErrorCode(102, "BROKER_ID_NOT_REGISTERED", "BrokerIdNotRegisteredException", "The given broker ID was not registered."),
    ErrorCode(103, "INCONSISTENT_TOPIC_ID", "InconsistentTopicIdException", "The log's topic ID did not match the topic ID in the request.", retriable=True),
    ErrorCode(107, "INELIGIBLE_REPLICA", "IneligibleReplicaException", "The new ISR contains at least one ineligible replica."),
    ErrorCode(108, "NEW_LEADER_ELECTED", "NewLeaderElectedException", "The AlterPartition request successfully updated the partition state but the leader has changed."),
    ErrorCode(114, "MISMATCHED_ENDPOINT_TYPE", "MismatchedEndpointTypeException", "The request was sent to an endpoint of the wrong type."),
    ErrorCode(115, "UNSUPPORTED_ENDPOINT_TYPE", "UnsupportedEndpointTypeException", "This endpoint type is not supported yet."),
    ErrorCode(116, "UNKNOWN_CONTROLLER_ID", "UnknownControllerIdException", "This controller ID is not known."),
)
# fmt: on
