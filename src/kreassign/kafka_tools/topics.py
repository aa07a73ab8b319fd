"""`kafka-topics`: stands in for the tool of that name in Kafka 4.3.1.

Same options, texts, streams and exit codes; docs/reference/kafka-topics.md lists what differs and why.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from typing import assert_never

from kreassign.admin import AdminClient, client_settings, read_properties
from kreassign.admin.settings import ClientSettings
from kreassign.errors import ClusterError, InputError
from kreassign.kafka_tools.entry_point import exit_code, portless
from kreassign.kafka_tools.failures import PlainError, ToolError, java_message
from kreassign.kafka_tools.options import Options, parse
from kreassign.kafka_tools.topic import actions
from kreassign.kafka_tools.topic.options import (
    DELETE_CONFIG_IS_GONE,
    ID_WINS,
    KAFKA_VERSION,
    OPTIONS,
    Action,
    choose_action,
)

CLIENT_ID = "topics-tool"
_CALLS = {Action.CREATE: "createTopics"}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool with these words (those of the command line) and return its exit code."""
    words = sys.argv[1:] if argv is None else list(argv)
    return exit_code(partial(_run, words), OPTIONS)


def _run(words: list[str]) -> None:
    options = parse(OPTIONS, words)
    if options.has("version") and not options.has("help"):
        print(KAFKA_VERSION)
        return
    if options.has("delete-config") and not options.has("help"):
        print(DELETE_CONFIG_IS_GONE, file=sys.stderr)
    action = choose_action(options)
    if action is Action.DESCRIBE and all(map(options.has, ("if-exists", "topic", "topic-id"))):
        print(ID_WINS, flush=True)
    reached = _settings(options)
    try:
        with AdminClient.connect(reached) as client:
            _execute(action, client, options)
    except ClusterError as error:
        raise _failed(java_message(error, _CALLS.get(action, "listTopics"))) from error
    except (ToolError, InputError) as error:
        raise _failed(error.message if isinstance(error, ToolError) else str(error)) from error


def _failed(message: str) -> PlainError:
    return PlainError("", also_said=f"Error while executing topic command : {message}")


def _execute(action: Action, client: AdminClient, options: Options) -> None:
    match action:
        case Action.LIST:
            actions.list_topics(client, options)
        case Action.DESCRIBE:
            actions.describe(client, options)
        case Action.CREATE:
            actions.create(client, options)
        case Action.ALTER:
            actions.alter(client, options)
        case Action.DELETE:
            actions.delete(client, options)
        case _:
            assert_never(action)


def _settings(options: Options) -> ClientSettings:
    path = options.text("command-config")
    try:
        properties = {} if path is None else read_properties(path)
    except InputError as error:
        raise PlainError(path or str(error), reason=str(error) if path else None) from error
    addresses = options.text("bootstrap-server") or ""
    if (bad := portless(addresses)) is not None or not addresses.strip(" ,"):
        raise PlainError("Failed to create new KafkaAdminClient", reason=f"Invalid url in bootstrap.servers: {bad}")
    return client_settings(properties, bootstrap_servers=addresses, client_id=CLIENT_ID)


if __name__ == "__main__":
    sys.exit(main())
