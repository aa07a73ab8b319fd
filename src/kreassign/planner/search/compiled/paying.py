"""When compiling pays. To compile the search takes ten seconds; a small cluster Python itself can search in less.

So after an installation Python runs the loops, until that has taken so many seconds in one plan, or in all of them
together; then they are compiled, once. Whatever follows, that costs at most twice what the better of both choices would
have (the problem of renting or buying skis). Time decides who runs the loops, never what they find.

The seconds are noted beside the machine code; where nothing can be written there, every plan counts from zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from kreassign.clock import processor_s
from kreassign.planner.search.compiled.compiler import in_python, kept_in, source_digest

MOST_REPLICAS = 7_000
"""Python would hardly get through more of them in its time."""
MOST_S = 4.5
MOST_IN_ALL_S = 10.0


@contextmanager
def as_pays(replicas: int, loop: Callable[..., Any]) -> Iterator[None]:
    """Search a plan of so many replicas within a `with` statement; `loop` is any of the compiled functions."""
    note = _note_of(loop)
    spent_s = _noted(note)
    if replicas > MOST_REPLICAS or spent_s >= MOST_IN_ALL_S:
        yield
        if spent_s < MOST_IN_ALL_S:
            _write(note, MOST_IN_ALL_S)
        return
    began_s = processor_s()
    until_s = began_s + min(MOST_S, MOST_IN_ALL_S - spent_s)
    with in_python(lambda: processor_s() < until_s):
        yield
    ended_s = processor_s()
    _write(note, MOST_IN_ALL_S if ended_s >= until_s else spent_s + ended_s - began_s)


@cache
def _note_of(loop: Callable[..., Any]) -> Path | None:
    folder = kept_in(loop)
    return None if folder is None else folder / f"in-python-{source_digest(loop)[:16]}"


def _noted(note: Path | None) -> float:
    try:
        return 0.0 if note is None else float(note.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 0.0


def _write(note: Path | None, seconds: float) -> None:
    if note is not None:
        with suppress(OSError):
            note.write_text(f"{seconds:.3f}", encoding="ascii")
