"""`kafka-preferred-replica-election`: stands in for the tool of that name in Kafka 2.8.2, the last that had it.

docs/reference/kafka-preferred-replica-election.md lists what differs and why.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial

from kreassign.errors import MalformedPlan
from kreassign.kafka_tools.election import through_zookeeper
from kreassign.kafka_tools.election.conduct import Words, elect, file_text, settings
from kreassign.kafka_tools.election.preferred_arguments import (
    KAFKA_VERSION,
    OPTIONS,
    TOOL_IS_DEPRECATED,
    ZOOKEEPER_IS_DEPRECATED,
    check,
)
from kreassign.kafka_tools.ending import exit_code
from kreassign.kafka_tools.failures import PlainError, UncaughtError
from kreassign.kafka_tools.options import Options, parse
from kreassign.model import ElectionType, TopicPartition
from kreassign.model.election_json import duplicates, parse_election

_API_TIMEOUT_MS = 60_000
_REQUEST_TIMEOUT_MS = 30_000
_EMPTY = "Preferred replica election data is empty"
_OPERATION_FAILED = "kafka.admin.AdminOperationException"
_WORDS = Words(
    "Successfully completed preferred leader election for partitions",
    "Preferred replica already elected for partitions",
    "Error completing preferred leader election for partition:",
    "preferred replica(s)",
)


def program() -> int:
    """Entry point of the script."""
    return main()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool with these words (those of the command line) and return its exit code."""
    words = sys.argv[1:] if argv is None else list(argv)
    print(TOOL_IS_DEPRECATED, flush=True)
    return exit_code(partial(_run, words), OPTIONS, escapes=True)


def _run(words: list[str]) -> None:
    options = parse(OPTIONS, words)
    if options.has("version") and not options.has("help"):
        print(KAFKA_VERSION)
        return
    check(options)
    partitions = _partitions(options)
    if options.has("zookeeper"):
        print(ZOOKEEPER_IS_DEPRECATED, file=sys.stderr)
        through_zookeeper.elect(options.text("zookeeper") or "", partitions)
        return
    reached = settings(
        options.text("bootstrap-server") or "",
        options.text("admin.config"),
        api_timeout_ms=_API_TIMEOUT_MS,
        request_timeout_ms=_REQUEST_TIMEOUT_MS,
    )
    elect(reached, partitions, ElectionType.PREFERRED, _WORDS)


def _partitions(options: Options) -> tuple[TopicPartition, ...] | None:
    """The partitions that a file names; None for all."""
    path = options.text("path-to-json-file")
    if path is None:
        return None
    try:
        named = parse_election(file_text(path), integer_name="Int", missing=_EMPTY, empty=_EMPTY)
    except PlainError as error:
        raise UncaughtError("java.io.IOException", f"Unable to read file {path}") from error
    except MalformedPlan as error:
        jackson = "com.fasterxml.jackson.databind.JsonMappingException"
        raise UncaughtError(_OPERATION_FAILED if str(error) == _EMPTY else jackson, str(error)) from error
    if twice := duplicates(named):
        listed = ",".join(map(str, twice))
        raise UncaughtError(
            _OPERATION_FAILED, f"Preferred replica election data contains duplicate partitions: {listed}"
        )
    return named


if __name__ == "__main__":
    sys.exit(program())
