"""Cache of the search's compiled code."""

import importlib
import pickle
import shutil
import sys
from collections.abc import Callable
from importlib.metadata import version as version_of
from pathlib import Path
from types import ModuleType
from zipfile import ZipFile

import numpy as np
import pytest

from kreassign.model import TopicPartition
from kreassign.planner.arrays import FloatArray
from kreassign.planner.search.compiled.machine_code import kept_in

CALLED = """
from kreassign.planner.search.compiled.compiler import compiled_part
@compiled_part
def step(number: int) -> int:
    return number + {step}
"""
CALLER = """
from called import step
from kreassign.planner.search.compiled.compiler import compiled
@compiled
def twice(number: int) -> int:
    return step(step(number))
"""


def loaded(folder: Path, monkeypatch: pytest.MonkeyPatch, package: str = "") -> ModuleType:
    """Module `caller` of a folder, or of a package in it, as a new process would load it."""
    monkeypatch.syspath_prepend(str(folder))
    prefix = package.replace("/", ".")
    for name in (f"{prefix}called", f"{prefix}caller", prefix.rstrip(".")):
        monkeypatch.delitem(sys.modules, name, raising=False)
    importlib.invalidate_caches()
    return importlib.import_module(f"{prefix}caller")


def test_compiled_code_is_renewed_when_a_called_file_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for version, expected in (("one", 12), ("ten", 30)):
        folder = tmp_path / version
        folder.mkdir()
        if version == "ten":  # as an update finds it: the compiled code of the version before beside the new source
            (tmp_path / "one" / "__pycache__").rename(folder / "__pycache__")
        (folder / "called.py").write_text(CALLED.format(step=1 if version == "one" else 10))
        (folder / "caller.py").write_text(CALLER)
        assert loaded(folder, monkeypatch).twice(10) == expected


def _without_its_class(index: Path) -> None:
    version, rest = (pickle.dumps(one) for one in (version_of("numba"), TopicPartition("t", 0)))
    index.write_bytes(version + rest.replace(b"TopicPartition", b"TopicPartitiom"))


@pytest.mark.parametrize(("suffix", "damage"), [
    ("nbi", _without_its_class),  # an update that renamed what the index names
    ("nbi", lambda file: file.write_bytes(b"")),
    ("nbi", lambda file: file.write_bytes(file.read_bytes()[:-9])),
    ("nbc", lambda file: file.write_bytes(file.read_bytes()[:-9])),
    ("nbc", lambda file: file.write_bytes(b"")),
])  # fmt: skip
def test_damaged_compiled_code_is_compiled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, damage: Callable[[Path], object]
) -> None:
    (tmp_path / "called.py").write_text(CALLED.format(step=1))
    (tmp_path / "caller.py").write_text(CALLER)
    assert loaded(tmp_path, monkeypatch).twice(10) == 12
    kept = sorted((tmp_path / "__pycache__").glob(f"*.{suffix}"))
    whole = [one.read_bytes() for one in kept]
    for file in kept:
        damage(file)
    assert loaded(tmp_path, monkeypatch).twice(10) == 12
    assert [len(one.read_bytes()) for one in kept] == list(map(len, whole))


def test_compiled_code_that_cannot_be_written_is_used_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder goes between its first use and the first call, as a full disk or a mount that is gone."""
    (tmp_path / "called.py").write_text(CALLED.format(step=1))
    (tmp_path / "caller.py").write_text(CALLER)
    caller = loaded(tmp_path, monkeypatch)
    shutil.rmtree(tmp_path / "__pycache__")
    (tmp_path / "__pycache__").write_text("")
    assert caller.twice(10) == 12


def test_compiled_code_of_an_archive_is_kept_as_that_of_a_folder_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Spark sends a package to its executors as an archive.
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with ZipFile(tmp_path / "loops.zip", "w") as archive:
        archive.writestr("called.py", CALLED.format(step=1))
        archive.writestr("caller.py", CALLER)
    caller = loaded(tmp_path / "loops.zip", monkeypatch)
    assert caller.twice(10) == 12
    assert list((tmp_path / "cache").rglob("caller.twice*.nbi"))


@pytest.mark.parametrize("package", ["", "package/"])
def test_sources_in_an_archive_are_known_as_those_in_a_folder_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    source_digest = importlib.import_module("kreassign.planner.search.compiled.machine_code").source_digest
    caller = CALLER.replace("from called", "from package.called") if package else CALLER
    found = set()
    for step in (1, 2):
        folder = tmp_path / f"folder{step}"
        (folder / package).mkdir(parents=True)
        with ZipFile(tmp_path / f"loops{step}.zip", "w") as archive:
            for name, text in (("called.py", CALLED.format(step=step)), ("caller.py", caller), ("__init__.py", "")):
                archive.writestr(f"{package}{name}", text)
                (folder / package / name).write_text(text)
        digests = {
            source_digest(loaded(place, monkeypatch, package).twice)
            for place in (folder, tmp_path / f"loops{step}.zip")
        }
        assert len(digests) == 1
        found |= digests
    assert len(found) == 2


def test_what_makes_arrays_is_not_compiled_for_references_would_be_counted() -> None:
    compiler = importlib.import_module("kreassign.planner.search.compiled.compiler")
    with pytest.raises(Exception, match="returning of array"):
        compiler.compiled(_first_row)(np.zeros((2, 2)))


def _first_row(rows: FloatArray) -> FloatArray:
    row: FloatArray = rows[0]
    return row


def test_code_that_can_be_kept_nowhere_is_compiled_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Example: a container with a read-only root, where no folder can be made beside the sources nor in the home."""
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "cache").write_text("")
    folder = tmp_path / "sources"
    folder.mkdir()
    (folder / "__pycache__").write_text("")
    (folder / "called.py").write_text(CALLED.format(step=1))
    (folder / "caller.py").write_text(CALLER)
    caller = loaded(folder, monkeypatch)
    assert caller.twice(10) == 12
    assert kept_in(caller.twice) is None
