"""Even out the log directories of each broker."""

from __future__ import annotations

from dataclasses import replace

from kreassign.errors import InputError
from kreassign.planner.goals import DISK
from kreassign.planner.problem.problem import Band, Problem


def balance_disks(problem: Problem, *, between_brokers: bool = False) -> Problem:
    """Replicas change their log directory, and with `between_brokers` their broker, in one plan.

    Directories are brought within the band of disk, ±10 % if it has none.
    Raises InputError when nothing is known of log directories.
    """
    if problem.log_dirs is None:
        raise InputError("nothing is known of log directories; take a new snapshot, and run `kreassign load` again")
    rules = replace(problem.rules, between_log_dirs=True)
    if not between_brokers:
        rules = replace(rules, between_brokers=False, leaders=False)
    has_band = any(band.goal is DISK and band.tolerance is not None for band in problem.bands)
    others = tuple(band for band in problem.bands if band.goal is not DISK)
    return replace(problem, rules=rules, bands=problem.bands if has_band else (Band(DISK), *others))
