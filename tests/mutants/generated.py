"""Mutants of a module, made by mutmut, and which of them no test has to notice."""

from __future__ import annotations

import ast
import difflib
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mutmut.mutation.file_mutation import mutate_file_contents
from mutmut.utils.format_utils import get_mutant_name

_AFTERWARDS = frozenset({"property", "cached_property", "cache"})
_NAME = re.compile(r"(?P<of>.+)__mutmut_(?P<number>orig|\d+)")


@dataclass(frozen=True, slots=True)
class Generated:
    """A mutant: its name to mutmut, its module, the function it is in, and its changed lines before and after."""

    name: str
    module: str
    function: str
    before: str
    after: str

    @property
    def change(self) -> tuple[str, str, str, str]:
        """Identity of the mutant, whatever else changes in its module."""
        return self.module, self.function, self.before, self.after

    def rank(self, seed: int) -> str:
        """Rank of the mutant in the sample of this seed."""
        return hashlib.sha256("\n".join((str(seed), *self.change)).encode()).hexdigest()

    def __str__(self) -> str:
        return f"{self.module} {self.function}\n    - {self.before}\n    + {self.after}"


def prepared(source: str) -> str:
    """Program with its properties made after their functions: mutmut leaves decorated functions as they are."""
    lines = source.splitlines()
    functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    for node in sorted(functions, key=lambda one: -one.lineno):
        match node.decorator_list:
            case [ast.Name(id=name) as decorator] if name in _AFTERWARDS:
                assert node.end_lineno is not None
                lines.insert(node.end_lineno, f"{' ' * node.col_offset}{node.name} = {name}({node.name})")
                lines[decorator.lineno - 1] = ""
    return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True)
class MutatedModule:
    """A module with all its mutants in one program, as mutmut runs it, and its notes of them; those to draw from."""

    code: str
    notes: str
    mutants: tuple[Generated, ...]


def mutated(module: str, source: str) -> MutatedModule:
    """All mutants of the prepared source of a module; to draw from but those that a rule of `EXCLUDED` leaves out."""
    made = mutate_file_contents(module, source)
    notes = {
        "exit_code_by_key": {get_mutant_name(Path(module), name): None for name in made.mutant_names},
        "hash_by_function_name": dict(made.hash_by_function_name),
        "type_check_error_by_key": {},
        "durations_by_key": {},
        "estimated_durations_by_key": {},
    }
    return MutatedModule(made.code, json.dumps(notes), tuple(_mutants(module, ast.parse(made.code))))


def _mutants(module: str, code: ast.Module) -> list[Generated]:
    functions = {node.name: node for node in ast.walk(code) if isinstance(node, ast.FunctionDef)}
    found = []
    for name, mutant in functions.items():
        parts = _NAME.fullmatch(name)
        if parts is None or parts["number"] == "orig":
            continue
        original = functions[f"{parts['of']}__mutmut_orig"]
        before, after = _changed(original, mutant)
        may_be_excluded = any(sign in before for sign in ("assert ", "strict=", "'", '"'))
        if not may_be_excluded or excluded_by(original, mutant) is None:
            found.append(Generated(get_mutant_name(Path(module), name), module, _function(parts["of"]), before, after))
    return found


def excluded_by(original: ast.FunctionDef, mutant: ast.FunctionDef) -> str | None:
    """The rule of `EXCLUDED` after which there is no difference between the two, if there is one."""
    return next((rule for rule in EXCLUDED if _shape(original, rule) == _shape(mutant, rule)), None)


class _WithoutMessages(ast.NodeTransformer):
    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        is_message = isinstance(node.value, str) and " " in node.value
        return ast.Constant("a message") if is_message else node


class _WithoutStrict(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        node.keywords = [one for one in node.keywords if one.arg != "strict"]
        return node


class _WithoutAssertions(ast.NodeTransformer):
    def visit_Assert(self, _: ast.Assert) -> ast.Pass:
        return ast.Pass()


EXCLUDED: Mapping[str, Callable[[], ast.NodeTransformer]] = {
    "the wording of messages (texts with a space in them)": _WithoutMessages,
    "`strict=` of `zip`, which finds mistakes of callers": _WithoutStrict,
    "what an assertion states, which holds always": _WithoutAssertions,
}
"""Rules by which mutants are left out, each with what makes such a mutant equal to its original."""


@cache
def _shape(function: ast.FunctionDef, rule: str) -> str:
    copy = deepcopy(function)
    copy.name = "function"
    return ast.dump(EXCLUDED[rule]().visit(copy))


@cache
def _lines(function: ast.FunctionDef) -> list[str]:
    body = deepcopy(function)
    body.name = "function"
    return ast.unparse(body).splitlines()


def _changed(original: ast.FunctionDef, mutant: ast.FunctionDef) -> tuple[str, str]:
    difference = [*difflib.unified_diff(_lines(original), _lines(mutant), n=0, lineterm="")][2:]
    removed, added = ([line[1:].strip() for line in difference if line.startswith(mark)] for mark in "-+")
    return " / ".join(removed), " / ".join(added)


def _function(mangled: str) -> str:
    """`Class.method` or `function`, of what mutmut calls it."""
    return mangled.removeprefix("xǁ").replace("ǁ", ".") if "ǁ" in mangled else mangled.removeprefix("x_")
