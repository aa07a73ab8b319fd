"""Several plans for one task, none of which is worse than another in everything."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from kreassign.errors import Infeasible
from kreassign.model.plan_facts import plan_id
from kreassign.planner.check.changes import predict
from kreassign.planner.check.evaluate import evaluate
from kreassign.planner.problem.cluster import Assignment
from kreassign.planner.problem.problem import Problem
from kreassign.planner.results.plans import plan_of
from kreassign.planner.search.search import solve

TOLERANCES = (0.03, 0.05, 0.2, 0.4)
PARTS_OF_BYTES = (0.1, 0.25, 0.5, 0.75)
ANY_RATE = 1e6


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """One plan: what it was asked for, what it costs, and the widest miss of the bands that it leaves."""

    id: str
    asked_for: str
    assignment: Assignment
    moved_bytes: int
    imbalance: float
    seconds: float
    leader_changes: int

    @property
    def _costs(self) -> tuple[float, ...]:
        return self.moved_bytes, round(self.imbalance, 9), self.seconds, self.leader_changes

    def beats(self, other: Choice) -> bool:
        """Whether this is nowhere worse than the other and somewhere better."""
        return self._costs != other._costs and all(a <= b for a, b in zip(self._costs, other._costs, strict=True))


def pareto(problem: Problem, rate_bytes_per_s: float = ANY_RATE) -> tuple[Choice, ...]:
    """Plans with other bands, part of the bytes, no changes of leaders, or nothing but these; the fewest bytes first.

    Balance is judged by the bands of the problem. Plans that another one beats in bytes, balance, time and changes of
    leaders are left out, and so are equal ones.
    """
    found: dict[str, Choice] = {}
    for asked_for, variant in _variants(problem):
        try:
            choice = _choice(problem, asked_for, solve(variant).assignment, rate_bytes_per_s)
        except Infeasible:
            continue
        found.setdefault(choice.id, choice)
    kept = [one for one in found.values() if not any(other.beats(one) for other in found.values())]
    return tuple(sorted(kept, key=lambda one: (one.moved_bytes, one.imbalance, one.id)))


def _variants(problem: Problem) -> Iterator[tuple[str, Problem]]:
    yield "as asked", problem
    yield "leaders only", replace(problem, rules=replace(problem.rules, between_brokers=False))
    yield "leaders stay", replace(problem, rules=replace(problem.rules, leaders=False))
    for tolerance in TOLERANCES:
        bands = tuple(replace(band, tolerance=tolerance) if band.tolerance else band for band in problem.bands)
        yield f"bands of ±{tolerance:.0%}", replace(problem, bands=bands)
    whole = evaluate(problem, solve(problem).assignment).moved_bytes
    for part in PARTS_OF_BYTES:
        budget = replace(problem.budget, moved_bytes=int(whole * part))
        yield f"{part:.0%} of the bytes", replace(problem, budget=budget)


def _choice(problem: Problem, asked_for: str, assignment: Assignment, rate: float) -> Choice:
    found = evaluate(problem, assignment)
    return Choice(
        id=plan_id(plan_of(problem, assignment)),
        asked_for=asked_for,
        assignment=assignment,
        moved_bytes=found.moved_bytes,
        imbalance=found.imbalance,
        seconds=predict(problem, assignment, rate).seconds,
        leader_changes=found.leader_changes,
    )
