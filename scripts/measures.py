"""Print what the size and shape of the code are, beside what they should be. Nothing fails here: layers and cycles do.

python scripts/measures.py
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from radon.complexity import cc_visit

ROOT = Path(__file__).resolve().parent.parent
CORE_LINES = 8_500
MEAN_COMPLEXITY = 2.8
MOST_COMPLEXITY = 15
ANY_SHARE = 0.05
PUBLIC_METHODS = 12
CORE_MODULES = 12
MANY = 5  # of the largest, so many are named


@dataclass(frozen=True)
class Named:
    """A figure of one function or class."""

    figure: int
    name: str

    def __str__(self) -> str:
        return f"{self.name} {self.figure}"


def main() -> int:
    """Print the figures, each beside its goal."""
    files = sorted([*ROOT.glob("core/src/**/*.py"), *ROOT.glob("plugins/*/*/src/**/*.py")])
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in files}
    of_core = [path for path in files if ROOT / "core" in path.parents]
    core = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in of_core)
    code = sum(_lines_of_code(path, trees[path]) for path in of_core)
    functions = [one for path in files for one in _complexities(path)]
    slots = [slot for tree in trees.values() for slot in _typed_slots(tree)]
    uses_any = sum(any(isinstance(node, ast.Name) and node.id == "Any" for node in ast.walk(slot)) for slot in slots)
    classes = [one for path, tree in trees.items() for one in _public_methods(path, tree)]
    rows = [
        ("lines of the core", f"{core:,}", f"{CORE_LINES:,}", [Named(code, "of code:")]),
        ("mean complexity", f"{sum(one.figure for one in functions) / len(functions):.2f}", f"{MEAN_COMPLEXITY}", []),
        ("highest complexity", *_highest(functions, MOST_COMPLEXITY)),
        ("typed slots with Any", f"{uses_any / len(slots):.1%}", f"{ANY_SHARE:.0%}", []),
        ("public methods of a class", *_highest(classes, PUBLIC_METHODS)),
        ("modules of the core a plugin imports", *_highest(list(_core_imports(trees)), CORE_MODULES)),
    ]
    for label, figure, goal, named in rows:
        more = f"  ({', '.join(map(str, named))})" if named else ""
        sys.stdout.write(f"{label:38} {figure:>8}  goal {goal}{more}\n")
    return 0


def _lines_of_code(path: Path, tree: ast.Module) -> int:
    """The lines that are neither blank nor a comment nor a docstring."""
    documented = {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    lines = enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
    return sum(bool(text.strip()) and not text.lstrip().startswith("#") for at, text in lines if at not in documented)


def _highest(found: list[Named], goal: int) -> tuple[str, str, list[Named]]:
    highest = sorted(found, key=lambda one: -one.figure)
    return str(highest[0].figure), str(goal), [one for one in highest[:MANY] if one.figure > goal]


def _complexities(path: Path) -> Iterator[Named]:
    for block in cc_visit(path.read_text(encoding="utf-8")):
        if block.letter in ("F", "M"):
            yield Named(block.complexity, f"{path.stem}.{block.name}")


def _typed_slots(tree: ast.Module) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            arguments = node.args
            every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
            yield from (argument.annotation for argument in every if argument and argument.annotation)
            if node.returns:
                yield node.returns
        elif isinstance(node, ast.AnnAssign):
            yield node.annotation


def _public_methods(path: Path, tree: ast.Module) -> Iterator[Named]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and not node.name.endswith("Suite") and not node.name.startswith("_"):
            names = {part.name for part in node.body if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef)}
            yield Named(sum(not name.startswith(("_", "test_")) for name in names), f"{path.stem}.{node.name}")


def _core_imports(trees: dict[Path, ast.Module]) -> Iterator[Named]:
    modules: dict[str, set[str]] = {}
    for path, tree in trees.items():
        parts = path.relative_to(ROOT).parts
        if parts[0] == "core":
            continue
        found = modules.setdefault("/".join(parts[1:3]), set())
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").split(".")[0] == "jackfield":
                found.add(str(node.module))
    return (Named(len(found), plugin) for plugin, found in modules.items())


if __name__ == "__main__":
    sys.exit(main())
