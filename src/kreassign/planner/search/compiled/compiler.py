"""Compile inner loops when it pays. No other module uses the compiler.

Python can run the same functions itself (`in_python`): some hundred times slower, but at once, and with bit-identical
results, since both compute in the same order with the same number types. `as_pays` decides.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache, wraps
from inspect import unwrap
from pathlib import Path
from types import FunctionType
from typing import Any, ParamSpec, TypeVar, cast
from zipfile import Path as ZipPath

import numba
import numpy as np
from numba.core import caching

from kreassign.clock import processor_s

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def compiled(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Compile a function of numbers and arrays to machine code at its first call; cache the result on disk.

    The cache is renewed when any file in the folder of the function changes, so functions that call each other may be
    in several files of one folder. The function may not create or return arrays, or views of them: reference counting
    took two thirds of the time of the search, and a third of that of the compiler.
    """
    machine_code = _kept(function)

    @wraps(function)
    def either(*args: _Parameters.args, **named: _Parameters.kwargs) -> _Result:
        is_for_python = _IN_PYTHON.get()
        return (_interpreted(function) if is_for_python and is_for_python() else machine_code)(*args, **named)

    return either


def compiled_part(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Compile a function that only compiled ones call, without the entry from Python, which is most of the work."""
    return _kept(function, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def always() -> bool:
    """True: the condition of `in_python` that never ends it."""
    return True


@contextmanager
def in_python(while_true: Callable[[], bool] = always) -> Iterator[None]:
    """Let Python run loops that begin in this context while `while_true()` holds; others are compiled."""
    token = _IN_PYTHON.set(while_true)
    try:
        with np.errstate(over="ignore"):  # the number generator relies on overflow, which machine code does not report
            yield
    finally:
        _IN_PYTHON.reset(token)


@cache
def _interpreted(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """The function as Python runs it, with all functions it calls."""
    source = cast(FunctionType, function)
    own = FunctionType(source.__code__, _scope(source.__module__), source.__name__, source.__defaults__)
    return cast(Callable[_Parameters, _Result], own)


def _scope(module: str) -> dict[str, Any]:
    """Names of a module, with compiled parts replaced by their Python functions."""
    if module not in _SCOPES:
        _SCOPES[module] = names = dict(vars(sys.modules[module]))
        for name, value in tuple(names.items()):
            if (part := getattr(value, "py_func", None)) is not None:
                names[name] = _interpreted(part)
    return _SCOPES[module]


_IN_PYTHON: ContextVar[Callable[[], bool] | None] = ContextVar("in_python", default=None)
_SCOPES: dict[str, dict[str, Any]] = {}


def _kept(function: Callable[_Parameters, _Result], **options: bool) -> Callable[_Parameters, _Result]:
    compiler: Any = numba.njit  # numba's type stubs leave out some options, and all settings
    settings: Any = numba.config
    before = settings.CACHE_LOCATOR_CLASSES
    # numba reads this setting when a function is decorated; other packages keep theirs.
    settings.CACHE_LOCATOR_CLASSES = _LOCATORS
    try:
        return cast(Callable[_Parameters, _Result], compiler(cache=True, _nrt=False, **options)(function))
    except RuntimeError:  # no writable cache directory, as in a container without a mount
        return cast(Callable[_Parameters, _Result], compiler(_nrt=False, **options)(function))
    finally:
        settings.CACHE_LOCATOR_CLASSES = before


def kept_in(function: Callable[..., Any]) -> Path | None:
    """Folder of the cached machine code of such a function; None if there is no cache."""
    try:
        dispatcher: Any = _kept(unwrap(function))
        place = dispatcher.stats.cache_path
    except (RuntimeError, AttributeError):
        return None
    return None if place is None else Path(place)


def source_digest(function: Callable[..., Any]) -> str:
    """Digest of a function's sources: changes with any file of its folder."""
    return _digest_beside(unwrap(function).__code__.co_filename)


@cache
def _digest_beside(file: str) -> str:
    """Digest of all sources in the folder of a file, which may be in an archive: `package.zip/package/x.py`."""
    place = Path(file)
    archive = next((parent for parent in place.parents if parent.is_file()), None)
    folder: Path | ZipPath = place.parent
    if archive is not None:
        within = place.parent.relative_to(archive).as_posix()
        folder = ZipPath(archive, "" if within == "." else f"{within}/")
    sources = sorted((source for source in folder.iterdir() if source.name.endswith(".py")), key=lambda one: one.name)
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()


class _OfFolder:
    """Stamp compiled code with all sources of a folder; numba's own stamp misses changes in called functions."""

    _py_file: str

    def get_source_stamp(self) -> str:
        return _digest_beside(self._py_file)


class UserProvided(_OfFolder, caching.UserProvidedCacheLocator):
    """Cache in NUMBA_CACHE_DIR."""


class InTree(_OfFolder, caching.InTreeCacheLocator):
    """Cache beside the source."""


class UserWide(_OfFolder, caching.UserWideCacheLocator):
    """Cache in the user's cache directory."""


class InZip(caching.ZipCacheLocator):
    """Cache in the user's cache directory, for a package that Spark sent to its executors as an archive."""

    _zip_path: str
    _internal_path: str

    def get_source_stamp(self) -> str:
        """Digest of all sources of the folder in the archive."""
        return _digest_beside(f"{self._zip_path}/{self._internal_path}")


_LOCATORS = ",".join(f"{__name__}.{one.__name__}" for one in (UserProvided, InTree, UserWide, InZip))  # numba's order


# When compiling pays: it takes ten seconds, in which Python itself can search a small cluster.
#
# So after an installation Python runs the loops, until that has taken so many seconds in one plan, or in all plans
# together; then they are compiled, once. In any case the cost is at most twice that of the better choice (the ski
# rental problem). Time decides who runs the loops, never their result.
#
# The seconds are noted beside the machine code; if nothing can be written there, every plan counts from zero.

MOST_REPLICAS = 7_000
"""Larger plans would hardly finish within Python's time."""
MOST_S = 4.5
MOST_IN_ALL_S = 10.0


@contextmanager
def as_pays(replicas: int, loop: Callable[..., Any]) -> Iterator[None]:
    """Search a plan of this many replicas in this context; `loop` is any of the compiled functions."""
    note = _note_of(loop)
    spent_s = _noted_s(note)
    if replicas > MOST_REPLICAS or spent_s >= MOST_IN_ALL_S:
        yield
        if spent_s < MOST_IN_ALL_S:
            _write_note(note, MOST_IN_ALL_S)
        return
    began_s = processor_s()
    until_s = began_s + min(MOST_S, MOST_IN_ALL_S - spent_s)
    with in_python(lambda: processor_s() < until_s):
        yield
    ended_s = processor_s()
    _write_note(note, MOST_IN_ALL_S if ended_s >= until_s else spent_s + ended_s - began_s)


@cache
def _note_of(loop: Callable[..., Any]) -> Path | None:
    folder = kept_in(loop)
    return None if folder is None else folder / f"in-python-{source_digest(loop)[:16]}"


def _noted_s(note: Path | None) -> float:
    try:
        return 0.0 if note is None else float(note.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 0.0


def _write_note(note: Path | None, seconds: float) -> None:
    if note is not None:
        with suppress(OSError):
            note.write_text(f"{seconds:.3f}", encoding="ascii")
