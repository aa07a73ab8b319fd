"""Python programs of ours in forks of a process that has imported their modules: they start in a hundredth of a second.

A program finds what it finds in a process that was started for it: words, streams, folder, environment, signals at
their defaults; and it ends as the interpreter does. Only the import of its modules is spared, and that they are taken
apart, which is a second of work each time. What start-up itself does is tested with real processes
(tests/test_startup.py).
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any

from testbed.processes import Finished, ProcessGroup

_NUMBER = struct.Struct(">i")
_REQUEST_BYTES = 1 << 17
_STREAMS = (1, 2)
_HOME = str(Path(__file__).parent.parent)
_PROGRAM = f"import sys; sys.path[0] = {_HOME!r}; from testbed import fork_server; fork_server.main()"


Status = socket.socket
"""Becomes readable when a program has ended; `exit_code_of` reads it."""


@dataclass(frozen=True, slots=True)
class Request:
    """A module to run as `python -m` does, with its words, environment and folder."""

    module: str
    words: Sequence[str]
    environment: Mapping[str, str]
    folder: str


def exit_code_of(status: Status) -> int:
    """Wait for the end of a program; its exit code, minus the signal if one ended it."""
    with status:
        return _number(status)


class Forked:
    """A program that runs, or ran; what tests use of `subprocess.Popen`, and nothing else."""

    def __init__(self, pid: int, status: socket.socket, stdout: IO[str], stderr: IO[str]) -> None:
        self.pid = pid
        self.stdout = stdout
        self.stderr = stderr
        self.returncode: int | None = None
        self._status = status

    def poll(self) -> int | None:
        """Its exit code, None while it runs."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; its exit code, minus the signal if one ended it. TimeoutExpired as of `subprocess`."""
        if self.returncode is None:
            with selectors.DefaultSelector() as selector:
                selector.register(self._status, selectors.EVENT_READ)
                if not selector.select(timeout):
                    raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
            self.returncode = _number(self._status)
            self._status.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send it a signal, if it runs."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it with SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """End it with SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Read both streams to their ends and wait for its end; what they held that nobody had read before."""
        found: dict[IO[str], str] = {}

        def read(stream: IO[str]) -> None:
            found[stream] = "" if stream.closed else stream.read()

        threads = [threading.Thread(target=read, args=(stream,), daemon=True) for stream in (self.stdout, self.stderr)]
        for thread in threads:
            thread.start()
        self.wait(timeout)
        for thread in threads:
            thread.join(timeout)
        if any(thread.is_alive() for thread in threads):
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
        for stream in (self.stdout, self.stderr):
            stream.close()
        return found[self.stdout], found[self.stderr]


class ForkServer:
    """Starts programs. It ends, with all that it started, with this process."""

    def __init__(self) -> None:
        self._group = ProcessGroup()
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = [sys.executable, "-c", _PROGRAM, str(theirs.fileno())]
            self._process = self._group.converse(command, inherited=(theirs.fileno(),))
        self._turn = threading.Lock()

    def start(
        self, module: str, *words: str, imports: Sequence[str] = (), environment: Mapping[str, str] | None = None
    ) -> Forked:
        """Run a module as `python -m` does; with what is to be imported, once, before it is forked."""
        request = Request(module, words, dict(os.environ if environment is None else environment), str(Path.cwd()))
        with ExitStack() as stack:
            pipes = [os.pipe() for _ in _STREAMS]
            for _, theirs in pipes:
                stack.callback(os.close, theirs)
            pid, status = self.start_on(request, [theirs for _, theirs in pipes], imports)
        stdout, stderr = (os.fdopen(ours, encoding="utf-8") for ours, _ in pipes)
        return Forked(pid, status, stdout, stderr)

    def start_on(self, request: Request, streams: Sequence[int], imports: Sequence[str] = ()) -> tuple[int, Status]:
        """Run a module whose output and errors go to two open files; its process id, and what tells of its end."""
        status, theirs = socket.socketpair()
        content = json.dumps({**asdict(request), "imports": imports}).encode()
        with theirs, self._turn:
            socket.send_fds(self._requests, [content], [theirs.fileno(), *streams])
        return _number(status), status

    def run(self, module: str, *words: str, imports: Sequence[str] = (), timeout_s: float = 120) -> Finished:
        """Run a module to its end. After `timeout_s` seconds it is killed and TimeoutExpired raised."""
        program = self.start(module, *words, imports=imports)
        try:
            stdout, stderr = program.communicate(timeout_s)
        except BaseException:
            program.kill()
            program.communicate()
            raise
        assert program.returncode is not None
        return Finished(program.returncode, stdout, stderr)

    def close(self) -> None:
        """End the server and all that it started."""
        self._group.close()
        self._requests.close()
        self._process.communicate()


@cache
def fork_server() -> ForkServer:
    """The server of this process, started by the first who asks."""
    server = ForkServer()
    atexit.register(server.close)
    return server


def _number(source: socket.socket) -> int:
    content = source.recv(_NUMBER.size, socket.MSG_WAITALL)
    if len(content) < _NUMBER.size:
        raise EOFError("the process that forks programs has ended")
    number: int = _NUMBER.unpack(content)[0]
    return number


# The other end.


def _serve(requests: socket.socket) -> dict[str, Any]:
    """Fork on request for ever; in each child, return what it is to do."""
    running: dict[int, int] = {}
    heard, said = os.pipe()
    os.set_blocking(said, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)  # or nothing would be written to the pipe
    signal.set_wakeup_fd(said)
    selector = selectors.DefaultSelector()
    selector.register(heard, selectors.EVENT_READ)
    selector.register(requests, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            if key.fileobj is heard:
                os.read(heard, 1024)
                _reap(running)
                continue
            content, handles, _, _ = socket.recv_fds(requests, _REQUEST_BYTES, 1 + len(_STREAMS))
            if not content:
                sys.exit()
            request: dict[str, Any] = json.loads(content)
            for name in request["imports"]:
                importlib.import_module(name)
            gc.freeze()  # or each child would copy, while it looks for garbage, all the memory of what was imported
            if pid := os.fork():
                os.write(handles[0], _NUMBER.pack(pid))
                running[pid] = handles[0]
                for handle in handles[1:]:
                    os.close(handle)
                continue
            selector.close()
            requests.close()
            for handle in (heard, said, handles[0], *running.values()):
                os.close(handle)
            for handle, stream in zip(handles[1:], _STREAMS, strict=True):
                os.dup2(handle, stream)
                os.close(handle)
            return request


def _reap(running: dict[int, int]) -> None:
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        handle = running.pop(pid)
        os.write(handle, _NUMBER.pack(os.waitstatus_to_exitcode(status)))
        os.close(handle)


def _run(request: Mapping[str, Any], codes: list[int]) -> None:
    """Be the program that was asked for; note its exit code."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    module = request["module"]
    sys.argv = [module, *request["words"]]
    sys.modules.pop(module, None)  # or Python would warn that it is there before it runs
    code: str | int | None = None
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        code = end.code
    codes.append(int(code is not None) if not isinstance(code, int) else code)
    sys.exit(code)


def _end(codes: list[int]) -> None:
    """End as the last act at exit, without taking apart what was imported: that would copy its memory."""
    if codes:
        with suppress(OSError):  # whoever cannot write fails as at the end of the interpreter
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(codes[0])


def main() -> None:
    """Be the server, and in each child what was asked for."""
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    codes: list[int] = []
    atexit.register(_end, codes)
    request = _serve(socket.socket(fileno=int(sys.argv[1])))
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _run(request, codes)
