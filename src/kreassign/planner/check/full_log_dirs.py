"""Log directories that are full whatever a plan between brokers does: told, so that "nothing to do" misleads nobody."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kreassign.planner.arrays import NOWHERE
from kreassign.planner.problem.cluster import Assignment
from kreassign.planner.problem.problem import Problem

FULL = 0.90
"""As for `kreassign doctor`."""

SHOWN = 20


def full_log_dirs(problem: Problem, assignment: Assignment) -> tuple[str, ...]:
    """A sentence for each log directory that stays full under a plan that changes none, the fullest first.

    Copies that come from elsewhere do not count: Kafka chooses their directory. Empty where directories, or their
    sizes, are not known, and where the plan may change them: then they are among its goals.
    """
    if problem.log_dirs is None or problem.rules.between_log_dirs:
        return ()
    found = list(_sentences(problem, assignment))
    more = len(found) - SHOWN
    return tuple(found[:SHOWN]) + ((f"and {more} full log directories more",) if more > 0 else ())


def _sentences(problem: Problem, assignment: Assignment) -> Iterator[str]:
    dirs = problem.log_dirs
    assert dirs is not None
    sizes = problem.partitions.size_bytes[assignment.owners]
    placed = assignment.log_dirs != NOWHERE
    held = np.bincount(assignment.log_dirs[placed], sizes[placed], minlength=len(dirs))
    known = np.isfinite(dirs.capacity_bytes) & (dirs.capacity_bytes > 0) & ~dirs.must_empty
    shares = np.divide(held, dirs.capacity_bytes, out=np.zeros(len(dirs)), where=known)
    for place in np.argsort(-shares, kind="stable").tolist():
        if shares[place] < FULL:
            return
        others = known & (dirs.brokers == dirs.brokers[place]) & dirs.may_receive
        others[place] = False
        name = f"log directory {dirs.paths[place]} of broker {problem.brokers.ids[dirs.brokers[place]]}"
        yield f"{name} holds {shares[place]:.0%} of what it may, {_remedy(float(shares[others].min(initial=FULL)))}"


def _remedy(emptiest: float) -> str:
    if emptiest < FULL:
        return f"another one of it {emptiest:.0%}: `kreassign plan disks` moves copies within brokers"
    return "and no other one of it has room: it needs more brokers (`kreassign plan add-brokers`) or shorter retention"
