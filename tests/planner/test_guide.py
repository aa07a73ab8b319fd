"""The page that shows the planner as a library does what it says."""

import contextlib
import io
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "plan-from-python.md"


def test_the_example_of_the_page_runs_and_fills_the_new_brokers() -> None:
    code = PAGE.read_text().split("```python\n")[1].split("```")[0]
    names: dict[str, object] = {}
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(code, str(PAGE), "exec"), names)
    totals, lists, misses = said.getvalue().splitlines()
    assert totals.startswith("40000000000 ")
    assert "(3, 2)" in lists or "(3, 4)" in lists
    assert misses == "[]"
