"""How long a plan will take, from its bytes and the rate that each broker may send and receive."""

from __future__ import annotations

import numpy as np

from kreassign.errors import InputError
from kreassign.model.plan_facts import Prediction
from kreassign.planner.check.changes import changes_of
from kreassign.planner.problem.arrays import FloatArray
from kreassign.planner.problem.partitions import Assignment
from kreassign.planner.problem.problem import Problem


def predict(problem: Problem, assignment: Assignment, rate_bytes_per_s: float) -> Prediction:
    """The time that the busiest broker needs, or the longest single copy.

    A copy of s bytes of a partition that is written at w bytes/s is done after s/(r-w) seconds at a rate of r, because
    it has to catch up; it is never done when r <= w. A new replica copies from the present leader, so it takes that
    long of its own broker's incoming rate and of the leader's outgoing one. The rate is that of the throttle, or of
    the hardware.
    """
    if not rate_bytes_per_s > 0:
        raise InputError(f"a rate of {rate_bytes_per_s} bytes/s copies nothing; give one above 0")
    seconds = copy_seconds(problem, assignment, rate_bytes_per_s)
    changes, now, count = changes_of(problem, assignment), problem.partitions, len(problem.brokers)
    added = changes.added
    into = np.bincount(assignment.replicas[added], seconds, count)
    leaders = now.replicas[now.offsets[:-1]][changes.owners[added]]
    out = np.bincount(leaders, seconds, count)
    longest = float(seconds.max(initial=0.0))
    return Prediction(rate_bytes_per_s, max(float(into.max()), float(out.max()), longest), longest)


def copy_seconds(problem: Problem, assignment: Assignment, rate_bytes_per_s: float) -> FloatArray:
    """How long each added replica takes alone, in the order of the assignment; infinite where it never catches up."""
    changes, now = changes_of(problem, assignment), problem.partitions
    owners = changes.owners[changes.added]
    left = rate_bytes_per_s - now.write_bytes_per_s[owners]
    seconds = np.divide(now.size_bytes[owners], left, out=np.full(len(owners), np.inf), where=left > 0)
    return np.where(now.size_bytes[owners] == 0, 0.0, seconds)
