"""How a drop-in tool fails, and our errors in the words of Kafka's Java client.

Each kind of failure has its stream and its form; the exit code is always 1.
"""

from __future__ import annotations

from kreassign.errors import (
    ClusterError,
    KreassignError,
    OutcomeUnknown,
    Rejected,
    Unauthenticated,
    Unreachable,
    Unsupported,
)
from kreassign.model.error_codes import error_code

_PACKAGE = "org.apache.kafka.common.errors"


class UsageError(KreassignError):
    """Wrong usage: the message and the help go to stderr."""


class UncaughtError(KreassignError):
    """What Kafka's tool does not catch: one line on stderr, in the form of an uncaught Java exception."""

    def __init__(self, java_class: str, message: str) -> None:
        super().__init__(f'Exception in thread "main" {java_class}: {message}')
        self.message = message


class ParserError(UncaughtError):
    """The command line cannot even be read."""

    def __init__(self, java_class: str, message: str) -> None:
        super().__init__(f"joptsimple.{java_class}", message)


class TerseError(KreassignError):
    """What Kafka's tool says without the word Error: the message alone on stdout."""


class ToolError(KreassignError):
    """Any other failure: `Error: <message>` on stdout.

    Where Kafka's tool goes on with a Java stack trace, we print one line with the `reason`, if the message does not
    name it already.
    """

    def __init__(self, message: str, *, reason: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason

    def __str__(self) -> str:
        message = f"Error: {super().__str__()}"
        return f"{message}\nCaused by: {self.reason}" if self.reason else message


class PlainError(KreassignError):
    """What most tools say of any failure: the message alone on stderr, or as an uncaught Java exception.

    `java_class` is the class of that exception. `also_said` goes to stdout before. Where Kafka's tool goes on with a
    Java stack trace, we print one line with the `reason`, if the message does not name it already.
    """

    def __init__(
        self,
        message: str,
        *,
        reason: str | None = None,
        also_said: str | None = None,
        java_class: str = "kafka.common.AdminCommandFailedException",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason
        self.also_said = also_said
        self.java_class = java_class

    def __str__(self) -> str:
        return self._with_reason(self.message)

    def uncaught(self) -> str:
        """The same as an uncaught Java exception."""
        return self._with_reason(f'Exception in thread "main" {self.java_class}: {self.message}')

    def _with_reason(self, message: str) -> str:
        return f"{message}\nCaused by: {self.reason}" if self.reason else message


def java_failure(error: ClusterError, call: str) -> ToolError:
    """The failure that Kafka's tool would print for this error of its client's `call` (the Java name of the call)."""
    if isinstance(error, Unreachable):
        return ToolError(java_exception("TimeoutException", java_message(error, call)), reason=error.message)
    return ToolError(java_exception(_class_of(error), error.message))


def java_message(error: ClusterError, call: str) -> str:
    """The message alone of the exception of `java_failure`."""
    if isinstance(error, Unreachable):
        return f"Timed out waiting for a node assignment. Call: {call}"
    return error.message


def java_exception(name: str, message: str) -> str:
    """An exception of Kafka's client as Java prints it."""
    return f"{_PACKAGE}.{name}: {message}"


def _class_of(error: ClusterError) -> str:
    match error:
        case Rejected():
            return error_code(error.code).java_exception
        case Unauthenticated():  # of TLS or of SASL; only the message says which
            return "SaslAuthenticationException" if "SASL" in error.message else "SslAuthenticationException"
        case Unsupported():
            return "UnsupportedVersionException"
        case OutcomeUnknown():
            return "TimeoutException"
        case _:
            return "UnknownServerException"
