"""The public names of the core and the libraries, their methods and signatures, are those that are pinned.

`tests/public_names.txt` is what `docs/versions.md` promises to keep. A line that goes or changes is a decision: run
`make known`, and write it into the changelog.
"""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

import pytest

from scripts.public_names import LIST, Package, public_text

PUBLIC_IN_PACKAGES = {"jackfield.cli.main"}  # where the command line begins
MAX_SHOWN_LINES = 60


def test_what_is_public_is_what_was_meant_to_be() -> None:
    pinned, current = LIST.read_text(encoding="utf-8"), public_text()
    if current != pinned:
        changes = difflib.unified_diff(pinned.splitlines(), current.splitlines(), "pinned", "current", "", "", 2, "")
        shown = "\n".join(list(changes)[:MAX_SHOWN_LINES])
        pytest.fail(
            f"public names have changed; if that is meant, run `make known` and note it in the changelog\n{shown}"
        )


def test_a_package_of_the_core_is_public_as_a_whole_and_its_modules_are_not(root: Path) -> None:
    public = Package(root / "core/src").public_modules()
    inside = {name for name in public if name.count(".") > 1 and name.startswith("jackfield.")}
    assert inside == PUBLIC_IN_PACKAGES


def test_every_package_of_the_core_and_of_a_library_lists_its_names(distributions: list[Any]) -> None:
    for one in distributions:
        if not one.is_core and one.folder.parent.name != "libraries":
            continue
        for path in one.source.rglob("__init__.py"):
            text = path.read_text(encoding="utf-8")
            assert "\n__all__ = [" in text or not {"import", "def", "class"} & set(text.split('"""')[-1].split()), path


# --- what changes a line ---

BEFORE = """
from dataclasses import dataclass, field
from typing import ClassVar, Protocol, overload
from wool._spinning import spun
from wool import _spinning as spinning
from wool._spinning import Spindle

__all__ = ["Mill", "Yarn", "LIMIT", "spin", "spun", "Loom"]
LIMIT = 3

def spin(wool, /, length=1, *rest, speed, slow=False, **options): ...

@dataclass(frozen=True)
class Yarn:
    colour: str
    length: int = field(default=1, repr=False)
    kinds: ClassVar[int] = 2

    @property
    def weight(self): ...

class Mill(Spindle):
    name = "mill"

    def __init__(self, wool, *, fast=True):
        self.wool, self._own = wool, 1
        with wool:
            self.speed: int = 2

    async def work(self, hours=8): ...
    @classmethod
    def open(cls, key=None): ...
    @staticmethod
    def close(door): ...
    def _private(self): ...
    run, walk = spinning.run, spinning.walk

class Loom:
    @overload
    def weave(self, a: int): ...
    @overload
    def weave(self, a: str): ...
    def weave(self, a): ...
"""
SPINNING = """
def spun(yarn): ...
def run(self, far): ...
def walk(self, slowly=True): ...
class Spindle:
    def turn(self, times): ...
"""
LINES = """\
wool:
  LIMIT
  class Loom()
    weave(a)
  class Mill(Spindle)
    __init__(wool, *, fast=True)
    close(door)
    name = 'mill'
    open(key=None)
    run(far)
    speed: attribute
    turn(times)
    walk(slowly=True)
    wool: attribute
    async work(hours=8)
  class Yarn()
    __init__(colour, length=1)
    colour: field
    kinds: class variable = 2
    length: field = 1
    weight: property
  spin(wool, /, length=1, *rest, speed, slow=False, **options)
  spun(yarn)
wool.mills:
  Mill is wool.Mill
"""
CHANGES = {
    "a renamed function": ("def spin(", "def twist("),
    "a renamed method": ("def open(", "def start("),
    "a renamed parameter": ("hours=8", "days=8"),
    "another default": ("hours=8", "hours=9"),
    "a parameter that became required": ("hours=8", "hours"),
    "a new required parameter": ("cls, key=None", "cls, door, key=None"),
    "a keyword that became positional": ("wool, *, fast", "wool, fast"),
    "a parameter that lost its place": ("wool, /, length", "wool, length"),
    "a method that waits": ("def open(", "async def open("),
    "a field without its default": ("field(default=1, repr=False)", "field(repr=False)"),
    "a field in another place": ("colour: str\n", "weight_g: int = 0\n    colour: str = ''\n"),
    "a property that became a method": ("@property", ""),
    "an attribute of the constructor": ("self.speed", "self.pace"),
    "a name that is not exported": ('"LIMIT", ', ""),
    "a method of a private base": ("def turn(", "def rotate("),
    "a borrowed method": ("slowly=True", "slowly=False"),
    "a function of a private module": ("def spun(yarn)", "def spun(wool)"),
}  # fmt: skip
NO_CHANGES = {
    "a private method": ("def _private(self)", "def _other(self, more)"),
    "a body": ("self._own = wool, 1", "self._own = wool, 2"),
    "a type": ("colour: str", "colour: bytes"),
    "an overload": ("a: str", "a: bytes"),
}


def lines_of(folder: Path, old: str = "", new: str = "") -> str:
    (folder / "wool").mkdir(exist_ok=True)
    for name, text in {
        "__init__": BEFORE,
        "_spinning": SPINNING,
        "mills": "from wool import Mill\n__all__ = ['Mill']",
    }.items():
        (folder / f"wool/{name}.py").write_text(text.replace(old, new) if old else text, encoding="utf-8")
    return "".join(f"{line}\n" for line in Package(folder).lines())


def test_each_name_has_a_line_with_its_signature(tmp_path: Path) -> None:
    assert lines_of(tmp_path) == LINES


@pytest.mark.parametrize("change", CHANGES)
def test_what_breaks_callers_changes_a_line(tmp_path: Path, change: str) -> None:
    assert CHANGES[change][0] in BEFORE + SPINNING
    assert lines_of(tmp_path, *CHANGES[change]) != LINES


@pytest.mark.parametrize("change", NO_CHANGES)
def test_what_breaks_no_caller_changes_none(tmp_path: Path, change: str) -> None:
    assert NO_CHANGES[change][0] in BEFORE + SPINNING
    assert lines_of(tmp_path, *NO_CHANGES[change]) == LINES
