"""What goes wrong with a request, as an answer: a document of RFC 9457 for programs, a page for people."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kreassign.errors import ExecutionError, InputError, KreassignError


class HttpError(Exception):
    """A request that is not answered as it was meant."""

    def __init__(self, status: int, title: str, detail: str) -> None:
        super().__init__(detail)
        self.status, self.title, self.detail = status, title, detail


@contextmanager
def not_found() -> Iterator[None]:
    """What an address names is not there: an InputError within the block becomes 404."""
    try:
        yield
    except InputError as error:
        raise HttpError(404, "not found", str(error)) from error


def problem_of(error: KreassignError | OSError) -> HttpError:
    """The answer to an error of an operation."""
    if isinstance(error, ExecutionError):
        return HttpError(409, "the run cannot do that now", str(error))
    if isinstance(error, InputError):
        return HttpError(422, "that cannot be done", str(error))
    if isinstance(error, KreassignError):
        return HttpError(502, "an operation failed", str(error))
    return HttpError(500, "a file could not be read or written", error.strerror or type(error).__name__)
