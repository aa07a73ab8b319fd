"""Where the journals of runs are kept, how a run is found among them, and who is asking."""

from __future__ import annotations

import os
import pwd
import sys
from pathlib import Path

from kreassign.errors import InputError
from kreassign.executor.events import Operator
from kreassign.executor.journal import SUFFIX, active_run_in, find_journals
from kreassign.executor.journal.paths import make_folder

LAST = "last"
"""In place of an id: the run that began last."""


def default_state_dir() -> Path:
    """`kreassign` below XDG_STATE_HOME, or below `~/.local/state`."""
    state_home = os.environ.get("XDG_STATE_HOME")
    return (Path(state_home) if state_home else Path.home() / ".local" / "state") / "kreassign"


def make_state_dir(folder: Path) -> None:
    """Make it where it is missing: only its owner may enter it, whatever the umask says."""
    make_folder(folder)


def is_active(path: Path) -> bool:
    """Whether a process is writing this journal now."""
    return active_run_in(path.parent) == path.stem


def this_operator() -> Operator:
    """Who executes this process, and by which command."""
    user = os.geteuid()
    try:
        name = pwd.getpwuid(user).pw_name
    except KeyError:  # a container may run under a number that nobody named
        name = str(user)
    command, *arguments = sys.argv or [""]
    return Operator(name, os.uname().nodename, tuple(map(_as_text, (Path(command).name, *arguments))))


def _as_text(word: str) -> str:
    """A word of the command line, which may be any bytes, so that a journal can hold it."""
    return word.encode(errors="backslashreplace").decode()


def is_journal(subject: str) -> bool:
    """Whether a text is the path of a journal, and not the id of a run or another file."""
    return subject.endswith(SUFFIX) and Path(subject).is_file()


def all_journals(state_dir: Path) -> tuple[Path, ...]:
    """The journals of all runs, oldest first."""
    return find_journals(state_dir)


def find_journal(state_dir: Path, run: str | None = None) -> Path:
    """The journal of a run, by its id, the path of the journal, or `last` for the latest. Raises InputError.

    Where none is named, it is the one that a process executes, or the latest where none does; where processes execute
    several, on several clusters, they are named.
    """
    if run is None or run == LAST:
        return _unnamed(state_dir, find_journals(state_dir), is_last=run == LAST)
    if is_journal(run):
        return Path(run)
    found = find_journals(state_dir, run)
    if len(found) == 1:
        return found[0]
    if found:
        raise InputError(f"run {run} has journals of {len(found)} clusters in {state_dir}; name the file of one")
    known = ", ".join(path.stem for path in find_journals(state_dir)[-5:]) or "none"
    raise InputError(f"there is no run {run} in {state_dir}; the latest runs are: {known}")


def _unnamed(state_dir: Path, known: tuple[Path, ...], *, is_last: bool) -> Path:
    if not known:
        raise InputError(f"there is no run in {state_dir}; `kreassign run PLAN` begins one")
    active = [] if is_last else [path for path in known if is_active(path)]
    if len(active) > 1:
        named = ", ".join(f"{path.stem} (cluster {path.parent.name})" for path in active)
        raise InputError(f"processes execute {len(active)} runs: {named}; name the one that is meant")
    return active[0] if active else known[-1]
