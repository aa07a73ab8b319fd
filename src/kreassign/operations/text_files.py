"""Text files that users name: the one place that reads them, whatever their encoding.

Windows writes a byte order mark, or UTF-16: the mark is skipped, the encoding named. Asks no cluster.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kreassign.errors import InputError, machine_reason
from kreassign.model.documents import conflict_in, decoded


class UnreadableFileError(InputError):
    """A file cannot be read, whatever its content is: it may be readable in a moment, or for another user."""


def read_text(path: Path) -> str:
    """Read a text file in UTF-8. Raises InputError, which names the file, and its encoding or format.

    Raises FileNotFoundError for a file that is not there, as some need not be, and UnreadableFileError.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise unreadable(path, error) from error
    return decoded_file(path, content)


def unreadable(path: Path, error: OSError) -> UnreadableFileError:
    """Return what to raise where the machine refused to read a file."""
    return UnreadableFileError(f"{path} cannot be read: {machine_reason(error)}")


def read_filled_text(path: Path) -> str:
    """Like `read_text`, for a file that must not be empty. Raises InputError also for conflict markers of Git."""
    text = read_text(path)
    if not text.strip():
        raise InputError(f"{path}: it is empty; leave out the option, or name what is meant")
    if conflict := conflict_in(text):
        raise InputError(f"{path}: {conflict}")
    return text


def decoded_file(path: Path, content: bytes) -> str:
    """Decode the content of a file. Raises InputError as `read_text` does."""
    with naming(path):
        return decoded(content)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Put the name of a file at the beginning of an InputError within the block, unless it is there."""
    try:
        yield
    except InputError as error:
        if str(error).startswith(str(path)):
            raise
        raise InputError(f"{path}: {error}") from error
