"""An asynchronous generator that iterates another one closes it: left early, nobody else does so in time."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

OURS = ("core/src", "plugins/agents", "plugins/libraries/agent-parts/src")


def unclosed(tree: ast.AST) -> Iterator[int]:
    """The lines where a generator passes on what it iterates, and does not close it."""
    for function in ast.walk(tree):
        if isinstance(function, ast.AsyncFunctionDef):
            nodes = list(ast.walk(function))
            closed = {ast.unparse(part) for node in nodes if isinstance(node, ast.AsyncWith) for part in closing(node)}
            for node in nodes:
                if isinstance(node, ast.AsyncFor) and ast.unparse(node.iter) not in closed:
                    yield from (node.lineno for part in ast.walk(node) if isinstance(part, ast.Yield))


def closing(block: ast.AsyncWith) -> Iterator[ast.expr]:
    """What a block names, and what it was given."""
    for item in block.items:
        if isinstance(item.context_expr, ast.Call):
            yield from item.context_expr.args
        if item.optional_vars is not None:
            yield item.optional_vars


def test_what_passes_events_on_closes_what_they_come_from(root: Path) -> None:
    files = [file for folder in OURS for file in sorted((root / folder).rglob("*.py")) if "src" in file.parts]
    assert len(files) > 100
    found = {f"{file.name}:{line}" for file in files for line in unclosed(ast.parse(file.read_text(encoding="utf-8")))}
    assert found == set()


def test_one_that_does_not_is_found() -> None:
    inside = "async for event in {}:\n  yield event"
    wrong = ast.parse(f"async def f():\n {inside.format('g()')}")
    right = ast.parse(
        f"async def f():\n async with closing(g()) as events:\n  {inside.format('events')}".replace("\n  y", "\n   y")
    )
    assert (list(unclosed(wrong)), list(unclosed(right))) == ([2], [])
