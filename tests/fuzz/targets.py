"""Every kind of input that is fuzzed, and its process."""

from __future__ import annotations

import os
from collections.abc import Mapping

from tests.campaigns.campaign import BrokenError, Tally, apart
from tests.fuzz.bombs import BOMBS
from tests.fuzz.files import FILES
from tests.fuzz.frames import FRAMES
from tests.fuzz.journals import JOURNALS
from tests.fuzz.shown import SHOWN
from tests.fuzz.tables import PARQUET
from tests.fuzz.target import Target, try_examples

TARGETS: Mapping[str, Target] = {each.name: each for each in (*FRAMES, *FILES, *JOURNALS, *PARQUET, *BOMBS, *SHOWN)}
MEMORY_BYTES = 6 << 30
"""What the process of a target may map: threads of pyarrow and numpy reserve much of it without using it."""
START_S, SLOWEST_S = 300.0, 60.0


def try_apart(name: str, first: int, count: int) -> Tally:
    """Try examples of a target in a process of its own, which must come to its end and whose memory is bounded."""
    timeout_s = START_S + count * SLOWEST_S
    try:
        return apart(_try_by_name, name, first, count, memory_bytes=MEMORY_BYTES, timeout_s=timeout_s)
    except BrokenError as error:
        return Tally(name, seconds=[0.0] * count, broken=[str(error)], failed=1)


def _try_by_name(name: str, first: int, count: int) -> Tally:
    os.environ["KREASSIGN_CONFIG"] = os.devnull
    return try_examples(TARGETS[name], range(first, first + count))
