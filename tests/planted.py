"""Secrets that tests plant, looked for in files in every form in which a program may have written them."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow.parquet as pq


def forms(secrets: Iterable[str], user: str) -> Iterator[bytes]:
    """The secrets of a user, and as SASL PLAIN, HTTP and careless programs would write them."""
    for secret in secrets:
        for text in (secret, f"\0{user}\0{secret}", f"{user}:{secret}"):
            yield text.encode()
            yield base64.b64encode(text.encode()).rstrip(b"=")
        yield secret.encode().hex().encode()
        yield secret.encode("utf-16-le")


def contents(folder: Path) -> Iterator[tuple[Path, bytes]]:
    """Every file as it is, and unpacked."""
    for path in (path for path in folder.rglob("*") if path.is_file()):
        found = path.read_bytes()
        yield path, found
        if found.startswith(b"\x1f\x8b"):
            yield path, gzip.decompress(found)
        if path.suffix == ".parquet":
            yield path, repr(pq.read_table(path).to_pylist()).encode()
