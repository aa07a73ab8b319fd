#!/usr/bin/env python3
"""Write or install the lock files in `locks/`: the versions of constraints.txt, with hashes of all their files.

python scripts/lock.py                             (or `make lock`: after each change of constraints.txt)
python scripts/lock.py install LOCK [WORD …]       (words for `uv pip install`: --python, --target)

The index is the one that pip is told to use. Its address is in no file, so that the locks are good for any copy of it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "locks"
# What each lock is made of: extras of the project, or a file of requirements.
EXTRAS: dict[str, tuple[str, ...]] = {
    "base": (),
    "develop": ("dev", "docs", "plan-at-scale", "spark", "tables", "web"),
    "product": ("kerberos", "msk", "plan-at-scale", "spark", "tables", "web"),
}
FILES = {"logins": "tests/logins/requirements.txt", "s3": "tests/s3/requirements.txt"}
PURPOSES = {
    "build": "what installs and builds: pip, uv, and what pyproject.toml builds with",
    "base": "what an installation needs without extras, and `make demo`",
    "develop": "what .venv holds",
    "product": "what an installation needs, with all extras",
    "logins": "what `make test-logins` needs besides .venv",
    "s3": "what the server of `make test-s3` runs with",
}
_OLDEST_PYTHON = "3.11.5"  # that the tools of the checks are there for
_PATIENCE_S = "180"  # with a mirror that is silent; uv's own is half a minute
_OF_UV = {
    "index-url": "UV_DEFAULT_INDEX", "extra-index-url": "UV_INDEX", "find-links": "UV_FIND_LINKS",
    "cert": "SSL_CERT_FILE",
}  # fmt: skip


def settings_for_uv() -> dict[str, str]:
    """Pip's settings of indexes, from files or the environment, in the words of uv, which does not read them."""
    command = [sys.executable, "-m", "pip", "config", "list"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return uv_settings(told)


def uv_settings(told: str) -> dict[str, str]:
    """Settings in lines of `pip config list`: `global.index-url='…'`; the environment (`:env:`) counts more."""
    found = {}
    for line in sorted(told.splitlines(), key=lambda line: line.startswith(":env:")):
        name, _, value = line.partition("=")
        if setting := _OF_UV.get(name.rpartition(".")[2]):
            found[setting] = value.strip("'\"")
    return found


def requirements(name: str) -> tuple[list[str], str]:
    """Words for uv, and what it reads at its standard input, for the lock of that name."""
    if name in EXTRAS:
        return ["pyproject.toml", *(f"--extra={extra}" for extra in EXTRAS[name])], ""
    if name in FILES:
        return [FILES[name]], ""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return ["-"], "\n".join(("pip", "uv", *project["build-system"]["requires"]))


def locked(name: str, settings: Mapping[str, str]) -> str:
    """The content of a lock file."""
    words, given = requirements(name)
    pins = [] if name == "s3" else ["--constraints=constraints.txt"]  # which has pins of its own
    done = subprocess.run(
        [str(Path(sys.executable).parent / "uv"), "pip", "compile", "--quiet", "--universal", "--generate-hashes",
         "--no-annotate", "--no-header", "--no-emit-index-url", f"--python-version={_OLDEST_PYTHON}", *pins, *words],
        input=given, capture_output=True, text=True, check=False, cwd=ROOT,
        env={**os.environ, "UV_NO_CONFIG": "1", **settings},
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"locks/{name}.lock was left as it was: {done.stderr.strip()}")
    return f"# {PURPOSES[name]}. Written by `make lock`.\n{done.stdout}"


def install(lock: str, *words: str) -> int:
    """Install a lock, by default into the environment of this Python; the exit code of uv.

    uv fetches side by side and says what. Nothing is installed whose hash is not in the lock, and what has to
    be built is built by what is installed here: an isolated build would fetch tools that no lock has.
    """
    where = () if {"--python", "--target"} & {*words} else ("--python", sys.executable)
    settings = {"UV_HTTP_TIMEOUT": _PATIENCE_S, "DIST_EXTRA_CONFIG": str(FOLDER / "unpacked.cfg")}
    done = subprocess.run(
        [str(Path(sys.executable).parent / "uv"), "pip", "install", "--require-hashes", "--no-build-isolation",
         *where, *words, "-r", lock],
        check=False,
        env={**settings, **os.environ, "UV_NO_CONFIG": "1", **settings_for_uv()},
    )  # fmt: skip
    return done.returncode


def main() -> None:
    """Install what is asked for; else write all locks, or none."""
    if sys.argv[1:2] == ["install"]:
        raise SystemExit(install(*sys.argv[2:]))
    settings = settings_for_uv()
    made = {name: locked(name, settings) for name in PURPOSES}
    FOLDER.mkdir(exist_ok=True)
    for name, text in made.items():
        (FOLDER / f"{name}.lock").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
