"""What the two election tools share: settings, files, the election itself and the report of its results."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kreassign.admin import AdminClient, ClientSettings, client_settings, read_properties
from kreassign.errors import ClusterError, InputError, KreassignError, OutcomeUnknown, Rejected, Unreachable
from kreassign.kafka_tools.entry_point import portless
from kreassign.kafka_tools.failures import PlainError, java_failure
from kreassign.model import Batch, ElectionType, TopicPartition

FILE_FORMAT = '{"partitions":\n\t[{"topic": "foo", "partition": 1},\n\t {"topic": "foobar", "partition": 2}]\n}\n'
CLIENT_ID = "leader-election-tool"
_CALL = "electLeaders"
_NO_CLIENT = "Failed to create new KafkaAdminClient"
_CLIENT_FAILED = "org.apache.kafka.common.KafkaException"
_TIMED_OUT = "Timeout waiting for election results"
_NOT_ALLOWED = "Not authorized to perform leader election"


@dataclass(frozen=True, slots=True)
class Wording:
    """The sentences of a tool; each goes in front of partitions or of a failure."""

    completed: str
    unneeded: str
    failed: str
    replicas: str


def settings(
    addresses: str, config_file: str | None, *, api_timeout_ms: int, request_timeout_ms: int
) -> ClientSettings:
    """How to reach the cluster: the properties of a file, with time-outs where it has none."""
    properties = {
        "default.api.timeout.ms": str(api_timeout_ms),
        "request.timeout.ms": str(request_timeout_ms),
        **_properties(config_file),
    }
    if addresses and not addresses.strip(" ,"):
        java_class = "org.apache.kafka.common.config.ConfigException"
        raise PlainError("Configuration 'bootstrap.servers' values must not be empty.", java_class=java_class)
    if not addresses:
        reason = "You must set either bootstrap.servers or bootstrap.controllers"
        raise PlainError(_NO_CLIENT, reason=reason, java_class=_CLIENT_FAILED)
    if (bad := portless(addresses)) is not None:
        reason = f"Invalid url in bootstrap.servers: {bad}"
        raise PlainError(_NO_CLIENT, reason=reason, java_class=_CLIENT_FAILED)
    return client_settings(properties, bootstrap_servers=addresses, client_id=CLIENT_ID)


def _properties(path: str | None) -> dict[str, str]:
    if path is None:
        return {}
    try:
        return read_properties(path)
    except InputError as error:
        raise PlainError(
            path or str(error), reason=str(error) if path else None, java_class="java.nio.file.NoSuchFileException"
        ) from error


def file_text(path: str) -> str:
    """The text of an election file; `PlainError` if it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PlainError(f"java.io.IOException: Unable to read file {path}", reason=str(error)) from error


def elect(
    reached: ClientSettings,
    partitions: tuple[TopicPartition, ...] | None,
    election_type: ElectionType,
    wording: Wording,
) -> None:
    """Elect leaders of these partitions, or (None) of all, and report the results."""
    try:
        with AdminClient.connect(reached) as client:
            if partitions == ():
                client.describe_cluster()  # Nothing is to be done, but it would have to be possible.
            found = client.elect_leaders(partitions, election_type)
    except ClusterError as error:
        raise _refused(error) from error
    _report(found, wording)


def _refused(error: ClusterError) -> KreassignError:
    if isinstance(error, Unreachable | OutcomeUnknown) or _is(error, "REQUEST_TIMED_OUT"):
        return PlainError(_TIMED_OUT, also_said=_TIMED_OUT, reason=error.message)
    if _is(error, "CLUSTER_AUTHORIZATION_FAILED"):
        return PlainError(_NOT_ALLOWED, also_said=_NOT_ALLOWED, reason=error.message)
    return PlainError(java_failure(error, _CALL).message, java_class="java.util.concurrent.ExecutionException")


def _report(found: Batch[TopicPartition, None], wording: Wording) -> None:
    unneeded = [key for key, error in found.failed.items() if _is(error, "ELECTION_NOT_NEEDED")]
    failed = {key: error for key, error in sorted(found.failed.items()) if key not in set(unneeded)}
    if found.ok:
        print(f"{wording.completed} {_joined(found.ok)}")
    if unneeded:
        print(f"{wording.unneeded} {_joined(unneeded)}")
    for key, error in failed.items():
        print(f"{wording.failed} {key}: {java_failure(error, _CALL).message}")
    if failed:
        raise PlainError(f"{len(failed)} {wording.replicas} could not be elected")


def _joined(partitions: Iterable[TopicPartition]) -> str:
    return ", ".join(map(str, sorted(partitions)))


def _is(error: ClusterError, name: str) -> bool:
    return isinstance(error, Rejected) and error.name == name
