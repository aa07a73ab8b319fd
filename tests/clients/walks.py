"""Walks over two clusters, and what differs between them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

from kreassign.admin import AdminClient, client_settings
from tests.clients.programs import ROOT, Program

WALK_TIMEOUT_S = 600.0
_PREPARATION_MS = 120_000
Found = Mapping[str, object]
"""What a walk found, by step."""


class BrokenWalkError(Exception):
    """A program ended in the middle of its walk."""


def prepare(bootstrap: str) -> None:
    """Let a cluster create the topic in which it keeps groups, which takes a while."""
    with AdminClient.connect(client_settings(bootstrap_servers=bootstrap)) as client:
        client.describe_group("nobody", timeout_ms=_PREPARATION_MS)


def walk(program: Program, bootstrap: str, topic: str) -> Found:
    """Readings of a client in a cluster. No other test uses `topic`."""
    ended = subprocess.run(
        (*program.command, bootstrap, topic), cwd=ROOT, timeout=WALK_TIMEOUT_S, check=False, capture_output=True,
        text=True,
    )  # fmt: skip
    lines = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith('{"')]
    if ended.returncode != 0:
        last = lines[-1]["step"] if lines else "its start"
        raise BrokenWalkError(f"{program.client} ended after {last!r} with {ended.returncode}: {ended.stderr[-2_000:]}")
    return {line["step"]: line["found"] for line in lines}


@dataclass(frozen=True, slots=True)
class Difference:
    """A step that a client finds otherwise on a twin than on real brokers."""

    step: str
    on_twin: object
    on_kafka: object


def differences(on_twin: Found, on_kafka: Found) -> tuple[Difference, ...]:
    """The steps that differ, in their order."""
    assert list(on_twin) == list(on_kafka), "the same program takes the same steps"
    return tuple(Difference(step, on_twin[step], on_kafka[step]) for step in on_twin if on_twin[step] != on_kafka[step])
