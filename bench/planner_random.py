"""Plans for random clusters of every kind: are they legal, and how far above the least bytes."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import quantiles

from bench.random_clusters import RandomCluster, random_cluster
from kreassign.errors import Infeasible
from kreassign.planner import solve
from kreassign.planner.check.evaluate import evaluate
from kreassign.planner.results import least_bytes

BUCKETS = (0.0, 0.01, 0.05, 0.10, 0.25, 0.50, 1.0)


@dataclass(frozen=True, slots=True)
class Judged:
    """Result for one cluster. `gap` is None where nothing has to be copied; `misses` counts brokers and bands."""

    cluster: RandomCluster
    violations: tuple[str, ...]
    gap: float | None
    misses: int
    seconds: float
    infeasible: str = ""


def judge(cluster: RandomCluster) -> Judged:
    """Plan for one cluster and check the plan independently."""
    started = time.perf_counter()
    try:
        assignment = solve(cluster.problem).assignment
    except Infeasible as error:
        return Judged(cluster, (), None, 0, time.perf_counter() - started, str(error))
    seconds = time.perf_counter() - started
    found = evaluate(cluster.problem, assignment)
    least = least_bytes(cluster.problem, found)
    gap = found.moved_bytes / least - 1 if least else None
    return Judged(cluster, found.violations, gap, len(found.misses()), seconds)


def measure(count: int = 300) -> None:
    """Plan for the clusters of seeds 0, 1, … and print the distribution of gaps."""
    judge(random_cluster(0))  # compiles
    found = [judge(random_cluster(seed)) for seed in range(count)]
    illegal = [one for one in found if one.violations]
    infeasible = [one for one in found if one.infeasible]
    print(f"{count} clusters, seeds 0 to {count - 1}: {len(illegal)} illegal plans, {len(infeasible)} infeasible")
    for one in illegal:
        print(f"  seed {one.cluster.seed} ({', '.join(one.cluster.traits)}): {one.violations[0]}")
    for one in infeasible:
        print(f"  seed {one.cluster.seed} ({', '.join(one.cluster.traits)}): {' '.join(one.infeasible.split())}")
    planned = [one for one in found if not one.infeasible]
    met = [one for one in planned if not one.misses]
    print(f"all bands met: {len(met)} of {len(planned)}")
    _gaps(
        "bytes above the bound, where all bands are met and something must be copied",
        [one.gap for one in met if one.gap is not None],
    )
    _traits(found)
    seconds = [one.seconds for one in found]
    print(f"\nseconds a plan: median {sorted(seconds)[len(seconds) // 2]:.3f}, most {max(seconds):.3f}")


def _gaps(what: str, gaps: list[float]) -> None:
    print(f"\n{what}: {len(gaps)} plans")
    if len(gaps) > 1:
        tenths = quantiles(gaps, n=10)
        print(f"median {tenths[4]:.1%}, 9 in 10 below {tenths[8]:.1%}, most {max(gaps):.1%}, least {min(gaps):.1%}")
    counts = Counter(sum(gap > edge + 1e-9 for edge in BUCKETS) for gap in gaps)
    for place, edge in enumerate((*BUCKETS, None)):
        bound = f"up to {edge:.0%}" if edge is not None else f"above {BUCKETS[-1]:.0%}"
        print(f"  {bound:>12} {counts[place]:4} {'#' * counts[place]}")


def _traits(found: Iterable[Judged]) -> None:
    kinds: dict[str, list[Judged]] = {}
    for one in found:
        for trait in one.cluster.traits or ("plain",):
            kinds.setdefault(trait, []).append(one)
    print("\nkind             clusters  illegal  bands missed")
    for trait, ones in sorted(kinds.items()):
        illegal, missed = sum(bool(one.violations) for one in ones), sum(one.misses > 0 for one in ones)
        print(f"{trait:16} {len(ones):8} {illegal:8} {missed:13}")
