"""`kreassign define-tables`: the tables for a catalog, or for dbt."""

from __future__ import annotations

import re

import click

from kreassign.cli.next_command import next_command, print_next
from kreassign.cli.options.values import ReadBy
from kreassign.cli.output import examples
from kreassign.model.printable import shortened
from kreassign.operations.define_tables import SCHEMA, DefinitionForm, define_tables

_SCHEMA = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,254}")
_LOCATION = re.compile(r"(/|[A-Za-z][A-Za-z0-9+.-]*:/)[^\x00-\x20]*")


def schema_name(text: str) -> str:
    """The name of a schema. Raises ValueError where it is none."""
    if not _SCHEMA.fullmatch(text):
        raise ValueError(f"{shortened(text)!r} is not a name of a schema; it has letters, digits and underscores")
    return text


def address(text: str) -> str:
    """An address or an absolute path. Raises ValueError: a catalog would take another one as below its warehouse."""
    if not _LOCATION.fullmatch(text):
        raise ValueError(f"{shortened(text)!r} is no address; write for example s3a://bucket/data or /srv/data")
    return text


@click.command(
    "define-tables",
    epilog=examples(
        "kreassign define-tables --location s3a://bucket/data",
        "kreassign define-tables --format dbt --location s3a://bucket/data --schema kafka",
    ),
)
@click.option(
    "--location", required=True, type=ReadBy("address", address), metavar="URI",
    help="Directory of the tables, as the catalog reaches it.",
)  # fmt: skip
@click.option(
    "--schema", default=SCHEMA, show_default=True, type=ReadBy("name", schema_name), metavar="NAME",
    help="Schema of the catalog that has them.",
)  # fmt: skip
@click.option(
    "--format",
    "form",
    type=click.Choice([form.value for form in DefinitionForm]),
    default=DefinitionForm.DDL.value,
    show_default=True,
    help="SQL statements, or sources for dbt.",
)
@click.option("--no-columns", is_flag=True, help="Leave columns to the log of each table, which must be there.")
def command(location: str, schema: str, form: str, *, no_columns: bool) -> None:
    """Write the definitions of the tables for a catalog: CREATE TABLE statements for Spark, or sources for dbt.

    They have the meaning of every column. Nothing is read and nothing is changed.
    """
    if no_columns and form != DefinitionForm.DDL:
        raise click.UsageError("--no-columns is for --format ddl: what columns mean is what sources for dbt are for")
    click.echo(define_tables(location, DefinitionForm(form), schema, with_columns=not no_columns), nl=False)
    print_next(next_command("load", "--data", location))
