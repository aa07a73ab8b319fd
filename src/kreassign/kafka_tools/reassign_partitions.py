"""`kafka-reassign-partitions`: replaces the tool of that name in Kafka 4.4.0.

Same options, texts, streams and exit codes; docs/reference/kafka-reassign-partitions.md lists the differences.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import assert_never

from kreassign.admin import AdminClient, ClientSettings, client_settings, read_properties
from kreassign.clock import SYSTEM_CLOCK
from kreassign.errors import InputError
from kreassign.kafka_tools.command_line import ErrorStyle, Options, ToolError, portless, run_tool
from kreassign.kafka_tools.reassign import messages, requests
from kreassign.kafka_tools.reassign.actions import cancel, cancel_all, execute, generate, verify
from kreassign.kafka_tools.reassign.messages import say
from kreassign.kafka_tools.reassign.options import OPTIONS, choose_action, goes_through_zookeeper
from kreassign.kafka_tools.reassign.tool_client import ToolClient

CLIENT_ID = "reassign-partitions-tool"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool with these words (default: the command line) and return its exit code."""
    return run_tool(_run, OPTIONS, argv, ErrorStyle.STDOUT)


def _run(options: Options) -> None:
    action = choose_action(options)
    if goes_through_zookeeper(options):
        from kreassign.kafka_tools import zookeeper

        say(messages.ZOOKEEPER_IS_DEPRECATED)
        zookeeper.perform(options.text("zookeeper") or "", requests.read_request(action, options), SYSTEM_CLOCK)
        return
    if options.has("zookeeper"):
        say(messages.ZOOKEEPER_IS_IGNORED)
    settings = connection_settings(options)
    request = requests.read_request(action, options)
    with AdminClient.connect(settings) as admin:
        through_controllers = bool(settings.bootstrap_controllers)
        _perform(ToolClient(admin, through_controllers=through_controllers), request)


def _perform(client: ToolClient, request: requests.Request) -> None:
    clock = SYSTEM_CLOCK
    match request:
        case requests.ListRequest():
            say(messages.reassignments(client.reassignments()))
        case requests.GenerateRequest():
            generate(client, request)
        case requests.ExecuteRequest():
            execute(client, request, clock)
        case requests.VerifyRequest():
            verify(client, request)
        case requests.CancelRequest():
            cancel(client, request, clock)
        case requests.CancelAllRequest():
            cancel_all(client, request, clock)
        case requests.ProgressRequest():
            from kreassign.kafka_tools.reassign import progress

            progress.progress(client, request, clock)
        case _:
            assert_never(request)


def connection_settings(options: Options) -> ClientSettings:
    """Client settings: those of `--command-config`, with the bootstrap option in place of the file's."""
    properties = _properties(options)
    name = "bootstrap-controller" if options.has("bootstrap-controller") else "bootstrap-server"
    addresses = options.text(name)
    if addresses is None:
        raise ToolError("null", reason=f"--{name} has no value")
    _check_addresses(addresses, f"{name.replace('-', '.')}s")
    if name == "bootstrap-controller":
        return client_settings(properties, bootstrap_controllers=addresses, client_id=CLIENT_ID)
    return client_settings(properties, bootstrap_servers=addresses, client_id=CLIENT_ID)


def _properties(options: Options) -> dict[str, str]:
    path = options.text("command-config")
    if path is None:
        return {}
    try:
        return read_properties(path)
    except InputError as error:
        raise ToolError(path, reason=str(error)) from error


def _check_addresses(addresses: str, key: str) -> None:
    """Refuse addresses without a port, like Kafka's tool."""
    if (address := portless(addresses)) is not None:
        raise ToolError("Failed to create new KafkaAdminClient", reason=f"Invalid url in {key}: {address}")


if __name__ == "__main__":
    sys.exit(main())
