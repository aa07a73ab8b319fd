"""The package as its users get it: built from its source, installed into an environment of its own, used from there."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import urllib.request
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from scripts.lock import settings_for_uv
from tests.checks.source import ROOT

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(900)]

PACKAGED = ("src", "pyproject.toml", "README.md", "LICENSE")
TOOLS = ("kafka-leader-election", "kafka-preferred-replica-election", "kafka-reassign-partitions", "kafka-topics")
PROGRAMS = (*TOOLS, *(f"{tool}.sh" for tool in TOOLS), "kreassign")
EXTRAS = (
    "pyspark", "pandas", "starlette", "uvicorn", "gssapi", "boto3", "pytest", "numba", "pyarrow", "deltalake",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Installed:
    """A home with nothing but kreassign in it, and where its environment is there."""

    home: Path
    environment_at: str = "pipx/venvs/kreassign"

    def run(self, *words: object, code: int = 0) -> subprocess.CompletedProcess[str]:
        """The end of a command, found by its name alone."""
        done = subprocess.run(
            list(map(str, words)), capture_output=True, text=True, check=False, timeout=300, cwd=self.home,
            env=self.environment,
        )  # fmt: skip
        assert done.returncode == code, (words, done.stdout, done.stderr)
        return done

    @property
    def environment(self) -> dict[str, str]:
        """Environment without the sources and without a virtual environment."""
        kept = {name: value for name, value in os.environ.items() if name in {"LANG", "KREASSIGN_TESTS"}}
        return {**kept, "HOME": str(self.home), "PATH": f"{self.home / 'bin'}:/usr/bin:/bin"}

    @property
    def python(self) -> Path:
        """The interpreter of its environment."""
        return self.home / self.environment_at / "bin" / "python"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source distribution, and the wheel that was built from it alone."""
    folder = tmp_path_factory.mktemp("built")
    source = folder / "source"
    source.mkdir()
    for name in PACKAGED:
        place = ROOT / name
        ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
        shutil.copytree(place, source / name, ignore=ignored) if place.is_dir() else shutil.copy(place, source / name)
    build = [sys.executable, "-m", "build", "--outdir", str(folder), str(source)]
    subprocess.run(build, check=True, capture_output=True, timeout=300)
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (found,) = built.glob("kreassign-*-py3-none-any.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Installation by `pipx install`."""
    home = tmp_path_factory.mktemp("home")
    versions = f"-c {ROOT / 'constraints.txt'}"
    subprocess.run(
        [sys.executable, "-m", "pipx", "install", "--python", sys.executable, "--pip-args", versions, str(wheel)],
        check=True, capture_output=True, timeout=600, env={**os.environ, **places_of_pipx(home)},
    )  # fmt: skip
    return Installed(home)


def places_of_pipx(home: Path) -> dict[str, str]:
    """Where pipx installs; with pip, as it does without uv, which it takes where it finds it."""
    places = {"PIPX_HOME": home / "pipx", "PIPX_BIN_DIR": home / "bin", "PIPX_MAN_DIR": home / "man"}
    return {"PIPX_DEFAULT_BACKEND": "pip", **{name: str(place) for name, place in places.items()}}


@pytest.fixture(scope="module")
def installed_with_uv(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Installation of the source distribution with an extra by `uv tool install`; uv builds it, too."""
    (source,) = built.glob("kreassign-*.tar.gz")
    home = tmp_path_factory.mktemp("uv")
    places = {"UV_TOOL_DIR": str(home / "tools"), "UV_TOOL_BIN_DIR": str(home / "bin"), "UV_NO_CONFIG": "1"}
    subprocess.run(
        [str(Path(sys.executable).parent / "uv"), "tool", "install", "--no-python-downloads",
         "--python", sys.executable, "--constraints", str(ROOT / "constraints.txt"),
         f"kreassign[web] @ {source.as_uri()}"],
        check=True, capture_output=True, timeout=600, env={**os.environ, **settings_for_uv(), **places},
    )  # fmt: skip
    return Installed(home, "tools/kreassign")


IMPORT_ALL = """
import importlib, sys
for name in sys.argv[1:]:
    try:
        assert ".whl" in importlib.import_module(name).__file__
    except ModuleNotFoundError as error:  # a library of an extra that the tests do not install
        assert not error.name.startswith("kreassign"), name
"""


def test_every_module_is_imported_from_an_archive(wheel: Path) -> None:
    """`spark-submit --py-files` never unpacks one."""
    source = ROOT / "src"
    files = [file for file in source.rglob("*.py") if file.stem != "__main__"]
    modules = [".".join(file.relative_to(source).with_suffix("").parts).removesuffix(".__init__") for file in files]
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL, *modules], capture_output=True, text=True, check=False, timeout=300,
        env={**os.environ, "PYTHONPATH": str(wheel)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]


@contextmanager
def twin(installed: Installed, *words: str) -> Iterator[str]:
    """A twin that the installed command serves; its bootstrap servers."""
    command = [str(installed.home / "bin" / "kreassign"), "twin", "start", "--port", "0", *words]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=installed.environment, cwd=installed.home
    ) as process:
        try:
            assert process.stdout is not None
            lines = iter(process.stdout.readline, "")
            yield next(line.split(": ")[1].strip() for line in lines if line.startswith("bootstrap servers: "))
        finally:
            process.terminate()


def test_every_file_of_the_package_is_in_the_wheel_and_no_other(wheel: Path) -> None:
    kept = subprocess.run(["git", "ls-files", "src/kreassign"], cwd=ROOT, capture_output=True, text=True, check=True)
    ours = {name.removeprefix("src/") for name in kept.stdout.split() if (ROOT / name).exists()}
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
        licences = [name for name in archive.namelist() if name.endswith("/licenses/LICENSE")]
    assert packed >= ours, sorted(ours - packed)[:10]
    assert {Path(name).parts[0] for name in packed} == {"kreassign"}
    assert len(licences) == 1


def test_the_source_distribution_has_what_a_build_needs_and_no_tests(built: Path) -> None:
    (archive,) = built.glob("kreassign-*.tar.gz")
    with tarfile.open(archive) as found:
        names = {name.partition("/")[2] for name in found.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "src/kreassign/twin/scenarios/skewed.toml"} <= names
    assert not [name for name in names if name.startswith(("tests", "build", ".venv"))]


def test_five_commands_are_there_and_only_what_they_need(installed: Installed) -> None:
    assert commands_of(installed) == sorted(PROGRAMS)
    assert extras_of(installed) == []
    installed.run(installed.python, "-m", "pip", "--python", installed.python, "check")


def commands_of(installed: Installed) -> list[str]:
    """The commands that are there, each of which says its version."""
    found = sorted(path.name for path in (installed.home / "bin").iterdir())
    for program in found:
        assert installed.run(program, "--version").stdout.strip()
    return found


def extras_of(installed: Installed) -> list[str]:
    """Optional packages that are installed."""
    program = f"import importlib.util; print(*[one for one in {EXTRAS!r} if importlib.util.find_spec(one)])"
    return installed.run(installed.python, "-c", program).stdout.split()


def test_uv_installs_the_source_distribution_and_serves_its_page(
    installed_with_uv: Installed,
) -> None:
    assert commands_of(installed_with_uv) == sorted(PROGRAMS)
    assert extras_of(installed_with_uv) == ["starlette", "uvicorn"]
    command = [str(installed_with_uv.home / "bin" / "kreassign"), "web", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=installed_with_uv.home,
        env=installed_with_uv.environment,
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None
            lines = iter(process.stdout.readline, "")
            address = next(found[0] for line in lines if (found := re.search(r"http://127\.0\.0\.1:\d+/", line)))
            with urllib.request.urlopen(f"{address}api/v1/runs", timeout=60) as answer:
                assert json.load(answer) == {"runs": []}
        finally:
            process.terminate()


def test_the_first_move_works_with_installed_commands(installed: Installed) -> None:
    with twin(installed, "--scenario", "skewed", "--speed", "60") as servers:
        here = ("--bootstrap-server", servers)
        topics = installed.run("kafka-topics", "--list", *here).stdout.split()
        assert topics == ["clicks", "orders", "payments"]
        installed.run("kreassign", "plan", "check", "placement.json", "--update", *here)
        installed.run("kreassign", "snapshot", "--out", "cluster.json.gz", "--measure-for", "0s", *here)
        words = ("plan", "drain-brokers", "3", "--snapshot", "cluster.json.gz", "--out", "plan.json")
        installed.run("kreassign", *words)
        spark = installed.run("kreassign", *words[:-2], "--on", "spark", code=1)
        assert re.search(r": pipx install --force /\S+\.whl\[spark\]'$", spark.stderr.strip().replace("'/", "/"))
        run = ("run", "plan.json", "--yes", "--measure-for", "0", "--poll-interval", "0.2", "-o", "json")
        assert json.loads(installed.run("kreassign", *run, *here).stdout)["state"] == "done"
        installed.run("kreassign", "verify", "plan.json", *here)
        drifted = installed.run("kreassign", "plan", "check", "placement.json", *here, code=1)
        assert "broker 3 missing" in drifted.stdout
        tool = ("kafka-reassign-partitions", "--verify", "--reassignment-json-file", "plan.json")
        assert "is completed" in installed.run(*tool, *here).stdout
        installed.run("kreassign", "report", "--plan", "plan.json", "--out", "plan.html")
        elected = installed.run(
            "kafka-leader-election", "--election-type", "preferred", "--all-topic-partitions", *here
        )
        assert "error" not in elected.stderr.lower()


def test_the_line_about_a_missing_extra_installs_it(installed: Installed) -> None:
    line = installed.run("kreassign", "web", code=1).stderr.strip().rpartition(": ")[2]
    assert line.startswith("pipx install --force ")
    versions = ("--pip-args", f"-c {ROOT / 'constraints.txt'}")
    subprocess.run(
        [sys.executable, "-m", *shlex.split(line), "--python", sys.executable, *versions],
        check=True, capture_output=True, timeout=600, env={**os.environ, **places_of_pipx(installed.home)},
    )  # fmt: skip
    assert extras_of(installed) == ["starlette", "uvicorn"]
    assert "[spark,web]'" in installed.run("kreassign", "load", "--data", "d", code=1).stderr, "no extra gets lost"
