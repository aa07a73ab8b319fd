"""Size and time of an installation, for each extra: fresh environments, nothing cached."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
SETS = ("", "web", "plan-at-scale", "tables", "spark", "plan-at-scale,tables,web")


def measure() -> None:
    """Install the base and each extra as `uv tool install` does; what the packages' index takes to answer counts."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    unknown = {extra for names in SETS if names for extra in names.split(",")} - extras.keys()
    if unknown:
        raise SystemExit(f"pyproject.toml has no extra {', '.join(sorted(unknown))}: change SETS in {__file__}")
    print("| extras | packages | MB | s |")
    print("|---|---|---|---|")
    for names in SETS:
        packages, size, seconds = _install(names)
        print(f"| {f'`{names}`' if names else 'none'} | {packages} | {size / 1e6:.0f} | {seconds:.0f} |", flush=True)


def _install(extras: str) -> tuple[int, int, float]:
    """Return how many packages were installed, their bytes on disk, and the seconds that it took."""
    with tempfile.TemporaryDirectory(prefix="kreassign-install-") as place:
        folders = {"UV_TOOL_DIR": f"{place}/tools", "UV_TOOL_BIN_DIR": f"{place}/bin", "UV_CACHE_DIR": f"{place}/cache"}
        source = f"{ROOT}[{extras}]" if extras else str(ROOT)
        uv, pins = str(Path(sys.executable).parent / "uv"), str(ROOT / "constraints.txt")
        command = [uv, "tool", "install", "--quiet", "--python", sys.executable, "-c", pins, source]
        started = time.perf_counter()
        subprocess.run(command, env=os.environ | folders, check=True)
        seconds = time.perf_counter() - started
        home = Path(place, "tools", "kreassign")
        subprocess.run([home / "bin" / "kreassign", "--version"], check=True, stdout=subprocess.DEVNULL)
        files = [file for file in home.rglob("*") if file.is_file() and not file.is_symlink()]
        packages = sum(1 for file in files if file.match("*.dist-info/METADATA"))
        return packages, sum(file.stat().st_blocks * 512 for file in files), seconds
