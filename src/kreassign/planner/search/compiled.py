"""Compilation of inner loops: the only place that knows the compiler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import numba

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def compiled(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Compile a function of numbers and arrays to machine code at its first call; the result is kept on disk.

    The kept code is renewed when the file of the function changes, not when that of a function which it calls does:
    functions that call each other belong into one file.
    """
    return cast(Callable[_Parameters, _Result], numba.njit(cache=True)(function))


def compiled_part(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Compile a function that only compiled ones call: without the entry from Python, which is most of the work."""
    # The types that numba ships leave these two options out.
    without_entries: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return cast(Callable[_Parameters, _Result], numba.njit(cache=True, **without_entries)(function))
