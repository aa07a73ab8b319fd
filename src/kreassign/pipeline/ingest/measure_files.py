"""PURE. A file with measures, of whatever format → readings.

Which format it is, its content says: JSON documents, one or several one after the other (as curl appends them), are
answers of Prometheus or of Confluent Cloud; all else is a page of metrics.
"""

from __future__ import annotations

import json
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator
from typing import Any

from kreassign.errors import InputError
from kreassign.pipeline.ingest.confluent import is_confluent, read_confluent
from kreassign.pipeline.ingest.prometheus import read_answer, read_page
from kreassign.pipeline.ingest.readings import BadRow, Parsed, Reading, parsed


def parse(content: bytes) -> Parsed:
    """Read a file of any of the formats. Raises InputError when it is JSON of another kind."""
    text = _decoded(content)
    if text.lstrip()[:1] not in ("{", "["):
        return parsed(read_page(text))
    return parsed(one for document in _documents(text) for one in _read(document))


def _read(document: Any) -> Iterator[Reading | BadRow]:
    return read_confluent(document) if is_confluent(document) else read_answer(document)


def _documents(text: str) -> Iterator[Any]:
    decoder, place = json.JSONDecoder(), 0
    while rest := text[place:].lstrip():
        try:
            document, length = decoder.raw_decode(rest)
        except (ValueError, RecursionError) as error:
            raise InputError(
                f"this is neither an answer of Prometheus' query API nor series of remote read as JSON ({error!r})"
            ) from error
        yield document
        place = len(text) - len(rest) + length


def _decoded(content: bytes) -> str:
    """The text; bytes that are not UTF-8 become half surrogates, so that they cost their line and not the file."""
    if content.startswith((BOM_UTF16_BE, BOM_UTF16_LE)):  # what `curl … > file` writes in Windows PowerShell
        return content.decode("utf-16", errors="replace")
    return content.removeprefix(BOM_UTF8).decode(errors="surrogateescape")
