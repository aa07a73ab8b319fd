"""The `kreassign` command: finds the sub-command, turns errors into one line and an exit code.

Nothing heavy is imported here. A sub-command's module is imported when that sub-command is used, so that
`kreassign status` does not pay for PySpark, pyarrow or the Kafka client.
"""

from __future__ import annotations

import importlib
import os
from itertools import pairwise
from typing import Any, NamedTuple

import click

from kreassign.cli.streams import printable_output
from kreassign.errors import KreassignError
from kreassign.model.printable import shortened
from kreassign.model.strict_json import is_half
from kreassign.startup import defer_kafka_clients


class LazyCommand(NamedTuple):
    """Where a sub-command lives (`module:function`) and what the list of commands says of it."""

    target: str
    summary: str

    def load(self) -> click.Command:
        """Import the module and return its command."""
        module, _, name = self.target.partition(":")
        command = getattr(importlib.import_module(module), name)
        assert isinstance(command, click.Command), f"{self.target} is not a command"
        return command


OUR_ENVIRONMENT = "KREASSIGN_"
NO_TEXT = "is not text in UTF-8"

# In the order of the workflow: measure, plan, run, verify, report.
COMMANDS = {
    "snapshot": LazyCommand("kreassign.cli.commands.snapshot:snapshot", "Take a snapshot of the cluster."),
    "collect": LazyCommand("kreassign.cli.commands.collect:collect", "Sample the cluster, round after round."),
    "import-metrics": LazyCommand("kreassign.cli.commands.tables:import_metrics", "Import metrics of exporters."),
    "import-samples": LazyCommand("kreassign.cli.commands.tables:import_samples", "Import samples of your own."),
    "stream-metrics": LazyCommand("kreassign.cli.commands.tables:stream_metrics", "Stream a Kafka topic of metrics."),
    "compact": LazyCommand("kreassign.cli.commands.tables:compact", "Compact table files; delete expired ones."),
    "convert-tables": LazyCommand(
        "kreassign.cli.commands.tables:convert_tables", "Convert tables of an older kreassign."
    ),
    "load": LazyCommand("kreassign.cli.commands.tables:load", "Compute load per partition."),
    "show-load": LazyCommand("kreassign.cli.commands.show_load:command", "Show what the last load says."),
    "define-tables": LazyCommand("kreassign.cli.commands.define_tables:command", "Write tables for a catalog or dbt."),
    "plan": LazyCommand("kreassign.cli.commands.plan:plan", "Compute a plan."),
    "rehearse": LazyCommand("kreassign.cli.commands.rehearse:rehearse", "Rehearse a plan on a simulated cluster."),
    "run": LazyCommand("kreassign.cli.commands.run:run", "Execute a plan."),
    "status": LazyCommand("kreassign.cli.commands.status:status", "Show run progress."),
    "watch": LazyCommand("kreassign.cli.commands.watch:watch", "Follow a run live."),
    "pause": LazyCommand("kreassign.cli.commands.steer:pause", "Pause a run: start no new moves."),
    "resume": LazyCommand("kreassign.cli.commands.resume:resume", "Resume a run."),
    "throttle": LazyCommand("kreassign.cli.commands.steer:throttle", "Change the throttle of a run."),
    "pace": LazyCommand("kreassign.cli.commands.steer:pace", "Change order, hours and limits of a run."),
    "cancel": LazyCommand("kreassign.cli.commands.cancel:cancel", "Cancel a run."),
    "forget": LazyCommand("kreassign.cli.commands.forget:forget", "Forget what a run can never settle."),
    "rollback": LazyCommand("kreassign.cli.commands.rollback:rollback", "Roll back a run."),
    "verify": LazyCommand("kreassign.cli.commands.verify:verify", "Verify that the cluster matches a plan or a run."),
    "audit": LazyCommand("kreassign.cli.commands.audit:audit", "Audit a run, or records."),
    "doctor": LazyCommand("kreassign.cli.commands.doctor:doctor", "Diagnose reassignments."),
    "report": LazyCommand("kreassign.cli.commands.report:report", "Write an HTML report of a run."),
    "twin": LazyCommand("kreassign.cli.commands.twin:twin", "Run a simulated cluster that speaks Kafka."),
}


class LazyGroup(click.Group):
    """A group whose sub-commands are imported on use, and whose errors become exit codes."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the sub-commands, in the order of the workflow."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The sub-command of this name, imported now; None if there is none."""
        del ctx
        return COMMANDS[cmd_name].load() if cmd_name in COMMANDS else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the sub-commands without importing them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.summary) for name, command in COMMANDS.items()])

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run the command. What it says is printable, and what click says of its arguments too."""
        with printable_output():
            return super().main(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the sub-command; an error of ours becomes one line on stderr and its exit code.

        With `--debug` it keeps its traceback. A bug of ours always does.
        """
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise  # whoever read our output has seen enough; click ends quietly
        except (KreassignError, OSError) as error:
            if ctx.params.get("debug"):
                raise
            click.echo(f"error: {error}", err=True)
            ctx.exit(error.exit_code if isinstance(error, KreassignError) else 1)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments. Raises UsageError for one that no option and no argument of any command can mean."""
        for before, word in pairwise(["", *args]):
            if problem := _problem(word):
                place = f" after {before}" if before.startswith("-") and not _problem(before) else ""
                raise click.UsageError(f"the argument {shortened(word)!r}{place} {problem}", ctx)
        for name, text in os.environ.items():
            if name.startswith(OUR_ENVIRONMENT) and is_half(text):
                raise click.UsageError(f"the environment variable {name}={shortened(text)!r} {NO_TEXT}", ctx)
        return super().parse_args(ctx, args)


def _problem(word: str) -> str:
    """What is wrong with a word of any command line; "" if nothing is."""
    if is_half(word):
        return NO_TEXT
    if "\0" in word:
        return "has the character U+0000, which no name and no path has"
    is_nothing = not word or (word.startswith("--") and word.find("=") == len(word) - 1)
    return "is empty; leave out what is not to be said" if is_nothing else ""


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--debug", is_flag=True, help="Show the traceback of errors.")
@click.version_option(package_name="kreassign", prog_name="kreassign")
def kreassign(debug: bool) -> None:
    """Plan, execute, watch and verify partition reassignments of Apache Kafka clusters."""
    del debug  # read by LazyGroup.invoke


def main() -> None:
    """Entry point of the `kreassign` script."""
    defer_kafka_clients()
    kreassign.main(prog_name="kreassign")
