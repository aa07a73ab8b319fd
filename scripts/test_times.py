#!/usr/bin/env python3
"""Times of the tests: `pytest … --junitxml=times.xml`, then `python scripts/test_times.py times.xml …`.

Prints the files whose tests took longest, with their set-up: seconds, number of tests, file. Tests that ran side by
side count each for itself, so that the sum is more than the time on the clock.
"""

from __future__ import annotations

import sys
from collections import Counter
from xml.etree import ElementTree as ET

LINES = 30


def main() -> None:
    """Print the table."""
    seconds: Counter[str] = Counter()
    tests: Counter[str] = Counter()
    for path in sys.argv[1:]:
        for case in ET.parse(path).iter("testcase"):  # noqa: S314 - a file of our own
            file = case.get("classname", "").replace(".", "/") + ".py"
            seconds[file] += round(float(case.get("time", "0")), 3)
            tests[file] += 1
    sys.stdout.write(f"{sum(seconds.values()):8.0f} s {sum(tests.values()):6} tests  in all\n")
    for file, time_s in seconds.most_common(LINES):
        sys.stdout.write(f"{time_s:8.1f} s {tests[file]:6} tests  {file}\n")


if __name__ == "__main__":
    main()
