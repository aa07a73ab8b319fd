"""What an assignment changes, as arrays, and how long copying that takes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kreassign.errors import InputError
from kreassign.model.plan_facts import Prediction
from kreassign.planner.arrays import NOWHERE, BoolArray, FloatArray, IntArray, pairs
from kreassign.planner.problem.cluster import Assignment
from kreassign.planner.problem.problem import Problem


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """Per partition (P), per replica of the assignment (A) or per present replica (S).

    `owners` (A) is the partition of each replica, `present` (A) its place among the present replicas, NOWHERE where its
    partition has none on that broker: such a replica is `added` and will be copied. `changes_dir` (A) marks those that
    stay on their broker but go to another log directory, `removed` (S) those that go away. `leader_changes` (P) and
    `differs` (P: list, order or directory) speak of partitions.
    """

    owners: IntArray
    present: IntArray
    changes_dir: BoolArray
    removed: BoolArray
    leader_changes: BoolArray
    differs: BoolArray

    @property
    def added(self) -> BoolArray:
        """Replicas that are copied to their broker, shape (A,)."""
        result: BoolArray = self.present == NOWHERE
        return result


def changes_of(problem: Problem, assignment: Assignment) -> Changes:
    """Compare an assignment with the present replicas.

    Raises InputError when the assignment is of other partitions, leaves one without replicas, or names a broker or
    log directory that is not there.
    """
    _check(problem, assignment)
    now, owners = problem.partitions, assignment.owners
    present = _places(problem, owners, assignment.replicas)
    stays = present != NOWHERE
    other_dir = (assignment.log_dirs != NOWHERE) & (assignment.log_dirs != now.log_dirs[present])
    changes_dir = stays & other_dir
    removed = np.ones(len(now.replicas), bool)
    removed[present[stays]] = False
    place = np.arange(len(owners)) - assignment.offsets[owners]
    moved = ~stays | changes_dir | (present - now.offsets[owners] != place)
    differs = np.diff(assignment.offsets) != now.factors
    differs[owners[moved]] = True
    leader_changes = assignment.replicas[assignment.offsets[:-1]] != now.replicas[now.offsets[:-1]]
    return Changes(owners, present, changes_dir, removed, leader_changes, differs)


def _places(problem: Problem, owners: IntArray, replicas: IntArray) -> IntArray:
    """Where each (partition, broker) stands among the present replicas."""
    brokers, now = len(problem.brokers), problem.partitions
    known = pairs(now.owners, now.replicas, brokers)
    order = np.argsort(known)
    wanted = pairs(owners, replicas, brokers)
    found = np.minimum(np.searchsorted(known, wanted, sorter=order), len(known) - 1)
    places = order[found]
    return np.where(known[places] == wanted, places, NOWHERE).astype(np.int64)


def _check(problem: Problem, assignment: Assignment) -> None:
    lengths = np.diff(assignment.offsets)
    if len(lengths) != len(problem.partitions):
        raise InputError(f"an assignment of {len(lengths)} partitions is not one of these {len(problem.partitions)}")
    if (lengths < 1).any():
        name = problem.partitions.name(int(np.argmax(lengths < 1)))
        raise InputError(f"the assignment leaves partition {name} without replicas")
    for what, places, known in (
        ("broker", assignment.replicas, len(problem.brokers)),
        ("log directory", assignment.log_dirs, len(problem.log_dirs or ())),
    ):
        lowest = 0 if what == "broker" else NOWHERE
        if len(places) != assignment.offsets[-1] or (places < lowest).any() or (places >= known).any():
            raise InputError(f"the assignment names a {what} that is not there, or not one per replica")


def predict(problem: Problem, assignment: Assignment, rate_bytes_per_s: float) -> Prediction:
    """The time that the busiest broker needs, or the longest single copy.

    A copy of s bytes of a partition that is written at w bytes/s is done after s/(r-w) seconds at a rate of r, because
    it has to catch up; it is never done when r <= w. A new replica copies from the present leader, so it takes that
    long of its own broker's incoming rate and of the leader's outgoing one. The rate is that of the throttle, or of
    the hardware.
    """
    if not rate_bytes_per_s > 0:
        raise InputError(f"a rate of {rate_bytes_per_s} bytes/s copies nothing; specify one above 0")
    seconds = copy_seconds(problem, assignment, rate_bytes_per_s)
    changes, now, count = changes_of(problem, assignment), problem.partitions, len(problem.brokers)
    added = changes.added
    into = np.bincount(assignment.replicas[added], seconds, count)
    leaders = now.replicas[now.offsets[:-1]][changes.owners[added]]
    out = np.bincount(leaders, seconds, count)
    longest = float(seconds.max(initial=0.0))
    return Prediction(rate_bytes_per_s, max(float(into.max()), float(out.max())), longest)


def copy_seconds(problem: Problem, assignment: Assignment, rate_bytes_per_s: float) -> FloatArray:
    """How long each added replica takes alone, in the order of the assignment; infinite where it never catches up."""
    changes, now = changes_of(problem, assignment), problem.partitions
    owners = changes.owners[changes.added]
    left = rate_bytes_per_s - now.write_bytes_per_s[owners]
    seconds = np.divide(now.size_bytes[owners], left, out=np.full(len(owners), np.inf), where=left > 0)
    return np.where(now.size_bytes[owners] == 0, 0.0, seconds)
