"""The value of `sasl.jaas.config`: one login module with its options, as Java reads it. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

# Words are quoted by either quote, and a backslash takes its sign literally.
_WORD = r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s"'=;]+)"""
_OPTION = rf"{_WORD}\s*=\s*{_WORD}"
_LOGIN = re.compile(rf"\s*(?P<module>[\w.$]+)\s+\w+(?P<options>(?:\s+{_OPTION})*)\s*;?\s*", re.DOTALL)


class LoginModule(NamedTuple):
    """The class of the module and its options, which may be secrets."""

    class_name: str
    options: Mapping[str, str]

    @property
    def name(self) -> str:
        """The class without its package."""
        return self.class_name.rpartition(".")[2]


def login_module(text: str) -> LoginModule | None:
    """The one login module of a JAAS configuration, `module control-flag key="value" ...;`; None if it is not that."""
    login = _LOGIN.fullmatch(text)
    if login is None:
        return None
    pairs = re.findall(rf"({_WORD})\s*=\s*({_WORD})", login["options"], re.DOTALL)
    return LoginModule(login["module"], {_unquoted(key): _unquoted(value) for key, value in pairs})


def _unquoted(word: str) -> str:
    return re.sub(r"\\(.)", r"\1", word[1:-1], flags=re.DOTALL) if word[0] in "\"'" else word
