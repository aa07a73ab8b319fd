"""Runs of kreassign on random clusters, and what they have to stand; what goes wrong is made as small as it can be."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from kreassign.executor.state import TRANSITIONS, machine
from kreassign.executor.state.run import Key, Row
from tests.campaigns.campaign import Caught, Result, Tally, fast_folder
from tests.simulation.draw import ADVERSARIES, adversary, draw_trial
from tests.simulation.ordeal import Ordeal, Outcome, broken, broken_going_back
from tests.simulation.scene import asked_in_turn
from tests.simulation.trial import Trial, minimised

NAMED = 20
"""So many rows that were not met are named on the page."""


class CountedRows(dict[Key, Row]):
    """The table of transitions, which counts the rows that are looked up."""

    def __init__(self) -> None:
        super().__init__(TRANSITIONS)
        self.used: Counter[Key] = Counter()

    def get(self, key: Key, default: Row | None = None) -> Row | None:
        if key in self:
            self.used[key] += 1
        return super().get(key, default)


@dataclass(frozen=True, slots=True)
class Tried:
    """Result of a trial: the broken promises, in sentences."""

    trial: Trial
    outcome: Outcome
    broken: tuple[str, ...]

    @property
    def end(self) -> str:
        return "refused" if self.outcome.run is None else self.outcome.run.state


def try_trial(trial: Trial) -> Tried:
    """Let a trial happen and judge it."""
    sentences: list[str] = []
    with fast_folder() as folder, asked_in_turn():
        ordeal = Ordeal(trial, Path(folder))
        with Caught(sentences):
            ordeal.execute()
            sentences += broken(ordeal)
            ordeal.scene.check()
            if not sentences:
                sentences += broken_going_back(ordeal)
    return Tried(trial, ordeal.outcome, tuple(sentences))


def smallest(failed: Tried) -> Tried:
    """Smallest version of the trial that still fails."""
    return try_trial(minimised(failed.trial, lambda trial: bool(try_trial(trial).broken)))


def play_trial(trial: Trial) -> Result:
    """Try a trial and count the rows of the table of states; its lines are the smallest trial that breaks a promise."""
    rows = CountedRows()
    machine.TRANSITIONS = rows
    try:
        one = try_trial(trial)
    finally:
        machine.TRANSITIONS = TRANSITIONS
    outcome = one.outcome
    figures: Counter[str] = Counter(
        processes=outcome.attempts, in_states=outcome.in_states, rolled_back=outcome.rolled_back is not None
    )
    return Result(
        trial.seed,
        f"{trial.scenario and f'{trial.scenario} '}{one.end}",
        one.broken,
        outcome.lasted_ms / 1_000,
        f" after {outcome.lasted_ms / 60_000:.0f} min",
        tuple(str(smallest(one).trial).splitlines()) if one.broken else (),
        {"rows": rows.used, "incidents": outcome.incidents, "figures": figures},
    )


def play_run(seed: int) -> Result:
    """A run of the trial of a seed."""
    return play_trial(draw_trial(seed))


def play_adversary(seed: int) -> Result:
    """A run while an adversary does what it does: all in turn; the seed shifts when each fault begins."""
    return play_trial(adversary(ADVERSARIES[(seed - 1) % len(ADVERSARIES)], seed))


def table(tally: Tally) -> str:
    """Table of results for the page."""
    ends = ", ".join(f"{count} {end}" for end, count in tally.ends.most_common())
    figures, incidents, rows = (tally.counts[kind] for kind in ("figures", "incidents", "rows"))
    missing = unused(tally)
    named = ", ".join(missing) or "none" if len(missing) <= NAMED else f"{len(missing)}, too many to name"
    return "\n".join([
        "| What | |",
        "|---|---|",
        f"| runs, each of a seed of its own | {tally.count}: {ends} |",
        f"| hours of the clusters | {sum(tally.seconds) / 3_600:.0f} |",
        f"| processes, each run being resumed until its end | {figures['processes']} |",
        f"| rolled back afterwards | {figures['rolled_back']} |",
        f"| incidents before the end of a run | {incidents.total()} of {len(incidents)} kinds |",
        f"| of them right after the run entered a state that was drawn | {figures['in_states']} |",
        f"| rows of [the table of states](run-states.md) that were used | {len(rows)} of {len(TRANSITIONS)} |",
        f"| rows that were not | {named} |",
        f"| runs that broke a promise | {tally.failed} |",
        "",
        "| Incident | times |",
        "|---|---|",
        *(f"| {kind} | {count} |" for kind, count in incidents.most_common()),
    ])  # fmt: skip


def unused(tally: Tally) -> tuple[str, ...]:
    """The rows of the table of states that nothing used."""
    missing = TRANSITIONS.keys() - tally.counts["rows"].keys()
    return tuple(sorted(f"{state.__name__} on {event.__name__}" for state, event in missing))
