"""Advice on command lines that click refuses: what was probably meant, and a line that works."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path

import click
from click.core import ParameterSource

from kreassign.cli.profiles import (
    ADDRESS_ENVIRONMENT,
    CLUSTER_ENVIRONMENT,
    CONFIG_ENVIRONMENT,
    OUR_ENVIRONMENT,
    WORDS,
    config_path,
    names_in,
)
from kreassign.errors import InputError
from kreassign.model.text import likely, shortened, signed_number, some_of

_UNKNOWN = (click.NoSuchOption, click.exceptions.NoSuchCommand)
_MEANT = {"help": ["--help"], "version": ["--version"]}
OTHER_WORDS = {
    "run PLAN": ("execute", "move", "reassign", "apply", "--reassignment-json-file", "--execute"),
    "run PLAN --throttle RATE": ("--replica-alter-log-dirs-throttle",),
    "run PLAN --dry-run": ("dry-run", "preview"),
    "rehearse": ("simulate",),
    "plan --out FILE": ("generate", "balance", "export", "--generate"),
    "plan leaders": ("leaders", "elect", "elect-leaders", "election"),
    "plan add-brokers IDS": ("add", "scale", "expand"),
    "plan replication-factor N": ("set-factor", "factor", "increase-factor"),
    "decommission IDS": ("remove", "evacuate", "retire"),
    "maintenance enter IDS": ("upgrade", "restart"),
    "cancel": ("abort", "kill", "stop"),
    "rollback": ("undo", "revert"),
    "status": ("list", "ls", "show", "progress"),
    "twin start": ("sandbox", "cluster"),
    "web": ("ui", "dashboard", "serve", "server"),
    "web --listen PORT": ("--port", "--host"),
    "verify PLAN": ("diff", "--verify"),
}
"""Commands, and what people and other tools call them."""
_ORIGINS = {
    "plan": "`kreassign plan --out FILE` makes one",
    "snapshot": "`kreassign snapshot --out FILE` makes one",
    "expect_current": "`kreassign plan --current-out FILE` makes one",
    "policy": "a policy is a TOML file that you write, as the guide `Look after a cluster` shows",
}
"""Origin of the file for which a parameter of this name asks."""
SHOWN = 3
_ESCAPED = "\\\\"
"""A backslash as click and we quote what was typed: by `repr`."""
_LIST = re.compile(r"'[^' ]+,[^']*'")
"""A word of the command line with a comma in it, as messages quote it."""
_EXTRA = re.compile(r"^Got unexpected extra arguments? \((.+)\)$")
_UNIT = re.compile(r"\(([kmgt]i?b(?:/s)?)\)", re.IGNORECASE)


def advised(error: click.UsageError) -> click.UsageError:
    """The error with what was probably meant, or how the command is given; paths of Windows are as they were typed."""
    context = error.ctx
    if context is None or isinstance(error, click.exceptions.NoArgsIsHelpError):
        return error
    advice, is_unknown = _advice(error, context), isinstance(error, _UNKNOWN)
    said = error.message if is_unknown else error.format_message()  # the latter may have a suggestion already
    if isinstance(error, click.MissingParameter):
        said = " ".join(said.split())  # click lists choices in lines of their own
    if not (advice or is_unknown or _ESCAPED in said):
        return error
    return click.UsageError(f"{said.rstrip('.').replace(_ESCAPED, _ESCAPED[0])}{advice}", context)


COMPLETION = "_KREASSIGN_COMPLETE"
"""Variable by which a shell asks for completions; click reads it before anything else."""
_OF_COMPLETION = re.compile(r"(bash|zsh|fish)_(source|complete)")
_WORDS_OF_SHELL, _PLACE_IN_SHELL = "COMP_WORDS", "COMP_CWORD"


def mistake_of_completion() -> str:
    """The error if the environment asks for completions as no script of a shell does; "" if not."""
    asked = os.environ.get(COMPLETION, "")
    ask = _OF_COMPLETION.fullmatch(asked)
    if not asked or (ask and ask[2] == "source"):
        return ""
    if ask is None:
        wrong = f"{COMPLETION} is {shortened(asked)!r}, which no script for completion sets"
    elif lacking := [name for name in (_WORDS_OF_SHELL, _PLACE_IN_SHELL) if name not in os.environ]:
        wrong = f"{COMPLETION} is set without {' and '.join(lacking)}, which the script for completion sets, too"
    elif ask[1] != "fish" and signed_number(os.environ[_PLACE_IN_SHELL]) is None:
        wrong = f"{_PLACE_IN_SHELL} is {shortened(os.environ[_PLACE_IN_SHELL])!r}, and not the number of a word"
    else:
        return ""
    return f"{wrong}. Unset {COMPLETION} to give a command; `kreassign completion --help` says how a shell completes"


def refuse_mistyped_variables(context: click.Context, command: click.Command) -> None:
    """Raise InputError for an environment variable that is nearly one of the command's, and no other one of ours.

    A throttle that was set by a name that nothing reads would not be missed before the copies run.
    """
    own = {name.removeprefix(OUR_ENVIRONMENT): name for name in _variables(command, context)}
    for name in sorted(os.environ):
        word = name.removeprefix(OUR_ENVIRONMENT)
        is_open = word != name and word not in own and name not in _OTHER_VARIABLES
        near = get_close_matches(word, own, n=1, cutoff=_NEAR) if is_open else []
        if near and name not in {*_variables(context.command, context)}:  # loads all commands
            meant = own[near[0]]
            raise InputError(
                f"no option reads the environment variable {name}; did you mean {meant}? Rename it, or unset it"
            )


_NEAR = 0.8
"""Similarity of `THROTLE` and `THROTTLE`, and more; unlike that of options that differ in a word."""
_OTHER_VARIABLES = (
    CONFIG_ENVIRONMENT, CLUSTER_ENVIRONMENT, "KREASSIGN_WEB_TOKEN", "KREASSIGN_WEBHOOK_SECRET",
)  # fmt: skip
"""Variables that stand for no option."""


def _variables(command: click.Command, context: click.Context) -> Iterator[str]:
    """Environment variables of the options of a command and of all commands below it."""
    for parameter in command.params:
        yield from (parameter.envvar,) if isinstance(parameter.envvar, str) else parameter.envvar or ()
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            if (below := command.get_command(context, name)) is not None:
                yield from _variables(below, context)


def _advice(error: click.UsageError, context: click.Context) -> str:
    """The rest of the message, after its end without a full stop."""
    match error:
        case click.NoSuchOption():
            return _of_option(error.option_name, context)
        case click.exceptions.NoSuchCommand():
            names = context.command.list_commands(context) if isinstance(context.command, click.Group) else []
            # The possibilities have the aliases; click finds similar what is not.
            found = _MEANT.get(error.command_name) or likely(error.command_name, {*names, *(error.possibilities or ())})
            elsewhere = _elsewhere(error.command_name, context) or _of_other_word(error.command_name, context)
            return elsewhere or _question(found) or _for_example(context)
        case click.MissingParameter():
            return f"{_of_variable(error)}{_for_example(context)}"
        case click.BadParameter():
            return _of_value(error, context)
        case _:
            return _of_words(error, context)


def _of_words(error: click.UsageError, context: click.Context) -> str:
    """Advice on words that do not fit together; none on a file that is wrong, for no words are."""
    if isinstance(error.__cause__, InputError):
        return ""
    if unit := _UNIT.search(error.message):
        return f". Write an amount without a blank, as in 50{unit[1]}"
    extra = _EXTRA.search(error.message)
    return (_of_extra(extra[1].split(), context) if extra else "") or _for_example(context)


def _of_value(error: click.BadParameter, context: click.Context) -> str:
    if error.param is None:
        return ""
    return f"{_origin(error.param, context)}{_of_its_kind(error, error.param, context)}"


def _of_variable(error: click.MissingParameter) -> str:
    """The environment variable that stands for a missing option: a second terminal lacks what the first exported.

    The address may also come from a cluster of the configuration file.
    """
    variable = None if error.param is None else error.param.envvar
    clusters = sorted(names_in(config_path())) if variable == ADDRESS_ENVIRONMENT else []
    chosen = f"; or choose a cluster of {config_path()}: --cluster {' or '.join(clusters[:SHOWN])}" if clusters else ""
    return f"; or export {variable}, which stands for it{chosen}" if isinstance(variable, str) else ""


def _origin(param: click.Parameter, context: click.Context) -> str:
    """Origin of a value that was not typed."""
    match context.get_parameter_source(str(param.name)):
        case ParameterSource.ENVIRONMENT:
            names = [param.envvar] if isinstance(param.envvar, str) else list(param.envvar or ())
            found = next((name for name in names if os.environ.get(name)), "")
            return f"; it comes from the environment variable {found}"
        case ParameterSource.DEFAULT_MAP:
            return f"; it comes from {config_path()}"
        case _:
            return ""


def _of_its_kind(error: click.BadParameter, param: click.Parameter, context: click.Context) -> str:
    if param.name == "output_format":
        return "; --out names a file" if "--out" in _options(context) else ""
    if param.name in _ORIGINS and "Did you mean" not in error.message:
        return f"; {_ORIGINS[param.name]}"
    if not _LIST.search(error.message):
        return ""
    if param.nargs == -1:
        return "; this is not a list with commas: separate them with blanks"
    is_repeated = isinstance(param, click.Option) and param.multiple
    return "; this is not a list with commas: give the option once for each" if is_repeated else ""


def _of_extra(words: Sequence[str], context: click.Context) -> str:
    """Advice on words too many: ids that are one list, or another command beside the given one."""
    takes_ids = any(isinstance(one, click.Argument) and one.metavar == "IDS" for one in context.command.params)
    if takes_ids and all(signed_number(word.strip(",")) is not None for word in words):
        return ". Write ids as one list with commas and no blanks, as in 7,8"
    if {"--plan", "--run"} <= {*_options(context)}:
        return f". Write --{'plan' if Path(words[0]).is_file() else 'run'} {words[0]}"
    above = context.parent
    if above is None or not isinstance(above.command, click.Group) or not above.command.get_command(above, words[0]):
        return ""
    return f". `{above.command_path} {words[0]}` is a command of its own: give one after the other"


def _of_option(option: str, context: click.Context) -> str:
    if option == "--yes" and not isinstance(context.command, click.Group):
        return f". {context.command_path} asks nothing: leave it out"
    arguments = [one for one in context.command.params if isinstance(one, click.Argument)]
    if argument := next((one for one in arguments if option == f"--{one.name}".replace("_", "-")), None):
        name = argument.make_metavar(context).strip("[]")
        return f". Write {name} without an option's name{_for_example(context)}"
    if commands := _commands_with(option, context):
        typed = [word for word in context.meta.get(WORDS, ()) if word in commands]
        meant = [f"`{context.command_path} {name}`" for name in typed[:1] or commands]
        return f". It is an option of {some_of(meant, SHOWN)}: write it after the command"
    if found := likely(option, _options(context)) or _beginning_so(option, context):
        return _question(found)
    root = context.find_root()
    elsewhere = [f"`{root.command_path} {name}`" for name in _commands_with(option, root)]
    if elsewhere:
        return f". It is an option of {some_of(elsewhere, SHOWN)}"
    return _of_other_word(option, context) or _for_example(context)


def _beginning_so(option: str, context: click.Context) -> list[str]:
    """The only option that begins with the letter of a short one: `--yes` for `-y`."""
    found = [name for name in _options(context) if name.startswith(f"-{option}")] if len(option) == len("-y") else []
    return found if len(found) == 1 else []


def _elsewhere(name: str, context: click.Context) -> str:
    """Advice on a command that the program has, but not this group of it."""
    root = context.find_root()
    if context.command.name == "maintenance" and name in OTHER_WORDS["status"] + ("status",):
        return f". `{root.command_path} doctor` names brokers in maintenance"
    is_there = isinstance(root.command, click.Group) and root.command.get_command(root, name) is not None
    return f". It is a command of its own: `{root.command_path} {name}`" if is_there else ""


def _of_other_word(word: str, context: click.Context) -> str:
    """Advice on a word that people and other tools have for a command or an option.

    Other groups have words of their own: `twin remove` is not about brokers of a cluster.
    """
    root, name = context.find_root().command_path, context.command.name
    meant = next((command for command, words in OTHER_WORDS.items() if word in words), "")
    is_here = name in (meant.split() if word.startswith("-") else ("kreassign", "plan"))
    return f". That is `{root} {meant}` here" if meant and is_here else ""


def _commands_with(option: str, context: click.Context) -> list[str]:
    """Commands of a group that take this option."""
    group = context.command
    if not isinstance(group, click.Group):
        return []
    known = ((name, group.get_command(context, name)) for name in group.list_commands(context))
    return [name for name, one in known if one and any(option in parameter.opts for parameter in one.params)]


def _options(context: click.Context) -> list[str]:
    return [name for parameter in context.command.params for name in parameter.opts]


def _question(found: Sequence[str] | None) -> str:
    return f". Did you mean {' or '.join(map(repr, found))}?" if found else ""


def _for_example(context: click.Context) -> str:
    """The first example of the command's help, as the end of a message."""
    lines = (context.command.epilog or "").splitlines()
    example = next((line.strip() for line in lines if line.startswith("  ")), None)
    return f". For example: {example}" if example else ""
