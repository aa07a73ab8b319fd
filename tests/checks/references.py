"""Names of other modules that a Python file imports and uses, whenever it does so."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache

from tests.checks.source import Source

ENTRY_POINT = re.compile(r"(kreassign(?:\.\w+)+):\w+")
BUILTINS = frozenset({"open", "print", "input", "breakpoint", "exec", "eval"})


class When(Enum):
    """Time at which a reference takes effect."""

    LOADING = "when the module is loaded"
    LATER = "when a function runs"
    TYPING = "for the type checker only"


@dataclass(frozen=True, slots=True)
class Reference:
    """A name of somewhere else, written out in full: `time.sleep` also where the file says `sleep`.

    A method call on a value of unknown type is called `?.method`, a builtin `builtins.open`. `has_arguments` is
    False only for a call with empty parentheses. `is_text`: a module that is named in a text, not in an import.
    """

    name: str
    line: int
    when: When
    is_import: bool = False
    is_text: bool = False
    has_arguments: bool = True

    def is_below(self, prefix: str) -> bool:
        """True if this is `prefix` or something inside it; `prefix.*` means only what is inside."""
        inside = self.name.startswith(prefix.removesuffix(".*") + ".")
        return inside or self.name == prefix


@cache
def references(source: Source) -> tuple[Reference, ...]:
    """References of a file, imports first."""
    imports = _Imports(source)
    imports.visit(source.tree)
    uses = _Uses(imports.names)
    uses.visit(source.tree)
    return (*imports.found, *uses.found)


def imports(source: Source) -> Iterator[Reference]:
    """Only what the file imports."""
    return (reference for reference in references(source) if reference.is_import)


def _last_name(node: ast.expr) -> str | None:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return None


class _Walk(ast.NodeVisitor):
    """Walks a file and knows when the place it stands at takes effect."""

    def __init__(self) -> None:
        self.when = When.LOADING
        self.found: list[Reference] = []

    def visit_If(self, node: ast.If) -> None:
        if _last_name(node.test) == "TYPE_CHECKING":
            self._visit_as(When.TYPING, node.body)
            self._visit_as(self.when, node.orelse)
        else:
            self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._visit_as(self.when, [node.args, *node.decorator_list, *filter(None, [node.returns])])
        self._visit_as(When.TYPING if self.when is When.TYPING else When.LATER, node.body)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self.visit_FunctionDef(node)

    def _visit_as(self, when: When, nodes: Sequence[ast.AST]) -> None:
        before, self.when = self.when, when
        for node in nodes:
            self.visit(node)
        self.when = before


class _Imports(_Walk):
    """Collects import statements, and which local name stands for what."""

    def __init__(self, source: Source) -> None:
        super().__init__()
        self.names: dict[str, tuple[str, When]] = {}
        package = source.module if source.is_package else source.module.rpartition(".")[0]
        self._package = package.split(".")

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._add(alias.name, node.lineno)
            local = alias.asname or alias.name.partition(".")[0]
            self.names[local] = (alias.name if alias.asname else local, self.when)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        origin = ".".join([*self._package[: len(self._package) - node.level + 1], *filter(None, [node.module])])
        for alias in node.names:
            name = f"{origin if node.level else node.module}.{alias.name}".removesuffix(".*")
            self._add(name, node.lineno)
            self.names[alias.asname or alias.name] = (name, self.when)

    def visit_Call(self, node: ast.Call) -> None:
        """Count `import_module("x")` as an import of x."""
        first = node.args[0] if node.args else None
        if _last_name(node.func) in {"import_module", "__import__"} and isinstance(first, ast.Constant):
            self._add(str(first.value), node.lineno, is_text=True)
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        """Count "kreassign.some.module:name", the form of a lazily loaded command, as an import."""
        if isinstance(node.value, str) and (match := ENTRY_POINT.fullmatch(node.value)):
            self.found.append(Reference(match[1], node.lineno, When.LATER, is_import=True, is_text=True))

    def _add(self, name: str, line: int, *, is_text: bool = False) -> None:
        self.found.append(Reference(name, line, self.when, is_import=True, is_text=is_text))


class _Uses(_Walk):
    """Collects uses of imported names, of builtins and of methods."""

    def __init__(self, names: dict[str, tuple[str, When]]) -> None:
        super().__init__()
        self._names = names

    def visit_Call(self, node: ast.Call) -> None:
        has_arguments = bool(node.args or node.keywords)
        if isinstance(node.func, ast.Attribute):
            self._add(f"?.{node.func.attr}", node, has_arguments=has_arguments)
        if isinstance(node.func, ast.Attribute | ast.Name) and (name := self._full_name(node.func)):
            self._add(name, node, has_arguments=has_arguments)
            self._visit_as(self.when, [*node.args, *node.keywords])
        else:
            self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if name := self._full_name(node):
            self._add(name, node)
        else:
            self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        if name := self._full_name(node):
            self._add(name, node)

    def _full_name(self, node: ast.expr) -> str | None:
        if isinstance(node, ast.Attribute):
            owner = self._full_name(node.value)
            return f"{owner}.{node.attr}" if owner else None
        if not isinstance(node, ast.Name):
            return None
        name, when = self._names.get(node.id, (None, self.when))
        if name is None:
            return f"builtins.{node.id}" if node.id in BUILTINS else None
        return None if when is When.TYPING else name

    def _add(self, name: str, node: ast.expr, *, has_arguments: bool = True) -> None:
        self.found.append(Reference(name, node.lineno, self.when, has_arguments=has_arguments))
