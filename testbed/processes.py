"""Processes that never outlive the one that started them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

# Reads until its standard input ends, then kills its process group, itself included. The kernel sends SIGHUP to a group
# with a stopped process when its last link to the session dies: that must not end the guard before it has killed.
_GUARD = """
import os, signal, sys
signal.signal(signal.SIGHUP, signal.SIG_IGN)
os.close(1)
sys.stdin.buffer.read()
os.killpg(0, signal.SIGKILL)
"""


@dataclass(frozen=True, slots=True)
class Finished:
    """A process that has ended: its exit code (negative: minus the signal) and what it wrote."""

    exit_code: int
    stdout: str
    stderr: str


class ProcessGroup:
    """Processes that are killed together: by `close`, or by the end of this Python process, however it ends.

    A guard process leads the group and reads from a pipe of which only this process holds the other end. Whatever ends
    this process, even SIGKILL, closes the pipe, and the guard kills the group; a stopped process dies of that too. A
    child is put into the group before it lets go of its own copy of the pipe, so none can slip through while it is
    being started. The kernel's "signal on the parent's death" (Linux only) was not used: it fires when the *thread*
    that started the child ends, and would need code between fork and exec.
    """

    def __init__(self) -> None:
        self._guard = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _GUARD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            process_group=0,
        )
        assert self._guard.stdout is not None
        with self._guard.stdout as ready:
            ready.read()  # until the guard is deaf to hangups

    def spawn(self, command: Sequence[str], *, log: Path) -> subprocess.Popen[bytes]:
        """Start a process whose output is appended to a file. The caller waits for its end."""
        with log.open("ab") as output:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                process_group=self._guard.pid,
            )

    def open(self, command: Sequence[str]) -> subprocess.Popen[str]:
        """Start a process whose output the caller reads."""
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            process_group=self._guard.pid,
        )

    def converse(self, command: Sequence[str], *, inherited: Sequence[int] = ()) -> subprocess.Popen[bytes]:
        """Start a process with which the caller talks over its standard input and output, or over inherited sockets."""
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=inherited,
            process_group=self._guard.pid,
        )

    def run(self, command: Sequence[str], *, timeout_s: float) -> Finished:
        """Run a process to its end. After `timeout_s` seconds it is killed and TimeoutError raised."""
        with self.open(command) as process:
            try:
                stdout, stderr = process.communicate(timeout=timeout_s)
            except subprocess.TimeoutExpired:
                process.kill()
                stdout, stderr = process.communicate()
                raise TimeoutError(f"{' '.join(command[-4:])}: killed after {timeout_s:g} s; {stderr[-500:]}") from None
            except BaseException:
                process.kill()
                raise
        return Finished(process.returncode, stdout, stderr)

    def close(self) -> None:
        """Kill what still runs."""
        if self._guard.stdin is not None:
            self._guard.stdin.close()
        self._guard.wait()


def is_alive(pid: int) -> bool:
    """True if a process runs; one that is dead and only waits to be collected does not."""
    return bool(_states(pid, "-p") - {"Z"})


def is_stopped(pid: int) -> bool:
    """True if all threads of a process have come to a stop, which they have not yet when it was only told to."""
    return _states(pid, "-L", "-p") == {"T"}


def _states(pid: int, *of: str) -> set[str]:
    listed = subprocess.run(["ps", "-o", "stat=", *of, str(pid)], capture_output=True, text=True, check=False)
    return {line.strip()[:1] for line in listed.stdout.splitlines()}
