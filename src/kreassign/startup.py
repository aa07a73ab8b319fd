"""Fast start of short-lived programs: load kafka-python without its clients.

kreassign needs the library's messages only, but importing `kafka` also imports its consumer, producer and admin client,
which is about half of the start of a short-lived command. A stand-in knows where the submodules are. Any other
attribute (`from kafka import KafkaProducer`) loads the real package on access, in the same module object.

Only the entry points of programs call this (`cli/main.py`, `kafka_tools/scripts.py`), so that importing kreassign as a
library changes no modules of the importing program.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from types import ModuleType
from typing import Any

_NAME = "kafka"
_OWN_NAMES = frozenset({"__all__", "__version__"})


class _PackageOnDemand(ModuleType):
    """A package whose `__init__` runs on first access to an attribute."""

    def __getattr__(self, name: str) -> Any:
        # Called for missing names only: those of the package, and dunder names that Python tries on every module.
        if name.startswith("__") and name not in _OWN_NAMES:
            raise AttributeError(name)
        super().__setattr__("__class__", ModuleType)  # now an ordinary module
        assert self.__spec__ is not None
        assert self.__spec__.loader is not None
        self.__spec__.loader.exec_module(self)
        return getattr(self, name)


def defer_kafka_clients() -> None:
    """Load the root package `kafka` on first use, unless it is loaded already. Call this before any other import."""
    spec = None if _NAME in sys.modules else find_spec(_NAME)
    if spec is None or spec.submodule_search_locations is None:
        return
    package = _PackageOnDemand(_NAME)
    package.__spec__, package.__loader__, package.__file__ = spec, spec.loader, spec.origin
    package.__path__ = list(spec.submodule_search_locations)
    package.__package__ = _NAME
    sys.modules[_NAME] = package
