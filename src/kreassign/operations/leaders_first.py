"""Whether leaders alone bring all brokers into their bands, and how many bytes that saves a rebalance."""

from __future__ import annotations

from dataclasses import dataclass

from kreassign.model.amount import format_amount
from kreassign.planner import Problem, evaluate, solve
from kreassign.planner.check.bounds import bytes_bound
from kreassign.planner.results.outcome import Outcome
from kreassign.planner.tasks import leaders_only


@dataclass(frozen=True, slots=True)
class LeadersAlone:
    """Leaders alone meet all bands, by this plan unless it copies something: then `copied_bytes` need not be.

    `least_bytes` is what any plan copies that meets them too while who stays keeps its role.
    """

    copied_bytes: int
    least_bytes: int

    @property
    def saved_bytes(self) -> int:
        """How many bytes whoever changes leaders alone does not copy: those of the plan, else no fewer than that."""
        return self.copied_bytes or self.least_bytes

    def __str__(self) -> str:
        saved = format_amount(self.saved_bytes, "B")
        if self.copied_bytes:
            return f"leaders alone meet all bands too: `kreassign plan leaders` saves the {saved} that are copied here"
        return f"leaders alone meet all bands, which saves copies of at least {saved}"


def leaders_alone(outcome: Outcome) -> LeadersAlone | None:
    """What a rebalance has to say of leaders: None unless changing them, and nothing else, meets all its bands.

    Where the plan copies something, that is searched once more, but only if no band is missed that leaders do not
    change. Goals that are no bands, such as failover, may want copies all the same: then nothing is said.
    """
    problem, found = outcome.problem, outcome.evaluation
    rules, missed = problem.rules, {one.goal for one in found.misses(before=True)}
    if rules.failover is not None or rules.topic_spread is not None or not missed or found.misses():
        return None
    if found.moves and not _suffice(problem, missed):
        return None
    if found.log_dir_moves:
        return None
    return LeadersAlone(found.moved_bytes, bytes_bound(problem, leaders_stay=True).total)


def _suffice(problem: Problem, missed: set[str]) -> bool:
    """Whether other leaders alone meet what is missed now, and miss nothing else."""
    if not missed <= {band.goal.name for band in problem.failover_bands}:
        return False
    posed = leaders_only(problem)
    return not evaluate(posed, solve(posed).assignment).misses()
