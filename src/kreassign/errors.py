"""Every exception of kreassign, in one tree.

    KreassignError
    ├── InputError            the input is wrong; nothing was sent                  exit 2
    │   ├── MalformedPlan     not the JSON of Kafka's tools; .path
    │   ├── IllegalPlan       breaks rules; .violations (all of them, not the first) .is_overtaken .drifted
    │   ├── PlanIsMet         every partition is already where the plan puts it; .run_id, if a run did that
    │   ├── ClusterBusy       others run, move or throttle there; the same may work later
    │   └── StandsBy          another process looks after the cluster
    ├── Infeasible            no plan meets the hard goals; .goals                  exit 3
    ├── ClusterError          a request to the cluster failed; .message .item .api    exit 4
    │   ├── Unreachable       did not reach a broker; safe to retry
    │   ├── OutcomeUnknown    sent, no answer; check the state before acting again
    │   ├── Unauthenticated   TLS or SASL failed: client or broker does not trust the other
    │   ├── Unsupported       this cluster does not offer that API or version; nothing was sent
    │   ├── ProtocolViolation the answer does not follow Kafka's protocol
    │   ├── DamagedZnode      a znode does not hold what Kafka writes there; .path
    │   ├── StaleZnode        a znode has changed since it was read; nothing was written
    │   ├── ControllerMoved   another controller is active; nothing was written
    │   └── Rejected          Kafka answered with an error; .code .name .retriable .principal
    ├── ExecutionError        a run cannot continue                                 exit 5
    │   ├── JournalTaken      another process went on with the journal
    │   ├── Drifted           the cluster is not as the plan expects; .differences
    │   └── JournalUnreadable what a run did is not known; .problem .remedy
    │       ├── JournalDamaged    the journal cannot be trusted
    │       └── JournalLocked     another process has locked the journal
    │           ├── JournalFull        its disk has no room
    │           └── MirrorUnavailable  its second place does not answer
    └── DataError             a table is missing, empty or has the wrong columns    exit 6
    InvariantBroken           a bug in kreassign; an AssertionError, never caught
                          (except when a journal is read, which another version may have written)

Messages say what happened, to what, and what to do next. The drop-in tools keep Kafka's own texts instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from os import strerror
from typing import Self


class KreassignError(Exception):
    """Any error that kreassign reports to its user; `exit_code` is that of the command line."""

    exit_code = 1


class InputError(KreassignError):
    """The user's input is wrong. Nothing was sent to any cluster."""

    exit_code = 2


class MalformedPlan(InputError):
    """A plan or topics file is not the JSON that Kafka's tools read."""

    def __init__(self, message: str, *, path: str | None = None) -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.path = path


SHOWN_VIOLATIONS = 20


class IllegalPlan(InputError):
    """A plan breaks rules that can be checked before anything is sent. The text shows some of the `violations`.

    It `is_overtaken` where others move its partitions, or moved them since it was made: `drifted` of them have lists
    for which it was not made.
    """

    def __init__(self, violations: tuple[str, ...], *, is_overtaken: bool = False, drifted: int = 0) -> None:
        lines = [f"\n  - {line}" for line in violations[:SHOWN_VIOLATIONS]]
        if (more := len(violations) - SHOWN_VIOLATIONS) > 0:
            lines.append(f"\n  and {more:,} more")
        super().__init__(f"the plan cannot be executed:{''.join(lines)}")
        self.violations = violations
        self.is_overtaken = is_overtaken
        self.drifted = drifted


class PlanIsMet(InputError):
    """Every partition is already where the plan puts it, by a run of the same plan if one is known."""

    def __init__(self, run_id: str | None = None, plan: str = "PLAN") -> None:
        by = "" if run_id is None else f"the plan was already executed by run {run_id}: "
        super().__init__(
            f"{by}every partition is where the plan puts it, so there is nothing to run. `kreassign verify {plan}` "
            "checks that"
        )
        self.run_id = run_id


class Infeasible(KreassignError):
    """No plan meets the hard goals."""

    exit_code = 3

    def __init__(self, message: str, *, goals: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.goals = goals


class ClusterError(KreassignError):
    """A request to a Kafka cluster failed.

    `message` says what happened, in the cluster's own words if it sent some. `item` is the topic-partition, topic,
    broker or configuration concerned and `api` the name of the Kafka API; both are None if a whole request failed or
    none was sent. `str` appends in brackets those of item, API and error code that the message does not contain.
    """

    exit_code = 4

    def __init__(self, message: str = "", *, item: object = None, api: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.item = item
        self.api = api

    def about(self, item: object) -> Self:
        """Return a copy of this error for one item of a request that failed as a whole."""
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
    """The request never reached a broker, so a retry is safe."""


class OutcomeUnknown(ClusterError):
    """The request was sent without an answer: it may or may not have been executed."""


class Unauthenticated(ClusterError):
    """TLS or SASL failed, so nothing was sent; a retry needs other credentials."""


class Unsupported(ClusterError):
    """The broker does not offer the API, the version or the option. Nothing was sent."""


class ProtocolViolation(ClusterError):
    """The answer does not follow Kafka's protocol."""


class DamagedZnode(ClusterError):
    """A znode does not hold what Kafka writes there. Kafka may be stuck on it too, so it is only reported."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"znode {path} is damaged: {reason}; look at it with zookeeper-shell before anything else")
        self.path = path


class StaleZnode(ClusterError):
    """The version of a znode changed since it was read, so nothing was written: read it again, then decide."""


class ControllerMoved(ClusterError):
    """Another controller was elected meanwhile, so nothing was written. Ask the new one."""


class Rejected(ClusterError):
    """Kafka answered with an error code.

    `code` and `name` are Kafka's (for example 39 and "INVALID_REPLICA_ASSIGNMENT", see `kreassign.model.error_codes`),
    `message` is Kafka's, or the code's default text if the response carried none. `retriable` is True if Kafka's own
    client would retry. `principal` is the client's, if it is known without the brokers.
    """

    def __init__(
        self,
        message: str,
        *,
        api: str,
        code: int,
        name: str,
        retriable: bool = False,
        item: object = None,
        principal: str | None = None,
    ) -> None:
        super().__init__(message, item=item, api=api)
        self.code = code
        self.name = name
        self.retriable = retriable
        self.principal = principal

    def _context(self) -> tuple[str, ...]:
        return (*super()._context(), f"{self.code} {self.name}")


class ExecutionError(KreassignError):
    """A run cannot continue. Its journal shows how far it came."""

    exit_code = 5


class ClusterBusy(InputError):
    """Another run, or moves or throttles of others, came first on the cluster. The same may work once they are gone."""


class StandsBy(InputError):
    """Another process looks after the cluster; this one decides nothing meanwhile."""


class JournalTaken(ExecutionError):
    """Another process went on with the journal: this one writes and sends nothing more."""


class Drifted(ExecutionError):
    """The cluster is not in the state that the plan expects; `differences` has a line for each, if they were listed."""

    def __init__(self, message: str, *, differences: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.differences = differences


class JournalUnreadable(ExecutionError):
    """A journal cannot be read: `problem` says why, and `remedy` what to do; "" where the problem says that."""

    def __init__(self, problem: str, remedy: str = "") -> None:
        super().__init__(f"{problem}. {remedy}" if remedy else problem)
        self.problem = problem
        self.remedy = remedy


class JournalDamaged(JournalUnreadable):
    """A journal is incomplete or unreadable."""


class JournalLocked(JournalUnreadable):
    """Another process has locked a journal: nothing is known to be wrong with it."""


class JournalFull(JournalLocked):
    """The disk of a journal has no room for what is to be written, or to read it: nothing is wrong with the journal."""


class MirrorUnavailable(JournalLocked):
    """The second `place` of a journal did not confirm what was written, or cannot be read for now."""

    def __init__(self, place: object, why: str) -> None:
        super().__init__(f"{place} does not keep the journal: {why}", "Bring it back, or free space there")


class DataError(KreassignError):
    """A table is missing, empty or has the wrong columns."""

    exit_code = 6


class InvariantBroken(AssertionError):
    """An impossible state: a bug in kreassign. Autopilots alone catch it, from plans and rehearsals."""


@contextmanager
def requires(what: str, package: str, extra: str) -> Iterator[None]:
    """Raise KreassignError, which names the extra, if an import in this context misses a package of that extra.

    `what` is the feature that needs the packages.
    """
    try:
        yield
    except ImportError as error:
        raise missing_extra(f"{what} needs {package} ({error})", extra) from error


def machine_reason(error: Exception) -> str:
    """Text of the machine for an error, without its number, the arguments of the call and marks of OpenSSL."""
    if not isinstance(error, OSError):
        return str(error)
    of_tls = getattr(error, "verify_message", None) or getattr(error, "reason", None)
    if isinstance(of_tls, str):
        return of_tls.replace("_", " ").lower()
    if error.errno is not None and error.errno > 0:
        return strerror(error.errno).lower()
    return error.strerror or str(error)


def missing_extra(problem: str, extra: str) -> KreassignError:
    """Error about packages that are not installed, with the line that installs them."""
    from kreassign.installation import line_for

    return KreassignError(f"{problem}: {line_for(extra)}")


EXTRA_OF = {
    "arro3": "tables", "deltalake": "tables", "pyarrow": "tables",
    "pandas": "spark", "py4j": "spark", "pyspark": "spark",
    "llvmlite": "plan-at-scale", "numba": "plan-at-scale",
    "anyio": "web", "starlette": "web", "uvicorn": "web",
}  # fmt: skip
"""Extra that installs a package which an installation may lack."""
_ON_SPARK = frozenset({"audit", "load", "stream-metrics"})


def lacking(error: ImportError, command: str) -> KreassignError | None:
    """Translate the failed import of a command: it names the extra. None if no extra installs the package."""
    package = (error.name or "").partition(".")[0]
    if package not in EXTRA_OF:
        return None
    # These need tables too, but never tables alone.
    extra = "spark" if command in _ON_SPARK else EXTRA_OF[package]
    return missing_extra(f"`kreassign {command}` needs {package}, which is not installed", extra)


@contextmanager
def unforeseen_named() -> Iterator[None]:
    """Raise InputError in place of an error that nobody foresaw, also for lack of memory.

    For what may fail without ending its process: nothing is changed in this context.
    """
    try:
        yield
    except KreassignError:
        raise
    except Exception as error:
        raise InputError(f"{type(error).__name__}, which nobody foresaw: {error}") from error
