"""`kreassign demo`: a change of a simulated cluster, from the first look to the way back, as users type it.

In the middle the process of the run is killed. All is in a temporary folder, the state directory too.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from shlex import join
from typing import NamedTuple

import click

from kreassign.cli.next_command import CLUSTER, next_command, print_next
from kreassign.cli.options.run_id import STATE_ENVIRONMENT
from kreassign.cli.output import examples
from kreassign.cli.profiles import ADDRESS_ENVIRONMENT, CONFIG_ENVIRONMENT
from kreassign.cli.terminal import handled
from kreassign.clock import SYSTEM_CLOCK
from kreassign.errors import ExecutionError
from kreassign.operations.twin import serve_twin

SCENARIO = "skewed"
THROTTLE = ("--throttle", "300MB/s")
KILLED_AFTER = 3
"""Completed moves after which the process of the run is killed."""
COMPLETE = " complete"
"""End of the line about a completed move."""

PROMPT, KILL = "$ ", "$ kill -9 "


class DemoStep(NamedTuple):
    """A step of the demo: its title, and the words of its commands; `kills` if the last one is killed."""

    title: str
    commands: tuple[tuple[str, ...], ...]
    kills: bool = False


STEPS = (
    DemoStep("Doctor: look at the cluster, change nothing", (("doctor",),)),
    DemoStep(
        "Plan: even brokers for few bytes; the file has the format of Kafka's own tool",
        (("plan", "--out", "plan.json", "--current-out", "before.json"),),
    ),
    DemoStep(
        "Rehearse: the same plan on a simulation of the cluster, in virtual time",
        (("snapshot", "--out", "cluster.json"), ("rehearse", "plan.json", "--snapshot", "cluster.json", *THROTTLE)),
    ),
    DemoStep(
        f"Run it, throttled, and kill the process when {KILLED_AFTER} moves are complete",
        (("run", "plan.json", "--expect-current", "before.json", "--yes", *THROTTLE),),
        kills=True,
    ),
    DemoStep("What is left: brokers go on copying, throttled, and the journal knows all of it", (("status",),)),
    DemoStep("Resume: finish the run, and set every throttle to what it was before", (("resume",),)),
    DemoStep("Verify: the cluster is as the plan says", (("verify", "plan.json"),)),
    DemoStep("Doctor again: is a throttle left behind?", (("doctor",),)),
    DemoStep("Roll back: move everything to where it was", (("rollback", "--yes", *THROTTLE),)),
    DemoStep("Verify: the cluster is as it was before the plan", (("verify", "before.json"),)),
)


@examples("kreassign demo")
@click.command()
def demo() -> None:
    """Show a change of a simulated cluster, from a look to the way back.

    Doctor, plan, rehearse, run, kill -9, resume, verify and rollback, each as the command that you would type, in about
    two minutes. No cluster of yours is asked, whatever the configuration says, and nothing is left on this machine.
    """
    clock = SYSTEM_CLOCK
    started_s = clock.monotonic_s()
    # End as by Ctrl-C when the terminal is closed or a service manager asks for it, so that nothing is left.
    with handled(dict.fromkeys((signal.SIGTERM, signal.SIGHUP), signal.default_int_handler)):
        walk()
    click.echo(f"\nAll of it took {clock.monotonic_s() - started_s:.0f} s, and its files are removed.")
    click.echo("On a cluster of yours, begin with the first command, which only looks.")
    print_next(next_command("doctor", takes=CLUSTER))


def walk(*, speed: float = 1.0) -> None:
    """Show all steps on a twin of that many seconds per second. Raises ExecutionError if a command fails."""
    with tempfile.TemporaryDirectory(prefix="kreassign-demo-") as name, serve_twin(SCENARIO, speed=speed) as twin:
        folder = Path(name)
        click.echo(
            "A simulated cluster of five brokers, which speak Kafka. Broker 0 holds nearly half of all bytes, the"
        )
        click.echo("fifth none, and producers keep writing. It lives in this process, its files in a folder that is")
        click.echo(f"removed at the end: {folder}\n")
        servers = twin.bootstrap_servers.partition(",")[0]
        click.echo(f"{PROMPT}export {ADDRESS_ENVIRONMENT}={servers}")
        environment = _environment(folder, servers)
        for number, step in enumerate(STEPS, start=1):
            click.echo(f"\n── {number} of {len(STEPS)}. {step.title}")
            for words in step.commands:
                click.echo(f"{PROMPT}{join(('kreassign', *words))}")
                (_kill if step.kills else _finish)(words, folder, environment)


def _environment(folder: Path, servers: str) -> dict[str, str]:
    """Variables of the commands: none of the user's own options, profiles and journals."""
    return {
        **{name: text for name, text in os.environ.items() if not name.startswith("KREASSIGN_")},
        ADDRESS_ENVIRONMENT: servers,
        STATE_ENVIRONMENT: str(folder / "state"),
        CONFIG_ENVIRONMENT: os.devnull,
    }


def _command(words: tuple[str, ...]) -> list[str]:
    return [sys.executable, "-m", "kreassign", *words]


def _finish(words: tuple[str, ...], folder: Path, environment: Mapping[str, str]) -> None:
    """Run a command to its end, on this terminal."""
    code = subprocess.run(_command(words), check=False, cwd=folder, env=environment).returncode
    if code:
        raise ExecutionError(f"the demo ended early: `{join(('kreassign', *words))}` ended with exit code {code}")


def _kill(words: tuple[str, ...], folder: Path, environment: Mapping[str, str]) -> None:
    """Run a command, and kill its process when enough moves are complete."""
    completed = 0
    with subprocess.Popen(
        _command(words), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=folder, env=environment
    ) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                click.echo(line, nl=False)
                completed += line.rstrip("\n").endswith(COMPLETE)
                if completed == KILLED_AFTER:
                    click.echo(f"{KILL}{process.pid}")
                    return
        finally:
            process.kill()
    raise ExecutionError(f"the demo ended early: the run ended with exit code {process.returncode} before its kill")
