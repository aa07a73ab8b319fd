"""`kafka-leader-election`: stands in for the tool of that name in Kafka 4.3.1.

Same options, texts, streams and exit codes; docs/reference/kafka-leader-election.md lists what differs and why.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial

from kreassign.errors import MalformedPlan
from kreassign.kafka_tools.election.arguments import (
    CONFIG_IS_DEPRECATED,
    KAFKA_VERSION,
    OPTIONS,
    check,
    election_type,
    single_partition,
)
from kreassign.kafka_tools.election.conduct import Words, elect, file_text, settings
from kreassign.kafka_tools.ending import exit_code
from kreassign.kafka_tools.failures import PlainError
from kreassign.kafka_tools.options import Options, parse
from kreassign.model import ElectionType, TopicPartition
from kreassign.model.election_json import duplicates, parse_election

_API_TIMEOUT_MS = 30_000
_REQUEST_TIMEOUT_MS = 15_000
_EMPTY = "Replica election data is empty"
_MISSING = 'Replica election data is missing "partitions" field'


def program() -> int:
    """Entry point of the script."""
    return main()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool with these words (those of the command line) and return its exit code."""
    words = sys.argv[1:] if argv is None else list(argv)
    return exit_code(partial(_run, words), OPTIONS)


def _run(words: list[str]) -> None:
    options = parse(OPTIONS, words)
    if options.has("version") and not options.has("help"):
        print(KAFKA_VERSION)
        return
    check(options)
    kind = election_type(options)
    partitions = _partitions(options)
    if options.has("admin.config"):
        print(CONFIG_IS_DEPRECATED, flush=True)
    config_file = options.text("command-config") or options.text("admin.config")
    addresses = options.text("bootstrap-server") or ""
    reached = settings(addresses, config_file, api_timeout_ms=_API_TIMEOUT_MS, request_timeout_ms=_REQUEST_TIMEOUT_MS)
    elect(reached, partitions, kind, _words(kind))


def _partitions(options: Options) -> tuple[TopicPartition, ...] | None:
    """The partitions that are named one by one; None for all."""
    path = options.text("path-to-json-file")
    if path is None:
        single = single_partition(options)
        return None if single is None else (single,)
    try:
        named = parse_election(file_text(path), missing=_MISSING, empty=_EMPTY)
    except MalformedPlan as error:
        is_ours = str(error) in (_EMPTY, _MISSING)
        jackson = "" if is_ours else "com.fasterxml.jackson.databind.JsonMappingException: "
        raise PlainError(f"{jackson}{error}") from error
    if twice := duplicates(named):
        raise PlainError(f"Replica election data contains duplicate partitions: [{', '.join(map(str, twice))}]")
    return named


def _words(kind: ElectionType) -> Words:
    return Words(
        f"Successfully completed leader election ({kind.name}) for partitions",
        "Valid replica already elected for partitions",
        f"Error completing leader election ({kind.name}) for partition:",
        "replica(s)",
    )


if __name__ == "__main__":
    sys.exit(program())
