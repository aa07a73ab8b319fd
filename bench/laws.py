"""The law of the least change over thousands of random clusters: a replica that may stay stays."""

from __future__ import annotations

from collections import Counter

from bench.forced_tasks import verdict

SHOWN = 10


def measure(count: int = 3_000) -> None:
    """Plan for the clusters of seeds 0, 1, … twice each, without and with tight limits, and judge each plan."""
    tasks: Counter[str] = Counter()
    more: Counter[str] = Counter()
    broken = refused = 0
    for seed in range(count):
        found = verdict(seed)
        tasks[found.task or "no plan keeps the rules"] += 1
        more[found.more] += bool(found.more)
        refused += found.refused
        broken += len(found.wrong)
        if found.wrong and broken <= SHOWN:
            print(f"seed {seed} ({found.task}): {'; '.join(found.wrong)}", flush=True)
    print(f"{count:,} clusters, {broken} laws broken")
    print(", ".join(f"{one} {number}" for one, number in sorted(tasks.items())))
    limits = ", ".join(f"{one} {number}" for one, number in sorted(more.items()) if number)
    print(f"with tight limits {refused} have no plan, {more.total()} copy more and say why ({limits})")
