"""What commits added to a table and deleted from it, between two versions. Compaction does neither."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from pyarrow import fs

from kreassign.pipeline.tables.delta import DataDir, DataFile, commit_of, storage
from kreassign.pipeline.tables.schemas import Table

_AT_ONCE = 16
"""Commits read side by side: an object store takes its time for each, and a day of rounds is thousands."""

_Action = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Changes:
    """The files that hold what was added to a table between two versions, and the paths of those that were deleted.

    Rows that were compacted with others that were added, and with no others, are in the file that came of it.
    """

    added: tuple[DataFile, ...]
    deleted: tuple[str, ...]


def changes_between(data_dir: DataDir, table: Table, after: int, until: int) -> Changes | None:
    """What the commits after one version, until another, added and deleted.

    None when the log no longer has one of these commits, or a file that was added is no longer there.
    """
    system, root = storage(data_dir, table)
    added: dict[str, DataFile] = {}
    deleted: list[str] = []
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        commits = pool.map(lambda version: commit_of(system, root, version), range(after + 1, until + 1))
        try:
            for commit in commits:
                _compact(added, commit)
                for action in commit:
                    if action.get("add", {}).get("dataChange"):
                        file = _file(action["add"])
                        added[file.path] = file
                    elif action.get("remove", {}).get("dataChange"):
                        path = unquote(action["remove"]["path"])
                        if added.pop(path, None) is None:
                            deleted.append(path)
        except FileNotFoundError:
            return None
    infos = system.get_file_info([f"{root}{path}" for path in added])
    if any(info.type is not fs.FileType.File for info in infos):
        return None
    return Changes(tuple(added.values()), tuple(deleted))


def _compact(added: dict[str, DataFile], commit: Iterable[_Action]) -> None:
    """Put files that a commit made by compaction in the place of added ones, part by part of the table.

    Where an older file went into them they hold rows that were there before: there, what was added is read as it was
    written, until vacuum deletes it.
    """
    merged: defaultdict[str | None, list[DataFile]] = defaultdict(list)
    taken: defaultdict[str | None, list[str]] = defaultdict(list)
    for action in commit:
        if "add" in action and not action["add"].get("dataChange"):
            file = _file(action["add"])
            merged[file.part].append(file)
        elif "remove" in action and not action["remove"].get("dataChange"):
            path = unquote(action["remove"]["path"])
            taken[added[path].part if path in added else _part(action["remove"])].append(path)
    # The format leaves it open whether a commit says of which part a removed file was: it may be of any then.
    older = {part for part, paths in taken.items() if any(path not in added for path in paths)}
    if None in older:
        return
    for part, files in merged.items():
        if part in taken and part not in older:
            for path in taken[part]:
                del added[path]
            added.update({file.path: file for file in files})


def _file(action: _Action) -> DataFile:
    stats = json.loads(action.get("stats") or "{}")
    return DataFile(
        unquote(action["path"]),
        action["size"],
        stats.get("numRecords", 0),
        _part(action),
        stats.get("minValues", {}),
        stats.get("maxValues", {}),
    )


def _part(action: _Action) -> str | None:
    """The value of the only column that a table of ours is partitioned by, if any."""
    return next(iter((action.get("partitionValues") or {}).values()), None)
