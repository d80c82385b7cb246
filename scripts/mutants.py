"""Change the code in small ways, one at a time, and see whether the tests notice.

python scripts/mutants.py                     a sample of every area in mutants.toml; fails below a recorded share
python scripts/mutants.py agents --count 40   more of one area
python scripts/mutants.py --seed 7            another sample

A change that no test notices is printed with its line: either a test is missing, or the line can go. Some changes make
no difference to anybody, so that no area reaches 1.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).resolve().parent.parent
AREAS_FILE = ROOT / "scripts/mutants.toml"
COUNT = 20  # of an area
PATIENCE_S = 120  # tests that take longer are caught in a loop that the change has made: they noticed
_SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
}
_OTHER_NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}


@dataclass(frozen=True)
class Area:
    """What is changed together, and the tests that must notice; paths from the repository's root."""

    name: str
    root: Path
    sources: tuple[str, ...]
    tests: tuple[str, ...]
    share: float


@dataclass(frozen=True)
class Mutant:
    """One changed file."""

    file: Path
    line: int
    change: str
    text: str


def areas() -> dict[str, Area]:
    """What `mutants.toml` says."""
    tables = tomllib.loads(AREAS_FILE.read_text(encoding="utf-8"))
    return {
        name: Area(name, Path(table["root"]), tuple(table["sources"]), tuple(table["tests"]), table["share"])
        for name, table in tables.items()
    }


def mutants(area: Area) -> list[Mutant]:
    """Every change there is in an area, in the order of the files and lines."""
    files = sorted(file for source in area.sources for file in (ROOT / area.root / source).rglob("*.py"))
    return [mutant for file in files for mutant in _of_file(file)]


def _of_file(file: Path) -> Iterator[Mutant]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    _forget_annotations(tree)
    for node in list(ast.walk(tree)):
        for name, field in list(ast.iter_fields(node)):
            for changed, what in _changes(node, name, field):
                line = getattr(node, "lineno", 0)
                setattr(node, name, changed)
                yield Mutant(file, line, what, ast.unparse(ast.fix_missing_locations(tree)))
                setattr(node, name, field)


def _forget_annotations(tree: ast.AST) -> None:
    """Leave out what says nothing when the program runs: docstrings, overloads, and what only a type checker reads."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        kept = [statement for statement in body if not _is_only_said(statement)]
        node.body = kept or [ast.Pass()]  # type: ignore[attr-defined]


def _is_only_said(statement: ast.stmt) -> bool:
    match statement:
        case ast.Expr(value=ast.Constant(value=str())):
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.FunctionDef(decorator_list=[ast.Name(id="overload")]):
            return True
    return False


def _changes(node: ast.AST, name: str, field: object) -> Iterator[tuple[object, str]]:
    """Other values for one field of one node, and what they mean."""
    if name == "body" and isinstance(field, list):
        yield from _without_statements(field)
    elif isinstance(node, ast.Constant):
        yield from _other_constants(field)
    elif isinstance(node, ast.BoolOp | ast.BinOp | ast.Compare):
        yield from _other_operators(field)
    elif isinstance(node, ast.If | ast.While | ast.IfExp) and name == "test" and isinstance(field, ast.expr):
        yield ast.UnaryOp(ast.Not(), copy.deepcopy(field)), "the condition becomes its opposite"
    elif isinstance(node, ast.Tuple | ast.Set | ast.List) and isinstance(field, list) and _has_constants(field):
        yield field[:-1], "the last entry is missing"
    elif isinstance(node, ast.Name) and field in _OTHER_NAMES:
        yield _OTHER_NAMES[str(field)], f"{field} becomes {_OTHER_NAMES[str(field)]}"


def _other_operators(field: object) -> Iterator[tuple[object, str]]:
    match field:
        case ast.AST() if other := _SWAPPED.get(type(field)):
            yield other(), f"{type(field).__name__} becomes {other.__name__}"
        case [ast.cmpop() as operator] if other := _SWAPPED.get(type(operator)):
            yield [other()], f"{type(operator).__name__} becomes {other.__name__}"
        case [ast.expr(), ast.expr(), *_]:  # of `and` and `or`
            yield list(reversed(field)), "the operands in the other order"


def _other_constants(field: object) -> Iterator[tuple[object, str]]:
    if isinstance(field, bool):
        yield not field, f"{field} becomes {not field}"
    elif isinstance(field, int):
        yield field + 1, f"{field} becomes {field + 1}"


def _without_statements(body: list[ast.stmt]) -> Iterator[tuple[object, str]]:
    for index, statement in enumerate(body):
        if isinstance(statement, ast.Expr | ast.AugAssign | ast.Raise | ast.Continue | ast.Break):
            yield [*body[:index], ast.Pass(), *body[index + 1 :]], f"without {ast.unparse(statement)[:60]!r}"


def _has_constants(elements: list[object]) -> bool:
    return len(elements) > 1 and all(isinstance(element, ast.Constant) for element in elements)


# --- running ---


class Copies:
    """Copies of an area's sources in which one file at a time is changed; Python finds them before the real ones."""

    def __init__(self, area: Area, folder: Path, count: int) -> None:
        self.area = area
        self._free: SimpleQueue[Path] = SimpleQueue()
        for number in range(count):
            where = folder / area.name / str(number)
            shutil.copytree(ROOT / area.root, where, ignore=shutil.ignore_patterns("__pycache__"))
            self._free.put(where)

    def is_noticed(self, mutant: Mutant | None) -> bool:
        """Whether a test fails with this change, or without any."""
        where = self._free.get()
        try:
            if mutant is None:
                return self._tests_fail(where)
            file = where / mutant.file.relative_to(ROOT / self.area.root)
            real = file.read_text(encoding="utf-8")
            self._write(file, mutant.text)
            try:
                return self._tests_fail(where)
            finally:
                self._write(file, real)
        finally:
            self._free.put(where)

    def _write(self, file: Path, text: str) -> None:
        for compiled in file.parent.glob(f"__pycache__/{file.stem}.*.pyc"):
            compiled.unlink()  # two changes in one second may have one size: Python would take the older
        file.write_text(text, encoding="utf-8")

    def _tests_fail(self, where: Path) -> bool:
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-m", "not slow", "-p", "no:cacheprovider"]
        environ = {**os.environ, "PYTHONPATH": str(where)}
        environ.pop("PYTHONDONTWRITEBYTECODE", None)
        try:
            done = subprocess.run(  # noqa: S603 - our own tests
                [*command, *self.area.tests],
                cwd=ROOT,
                env=environ,
                capture_output=True,
                timeout=PATIENCE_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return True
        return done.returncode != 0


def score(area: Area, *, count: int, seed: int, jobs: int, folder: Path) -> float:
    """The share of a sample of changes that the tests notice; prints those that they do not.

    Raises:
        SystemExit: The tests fail without any change.
    """
    everything = mutants(area)
    chosen = random.Random(seed).sample(everything, min(count, len(everything)))  # noqa: S311 - a sample, no secret
    copies = Copies(area, folder, jobs)
    if copies.is_noticed(None):
        sys.exit(f"{area.name}: its tests fail without any change: {' '.join(area.tests)}")
    with ThreadPoolExecutor(jobs) as pool:
        noticed = list(pool.map(copies.is_noticed, chosen))
    for mutant, seen in zip(chosen, noticed, strict=True):
        if not seen:
            _say(f"  not noticed: {mutant.file.relative_to(ROOT)}:{mutant.line}: {mutant.change}")
    share = sum(noticed) / len(noticed)
    _say(f"{area.name:18} {sum(noticed):4} of {len(noticed):4} noticed: {share:.2f} (recorded {area.share:.2f})")
    return share


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> int:
    """Run the areas that are asked for; 1 if one of them falls below what is recorded."""
    known = areas()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("area", nargs="*", choices=[[], *known], help="all, if none is named")
    parser.add_argument("--count", type=int, default=COUNT, help="changes of each area (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="which sample (%(default)s)")
    parser.add_argument("--jobs", type=int, default=2, help="at once (%(default)s)")
    options = parser.parse_args()
    below = []
    with tempfile.TemporaryDirectory() as folder:
        for name in options.area or known:
            share = score(known[name], count=options.count, seed=options.seed, jobs=options.jobs, folder=Path(folder))
            if share < known[name].share:
                below.append(name)
    if below:
        _say(f"below the recorded share: {', '.join(below)}. Write the tests, or take back what weakened them")
    return 1 if below else 0


if __name__ == "__main__":
    sys.exit(main())
