"""How a drop-in tool fails. Each kind has its stream and its form; the exit code is always 1."""

from __future__ import annotations

from kreassign.errors import KreassignError


class UsageError(KreassignError):
    """The command line makes no sense: the message and the help go to stderr."""


class UncaughtError(KreassignError):
    """What Kafka's tool dies of without catching it: one line on stderr, in the form of an escaped Java exception."""

    def __init__(self, java_class: str, message: str) -> None:
        super().__init__(f'Exception in thread "main" {java_class}: {message}')


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
        self.reason = reason

    def __str__(self) -> str:
        message = f"Error: {super().__str__()}"
        return f"{message}\nCaused by: {self.reason}" if self.reason else message
