"""Empty log directories, so that a disk can be taken out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kreassign.errors import InputError
from kreassign.planner.problem.problem import Problem


def drain_log_dirs(problem: Problem, places: Iterable[tuple[int, str]], *, between_brokers: bool = False) -> Problem:
    """Everything in these directories (broker id, path) goes to others of the same broker.

    `between_brokers` lets replicas leave their broker where its other directories are too small, and evens out the
    brokers. Raises InputError for a directory that is not there.
    """
    dirs = problem.log_dirs
    if dirs is None:
        raise InputError("nothing is known of log directories; take a new snapshot, and run `kreassign load` again")
    ids = problem.brokers.ids[dirs.brokers].tolist()
    known = {place: index for index, place in enumerate(zip(ids, dirs.paths, strict=True))}
    wanted = sorted(set(places))
    for broker, path in wanted:
        if (broker, path) not in known:
            there = [one for host, one in known if host == broker]
            raise InputError(f"broker {broker} has no log directory {path}; it has {', '.join(there) or 'none'}")
    must_empty = dirs.must_empty.copy()
    must_empty[[known[place] for place in wanted]] = True
    rules = replace(problem.rules, between_log_dirs=True, between_brokers=between_brokers, leaders=between_brokers)
    return replace(problem, log_dirs=replace(dirs, must_empty=must_empty), rules=rules)
