"""Answers of a cluster of which only the good half is used, calls whose answers a reading has to look at twice, and
writes that nobody confirms.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping

from tests.checks.source import Finding, Source

HALVES = {"ok": "failed", "known": "unknown"}
"""Part of an answer, and the part that has to be named with it: of `Batch`, and of `Reading`."""

RAISE = "raise_if_any"
"""Method that names what failed by raising it."""

WHOLE = frozenset({"partition", "rpartition", "heappop", "unique", "buffers", "wait", "waitpid"})
"""Calls whose result may be taken apart and a part dropped: it tells of no failure."""

READ_TWICE = {
    "describe_log_dirs": "read_log_dirs",
    "list_partition_reassignments": "ongoing_moves, or with_moves around a look",
}
"""Calls of which one answer is not believed, each with the function of `readings.py` that makes it."""


def single_answers(source: Source, calls: Mapping[str, str] = READ_TWICE) -> Iterator[Finding]:
    """Places that make such a call themselves, or hand it on to be made."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Attribute) and node.attr in calls:
            yield Finding(source.path, node.lineno, f"uses {node.attr}; read by {calls[node.attr]}")


CONFIRMED = "confirmed_writes"
"""Function that makes of a port one whose writes are confirmed each."""


def unconfirmed_writes(source: Source, calls: Collection[str]) -> Iterator[Finding]:
    """Writes by a port of an object. A confirmed one has a name, or is a parameter, which the caller answers for."""
    confirmed = {
        ast.unparse(target)
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Assign) and CONFIRMED in ast.unparse(node.value)
        for target in node.targets
    }
    for node in ast.walk(source.tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Attribute() as port, attr=name), keywords=keywords):
                said = {f"{one.arg}={ast.unparse(one.value)}" for one in keywords}
                is_fine = bool({"validate_only=True", "confirm=confirm"} & said) or ast.unparse(port) in confirmed
                if name in calls and not is_fine:
                    yield Finding(source.path, node.lineno, f"{ast.unparse(port)}.{name}: take it of {CONFIRMED}")


def half_answers(source: Source) -> Iterator[Finding]:
    """Places where a function uses the successes and never names the failures, or has a default for what is not there.

    Or that drop a part of a result as `_`.

    An answer that is handed on as a whole is another function's to judge. Each text begins with the function's name.
    """
    for function in _functions(source.tree):
        own = [*_own(function)]
        yield from _halves(source, function, own)
        yield from _defaults(source, function, own)
        yield from _discards(source, function, own)


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def _own(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """Nodes of a function, without functions in it."""
    waiting: list[ast.AST] = [*function.body]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, ast.FunctionDef):
            yield node
            waiting += ast.iter_child_nodes(node)


def _halves(source: Source, function: ast.FunctionDef, own: list[ast.AST]) -> Iterator[Finding]:
    attributes = [node for node in own if isinstance(node, ast.Attribute)]
    named = {(ast.unparse(node.value), node.attr) for node in attributes}
    handed_on = {ast.unparse(part) for node in own if isinstance(node, ast.Call) for part in _arguments(node)}
    for node in attributes:
        of, other = ast.unparse(node.value), HALVES.get(node.attr)
        if other is not None and not {(of, other), (of, RAISE)} & named and of not in handed_on:
            text = f"{function.name} uses .{node.attr} of `{of}` and never names .{other}"
            yield Finding(source.path, node.lineno, text)


def _defaults(source: Source, function: ast.FunctionDef, own: list[ast.AST]) -> Iterator[Finding]:
    """Uses of `.ok.get(name, default)`: what was not answered would look like an answer."""
    for node in own:
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Attribute(attr=half), attr="get"), args=[_, default]):
                if half in HALVES and ast.unparse(default) != "None":
                    text = f"{function.name} takes {ast.unparse(default)} where .{half} has no answer"
                    yield Finding(source.path, node.lineno, text)


def _arguments(call: ast.Call) -> Iterator[ast.expr]:
    yield from call.args
    yield from (keyword.value for keyword in call.keywords)


def _discards(source: Source, function: ast.FunctionDef, own: list[ast.AST]) -> Iterator[Finding]:
    for node in own:
        if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)):
            continue
        called = node.value.func
        name = called.attr if isinstance(called, ast.Attribute) else ast.unparse(called)
        names = [part for target in node.targets if isinstance(target, ast.Tuple) for part in target.elts]
        if name not in WHOLE and any(isinstance(part, ast.Name) and part.id.strip("_") == "" for part in names):
            yield Finding(source.path, node.lineno, f"{function.name} drops a part of what {name} returns")
