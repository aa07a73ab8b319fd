"""Start a command, wait for it, tell what it took: `python -I -S bench/timed.py FILE COMMAND…` writes JSON to FILE.

A process of its own, and a small one: until the command's program is loaded its memory is that of whoever started
it, and the kernel counts that peak too.
"""

from __future__ import annotations

import json
import os
import sys
import time


def main() -> None:
    """Time the command named by the arguments and end with its exit code."""
    started = time.perf_counter()
    process = os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ)
    _, status, usage = os.wait4(process, 0)
    taken = {
        "wall_s": time.perf_counter() - started,
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "peak_mib": usage.ru_maxrss / 1024,
    }
    with open(sys.argv[1], "w", encoding="ascii") as file:  # noqa: PTH123 - pathlib would double this process
        json.dump(taken, file)
    sys.exit(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main()
