"""The `kreassign` command: find the sub-command, turn errors into one line and an exit code, and format help.

Import nothing heavy here. A sub-command's module is imported when that sub-command is used, so that
`kreassign status` does not pay for PySpark, pyarrow or the Kafka client.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from importlib.resources import files
from itertools import pairwise
from typing import Any, NamedTuple

import click

from kreassign.cli.mistakes import advised, mistake_of_completion, refuse_mistyped_variables
from kreassign.cli.profiles import (
    IN_FORCE,
    OUR_ENVIRONMENT,
    WORDS,
    config_path,
    defaults_of,
    names_in,
    profile_in_force,
)
from kreassign.cli.streams import printable_output
from kreassign.errors import InputError, KreassignError, lacking
from kreassign.model.authorization import error_text
from kreassign.model.documents import is_half
from kreassign.model.text import shortened
from kreassign.startup import defer_kafka_clients

_COMMAND = "kreassign.command"
"""Where click keeps the name of the command that is loaded and run."""

# Format help: what the command does, examples, then its options, in groups if there are many.
#
# click writes options in one list and examples at the end, where few scroll to. A formatter of our own changes that for
# all commands.

MANY = 12
"""From this many options on they are grouped."""

OTHERS = "Options"
_HELP = tomllib.loads(files("kreassign.cli").joinpath("help.toml").read_text(encoding="utf-8"))
GROUPS: dict[str, list[str]] = _HELP["options"]
"""Groups of options, in the order of the help."""
PURPOSES: dict[str, list[str]] = _HELP["commands"]
"""Groups of commands, in the order of the help."""
_GROUP_OF = {option: group for group, options in GROUPS.items() for option in options}
_EXAMPLES = re.compile(r"\n  Examples:\n(?:    .*\n?)+")
_FIRST_LIST = re.compile(r"^(?:Positional arguments|Commands|Options|[A-Z][a-z ]+):$", re.MULTILINE)

Row = tuple[str, str]


class Formatter(click.HelpFormatter):
    """Writes options in groups, below the examples."""

    def __init__(self, indent_increment: int = 2, width: int | None = None, max_width: int | None = None) -> None:
        super().__init__(indent_increment, width, max_width)
        self._heading = ""

    def write_heading(self, heading: str) -> None:
        """Write a heading, except that of options: their groups have headings."""
        self._heading = heading
        if heading != OTHERS:
            super().write_heading(heading)

    def write_dl(self, rows: Iterable[Row], col_max: int = 30, col_spacing: int = 2) -> None:
        """Write a list, options by group."""
        rows = list(rows)
        if self._heading != OTHERS:
            super().write_dl(rows, col_max, col_spacing)
            return
        self._heading = ""
        grouped = list(by_group(rows)) if len(rows) >= MANY else [(OTHERS, rows)]
        for number, (group, members) in enumerate(grouped):
            if number:
                self.write_paragraph()
            self.dedent()
            super().write_heading(group)
            self.indent()
            super().write_dl(members, col_max, col_spacing)

    def getvalue(self) -> str:
        """All text, with the examples moved before the first list."""
        text = super().getvalue()
        examples, lists = _EXAMPLES.search(text), _FIRST_LIST.search(text)
        if examples is None or lists is None or examples.start() < lists.start():
            return text
        rest = f"{text[lists.start() : examples.start()].rstrip()}\n"
        return f"{text[: lists.start()]}{examples[0].strip(chr(10))}\n\n{rest}"


def by_group(rows: Iterable[Row]) -> Iterator[tuple[str, list[Row]]]:
    """Options by group, in the order of the groups; first those without a group, or alone in theirs."""
    rows = list(rows)
    groups = [
        next((_GROUP_OF[name] for name in re.findall(r"--[a-z-]+", names) if name in _GROUP_OF), OTHERS)
        for names, _ in rows
    ]
    # A heading above one option says less than the option, and may be wrong: brokers of a twin are no goals.
    shown = [group if groups.count(group) > 1 else OTHERS for group in groups]
    for heading in (OTHERS, *GROUPS):
        if members := [row for row, group in zip(rows, shown, strict=True) if group == heading]:
            yield heading, members


_INTERRUPTED = 130
"""As shells report a program that SIGINT ended."""

_OF_OTHERS = 0o077
"""Permissions of group and others."""


class LazyCommand(NamedTuple):
    """Module and function of a sub-command (`module:function`), and its line in the list of commands."""

    target: str
    summary: str

    def load(self) -> click.Command:
        """Import the module and return its command."""
        module, _, name = self.target.partition(":")
        command = getattr(importlib.import_module(module), name)
        assert isinstance(command, click.Command), f"{self.target} is not a command"
        _with_variables(command)
        return command


def _refusing(words: str, text: str, failed: KreassignError) -> click.Command:
    """A command whose help is this text, and which takes any arguments and fails."""

    @click.command(words, help=text, context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
    def refuse() -> None:
        raise failed

    return refuse


def _with_variables(command: click.Command) -> None:
    """Read every option also from the environment: `--throttle-broker` from KREASSIGN_THROTTLE_BROKER."""
    for option in command.params:
        named = [name for name in option.opts if name.startswith("--")]
        # The variable of --cluster selects a profile.
        if isinstance(option, click.Option) and not option.envvar and named and named[0] != "--cluster":
            option.envvar = OUR_ENVIRONMENT + named[0].removeprefix("--").replace("-", "_").upper()
    for below in command.commands.values() if isinstance(command, click.Group) else ():
        _with_variables(below)


NO_TEXT = "is not text in UTF-8"

# In the order of the workflow: measure, plan, run, verify, report.
COMMANDS = {
    "snapshot": LazyCommand("kreassign.cli.commands.cluster:snapshot", "Take a snapshot of the cluster."),
    "collect": LazyCommand("kreassign.cli.commands.tables:collect", "Sample the cluster, round after round."),
    "import-metrics": LazyCommand("kreassign.cli.commands.tables:import_metrics", "Import metrics of exporters."),
    "import-samples": LazyCommand("kreassign.cli.commands.tables:import_samples", "Import samples of your own."),
    "stream-metrics": LazyCommand("kreassign.cli.commands.tables:stream_metrics", "Stream a Kafka topic of metrics."),
    "compact": LazyCommand("kreassign.cli.commands.tables:compact", "Compact table files; delete expired ones."),
    "load": LazyCommand("kreassign.cli.commands.tables:load", "Compute load per partition."),
    "show-load": LazyCommand("kreassign.cli.commands.show_load:show_load_command", "Show what the last load says."),
    "define-tables": LazyCommand(
        "kreassign.cli.commands.show_load:define_tables_command", "Write tables for a catalog or dbt."
    ),
    "define-monitoring": LazyCommand(
        "kreassign.cli.commands.run:define_monitoring", "Write alert rules and a dashboard."
    ),
    "plan": LazyCommand("kreassign.cli.commands.plan:plan", "Compute a plan."),
    "approve": LazyCommand("kreassign.cli.commands.steer:approve", "Approve a plan."),
    "rehearse": LazyCommand("kreassign.cli.commands.rehearse:rehearse", "Rehearse a plan on a simulated cluster."),
    "run": LazyCommand("kreassign.cli.commands.run:run", "Execute a plan."),
    "status": LazyCommand("kreassign.cli.commands.steer:status", "Show run progress."),
    "watch": LazyCommand("kreassign.cli.commands.steer:watch", "Follow a run live."),
    "pause": LazyCommand("kreassign.cli.commands.steer:pause", "Pause a run: start no new moves."),
    "resume": LazyCommand("kreassign.cli.commands.run:resume", "Resume a run."),
    "throttle": LazyCommand("kreassign.cli.commands.steer:throttle", "Change the throttle of a run."),
    "pace": LazyCommand("kreassign.cli.commands.steer:pace", "Change order, hours and limits of a run."),
    "cancel": LazyCommand("kreassign.cli.commands.run:cancel", "Cancel a run."),
    "forget": LazyCommand("kreassign.cli.commands.steer:forget", "Forget what a run can never settle."),
    "rollback": LazyCommand("kreassign.cli.commands.run:rollback", "Roll back a run."),
    "maintenance": LazyCommand(
        "kreassign.cli.commands.maintenance:maintenance", "Take leaders off brokers around a restart."
    ),
    "decommission": LazyCommand(
        "kreassign.cli.commands.decommission:command", "Take brokers out of the cluster for good."
    ),
    "autopilot": LazyCommand(
        "kreassign.cli.commands.autopilot:autopilot", "Watch a cluster and repair it, by a policy."
    ),
    "verify": LazyCommand("kreassign.cli.commands.cluster:verify", "Verify that the cluster matches a plan or a run."),
    "audit": LazyCommand("kreassign.cli.commands.report:audit", "Audit a run, or records."),
    "doctor": LazyCommand("kreassign.cli.commands.cluster:doctor", "Diagnose reassignments."),
    "report": LazyCommand("kreassign.cli.commands.report:report", "Write an HTML report of a run or a plan."),
    "completion": LazyCommand("kreassign.cli.commands.completion:completion", "Print a script for completion."),
    "web": LazyCommand("kreassign.cli.commands.web:web", "Serve a page of runs and plans."),
    "demo": LazyCommand("kreassign.cli.commands.demo:demo", "Show all of it on a simulated cluster, in two minutes."),
    "twin": LazyCommand("kreassign.cli.commands.twin:twin", "Run a simulated cluster that speaks Kafka."),
}

ALIASES = {
    "drain": ("plan", "drain-brokers"),
    "rebalance": ("plan", "rebalance"),
    "repair": ("plan", "repair"),
}
"""Other names for commands: an alias, and the words that it stands for."""

EXAMPLES = """\b
Examples:
  kreassign doctor --bootstrap-server localhost:9092
  kreassign plan --out plan.json --bootstrap-server localhost:9092
  kreassign run plan.json --throttle 50MB/s --bootstrap-server localhost:9092
  kreassign watch
  kreassign twin start --scenario skewed"""

# For all commands: single commands cannot choose the formatter.
click.Context.formatter_class = Formatter


class LazyGroup(click.Group):
    """A group that imports sub-commands on use, and turns errors into exit codes."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the sub-commands, in the order of the workflow."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the sub-command of this name; None if there is none.

        Where an extra is lacking, it is one that says so: help and completion, which walk all commands, go on.
        """
        del ctx
        if cmd_name not in COMMANDS:
            return None
        try:
            return COMMANDS[cmd_name].load()
        except ImportError as error:
            if (failed := lacking(error, cmd_name)) is None:
                raise
            return _refusing(cmd_name, f"{COMMANDS[cmd_name].summary}\n\n{failed}", failed)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the sub-commands without importing them."""
        del ctx
        for purpose, names in PURPOSES.items():
            with formatter.section(purpose):
                formatter.write_dl([(name, COMMANDS[name].summary) for name in names])
        with formatter.section("Aliases"):
            formatter.write_dl([(name, " ".join(words)) for name, words in ALIASES.items()])

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run the command. Its output and click's messages are printable."""
        with printable_output():
            if wrong := mistake_of_completion():
                click.echo(f"error: {wrong}", err=True)
                sys.exit(InputError.exit_code)
            return super().main(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the sub-command; a KreassignError becomes one line on stderr and an exit code.

        With `--debug` the traceback is shown. Bugs always show theirs.
        """
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            raise advised(error) from error
        except BrokenPipeError:
            raise  # the reader of our output closed the pipe; click ends quietly
        except ImportError as error:
            if ctx.params.get("debug") or (failed := lacking(error, ctx.meta[_COMMAND])) is None:
                raise
            click.echo(f"error: {failed}", err=True)
            ctx.exit(failed.exit_code)
        except (KeyboardInterrupt, click.Abort):  # Ctrl-C or Ctrl-D, with the cursor perhaps behind a question
            click.echo("\ninterrupted", err=True)
            ctx.exit(_INTERRUPTED)
        except (KreassignError, OSError) as error:
            if ctx.params.get("debug"):
                raise
            click.echo(f"error: {error_text(error)}", err=True)
            ctx.exit(error.exit_code if isinstance(error, KreassignError) else 1)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The sub-command, with the profile in force as its defaults; an unknown name gets a suggestion."""
        args = [*ALIASES.get(args[0], (args[0],)), *args[1:]]
        ctx.meta[_COMMAND] = args[0]
        try:
            name, command, rest = super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand as error:
            known = (*COMMANDS, *ALIASES)
            raise click.exceptions.NoSuchCommand(error.command_name, possibilities=known, ctx=ctx) from None
        if name is None or command is None or ctx.resilient_parsing:
            return name, command, rest
        try:
            refuse_mistyped_variables(ctx, command)
            named, rest = _chosen(ctx, command, rest)
            has_address = any(word.partition("=")[0] == "--bootstrap-server" for word in rest)
            if profile := profile_in_force(named, tuple(COMMANDS), has_address=has_address):
                ctx.default_map = defaults_of(profile, name, command)
                ctx.meta[IN_FORCE] = profile
        except InputError as error:
            if not {"--help", "-h"} & set(rest):  # help needs no settings
                raise click.UsageError(str(error), ctx) from error
        return name, command, rest

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments. Raises UsageError for arguments that no command can take."""
        ctx.meta[WORDS] = tuple(args)
        for before, word in pairwise(["", *args]):
            if problem := _problem(word):
                place = f" after {before}" if before.startswith("-") and not _problem(before) else ""
                raise click.UsageError(f"the argument {shortened(word)!r}{place} {problem}", ctx)
        for name, text in os.environ.items():
            if name.startswith(OUR_ENVIRONMENT) and is_half(text):
                raise click.UsageError(f"the environment variable {name}={shortened(text)!r} {NO_TEXT}", ctx)
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            raise advised(error) from error


def _chosen(ctx: click.Context, command: click.Command, words: list[str]) -> tuple[str | None, list[str]]:
    """The profile selected after a sub-command's name, and the other words.

    A command with its own `--cluster`, for cluster ids, keeps a value that is no profile.
    """
    named: str | None = ctx.params.get("cluster")
    if "--" in words or not any(word.partition("=")[0] == "--cluster" for word in words):
        return named, words
    known = names_in(config_path())
    is_own = any("--cluster" in one.opts for one in _parameters(command))
    rest: list[str] = []
    todo = iter(words)
    for word in todo:
        if word.partition("=")[0] != "--cluster":
            rest.append(word)
            continue
        value = word.partition("=")[2] or next(todo, "")
        if value in known or not is_own:
            named = value
        else:
            rest += ["--cluster", value]
    return named, rest


def _parameters(command: click.Command) -> Iterator[click.Parameter]:
    yield from command.params
    for below in command.commands.values() if isinstance(command, click.Group) else ():
        yield from _parameters(below)


def _problem(word: str) -> str:
    """The error in an argument of any command; "" if there is none."""
    if is_half(word):
        return NO_TEXT
    if "\0" in word:
        return "has the character U+0000, which no name and no path has"
    is_nothing = not word or (word.startswith("--") and word.find("=") == len(word) - 1)
    return "is empty; omit the option or argument" if is_nothing else ""


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    invoke_without_command=True,
    epilog=EXAMPLES,
)
@click.option("--debug", is_flag=True, help="Show the traceback of errors.")
@click.option("--cluster", metavar="NAME", help="Cluster of the configuration file; may also follow the command.")
@click.version_option(package_name="kreassign", prog_name="kreassign")
@click.pass_context
def kreassign(context: click.Context, /, debug: bool, cluster: str | None) -> None:
    """Plan, execute, watch and verify partition reassignments of Apache Kafka clusters.

    Without a command: show the steps, the cluster's state, and what to do next.
    """
    del debug  # read by LazyGroup.invoke
    if context.invoked_subcommand is None:
        from kreassign.cli.commands.cluster import show_home_of

        show_home_of(profile_in_force(cluster, tuple(COMMANDS), has_address=False))


def main() -> None:
    """Entry point of the `kreassign` script."""
    # A umask that restricts the owner would only hurt us: directories of tables could not be entered.
    os.umask(os.umask(_OF_OTHERS) & _OF_OTHERS)
    os.environ.setdefault("RUST_LOG", "error")  # of deltalake, which warns of each attempt
    defer_kafka_clients()
    kreassign.main(prog_name="kreassign")
