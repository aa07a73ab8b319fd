"""What can happen to the rights and to the logins of a run that comes in by SASL."""

from __future__ import annotations

import time

from testbed.security import USERS
from testbed.waiting import wait_until
from tests.torture.scene import LOGIN_S, OPERATOR, Scene

REVOKED_S, LOCKED_S = 15.0, 10.0
CONFIGS_TOOL = "kafka.admin.ConfigCommand"


def revoke_permissions(scene: Scene) -> str:
    """All rights of the run's user but those to look are taken away, and given back."""
    if not scene.is_running():
        return ""
    scene.let_look()
    scene.repair_after(REVOKED_S, scene.let_change)
    return f"the right to change anything revoked for {REVOKED_S:.0f} s"


def outlive_logins(scene: Scene) -> str:
    """The run goes on for longer than brokers believe a login (KIP-368)."""
    until_s = scene.begun_s + 3 * LOGIN_S
    wait_until(
        lambda: time.monotonic() >= until_s or not scene.is_running(), timeout_s=5 * LOGIN_S, what="the end of logins"
    )
    return f"logins of {LOGIN_S:.0f} s ended" if scene.is_running() else ""


def lock_out(scene: Scene) -> str:
    """The password of the run's user is another one for a while, so that no login can be renewed."""
    if not scene.is_running():
        return ""
    _set_password(scene, "another-secret")
    scene.repair_after(LOCKED_S, lambda: _set_password(scene, USERS[OPERATOR]))
    return f"another password for {LOCKED_S:.0f} s" if scene.is_running() else ""


def _set_password(scene: Scene, password: str) -> None:
    of_user = ("--entity-type", "users", "--entity-name", OPERATOR)
    setting = f"SCRAM-SHA-256=[iterations=4096,password={password}]"
    done = scene.tool(CONFIGS_TOOL, "--alter", *of_user, "--add-config", setting)
    if done.exit_code:
        raise OSError(f"the password could not be set: {done.stderr}")
