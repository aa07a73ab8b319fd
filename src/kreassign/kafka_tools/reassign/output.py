"""Where the tool's words go."""

from __future__ import annotations


def say(text: str, *, end: str = "\n") -> None:
    """Print, and let it out at once: the text to roll back with must not be lost with a killed tool."""
    print(text, end=end, flush=True)
