"""Locks: each version of constraints.txt with hashes, no address, and nothing else."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from hashlib import sha256
from importlib.metadata import distributions
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from scripts.lock import PURPOSES, install, uv_settings
from tests.checks.source import ROOT

PIN = re.compile(r"([A-Za-z0-9._-]+)==([^\s;]+)")
EACH = pytest.mark.parametrize("name", PURPOSES)


def pins(path: Path) -> dict[str, str]:
    """Version by name, of a file with one at the beginning of a line."""
    found = (PIN.match(line) for line in path.read_text(encoding="utf-8").splitlines())
    return {canonicalize_name(match[1]): match[2] for match in found if match}


def lock(name: str) -> Path:
    return ROOT / "locks" / f"{name}.lock"


def entries(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Packages to install, and their hashes."""
    joined = re.sub(r"\\\n", " ", text)
    for line in filter(None, (line for line in joined.splitlines() if not line.startswith("#"))):
        first, *words = re.split(r"\s+--hash=", line.strip())
        yield first, tuple(words)


@EACH
def test_each_entry_is_one_version_with_hashes_and_no_address(name: str) -> None:
    found = dict(entries(lock(name).read_text(encoding="utf-8")))
    assert found
    for entry, hashes in found.items():
        assert PIN.match(entry), entry
        assert hashes, entry
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", each) for each in hashes), entry
    assert not re.search(
        r"://|--index|--find-links|(^|\s)-[ief]\b", lock(name).read_text(encoding="utf-8"), re.MULTILINE
    )


def test_each_pin_is_locked_and_each_lock_is_of_a_pin() -> None:
    pinned = pins(ROOT / "constraints.txt")
    locked = {one: version for name in PURPOSES if name != "s3" for one, version in pins(lock(name)).items()}
    assert locked == pinned, "run `make lock`"
    assert pins(lock("s3")) == pins(ROOT / "tests/s3/requirements.txt"), "run `make lock`"
    for name in set(PURPOSES) - {"s3"}:
        assert pins(lock(name)).items() <= pinned.items(), name


def test_what_each_lock_was_made_for_is_in_it() -> None:
    assert {"pip", "setuptools", "uv"} == pins(lock("build")).keys()
    assert {"pytest", "mkdocs", "pyspark", "uvicorn", "click"} <= pins(lock("develop")).keys()
    assert {"gssapi", "boto3", "pyspark", "uvicorn", "click"} <= pins(lock("product")).keys()
    assert not {"pytest", "mkdocs", "pip"} & pins(lock("product")).keys()


def test_everything_that_is_installed_here_is_locked() -> None:
    locked = pins(lock("develop")) | pins(lock("build"))
    here = {canonicalize_name(one.name): one.version for one in distributions(path=[str(site_packages())])}
    del here["kreassign"]
    assert {name: version for name, version in here.items() if locked.get(name) != version} == {}


def site_packages() -> Path:
    """Folder in which pip has put the packages."""
    return Path(pytest.__file__).parent.parent


def test_all_that_make_installs_from_an_index_it_installs_by_hashes() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    by_pip = set(re.findall(r"\$\(PIP\) (.*)", makefile))
    assert by_pip == {"--require-hashes -r locks/build.lock", "--no-deps --no-build-isolation -e ."}
    assert len(re.findall(r"\$\(INSTALL\) (?:locks/|\$<)", makefile)) >= 3
    # No lock has the release of PySpark that `make spark-next` tries.
    assert "pip install" not in re.sub(r"^PIP := .*|.* pyspark==\$\(VERSION\)$", "", makefile, flags=re.MULTILINE)


def test_a_file_with_another_content_than_was_locked_is_not_installed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Install as `make` does, a package that was replaced by another."""
    wheel = tmp_path / "thing-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("thing.py", "")
        archive.writestr("thing-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: thing\nVersion: 1.0\n")
        archive.writestr("thing-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("thing-1.0.dist-info/RECORD", "")
    places = {}
    for name, digest in (("true", sha256(wheel.read_bytes()).hexdigest()), ("false", "0" * 64)):
        (tmp_path / f"{name}.lock").write_text(f"thing==1.0 --hash=sha256:{digest}\n")
        places[name] = tmp_path / name
        words = ("--no-index", "--find-links", str(tmp_path), "--target", str(places[name]))
        assert install(str(tmp_path / f"{name}.lock"), *words) == (name == "false")
    assert "Hash mismatch for `thing==1.0`" in capfd.readouterr().err
    assert (places["true"] / "thing.py").exists()
    assert not (places["false"] / "thing.py").exists()


def test_uv_asks_the_index_that_pip_was_told_of() -> None:
    told = (
        ":env:.index-url='https://mirror.example/simple'\nglobal.index-url='https://other.example'\nglobal.timeout='9'"
    )
    for lines in (told.splitlines(), reversed(told.splitlines())):
        assert uv_settings("\n".join(lines)) == {"UV_DEFAULT_INDEX": "https://mirror.example/simple"}
    assert uv_settings("") == {}
    assert uv_settings(":env:.find-links='wheels'\n") == {"UV_FIND_LINKS": "wheels"}
