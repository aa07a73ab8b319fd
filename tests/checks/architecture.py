"""Judges of third-party packages, effects and loading; the rules are tables in `tests/test_architecture.py`."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from tests.checks.references import Reference, When, imports, references
from tests.checks.source import PRODUCT, Finding, Source


@dataclass(frozen=True, slots=True)
class Home:
    """Something that may be imported or used only in certain files.

    `names` are dotted names, each meaning itself and everything inside it (`name.*`: only what is inside); `?.name`
    is a call of a method with that name. `but` names exceptions, unless called without arguments. `homes` are files
    or folders (ending in a slash) below `src/kreassign/`. `example` is a line that breaks the rule when it stands
    elsewhere: it proves that the rule can fail.
    """

    what: str
    names: tuple[str, ...]
    homes: tuple[str, ...]
    why: str
    example: str
    but: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class QuickStart:
    """A module that must be loaded without loading certain others, however indirectly."""

    module: str
    without: tuple[str, ...]
    why: str


def modules_named_in_text(source: Source, allowed: Collection[str]) -> Iterator[Finding]:
    """Modules of ours that a file loads by a name in a text, which no graph of imports shows."""
    for reference in imports(source):
        if reference.is_text and reference.is_below("kreassign") and source.path not in allowed:
            text = f"names {reference.name} in a text; import it, so that the rules of imports see it"
            yield Finding(source.path, reference.line, text)


def strangers(source: Source, homes: Iterable[Home]) -> Iterator[Finding]:
    """Third-party packages that no row names."""
    named = {name.partition(".")[0] for home in homes for name in home.names}
    for reference in imports(source):
        package = reference.name.partition(".")[0]
        if package not in sys.stdlib_module_names and package != "kreassign" and package not in named:
            text = (
                f"imports {package}, which has no home; see docs/design/decisions/dependencies.md, then give it a row"
            )
            yield Finding(source.path, reference.line, text)


def far_from_home(source: Source, homes: Iterable[Home], *, typing_counts: bool) -> Iterator[Finding]:
    """References outside their homes, the first of each kind in the file. The most exact name decides."""
    rows = {name: home for home in homes for name in home.names}
    seen = set()
    for reference in references(source):
        if reference.when is When.TYPING and not typing_counts:
            continue
        home = _most_exact(reference, rows)
        if home and not _lives_in(source, home.homes) and home.what not in seen:
            seen.add(home.what)
            yield Finding(source.path, reference.line, _home_text(reference, home))


def loaded_with(module: str, sources: Iterable[Source]) -> dict[str, tuple[str, ...]]:
    """Modules that importing a module loads, each with the chain of our modules that leads to it."""
    by_module = {source.module: source for source in sources}
    chains: dict[str, tuple[str, ...]] = {}
    waiting = [(module, (module,))]
    while waiting:
        name, chain = waiting.pop(0)
        for loaded in _with_parents(name, by_module):
            if loaded in chains:
                continue
            chains[loaded] = chain
            if loaded in by_module:
                waiting += [(found, (*chain, found)) for found in _loads(by_module[loaded])]
    return chains


def slow_starts(rule: QuickStart, sources: Iterable[Source]) -> Iterator[Finding]:
    """Packages that a quick module loads although it must not, each with the shortest way there."""
    by_module = {source.module: source for source in sources}
    if rule.module not in by_module:
        yield Finding("tests/test_architecture.py", 1, f"QUICK_STARTS names {rule.module}, which is not there")
        return
    chains = loaded_with(rule.module, by_module.values())
    for banned in rule.without:
        if banned in chains:
            way = " → ".join(chains[banned])
            text = f"loading it loads {banned} ({way}); import it in the function that uses it. {rule.why}"
            yield Finding(by_module[rule.module].path, 1, text)


def _home_text(reference: Reference, home: Home) -> str:
    where = ", ".join(home.homes) or "nowhere in src/kreassign"
    return f"{reference.name}: {home.what} belongs in {where}: {home.why}"


def _most_exact(reference: Reference, rows: Mapping[str, Home]) -> Home | None:
    home = rows.get(reference.name)
    outer = reference.name
    while home is None and (outer := outer.rpartition(".")[0]):
        home = rows.get(f"{outer}.*") or rows.get(outer)
    if home is None or any(reference.is_below(name) and reference.has_arguments for name in home.but):
        return None
    return home


def _lives_in(source: Source, homes: tuple[str, ...]) -> bool:
    path = source.path.removeprefix(PRODUCT)
    return any(path.startswith(home) if home.endswith("/") else path == home for home in homes)


def _loads(source: Source) -> list[str]:
    return [reference.name for reference in imports(source) if reference.when is When.LOADING]


def _with_parents(name: str, ours: Mapping[str, Source]) -> list[str]:
    """The module and the packages around it; of `module.name` in one of our modules only the module."""
    parts = name.split(".")
    names = [".".join(parts[: end + 1]) for end in range(len(parts))]
    return [known for known in names if known in ours] if parts[0] == "kreassign" else names
