"""Reading of a page, and matching of the output that it shows."""

from __future__ import annotations

import pytest

from tests.checks.page_commands import Step, commands_of, lines_not_there

PAGE = """# A page

<!-- twin: full-disk crash:2@0s speed=1 -->
<!-- needs: spark -->

<!-- first
kreassign plan
-->
<!-- exit code: 1 -->
```sh
kreassign run
```

<!-- not run: somebody else's -->
```sh
theirs
```

<!-- until: serving -->
```sh
kreassign web
```

<!-- shown -->
```text
serving 1
```

```text
not shown by it
```
"""


def test_commands_are_read_with_what_comments_say_of_them() -> None:
    found = commands_of(PAGE)
    assert (found.scenario, found.faults, found.speed, found.needs) == ("full-disk", ("crash:2@0s",), 1.0, ("spark",))
    assert found.steps == (
        Step(6, "kreassign plan\n"),
        Step(10, "kreassign run\n", exit_code=1),
        Step(15, "theirs\n", reason_not_to="somebody else's"),
        Step(20, "kreassign web\n", until="serving", shown="serving 1\n"),
    )
    assert [step.line for step in found.to_run()] == [6, 10, 20]
    assert found.wrong == ()


def test_a_silent_page_uses_the_usual_cluster_and_notes_bind_one_block() -> None:
    found = commands_of("<!-- exit code: 2 -->\n```sh\na\n```\n\n```sh\nb\n```\n")
    assert (found.scenario, found.faults, found.speed, found.needs) == ("skewed", (), None, ())
    assert [step.exit_code for step in found.steps] == [2, 0]


@pytest.mark.parametrize("fence", ["", "console", "bash"])
def test_blocks_of_no_known_language_are_named(fence: str) -> None:
    (finding,) = commands_of(f"text\n\n```{fence}\nkreassign run\n```\n").wrong
    assert finding.startswith("3: ")


WRITTEN = "plan: 27 copies, 12.5 GB\nbroker  0:  5 moves\ntook 3 s\n"


@pytest.mark.parametrize("shown", [
    "plan: 3 copies, 500 MB\ntook 1.5 s",  # other figures and units
    "plan: …",
    "… copies, 1 TB\nbroker 12: 1 moves\n\n",
])  # fmt: skip
def test_figures_may_differ(shown: str) -> None:
    assert lines_not_there(shown, WRITTEN) == []


@pytest.mark.parametrize(("shown", "missing"), [
    ("plan: 3 moves, 500 MB", "plan: 3 moves, 500 MB"),  # another word
    ("took 1 s\nplan: 27 copies, 12.5 GB", "plan: 27 copies, 12.5 GB"),  # another order
    ("plan: 27 copies, 12.5 GB for nothing", "plan: 27 copies, 12.5 GB for nothing"),
])  # fmt: skip
def test_words_may_not(shown: str, missing: str) -> None:
    assert lines_not_there(shown, WRITTEN) == [missing]
