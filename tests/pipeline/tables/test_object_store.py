"""Addresses and answers of object stores. What a store really does is tried by `make test-s3` (`tests/s3/`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from kreassign.pipeline.tables.access import cause_of, meaning, spark_settings
from kreassign.pipeline.tables.delta import place, table_uri
from kreassign.pipeline.tables.schemas import SAMPLES


@pytest.mark.parametrize("address", ["s3://bucket/data", "s3a://bucket/data", "s3n://bucket/data/"])
def test_an_address_of_s3_is_one_place_whatever_it_begins_with(address: str) -> None:
    assert table_uri(address, SAMPLES) == "s3://bucket/data/samples"
    assert place(address, SAMPLES.name, "a.parquet") == "s3a://bucket/data/samples/a.parquet"


def test_other_places_stay_as_they_are() -> None:
    assert place("gs://bucket/data", "samples") == table_uri("gs://bucket/data", SAMPLES) == "gs://bucket/data/samples"
    assert place(Path("/data"), "samples") == table_uri(Path("/data"), SAMPLES) == "/data/samples"


@pytest.mark.parametrize(("said", "told"), [
    ("Generic S3 error\n 404 Not Found\n<Error><Code>NoSuchBucket</Code>", "there is no such bucket: create it"),
    ("Error performing PUT http://169.254.169.254/latest/api/token in 2s", "there are no credentials: set AWS_ACC"),
    ("Operation not supported\n \x1b[31m↳\x1b[0m an error occurred while loading credentials", "there are no credenti"),
    ("403 Forbidden <Code>InvalidAccessKeyId</Code>", "the store refuses the credentials"),
    ("403 Forbidden <Code>AccessDenied</Code>", "these credentials may not do that"),
    ("301 <Code>PermanentRedirect</Code>", "the bucket is in another region: set AWS_REGION"),
    ("HTTP error\n builder error\n URL scheme is not allowed", "its endpoint has no TLS: set AWS_ALLOW_HTTP=true"),
    ("501 Not Implemented <Code>NotImplemented</Code>", "the store does not know conditional writes"),
    ("error sending request\n tcp connect error\n Connection refused", "the store does not answer"),
    ("java.lang.ClassNotFoundException: Class org.apache.hadoop.fs.s3a.S3AFileSystem not found", "Spark has no file"),
])  # fmt: skip
def test_what_a_store_says_is_told_with_what_to_do(said: str, told: str) -> None:
    assert str(meaning(said)).startswith(told)


def test_what_is_not_known_is_left_as_it_was_said() -> None:
    assert meaning("500 Internal Server Error") is None


def test_what_is_not_known_is_told_in_one_line_without_colours() -> None:
    said = "Operation not supported\n    \x1b[31m↳\x1b[0m the moon is full\n\n   \x1b[31m↳\x1b[0m and \x07rises\n"
    assert cause_of(said) == "Operation not supported: the moon is full: and \\u0007rises"
    assert cause_of("<Code>NoSuchBucket</Code>").startswith("there is no such bucket")


def test_spark_looks_for_the_store_where_the_environment_says() -> None:
    own = spark_settings({"AWS_ENDPOINT_URL": "http://127.0.0.1:9000"})
    assert own["spark.hadoop.fs.s3a.endpoint"] == "http://127.0.0.1:9000"
    assert own["spark.hadoop.fs.s3a.connection.ssl.enabled"] == "false"
    assert own["spark.hadoop.fs.s3a.path.style.access"] == "true"
    assert own["spark.hadoop.fs.s3a.endpoint.region"] == "us-east-1", "which no own store looks at, but Spark asks for"
    aws = spark_settings({"AWS_DEFAULT_REGION": "eu-central-1"})
    assert aws["spark.hadoop.fs.s3a.endpoint.region"] == "eu-central-1"
    assert "spark.hadoop.fs.s3a.endpoint" not in aws
    assert not any("key" in name or "secret" in name for name in own | aws)
