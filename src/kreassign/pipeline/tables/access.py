"""Access to tables and brokers: private folders, object stores, secrets of Kafka clients, and statements for catalogs.

Imports no engine. Only `make_private_folder` touches files; the rest takes and returns text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from kreassign.errors import InputError
from kreassign.model.text import printable, shortened
from kreassign.pipeline.tables.schemas import METRICS_QUARANTINE, OPEN_SAMPLES, QUARANTINE, Column, Table

# Folders of tables: only their owner may enter them, whatever the umask.
#
# Spark, pyarrow and deltalake write files with the modes of the umask, so the folder has to keep others out.

FOLDER_MODE = 0o700


def make_private_folder(folder: Path) -> None:
    """Make a folder and its missing parents, for the owner only. Existing folders keep their modes."""
    for one in reversed([one for one in (folder, *folder.parents) if not one.exists()]):
        one.mkdir(FOLDER_MODE, exist_ok=True)
        one.chmod(FOLDER_MODE)


# Addresses of object stores, for `deltalake` and for Spark; their errors, and what to do about them.
#
# `s3://bucket/data` and `s3a://bucket/data` are the same place. Credentials, region and endpoint come from the
# environment (`AWS_ACCESS_KEY_ID`, `AWS_REGION`, `AWS_ENDPOINT_URL` …): `deltalake` reads them itself, Spark gets them
# as settings.

_S3 = re.compile(r"^s3[an]?://")

# Without these bounds, each call would retry an unresponsive store for three minutes.
BOUNDS = {"connect_timeout": "5s", "timeout": "60s", "max_retries": "5", "retry_timeout": "30s"}
"""For `deltalake`: timeouts of a request, and number of retries."""
_SPARK_BOUNDS = {
    "fs.s3a.connection.establish.timeout": "15s",
    "fs.s3a.connection.timeout": "60s",
    "fs.s3a.attempts.maximum": "5",
    "fs.s3a.retry.limit": "3",
}

_CREDENTIALS = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
# Patterns in messages of a store, `deltalake` or Spark, and what they mean; the first match wins.
_MEANINGS = {
    "NoSuchBucket|bucket does not exist|UnknownStoreException": "there is no such bucket: create it, or correct DIR",
    "latest/api/token|latest/meta-data|NoAuthWithAWS|NoAwsCredentials|Unable to load credentials|loading credentials": (
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
    """Rewrite the address for `deltalake`."""
    return _S3.sub("s3://", address)


def for_spark(address: str) -> str:
    """Rewrite the address for Spark."""
    return _S3.sub("s3a://", address)


def meaning(said: str) -> str | None:
    """Plain meaning of a message of a store or its client; None if unknown."""
    return next((told for words, told in _MEANINGS.items() if re.search(words, said)), None)


_MARKS = re.compile(r"\x1b\[[0-9;]*m|↳")
"""Colours and arrows of `deltalake`, which prints a cause in each line."""
_MOST_CHARACTERS = 300


def cause_of(said: str) -> str:
    """Plain meaning of a message of a store or its client; if unknown, its beginning in one line."""
    lines = (line.strip() for line in _MARKS.sub("", said).splitlines())
    return meaning(said) or printable(": ".join(filter(None, lines))[:_MOST_CHARACTERS])


def spark_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Settings of Spark's S3 file system, so that it uses the same store as `deltalake`.

    Without credentials, which Spark reads from the environment itself.
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
# Options of a source end up in Spark's plans, and so in its logs, event logs and web UI; Spark masks those that look
# like passwords, in some places only. So Spark gets no TLS or SASL values at all: Kafka's own clients read them from
# the file, on the driver and on executors (KIP-297 and KIP-421).

PROVIDER = "kreassign"
"""Name of the config provider that reads the file; the file may define providers of its own."""
_READER = "org.apache.kafka.common.config.provider.FileConfigProvider"
_SECRET = ("ssl.", "sasl.")
_REFERENCE = "${"


def by_reference(properties: Mapping[str, str], file: Path) -> dict[str, str]:
    """Properties of a file, with those of TLS and SASL as references to it. Raises InputError for an unusable path."""
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
# - A statement has the columns with types and comments, and the partition column, as in the log of the table
#   (`delta.py`): a catalog refuses an existing table with other columns.
# - dbt tests that required columns have no NULL, and that keys are unique. Quarantined rows, and samples that are read
#   again, may occur twice, and have no key.
# - Every text is quoted; no text can end the statement, or change the structure of the YAML.

_PART_TYPES = {True: "DATE", False: "STRING"}
_NO_KEY = {QUARANTINE.name, METRICS_QUARANTINE.name, OPEN_SAMPLES.name}
_DBT_HEAD = """\
# Sources for dbt, made by `kreassign define-tables --format dbt` from the schemas of the tables; do not edit.
# Keys of several columns are tested by the package dbt_utils: add dbt-labs/dbt_utils to packages.yml.
version: 2

sources:"""


def ddl(tables: Iterable[Table], location: str, schema: str, *, with_columns: bool = True) -> str:
    """`CREATE TABLE` statements in Spark's SQL that register the tables below `location` in a schema of a catalog.

    Without columns, the catalog reads columns and comments from the log of each table, which must exist.
    """
    statements = [f"CREATE SCHEMA IF NOT EXISTS {_name(schema)};"]
    made = (_create(table, location, schema, with_columns=with_columns) for table in tables)
    return "\n\n".join([*statements, *made]) + "\n"


def dbt_sources(tables: Iterable[Table], location: str, schema: str) -> str:
    """Contents of a dbt `sources.yml`: the tables with column descriptions, and tests of their keys."""
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
    required = {True: "", False: " NOT NULL"}
    columns = [
        f"{_name(column.name)} {_type(column)}{required[column.nullable]} COMMENT {_literal(column.comment)}"
        for column in table.columns
    ]
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
    """Quote an identifier: `partition`, `offset` and `position` are words of SQL."""
    return f"`{text.replace('`', '``')}`"


def _literal(text: str) -> str:
    """Quote a text for Spark's SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _text(text: str) -> str:
    """Quote a text for YAML, of which JSON's texts are a subset."""
    return json.dumps(text)
