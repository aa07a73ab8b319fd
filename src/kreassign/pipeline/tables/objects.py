"""Keep journals of runs in a bucket, by the library and the settings of tables (`access.py`).

S3 is strongly consistent: an object that was put is in every list and read that begins afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from deltalake.exceptions import DeltaError
from deltalake.fs import DeltaStorageHandler
from pyarrow import ArrowException, fs

from kreassign.errors import MirrorUnavailable
from kreassign.pipeline.tables.access import BOUNDS, cause_of, for_log

# A run that waits keeps its lease only if each call ends well before that does; it asks again by itself.
_BOUNDS = BOUNDS | {"timeout": "10s", "max_retries": "1", "retry_timeout": "10s"}


class ObjectPlace:
    """A bucket, or a prefix in one, as a place of journals."""

    def __init__(self, address: str) -> None:
        self._address = address
        with self._told():
            self._store = fs.PyFileSystem(cast("Any", DeltaStorageHandler(for_log(address), _BOUNDS)))

    def __str__(self) -> str:
        return self._address

    def put(self, name: str, content: bytes) -> None:
        """Put an object. Raises MirrorUnavailable."""
        # Without room for all of it the library gets a buffer of pyarrow's, and refuses what is not bytes.
        room = len(content) + 1
        with self._told(), self._store.open_output_stream(name, buffer_size=room) as stream:
            stream.write(content)

    def names(self, folder: str) -> list[str]:
        """Names of objects and prefixes right below a prefix. Raises MirrorUnavailable."""
        with self._told():
            found = self._store.get_file_info(fs.FileSelector(folder, recursive=False, allow_not_found=True))
        return [one.base_name for one in found]

    def get(self, name: str) -> bytes:
        """Content of an object. Raises MirrorUnavailable."""
        with self._told(), self._store.open_input_stream(name) as stream:
            return bytes(stream.readall())

    def remove(self, name: str) -> None:
        """Delete an object. Raises MirrorUnavailable."""
        with self._told():
            self._store.delete_file(name)

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except (DeltaError, ArrowException, OSError) as error:
            raise MirrorUnavailable(self, cause_of(str(error))) from error
