"""The report on the sizes of modules and functions."""

from __future__ import annotations

import pytest

from scripts.sizes import Module, main, measured, report

TEXT = '"""One."""\n\ndef f():\n    def g():\n        return 1\n    return g\n'


def test_functions_are_measured_inside_others_too() -> None:
    assert measured("a/b.py", TEXT) == Module("a/b.py", lines=6, functions=(2, 4))


def test_each_package_has_a_row_and_package_files_are_not_in_the_medians() -> None:
    modules = [
        Module("a/__init__.py", 1, ()),
        Module("a/b.py", 20, (1, 2, 30)),
        Module("a/c.py", 600, ()),
        Module("d.py", 40, ()),
    ]
    _, a, own, every, *_ = (line.split() for line in report(modules).splitlines())
    assert own == [".", "1", "40", "40", "0", "0", "-"]
    assert a == ["a", "3", "621", "310", "1", "1", "2/30/30"]
    assert every == ["all", "4", "661", "40", "1", "1", "2/30/30"]


def test_the_longest_modules_come_first() -> None:
    text = report([Module("a/b.py", 20, ()), Module("a/c.py", 30, ())])
    assert text.endswith("longest modules\n    30 a/c.py\n    20 a/b.py")


def test_an_unknown_package_is_refused_by_name() -> None:
    with pytest.raises(SystemExit, match="no package 'nowhere'"):
        main(["nowhere"])
