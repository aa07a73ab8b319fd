"""`kafka-leader-election`: stands in for the tool of that name in Kafka 4.3.1.

Same options, help texts, rules, streams and exit codes; docs/reference/kafka-leader-election.md lists what differs and
why.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial

from kreassign.errors import MalformedPlan
from kreassign.kafka_tools.elections import FILE_FORMAT, Wording, elect, file_text, settings
from kreassign.kafka_tools.entry_point import exit_code
from kreassign.kafka_tools.failures import PlainError, UsageError
from kreassign.kafka_tools.options import Option, Options, Value, parse
from kreassign.model import ElectionType, TopicPartition
from kreassign.model.election_json import duplicates, parse_election

KAFKA_VERSION = "4.3.1"
"""The release of Kafka's tool that this one stands in for; `--version` prints it."""

HELP_TEXT = (
    "This tool attempts to elect a new leader for a set of topic partitions. The type of elections supported are "
    "preferred replicas and unclean replicas."
)

CONFIG_IS_DEPRECATED = (
    "Option --admin.config has been deprecated and will be removed in a future version. Use --command-config instead."
)


OPTIONS = (
    Option(
        "admin.config",
        "(DEPRECATED) Configuration properties files to pass to the admin client. This option will be removed in a "
        "future version. Use --command-config instead.",
        Value.REQUIRED,
        "config file",
    ),
    Option(
        "all-topic-partitions",
        "Perform election on all of the eligible topic partitions based on the type of election (see the "
        "--election-type flag). Not allowed if --topic or --path-to-json-file is specified.",
    ),
    Option(
        "bootstrap-server",
        "A hostname and port for the broker to connect to, in the form host:port. Multiple comma separated URLs can "
        "be given. REQUIRED.",
        Value.REQUIRED,
        "host:port",
    ),
    Option("command-config", "Config properties file to pass to the admin client.", Value.REQUIRED, "Config file"),
    Option(
        "election-type",
        'Type of election to attempt. Possible values are "preferred" for preferred leader election or "unclean" for '
        "unclean leader election. If preferred election is selection, the election is only performed if the current "
        "leader is not the preferred leader for the topic partition. If unclean election is selected, the election is "
        "only performed if there are no leader for the topic partition. REQUIRED.",
        Value.REQUIRED,
        "election type",
        "[PREFERRED,UNCLEAN]",
    ),
    Option("help", "Print usage information."),
    Option(
        "partition",
        "Partition id for which to perform an election. REQUIRED if --topic is specified.",
        Value.REQUIRED,
        "partition id",
        "Integer",
    ),
    Option(
        "path-to-json-file",
        "The JSON file with the list  of partition for which leader elections should be performed. This is an example "
        f"format. \n{FILE_FORMAT}Not allowed if --all-topic-partitions or --topic flags are specified.",
        Value.REQUIRED,
        "Path to JSON file",
    ),
    Option(
        "topic",
        "Name of topic for which to perform an election. Not allowed if --path-to-json-file or --all-topic-partitions "
        "is specified.",
        Value.REQUIRED,
        "topic name",
    ),
    Option("version", "Display Kafka version."),
)

_REQUIRED = ("bootstrap-server", "election-type")

_WHICH = ("topic", "all-topic-partitions", "path-to-json-file")


_API_TIMEOUT_MS = 30_000
_REQUEST_TIMEOUT_MS = 15_000
_EMPTY = "Replica election data is empty"
_MISSING = 'Replica election data is missing "partitions" field'


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
    config_file = options.text("command-config" if options.has("command-config") else "admin.config")
    addresses = options.text("bootstrap-server") or ""
    reached = settings(addresses, config_file, api_timeout_ms=_API_TIMEOUT_MS, request_timeout_ms=_REQUEST_TIMEOUT_MS)
    elect(reached, partitions, kind, _wording(kind))


def check(options: Options) -> None:
    """Raise the first rule that a command line breaks, in Kafka's order."""
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
    """What kind of election is wanted, in letters of any case."""
    text = options.text("election-type") or ""
    found = {kind.name: kind for kind in ElectionType}.get(text.upper())
    if found is None:
        raise PlainError(f"Cannot parse argument '{text}' of option election-type")
    return found


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


def single_partition(options: Options) -> TopicPartition | None:
    """The partition that `--topic` and `--partition` name, if they do."""
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
