"""The text of a Java property file → its values. The only home of javaproperties. Pure."""

from __future__ import annotations


class MalformedPropertiesError(ValueError):
    """The text holds a malformed escape, which is not shown: it may be part of a password."""


def parsed(text: str) -> dict[str, str]:
    """Keys and values, the last of each key, as Java reads them. MalformedPropertiesError if the text is none."""
    import javaproperties  # noqa: PLC0415 - slow to load, and most commands have no such file

    try:
        return dict(javaproperties.loads(text))
    except javaproperties.InvalidUEscapeError:
        raise MalformedPropertiesError("a malformed \\u escape") from None
