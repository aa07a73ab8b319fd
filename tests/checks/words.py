"""Retired words that files still use. Words count wherever they stand: in names, texts, comments and pages."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from tests.checks.source import Finding, Source

# Letters with which whatever matches a pattern begins. To look for them first is ten times as quick.
FIRST_LETTERS = re.compile(r"[a-z]+(?![a-z?*{])(?!.*\|[^()]*$)")
HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@dataclass(frozen=True, slots=True)
class Retired:
    """A word that is not used any more, as a pattern in small letters, and the standard word in its place.

    A blank in the pattern is any white space, underscore or hyphen, and a hump of CamelCase. `as_name`: only a whole
    name of a class, function, module or value is meant, for the word itself is ordinary English.
    """

    pattern: str
    standard: str
    as_name: bool = False


def used(source: Source, words: Iterable[Retired]) -> Iterator[tuple[Retired, Finding]]:
    """Each use of a retired word, the first of each in a line."""
    text = _spoken(source.text)
    for word in words:
        for line in _named(source, text, word.pattern) if word.as_name else _lines(text, word.pattern):
            yield word, Finding(source.path, line, f"uses {word.pattern!r}; the word is {word.standard!r}")


def names_of_tests(source: Source) -> Source:
    """A file of tests as nothing but its path and the names of its functions, a line each where they stand."""
    lines = [""] * len(source.lines)
    for function in source.functions:
        lines[function.lineno - 1] = f"def {function.name}(): ..."
    return Source(source.path, "\n".join(lines))


def room(path: str) -> str:
    """The folder that an allowance is for: `src/kreassign/<package>`, or the first folder, or the file itself."""
    parts = path.split("/")
    return "/".join(parts[:3] if parts[0] == "src" else parts[:1])


@cache
def _spoken(text: str) -> str:
    """The text with its names taken apart, in small letters; lines stay lines."""
    return re.sub(r"[ _\-]+", " ", HUMP.sub(" ", text)).lower()


def _named(source: Source, text: str, pattern: str) -> Iterable[int]:
    if pattern not in text and pattern not in source.path:  # to take a file's names out of it takes long
        return ()
    return _names(source).get(pattern, ())


def _lines(text: str, pattern: str) -> list[int]:
    if (first := FIRST_LETTERS.match(pattern)) and first[0] not in text:
        return []
    found = re.finditer(rf"\b(?:{pattern.replace(' ', chr(92) + 's+(?:#:? +)?')})\b", text)
    return sorted({text.count("\n", 0, match.start()) + 1 for match in found})


@cache
def _names(source: Source) -> dict[str, set[int]]:
    """Names in a Python file, taken apart and in small letters, and those of the file itself, with their lines."""
    if not source.path.endswith(".py") or source.path.startswith("tests/"):  # whose names are sentences
        return {}
    names: dict[str, set[int]] = {}
    for name, line in [(source.module.rpartition(".")[2], 1), *_written_names(source.tree)]:
        names.setdefault(_spoken(name).strip(), set()).add(line)
    return names


def _written_names(tree: ast.Module) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name, node.lineno
            case ast.Name():
                yield node.id, node.lineno
            case ast.arg():
                yield node.arg, node.lineno
            case ast.Attribute():
                yield node.attr, node.lineno
            case ast.Import():
                yield from ((part, node.lineno) for alias in node.names for part in alias.name.split("."))
            case ast.ImportFrom():
                names = [node.module or "", *(alias.name for alias in node.names)]
                yield from ((part, node.lineno) for name in names for part in name.split("."))
