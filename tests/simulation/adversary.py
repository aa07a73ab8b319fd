"""One scenario of an adversary, one seed, one run of kreassign: what was promised must be so in the end.

The seed shifts when each fault begins, so that it meets the run in another state. `python -m tests.simulation.adversary
1-9` takes the scenarios in turn, one a seed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from kreassign.admin import AdminClient, client_settings
from kreassign.errors import KreassignError
from kreassign.executor.guards import DEFAULTS
from kreassign.executor.guards.settings import settings
from kreassign.executor.history.run_history import RunHistory
from kreassign.executor.journal import Journal, journal_path
from kreassign.executor.preflight.prepare import RunSettings, prepare
from kreassign.executor.runner import Runner
from kreassign.executor.state.move import IN_FLIGHT, MoveStatus
from kreassign.executor.throttle.rates import ThrottleRates
from kreassign.model import TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.throttle import BROKER_THROTTLES, TOPIC_THROTTLES
from kreassign.operations.twin import SCENARIOS
from kreassign.twin import Twin, TwinTransport
from kreassign.twin.core import TwinSettings
from kreassign.twin.faults import schedule_faults
from kreassign.twin.setup.scenario import parse_scenario
from tests.simulation.__main__ import parse_seeds
from tests.simulation.promises import LEFT_THERE

FOLDER = SCENARIOS / "adversary"
TOPIC = "orders"
THROTTLE = 20_000_000
MOST_RESUMES = 1
PATIENCE_MS = 10 * 60_000
"""A run that has not ended after so long is paused, as an operator would who looks into it."""
POLL_S = 5.0
LATEST_MS = 20_000
"""Faults begin so much later at the most than their file says."""
_MOVED_BY_OTHERS = frozenset({"MovePartition", "CancelMoves", "Recreate", "Delete"})
_SET_BY_OTHERS = frozenset({"SetThrottles", "ListReplica"})


@dataclass(frozen=True)
class Struck:
    """How a run went that an adversary struck: where it ended, and which promises were broken."""

    name: str
    seed: int
    state: str
    broken: tuple[str, ...]

    def __str__(self) -> str:
        verdict = "; ".join(self.broken) or "every promise kept"
        return f"{self.name} seed {self.seed}: {self.state}, {verdict}"


def scenarios() -> tuple[str, ...]:
    """The names of all scenarios of adversaries."""
    return tuple(sorted(file.stem for file in FOLDER.glob("*.toml")))


def struck(name: str, seed: int) -> Struck:
    """Execute a plan while the adversary of a scenario does what it does, and resume the run until it has ended."""
    file = FOLDER / f"{name}.toml"
    scenario = parse_scenario(file.read_text(encoding="utf-8"), file.name)
    chance = random.Random(f"{name}:{seed}")
    twin = Twin(scenario.blueprint, TwinSettings(seed=seed, controller_count=3))
    faults = [replace(one, at_ms=one.at_ms + chance.randrange(LATEST_MS)) for one in scenario.faults]
    schedule_faults(twin, faults)
    with TemporaryDirectory() as folder:
        run = _Run(twin, Path(folder))
        found, trouble = run.executed()
    kinds = {type(one.fault).__name__ for one in faults}
    state = "left" if found is None else found.state
    return Struck(name, seed, state, (*trouble, *_broken(twin, found, run.targets, kinds)))


class _Run:
    """A run that is resumed for as long as it does not end."""

    def __init__(self, twin: Twin, folder: Path) -> None:
        self._twin = twin
        self._folder = folder
        self._world = TwinTransport(twin)
        ids = twin.processes.ids
        states = sorted(twin.metadata.topics[TOPIC].partitions.items())
        self.targets = {
            TopicPartition(TOPIC, number): tuple((broker + 2) % len(ids) for broker in state.replicas)
            for number, state in states
        }

    def executed(self) -> tuple[RunHistory | None, tuple[str, ...]]:
        """The history at its end, and what kept the run from ending in one go."""
        plan = Plan(tuple(PartitionAssignment(key, target) for key, target in self.targets.items()))
        servers = ",".join(f"broker-{broker}:9092" for broker in self._twin.processes.ids)
        chosen = client_settings({"request.timeout.ms": "5000"}, bootstrap_servers=servers)
        with AdminClient.connect(chosen, clock=self._world, transport=self._world) as admin:
            asked = RunSettings("run-1", self._world.now_ms(), ThrottleRates(THROTTLE), settings(DEFAULTS))
            started = prepare(admin, plan, asked)
            with Journal.create(self._folder, started) as journal:
                found = self._attempt(partial(self._runner(admin, journal).start, started))
            for _ in range(MOST_RESUMES):
                if isinstance(found, RunHistory) and found.ended_ms is not None:
                    return found, ()
                self._world.sleep(300.0)
                path = journal_path(self._folder, self._twin.cluster_id, "run-1")
                journal, events = Journal.resume(path, self._twin.cluster_id)
                with journal:
                    runner = self._runner(admin, journal)
                    found = self._attempt(partial(runner.resume, events))
        if isinstance(found, RunHistory):
            return found, ()
        return None, (f"never ended: {found}",)

    def _runner(self, admin: AdminClient, journal: Journal) -> Runner:
        runner = Runner(admin, self._world, journal, poll_s=POLL_S)
        self._twin.schedule(self._twin.now_ms + PATIENCE_MS, runner.request_stop)
        return runner

    @staticmethod
    def _attempt(step: Callable[[], RunHistory]) -> RunHistory | KreassignError:
        try:
            return step()
        except KreassignError as error:
            return error


def _broken(
    twin: Twin, found: RunHistory | None, targets: Mapping[TopicPartition, tuple[int, ...]], kinds: set[str]
) -> Iterator[str]:
    """The promises that are not kept."""
    if found is None:
        return
    moving = twin.metadata.reassigning & targets.keys()
    told_moving = {TopicPartition(one.topic, one.partition) for one in found.moves if one.status in IN_FLIGHT}
    if found.ended_ms is not None and moving - told_moving and not kinds & _MOVED_BY_OTHERS:
        yield f"ended while {len(moving)} of its moves were under way"
    if not kinds & _SET_BY_OTHERS:
        left = sorted(_left(twin))
        told = [*found.throttle_residue, *(one for one in found.problems if LEFT_THERE in one)]
        if len(left) > len(told):
            yield f"{len(left)} settings left and {len(told)} told: {', '.join(left[:3])}"
    if not kinds & _MOVED_BY_OTHERS:
        yield from _untrue(twin, found)


def _left(twin: Twin) -> Iterator[str]:
    for owner, values in twin.metadata.configs.items():
        for name in (*TOPIC_THROTTLES, *BROKER_THROTTLES):
            if name in values:
                yield f"{owner} {name}"


def _untrue(twin: Twin, found: RunHistory) -> Iterator[str]:
    for one in found.moves:
        state = twin.metadata.partition(TopicPartition(one.topic, one.partition))
        assert state is not None
        missing = [broker for broker in one.target if broker not in state.isr and twin.metadata.is_active(broker)]
        is_there = state.replicas == one.target and not missing
        if one.status == MoveStatus.COMPLETE and not is_there:
            yield f"{one.topic}-{one.partition} is told {one.status} and is on {state.replicas}, in sync {state.isr}"


def scenario_of(seed: int) -> str:
    """The scenario of a seed: all of them in turn."""
    names = scenarios()
    return names[(seed - 1) % len(names)]


@click.command()
@click.argument("seeds", type=lambda text: tuple(parse_seeds(text)))
def main(seeds: tuple[int, ...]) -> None:
    """Execute runs under the adversaries of these seeds; the exit code says whether a promise was broken."""
    found = []
    for seed in seeds:
        found.append(struck(scenario_of(seed), seed))
        click.echo(str(found[-1]))
    if any(one.broken for one in found):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
