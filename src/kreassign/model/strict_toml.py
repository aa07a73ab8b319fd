"""TOML that cannot be read, as one error: also where Python's reader raises others. Pure.

`nan` and `inf` are numbers in TOML. Whoever takes a number says that it must be finite, and names its key.
"""

from __future__ import annotations

import tomllib
from typing import Any


def read_toml(text: str) -> dict[str, Any]:
    """Read a document. Raises ValueError with what is wrong, mostly with its line and column."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except ValueError:
        raise ValueError("a number in it has more digits than any size, rate or time") from None
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
