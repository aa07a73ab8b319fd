"""The benchmarks, which nothing else runs, follow what they measure."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.thorough
def test_every_benchmark_can_be_imported() -> None:
    """In a process of its own: they import nearly all there is, which other tests must not find loaded."""
    program = (
        "import pkgutil, bench\nfor each in pkgutil.iter_modules(bench.__path__):\n    __import__('bench.' + each.name)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
