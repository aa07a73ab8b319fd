"""Replace a file as a whole or not at all, also in a folder that others can write.

The new content goes into a file beside it, under a name that nobody can guess and that is created here (O_EXCL): a link
that another user has put there leads nowhere. A reader sees the former file or the new one, never half of it.

A file whose new content follows from the former one is read and replaced within `changing_state`: another command that
changes it in between would lose what it wrote.
"""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path

from kreassign.clock import SYSTEM_CLOCK, Clock
from kreassign.errors import InputError, machine_reason
from kreassign.executor.journal.file import CHANGE_PATIENCE_S
from kreassign.executor.journal.folder import make_folder, sync_folder
from kreassign.executor.journal.processes import WHOLE, lock_holders, named, way_on

SHARED_MODE, PRIVATE_MODE = 0o666, 0o600
"""Mode of a file for others too, less what the umask takes away, and of one for its owner alone."""


@contextmanager
def replacing(path: Path, mode: int = SHARED_MODE) -> Iterator[Path]:
    """Yield an empty file that takes the place of `path` at the end of a `with` statement without an error.

    Raises OSError with the next step.
    """
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(8)}.unfinished")
    with writing(path, unfinished):
        os.close(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode))
        try:
            if mode == PRIVATE_MODE:
                unfinished.chmod(mode)  # whatever mode the umask left
            yield unfinished
            unfinished.replace(path)
            sync_folder(path.parent)
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise


@contextmanager
def locked(lock: Path) -> Iterator[None]:
    """Keep other processes out of a `with` statement with the same lock file; a killed process lets go.

    A link of others under its name is not followed. Raises OSError.
    """
    with _opened(lock) as file:
        flock(file, LOCK_EX)
        yield


@contextmanager
def _opened(lock: Path) -> Iterator[int]:
    is_new = not lock.exists()
    file = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, PRIVATE_MODE)
    try:
        if is_new:
            os.fchmod(file, PRIVATE_MODE)  # whatever mode the umask left
        yield file
    finally:
        os.close(file)


_OF_THE_FILE = frozenset({errno.EACCES, errno.EPERM, errno.ELOOP, errno.EISDIR, errno.ENXIO})
"""Errors of opening a file that are over once another one takes its place."""

_LOOK_EVERY_S = 0.05


@contextmanager
def changing_state(path: Path, what: str, left: str, clock: Clock = SYSTEM_CLOCK, *, then: str = "") -> Iterator[None]:
    """Keep other commands from changing a file below the state directory while it is read and written again.

    The lock is a file beside it, since each change puts another file in its place. What was known before, such as a
    lease, may be over by the time that it is taken. Raises as `write_state`, and InputError if another command keeps
    the lock for `CHANGE_PATIENCE_S`.
    """
    lock = path.with_name(f".{path.name}.lock")
    with ExitStack() as held:
        with _told(path, what, left, then):
            make_folder(path.parent)
            try:
                file = held.enter_context(_opened(lock))
            except OSError as error:
                if error.errno not in _OF_THE_FILE or not os.path.lexists(lock):
                    raise
                raise InputError(
                    f"{lock}, which keeps other commands from changing {path.name} meanwhile, cannot be opened: "
                    f"{machine_reason(error)}. {left}; move it away, or give it to the user of this command{then}"
                ) from error
            is_ours = _locks_in_time(file, clock)
        if not is_ours:
            holders = lock_holders([lock], WHOLE)
            raise InputError(
                f"another command has been changing {path} for {CHANGE_PATIENCE_S:g} s: {named(holders)} has locked "
                f"{lock}. {left}; {way_on(holders)}{then}"
            )
        yield


def _locks_in_time(file: int, clock: Clock) -> bool:
    begun_s = clock.monotonic_s()
    while True:
        with suppress(BlockingIOError):
            flock(file, LOCK_EX | LOCK_NB)
            return True
        if clock.monotonic_s() - begun_s >= CHANGE_PATIENCE_S:
            return False
        clock.sleep(_LOOK_EVERY_S)


def write_state(path: Path, text: str, what: str, left: str, *, then: str = "", mode: int = SHARED_MODE) -> None:
    """Write a file below the state directory. Raises InputError with `what` it is, and how things are `left`."""
    with _told(path, what, left, then):
        make_folder(path.parent)
        replace_file(path, text.encode(), mode)


@contextmanager
def _told(path: Path, what: str, left: str, then: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        problem = f"{path}, {what}, could not be written: {machine_reason(error)}. {left}"
        raise InputError(f"{problem}; {_way(error, 'another directory (--state-dir)')}{then}") from error


_TO_MAKE = {
    errno.EACCES: "let this user write there",
    errno.EPERM: "let this user write there",
    errno.ENOSPC: "make room there",
    errno.EDQUOT: "make room there",
    errno.ENOENT: "make its directory",
}
_FILES = "let processes open more files (`ulimit -n`), or end others"


def _way(error: OSError, other: str) -> str:
    """Next step where a file cannot be written: at this place, or at an `other`."""
    if error.errno in {errno.EMFILE, errno.ENFILE}:
        return _FILES
    here = _TO_MAKE.get(error.errno or 0)
    return f"{here}, or choose {other}" if here else f"choose {other}"


@contextmanager
def writing(path: Path, unfinished: Path | None = None) -> Iterator[None]:
    """Name the file, and the next step as a note, in an OSError of a `with` statement that writes it.

    One about another file, or without a number of the system, is left as it is.
    """
    try:
        yield
    except FileExistsError:
        raise  # which is about the unfinished file
    except OSError as error:
        is_of_another = error.filename is not None and Path(error.filename) not in {path, unfinished}
        if is_of_another or error.errno is None:  # a library's own words, which the name would take the place of
            raise
        error.filename = str(path)  # the name that is known to who reads the message
        error.add_note(_way(error, "another place"))
        raise


def write_page(path: Path, page: str) -> None:
    """Write a page for people, also into a device or a link of theirs. Raises OSError with the next step."""
    with writing(path):
        path.write_text(page, encoding="utf-8")


def replace_file(path: Path, content: bytes, mode: int = SHARED_MODE) -> None:
    """Write a file; an existing one is replaced as a whole or not at all. Raises OSError with the next step."""
    with replacing(path, mode) as unfinished:
        unfinished.write_bytes(content)
