"""Machine code of functions, kept on disk: all that needs numba, which the extra `plan-at-scale` installs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from inspect import unwrap
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, ParamSpec, TypeVar, cast
from zipfile import Path as ZipPath

import numba
from numba.core import caching

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def kept(function: Callable[_Parameters, _Result], **options: bool) -> Callable[_Parameters, _Result]:
    """Compile a function at its first call, and keep the machine code on disk."""
    # numba's type stubs leave out some options, and all settings and caches.
    compiler: Any = numba.njit
    settings: Any = numba.config
    cached: Any = _ExpendableCache
    dispatcher: Any = compiler(_nrt=False, **options)(function)
    before = settings.CACHE_LOCATOR_CLASSES
    # numba reads this setting when a cache is made; other packages keep theirs.
    settings.CACHE_LOCATOR_CLASSES = _LOCATORS
    try:
        vars(dispatcher)["_cache"] = cached(function)  # numba itself takes no other cache than its own
    except RuntimeError:
        pass  # no writable cache directory, as in a container without a mount
    finally:
        settings.CACHE_LOCATOR_CLASSES = before
    return cast(Callable[_Parameters, _Result], dispatcher)


_UNREADABLE = (
    AttributeError, EOFError, ImportError, LookupError, MemoryError, OSError, TypeError, UnpicklingError, ValueError
)  # fmt: skip
"""Errors of a damaged pickle."""


class _ExpendableCache(caching.FunctionCache):
    """A cache that fails nothing: what cannot be read is compiled again, and what cannot be written is not kept.

    An update may lack a class that the index names, a power cut may leave half a file, and disks are full at times.
    """

    def load_overload(self, sig: object, target_context: object) -> object:
        """The machine code; None if it is not there."""
        cached: Any = super()
        try:
            return cached.load_overload(sig, target_context)
        except _UNREADABLE:
            with suppress(OSError):
                cached.flush()
            return None

    def save_overload(self, sig: object, data: object) -> None:
        """Keep machine code."""
        cached: Any = super()
        with suppress(OSError):
            cached.save_overload(sig, data)


def kept_in(function: Callable[..., Any]) -> Path | None:
    """Folder of the cached machine code of such a function; None if there is no cache."""
    try:
        dispatcher: Any = kept(unwrap(function))
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
