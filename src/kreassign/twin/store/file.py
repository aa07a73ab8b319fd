"""A metadata log in a file, which a crash at any moment leaves readable.

After a signature come the records, each as a header (length of what follows, its checksum, and a checksum of those
two) and a body: one byte that says whether the record is the last of its decision, and the record as JSON. Numbers
are big-endian. A decision whose last record is missing or cut off never happened; opening the file drops it.
Anything else that does not fit its checksums is damage, and the file is refused.
"""

from __future__ import annotations

import fcntl
import os
import struct
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from kreassign.errors import DataError, InputError
from kreassign.twin.metadata.records import Record
from kreassign.twin.store.record_json import from_json, to_json

SIGNATURE = b"kreassign twin metadata 1\n"
_NUMBERS = struct.Struct(">II")
_CHECKSUM = struct.Struct(">I")
_HEADER_BYTES = _NUMBERS.size + _CHECKSUM.size
_MORE, _LAST = b"+", b"."


class _Body(NamedTuple):
    """The bytes of a record, whether it ends its decision, and where the next header begins."""

    text: bytes
    is_last: bool
    end: int


class FileLog:
    """Records in a file that this process alone writes to.

    Opening drops an unfinished decision at the end. `DataError` if the file is damaged or something else entirely,
    `InputError` if another process has it open.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        is_new = not path.exists()
        self._file: BinaryIO = path.open("a+b")
        try:
            self._take_over()
        except BaseException:
            self._file.close()
            raise
        if is_new:
            _sync_folder(path.parent)

    def append(self, records: Iterable[Record]) -> None:
        """Write the records of one decision; they are on disk when this returns."""
        texts = [to_json(record).encode() for record in records]
        for number, text in enumerate(texts, 1):
            self._file.write(_framed((_LAST if number == len(texts) else _MORE) + text))
        self._sync()

    def read(self) -> Iterator[Record]:
        """All records from the first, as far as they are written now."""
        end = self._size()
        with self.path.open("rb") as file:
            file.seek(len(SIGNATURE))
            position = len(SIGNATURE)
            while position < end and (body := self._next(file, position)) is not None:
                yield self._record(body.text, position)
                position = body.end

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    # --- opening ----------------------------------------------------------------------------------------------

    def _take_over(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"{self.path} is in use by another twin; stop that one or choose another file") from None
        size = self._size()
        keep = self._sound_part(size)
        if keep < size:
            self._file.truncate(keep)
        if keep == 0:
            self._file.write(SIGNATURE)
        self._sync()

    def _sound_part(self, size: int) -> int:
        """How many bytes from the start are whole decisions."""
        with self.path.open("rb") as file:
            signature = file.read(len(SIGNATURE))
            if len(signature) < len(SIGNATURE) and SIGNATURE.startswith(signature):
                return 0
            if signature != SIGNATURE:
                raise DataError(f"{self.path} is not a metadata log of a twin; choose another file")
            position = keep = len(SIGNATURE)
            while position < size and (body := self._next(file, position)) is not None:
                position = body.end
                keep = position if body.is_last else keep
        return keep

    # --- reading ----------------------------------------------------------------------------------------------

    def _next(self, file: BinaryIO, position: int) -> _Body | None:
        """What stands at this position, to which `file` is wound; None if it breaks off."""
        header = file.read(_HEADER_BYTES)
        if len(header) < _HEADER_BYTES:
            return None
        numbers, (checksum,) = header[: _NUMBERS.size], _CHECKSUM.unpack(header[_NUMBERS.size :])
        if zlib.crc32(numbers) != checksum:
            raise self._damaged(position)
        length, checksum = _NUMBERS.unpack(numbers)
        body = file.read(length)
        if len(body) < length:
            return None
        if zlib.crc32(body) != checksum or body[:1] not in (_MORE, _LAST):
            raise self._damaged(position)
        return _Body(body[1:], body[:1] == _LAST, position + _HEADER_BYTES + length)

    def _record(self, text: bytes, position: int) -> Record:
        try:
            return from_json(text)
        except (ValueError, KeyError, TypeError) as reason:
            raise DataError(
                f"{self.path} has no record that this version knows at byte {position} ({reason}); "
                "read it with the version that wrote it"
            ) from reason

    def _damaged(self, position: int) -> DataError:
        return DataError(
            f"{self.path} is damaged in the record that begins at byte {position}; restore the file, "
            f"or cut it to {position} bytes to go on from there"
        )

    # --- writing ----------------------------------------------------------------------------------------------

    def _size(self) -> int:
        return os.fstat(self._file.fileno()).st_size

    def _sync(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())


def _framed(body: bytes) -> bytes:
    numbers = _NUMBERS.pack(len(body), zlib.crc32(body))
    return numbers + _CHECKSUM.pack(zlib.crc32(numbers)) + body


def _sync_folder(folder: Path) -> None:
    """Make sure that a new file is found again after a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
