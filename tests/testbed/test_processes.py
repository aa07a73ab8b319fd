import os
import signal
import subprocess
import sys

from testbed.processes import is_alive, is_stopped
from testbed.waiting import wait_until

_DEAF = "import signal, time; signal.signal(signal.SIGHUP, signal.SIG_IGN); print(1, flush=True); time.sleep(600)"
_PARENT = f"""
import sys
from testbed.processes import ProcessGroup
group = ProcessGroup()
child = group.open([sys.executable, "-c", {_DEAF!r}])
child.stdout.readline()
print(group._guard.pid, child.pid, flush=True)
sys.stdin.read()
"""


def test_a_group_with_a_stopped_process_dies_with_its_parent():
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", _PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as parent:
        assert parent.stdout is not None
        guard, child = (int(word) for word in parent.stdout.readline().split())
        # The kernel hangs up on both when the parent is gone, and only then lets them go on.
        for pid in (guard, child):
            os.kill(pid, signal.SIGSTOP)
        wait_until(lambda: is_stopped(guard) and is_stopped(child), what="both stopped")
        parent.kill()
        assert parent.wait() == -signal.SIGKILL
    try:
        wait_until(lambda: not is_alive(child), what="the child dead")
    finally:
        if is_alive(child):
            os.kill(child, signal.SIGKILL)
