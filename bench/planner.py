"""The planner on the cases of `planner_cases/`, scored by the evaluator beside them, and on other tasks and sizes."""

from __future__ import annotations

import json
import math
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from bench.process import Run, run

FOLDER = Path(__file__).with_name("planner_cases")
ROUNDS = 2


@dataclass(frozen=True, slots=True)
class Case:
    """Arguments of `gen_cluster.py`."""

    name: str
    brokers: int
    racks: int
    partitions: int
    topics: int
    skew: float = 2.0
    seed: int = 1


CASES = (
    Case("A", 12, 4, 2_000, 100),
    Case("B", 60, 6, 20_000, 1_000),
    Case("C", 150, 10, 100_000, 5_000),
    Case("D", 300, 15, 333_000, 10_000),
)
OTHERS = (
    Case("E", 8, 3, 400, 30, 1.0, 11),
    Case("F", 20, 5, 5_000, 50, 3.0, 12),
    Case("G", 40, 4, 8_000, 800, 4.0, 13),
    Case("H", 100, 7, 50_000, 2_000, 1.0, 14),
    Case("I", 200, 20, 200_000, 20_000, 3.0, 15),
)

GROWTH = (Case("few", 24, 4, 3_333, 150), *CASES[1:], Case("most", 1_000, 20, 667_000, 20_000))


def measure() -> None:
    """Cases A to D, then others: other sizes, skews and seeds than any constant was chosen on."""
    print("| case | brokers | partitions | skew, seed | wall s | cpu s | MiB | bytes % | LB % | × LB | × bound "
          "| disk | net-in | net-out | cpu | replicas | leaders | racks broken |")  # fmt: skip
    print("|" + "---|" * 18)
    with tempfile.TemporaryDirectory() as folder:
        for case in (*CASES, *OTHERS):
            print(_case_row(case, Path(folder)), flush=True)
        cold = _cold(CASES[0], Path(folder))
    print(f"\nwith nothing compiled yet, case A: {cold.wall_s:.1f} s, {cold.cpu_s:.1f} s of processor time")


def measure_tasks() -> None:
    """A tenth of the brokers leaves or joins, or two replicas become three, against `planner.check.bounds`.

    As the commands do it by default, with what may stay left alone, and with `--and-balance`.
    """
    print(
        "| case | task | wall s | cpu s | MiB | moved GB | bound GB | × bound | brokers outside a band | broken rules |"
    )
    print("|" + "---|" * 10)
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES[1:3]:
            file = generated(case, Path(folder))
            for task in ("drain", "drain and balance", "add", "factor", "factor and balance"):
                print(_task_row(case, task, file), flush=True)


def measure_growth() -> None:
    """Plans of ten thousand to two million replicas, each in a process of its own: the second of two."""
    print("| brokers | replicas | wall s | cpu s | MiB |")
    print("|" + "---|" * 5)
    taken = []
    with tempfile.TemporaryDirectory() as folder:
        for case in GROWTH:
            command = _command("rebalance", case, generated(case, Path(folder)), Path(folder) / "plan.tsv")
            run(command)
            found = run(command)
            taken.append((3 * case.partitions, found.cpu_s))
            print(_row((case.brokers, f"{3 * case.partitions:,}", *_cost(found))), flush=True)
    for (few, short), (many, long) in ((taken[0], taken[-1]), *pairwise(taken)):
        slope = math.log(long / short) / math.log(many / few)
        print(f"slope of log CPU time over log replicas, {few:,} to {many:,}: {slope:.2f}")


def measure_first() -> None:
    """The first four plans after an installation, when nothing is compiled yet: their processor time."""
    print("| case | first cpu s | second cpu s | third cpu s | fourth cpu s |")
    print("|" + "---|" * 5)
    for case in CASES[:3]:
        with tempfile.TemporaryDirectory() as folder:
            generated(case, Path(folder))
            print(_row((case.name, *(f"{_cold(case, Path(folder)).cpu_s:.1f}" for _ in range(4)))), flush=True)


def measure_disks() -> None:
    """Case B with twelve directories in each of its 60 brokers: inside the brokers alone, and together with moves."""
    print("| task | wall s | cpu s | MiB | disks out before | after | moved inside GB | bound GB | moved between GB |")
    print("|" + "---|" * 9)
    with tempfile.TemporaryDirectory() as folder:
        file = generated(CASES[1], Path(folder))
        for task in ("disks", "brokers and disks"):
            command = _command(task, CASES[1], file, file.with_suffix(".plan"))
            run(command)
            taken, found = run(command), json.loads(run([*command, "judge"]).output)
            bound = f"{found['bound_inside'] / 1e9:.0f}" if task == "disks" else ""
            amounts = (f"{found['moved_inside'] / 1e9:.0f}", bound, f"{found['moved'] / 1e9:.0f}")
            print(_row((task, *_cost(taken), found["disks_out_before"], found["disks_out"], *amounts)), flush=True)


def _case_row(case: Case, folder: Path) -> str:
    file, plan = generated(case, folder), folder / "plan.tsv"
    command = _command("rebalance", case, file, plan)
    run(command)  # so that the compiled code is there
    fastest = min((run(command) for _ in range(ROUNDS)), key=lambda one: one.wall_s)
    score = run([sys.executable, str(FOLDER / "evaluate.py"), str(file), str(case.racks), str(case.brokers), str(plan)])
    bound = run([sys.executable, str(FOLDER / "lower_bound.py"), str(file), str(case.racks), str(case.brokers)])
    judged = json.loads(run([*command, "judge"]).output)
    result = score.output[score.output.index("RESULT") :]
    moved = float(_found(r"= ([\d.]+)% of data", result))
    least = float(_found(r"count\) ([\d.]+)%", bound.output))
    spread = " | ".join(_found(rf"{name} ([\d./]+)", result) for name in _RESOURCES)
    cells = (case.name, case.brokers, case.partitions, f"{case.skew:g}, {case.seed}", *_cost(fastest),
             f"{moved:.2f}", f"{least:.2f}", f"{moved / least:.3f}", f"{judged['moved'] / judged['bound']:.3f}", spread,
             _found(r"rackviol (\d+)", result))  # fmt: skip
    return _row(cells)


_RESOURCES = ("disk", "nw_in", "nw_out", "cpu", "rep", "lead")


def _task_row(case: Case, task: str, file: Path) -> str:
    command = _command(task, case, file, file.with_suffix(".plan"))
    run(command)
    fastest = min((run(command) for _ in range(ROUNDS)), key=lambda one: one.wall_s)
    found = json.loads(run([*command, "judge"]).output)
    amounts = (f"{found['moved'] / 1e9:.0f}", f"{found['bound'] / 1e9:.0f}", f"{found['moved'] / found['bound']:.3f}")
    return _row((case.name, task, *_cost(fastest), *amounts, found["misses"], found["violations"]))


def _cold(case: Case, folder: Path) -> Run:
    file = generated(case, folder)
    command = _command("rebalance", case, file, folder / "cold.tsv")
    return run(["env", f"NUMBA_CACHE_DIR={folder / 'compiled'}", *command])


def generated(case: Case, folder: Path) -> Path:
    """The file of a case, written if it is not there yet."""
    file = folder / f"{case.name}.tsv"
    if not file.exists():
        arguments = (case.brokers, case.racks, case.partitions, case.topics, case.skew, case.seed, file)
        run([sys.executable, str(FOLDER / "gen_cluster.py"), *map(str, arguments)])
    return file


def _command(task: str, case: Case, file: Path, plan: Path) -> list[str]:
    arguments = (task, file, case.brokers, case.racks, plan)
    return [sys.executable, "-m", "bench.planner_process", *map(str, arguments)]


def _cost(taken: Run) -> Iterator[str]:
    yield from (f"{taken.wall_s:.2f}", f"{taken.cpu_s:.2f}", f"{taken.peak_mib:.0f}")


def _found(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    if match is None:
        raise ValueError(f"{pattern!r} is not in {text!r}")
    return match[1]


def _row(cells: Iterable[object]) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"
