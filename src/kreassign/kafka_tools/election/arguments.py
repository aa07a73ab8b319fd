"""The options of `kafka-leader-election`: names, help texts and rules are those of Kafka 4.3.1."""

from __future__ import annotations

from kreassign.kafka_tools.failures import PlainError, UsageError
from kreassign.kafka_tools.options import Option, Options, Value
from kreassign.model import ElectionType, TopicPartition

KAFKA_VERSION = "4.3.1"
"""The release of Kafka's tool that this one stands in for; `--version` prints it."""

HELP_TEXT = (
    "This tool attempts to elect a new leader for a set of topic partitions. The type of elections supported are "
    "preferred replicas and unclean replicas."
)
CONFIG_IS_DEPRECATED = (
    "Option --admin.config has been deprecated and will be removed in a future version. Use --command-config instead."
)

FILE_FORMAT = '{"partitions":\n\t[{"topic": "foo", "partition": 1},\n\t {"topic": "foobar", "partition": 2}]\n}\n'

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


def single_partition(options: Options) -> TopicPartition | None:
    """The partition that `--topic` and `--partition` name, if they do."""
    topic = options.text("topic")
    if topic is None:
        return None
    number = options.number("partition", 0)
    if not -(2**31) <= number < 2**31:
        raise PlainError(f"Cannot parse argument '{options.text('partition')}' of option partition")
    return TopicPartition(topic, number)
