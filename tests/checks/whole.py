"""Judges that look at the whole repository: dead modules, the drawn error tree, machine paths, links, commands."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from tests.checks.references import imports
from tests.checks.source import Finding, Source

HOST_OR_PATH = re.compile(
    r"https?://(?!maven\.apache\.org/(?:POM|xsd)/|www\.w3\.org/|kreassign\.example/)\S+"
    r"|file:/\S*"
    r"|--(?:extra-)?index-url\S*|--find-links\S*|--trusted-host\S*"
    r"|<(?:repository|repositories|pluginRepository|mirror)>"
    r"|(?<![\w.$})/])/(?:home|root|work|tmp|opt|usr|Users|var|mnt|srv|data)/\S*"
)
OUR_MACHINE = re.compile(r"(?<![\w.])/(?:root|wor[k]|home/[a-z]\w*)/")
TREE_LINE = re.compile(r"^(?P<lead>[│ ]*(?:[├└]── )?)(?P<name>[A-Z]\w*)\s*(?P<rest>.*)$")
EXIT_CODE = re.compile(r"\bexit (\d+)")
ATTRIBUTE = re.compile(r"(?<=\s)\.(\w+)")
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|^\[[^\]]+\]:\s+(\S+)", re.MULTILINE)
MENU_ENTRY = re.compile(r"^ +- (?:[^:#\n]+: )?([\w/.-]+\.md)$", re.MULTILINE)
HEADING = re.compile(r"^#+\s+(.*?)[ \t]*$", re.MULTILINE)
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"^```.*?^```|`[^`\n]+`", re.MULTILINE | re.DOTALL)
CALL_OF_OURS = re.compile(r"(?:^|[`\s/])kreassign ([a-z][\w-]*)")
OPTION = re.compile(r"`(--[a-z0-9-]+)[^`]*`")
FRAGMENT = re.compile(r"[a-z0-9-]+\.(added|changed|fixed)\.md")
LEFT_BEHIND = re.compile(r"\.(?:log|orig|rej|pyc|tmp|bak|swp|unfinished)$|~$|^core(?:\.\d+)?$|^hs_err_pid|^\.DS_Store$")
LAZY_COMMAND = re.compile(r"kreassign(?:\.\w+)+:\w+")


@dataclass(frozen=True, slots=True)
class DrawnError:
    """A class of the error tree: its parent, its exit code where it has its own, and its attributes."""

    parent: str
    exit_code: int | None
    attributes: frozenset[str]


def entry_points(pyproject: str) -> set[str]:
    """The modules behind the installed commands."""
    scripts = tomllib.loads(pyproject)["project"]["scripts"]
    return {target.partition(":")[0] for target in scripts.values()}


def rooms_without_tests(modules: Iterable[str], tests: Iterable[str]) -> list[str]:
    """Folders of the product that hold modules and have no folder of tests of that name. Both are paths of files."""
    rooms = {PurePosixPath(path).parent for path in modules if not path.endswith("__init__.py")}
    tested = {PurePosixPath(path).parent for path in tests if PurePosixPath(path).name.startswith("test_")}
    return sorted(str(room) for room in rooms if "tests" / room.relative_to("src/kreassign") not in tested)


def stray_files(known: Mapping[str, int], unknown: Mapping[str, int], ignored: Iterable[str]) -> Iterator[str]:
    """Files that programs leave behind, by the sizes of those that git knows, and does not know and does not ignore.

    `ignored` are those that git knows although it is told to ignore such files.
    """
    for path, size in sorted((known | unknown).items()):
        name = PurePosixPath(path).name
        if LEFT_BEHIND.search(name):
            yield f"{path} is what a program left behind: remove it, and name its kind in .gitignore"
        elif size == 0 and name not in {"__init__.py", "py.typed"}:
            yield f"{path} is empty: remove it"
    yield from (f"{path} is known to git and in .gitignore: remove it from git" for path in ignored)


def dead_modules(sources: Iterable[Source], roots: Iterable[str]) -> Iterator[Finding]:
    """Modules that no entry point reaches by imports, lazy ones included."""
    by_module = {source.module: source for source in sources}
    reached: set[str] = set()
    waiting = [*roots, *(module for module in by_module if module.endswith("__main__"))]
    while waiting:
        name = waiting.pop()
        for module in _modules_of(name, by_module):
            if module not in reached:
                reached.add(module)
                waiting += [reference.name for reference in imports(by_module[module])]
    for module, source in by_module.items():
        if module not in reached:
            yield Finding(source.path, 1, "no command reaches this module by imports; use it or remove it")


def drawn_errors(docstring: str) -> dict[str, DrawnError]:
    """Read the tree drawn in the documentation string of `errors.py`."""
    drawn: dict[str, DrawnError] = {}
    parents: list[str] = []
    for line in docstring.splitlines():
        match = TREE_LINE.match(line)
        if not match or not line.startswith("    "):
            continue
        depth = (len(match["lead"]) - 4) // 4
        parents[depth:] = [match["name"]]
        code = EXIT_CODE.search(match["rest"])
        attributes = frozenset(ATTRIBUTE.findall(match["rest"]))
        parent = parents[depth - 1] if depth else ""
        drawn[match["name"]] = DrawnError(parent, int(code[1]) if code else None, attributes)
    return drawn


def written_errors(tree: ast.Module) -> dict[str, DrawnError]:
    """Read the classes of `errors.py`; a parent that is not one of them counts as none."""
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    return {name: _written(node, classes) for name, node in classes.items()}


def differing_errors(source: Source) -> Iterator[Finding]:
    """Differences between the drawn tree and the classes. The root's exit code need not be drawn."""
    drawn, written = drawn_errors(ast.get_docstring(source.tree, clean=False) or ""), written_errors(source.tree)
    for name in sorted(drawn.keys() | written.keys()):
        if name not in drawn or name not in written:
            yield Finding(
                source.path, 1, f"{name} is {'written' if name in written else 'drawn'} only; draw what there is"
            )
        elif drawn[name] != written[name] and written[name].parent:
            yield Finding(source.path, 1, f"{name} is drawn as {drawn[name]}, but written as {written[name]}")


def hosts_and_paths(source: Source) -> Iterator[Finding]:
    """Registry hosts, index addresses and absolute paths in a file that says what to install or build."""
    for number, line in enumerate(source.lines, 1):
        if not line.startswith("#!") and (match := HOST_OR_PATH.search(line)):
            yield Finding(
                source.path, number, f"{match[0]!r} belongs to one machine or registry; leave it to its settings"
            )


def machine_paths(source: Source) -> Iterator[Finding]:
    """Paths of somebody's own machine, anywhere."""
    for number, line in enumerate(source.lines, 1):
        if match := OUR_MACHINE.search(line):
            yield Finding(source.path, number, f"{match[0]!r} is a path of one machine")


def broken_links(page: Source, pages: Mapping[str, Source], existing: Iterable[str]) -> Iterator[Finding]:
    """Links to files or headings that are not there. `existing` are all paths of the repository."""
    known = set(existing)
    text = _without_blocks(page.text)
    for match in LINK.finditer(text):
        target, _, heading = (match[1] or match[2]).partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        line = text.count("\n", 0, match.start()) + 1
        path = _join(page.path, target) if target else page.path
        if path not in known:
            yield Finding(page.path, line, f"link to {target}: there is no {path}")
        elif heading and path in pages and heading not in anchors(pages[path].text):
            yield Finding(page.path, line, f"link to {path}#{heading}: no such heading")


def unreachable_pages(pages: Mapping[str, Source], start: str) -> Iterator[Finding]:
    """Pages that no chain of links from the start leads to."""
    reached: set[str] = set()
    waiting = [start]
    while waiting:
        path = waiting.pop()
        if path in pages and path not in reached:
            reached.add(path)
            targets = [(match[1] or match[2]).partition("#")[0] for match in LINK.finditer(pages[path].text)]
            waiting += [_join(path, target) for target in targets]
    for path in pages.keys() - reached:
        yield Finding(path, 1, f"no link leads here from {start}")


def pages_not_in_the_menu(pages: Iterable[str], mkdocs: str) -> Iterator[Finding]:
    """Pages, as paths inside docs/, that the menu of the site does not name: a build in strict mode ends at them."""
    named = set(MENU_ENTRY.findall(mkdocs))
    for path in pages:
        if path not in named:
            yield Finding(f"docs/{path}", 1, "not in the menu of the site: add a line to `nav` in mkdocs.yml")


def anchors(text: str) -> set[str]:
    """The names under which a page's headings can be linked to."""
    headings = [match[1] for match in HEADING.finditer(_without_blocks(text))]
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def registered_commands(source: Source) -> set[str]:
    """The names in the table of lazily loaded commands: a dictionary whose values hold a `module:function`."""
    return {
        str(key.value)
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Dict)
        for key, value in zip(node.keys, node.values, strict=True)
        if isinstance(key, ast.Constant) and _is_lazy_command(value)
    }


def undocumented_commands(commands: Iterable[str], reference: Source) -> Iterator[Finding]:
    """Registered commands without a heading `kreassign <name>` on the reference page."""
    headings = {match[1].strip("`") for match in HEADING.finditer(_without_blocks(reference.text))}
    for command in sorted(commands):
        if f"kreassign {command}" not in headings:
            yield Finding(reference.path, 1, f"no section `kreassign {command}`, although that command is registered")


def options_that_differ(command: str, real: Iterable[str], reference: Source) -> Iterator[Finding]:
    """Options that a command has but its section does not name, and the other way round. `real` have their dashes."""
    text = _without_blocks(reference.text)
    sections = {match[1]: match.end() for match in HEADING.finditer(text)}
    start = sections.get(f"kreassign {command}", len(text))
    end = min((place for place in sections.values() if place > start), default=len(text))
    named = set(OPTION.findall(text[start:end]))
    for option in sorted(named ^ set(real)):
        what = "is not named in" if option in set(real) else "is named in"
        yield Finding(reference.path, text.count("\n", 0, start) + 1, f"{option} {what} the section of {command}")


def invented_commands(page: Source, commands: Iterable[str]) -> Iterator[Finding]:
    """Commands of ours that a page shows although they are not registered."""
    known = set(commands)
    for code in CODE.finditer(page.text):
        for call in CALL_OF_OURS.finditer(code[0]):
            if call[1] not in known:
                line = page.text.count("\n", 0, code.start() + call.start(1)) + 1
                yield Finding(page.path, line, f"shows `kreassign {call[1]}`, which is no registered command")


def is_fragment(name: str) -> bool:
    """True if a file name is that of a fragment of the changelog."""
    return bool(FRAGMENT.fullmatch(name))


def _without_blocks(text: str) -> str:
    """The text with its code blocks emptied; lines keep their numbers."""
    return FENCE.sub(lambda block: "\n" * block[0].count("\n"), text)


def _modules_of(name: str, ours: Mapping[str, Source]) -> list[str]:
    parts = name.split(".")
    names = [".".join(parts[: end + 1]) for end in range(len(parts))]
    return [known for known in names if known in ours]


def _written(node: ast.ClassDef, classes: Mapping[str, ast.ClassDef]) -> DrawnError:
    parent = ast.unparse(node.bases[0]) if node.bases else ""
    own = [statement for statement in node.body if isinstance(statement, ast.Assign)]
    codes = [statement.value.value for statement in own if ast.unparse(statement.targets[0]) == "exit_code"]
    attributes = {
        target.attr
        for target in ast.walk(node)
        if isinstance(target, ast.Attribute)
        and isinstance(target.ctx, ast.Store)
        and ast.unparse(target.value) == "self"
    }
    return DrawnError(parent if parent in classes else "", codes[0] if codes else None, frozenset(attributes))


def _join(page: str, target: str) -> str:
    parts: list[str] = []
    for part in (PurePosixPath(page).parent / target).parts:
        if part == "..":
            parts = parts[:-1]
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


def _is_lazy_command(value: ast.expr) -> bool:
    texts = [node.value for node in ast.walk(value) if isinstance(node, ast.Constant)]
    return any(isinstance(text, str) and LAZY_COMMAND.fullmatch(text) for text in texts)
