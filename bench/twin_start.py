"""Time from calling `kreassign twin start` until the twin answers a client, and its memory then."""

from __future__ import annotations

from bench.process import Spread
from bench.served import served

RUNS = 5
CASES = (
    ("three brokers, nothing in them", ()),
    *(
        (f"`{name}`", ("--scenario", name))
        for name in ("skewed", "decommission", "scale-out", "full-disk", "rack-down")
    ),
)


def measure() -> None:
    """Print the table."""
    print(f"{RUNS} runs; median (least to most)\n")
    print("| cluster | s until it answers | CPU s of it | MiB |")
    print("|---|---|---|---|")
    for name, options in CASES:
        seconds, processor, memory = [], [], []
        for _ in range(RUNS):
            with served(*options) as twin:
                seconds.append(twin.start_s)
                processor.append(twin.cpu_s)
                memory.append(twin.memory_mib)
        print(f"| {name} | {Spread(tuple(seconds))} | {Spread(tuple(processor))} | {max(memory):.0f} |", flush=True)
