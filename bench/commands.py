"""Commands as users call them, on large clusters: `snapshot` of a twin, and `plan` from what it wrote."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from bench.planner import CASES, generated
from bench.planner_snapshot import write_case_snapshot
from bench.process import KREASSIGN, Run, run
from bench.served import served

SCENARIO = "million-replicas"
PROPERTIES = "default.api.timeout.ms=600000\nrequest.timeout.ms=600000\n"
FORMS = ("parquet", "json")


def measure() -> None:
    """Snapshot a million replicas, load them, plan nothing with them; and plan case D from its snapshot."""
    print("| command | wall s | CPU s | MiB | file MB |")
    print("|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        snapshots = _snapshots(place)
        for file in snapshots:
            _row(f"read {file.name}", _load(file))
            _row(f"`plan rebalance --snapshot {file.name}`, nothing to copy", _plan(file, place / "idle.json"))
        file = place / "D.parquet"
        write_case_snapshot(generated(CASES[3], place), CASES[3], file)
        taken = _plan(file, place / "plan.json")
        _row(f"`plan rebalance --snapshot {file.name} --out plan.json`", taken, place / "plan.json")
        facts = json.loads((place / "plan.facts.json").read_text(encoding="utf-8"))["totals"]
        print(f"\n{facts['moves']:,} moves, {facts['gap']:.2%} above the bound")


def _snapshots(folder: Path) -> list[Path]:
    properties = folder / "client.properties"
    properties.write_text(PROPERTIES, encoding="ascii")
    files = [folder / f"cluster.{form}" for form in FORMS]
    with served("--scenario", SCENARIO) as twin:
        for file in files:
            arguments = ("--command-config", properties, "--bootstrap-server", twin.bootstrap_servers, "--out", file)
            _row(f"`snapshot --out {file.name}`", run([*KREASSIGN, "snapshot", *map(str, arguments)]), file)
        tables = (*arguments[:4], "--data", folder / "data")
        _row("`snapshot --data data`", run([*KREASSIGN, "snapshot", *map(str, tables)]))
    return files


def _load(file: Path) -> Run:
    program = (
        "import sys; from pathlib import Path; from kreassign.operations.snapshot_files import read_snapshot_columns"
    )
    return run([sys.executable, "-c", f"{program}; read_snapshot_columns(Path(sys.argv[1]))", str(file)])


def _plan(file: Path, out: Path) -> Run:
    command = [*KREASSIGN, "plan", "rebalance", "--snapshot", str(file), "--out", str(out)]
    run(command)  # so that the compiled code is there
    return run(command)


def _row(what: str, taken: Run, file: Path | None = None) -> None:
    size = "" if file is None else f"{file.stat().st_size / 1e6:.1f}"
    print(f"| {what} | {taken.wall_s:.1f} | {taken.cpu_s:.1f} | {taken.peak_mib:.0f} | {size} |", flush=True)
