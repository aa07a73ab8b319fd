"""`kreassign completion`: click's script that completes commands, options and run IDs in a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from kreassign.cli.mistakes import COMPLETION
from kreassign.cli.output import examples, print_verbatim

PROGRAM = "kreassign"


@examples(
    "kreassign completion bash",
    "kreassign completion zsh",
    "kreassign completion fish",
)
@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, /, shell: str) -> None:
    """Print the script that lets a shell complete commands, options and ids of runs.

    For bash put `eval "$(kreassign completion bash)"` into ~/.bashrc, for zsh the same with zsh into ~/.zshrc, and for
    fish write it to ~/.config/fish/completions/kreassign.fish.
    """
    kind = get_completion_class(shell)
    assert kind is not None, f"click knows no {shell}"
    print_verbatim(kind(context.find_root().command, {}, PROGRAM, COMPLETION).source())
