"""Judges of the shape of code: sizes, words, calls, package files, documentation strings."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator, Mapping

from tests.checks.references import references
from tests.checks.source import Finding, Function, Source

SILENCER = re.compile(r"#\s*(noqa|type:\s*ignore|ruff:\s*noqa|mypy:|pragma:|pylint:)")
NAMED_SILENCER = re.compile(r"#\s*(?:noqa:\s*[A-Z]+\d+(?:,\s*[A-Z]+\d+)*|type:\s*ignore\[[\w-]+(?:,\s*[\w-]+)*\])(.*)")
REASON_LETTERS = 10
CAMEL_WORD = re.compile(r"[A-Z][a-z]+|[A-Z]+(?![a-z])")
NOUN = re.compile(
    r" (?:(?:complete|inbound|live|log|more|new|open|preferred) )?(?:partitions|replicas|brokers|topics|records|rows|"
    r"hours|minutes|seconds|times(?! (?:its|the|what) )|leaders|racks|nodes|clusters|entries|lines|characters|"
    r"directories|moves)\b"
)
"""Nouns in the plural, after a number. Most that may be verbs ("copies", "files") are left out."""
AFTER_ALL = re.compile(r"(?:\bof(?: the last)? |\bto |\bbroker )$")
"""Words before a number that speak of all, so that the plural is right ("1 of 1 partitions"), or of no number."""


def long_functions(source: Source, limit: int) -> Iterator[Finding]:
    """Functions with more lines than the limit, documentation string included."""
    for function in source.functions:
        if (length := _length(function)) > limit:
            text = f"{function.name} has {length} lines, more than {limit}; give its steps names"
            yield Finding(source.path, function.lineno, text)


def share_of_short_functions(sources: Iterable[Source], limit: int) -> float:
    """Share of functions with at most so many lines; 1.0 where there are none."""
    lengths = [_length(function) for source in sources for function in source.functions]
    return sum(length <= limit for length in lengths) / len(lengths) if lengths else 1.0


def banned_names(source: Source, banned: Iterable[str]) -> Iterator[Finding]:
    """Modules, packages and classes named by a word that says nothing about what they do."""
    words = set(banned)
    for part in source.module.split("."):
        if found := words & set(part.lower().split("_")):
            yield Finding(source.path, 1, f"{min(found)!r} in a module's name says nothing; name what the module knows")
    for node in source.definitions:
        if isinstance(node, ast.ClassDef):
            found = words & {word.lower() for word in CAMEL_WORD.findall(node.name)}
            if found:
                yield Finding(
                    source.path, node.lineno, f"{min(found)!r} in class {node.name} says nothing; name what it does"
                )


def unfinished(source: Source) -> Iterator[Finding]:
    """Marks of work put off, and of a merge that was not finished."""
    for number, line in enumerate(source.lines, 1):
        if match := re.search(r"\b(TOD[O]|FIXM[E]|XX[X])\b|^([<>])\2{6} ", line):
            yield Finding(source.path, number, f"{match[0]}: do it now, or write an issue")


def bare_counts(source: Source) -> Iterator[Finding]:
    """Numbers in texts before a noun that is always in the plural: "1 partitions".

    Constants are no such numbers, nor what has decimals, nor texts of which another one is chosen for 1.
    """
    nodes = [*ast.walk(source.tree)]
    choices = [node for node in nodes if isinstance(node, ast.IfExp) and ast.unparse(node.test).endswith(" 1")]
    apart = [part for node in choices for part in (node.body, node.orelse)]
    for text in nodes:
        if isinstance(text, ast.JoinedStr) and text not in apart:
            for before, number, after in zip([None, *text.values], text.values, text.values[1:], strict=False):
                noun = None if AFTER_ALL.search(_said(before)) else NOUN.match(_said(after))
                if noun and isinstance(number, ast.FormattedValue) and _is_count(number):
                    told = f"{ast.unparse(number.value)} stands before {noun[0]!r}: write it by counted()"
                    yield Finding(source.path, number.lineno, told)


def _said(part: ast.expr | None) -> str:
    return part.value if isinstance(part, ast.Constant) and isinstance(part.value, str) else ""


def _is_count(part: ast.FormattedValue) -> bool:
    form = "" if part.format_spec is None else ast.unparse(part.format_spec)
    names = [node.id if isinstance(node, ast.Name) else node.attr for node in ast.walk(part.value)
             if isinstance(node, ast.Name | ast.Attribute)]  # fmt: skip
    return not (re.search(r"g|%|\.[1-9]", form) or any(name.isupper() for name in names))


def banned_calls(source: Source, banned: Mapping[str, str]) -> Iterator[Finding]:
    """Uses of names that are banned here; `banned` maps each to what to do instead."""
    named = {name: instead for name, instead in banned.items() if name.rpartition(".")[2] in source.text}
    for reference in references(source) if named else ():
        for name, instead in named.items():
            if reference.is_below(name):
                yield Finding(source.path, reference.line, f"{name}: {instead}")


def silencers(source: Source) -> list[Finding]:
    """Every comment that silences a check."""
    if not SILENCER.search(source.text):  # as nearly all files: what is a comment takes long to find out
        return []
    return [Finding(source.path, line, text) for line, text in _comments(source) if SILENCER.search(text)]


def unexplained_silencers(source: Source) -> Iterator[Finding]:
    """Silenced checks that do not name their code, or give no reason on the same line."""
    for found in silencers(source):
        match = NAMED_SILENCER.search(found.text)
        if not match or len(re.findall(r"[a-z]", match[1], re.IGNORECASE)) < REASON_LETTERS:
            text = (
                f"{found.text!r} must name its code and a reason, as in `# noqa: S608 - the table name is a constant`"
            )
            yield Finding(found.path, found.line, text)


def package_files(source: Source) -> Iterator[Finding]:
    """An `__init__.py` that does more than to re-export, or whose `__all__` is not the sorted list of its imports.

    It may re-export late (PEP 562): then it imports for the type checker only, and has `__getattr__`, `__dir__` and
    private constants that say where the names are.
    """
    if not source.is_package:
        return
    exported: list[str] = []
    imported: list[str] = []
    late = "__getattr__" in {function.name for function in source.functions}
    for node in source.tree.body:
        if isinstance(node, ast.ImportFrom) or _is_for_the_type_checker(node):
            imported += _imported_names(node)
        elif (name := _constant_name(node)) == "__all__" and isinstance(node, ast.Assign):
            exported = list(ast.literal_eval(node.value))
        elif name != "__version__" and not _is_docstring(node) and not (late and _re_exports_late(node)):
            yield Finding(source.path, node.lineno, "a package file only re-exports; move this into a module")
    if set(exported) - {"__version__"} != set(imported) or exported != sorted(exported, key=_order_of_exports):
        text = f"__all__ must be its imports, sorted: {sorted(imported, key=_order_of_exports)}"
        yield Finding(source.path, 1, text)


def undocumented(source: Source) -> Iterator[Finding]:
    """Public modules, classes, functions and methods without a documentation string."""
    if not ast.get_docstring(source.tree):
        yield Finding(source.path, 1, "the module says nothing about itself")
    yield from _undocumented_in(source, source.tree)


def _undocumented_in(source: Source, owner: ast.Module | ast.ClassDef) -> Iterator[Finding]:
    for node in owner.body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) or node.name.startswith("_"):
            continue
        if not ast.get_docstring(node) and not _is_overload(node):
            yield Finding(source.path, node.lineno, f"{node.name} has no documentation string")
        if isinstance(node, ast.ClassDef):
            yield from _undocumented_in(source, node)


def _is_overload(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(ast.unparse(decorator).endswith(("overload", ".setter")) for decorator in node.decorator_list)


def _length(function: Function) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


def _comments(source: Source) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def _constant_name(node: ast.stmt) -> str | None:
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    return None


def _imported_names(node: ast.stmt) -> list[str]:
    """Names that an import, or the imports of a block for the type checker, bring in; not those of the library."""
    imports = [child for child in ast.walk(node) if isinstance(child, ast.ImportFrom)]
    names = [(child.module, alias.asname or alias.name) for child in imports for alias in child.names]
    return [name for module, name in names if module not in {"__future__", "typing", "importlib"}]


def _is_for_the_type_checker(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def _re_exports_late(node: ast.stmt) -> bool:
    if isinstance(node, ast.FunctionDef):
        return node.name in {"__getattr__", "__dir__"}
    if isinstance(node, ast.Assign | ast.AnnAssign):
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        return isinstance(target, ast.Name) and target.id.startswith("_")
    return isinstance(node, ast.Import)


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _order_of_exports(name: str) -> tuple[int, str]:
    """Constants, then classes, then functions: the order that ruff keeps too."""
    kind = 0 if name.isupper() and len(name) > 1 else 1 if name[0].isupper() else 2
    return kind, name
