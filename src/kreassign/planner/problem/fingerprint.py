"""Fingerprint of a problem: equal for equal inputs of a plan, whatever their order."""

from __future__ import annotations

import hashlib
from dataclasses import fields
from typing import Any

import numpy as np

from kreassign.planner.problem.problem import Problem


def fingerprint(problem: Problem) -> str:
    """SHA-256 over all fields of the problem; a goal counts by its loads."""
    digest = hashlib.sha256()
    for part in (problem.brokers, problem.partitions, problem.log_dirs):
        _add(digest, part)
    for band in problem.bands:
        _add(digest, (band.goal.name, band.goal.counts, band.tolerance, band.weight))
        _add(digest, band.goal.leader(problem.partitions))
        _add(digest, band.goal.follower(problem.partitions))
    _add(digest, problem.rules)
    _add(digest, problem.budget)
    _add(digest, problem.gone)
    return digest.hexdigest()


def _add(digest: Any, value: Any) -> None:
    if isinstance(value, np.ndarray):
        digest.update(f"{value.dtype.str}{value.shape}".encode())
        digest.update(np.ascontiguousarray(value).data)
    elif hasattr(value, "__dataclass_fields__"):
        for field in fields(value):
            digest.update(field.name.encode())
            _add(digest, getattr(value, field.name))
    elif isinstance(value, dict):
        for key in sorted(value):
            digest.update(repr(key).encode())
            _add(digest, value[key])
    else:
        digest.update(repr(value).encode())
