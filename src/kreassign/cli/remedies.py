"""What remedies a finding, as a line that can be pasted."""

from __future__ import annotations

from shlex import join

import click

from kreassign.cli.next_command import CLUSTER, STATE, next_command
from kreassign.cli.options.cluster import ClusterOptions
from kreassign.executor.history.issue import Words


def pasted(words: Words, cluster: ClusterOptions) -> str:
    """The command with the options that reach this cluster: Kafka's own tools know nothing of our environment."""
    if words[0] == "kreassign":
        return next_command(*words[1:], takes=_taken(words[1:]))
    reach = ["--bootstrap-server", str(cluster.bootstrap_server)]
    if cluster.command_config is not None:
        reach += ["--command-config", str(cluster.command_config)]
    line = words[0] if len(words) == 1 else join(words)
    return f"{line} {join(reach)}"


def _taken(words: Words) -> tuple[str, ...]:
    """Those of our options that the command takes: `forget`, say, asks no cluster."""
    context = click.get_current_context().find_root()
    command = context.command
    for word in words:
        inner = command.get_command(context, word) if isinstance(command, click.Group) else None
        if inner is None:
            break
        command = inner
    names = {name for parameter in command.params for name in parameter.opts}
    return tuple(name for name in (*CLUSTER, *STATE) if name in names or isinstance(command, click.Group))
