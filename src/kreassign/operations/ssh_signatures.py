"""Sign and verify with `ssh-keygen -Y`: the one place that starts it. Keys and their agents are its business."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from kreassign.errors import InputError
from kreassign.model.approvals import Purpose, Signature
from kreassign.model.text import shortened

PROGRAM = "ssh-keygen"
VERIFY_S = 20.0
"""Patience with a verification, which asks nobody."""

SIGN_S = 300.0
"""Patience with a signature, for which a passphrase may be typed or a key touched."""

_KEY = re.compile(r"with (\S+ key \S+)$")


def signed(content: bytes, key: Path, purpose: Purpose) -> bytes:
    """Sign with this key, or with the agent's if it is a public key. Raises InputError."""
    done = _run(("-Y", "sign", "-q", "-f", str(key), "-n", purpose), content, SIGN_S)
    if done.returncode or not done.stdout:
        raise InputError(f"{PROGRAM} did not sign with {key}: {_reason(done)}")
    return done.stdout


def verified(content: bytes, signature: Path, allowed_signers: Path, purpose: Purpose) -> Signature:
    """Find whose signature it is, or why it does not count. Raises InputError if ssh-keygen is missing."""
    place = ("-f", str(allowed_signers), "-s", str(signature))
    found = _run(("-Y", "find-principals", *place), b"", VERIFY_S)
    names = tuple(name for line in found.stdout.decode(errors="replace").splitlines() for name in line.split(","))
    if found.returncode or not names:
        return Signature(signature.name, problem=f"no signer of {allowed_signers} has this key ({_reason(found)})")
    if any(set("*?!") & set(name) for name in names):
        return Signature(signature.name, problem=f"{names[0]} in {allowed_signers} is a pattern, not a name")
    done = found
    for name in names:
        done = _run(("-Y", "verify", *place, "-I", name, "-n", purpose), content, VERIFY_S)
        if done.returncode == 0:
            key = _KEY.search(done.stdout.decode(errors="replace").strip())
            return Signature(signature.name, names, key[1] if key else signature.name)
    return Signature(signature.name, problem=f"not a signature of {names[0]} on this request ({_reason(done)})")


def _run(arguments: Sequence[str], content: bytes, seconds: float) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run((PROGRAM, *arguments), input=content, capture_output=True, timeout=seconds, check=False)
    except FileNotFoundError as error:
        raise InputError(
            f"{PROGRAM} is not installed, which signs and verifies approvals; install OpenSSH 8.9 or later"
        ) from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(f"{PROGRAM} did not answer: {error}") from error


def _reason(done: subprocess.CompletedProcess[bytes]) -> str:
    lines = done.stderr.decode(errors="replace").splitlines()
    return shortened(lines[0].strip()) if lines else f"exit code {done.returncode}"
