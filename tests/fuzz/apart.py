"""`python -m tests.fuzz.apart TARGET FIRST COUNT`: examples of a target in this process; the tally is the last line."""

from __future__ import annotations

import os
import sys

from tests.fuzz.campaign import told, tried
from tests.fuzz.targets import TARGETS

if __name__ == "__main__":
    os.environ["KREASSIGN_CONFIG"] = os.devnull
    name, first, count = sys.argv[1:]
    sys.stdout.write(f"{told(tried(TARGETS[name], int(first), int(count)))}\n")
