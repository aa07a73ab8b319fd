"""Kafka's error codes: number, name, the Java client's exception and the text shown when the wire carries none.

All of Kafka 4.3's, as its class `org.apache.kafka.common.protocol.Errors` has them, because operators search for the
names and scripts match the texts. The constants are the codes that some module of kreassign asks for.
"""

from __future__ import annotations

from dataclasses import dataclass

from kreassign.errors import Rejected

NONE = 0
UNKNOWN_SERVER_ERROR = -1
OFFSET_OUT_OF_RANGE = 1
UNKNOWN_TOPIC_OR_PARTITION = 3
LEADER_NOT_AVAILABLE = 5
NOT_LEADER_OR_FOLLOWER = 6
REQUEST_TIMED_OUT = 7
REPLICA_NOT_AVAILABLE = 9
STALE_CONTROLLER_EPOCH = 11
OFFSET_METADATA_TOO_LARGE = 12
COORDINATOR_LOAD_IN_PROGRESS = 14
COORDINATOR_NOT_AVAILABLE = 15
NOT_COORDINATOR = 16
INVALID_TOPIC_EXCEPTION = 17
ILLEGAL_GENERATION = 22
INCONSISTENT_GROUP_PROTOCOL = 23
INVALID_GROUP_ID = 24
UNKNOWN_MEMBER_ID = 25
INVALID_SESSION_TIMEOUT = 26
REBALANCE_IN_PROGRESS = 27
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
SECURITY_DISABLED = 54
KAFKA_STORAGE_ERROR = 56
LOG_DIR_NOT_FOUND = 57
SASL_AUTHENTICATION_FAILED = 58
REASSIGNMENT_IN_PROGRESS = 60
NON_EMPTY_GROUP = 68
GROUP_ID_NOT_FOUND = 69
FENCED_LEADER_EPOCH = 74
UNKNOWN_LEADER_EPOCH = 75
STALE_BROKER_EPOCH = 77
OFFSET_NOT_AVAILABLE = 78
MEMBER_ID_REQUIRED = 79
PREFERRED_LEADER_NOT_AVAILABLE = 80
GROUP_MAX_SIZE_REACHED = 81
FENCED_INSTANCE_ID = 82
ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
ELECTION_NOT_NEEDED = 84
NO_REASSIGNMENT_IN_PROGRESS = 85
RESOURCE_NOT_FOUND = 91
DUPLICATE_RESOURCE = 92
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
    """One code. `java_exception` is a class of `org.apache.kafka.common.errors`, "" for NONE; `text` is Kafka's default."""

    code: int
    name: str
    java_exception: str
    text: str
    retriable: bool = False

    def __str__(self) -> str:
        return f"{self.name} ({self.code})"


def error_code(code: int) -> ErrorCode:
    """What this number means. A number of a later Kafka is a server error that keeps its number in name and text."""
    return _BY_CODE.get(code) or ErrorCode(
        code,
        f"UNKNOWN_ERROR_CODE_{code}",
        "UnknownServerException",
        f"The broker answered with error code {code}.",
    )


def has_code(error: BaseException, *codes: int) -> bool:
    """Whether an error is Kafka's refusal with one of these codes."""
    return isinstance(error, Rejected) and error.code in codes


# fmt: off
CODES: tuple[ErrorCode, ...] = (
    ErrorCode(-1, "UNKNOWN_SERVER_ERROR", "UnknownServerException", "The server experienced an unexpected error when processing the request."),
    ErrorCode(0, "NONE", "", "NONE"),
    ErrorCode(1, "OFFSET_OUT_OF_RANGE", "OffsetOutOfRangeException", "The requested offset is not within the range of offsets maintained by the server."),
    ErrorCode(2, "CORRUPT_MESSAGE", "CorruptRecordException", "This message has failed its CRC checksum, exceeds the valid size, has a null key for a compacted topic, or is otherwise corrupt.", retriable=True),
    ErrorCode(3, "UNKNOWN_TOPIC_OR_PARTITION", "UnknownTopicOrPartitionException", "This server does not host this topic-partition.", retriable=True),
    ErrorCode(4, "INVALID_FETCH_SIZE", "InvalidFetchSizeException", "The requested fetch size is invalid."),
    ErrorCode(5, "LEADER_NOT_AVAILABLE", "LeaderNotAvailableException", "There is no leader for this topic-partition as we are in the middle of a leadership election.", retriable=True),
    ErrorCode(6, "NOT_LEADER_OR_FOLLOWER", "NotLeaderOrFollowerException", "For requests intended only for the leader, this error indicates that the broker is not the current leader. For requests intended for any replica, this error indicates that the broker is not a replica of the topic partition.", retriable=True),
    ErrorCode(7, "REQUEST_TIMED_OUT", "TimeoutException", "The request timed out.", retriable=True),
    ErrorCode(8, "BROKER_NOT_AVAILABLE", "BrokerNotAvailableException", "The broker is not available."),
    ErrorCode(9, "REPLICA_NOT_AVAILABLE", "ReplicaNotAvailableException", "The replica is not available for the requested topic-partition. Produce/Fetch requests and other requests intended only for the leader or follower return NOT_LEADER_OR_FOLLOWER if the broker is not a replica of the topic-partition.", retriable=True),
    ErrorCode(10, "MESSAGE_TOO_LARGE", "RecordTooLargeException", "The request included a message larger than the max message size the server will accept."),
    ErrorCode(11, "STALE_CONTROLLER_EPOCH", "ControllerMovedException", "The controller moved to another broker."),
    ErrorCode(12, "OFFSET_METADATA_TOO_LARGE", "OffsetMetadataTooLarge", "The metadata field of the offset request was too large."),
    ErrorCode(13, "NETWORK_EXCEPTION", "NetworkException", "The server disconnected before a response was received.", retriable=True),
    ErrorCode(14, "COORDINATOR_LOAD_IN_PROGRESS", "CoordinatorLoadInProgressException", "The coordinator is loading and hence can't process requests.", retriable=True),
    ErrorCode(15, "COORDINATOR_NOT_AVAILABLE", "CoordinatorNotAvailableException", "The coordinator is not available.", retriable=True),
    ErrorCode(16, "NOT_COORDINATOR", "NotCoordinatorException", "This is not the correct coordinator.", retriable=True),
    ErrorCode(17, "INVALID_TOPIC_EXCEPTION", "InvalidTopicException", "The request attempted to perform an operation on an invalid topic."),
    ErrorCode(18, "RECORD_LIST_TOO_LARGE", "RecordBatchTooLargeException", "The request included message batch larger than the configured segment size on the server."),
    ErrorCode(19, "NOT_ENOUGH_REPLICAS", "NotEnoughReplicasException", "Messages are rejected since there are fewer in-sync replicas than required.", retriable=True),
    ErrorCode(20, "NOT_ENOUGH_REPLICAS_AFTER_APPEND", "NotEnoughReplicasAfterAppendException", "Messages are written to the log, but to fewer in-sync replicas than required.", retriable=True),
    ErrorCode(21, "INVALID_REQUIRED_ACKS", "InvalidRequiredAcksException", "Produce request specified an invalid value for required acks."),
    ErrorCode(22, "ILLEGAL_GENERATION", "IllegalGenerationException", "Specified group generation id is not valid."),
    ErrorCode(23, "INCONSISTENT_GROUP_PROTOCOL", "InconsistentGroupProtocolException", "The group member's supported protocols are incompatible with those of existing members or first group member tried to join with empty protocol type or empty protocol list."),
    ErrorCode(24, "INVALID_GROUP_ID", "InvalidGroupIdException", "The group id is invalid."),
    ErrorCode(25, "UNKNOWN_MEMBER_ID", "UnknownMemberIdException", "The coordinator is not aware of this member."),
    ErrorCode(26, "INVALID_SESSION_TIMEOUT", "InvalidSessionTimeoutException", "The session timeout is not within the range allowed by the broker (as configured by group.min.session.timeout.ms and group.max.session.timeout.ms)."),
    ErrorCode(27, "REBALANCE_IN_PROGRESS", "RebalanceInProgressException", "The group is rebalancing, so a rejoin is needed."),
    ErrorCode(28, "INVALID_COMMIT_OFFSET_SIZE", "InvalidCommitOffsetSizeException", "The committing offset data size is not valid."),
    ErrorCode(29, "TOPIC_AUTHORIZATION_FAILED", "TopicAuthorizationException", "Topic authorization failed."),
    ErrorCode(30, "GROUP_AUTHORIZATION_FAILED", "GroupAuthorizationException", "Group authorization failed."),
    ErrorCode(31, "CLUSTER_AUTHORIZATION_FAILED", "ClusterAuthorizationException", "Cluster authorization failed."),
    ErrorCode(32, "INVALID_TIMESTAMP", "InvalidTimestampException", "The timestamp of the message is out of acceptable range."),
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
    ErrorCode(46, "DUPLICATE_SEQUENCE_NUMBER", "DuplicateSequenceException", "The broker received a duplicate sequence number."),
    ErrorCode(47, "INVALID_PRODUCER_EPOCH", "InvalidProducerEpochException", "Producer attempted to produce with an old epoch."),
    ErrorCode(48, "INVALID_TXN_STATE", "InvalidTxnStateException", "The producer attempted a transactional operation in an invalid state."),
    ErrorCode(49, "INVALID_PRODUCER_ID_MAPPING", "InvalidPidMappingException", "The producer attempted to use a producer id which is not currently assigned to its transactional id."),
    ErrorCode(50, "INVALID_TRANSACTION_TIMEOUT", "InvalidTxnTimeoutException", "The transaction timeout is larger than the maximum value allowed by the broker (as configured by transaction.max.timeout.ms)."),
    ErrorCode(51, "CONCURRENT_TRANSACTIONS", "ConcurrentTransactionsException", "The producer attempted to update a transaction while another concurrent operation on the same transaction was ongoing.", retriable=True),
    ErrorCode(52, "TRANSACTION_COORDINATOR_FENCED", "TransactionCoordinatorFencedException", "Indicates that the transaction coordinator sending a WriteTxnMarker is no longer the current coordinator for a given producer."),
    ErrorCode(53, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", "TransactionalIdAuthorizationException", "Transactional Id authorization failed."),
    ErrorCode(54, "SECURITY_DISABLED", "SecurityDisabledException", "Security features are disabled."),
    ErrorCode(55, "OPERATION_NOT_ATTEMPTED", "OperationNotAttemptedException", "The broker did not attempt to execute this operation. This may happen for batched RPCs where some operations in the batch failed, causing the broker to respond without trying the rest."),
    ErrorCode(56, "KAFKA_STORAGE_ERROR", "KafkaStorageException", "Disk error when trying to access log file on the disk.", retriable=True),
    ErrorCode(57, "LOG_DIR_NOT_FOUND", "LogDirNotFoundException", "The user-specified log directory is not found in the broker config."),
    ErrorCode(58, "SASL_AUTHENTICATION_FAILED", "SaslAuthenticationException", "SASL Authentication failed."),
    ErrorCode(59, "UNKNOWN_PRODUCER_ID", "UnknownProducerIdException", "This exception is raised by the broker if it could not locate the producer metadata associated with the producerId in question. This could happen if, for instance, the producer's records were deleted because their retention time had elapsed. Once the last records of the producerId are removed, the producer's metadata is removed from the broker, and future appends by the producer will return this exception."),
    ErrorCode(60, "REASSIGNMENT_IN_PROGRESS", "ReassignmentInProgressException", "A partition reassignment is in progress."),
    ErrorCode(61, "DELEGATION_TOKEN_AUTH_DISABLED", "DelegationTokenDisabledException", "Delegation Token feature is not enabled."),
    ErrorCode(62, "DELEGATION_TOKEN_NOT_FOUND", "DelegationTokenNotFoundException", "Delegation Token is not found on server."),
    ErrorCode(63, "DELEGATION_TOKEN_OWNER_MISMATCH", "DelegationTokenOwnerMismatchException", "Specified Principal is not valid Owner/Renewer."),
    ErrorCode(64, "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED", "UnsupportedByAuthenticationException", "Delegation Token requests are not allowed on PLAINTEXT/1-way SSL channels and on delegation token authenticated channels."),
    ErrorCode(65, "DELEGATION_TOKEN_AUTHORIZATION_FAILED", "DelegationTokenAuthorizationException", "Delegation Token authorization failed."),
    ErrorCode(66, "DELEGATION_TOKEN_EXPIRED", "DelegationTokenExpiredException", "Delegation Token is expired."),
    ErrorCode(67, "INVALID_PRINCIPAL_TYPE", "InvalidPrincipalTypeException", "Supplied principalType is not supported."),
    ErrorCode(68, "NON_EMPTY_GROUP", "GroupNotEmptyException", "The group is not empty."),
    ErrorCode(69, "GROUP_ID_NOT_FOUND", "GroupIdNotFoundException", "The group id does not exist."),
    ErrorCode(70, "FETCH_SESSION_ID_NOT_FOUND", "FetchSessionIdNotFoundException", "The fetch session ID was not found.", retriable=True),
    ErrorCode(71, "INVALID_FETCH_SESSION_EPOCH", "InvalidFetchSessionEpochException", "The fetch session epoch is invalid.", retriable=True),
    ErrorCode(72, "LISTENER_NOT_FOUND", "ListenerNotFoundException", "There is no listener on the leader broker that matches the listener on which metadata request was processed.", retriable=True),
    ErrorCode(73, "TOPIC_DELETION_DISABLED", "TopicDeletionDisabledException", "Topic deletion is disabled."),
    ErrorCode(74, "FENCED_LEADER_EPOCH", "FencedLeaderEpochException", "The leader epoch in the request is older than the epoch on the broker.", retriable=True),
    ErrorCode(75, "UNKNOWN_LEADER_EPOCH", "UnknownLeaderEpochException", "The leader epoch in the request is newer than the epoch on the broker.", retriable=True),
    ErrorCode(76, "UNSUPPORTED_COMPRESSION_TYPE", "UnsupportedCompressionTypeException", "The requesting client does not support the compression type of given partition."),
    ErrorCode(77, "STALE_BROKER_EPOCH", "StaleBrokerEpochException", "Broker epoch has changed."),
    ErrorCode(78, "OFFSET_NOT_AVAILABLE", "OffsetNotAvailableException", "The leader high watermark has not caught up from a recent leader election so the offsets cannot be guaranteed to be monotonically increasing.", retriable=True),
    ErrorCode(79, "MEMBER_ID_REQUIRED", "MemberIdRequiredException", "The group member needs to have a valid member id before actually entering a consumer group."),
    ErrorCode(80, "PREFERRED_LEADER_NOT_AVAILABLE", "PreferredLeaderNotAvailableException", "The preferred leader was not available.", retriable=True),
    ErrorCode(81, "GROUP_MAX_SIZE_REACHED", "GroupMaxSizeReachedException", "The group has reached its maximum size."),
    ErrorCode(82, "FENCED_INSTANCE_ID", "FencedInstanceIdException", "The broker rejected this static consumer since another consumer with the same group.instance.id has registered with a different member.id."),
    ErrorCode(83, "ELIGIBLE_LEADERS_NOT_AVAILABLE", "EligibleLeadersNotAvailableException", "Eligible topic partition leaders are not available.", retriable=True),
    ErrorCode(84, "ELECTION_NOT_NEEDED", "ElectionNotNeededException", "Leader election not needed for topic partition.", retriable=True),
    ErrorCode(85, "NO_REASSIGNMENT_IN_PROGRESS", "NoReassignmentInProgressException", "No partition reassignment is in progress."),
    ErrorCode(86, "GROUP_SUBSCRIBED_TO_TOPIC", "GroupSubscribedToTopicException", "Deleting offsets of a topic is forbidden while the consumer group is actively subscribed to it."),
    ErrorCode(87, "INVALID_RECORD", "InvalidRecordException", "This record has failed the validation on broker and hence will be rejected."),
    ErrorCode(88, "UNSTABLE_OFFSET_COMMIT", "UnstableOffsetCommitException", "There are unstable offsets that need to be cleared.", retriable=True),
    ErrorCode(89, "THROTTLING_QUOTA_EXCEEDED", "ThrottlingQuotaExceededException", "The throttling quota has been exceeded.", retriable=True),
    ErrorCode(90, "PRODUCER_FENCED", "ProducerFencedException", "There is a newer producer with the same transactionalId which fences the current one."),
    ErrorCode(91, "RESOURCE_NOT_FOUND", "ResourceNotFoundException", "A request illegally referred to a resource that does not exist."),
    ErrorCode(92, "DUPLICATE_RESOURCE", "DuplicateResourceException", "A request illegally referred to the same resource twice."),
    ErrorCode(93, "UNACCEPTABLE_CREDENTIAL", "UnacceptableCredentialException", "Requested credential would not meet criteria for acceptability."),
    ErrorCode(94, "INCONSISTENT_VOTER_SET", "InconsistentVoterSetException", "Indicates that the either the sender or recipient of a voter-only request is not one of the expected voters."),
    ErrorCode(95, "INVALID_UPDATE_VERSION", "InvalidUpdateVersionException", "The given update version was invalid."),
    ErrorCode(96, "FEATURE_UPDATE_FAILED", "FeatureUpdateFailedException", "Unable to update finalized features due to an unexpected server error."),
    ErrorCode(97, "PRINCIPAL_DESERIALIZATION_FAILURE", "PrincipalDeserializationException", "Request principal deserialization failed during forwarding. This indicates an internal error on the broker cluster security setup."),
    ErrorCode(98, "SNAPSHOT_NOT_FOUND", "SnapshotNotFoundException", "Requested snapshot was not found."),
    ErrorCode(99, "POSITION_OUT_OF_RANGE", "PositionOutOfRangeException", "Requested position is not greater than or equal to zero, and less than the size of the snapshot."),
    ErrorCode(100, "UNKNOWN_TOPIC_ID", "UnknownTopicIdException", "This server does not host this topic ID.", retriable=True),
    ErrorCode(101, "DUPLICATE_BROKER_REGISTRATION", "DuplicateBrokerRegistrationException", "This broker ID is already in use."),
    ErrorCode(102, "BROKER_ID_NOT_REGISTERED", "BrokerIdNotRegisteredException", "The given broker ID was not registered."),
    ErrorCode(103, "INCONSISTENT_TOPIC_ID", "InconsistentTopicIdException", "The log's topic ID did not match the topic ID in the request.", retriable=True),
    ErrorCode(104, "INCONSISTENT_CLUSTER_ID", "InconsistentClusterIdException", "The clusterId in the request does not match that found on the server."),
    ErrorCode(105, "TRANSACTIONAL_ID_NOT_FOUND", "TransactionalIdNotFoundException", "The transactionalId could not be found."),
    ErrorCode(106, "FETCH_SESSION_TOPIC_ID_ERROR", "FetchSessionTopicIdException", "The fetch session encountered inconsistent topic ID usage.", retriable=True),
    ErrorCode(107, "INELIGIBLE_REPLICA", "IneligibleReplicaException", "The new ISR contains at least one ineligible replica."),
    ErrorCode(108, "NEW_LEADER_ELECTED", "NewLeaderElectedException", "The AlterPartition request successfully updated the partition state but the leader has changed."),
    ErrorCode(109, "OFFSET_MOVED_TO_TIERED_STORAGE", "OffsetMovedToTieredStorageException", "The requested offset is moved to tiered storage."),
    ErrorCode(110, "FENCED_MEMBER_EPOCH", "FencedMemberEpochException", "The member epoch is fenced by the group coordinator. The member must abandon all its partitions and rejoin."),
    ErrorCode(111, "UNRELEASED_INSTANCE_ID", "UnreleasedInstanceIdException", "The instance ID is still used by another member in the consumer group. That member must leave first."),
    ErrorCode(112, "UNSUPPORTED_ASSIGNOR", "UnsupportedAssignorException", "The assignor or its version range is not supported by the consumer group."),
    ErrorCode(113, "STALE_MEMBER_EPOCH", "StaleMemberEpochException", "The member epoch is stale. The member must retry after receiving its updated member epoch via the ConsumerGroupHeartbeat API."),
    ErrorCode(114, "MISMATCHED_ENDPOINT_TYPE", "MismatchedEndpointTypeException", "The request was sent to an endpoint of the wrong type."),
    ErrorCode(115, "UNSUPPORTED_ENDPOINT_TYPE", "UnsupportedEndpointTypeException", "This endpoint type is not supported yet."),
    ErrorCode(116, "UNKNOWN_CONTROLLER_ID", "UnknownControllerIdException", "This controller ID is not known."),
    ErrorCode(117, "UNKNOWN_SUBSCRIPTION_ID", "UnknownSubscriptionIdException", "Client sent a push telemetry request with an invalid or outdated subscription ID."),
    ErrorCode(118, "TELEMETRY_TOO_LARGE", "TelemetryTooLargeException", "Client sent a push telemetry request larger than the maximum size the broker will accept."),
    ErrorCode(119, "INVALID_REGISTRATION", "InvalidRegistrationException", "The controller has considered the broker registration to be invalid."),
    ErrorCode(120, "TRANSACTION_ABORTABLE", "TransactionAbortableException", "The server encountered an error with the transaction. The client can abort the transaction to continue using this transactional ID."),
    ErrorCode(121, "INVALID_RECORD_STATE", "InvalidRecordStateException", "The record state is invalid. The acknowledgement of delivery could not be completed."),
    ErrorCode(122, "SHARE_SESSION_NOT_FOUND", "ShareSessionNotFoundException", "The share session was not found.", retriable=True),
    ErrorCode(123, "INVALID_SHARE_SESSION_EPOCH", "InvalidShareSessionEpochException", "The share session epoch is invalid.", retriable=True),
    ErrorCode(124, "FENCED_STATE_EPOCH", "FencedStateEpochException", "The share coordinator rejected the request because the share-group state epoch did not match."),
    ErrorCode(125, "INVALID_VOTER_KEY", "InvalidVoterKeyException", "The voter key doesn't match the receiving replica's key."),
    ErrorCode(126, "DUPLICATE_VOTER", "DuplicateVoterException", "The voter is already part of the set of voters."),
    ErrorCode(127, "VOTER_NOT_FOUND", "VoterNotFoundException", "The voter is not part of the set of voters."),
    ErrorCode(128, "INVALID_REGULAR_EXPRESSION", "InvalidRegularExpression", "The regular expression is not valid."),
    ErrorCode(129, "REBOOTSTRAP_REQUIRED", "RebootstrapRequiredException", "Client metadata is stale. The client should rebootstrap to obtain new metadata."),
    ErrorCode(130, "STREAMS_INVALID_TOPOLOGY", "StreamsInvalidTopologyException", "The supplied topology is invalid."),
    ErrorCode(131, "STREAMS_INVALID_TOPOLOGY_EPOCH", "StreamsInvalidTopologyEpochException", "The supplied topology epoch is invalid."),
    ErrorCode(132, "STREAMS_TOPOLOGY_FENCED", "StreamsTopologyFencedException", "The supplied topology epoch is outdated."),
    ErrorCode(133, "SHARE_SESSION_LIMIT_REACHED", "ShareSessionLimitReachedException", "The limit of share sessions has been reached.", retriable=True),
)
# fmt: on
_BY_CODE = {known.code: known for known in CODES}
