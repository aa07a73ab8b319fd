"""Even out the log directories of each broker."""

from __future__ import annotations

from dataclasses import replace

from kreassign.errors import InputError
from kreassign.planner.problem import Problem


def balance_disks(problem: Problem, *, between_brokers: bool = False) -> Problem:
    """Replicas change their log directory, and with `between_brokers` their broker, in one plan.

    Raises InputError when nothing is known of log directories.
    """
    if problem.log_dirs is None:
        raise InputError("nothing is known of log directories; take a new snapshot, and run `kreassign load` again")
    rules = replace(problem.rules, between_log_dirs=True)
    if not between_brokers:
        rules = replace(rules, between_brokers=False, leaders=False)
    return replace(problem, rules=rules)
