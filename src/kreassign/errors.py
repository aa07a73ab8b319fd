"""Every exception of kreassign, in one tree.

    KreassignError
    ├── InputError            what you gave us is wrong; nothing was sent           exit 2
    │   ├── MalformedPlan     not the JSON we know; .path
    │   └── IllegalPlan       breaks rules; .violations (all of them, not the first)
    ├── Infeasible            no plan meets the hard goals; .goals                  exit 3
    ├── ClusterError          the conversation with the cluster failed; .message .item .api    exit 4
    │   ├── Unreachable       never got through; safe to try again
    │   ├── OutcomeUnknown    sent, no answer; look before acting again
    │   ├── Unauthenticated   TLS or SASL failed: one side does not believe who the other is
    │   ├── Unsupported       this cluster does not offer that API or version; nothing was sent
    │   ├── ProtocolViolation the answer is not Kafka's protocol
    │   ├── DamagedZnode      a znode does not hold what Kafka writes there; .path
    │   ├── StaleZnode        a znode is not what was read any more; nothing was written
    │   ├── ControllerMoved   another controller is active; nothing was written
    │   └── Rejected          Kafka said no; .code .name .retriable
    ├── ExecutionError        a run cannot go on                                    exit 5
    │   ├── Drifted           the cluster is not what the plan was made for
    │   └── JournalDamaged    the journal cannot be trusted
    └── DataError             a table is missing, empty or has the wrong columns    exit 6
    InvariantBroken           a bug of ours; an AssertionError, never caught
                          (but where a journal is read back, which may be another version's)

Messages say what happened, to what, and what to do next. The drop-in tools keep Kafka's own texts instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self


class KreassignError(Exception):
    """Anything that kreassign reports to its user; `exit_code` is the command line's answer."""

    exit_code = 1


class InputError(KreassignError):
    """What the user gave is wrong. Nothing was sent to any cluster."""

    exit_code = 2


class MalformedPlan(InputError):
    """A plan or topics file is not the JSON that Kafka's tools read."""

    def __init__(self, message: str, *, path: str | None = None) -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.path = path


class IllegalPlan(InputError):
    """A plan breaks rules that can be checked before anything is sent."""

    def __init__(self, violations: tuple[str, ...]) -> None:
        super().__init__("the plan cannot be executed:\n" + "\n".join(f"  - {line}" for line in violations))
        self.violations = violations


class Infeasible(KreassignError):
    """No plan meets the hard goals."""

    exit_code = 3

    def __init__(self, message: str, *, goals: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.goals = goals


class ClusterError(KreassignError):
    """The conversation with a Kafka cluster failed.

    `message` is what happened, in the cluster's own words where it has some. `item` is what it happened to (a
    topic-partition, a topic, a broker, a configuration …) and `api` the name of the Kafka API; both are None where a
    whole request failed or none was sent. The text of the exception is the message, and in brackets whatever of item,
    API and error code the message does not name itself.
    """

    exit_code = 4

    def __init__(self, message: str = "", *, item: object = None, api: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.item = item
        self.api = api

    def about(self, item: object) -> Self:
        """The same error for one item of a request that failed as a whole."""
        error = type(self).__new__(type(self), *self.args)
        error.__dict__.update(self.__dict__)
        error.item = item
        return error

    def __str__(self) -> str:
        shown = [part for part in self._context() if part and part not in self.message]
        return f"{self.message} ({', '.join(shown)})" if shown else self.message

    def __repr__(self) -> str:
        known = "".join(f", {name}={value!r}" for name, value in self.__dict__.items() if name != "message")
        return f"{type(self).__name__}({self.message!r}{known})"

    def _context(self) -> tuple[str, ...]:
        return ("" if self.item is None else str(self.item), self.api or "")


class Unreachable(ClusterError):
    """The request never got through to a broker, so trying again is safe."""


class OutcomeUnknown(ClusterError):
    """The request was sent and no answer came: it may or may not have been carried out."""


class Unauthenticated(ClusterError):
    """TLS or SASL failed, so nothing was sent; trying again without other credentials is of no use."""


class Unsupported(ClusterError):
    """The broker does not offer the API, the version or the option. Nothing was sent."""


class ProtocolViolation(ClusterError):
    """What came back is not an answer in Kafka's protocol."""


class DamagedZnode(ClusterError):
    """A znode does not hold what Kafka writes there. Kafka may be stuck on it too, so it is told and left alone."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"znode {path} is damaged: {reason}; look at it with zookeeper-shell before anything else")
        self.path = path


class StaleZnode(ClusterError):
    """A znode is of another version than was read, so that nothing was written: read it again, then decide."""


class ControllerMoved(ClusterError):
    """Another controller has been elected since, so that nothing was written. Whoever asked must ask that one."""


class Rejected(ClusterError):
    """Kafka answered with an error code.

    `code` and `name` are Kafka's (for example 39 and "INVALID_REPLICA_ASSIGNMENT", see `kreassign.model.error_codes`),
    `message` is Kafka's, or the default text of the code where the response carried none. `retriable` says whether
    Kafka's own client would try again.
    """

    def __init__(
        self, message: str, *, api: str, code: int, name: str, retriable: bool = False, item: object = None
    ) -> None:
        super().__init__(message, item=item, api=api)
        self.code = code
        self.name = name
        self.retriable = retriable

    def _context(self) -> tuple[str, ...]:
        return (*super()._context(), f"{self.code} {self.name}")


class ExecutionError(KreassignError):
    """A run cannot go on. Its journal says how far it came."""

    exit_code = 5


class Drifted(ExecutionError):
    """The cluster is not what the plan was made for."""


class JournalDamaged(ExecutionError):
    """A journal is incomplete, unreadable or of another cluster."""


class DataError(KreassignError):
    """A table is missing, empty or has the wrong columns."""

    exit_code = 6


class InvariantBroken(AssertionError):
    """Something that cannot be, is: a bug of ours. Never caught."""


@contextmanager
def requires(what: str, package: str, extra: str) -> Iterator[None]:
    """Around imports of packages that an extra brings: raise KreassignError, which names the extra, if one is missing.

    `what` is what needs them.
    """
    try:
        yield
    except ImportError as error:
        raise KreassignError(f"{what} needs {package} ({error}): pip install 'kreassign[{extra}]'") from error
