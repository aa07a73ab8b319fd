"""Every kind of input that is fuzzed."""

from __future__ import annotations

from collections.abc import Mapping

from tests.fuzz.bombs import BOMBS
from tests.fuzz.files import FILES
from tests.fuzz.frames import FRAMES
from tests.fuzz.journals import JOURNALS
from tests.fuzz.shown import SHOWN
from tests.fuzz.tables import PARQUET
from tests.fuzz.target import Target

TARGETS: Mapping[str, Target] = {one.name: one for one in (*FRAMES, *FILES, *JOURNALS, *PARQUET, *BOMBS, *SHOWN)}
