"""How a run stands with the lease of its cluster. Values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class LeasePolicy(StrEnum):
    """Whether a run needs the lease."""

    AUTO = "auto"  # where the cluster can keep one without a side effect; never while another run holds it
    REQUIRE = "require"  # without it nothing is changed
    OFF = "off"  # nobody is asked


@dataclass(frozen=True, slots=True)
class Held:
    """The run holds the lease, in this generation of the group."""

    generation: int


@dataclass(frozen=True, slots=True)
class Taken:
    """The run does not hold the lease, and changes nothing: another one has it, or nobody can tell."""

    reason: str


@dataclass(frozen=True, slots=True)
class Forgone:
    """The run does without a lease. `is_usual`: there is nothing to warn of."""

    reason: str
    is_usual: bool = False


LeaseStatus = Held | Taken | Forgone
