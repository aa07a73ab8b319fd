"""Access to tables and brokers: private folders, object stores, secrets of Kafka clients, and statements for catalogs.

No engine is imported here. Only `make_private_folder` touches files; the rest takes and returns text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from kreassign.errors import InputError
from kreassign.model.text import shortened
from kreassign.pipeline.tables.schemas import METRICS_QUARANTINE, OPEN_SAMPLES, QUARANTINE, Column, Table

# Folders of tables: only their owner may enter them, whatever the umask says.
#
# Spark, pyarrow and deltalake write files with the modes that the umask leaves. So the folder keeps others out.

FOLDER_MODE = 0o700


def make_private_folder(folder: Path) -> None:
    """Make a folder and those above it that are missing. Those that are there stay as they are, for whom they are."""
    for one in reversed([one for one in (folder, *folder.parents) if not one.exists()]):
        one.mkdir(FOLDER_MODE, exist_ok=True)
        one.chmod(FOLDER_MODE)


# Addresses of object stores, for `deltalake` and for Spark; their errors, and what to do about them.
#
# `s3://bucket/data` and `s3a://bucket/data` are one place. Credentials, region and endpoint are those of the
# environment (`AWS_ACCESS_KEY_ID`, `AWS_REGION`, `AWS_ENDPOINT_URL` …): `deltalake` reads them itself, Spark is given
# them.

_S3 = re.compile(r"^s3[an]?://")

# Without these a store that does not answer is asked for three minutes, by each call.
BOUNDS = {"connect_timeout": "5s", "timeout": "60s", "max_retries": "5", "retry_timeout": "30s"}
"""For `deltalake`: how long a request may take, and how often one is repeated."""
_SPARK_BOUNDS = {
    "fs.s3a.connection.establish.timeout": "15s",
    "fs.s3a.connection.timeout": "60s",
    "fs.s3a.attempts.maximum": "5",
    "fs.s3a.retry.limit": "3",
}

_CREDENTIALS = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
# What a store, `deltalake` or Spark says somewhere in its message, and what that means; the first that is found.
_MEANINGS = {
    "NoSuchBucket|bucket does not exist|UnknownStoreException": "there is no such bucket: create it, or correct DIR",
    "latest/api/token|latest/meta-data|NoAuthWithAWS|NoAwsCredentials|Unable to load credentials": (
        f"there are no credentials: set {_CREDENTIALS}, or AWS_PROFILE, or run where a role gives them"
    ),
    "InvalidAccessKeyId|SignatureDoesNotMatch|InvalidToken|ExpiredToken": (
        f"the store refuses the credentials: correct {_CREDENTIALS}"
    ),
    "AccessDenied|Forbidden": "these credentials may not do that: allow them to list, read, write and delete there",
    "PermanentRedirect|AuthorizationHeaderMalformed": "the bucket is in another region: set AWS_REGION to its own",
    "URL scheme is not allowed": "its endpoint has no TLS: set AWS_ALLOW_HTTP=true if that is what you want",
    "NotImplemented|501 Not Implemented|conditional put is disabled": (
        "the store does not know conditional writes (If-None-Match), which commits need: keep the tables elsewhere"
    ),
    "error sending request|Connection refused|timed out|dns error|ConnectException|SocketTimeout|UnknownHost": (
        "the store does not answer: look at its address (of S3: AWS_ENDPOINT_URL and AWS_REGION) and at the network"
    ),
    "Class org.apache.hadoop.fs.s3a.S3AFileSystem not found": (
        "Spark has no file system for S3: give it hadoop-aws, in the version of its Hadoop"
    ),
}


def for_log(address: str) -> str:
    """The address as `deltalake` understands it."""
    return _S3.sub("s3://", address)


def for_spark(address: str) -> str:
    """The address as Spark understands it."""
    return _S3.sub("s3a://", address)


def meaning(said: str) -> str | None:
    """What the message of a store, or of who spoke with it, means; None if that is not known."""
    return next((told for words, told in _MEANINGS.items() if re.search(words, said)), None)


def spark_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """The settings of Spark's S3 file system by which it finds the store that `deltalake` finds.

    Credentials are not among them: it reads those of the environment itself.
    """
    settings = dict(_SPARK_BOUNDS)
    endpoint = environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL")
    if endpoint:
        settings["fs.s3a.endpoint"] = endpoint
        settings["fs.s3a.connection.ssl.enabled"] = str(urlsplit(endpoint).scheme != "http").lower()
        is_virtual = environment.get("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", "").lower() == "true"
        settings["fs.s3a.path.style.access"] = str(not is_virtual).lower()
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    if region or endpoint:
        settings["fs.s3a.endpoint.region"] = region or "us-east-1"
    return {f"spark.hadoop.{name}": value for name, value in settings.items()}


# Properties of Kafka's clients for Spark's Kafka source: secrets by reference to their file.
#
# Options of a source are in Spark's plans, and so in its logs, event logs and pages; Spark hides those that look like
# passwords, in some places. So what is about TLS and SASL is not given to Spark at all: Kafka's own clients read it
# from the file, on the driver and on executors (KIP-297 and KIP-421).

PROVIDER = "kreassign"
"""By this name the clients know the provider that reads the file; a file may name providers of its own."""
_READER = "org.apache.kafka.common.config.provider.FileConfigProvider"
_SECRET = ("ssl.", "sasl.")
_REFERENCE = "${"


def by_reference(properties: Mapping[str, str], file: Path) -> dict[str, str]:
    """The properties of a file, those of TLS and SASL as references to it. InputError for a path that cannot be one."""
    secret = {
        name for name, value in properties.items() if name.startswith(_SECRET) and value and _REFERENCE not in value
    }
    if not secret:
        return dict(properties)
    path = str(file.absolute())
    if any(sign in path for sign in ":}"):
        raise InputError(
            f"the path {shortened(path)!r} of the properties file has a colon or a brace, which Kafka's clients cannot "
            "read in it; put the file elsewhere"
        )
    providers = [name for name in properties.get("config.providers", "").split(",") if name]
    return {
        **{name: f"${{{PROVIDER}:{path}:{name}}}" if name in secret else value for name, value in properties.items()},
        "config.providers": ",".join([*providers, PROVIDER]),
        f"config.providers.{PROVIDER}.class": _READER,
    }


# Tables for a catalog: `CREATE TABLE` statements for Spark, and sources for dbt, from the schemas.
#
# Rules:
#
# - A statement names the columns with types and comments, and the column of the partitioning, as the log of the table
#   has them (`delta.py`): a catalog refuses a table that is there already with others.
# - In dbt, columns that must not be NULL are tested to have no NULL, and keys to be unique. Rows in quarantine, and
#   samples that are read again, may be there twice, and have no key.
# - Every text is quoted; none of it can end the statement, or change the structure of the YAML.

_PART_TYPES = {True: "DATE", False: "STRING"}
_NO_KEY = {QUARANTINE.name, METRICS_QUARANTINE.name, OPEN_SAMPLES.name}
_DBT_HEAD = """\
# Sources for dbt, made by `kreassign define-tables --format dbt` from the schemas of the tables; do not edit.
# Keys of several columns are tested by the package dbt_utils: add dbt-labs/dbt_utils to packages.yml.
version: 2

sources:"""


def ddl(tables: Iterable[Table], location: str, schema: str, *, with_columns: bool = True) -> str:
    """Statements in Spark's SQL that make the tables below an address known to a catalog, in a schema of it.

    Without columns, the catalog takes them and what they mean from the log of each table, which must be there.
    """
    statements = [f"CREATE SCHEMA IF NOT EXISTS {_name(schema)};"]
    made = (_create(table, location, schema, with_columns=with_columns) for table in tables)
    return "\n\n".join([*statements, *made]) + "\n"


def dbt_sources(tables: Iterable[Table], location: str, schema: str) -> str:
    """A file `sources.yml` for dbt: the tables with what their columns mean, and tests of their keys."""
    lines = [
        _DBT_HEAD,
        f"  - name: {_text(schema)}",
        f"    schema: {_text(schema)}",
        '    description: "The tables of kreassign: snapshots, samples and loads of Kafka clusters."',
        "    tables:",
    ]
    return "\n".join([*lines, *(line for table in tables for line in _dbt_table(table, location))]) + "\n"


def _create(table: Table, location: str, schema: str, *, with_columns: bool) -> str:
    part = table.partition_by if with_columns else None
    named = f"CREATE TABLE IF NOT EXISTS {_name(schema)}.{_name(table.name)}"
    lines = [
        f"{named} (\n{_columns(table)}\n)" if with_columns else named,
        "USING DELTA",
        *([] if part is None else [f"PARTITIONED BY ({_name(part.name)})"]),
        f"COMMENT {_literal(table.comment)}",
        f"LOCATION {_literal(_place(location, table))};",
    ]
    return "\n".join(lines)


def _columns(table: Table) -> str:
    columns = [f"{_name(column.name)} {_type(column)} COMMENT {_literal(column.comment)}" for column in table.columns]
    if table.partition_by is not None:
        columns.append(f"{_name(table.partition_by.name)} {_PART_TYPES[table.partition_by.is_date]}")
    return ",\n".join(f"  {column}" for column in columns)


def _dbt_table(table: Table, location: str) -> Iterator[str]:
    yield f"      - name: {_text(table.name)}"
    yield f"        description: {_text(table.comment)}"
    yield "        meta:"
    yield f"          made_by: {_text(table.made_by.replace('`', ''))}"
    yield f"          location: {_text(_place(location, table))}"
    yield from _unique_together(table)
    yield "        columns:"
    for column in table.columns:
        yield f"          - name: {_text(column.name)}"
        yield f"            data_type: {_text(_type(column).lower())}"
        yield f"            description: {_text(column.comment)}"
        tests = [] if column.nullable else ["not_null"]
        if table.key == (column.name,) and table.name not in _NO_KEY:
            tests.append("unique")
        if tests:
            yield f"            data_tests: [{', '.join(tests)}]"

    if (part := table.partition_by) is not None:
        comment = f"{'UTC date of ' if part.is_date else ''}`{part.column}`, by which the files are partitioned"
        yield f"          - name: {_text(part.name)}"
        yield f"            data_type: {_text(_PART_TYPES[part.is_date].lower())}"
        yield f"            description: {_text(comment)}"


def _unique_together(table: Table) -> Iterator[str]:
    if len(table.key) == 1 or table.name in _NO_KEY:
        return
    yield "        data_tests:"
    yield "          - dbt_utils.unique_combination_of_columns:"
    yield "              arguments:"
    yield f"                combination_of_columns: [{', '.join(map(_text, table.key))}]"


def _place(location: str, table: Table) -> str:
    return f"{location.rstrip('/')}/{table.name}"


def _type(column: Column) -> str:
    return column.type.upper()


def _name(text: str) -> str:
    """An identifier: `partition`, `offset` and `position` mean something in SQL."""
    return f"`{text.replace('`', '``')}`"


def _literal(text: str) -> str:
    """A text of Spark's SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _text(text: str) -> str:
    """A text of YAML: those of JSON are."""
    return json.dumps(text)
