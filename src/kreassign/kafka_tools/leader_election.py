"""`kafka-leader-election`: replaces the tool of that name in Kafka 4.4.0.

Same options, help texts, rules, streams and exit codes; docs/reference/kafka-leader-election.md lists the differences
with reasons. `kafka-preferred-replica-election` shares its functions.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kreassign import errors
from kreassign.admin import AdminClient, ClientSettings, client_settings, read_properties
from kreassign.kafka_tools.command_line import (
    Options,
    PlainError,
    UsageError,
    java_failure,
    naming_kind,
    portless,
    read_options,
    run_tool,
)
from kreassign.model import Batch, ElectionType, TopicPartition
from kreassign.model.plan import duplicates, parse_election

# Shared by the two election tools: settings, files, the election itself and the report of its results.

CLIENT_ID = "leader-election-tool"
_CALL = "electLeaders"
_NO_CLIENT = "Failed to create new KafkaAdminClient"
_CLIENT_FAILED = "org.apache.kafka.common.KafkaException"
_TIMED_OUT = "Timeout waiting for election results"
_NOT_ALLOWED = "Not authorized to perform leader election"


@dataclass(frozen=True, slots=True)
class Wording:
    """Sentences of a tool; each precedes partitions or a failure."""

    completed: str
    unneeded: str
    failed: str
    replicas: str


def settings(
    addresses: str, config_file: str | None, *, api_timeout_ms: int, request_timeout_ms: int
) -> ClientSettings:
    """Client settings from a properties file, with timeouts where the file has none."""
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
    except errors.InputError as error:
        raise PlainError(
            path or str(error), reason=str(error) if path else None, java_class="java.nio.file.NoSuchFileException"
        ) from error


def file_text(path: str) -> str:
    """The text of an election file; raises `PlainError` if it is unreadable."""
    try:
        return Path(path).read_bytes().decode("utf-8", errors="replace")
    except OSError as error:
        raise PlainError(f"java.io.IOException: Unable to read file {path}", reason=error.strerror) from error


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
                client.describe_cluster()  # Nothing to elect, but an unreachable cluster must still be reported.
            found = client.elect_leaders(partitions, election_type)
    except errors.ClusterError as error:
        raise _refused(error) from error
    _report(found, wording)


def _refused(error: errors.ClusterError) -> errors.KreassignError:
    if isinstance(error, errors.Unreachable | errors.OutcomeUnknown) or _is(error, "REQUEST_TIMED_OUT"):
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


def _is(error: errors.ClusterError, name: str) -> bool:
    return isinstance(error, errors.Rejected) and error.name == name


# The tool.

HELP_TEXT = (
    "This tool attempts to elect a new leader for a set of topic partitions. The type of elections supported are "
    "preferred replicas and unclean replicas."
)

CONFIG_IS_DEPRECATED = (
    "Option --admin.config has been deprecated and will be removed in a future version. Use --command-config instead."
)


OPTIONS = read_options("kafka-leader-election")

_REQUIRED = ("bootstrap-server", "election-type")

_WHICH = ("topic", "all-topic-partitions", "path-to-json-file")


_API_TIMEOUT_MS = 30_000
_REQUEST_TIMEOUT_MS = 15_000
_EMPTY = "Replica election data is empty"
_MISSING = 'Replica election data is missing "partitions" field'


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool with these words (default: the command line) and return its exit code."""
    return run_tool(_run, OPTIONS, argv)


def _run(options: Options) -> None:
    check(options)
    kind = election_type(options)
    partitions = _partitions(options)
    if options.has("admin.config"):
        print(CONFIG_IS_DEPRECATED, flush=True)
    config_file = options.text("command-config" if options.has("command-config") else "admin.config")
    addresses = options.text("bootstrap-server") or ""
    reached = settings(addresses, config_file, api_timeout_ms=_API_TIMEOUT_MS, request_timeout_ms=_REQUEST_TIMEOUT_MS)
    elect(reached, partitions, kind, _wording(kind))


def check(options: Options) -> None:
    """Raise the error of the first violated rule, in Kafka's order."""
    if not options.word_count or options.has("help"):
        raise UsageError(HELP_TEXT)
    if missing := [name for name in _REQUIRED if not options.has(name)]:
        raise PlainError(f"Missing required option(s): {', '.join(missing)}")
    if len([name for name in _WHICH if options.has(name)]) != 1:
        raise PlainError(f"One and only one of the following options is required: {', '.join(_WHICH)}")
    if options.has("topic") and not options.has("partition"):
        raise PlainError("Missing required option(s): partition")
    if options.has("partition") and not options.has("topic"):
        raise PlainError("Option partition is only allowed if topic is used")
    if options.has("admin.config") and options.has("command-config"):
        raise UsageError('Option "[admin.config]" can\'t be used with option "[command-config]"')


def election_type(options: Options) -> ElectionType:
    """The requested kind of election, case-insensitive."""
    text = options.text("election-type") or ""
    found = {kind.name: kind for kind in ElectionType}.get(text.upper())
    if found is None:
        raise PlainError(f"Cannot parse argument '{text}' of option election-type")
    return found


def _partitions(options: Options) -> tuple[TopicPartition, ...] | None:
    """The partitions given by option or file; None for all."""
    path = options.text("path-to-json-file")
    if path is None:
        single = single_partition(options)
        return None if single is None else (single,)
    with naming_kind(path, is_plan=False):
        try:
            named = parse_election(file_text(path), missing=_MISSING, empty=_EMPTY)
        except errors.MalformedPlan as error:
            is_ours = str(error) in (_EMPTY, _MISSING)
            jackson = "" if is_ours else "com.fasterxml.jackson.databind.JsonMappingException: "
            raise PlainError(f"{jackson}{error}") from error
    if twice := duplicates(named):
        raise PlainError(f"Replica election data contains duplicate partitions: [{', '.join(map(str, twice))}]")
    return named


def single_partition(options: Options) -> TopicPartition | None:
    """The partition of `--topic` and `--partition`; None without them."""
    topic = options.text("topic")
    if topic is None:
        return None
    return TopicPartition(topic, options.number("partition", 0, bits=32))


def _wording(kind: ElectionType) -> Wording:
    return Wording(
        f"Successfully completed leader election ({kind.name}) for partitions",
        "Valid replica already elected for partitions",
        f"Error completing leader election ({kind.name}) for partition:",
        "replica(s)",
    )


if __name__ == "__main__":
    sys.exit(main())
