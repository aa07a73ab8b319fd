"""Our errors in the words of Kafka's Java client, which the drop-in tools print."""

from __future__ import annotations

from kreassign.errors import ClusterError, OutcomeUnknown, Rejected, Unauthenticated, Unreachable, Unsupported
from kreassign.kafka_tools.failures import ToolError
from kreassign.model.error_codes import error_code

_PACKAGE = "org.apache.kafka.common.errors"


def java_failure(error: ClusterError, call: str) -> ToolError:
    """The failure that Kafka's tool would print for this error of its client's `call` (the Java name of the call)."""
    if isinstance(error, Unreachable):
        return ToolError(java_exception("TimeoutException", java_message(error, call)), reason=str(error))
    return ToolError(java_exception(_class_of(error), str(error)))


def java_message(error: ClusterError, call: str) -> str:
    """The message alone of the exception of `java_failure`."""
    if isinstance(error, Unreachable):
        return f"Timed out waiting for a node assignment. Call: {call}"
    return str(error)


def java_exception(name: str, message: str) -> str:
    """An exception of Kafka's client as Java prints it."""
    return f"{_PACKAGE}.{name}: {message}"


def _class_of(error: ClusterError) -> str:
    match error:
        case Rejected():
            return error_code(error.code).java_exception
        case Unauthenticated():  # of TLS or of SASL, which only its words tell
            return "SaslAuthenticationException" if "SASL" in str(error) else "SslAuthenticationException"
        case Unsupported():
            return "UnsupportedVersionException"
        case OutcomeUnknown():
            return "TimeoutException"
        case _:
            return "UnknownServerException"
