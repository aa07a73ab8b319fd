"""Sample of many mutants, and the estimate for all from the killed ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import sqrt

from tests.mutants.generated import Generated

Z_95 = 1.959964


def sample(mutants: Iterable[Generated], size: int, seed: int) -> list[Generated]:
    """`size` of them, each as likely as any other; the first of a sample are a sample too.

    Whether a mutant is drawn before another depends on the seed and on these two only, so that a change of the code
    changes little of the sample.
    """
    return sorted(mutants, key=lambda one: (one.rank(seed), one.name))[:size]


def wilson(killed: int, tried: int) -> tuple[float, float]:
    """Interval of 95 % for the share of all, after `killed` of `tried` of a sample (Wilson 1927)."""
    if not tried:
        return 0.0, 1.0
    share, z2 = killed / tried, Z_95 * Z_95
    middle = share + z2 / (2 * tried)
    half = Z_95 * sqrt(share * (1 - share) / tried + z2 / (4 * tried * tried))
    return (middle - half) / (1 + z2 / tried), (middle + half) / (1 + z2 / tried)


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts of a package's mutants: all, tried, equivalent, killed."""

    package: str
    modules: int
    mutants: int
    tried: int
    equivalent: int
    killed: int

    @property
    def share(self) -> float:
        """Killed of those that could be."""
        return self.killed / max(self.tried - self.equivalent, 1)

    def __str__(self) -> str:
        low, high = wilson(self.killed, self.tried - self.equivalent)
        return (
            f"| `{self.package}` | {self.modules} | {self.mutants:,} | {self.tried} | {self.equivalent} "
            f"| {self.killed} | {self.share:.1%} | {low:.1%} to {high:.1%} |".replace("%", " %")
        )
