"""PURE. A file with measures, of whatever format → readings.

Which format it is, its content says: JSON documents, one or several one after the other (as curl appends them), are
answers of Prometheus or of Confluent Cloud; all else is a page of metrics.
"""

from __future__ import annotations

import json
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kreassign.errors import InputError
from kreassign.pipeline.ingest.confluent import is_confluent, read_confluent
from kreassign.pipeline.ingest.prometheus import read_answer, read_page
from kreassign.pipeline.ingest.readings import BadRow, Parsed, Reading, parsed

_BEGIN = '{"status":'
_NEITHER = "this is neither an answer of Prometheus' query API nor series of remote read as JSON"


def parse(content: bytes) -> Parsed:
    """Read a file of any of the formats. Raises InputError when it is JSON of another kind.

    Of several documents one that cannot be read costs itself.
    """
    text = _decoded(content)
    if text.lstrip()[:1] not in ("{", "["):
        return parsed(read_page(text))
    found: list[Reading | BadRow] = []
    refused: list[InputError] = []
    for number, document in enumerate(_documents(text), start=1):
        try:
            found.extend(_read(document))
        except InputError as error:
            refused.append(error)
            found.append(BadRow(f"document {number}", str(error), _as_text(document)))
    if refused and len(found) == len(refused):
        raise refused[0]
    return parsed(found)


def _read(document: Any) -> Iterator[Reading | BadRow]:
    if isinstance(document, _CutOff):
        raise InputError(f"{_NEITHER} ({document.why})")
    return read_confluent(document) if is_confluent(document) else read_answer(document)


@dataclass(frozen=True, slots=True)
class _CutOff:
    """What is no JSON, up to where a document may begin again."""

    text: str
    why: str


def _documents(text: str) -> Iterator[Any]:
    decoder, place = json.JSONDecoder(), 0
    while rest := text[place:].lstrip():
        place = len(text) - len(rest)
        try:
            document, length = decoder.raw_decode(rest)
        except (ValueError, RecursionError) as error:
            # What curl left of an answer that broke off; the next one that it appended may be whole.
            again = rest.find(_BEGIN, 1)
            length = len(rest) if again < 0 else again
            document = _CutOff(rest[:length], repr(error))
        yield document
        place += length


def _as_text(document: Any) -> str:
    return document.text if isinstance(document, _CutOff) else json.dumps(document)


def _decoded(content: bytes) -> str:
    """The text; bytes that are not UTF-8 become half surrogates, so that they cost their line and not the file."""
    if content.startswith((BOM_UTF16_BE, BOM_UTF16_LE)):  # what `curl … > file` writes in Windows PowerShell
        return content.decode("utf-16", errors="replace")
    return content.removeprefix(BOM_UTF8).decode(errors="surrogateescape")
