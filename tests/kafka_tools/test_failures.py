"""Our errors in the words of Kafka's Java client."""

import pytest

from kreassign.errors import OutcomeUnknown, ProtocolViolation, Rejected, Unauthenticated, Unreachable, Unsupported
from kreassign.kafka_tools.command_line import java_failure


def rejected(code, name):
    return Rejected("why", api="X", code=code, name=name)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (rejected(3, "UNKNOWN_TOPIC_OR_PARTITION"), "UnknownTopicOrPartitionException: why"),
        (rejected(17, "INVALID_TOPIC_EXCEPTION"), "InvalidTopicException: why"),
        (rejected(29, "TOPIC_AUTHORIZATION_FAILED"), "TopicAuthorizationException: why"),
        (rejected(31, "CLUSTER_AUTHORIZATION_FAILED"), "ClusterAuthorizationException: why"),
        (rejected(40, "INVALID_CONFIG"), "InvalidConfigurationException: why"),
        (rejected(42, "INVALID_REQUEST"), "InvalidRequestException: why"),
        (rejected(7, "REQUEST_TIMED_OUT"), "TimeoutException: why"),
        (rejected(-1, "UNKNOWN_SERVER_ERROR"), "UnknownServerException: why"),
        (rejected(114, "MISMATCHED_ENDPOINT_TYPE"), "MismatchedEndpointTypeException: why"),
        (Unauthenticated("SASL was refused"), "SaslAuthenticationException: SASL was refused"),
        (Unauthenticated("no TLS connection"), "SslAuthenticationException: no TLS connection"),
        (Unsupported("why"), "UnsupportedVersionException: why"),
        (OutcomeUnknown("why"), "TimeoutException: why"),
        (ProtocolViolation("why"), "UnknownServerException: why"),
    ],
)
def test_every_kind_of_error_has_its_java_class(error, expected):
    assert str(java_failure(error, "call")) == f"Error: org.apache.kafka.common.errors.{expected}"


def test_an_unsent_request_has_its_reason_on_a_line_of_its_own():
    failure = java_failure(Unreachable("connection refused"), "listNodes")
    waiting = "TimeoutException: Timed out waiting for a node assignment. Call: listNodes"
    assert str(failure) == f"Error: org.apache.kafka.common.errors.{waiting}\nCaused by: connection refused"
