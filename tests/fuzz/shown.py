"""Names that want to take over a terminal, on a pseudo-terminal: what a person would see of them."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from random import Random

from kreassign.executor.events import PlannedMove
from kreassign.executor.journal import Journal
from kreassign.model import TopicPartition
from kreassign.model.snapshot import parse_snapshot
from kreassign.operations.snapshot_files import write_snapshot
from tests.campaigns.campaign import BrokenError
from tests.executor.run_events import started
from tests.fuzz.commands import unfit
from tests.fuzz.files import CLUSTER
from tests.fuzz.target import Attempt, Target

NAMES = ("\x1b[2JEVIL", "\x1b]0;EVIL\x07", "\x9b31mEVIL", "\u202eEVIL", "\u2066EVIL", "EVIL\rgood", "\x85EVIL",
         "\u2028EVIL", "\x08\x7fEVIL", "[red]EVIL[/red]", "EVIL\nrm -rf /")  # fmt: skip
_OURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")
"""What rich and a terminal write by themselves: colours, the cursor, line ends."""
SLOWEST_S = 60.0


def on_a_terminal(words: list[str], **environment: str) -> tuple[int, str]:
    """Exit of kreassign on a pseudo-terminal of its own, and the screen."""
    ours, theirs = pty.openpty()
    variables = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "120", **environment}
    with subprocess.Popen(
        [sys.executable, "-m", "kreassign", *words], stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs,
        env=variables,
    ) as process:  # fmt: skip
        os.close(theirs)
        shown = b""
        with suppress(OSError):  # EIO at its end
            while chunk := os.read(ours, 1 << 16):
                shown += chunk
        code = process.wait(SLOWEST_S)
    os.close(ours)
    return code, shown.decode("utf-8", "surrogateescape")


def _opened(folder: Path, stack: ExitStack) -> Attempt:
    """Names of topics, racks, hosts, directories, clusters, files and options."""
    state = folder / "state"

    def attempt(chance: Random) -> bool:
        name = chance.choice(NAMES)
        snapshot, plan = folder / "cluster.json", folder / "plan.json"
        text = json.dumps(CLUSTER)
        for field, value in (('"t"', name), ('"a"', name), ('"h"', name), ('"/d"', f"/{name}"), ('"c"', name)):
            if chance.random() < 0.6:
                text = text.replace(field, json.dumps(value))
        found = parse_snapshot(text, "cluster.json")
        write_snapshot(snapshot, found)
        topic = found.topics[0].name
        plan.write_text(
            json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0, "replicas": [3, 2]}]})
        )
        run = started(PlannedMove(TopicPartition(name, 0), (0, 1), (2, 1), 1_000))
        for path in state.rglob("*.sqlite"):
            path.unlink()
        with Journal.create(state, run):
            pass
        choices = (
            ["plan", "rebalance", "--snapshot", str(snapshot), "--explain"],
            ["plan", "check", str(plan), "--snapshot", str(snapshot)],
            ["rehearse", str(plan), "--snapshot", str(snapshot)],
            ["status", "--state-dir", str(state)],
            ["status", "--all", "--state-dir", str(state)],
            ["status", name, "--state-dir", str(state)],
            ["plan", "rebalance", "--snapshot", str(folder / name)],
            ["plan", "rebalance", "--snapshot", str(snapshot), "--goal", name],
            ["plan", "rebalance", "--snapshot", str(snapshot), "--exclude-topics", re.escape(name)],
            ["show-load", "--data", str(folder / name)],
        )  # fmt: skip
        words = chance.choice(choices)
        code, shown = on_a_terminal(words)
        if name not in {"[red]EVIL[/red]", "EVIL\nrm -rf /"} and name in shown:
            raise BrokenError(f"{words} shows {name!r} as it is: {shown[-500:]!r}")
        if seen := unfit(_OURS.sub("", shown)):
            raise BrokenError(f"{words} shows {seen}")
        if "Traceback" in shown or code < 0:
            raise BrokenError(f"{words} ended with {code}: {shown[-1500:]}")
        return code == 0

    return attempt


SHOWN = (Target("names on a pseudo-terminal", _opened, quick=2, share=0.05),)
