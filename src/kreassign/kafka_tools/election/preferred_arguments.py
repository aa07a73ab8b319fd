"""The options of `kafka-preferred-replica-election`: names and rules are those of Kafka 2.8.2, the last that had it.

The help says more than Kafka's did: what the preferred replica is, and when the command is not needed (KIP-183).
"""

from __future__ import annotations

from kreassign.kafka_tools.election.arguments import FILE_FORMAT
from kreassign.kafka_tools.failures import UsageError
from kreassign.kafka_tools.options import Option, Options, Value

KAFKA_VERSION = "2.8.2"
"""The release of Kafka's tool that this one stands in for; `--version` prints it."""

TOOL_IS_DEPRECATED = "This tool is deprecated. Please use kafka-leader-election tool. Tracking issue: KAFKA-8405"
ZOOKEEPER_IS_DEPRECATED = (
    "Warning: --zookeeper is deprecated and will be removed in a future version of Kafka.\n"
    "Use --bootstrap-server instead to specify a broker to connect to."
)
HELP_TEXT = (
    "This tool hands the leadership of partitions back to their preferred replicas, which balances it among the "
    "brokers.\n"
    "The preferred replica of a partition is the first in its list of replicas. When a topic is created these are "
    "spread evenly over the brokers; after brokers were down, others lead in their place, and lead on when they are "
    "back.\n"
    "The command is not necessary if the brokers have auto.leader.rebalance.enable=true, which is the default: then "
    "the controller does the same by itself every leader.imbalance.check.interval.seconds. A preferred replica that is "
    "not in sync is not elected."
)

OPTIONS = (
    Option(
        "admin.config",
        "Admin client config properties file to pass to the admin client when --bootstrap-server is given.",
        Value.REQUIRED,
        "config file",
    ),
    Option(
        "bootstrap-server",
        "A hostname and port for the broker to connect to, in the form host:port. Multiple comma-separated URLs can "
        "be given. REQUIRED unless --zookeeper is given.",
        Value.REQUIRED,
        "host:port",
    ),
    Option("help", "Print usage information."),
    Option(
        "path-to-json-file",
        "The JSON file with the list of partitions for which preferred replica leader election should be done, in the "
        f"following format - \n{FILE_FORMAT}Defaults to all existing partitions",
        Value.REQUIRED,
        "list of partitions for which preferred replica leader election needs to be triggered",
    ),
    Option("version", "Display Kafka version."),
    Option(
        "zookeeper",
        "DEPRECATED. The connection string for the zookeeper connection in the form host:port. Multiple URLS can be "
        "given to allow fail-over. Replaced by --bootstrap-server, REQUIRED unless --bootstrap-server is given.",
        Value.REQUIRED,
        "urls",
    ),
)


def check(options: Options) -> None:
    """Raise the first rule that a command line breaks, in Kafka's order."""
    if not options.word_count or options.has("help"):
        raise UsageError(HELP_TEXT)
    if options.has("bootstrap-server") == options.has("zookeeper"):
        raise UsageError("Exactly one of '[bootstrap-server]' or '[zookeeper]' must be provided")
