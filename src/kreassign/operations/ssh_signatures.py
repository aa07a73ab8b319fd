"""Sign and verify with `ssh-keygen -Y`: the one place that starts it. Keys and their agents are its business."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from kreassign.errors import InputError, machine_reason
from kreassign.model.approvals import Purpose, Signature
from kreassign.model.text import printable

PROGRAM = "ssh-keygen"
VERIFY_S = 20.0
"""Patience with a verification, which asks nobody."""

SIGN_S = 300.0
"""Patience with a signature, for which a passphrase may be typed or a key touched."""

_LONGEST = 200
"""Characters of its message that are shown."""

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


def is_signed_with(key: Path, content: bytes, signature: Path, purpose: Purpose) -> bool:
    """True if this key made the signature; a private key is not asked for its passphrase."""
    own = _run(("-l", "-f", str(key)), b"", VERIFY_S).stdout.split()[1:2]
    signer = _run(("-Y", "check-novalidate", "-n", purpose, "-s", str(signature)), content, VERIFY_S).stdout.split()[
        -1:
    ]
    return bool(own) and own == signer


def _run(arguments: Sequence[str], content: bytes, seconds: float) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run((PROGRAM, *arguments), input=content, capture_output=True, timeout=seconds, check=False)
    except FileNotFoundError as error:
        raise InputError(
            f"{PROGRAM} is not installed, which signs and verifies approvals; install OpenSSH 8.9 or later"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise InputError(f"{PROGRAM} did not answer within {seconds:g} s, and was ended") from error
    except OSError as error:
        raise InputError(f"{PROGRAM} could not be started: {machine_reason(error)}") from error


def _reason(done: subprocess.CompletedProcess[bytes]) -> str:
    lines = done.stderr.decode(errors="replace").splitlines()
    return printable(lines[0].strip()[:_LONGEST]) if lines else f"exit code {done.returncode}"
