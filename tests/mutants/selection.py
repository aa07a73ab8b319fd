"""A plugin for pytest: tests are chosen by their whole ids, whatever texts are in the brackets of an id.

pytest reads an id in its arguments as a path of files, classes and functions first, and does not find some that it told
itself. mutmut asks for tests by id.
"""

from __future__ import annotations

import pytest

WANTED = pytest.StashKey[frozenset[str]]()


def pytest_configure(config: pytest.Config) -> None:
    """Collect whole functions."""
    config.stash[WANTED] = frozenset(one for one in config.args if "[" in one)
    config.args = [*dict.fromkeys(one.partition("[")[0] for one in config.args)]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the cases that nobody asked for, of functions of which somebody asked for some."""
    wanted = config.stash[WANTED]
    functions = {one.partition("[")[0] for one in wanted}
    items[:] = [one for one in items if one.nodeid in wanted or one.nodeid.partition("[")[0] not in functions]
