"""`make demo`: the whole workflow on a simulated cluster, one `kreassign` command per step, in one to two minutes.

The cluster is the twin of the scenario `skewed`: four brokers with unevenly placed data that grows, and a fifth,
empty one. Then snapshot → samples → load model → plan → run, watched from a second process → verify → report. The load
model is made by Spark; on a machine without Java the plan is made from the snapshot alone, and the demo says so. A twin
has no records that could be read back; instead every copy is asked how much of its log it has.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kreassign.admin import AdminClient, client_settings
from kreassign.model.snapshot import ClusterSnapshot, parse_snapshot
from kreassign.operations.twin import scenario_file
from testbed.demo_console import export_bootstrap, kreassign, run_kreassign, step, words
from testbed.errors import CopiesIncomplete
from testbed.waiting import wait_until

OUTPUT = Path("build/demo")
SCENARIO = "skewed"
PREREQUISITES = ("bash", "scripts/prerequisites.sh", "java")
THROTTLE = "500MB/s"
# A copy in sync is as far as the producers were when its broker was asked; a broker is asked within this time.
ASKED_WITHIN_S = 5


def main() -> None:
    """Run the workflow; ends with 1 and one line if a step fails."""
    shutil.rmtree(OUTPUT, ignore_errors=True)
    OUTPUT.mkdir(parents=True)
    started = time.monotonic()
    try:
        _walk()
    except (CopiesIncomplete, TimeoutError) as error:
        sys.exit(f"demo: {error}")
    except subprocess.CalledProcessError as error:
        sys.exit(f"demo: `{words(error.cmd)}` ended with exit code {error.returncode}")
    print(f"\nThe workflow took {time.monotonic() - started:.0f} s. Open {(OUTPUT / 'report.html').resolve()}")
    print("`make demo-kafka` walks it on real Kafka, and reads every acknowledged record back.")


def _walk() -> None:
    print(f"A simulated cluster, one process that speaks Kafka for all of its brokers, of the scenario {SCENARIO}:\n")
    print("\n".join(line.removeprefix("# ").rstrip("#") for line in _paragraph(scenario_file(SCENARIO))))
    data, snapshot = OUTPUT / "data", OUTPUT / "before.json"
    with _cluster() as bootstrap_servers:
        export_bootstrap(bootstrap_servers)
        with step("Snapshot: what is where, how large, and how fast it grows"):
            run_kreassign("snapshot", "--data", data, "--out", snapshot, "--measure-for", "2s")
        loads = _loads(data, snapshot)
        with step("Plan: even brokers for few bytes"):
            run_kreassign("plan", *loads, "--out", OUTPUT / "plan.json")
        with step(f"Run, paced at {THROTTLE} per broker, and watch it from a second process"):
            journal = _run_and_watch(OUTPUT / "plan.json")
        with step("Verify: replicas, order, ISR, leaders, throttles"):
            run_kreassign("verify", OUTPUT / "plan.json")
        with step("Look at every copy: is all of its log there?"):
            print(check_copies(bootstrap_servers, parse_snapshot(snapshot.read_text(), str(snapshot))))
        with step("Report: before and after"):
            run_kreassign("snapshot", "--data", data)
            run_kreassign("report", "--data", data, "--run", journal, "--out", OUTPUT / "report.html")


def _loads(data: Path, snapshot: Path) -> tuple[str, Path]:
    """What to plan by, as an option of `plan`: the load model if Spark can run here, else the snapshot."""
    with step("Samples and load model: how much is written to each partition, on Spark"):
        if missing := missing_for_spark():
            print(
                f"{missing}\nwithout it there is no load model here; the snapshot has sizes and rates to plan by, too"
            )
            return "--snapshot", snapshot
        run_kreassign("collect", "--data", data, "--interval", "2s", "--rounds", "4")
        run_kreassign("load", "--data", data)
        return "--from-load", data


def missing_for_spark() -> str:
    """What this machine lacks to run Spark, and how to get it; empty if nothing."""
    return subprocess.run(PREREQUISITES, capture_output=True, text=True, check=False).stderr.strip()


def _paragraph(scenario: Path) -> list[str]:
    """What the comment at the top of a scenario says."""
    return scenario.read_text(encoding="utf-8").partition("\n\n")[0].splitlines()


@contextmanager
def _cluster() -> Iterator[str]:
    """The twin, for the length of the block; its bootstrap servers."""
    with step("Start the cluster"):
        command = kreassign("twin", "start", "--scenario", SCENARIO, "--port", "0")
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        print("".join(lines), end="")
        if not lines[-1]:
            raise subprocess.CalledProcessError(process.wait(), command)
    try:
        yield lines[1].partition(": ")[2].strip()
    finally:
        process.terminate()
        process.communicate()


def _run_and_watch(plan: Path) -> Path:
    """Execute the plan in the background and show its progress as anybody can; the journal of the run."""
    state = OUTPUT / "state"
    command = kreassign("run", plan, "--yes", "--throttle", THROTTLE, "--state-dir", state)
    with (OUTPUT / "run.txt").open("w") as output:
        running = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        try:
            wait_until(lambda: _has_begun(running, state), what="the journal of the run")
            if journals := list(state.rglob("*.sqlite")):
                run_kreassign("watch", journals[0])
        finally:
            exit_code = running.wait()
    if exit_code:
        print((OUTPUT / "run.txt").read_text(), end="")
        raise subprocess.CalledProcessError(exit_code, command)
    return journals[0]


def _has_begun(running: subprocess.Popen[bytes], state: Path) -> bool:
    return running.poll() is not None or any(state.rglob("*.sqlite"))


def check_copies(bootstrap_servers: str, before: ClusterSnapshot) -> str:
    """Ask every broker for every copy; a sentence if all have their whole log, CopiesIncomplete if not."""
    ends = {key: partition.end_offset or 0 for key, partition in before.partitions}
    rates = {key: partition.write_bytes_per_s or 0.0 for key, partition in before.partitions}
    with AdminClient.connect(client_settings(bootstrap_servers=bootstrap_servers)) as client:
        answers = client.replica_status(ends)
    answers.raise_if_any()
    copies = [copy for found in answers.ok.values() for copy in found]
    for copy in copies:
        allowed = rates[copy.topic_partition] * ASKED_WITHIN_S
        if (copy.lag_bytes or 0) > allowed or copy.log_end_offset < ends[copy.topic_partition]:
            raise CopiesIncomplete(f"broker {copy.broker} lacks {copy.lag_records} records of {copy.topic_partition}")
    written = sum(copy.log_end_offset - ends[copy.topic_partition] for copy in copies if copy.is_leader)
    return (
        f"all {len(copies)} copies of {len(ends)} partitions have everything that was there before the moves, and what "
        f"producers added since: {written} records"
    )


if __name__ == "__main__":
    main()
