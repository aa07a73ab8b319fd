"""Compilation of inner loops: the only place that knows the compiler."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast
from zipfile import Path as ZipPath

import numba
from numba.core import caching

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def compiled(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Compile a function of numbers and arrays to machine code at its first call; the result is kept on disk.

    What is kept is renewed when any file in the folder of the function changes, so that functions which call each
    other may stand in several files of one folder.
    """
    return _kept(function)


def compiled_part(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Compile a function that only compiled ones call: without the entry from Python, which is most of the work."""
    return _kept(function, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def _kept(function: Callable[_Parameters, _Result], **options: bool) -> Callable[_Parameters, _Result]:
    compiler: Any = numba.njit  # the types that numba ships leave out some options, and all settings
    settings: Any = numba.config
    before = settings.CACHE_LOCATOR_CLASSES
    # The setting of NUMBA_CACHE_LOCATOR_CLASSES is read when a function is decorated; other packages keep theirs.
    settings.CACHE_LOCATOR_CLASSES = _LOCATORS
    try:
        return cast(Callable[_Parameters, _Result], compiler(cache=True, **options)(function))
    finally:
        settings.CACHE_LOCATOR_CLASSES = before


@cache
def _digest(folder: Path) -> str:
    return _digest_of(folder)


@cache
def _digest_in_zip(archive: str, folder: str) -> str:
    return _digest_of(ZipPath(archive, f"{folder}/"))


def _digest_of(folder: Path | ZipPath) -> str:
    sources = sorted((source for source in folder.iterdir() if source.name.endswith(".py")), key=lambda one: one.name)
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()


class _OfFolder:
    """Stamps compiled code with all sources of a folder; numba's own stamp misses changes in functions called."""

    _py_file: str

    def get_source_stamp(self) -> str:
        return _digest(Path(self._py_file).parent)


class UserProvided(_OfFolder, caching.UserProvidedCacheLocator):
    """Where NUMBA_CACHE_DIR says."""


class InTree(_OfFolder, caching.InTreeCacheLocator):
    """Beside the source."""


class UserWide(_OfFolder, caching.UserWideCacheLocator):
    """In the user's cache."""


class InZip(caching.ZipCacheLocator):
    """In the user's cache too, for a package that Spark sent to its executors as an archive."""

    _zip_path: str
    _internal_path: str

    def get_source_stamp(self) -> str:
        """All sources of the folder in the archive."""
        return _digest_in_zip(self._zip_path, self._internal_path.rpartition("/")[0])


_LOCATORS = ",".join(f"{__name__}.{one.__name__}" for one in (UserProvided, InTree, UserWide, InZip))  # numba's order
