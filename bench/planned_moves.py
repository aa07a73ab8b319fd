"""What our planner moves in the cases of `planner_cases/`, to be carried out on a twin."""

from __future__ import annotations

import random
from pathlib import Path

from bench.moves_on_twin import Case, Move
from bench.planner import CASES, generated
from bench.planner_files import read_case
from kreassign.planner import Assignment, solve


def planned_case(name: str, one_in: int, folder: Path) -> Case:
    """The moves that copy something; of every `one_in` of them one, drawn by lot."""
    case = next(case for case in CASES if case.name == name)
    problem = read_case(generated(case, folder), case.brokers, case.racks)
    before, after = Assignment.current(problem.partitions).lists(), solve(problem).assignment.lists()
    moves = [
        Move(tuple(original), tuple(target), size_bytes)
        for original, target, size_bytes in zip(before, after, problem.partitions.size_bytes.tolist(), strict=True)
        if set(target) - set(original)
    ]
    chosen = sorted(random.Random(1).sample(range(len(moves)), len(moves) // one_in))
    thinned = f", one move of {one_in}" if one_in > 1 else ""
    return Case(f"planner's case {name}{thinned}", case.brokers, tuple(moves[number] for number in chosen))
