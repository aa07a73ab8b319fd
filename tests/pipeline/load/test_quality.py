from __future__ import annotations

from kreassign.pipeline.load.quality import GOOD, Judged, quality_lines, quality_rows
from kreassign.pipeline.load.rules import Treatment

BEGUN_MS = 1_762_250_400_000


def test_rows_are_told_load_after_load_and_the_reasons_of_the_last_one() -> None:
    first = quality_rows(BEGUN_MS, [Judged("samples", GOOD, None, 12), Judged("samples", Treatment.LATE, "twice", 0)])
    odd = [Judged("samples", Treatment.QUARANTINED, why, count) for why, count in (("too large", 1_000), ("late", 2))]
    second = quality_rows(BEGUN_MS + 60_000, [*odd, Judged("samples", GOOD, None, 0)])
    assert list(quality_lines([*second, *first])) == [
        "load (UTC)           table                good  quarantined         late      counted      skipped",
        "2025-11-04 10:00:00  samples                12            0            0            0            0",
        "2025-11-04 10:01:00  samples                 0        1,002            0            0            0",
        "samples: 2 quarantined: late",
        "samples: 1,000 quarantined: too large",
    ]


def test_only_the_last_ten_loads_are_shown() -> None:
    loads = [row for number in range(12) for row in quality_rows(BEGUN_MS + number, [Judged("samples", GOOD, None, 1)])]
    assert len(list(quality_lines(loads))) == 1 + 10
