"""What holds for all tests: how many examples a property test tries, and that no twin breaks an invariant."""

from __future__ import annotations

import os

from hypothesis import settings

from tests.checked_twins import invariants_hold, watched_twins

__all__ = ["invariants_hold", "watched_twins"]

# The same few examples every time, so that a red test is the change's fault; many new ones on demand.
settings.register_profile("quick", max_examples=25, derandomize=True, deadline=None)
settings.register_profile("thorough", max_examples=2_000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))
