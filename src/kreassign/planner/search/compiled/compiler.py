"""Compile inner loops when it pays, if numba is installed. No other module uses the compiler.

Python can run the same functions itself (`in_python`): some hundred times slower, but at once, and with bit-identical
results, since both compute in the same order with the same number types. `as_pays` decides.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache, wraps
from pathlib import Path
from types import FunctionType
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np

from kreassign.clock import processor_s
from kreassign.errors import missing_extra
from kreassign.model.text import counted

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")

_machine_code: Any = None
with suppress(ImportError):  # without numba Python runs all loops
    from kreassign.planner.search.compiled import machine_code

    _machine_code = machine_code


def compiled(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Compile a function of numbers and arrays to machine code at its first call; cache the result on disk.

    The cache is renewed when any file in the folder of the function changes, so functions that call each other may be
    in several files of one folder. The function may not create or return arrays, or views of them: reference counting
    took two thirds of the time of the search, and a third of that of the compiler.
    """
    if _machine_code is None:
        return function
    fast = cast(Callable[_Parameters, _Result], _machine_code.kept(function))

    @wraps(function)
    def either(*args: _Parameters.args, **named: _Parameters.kwargs) -> _Result:
        is_for_python = _IN_PYTHON.get()
        return (_interpreted(function) if is_for_python and is_for_python() else fast)(*args, **named)

    return either


def compiled_part(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Compile a function that only compiled ones call, without the entry from Python, which is most of the work."""
    if _machine_code is None:
        return function
    part = _machine_code.kept(function, no_cpython_wrapper=True, no_cfunc_wrapper=True)
    return cast(Callable[_Parameters, _Result], part)


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


# When compiling pays: it takes ten seconds, in which Python itself can search a small cluster.
#
# So after an installation Python runs the loops, until that has taken so many seconds in one plan, or in all plans
# together; then they are compiled, once. In any case the cost is at most twice that of the better choice (the ski
# rental problem). Time decides who runs the loops, never their result.
#
# Without numba Python runs them to the end, and plans that would take minutes that way are refused.
#
# The seconds are noted beside the machine code; if nothing can be written there, every plan counts from zero.

MOST_REPLICAS = 7_000
"""Larger plans would hardly finish within Python's time."""
MOST_S = 4.5
MOST_IN_ALL_S = 10.0
MOST_WITHOUT_COMPILER = 60_000
"""Replicas of the largest plan without numba."""


@contextmanager
def as_pays(replicas: int, loop: Callable[..., Any]) -> Iterator[None]:
    """Search a plan of this many replicas in this context; `loop` is any of the compiled functions.

    Raises KreassignError, which names the extra, for a plan that needs numba where it is missing.
    """
    if _machine_code is None:
        if replicas > MOST_WITHOUT_COMPILER:
            raise missing_extra(
                f"a plan for {counted(replicas, 'replica')} needs numba, which is not installed", "plan-at-scale"
            )
        with in_python():
            yield
        return
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
    folder = _machine_code.kept_in(loop)
    return None if folder is None else folder / f"in-python-{_machine_code.source_digest(loop)[:16]}"


def _noted_s(note: Path | None) -> float:
    try:
        return 0.0 if note is None else float(note.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 0.0


def _write_note(note: Path | None, seconds: float) -> None:
    if note is not None:
        with suppress(OSError):
            note.write_text(f"{seconds:.3f}", encoding="ascii")
