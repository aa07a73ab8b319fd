#!/usr/bin/env python3
"""Pages that `make docs` adds to docs/: those made from the code, and those of the repository's root.

MkDocs calls the functions `on_…`. A page that is made here cannot be out of date, and is not kept in the repository.
Links of pages to files outside docs/ lead to the sources.
"""

from __future__ import annotations

import inspect
import posixpath
import re
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any, get_args

import click
from mkdocs.structure.files import File

from kreassign.cli.main import COMMANDS
from kreassign.executor.events import Event

ROOT = Path(__file__).resolve().parent.parent
SOURCE = "https://kreassign.example/source/"
DOCS = "docs"
# Pages of the repository's root, and what they are called on the site.
ROOT_PAGES = {
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changes.md",
}
_LINK = re.compile(r"(?<=\]\()([^)\s#:]+)(?=[)#])")

_OPTIONS_HEAD = """\
# All options

Every command with its options, as the code has them. What they are for: [the kreassign command](kreassign.md). Each
option can be given by its variable, too, and by the [configuration file](configuration.md).
"""
_EVENTS_HEAD = """\
# Events of a run

The journal of a run is a list of these and nothing else: [states](run-states.md) follow from them. All have `at_ms`,
milliseconds since the epoch by the run's own time. `kreassign status --format json` and reports are made of them.
"""


def options_page() -> str:
    """Every command and its options, in Markdown."""
    parts = [_OPTIONS_HEAD]
    for name, lazy in COMMANDS.items():
        parts.extend(_of_command(lazy.load(), f"kreassign {name}"))
    return "\n".join(parts)


def events_page() -> str:
    """Every event that a journal may hold, in Markdown."""
    parts = [_EVENTS_HEAD]
    for kind in get_args(Event) or Event.__args__:
        parts.append(f"## {kind.__name__}\n\n{inspect.cleandoc(kind.__doc__ or '')}\n")
        rows = list(_fields(kind))
        if rows:
            parts.append("\n".join(["| Field | Type | If it is not there |", "|---|---|---|", *rows, ""]))
    return "\n".join(parts)


def site_text(text: str, page: str) -> str:
    """A page with its links as the site needs them. `page` is its path in the repository."""
    here = posixpath.dirname(page)

    def replaced(match: re.Match[str]) -> str:
        return _link(posixpath.normpath(posixpath.join(here, match[1])), _site_path(page), match[1])

    return _LINK.sub(replaced, text)


def _link(target: str, page: str, as_it_was: str) -> str:
    if target in ROOT_PAGES or target.startswith(f"{DOCS}/") or target == DOCS:
        if not (ROOT / target).exists():
            return as_it_was  # which MkDocs tells
        return posixpath.relpath(_site_path(target), posixpath.dirname(page) or ".")
    return SOURCE + target if (ROOT / target).exists() else as_it_was


def _site_path(path: str) -> str:
    return ROOT_PAGES.get(path, posixpath.relpath(path, DOCS))


def _of_command(command: click.Command, name: str) -> Iterator[str]:
    context = click.Context(command, info_name=name)
    yield f"## {name}\n\n{inspect.cleandoc((command.help or command.short_help or '').split(chr(12))[0])}\n"
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            assert found is not None
            yield from _of_command(found, f"{name} {below}")
    options = [option for option in command.params if isinstance(option, click.Option) and not option.hidden]
    rows = [_option_row(option, context) for option in options if option.name != "help"]
    if rows:
        yield "\n".join(["| Option | Variable | Meaning |", "|---|---|---|", *rows, ""])


def _option_row(option: click.Option, context: click.Context) -> str:
    names, meaning = option.get_help_record(context) or ("", "")
    variable = option.envvar if isinstance(option.envvar, str) else ""
    return f"| `{_cell(names)}` | {f'`{variable}`' if variable else ''} | {_cell(meaning)} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|").replace("<", "&lt;")


def _fields(kind: Any) -> Iterator[str]:
    assert is_dataclass(kind)
    for one in fields(kind):
        if one.name != "at_ms":
            default = "" if one.default is MISSING else f"`{one.default!r}`"
            yield f"| `{one.name}` | `{_cell(str(one.type))}` | {_cell(default)} |"


# What MkDocs calls.


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are not in docs/."""
    made = {"reference/options.md": options_page(), "reference/events.md": events_page()}
    copied = {site: site_text((ROOT / path).read_text(encoding="utf-8"), path) for path, site in ROOT_PAGES.items()}
    for path, text in {**made, **copied}.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Let links to files outside docs/ lead to the sources."""
    path = page.file.src_uri
    is_from_docs = page.file.generated_by is None
    return site_text(markdown, f"{DOCS}/{path}") if is_from_docs else markdown


def on_post_page(output: str, **_: Any) -> str:
    """A page as it is written: the dialog of the search has a name, for those who hear it."""
    return output.replace(
        'data-md-component="search" role="dialog"', 'data-md-component="search" role="dialog" aria-label="Search"'
    )
