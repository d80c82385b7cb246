"""Print the highest complexities and the share of `Any`, beside their goals. Nothing fails here.

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
MOST_COMPLEXITY = 15
ANY_SHARE = 0.05
MANY = 5  # functions named at most


@dataclass(frozen=True)
class Named:
    """A figure of one function."""

    figure: int
    name: str

    def __str__(self) -> str:
        return f"{self.name} {self.figure}"


def main() -> int:
    """Print each figure beside its goal."""
    files = sorted([*ROOT.glob("core/src/**/*.py"), *ROOT.glob("plugins/*/*/src/**/*.py")])
    functions = [function for path in files for function in _complexities(path)]
    slots = [slot for path in files for slot in _typed_slots(ast.parse(path.read_text(encoding="utf-8")))]
    uses_any = sum(any(isinstance(node, ast.Name) and node.id == "Any" for node in ast.walk(slot)) for slot in slots)
    rows = [
        ("highest complexity", *_highest(functions, MOST_COMPLEXITY)),
        ("typed slots with Any", f"{uses_any / len(slots):.1%}", f"{ANY_SHARE:.0%}", []),
    ]
    for label, figure, goal, named in rows:
        more = f"  ({', '.join(map(str, named))})" if named else ""
        sys.stdout.write(f"{label:22} {figure:>6}  goal {goal}{more}\n")
    return 0


def _highest(functions: list[Named], goal: int) -> tuple[str, str, list[Named]]:
    highest = sorted(functions, key=lambda function: -function.figure)
    return str(highest[0].figure), str(goal), [function for function in highest[:MANY] if function.figure > goal]


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


if __name__ == "__main__":
    sys.exit(main())
