"""A campaign: runs on real Kafka, one after the other, each struck by up to five faults, resumed until it is over.

Beside what every run promises (tests/campaigns/promises.py), once its faults are repaired:

- what comes after it keeps what is promised of sequences (tests/torture/sequels.py);
- what somebody else did to its settings or moves is said, and no command ended in a traceback;
- where a broker is lost for good, the next run begins, and what is left on that broker was said;
- after each run, and once more at the end of all: each acknowledged record is there, once, unchanged and in the order
  in which its producer sent it.

What was drawn and not struck, because nothing moved any more, is drawn again for a later run. Every other run gets
`harmless` faults only, so that what makes a move fail does not hide what must not.
"""

from __future__ import annotations

import json
import signal
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import takewhile
from pathlib import Path
from random import Random

import click

from kreassign.model.run import ENDED, RunHistory
from testbed import KafkaCluster, Listener
from testbed.waiting import wait_until
from tests.campaigns import promises
from tests.campaigns.campaign import Caught, Result, Tally, play
from tests.campaigns.promises import RESIDUE, Aftermath
from tests.real.run_processes import end_throttles_and_moves, free_lease
from tests.torture.broker_faults import FORMER, PRESENT, UPGRADE
from tests.torture.checked_records import PRODUCERS, CheckedRecords
from tests.torture.disk_faults import FULL_LOG_DIR
from tests.torture.fault import Fault, Order
from tests.torture.operator_faults import FOREIGN_RATE, OPERATOR_FAULTS, topics
from tests.torture.scene import NOT_YET, PARTITIONS, RATE, RECREATED, TOPIC, MissedError, Scene, opened, spec
from tests.torture.sequels import sequel

RUN_S, STRIKE_S = 420.0, 75.0
LOST_S = 45.0
"""For so long an operator hopes that a broker comes back."""
SHOWN_AS = {"done": "finished"}
"""What the table calls an end that it does not call by its name."""
LEAST_AT_ONCE, MOST_AT_ONCE = 4, 5
_HEAD = """| fault | times | how runs ended | recovered in s, median (most) | records lost | residue | untrue |
|---|---|---|---|---|---|---|"""


class Campaign:
    """Strikes faults by seed; `broken` has a sentence per broken promise."""

    def __init__(self, faults: Sequence[Fault], seed: int, folder: Path) -> None:
        self._faults = faults
        self._chance = Random(seed)
        self._folder = folder
        self._tallies = {fault.name: Tally(fault.name) for fault in faults}
        self._order = Order(faults, self._chance)
        self._runs = 0
        self.broken: list[str] = []
        self.records = self.refused = self.lost = 0

    def execute(self, wanted: int, minutes: float | None = None) -> None:
        """Strike so many faults, all kinds in turn, and read all records back. No run begins after so many minutes."""
        version = FORMER if UPGRADE in self._faults else PRESENT
        with KafkaCluster.start(spec(version)) as cluster:
            has_full = FULL_LOG_DIR in self._faults
            scene, written = opened(cluster, self._chance, self._folder, with_small_log_dir=has_full)
            try:
                if set(OPERATOR_FAULTS) & set(self._faults):
                    # Kafka's tools run in a Java that takes longer to start than some moves take.
                    topics(scene, "--list")
                records = CheckedRecords(cluster.bootstrap_servers, TOPIC, PARTITIONS, written)
                with records.producing():
                    self.strike_all(scene, records, wanted, minutes)
                scene.heal()
                missing = records.all_missing()
            finally:
                scene.close()
            self.records, self.refused, self.lost = records.count, records.refused, len(missing)
            self.broken += [*records.broken, *missing]

    def strike_all(self, scene: Scene, records: CheckedRecords, wanted: int, minutes: float | None = None) -> None:
        """One run after the other, until so many faults have been struck."""

        def strike(number: int) -> None:
            most = min(self._chance.randint(LEAST_AT_ONCE, MOST_AT_ONCE), wanted - self.struck)
            faults = self._order.next(most, harmless=number % 2 == 1)
            failures: list[str] = []
            with Caught(failures):
                self._run(scene, records, number, faults)
            if failures:
                click.echo(failures[0], err=True)
                *_, error = failures[0].splitlines()
                self.broken.append(f"run {number}: the campaign could not go on with it: {error}")
                _start_afresh(scene)

        for _ in play(strike, takewhile(lambda _: self.struck < wanted, range(wanted)), minutes):
            pass

    @property
    def struck(self) -> int:
        return sum(tally.count for tally in self._tallies.values())

    def table(self) -> str:
        """Table of results, a row per kind of fault."""
        kinds = sum(tally.count > 0 for tally in self._tallies.values())
        total = (
            f"\n{self.struck} faults of {kinds} kinds at {self._runs} runs; {self.records} records of {PRODUCERS}"
            f" producers acknowledged and read back, {self.lost} of {PARTITIONS} partitions with any that is lost,"
            f" changed, there twice or out of order; {self.refused} refused; {len(self.broken)} promises broken."
        )
        return "\n".join([_HEAD, *map(_row, self._tallies.values()), total, *(f"- {each}" for each in self.broken)])

    def _run(self, scene: Scene, records: CheckedRecords, number: int, faults: Sequence[Fault]) -> None:
        listener = next((fault.listener for fault in faults if fault.listener), Listener.PLAINTEXT)
        scene.set(self._folder / str(number), listener)
        for fault in faults:
            fault.prepare(scene)
        scene.words = (scene.plan(), "--throttle", scene.rate, "--max-moves", 4, "--measure-for", 0)
        scene.begin()
        self._runs += 1
        struck: dict[Fault, tuple[str, float]] = {}
        for fault in faults:
            if what := _strike(scene, fault):
                struck[fault] = what, time.monotonic()
            else:
                self._order.put_off(fault)
        run = _bring_to_rest(scene)
        ended_s = time.monotonic()
        done = {fault: what for fault, (what, _) in struck.items()}
        broken = (*_judge(scene, done, run), *_bring_back_lost(scene, run), *sequel(scene, run, number), *scene.untrue)
        lost = records.newly_missing()
        result = Result(number, _end(scene, run), broken, counts={"records": Counter(lost=len(lost))})
        for fault, (_, at_s) in struck.items():
            self._tallies[fault.name].add(replace(result, seconds=ended_s - at_s))
        what = "; ".join(done.values())
        self.broken += [f"run {number} ({what}): {each}" for each in (*broken, *lost)]
        heading = f"run {number}: {what or 'nothing struck'} → {result.end}, {ended_s - scene.begun_s:.0f} s"
        click.echo("\n  ".join([heading, *broken, *lost]), err=True)
        _tidy_up(scene)


def _row(tally: Tally) -> str:
    ends = ", ".join(f"{count} {end}" for end, count in sorted(tally.ends.items()))
    took = sorted(tally.seconds)
    spread = f"{took[len(took) // 2]:.0f} ({took[-1]:.0f})" if took else ""
    left = sum(each.startswith(RESIDUE) for each in tally.broken)
    lost = tally.counts["records"]["lost"]
    return f"| {tally.name} | {tally.count} | {ends} | {spread} | {lost} | {left} | {len(tally.broken) - left} |"


def _end(scene: Scene, run: RunHistory | None) -> str:
    """End of a run, in the word of the table."""
    if run is None:
        return "no journal"
    return f"{'held, then ' if scene.was_held else ''}{SHOWN_AS.get(run.state, run.state)}"


# --- a run and its operator ----------------------------------------------------------------------------------------


def _strike(scene: Scene, fault: Fault) -> str:
    """Strike while something moves, also when the run had to be resumed; "" if it ended before."""
    what = ""

    def is_over() -> bool:
        nonlocal what
        if not (scene.is_running() and (fault.is_early or scene.moving())):
            return _is_at_its_end(scene)
        scene.repair_due()
        _look(scene)
        try:
            what = fault.strike(scene)
        except MissedError:
            return False
        scene.tell(f"{fault.name}: {what}")
        return True

    try:
        wait_until(is_over, timeout_s=STRIKE_S, what=fault.name, every_s=0.2)
    except NOT_YET as error:
        # A cluster without its controllers cannot do what a second operator wants either.
        click.echo(f"{fault.name}: {error}", err=True)
    return what


def _bring_to_rest(scene: Scene) -> RunHistory | None:
    """Repair, resume and answer what the run asks for, as an operator does, until the run is over."""
    try:
        wait_until(lambda: _is_at_its_end(scene), timeout_s=RUN_S, what="the run", every_s=0.5)
    except TimeoutError as error:
        scene.untrue.append(str(error))
        if scene.run is not None:
            scene.run.kill()
            _collect_output(scene)
        scene.repair_all()
        scene.heal()
    return scene.history()


def _look(scene: Scene) -> RunHistory | None:
    """The run as its journal has it, if it is not over; note whether it is held."""
    run = scene.history()
    if run is None or run.state in ENDED:
        return None
    scene.was_held = scene.was_held or run.is_held
    return run


def _is_at_its_end(scene: Scene) -> bool:
    is_repaired = scene.repair_due()
    if scene.is_running():
        if (run := _look(scene)) is not None and is_repaired:
            _answer(scene, run)
        return False
    _collect_output(scene)
    if not is_repaired:
        return False
    scene.tell("the run is not there")
    scene.heal()
    run = scene.history()
    scene.tell(f"found {run.state if run else 'nothing'}")
    if run is None and scene.run is not None and scene.run.returncode == -signal.SIGKILL:
        # It was killed before it had a journal.
        scene.begin()
        return False
    if run is None or (run.state in ENDED and not run.throttle_residue):
        return True
    if run.state in ENDED and scene.lost - scene.unregistered:
        _forget_lost(scene, run)
        return True
    scene.start("resume", run.run_id)
    return False


def _answer(scene: Scene, run: RunHistory) -> None:
    """Set the throttle again where others took it away; end the run that waits for a broker that is lost."""
    if "foreign-throttle" in " ".join(run.verdicts):
        scene.kreassign("throttle", run.run_id, scene.rate, "--state-dir", scene.state_dir)
    elif scene.lost and not scene.is_cancelled and time.monotonic() - scene.begun_s > LOST_S:
        scene.is_cancelled = True
        scene.kreassign("cancel", run.run_id, "--drain", "--state-dir", scene.state_dir)


def _forget_lost(scene: Scene, run: RunHistory) -> None:
    """Give up what a run cannot restore, because the broker does not come back."""
    brokers = [word for broker in sorted(scene.lost) for word in ("--broker", broker)]
    done = scene.kreassign("forget", run.run_id, *brokers, "--state-dir", scene.state_dir)
    if done.exit_code:
        scene.untrue.append(f"the brokers {sorted(scene.lost)} could not be forgotten: {done.stderr[-300:]}")


def _collect_output(scene: Scene) -> None:
    if scene.run is not None and scene.run.stderr is not None and not scene.run.stderr.closed:
        _, errors = scene.run.communicate(timeout=60)
        if "Traceback" in errors:
            scene.untrue.append(f"a traceback: {errors[-300:]}")
        with (scene.folder / "stderr.txt").open("a") as file:
            file.write(errors)


# --- what it has promised ------------------------------------------------------------------------------------------


def _judge(scene: Scene, struck: dict[Fault, str], run: RunHistory | None) -> list[str]:
    if run is None:
        return ["the run has no journal"]
    (scene.folder / "found.json").write_text(json.dumps(asdict(run), indent=1, default=str))
    said = " ".join([*run.problems, *(move.problem or "" for move in run.moves)])
    throttles = {key: value for key, value in scene.throttles().items() if value != FOREIGN_RATE}
    after = Aftermath(
        run,
        scene.replicas() | scene.replicas(RECREATED),
        # What others overrode is theirs; the run has said so (`tells`), and `kreassign doctor` how to free it.
        moving=scene.moving(with_endless=False),
        throttles=[f"{key} = {value}" for key, value in throttles.items() if not _is_of_former_topic(key, said)],
        is_moved_by_others=any(fault.moves for fault in struck),
        is_harmless=bool(struck) and all(fault.harmless for fault in struck),
    )
    untold = [
        f"not told of: {what}"
        for fault, what in struck.items()
        if fault.tells is not None and fault.tells not in said and what not in scene.needless
    ]
    return [*promises.broken(after), *untold]


def _is_of_former_topic(key: str, said: str) -> bool:
    """True if the run names it as a leftover of the former topic.

    A broker that starts again shows what was set on the topic of that name before (docs/design/non-obvious.md, 62).
    """
    owner, _, name = key.rpartition(" ")
    return owner == f"topic {RECREATED}" and f"{owner}: {name} is " in said


def _bring_back_lost(scene: Scene, run: RunHistory | None) -> list[str]:
    """Start the next run while the broker is lost; then bring the broker back with its leftover settings."""
    if not scene.lost or run is None:
        return []
    broken = []
    following = scene.kreassign(
        "run", "--yes", scene.small_plan(), "--throttle", RATE, "--measure-for", 0, *scene.where
    )
    if following.exit_code:
        broken.append(f"the next run ended with {following.exit_code}: {following.stderr[-300:]}")
    said = " ".join([*run.problems, *run.throttle_residue])
    lost, scene.lost, scene.unregistered = scene.lost, set(), set()
    scene.heal()
    left = {key: value for key, value in scene.throttles().items() if key.startswith("broker ")}
    for broker in sorted(lost):
        mine = [f"{key} = {value}" for key, value in left.items() if key.split()[1] == str(broker)]
        if mine and f"broker {broker}" not in said:
            broken.append(f"left on the lost broker and not told of: {mine}")
    return broken


def _tidy_up(scene: Scene) -> None:
    """So that a broken promise does not break the next run: nothing moves, nothing is throttled."""
    scene.interfere(None)
    if scene.disk is not None:
        scene.disk.close()
        scene.disk = None
    with scene.client() as client:
        free_lease(client)
        end_throttles_and_moves(client)


def _start_afresh(scene: Scene) -> None:
    """After a run that could not be judged."""
    if scene.run is not None:
        scene.run.kill()
    scene.repair_all()
    scene.interfere(None)
    scene.lost, scene.unregistered = set(), set()
    scene.heal()
    _tidy_up(scene)
