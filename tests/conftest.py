"""Fixtures of all tests: shared clusters, invariants of twins, number of examples."""

from __future__ import annotations

import gc
import os

import pytest
from hypothesis import settings

from testbed.java import spark_flags
from tests.checked_twins import invariants_hold, watched_twins

__all__ = ["invariants_hold", "watched_twins"]

# Checks that several suites share say what differs, too.
pytest.register_assert_rewrite("tests.real", "tests.conformance", "tests.kips")

pytest_plugins = ["tests.browser", "tests.clusters", "tests.leftovers", "tests.logs", "tests.suites"]

# The same few examples every time, so that a red test is the change's fault; many new ones on demand.
settings.register_profile("quick", max_examples=25, derandomize=True, deadline=None)
settings.register_profile("thorough", max_examples=2_000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

# What is imported and collected stays: looking through it again and again is a tenth of the time of quick tests.
gc.disable()


def pytest_collection_finish() -> None:
    """From here on garbage is collected again, but for what there is now."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)
    gc.enable()


# Nobody's own configuration has a say in tests.
os.environ["KREASSIGN_CONFIG"] = os.devnull

# For Spark, which tests start in many processes and end before Java's second compiler has paid off.
# Nobody looks at its pages.
os.environ["SPARK_SUBMIT_OPTS"] = " ".join([*spark_flags(), "-Dspark.ui.enabled=false"])
