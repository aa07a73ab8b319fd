"""The commands of a page, in their order, with what its comments say of them.

Blocks that are fenced as `sh` are commands; readers do not see the comments in HTML that say how they are tried:

    <!-- twin: full-disk crash:2@0s -->   on which scenario, and what breaks there; `skewed` if nothing is said.
                                          Time leaps while copies are under way, unless `speed=1` is said
    <!-- needs: spark -->                 that the page takes a session of Spark
    <!-- first                            commands that readers have given already, or that stand in for somebody
    kreassign plan --out plan.json        else's
    -->
    <!-- not run: REASON -->              the next block is not run
    <!-- exit code: 1 -->                 the next block ends so
    <!-- until: TEXT -->                  the next block runs until the page ends; go on when it has written the text
    <!-- shown -->                        the next block shows what the commands before it have written
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

COMMANDS = "sh"
LANGUAGES = frozenset({COMMANDS, "text", "python", "yaml", "toml", "json", "properties", "sql"})
DEFAULT_SCENARIO = "skewed"

_NOTES = ("twin", "needs", "first", "not run", "exit code", "until", "shown")
_PART = re.compile(
    rf"<!--\s*(?P<note>{'|'.join(_NOTES)})\b:?[ ]*(?P<said>.*?)\s*-->"
    r"|^(?P<indent>[ ]*)```(?P<language>[^\n]*)\n(?P<block>.*?)^(?P=indent)```[ ]*$",
    re.MULTILINE | re.DOTALL,
)
_NO_WORD = re.compile(r"^[\W_]*$")
ANYTHING = "…"
_SPEED = "speed="


@dataclass(frozen=True, slots=True)
class Step:
    """Commands that are given together: those of a block, or those of a comment. `until` is None if they end."""

    line: int
    commands: str
    exit_code: int = 0
    until: str | None = None
    reason_not_to: str = ""
    shown: str = ""


@dataclass(frozen=True, slots=True)
class PageCommands:
    """All commands of a page, and the cluster that they are for."""

    steps: tuple[Step, ...]
    scenario: str = DEFAULT_SCENARIO
    faults: tuple[str, ...] = ()
    speed: float | None = None
    needs: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()

    def to_run(self) -> tuple[Step, ...]:
        """Commands that are not left out."""
        return tuple(step for step in self.steps if not step.reason_not_to)


@dataclass
class _Reader:
    steps: list[Step] = field(default_factory=list)
    notes: dict[str, str] = field(default_factory=dict)
    page_notes: dict[str, str] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def note(self, name: str, said: str, line: int) -> None:
        if name == "first":
            self.steps.append(Step(line, f"{said}\n"))
        elif name in {"twin", "needs"}:
            self.page_notes[name] = said
        else:
            self.notes[name] = said

    def block(self, language: str, text: str, line: int) -> None:
        notes, self.notes = self.notes, {}
        if language not in LANGUAGES:
            self.wrong.append(
                f"{line}: a block is fenced as {language or 'nothing'}, not as one of {sorted(LANGUAGES)}"
            )
        elif language == COMMANDS:
            self.steps.append(
                Step(line, text, int(notes.get("exit code", 0)), notes.get("until"), notes.get("not run", ""))
            )
        elif "shown" in notes and self.steps:
            self.steps[-1] = replace(self.steps[-1], shown=self.steps[-1].shown + text)


def commands_of(text: str) -> PageCommands:
    """The commands of a page in Markdown."""
    reader = _Reader()
    for part in _PART.finditer(text):
        line = text.count("\n", 0, part.start()) + 1
        if part["note"]:
            reader.note(part["note"], part["said"].strip(), line)
        else:
            reader.block(part["language"].strip(), part["block"], line)
    scenario, *others = reader.page_notes.get("twin", DEFAULT_SCENARIO).split()
    return PageCommands(
        tuple(reader.steps),
        scenario,
        tuple(word for word in others if not word.startswith(_SPEED)),
        next((float(word.removeprefix(_SPEED)) for word in others if word.startswith(_SPEED)), None),
        tuple(reader.page_notes.get("needs", "").split()),
        tuple(reader.wrong),
    )


def lines_not_there(shown: str, written: str) -> list[str]:
    """Lines that a page shows and commands have not written, in this order.

    Words count; figures, ids and spaces may differ, and what `…` stands for.
    """
    written_lines = iter([_shape(line) for line in written.splitlines()])
    missing = []
    for line in filter(str.strip, shown.splitlines()):
        wanted = re.compile(".*".join(re.escape(_shape(part)) for part in line.split(ANYTHING)))
        if not any(wanted.fullmatch(there) for there in written_lines):
            missing.append(line)
            written_lines = iter([_shape(one) for one in written.splitlines()])
    return missing


def _shape(line: str) -> str:
    """A line without figures, what is measured in them, and spaces."""
    return " ".join(_words(line))


def _words(line: str) -> Iterator[str]:
    after_figure = False
    for word in line.split():
        is_figure = any(letter.isdigit() for letter in word)
        is_unit = after_figure and re.fullmatch(r"([kMGT]i?)?B(/s)?|m?s|min|h|d", word.strip(",;:()")) is not None
        if not (is_figure or is_unit or _NO_WORD.match(word)):
            yield word.strip(",;:()")
        after_figure = is_figure
