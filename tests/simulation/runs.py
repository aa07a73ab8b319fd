"""`python -m tests.simulation.runs 1-1000`: runs of kreassign on random clusters, and what they have to stand.

What goes wrong is made as small as it can be and printed; the exit code is 1 then.
"""

from __future__ import annotations

import math
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import islice, takewhile
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from kreassign.errors import KreassignError
from kreassign.executor.state import TRANSITIONS, machine
from kreassign.executor.state.transition import Key, Row
from tests.simulation.__main__ import parse_seeds
from tests.simulation.in_turn import asked_in_turn
from tests.simulation.minimise import minimised
from tests.simulation.ordeal import Ordeal, Outcome
from tests.simulation.promises import broken, broken_going_back
from tests.simulation.trial import Trial, drawn
from tests.torture.page import conditions, write_section

MEMORY = Path("/dev/shm")
"""Where journals are quicker than on a disk."""
NAMED = 20
"""So many rows that were not met a page has."""
_WRONG = (
    KreassignError, AssertionError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RuntimeError,
    OSError,
)  # fmt: skip


class CountedRows(Mapping[Key, Row]):
    """The table of transitions, which notes the rows that are used."""

    def __init__(self, rows: Mapping[Key, Row]) -> None:
        self._rows = rows
        self.used: Counter[Key] = Counter()

    def __getitem__(self, key: Key) -> Row:
        found = self._rows[key]
        self.used[key] += 1
        return found

    def __contains__(self, key: object) -> bool:
        return key in self._rows

    def __iter__(self) -> Iterator[Key]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


@dataclass(frozen=True, slots=True)
class Tried:
    """How a trial went: which promises were broken, in sentences."""

    trial: Trial
    outcome: Outcome
    broken: tuple[str, ...]

    def __str__(self) -> str:
        found = self.outcome.found
        state = "refused" if found is None else found.state
        return (
            f"seed {self.trial.seed}: {state} after {self.outcome.lasted_ms / 60_000:.0f} min; {'; '.join(self.broken)}"
        )


def tried(trial: Trial) -> Tried:
    """Let a trial happen."""
    with TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder, asked_in_turn():
        ordeal = Ordeal(trial, Path(folder))
        try:
            ordeal.execute()
            found = tuple(broken(ordeal))
            found = found or tuple(broken_going_back(ordeal))
        except _WRONG as error:
            notes = "; ".join(getattr(error, "__notes__", ()))
            found = (f"{type(error).__name__}: {error} {notes}".strip(),)
    return Tried(trial, ordeal.outcome, found)


def smallest(failed: Tried) -> Tried:
    """What can be left out of it while it goes wrong still."""
    return tried(minimised(failed.trial, lambda trial: bool(tried(trial).broken)))


@dataclass(slots=True)
class Tally:
    """What happened in all trials."""

    seeds: int = 0
    last: int = 0
    hours: float = 0.0
    processes: int = 0
    rolled_back: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    struck: Counter[str] = field(default_factory=Counter)
    in_states: int = 0
    failed: list[Tried] = field(default_factory=list)

    def take_in(self, one: Tried) -> None:
        """Count one more."""
        found = one.outcome.found
        self.seeds += 1
        self.last = one.trial.seed
        self.hours += one.outcome.lasted_ms / 3_600_000
        self.processes += one.outcome.attempts
        self.rolled_back += one.outcome.rolled_back is not None
        self.ends["refused" if found is None else found.state] += 1
        self.struck.update(one.outcome.struck)
        self.in_states += one.outcome.in_states
        if one.broken:
            self.failed.append(one)


def table(tally: Tally, rows: CountedRows) -> str:
    """What happened, as a page has it."""
    ends = ", ".join(f"{count} {end}" for end, count in tally.ends.most_common())
    return "\n".join([
        "| What | |",
        "|---|---|",
        f"| runs, each of a seed of its own | {tally.seeds}: {ends} |",
        f"| hours of the clusters | {tally.hours:.0f} |",
        f"| processes, each run being resumed until its end | {tally.processes} |",
        f"| rolled back afterwards | {tally.rolled_back} |",
        f"| incidents before the end of a run | {tally.struck.total()} of {len(tally.struck)} kinds |",
        f"| of them right after the run entered a state that was drawn | {tally.in_states} |",
        f"| rows of [the table of states](run-states.md) that were used | {len(rows.used)} of {len(rows)} |",
        f"| rows that were not | {_briefly(unused(rows))} |",
        f"| runs that broke a promise | {len(tally.failed)} |",
        "",
        "| Incident | times |",
        "|---|---|",
        *(f"| {kind} | {count} |" for kind, count in tally.struck.most_common()),
    ])  # fmt: skip


def unused(rows: CountedRows) -> tuple[str, ...]:
    """The rows of the table of states that nothing used."""
    return tuple(sorted(f"{state.__name__} on {event.__name__}" for state, event in rows.keys() - rows.used.keys()))


def _briefly(names: tuple[str, ...]) -> str:
    """These, or how many they are where that is more than a page should have."""
    return ", ".join(names) or "none" if len(names) <= NAMED else f"{len(names)}, too many to name"


def not_met(rows: CountedRows) -> str:
    """The same, all of them, as a line."""
    return f"not met: {', '.join(unused(rows))}" if unused(rows) else "every row was met"


def campaign(seeds: Iterable[int], minutes: float | None = None, jobs: int = 1) -> tuple[Tally, CountedRows]:
    """Try one seed after the other, for so long at the most, in so many processes."""
    tally, rows = Tally(), CountedRows(TRANSITIONS)
    until_s = time.monotonic() + 60 * minutes if minutes else math.inf
    in_time = takewhile(lambda _: time.monotonic() < until_s, seeds)
    for one, used, smaller in map(_met, in_time) if jobs == 1 else _shared(in_time, jobs):
        tally.take_in(one)
        rows.used.update(used)
        if one.broken:
            click.echo(f"{one}\n{smaller}", err=True)
    return tally, rows


Met = tuple[Tried, Counter[Key], Trial | None]
"""How the trial of a seed went, the rows that it used, and what is left of it where it went wrong."""


def _met(seed: int) -> Met:
    rows = CountedRows(TRANSITIONS)
    machine.TRANSITIONS = rows
    try:
        one = tried(drawn(seed))
    finally:
        machine.TRANSITIONS = TRANSITIONS
    return one, rows.used, smallest(one).trial if one.broken else None


def _shared(seeds: Iterable[int], jobs: int) -> Iterator[Met]:
    """The same by processes, in the order of the seeds; few are under way, so that it can end in time."""
    todo, waiting = iter(seeds), deque[Future[Met]]()
    with ProcessPoolExecutor(jobs) as pool:
        waiting.extend(pool.submit(_met, seed) for seed in islice(todo, 4 * jobs))
        while waiting:
            found = waiting.popleft().result()
            waiting.extend(pool.submit(_met, seed) for seed in islice(todo, 1))
            yield found


@click.command()
@click.argument("seeds", default="1-1000")
@click.option("--minutes", type=float, help="Begin no further seed after so long.")
@click.option("--jobs", type=click.IntRange(min=1), default=1, help="Use so many processes.  [default: 1]")
@click.option("--write", is_flag=True, help="Write the table into docs/reference/torture.md, too.")
def main(seeds: str, minutes: float | None, jobs: int, *, write: bool) -> None:
    """Let the runs of these seeds stand what they have to; print a table. Exit code 1 if a promise was broken."""
    tally, rows = campaign(parse_seeds(seeds), minutes, jobs)
    found = table(tally, rows)
    click.echo(f"{found}\n\n{not_met(rows)}")
    if write:
        # By the clock perhaps fewer than were asked for: these are they.
        tried_seeds = f"{seeds.partition('-')[0]}-{tally.last}" if minutes else seeds
        write_section("runs on the twin", f"{conditions(f'make torture-twin RUNS={tried_seeds}')}\n\n{found}")
    if tally.failed:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
