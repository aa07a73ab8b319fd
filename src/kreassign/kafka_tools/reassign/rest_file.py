"""The file with what of a plan is still to be submitted: always up to date, so that it is right whatever ends the tool.

It is written before the first batch and after each, and removed once all is submitted: a tool that is killed leaves
it as well as one that fails. A batch whose answer was lost stays in it, for to submit a target twice does no harm; one
that was refused does not, for it would be refused again.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from itertools import count
from pathlib import Path

from kreassign.kafka_tools.reassign import messages
from kreassign.model import TopicPartition
from kreassign.model.plan import Plan
from kreassign.model.plan_json import format_plan


class RestFile:
    """The rest of a plan beside the file that it was read from; without a place it is printed in the end."""

    def __init__(self, plan: Plan, beside: Path | None) -> None:
        self._plan = plan
        self._rest = plan
        self._path = None if beside is None else _reserved(beside)

    def keep(self, partitions: Collection[TopicPartition]) -> None:
        """Only these partitions of the plan are still to be submitted."""
        wanted = set(partitions)
        self._rest = Plan(tuple(entry for entry in self._plan.assignments if entry.topic_partition in wanted))
        if self._path is not None:
            self._write(self._path)

    def end(self) -> None:
        """Say where the rest is if there is one; else remove the file."""
        if self._path is not None and not self._rest.assignments:
            self._path.unlink(missing_ok=True)
        elif self._rest.assignments:
            told = messages.rest_printed(format_plan(self._rest)) if self._path is None else str(self._path)
            counted = messages.rest(told, len(self._rest.assignments), len(self._plan.assignments))
            print(counted, file=sys.stderr, flush=True)

    def _write(self, path: Path) -> None:
        """In one step: a tool that is killed in between leaves the file of before."""
        new = path.with_name(f"{path.name}.new")
        try:
            new.write_text(f"{format_plan(self._rest)}\n", encoding="utf-8")
            new.replace(path)
        except OSError as error:
            print(messages.rest_not_written(path, error.strerror), file=sys.stderr, flush=True)
            self._path = None


def _reserved(plan: Path) -> Path | None:
    """A file of its own beside the plan; None where none can be made. What an earlier call left is not overwritten."""
    for number in count(1):
        path = plan.with_name(f"{plan.stem}.not-submitted{'' if number == 1 else f'-{number}'}.json")
        try:
            path.open("x").close()
        except FileExistsError:
            continue
        except OSError as error:
            print(messages.rest_not_written(path, error.strerror), file=sys.stderr, flush=True)
            return None
        return path
    return None
