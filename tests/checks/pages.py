"""Check of paths, modules, tests, make targets, command lines and options that pages name."""

from __future__ import annotations

import ast
import importlib
import re
import shlex
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

import click

from tests.checks.source import PRODUCT, ROOT, Finding, Source

BLOCK = re.compile(r"^```[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"^[\w.-]+(?:/[\w.*<>-]*)+$|^[\w-]+\.(?:py|toml|md|xml|sh|html)$")
MODULE = re.compile(r"(?<![\w/.])kreassign(?:\.\w+)+")
MAKE = re.compile(r"(?:^|[`\s])make ((?:[A-Z]+=\S+ )*)([a-z][a-z-]*)(?=$|[`\s,.;:)])", re.MULTILINE)
PYTHON_MODULE = re.compile(r"\bpython3? -m ([\w.]+)")
LONE_OPTION = re.compile(r"^(--[a-z][a-z0-9.-]*)")
# A paragraph in lower case after a block, whatever pictures are between. Two programs are written so.
_CONTINUED = re.compile(r"^```\n\n(?:!\[.*\n\n)*(?!kreassign\b|topicmappr\b)([a-z]\S*)", re.MULTILINE)
# Folders whose files a page may name; what else has a slash is an example, a znode or something that a run makes.
FOLDERS = frozenset({"src", "tests", "testbed", "bench", "docs", "scripts", "jvm", "changelog", "examples"})
# Modules that are not ours, or that a page tells the reader to make.
OTHER_MODULES = frozenset({"build", "venv", "pip", "pytest", "http"})
# Names that look like our modules: the package for Spark's executors, and a group of entry points.
NO_MODULES = frozenset({"kreassign.zip", "kreassign.goals"})


@dataclass(frozen=True, slots=True)
class Programs:
    """The command lines that a page may show: the tree of `kreassign`, and the options of each drop-in tool.

    `defaults` names the sub-command that a group stands for when none is named.
    """

    kreassign: click.Group
    tools: Mapping[str, frozenset[str]]
    defaults: Mapping[str, str]

    def options(self) -> frozenset[str]:
        """Every option of every program."""
        own = {option for command in _commands(self.kreassign) for option in _options(command)}
        return frozenset(own).union(*self.tools.values())


def missing_paths(page: Source, existing: Collection[str]) -> Iterator[Finding]:
    """Files, folders and tests in code spans that are not there. A path may be below `src/kreassign/`, too."""
    names = {path.rpartition("/")[2] for path in existing}
    rooms = FOLDERS | {path.removeprefix(PRODUCT).partition("/")[0] for path in existing if path.startswith(PRODUCT)}
    for span in SPAN.finditer(page.text):
        path, _, test = span[1].removeprefix("python ").strip().partition("::")
        if not PATH.match(path) or "<" in path or "*" in path:
            continue
        found = [place for place in (path, PRODUCT + path) if place.rstrip("/") in existing]
        if "/" in path and path.partition("/")[0] in rooms and not found:
            yield _finding(page, span.start(), f"names {path}, which is not there")
        elif path.endswith(".py") and "/" not in path and path not in names:
            yield _finding(page, span.start(), f"names {path}, which is nowhere")
        elif found and test and not has(found[0], test):
            yield _finding(page, span.start(), f"names {test}, which {path} does not have")


def missing_modules(page: Source, existing: Collection[str]) -> Iterator[Finding]:
    """Names of our modules, and of what is in them, that cannot be imported; modules to run that are not there."""
    for text, start in _code(page):
        for match in MODULE.finditer(text):
            if match[0] not in NO_MODULES and not _imported(match[0]):
                yield _finding(page, start + match.start(), f"names {match[0]}, which cannot be imported")
    for match in PYTHON_MODULE.finditer(page.text):
        path = match[1].replace(".", "/")
        own = path.partition("/")[0] not in OTHER_MODULES
        if own and not {f"{path}.py", f"{path}/__main__.py", f"src/{path}/__main__.py"} & set(existing):
            yield _finding(page, match.start(), f"runs {match[1]}, which is not there")


def missing_targets(page: Source, makefile: str) -> Iterator[Finding]:
    """Targets of make that the Makefile does not have, in code."""
    targets = set(re.findall(r"^([a-z][a-z-]*):", makefile, re.MULTILINE))
    for text, start in _code(page):
        for match in MAKE.finditer(text):
            if match[2] not in targets:
                yield _finding(page, start + match.start(2), f"shows `make {match[2]}`, which is no target")


def wrong_command_lines(page: Source, programs: Programs) -> Iterator[Finding]:
    """Sub-commands and options on the command lines of a page that the programs do not have."""
    for text, start in _code(page):
        for line, offset in _command_lines(text):
            for problem in _problems(line, programs):
                yield _finding(page, start + offset, problem)


def wrong_commands_in_strings(file: Source, programs: Programs) -> Iterator[Finding]:
    """Wrong command lines between backquotes in the strings of a Python file: texts for its users."""
    for text, line in _strings(file.tree):
        for span in SPAN.finditer(text):
            if re.match(r"kreassign [a-z-]", span[1]):
                yield from (Finding(file.path, line, problem) for problem in _problems(span[1], programs))


def unknown_options(page: Source, programs: Programs, others: Collection[str]) -> Iterator[Finding]:
    """Options in code spans of their own that no program of ours has. `others` are those of programs not ours."""
    known = programs.options()
    for span in SPAN.finditer(_without_blocks(page.text)):
        match = LONE_OPTION.match(span[1])
        if match and match[1] not in known and match[1] not in others:
            yield _finding(page, span.start(), f"names {match[1]}, which no command has")


def continued_sentences(page: Source) -> Iterator[Finding]:
    """Paragraphs whose subject is the block or picture above them: a reader who skips that finds half a sentence."""
    for paragraph in _CONTINUED.finditer(page.text):
        yield _finding(page, paragraph.start(1), f"begins in the middle of a sentence: {paragraph[1]} …")


def _strings(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Every string on one line, with `HOLE` where an f-string has a value, and where it starts."""
    parts: set[int] = set()  # of f-strings, which are walked before their parts
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts.update(map(id, node.values))
            texts = (str(part.value) if isinstance(part, ast.Constant) else "HOLE" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            texts = iter((node.value,))
        else:
            continue
        yield " ".join("".join(texts).split()), node.lineno


def _problems(line: str, programs: Programs) -> Iterator[str]:
    words = _words(line)
    for place, word in enumerate(words):
        name = word.rpartition("/")[2]
        if name in programs.tools:
            unknown = _long_options(words[place + 1 :]) - programs.tools[name]
            yield from (f"shows {name} {option}, which it does not have" for option in sorted(unknown))
            return
        if name == "kreassign":
            yield from _kreassign_problems(words[place + 1 :], programs)
            return


def _kreassign_problems(words: list[str], programs: Programs) -> Iterator[str]:
    command: click.Command = programs.kreassign
    path, known, value_next = "kreassign", _options(command), False
    waiting = list(words)
    while waiting:
        word = waiting.pop(0)
        if value_next or not word:
            value_next = False
        elif option := LONE_OPTION.match(word):
            if isinstance(command, click.Group) and option[1] not in known and path in programs.defaults:
                waiting[:0] = [programs.defaults[path], word]
            elif option[1] not in known:
                yield f"shows `{path} {option[1]}`, which it does not have"
            value_next = "=" not in word and _takes_a_value(command, option[1])
        elif isinstance(command, click.Group) and re.fullmatch(r"[a-z][a-z-]*", word):
            inner = command.get_command(click.Context(command), word)
            if inner is None:
                yield f"shows `{path} {word}`, which is no command"
                return
            command, path = inner, f"{path} {word}"
            known |= _options(command)


def _takes_a_value(command: click.Command, name: str) -> bool:
    options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    return any(name in option.opts and not option.is_flag and not option.count for option in options)


def _command_lines(code: str) -> Iterator[tuple[str, int]]:
    """Each command line with where it starts: a line that ends in a backslash goes on, a pipe starts another one."""
    offset = 0
    for line in re.split(r"(?<!\\)\n", code):
        start = offset
        for part in re.split(r"\||&&|;|\$\(", line.replace("\\\n", "  ")):
            yield part, start
        offset += len(line) + 1


def _words(line: str) -> list[str]:
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        words = line.split()
    return [word.strip("[](),…") for word in words]


def _long_options(words: Collection[str]) -> set[str]:
    return {match[1] for word in words if (match := LONE_OPTION.match(word))}


def _options(command: click.Command) -> set[str]:
    names = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    return names | {"--help"}


def _commands(group: click.Group) -> Iterator[click.Command]:
    yield group
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        if isinstance(command, click.Group):
            yield from _commands(command)
        elif command:
            yield command


def _code(page: Source) -> Iterator[tuple[str, int]]:
    """The code of a page, blocks and spans, each with where it starts."""
    for block in BLOCK.finditer(page.text):
        yield block[1], block.start(1)
    for span in SPAN.finditer(_without_blocks(page.text)):
        yield span[1], span.start(1)


def _without_blocks(text: str) -> str:
    """The text with its blocks blanked; everything keeps its place."""
    return BLOCK.sub(lambda block: re.sub(r"[^\n]", " ", block[0]), text)


def _imported(name: str) -> bool:
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for part in parts[end:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


def is_case(case: str, path: str) -> bool:
    """True if a file of tests, or a module of ours that it imports, has the name of a parametrised case."""
    wanted = re.compile(rf"(?<!\w){re.escape(case)}(?!\w)")
    imported = re.findall(r"^from (tests\.[\w.]+) import", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)
    files = (ROOT / path, *(ROOT / (name.replace(".", "/") + ".py") for name in imported))
    return any(wanted.search(file.read_text(encoding="utf-8")) for file in files if file.exists())


def has(path: str, what: str) -> bool:
    """True if a file has the name after its path. A name of a test has to be one that pytest collects."""
    name, _, case = what.partition("[")
    known = _tests(path) if name.rpartition("::")[2].startswith("test") else _defined(path)
    return name in known and (not case or is_case(case.removesuffix("]"), path))


@cache
def _tests(path: str) -> frozenset[str]:
    """Functions of a file that pytest takes for tests, and methods as `TestClass::test_method`."""
    file = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    classes = [node for node in file.body if isinstance(node, ast.ClassDef) and node.name.startswith("Test")]
    places = [("", file.body), *((f"{one.name}::", one.body) for one in classes)]
    functions = [(place, node) for place, body in places for node in body if isinstance(node, ast.FunctionDef)]
    found = frozenset(f"{place}{node.name}" for place, node in functions if node.name.startswith("test"))
    return found if re.search(r"(^|/)test_[^/]*\.py$", path) else frozenset()


@cache
def _defined(path: str) -> frozenset[str]:
    """Names of functions, methods, classes and module-level values in a file."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    named = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)]
    values = [target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets]
    imported = [alias for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    return frozenset(
        [node.name for node in named]
        + [target.id for target in values if isinstance(target, ast.Name)]
        + [alias.asname or alias.name for alias in imported]
    )


def _finding(page: Source, place: int, text: str) -> Finding:
    return Finding(page.path, page.text.count("\n", 0, place) + 1, text)
