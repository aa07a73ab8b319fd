"""A page's commands in one shell, as a reader would give them: bash, with programs of ours in forks.

Bash finds programs of our names first: they hand their words, streams and environment over a socket to the process of
the test, which lets the fork server run them. So pipes, loops, variables and background commands are bash's own, and
a command takes a tenth of a second in place of one or two.
"""

from __future__ import annotations

import os
import select
import shlex
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from testbed.fork_server import Request, exit_code_of, fork_server
from tests.checks.page_commands import Step

PROGRAMS = {
    "kreassign": "kreassign",
    "kafka-reassign-partitions": "kreassign.kafka_tools.reassign_partitions",
    "kafka-leader-election": "kreassign.kafka_tools.leader_election",
    "kafka-preferred-replica-election": "kreassign.kafka_tools.preferred_replica_election",
    "kafka-topics": "kreassign.kafka_tools.topics",
}
# Kafka's archive calls them so, and so do our packages.
PROGRAMS |= {f"{name}.sh": module for name, module in PROGRAMS.items() if name.startswith("kafka-")}
READY = ("tests.pages.ready",)
PATIENCE_S = 120
PAGE_PATIENCE_S = 280
_LONGEST = 1 << 17
_NUMBER = struct.Struct(">i")

_STAND_IN = """\
#!{python} -IS
import os, signal, socket, struct, sys
names = b"\\0".join(os.fsencode(f"{{name}}={{value}}") for name, value in os.environ.items())
words = b"\\0".join(map(os.fsencode, [{module!r}, os.getcwd(), *sys.argv[1:]]))
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as bridge:
    bridge.connect({address!r})
    socket.send_fds(bridge, [words + b"\\0\\0\\0" + names], [1, 2])
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: bridge.send(struct.pack(">i", number)))
    code = struct.unpack(">i", bridge.recv(4) or struct.pack(">i", 1))[0]
sys.exit(code if code >= 0 else 128 - code)
"""

_BEFORE_ALL = """\
set -euo pipefail
OUT={out}
mkfifo "$OUT/never"
wait() {  # PID: also for the program for which it stands, which ends a moment after it was killed
  local code=0 end=$((SECONDS + {patience}))
  builtin wait "$@" || code=$?
  while test -e "$OUT/bin/running-${1-}"; do
    ((SECONDS < end)) || return 97
    read -rt 0.05 _ <>"$OUT/never" || true
  done
  return $code
}
latest-run() { basename -s .sqlite "$(ls "$KREASSIGN_STATE_DIR"/*/*.sqlite | sort | tail -n 1)"; }
says() {  # TEXT COMMAND...: ask until the answer has the text, with a pause after each
  local text=$1 end=$((SECONDS + {patience}))
  shift
  until "$@" 2>/dev/null | grep -F -e "$text" >/dev/null; do
    ((SECONDS < end)) || return 97
    read -rt 0.2 _ <>"$OUT/never" || true
  done
}
written() {  # NUMBER TEXT: wait until a block in the background has written the text
  local end=$((SECONDS + {patience}))
  until grep -sqF -e "$2" "$OUT/$1.out" "$OUT/$1.err"; do
    kill -0 $! && ((SECONDS < end)) || return 97
    read -rt 0.05 _ <>"$OUT/never" || true
  done
}
"""


@dataclass(frozen=True, slots=True)
class Told:
    """Result of a step: its exit code, None if it did not end, and its output."""

    step: Step
    exit_code: int | None
    stdout: str
    stderr: str

    def is_as_expected(self) -> bool:
        """True if the step ended as the page says; a background step need not."""
        return self.exit_code == self.step.exit_code or (self.step.until is not None and self.exit_code == 0)

    def __str__(self) -> str:
        """Place of the step on the page, and the end of its output."""
        end = "does not end" if self.exit_code is None else f"exit code {self.exit_code}"
        said = f"{self.stdout[-1500:]}{self.stderr[-1500:]}"
        return f"line {self.step.line}: {end}\n{self.step.commands}{said}"


def script_of(steps: Sequence[Step], out: Path) -> str:
    """The script of a page. What step N writes is in `N.out` and `N.err` of a folder, its exit code in `N.code`."""
    parts = [_BEFORE_ALL.replace("{out}", shlex.quote(str(out))).replace("{patience}", str(PATIENCE_S))]
    for number, step in enumerate(steps):
        streams = f'>"$OUT/{number}.out" 2>"$OUT/{number}.err" </dev/null'
        done = f'echo 0 >"$OUT/{number}.code"\n'
        if step.until is not None:
            parts.append(f"(\n{step.commands}) {streams} &\nwritten {number} {shlex.quote(step.until)}\n{done}")
        elif step.exit_code:
            parts.append(f'set +e\n(set -e\n{step.commands}) {streams}\necho $? >"$OUT/{number}.code"\nset -e\n')
        else:
            parts.append(f"{{\n{step.commands}}} {streams}\n{done}")
    return "".join(parts)


def run_steps(steps: Sequence[Step], folder: Path, environment: Mapping[str, str], out: Path) -> list[Told]:
    """Give the commands of a page in a folder, to the first that fails; what came of each that was begun."""
    out.mkdir()
    with ExitStack() as stack:
        programs = stack.enter_context(_programs(out / "bin"))
        script = out / "script"
        script.write_text(script_of(steps, out), encoding="utf-8")
        try:
            errors = stack.enter_context((out / "script.err").open("wb"))
            shell = subprocess.Popen(
                ["bash", str(script)],
                cwd=folder,
                env={**environment, "PATH": f"{programs}:{environment['PATH']}"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
            )
            with suppress(subprocess.TimeoutExpired):
                shell.wait(PAGE_PATIENCE_S)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
            shell.wait()
    return [_told(step, number, out) for number, step in enumerate(steps) if (out / f"{number}.out").exists()]


def _told(step: Step, number: int, out: Path) -> Told:
    code, *texts = (out / f"{number}.{name}" for name in ("code", "out", "err"))
    stdout, stderr = (text.read_text(encoding="utf-8", errors="replace") for text in texts)
    return Told(step, int(code.read_text(encoding="utf-8")) if code.exists() else None, stdout, stderr)


@contextmanager
def _programs(folder: Path) -> Iterator[Path]:
    """A folder with our programs, which run while the block does."""
    folder.mkdir()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind("")  # in no folder: paths of tests are too long for a socket
        listener.listen()
        for name, module in PROGRAMS.items():
            program = folder / name
            text = _STAND_IN.format(python=sys.executable, module=module, address=listener.getsockname())
            program.write_text(text, encoding="utf-8")
            program.chmod(0o755)
        thread = threading.Thread(target=_serve, args=(listener, folder))
        thread.start()
        try:
            yield folder
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def _serve(listener: socket.socket, folder: Path) -> None:
    commands = []
    with suppress(OSError):  # the listener is shut down
        while True:
            connection, _ = listener.accept()
            commands.append(threading.Thread(target=_run, args=(connection, folder)))
            commands[-1].start()
    for command in commands:
        command.join()


def _run(connection: socket.socket, programs: Path) -> None:
    """Run what a stand-in asks for, hand signals on to it, end it if the stand-in is gone, and say its exit code.

    A file with the stand-in's process id is there as long as it runs.
    """
    stand_in, _, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    running = programs / f"running-{stand_in}"
    running.touch()
    with connection:
        content, streams, _, _ = socket.recv_fds(connection, _LONGEST, 2)
        asked, _, names = content.partition(b"\0\0\0")
        module, folder, *words = asked.decode().split("\0")
        environment = dict(pair.split("=", 1) for pair in names.decode().split("\0"))
        pid, status = fork_server().start_on(Request(module, words, environment, folder), streams, READY)
        for stream in streams:
            os.close(stream)
        open_end = [connection]
        while True:
            readable, _, _ = select.select([status, *open_end], [], [])
            if status in readable:
                break
            order = connection.recv(_NUMBER.size)
            with suppress(ProcessLookupError):
                os.kill(pid, _NUMBER.unpack(order)[0] if order else signal.SIGKILL)
            if not order:
                open_end = []
        code = exit_code_of(status)
        running.unlink()
        with suppress(OSError):
            connection.send(_NUMBER.pack(code))
