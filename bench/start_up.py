"""Start-up time of the command line when there is nothing to do: whole processes, best of several."""

from __future__ import annotations

from bench.process import KREASSIGN, run

COMMANDS = (("--version",), ("--help",), ("plan", "--help"), ("status", "--help"), ("run", "--help"))
TIMES = 15


def measure() -> None:
    """Start each command several times; the first starts, which compile bytecode, do not count."""
    print("| command | wall s, least | wall s, median | CPU s, least | MiB |")
    print("|---|---|---|---|---|")
    for words in COMMANDS:
        command = [*KREASSIGN, *words]
        run(command)
        taken = [run(command) for _ in range(TIMES)]
        wall = sorted(one.wall_s for one in taken)
        cpu, peak = min(one.cpu_s for one in taken), min(one.peak_mib for one in taken)
        line = f"`kreassign {' '.join(words)}`"
        print(f"| {line} | {wall[0]:.3f} | {wall[TIMES // 2]:.3f} | {cpu:.3f} | {peak:.0f} |", flush=True)
