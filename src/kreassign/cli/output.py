"""Output of the command line: plain printable text for people; JSON, YAML or CSV for programs.

CSV has the rows of the main table of a document.
"""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TextIO, TypeVar

import click
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Column, Table
from rich.text import Text

from kreassign.cli.streams import folded, unwrapped
from kreassign.model.text import printable

FORM = "kreassign.form"
"""Key in click's context for the format of documents, unless it is JSON."""

ROWS = ("moves", "runs", "issues", "findings", "plans", "choices", "needs", "copies", "partitions", "brokers")
"""Tables of documents, the main one first: a document has at most a few of them."""


def written(document: Mapping[str, Any], form: str | None) -> str:
    """The document in this format, JSON for None."""
    if form == "csv":
        return _csv(document)
    if form == "yaml":
        import yaml

        text: str = yaml.safe_dump(json.loads(json.dumps(document)), sort_keys=False, allow_unicode=True)
        return text.rstrip("\n")
    return json.dumps(document, indent=2, ensure_ascii=False)


def _csv(document: Mapping[str, Any]) -> str:
    """Rows of the main table, or the document as one row. Nested fields stay JSON."""
    rows = next((document[name] for name in ROWS if _is_table(document.get(name))), [document])
    columns = list(dict.fromkeys(column for row in rows for column in row))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_cell(row.get(column)) for column in columns] for row in rows)
    return text.getvalue().rstrip("\n")


def _is_table(found: Any) -> bool:
    return isinstance(found, Sequence) and bool(found) and all(isinstance(row, Mapping) for row in found)


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, bool | Mapping | list | tuple):
        return json.dumps(value, ensure_ascii=False)
    return value


Command = TypeVar("Command", bound=Callable[..., Any])
SomeCommand = TypeVar("SomeCommand", bound=click.Command)


def examples(*lines: str) -> Callable[[SomeCommand], SomeCommand]:
    """Add examples to the end of a command's help; stands above the decorator that makes the command."""

    def add(command: SomeCommand) -> SomeCommand:
        command.epilog = "\n".join(("\b", "Examples:", *(f"  {line}" for line in lines)))
        return command

    return add


class PlainConsole(Console):
    """A console for text without markup that may come from a cluster: only the console itself draws."""

    def __init__(self, file: TextIO, width: int | None = None) -> None:
        super().__init__(file=file, width=width, highlight=False, markup=False, emoji=False)

    def print(self, *objects: Any, soft_wrap: bool | None = None, **options: Any) -> None:
        """Print; a sentence, which rich must not wrap, is broken at words on a terminal, and one line in a pipe.

        A table of which the terminal cannot show every figure and word whole is a block of lines per row.
        """
        if len(objects) == 1 and isinstance(objects[0], Table) and least_width(objects[0]) > self.width:
            objects = ("\n".join(_blocks(objects[0])),)
        soft_wrap = soft_wrap or all(isinstance(one, str) for one in objects)
        if soft_wrap and self.is_terminal:
            objects = tuple(folded(one, self.width) if isinstance(one, str) else one for one in objects)
        super().print(*objects, soft_wrap=soft_wrap, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """The text, made printable. Every string passes here: lines, table cells, titles."""
        return super().render_str(printable(text), **options)


def console(*, stderr: bool = False) -> Console:
    """A console; without a terminal it is plain, and wide enough for our tables."""
    stream = unwrapped(sys.stderr if stderr else sys.stdout)
    plain = PlainConsole(stream)
    return plain if plain.is_terminal else PlainConsole(stream, width=160)


def text_table(
    columns: Iterable[Column], rows: Iterable[Iterable[RenderableType]], *, has_titles: bool = True
) -> Table:
    """Rows below their column titles, without rules: the style of every table of the command line."""
    table = Table(*columns, box=None, pad_edge=False, show_header=has_titles)
    for row in rows:
        table.add_row(*row)
    return table


LONGEST_WORD = 16
"""Letters of a name that stay together: a topic may have 249, and no table is as wide."""


def least_width(table: Table) -> int:
    """Width at which no figure of a table is cut, and no word but long names is broken."""
    widths = []
    for column in table.columns:
        cells = [
            str(column.header),
            *("x" * (cell.width or 0) if isinstance(cell, ProgressBar) else str(cell) for cell in column.cells),
        ]
        whole = [cell_len(cell) for cell in cells if column.no_wrap]
        words = [min(cell_len(word), LONGEST_WORD) for cell in cells for word in cell.split()]
        widths.append(max((*whole, *words), default=0))
    return sum(widths) + 2 * (len(widths) - 1)


def _blocks(table: Table) -> Iterator[str]:
    """The rows of a table, one cell below the other: the first with its title, the others indented."""
    for row in zip(*(column.cells for column in table.columns), strict=True):
        cells = [(str(column.header), str(cell).strip()) for column, cell in zip(table.columns, row, strict=True)]
        for number, (title, cell) in enumerate(cells):
            if cell:
                yield f"{'  ' if number else ''}{f'{title}: ' if title and table.show_header else ''}{cell}"


def names(*titles: str) -> list[Column]:
    """Columns of names and words, which may wrap."""
    return [Column(title, overflow="fold") for title in titles]


def figures(*titles: str) -> list[Column]:
    """Columns of figures, right-aligned and never wrapped."""
    return [Column(title, justify="right", no_wrap=True) for title in titles]


def warn(text: str) -> None:
    """Print a warning on stderr; lines after the first are details. The `Warn` of use cases."""
    click.echo(f"warning: {text}", err=True)


MARKDOWN = "markdown"
_FORMATS = ["text", "table", "json", "csv", "yaml"]


def _format_option(formats: list[str], words: str) -> Callable[[Command], Command]:
    return click.option(
        "-o",
        "--format",
        "output_format",
        type=click.Choice(formats),
        default="text",
        show_default=True,
        callback=_reader,
        help=f"Output format: {words}",
    )


def _reader(context: click.Context, _: click.Parameter, chosen: str) -> str:
    """Reader of the output, `text` or `json`; the format of documents is kept in the context."""
    if chosen in {"csv", "yaml"}:
        context.meta[FORM] = chosen
    if chosen == MARKDOWN:
        return chosen
    return "text" if chosen in {"text", "table"} else "json"


format_option = _format_option(_FORMATS, "for people (`table` is the same), or a document for programs.")
"""Add `-o`, `--format`: parameter `output_format: str`, `text` for people and `json` for programs.

Only `print_json` knows the format of documents.
"""
markdown_format_option = _format_option(
    [*_FORMATS, MARKDOWN],
    "for people (`table` is the same), a document for programs, or a comment for pull requests.",
)
"""Add the same option with `markdown`, for comments of pull requests."""


def form_of_documents() -> str | None:
    """Document format of the present command, None for JSON."""
    context = click.get_current_context(silent=True)
    return None if context is None else context.meta.get(FORM)


def print_json(document: Mapping[str, Any]) -> None:
    """Print one document, keys in the given order: JSON unless another format was chosen."""
    print_verbatim(written(document, form_of_documents()))


def print_verbatim(text: str, *, nl: bool = True) -> None:
    """Print a document or a script: no line of it is broken, whatever the width of the terminal."""
    click.echo(printable(text), file=unwrapped(sys.stdout), nl=nl)
