"""PURE. Addresses of object stores, for `deltalake` and for Spark; and what their answers mean, with what to do.

`s3://bucket/data` and `s3a://bucket/data` are one place. Credentials, region and endpoint are those of the environment
(`AWS_ACCESS_KEY_ID`, `AWS_REGION`, `AWS_ENDPOINT_URL` …): `deltalake` reads them itself, Spark is given them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

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
