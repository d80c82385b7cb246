"""Find the names that Python source uses from other packages, based on its syntax alone."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence


def running_nodes(tree: ast.AST) -> list[ast.AST]:
    """Return all nodes except those meant only for type checkers."""
    nodes = [tree]
    for node in nodes:  # grows during the loop
        if isinstance(node, ast.If) and _is_type_checking(node.test):
            nodes += node.orelse
        else:
            nodes += ast.iter_child_nodes(node)
    return nodes


def required_nodes(tree: ast.AST) -> list[ast.AST]:
    """Return the running nodes, except for the bodies of `try` statements that anticipate a missing name."""
    optional = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.Try) and any(_expects_absence(handler) for handler in node.handlers)
        for statement in node.body
        for part in ast.walk(statement)
    }
    return [node for node in running_nodes(tree) if id(node) not in optional]


def used_names(nodes: Sequence[ast.AST], is_wanted: Callable[[str], bool]) -> Iterator[str]:
    """Yield the names that nodes use from modules for which `is_wanted` returns True, as `module.name`."""
    aliases: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            aliases |= _aliases_of(node.names, is_wanted)
    for node in nodes:
        match node:
            case ast.ImportFrom(module=str(module), level=0) if is_wanted(module):
                yield from (f"{module}.{one.name}" for one in node.names if one.name != "*")
            case ast.Import(names=names):
                yield from (one.name for one in names if is_wanted(one.name))
            case ast.Attribute():
                if name := _dotted(node, aliases):
                    yield name


def _is_type_checking(test: ast.expr) -> bool:
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")
    return name == "TYPE_CHECKING"


def _expects_absence(handler: ast.ExceptHandler) -> bool:
    names = {node.id for node in ast.walk(handler.type) if isinstance(node, ast.Name)} if handler.type else set()
    return handler.type is None or bool(
        names & {"ImportError", "ModuleNotFoundError", "AttributeError", "Exception", "BaseException"}
    )


def _aliases_of(names: Iterable[ast.alias], is_wanted: Callable[[str], bool]) -> dict[str, str]:
    """Return the wanted modules, by the names under which they are imported."""
    wanted = [one for one in names if is_wanted(one.name)]
    top = [(one, one.name.partition(".")[0]) for one in wanted]
    return {one.asname or package: one.name if one.asname else package for one, package in top}


def _dotted(node: ast.Attribute, aliases: Mapping[str, str]) -> str:
    """Return `module.name` for an attribute of an imported module, or '' for anything else."""
    parts = [node.attr]
    value: ast.expr = node.value
    while isinstance(value, ast.Attribute):
        parts.append(value.attr)
        value = value.value
    if not (isinstance(value, ast.Name) and value.id in aliases):
        return ""
    return ".".join([aliases[value.id], *reversed(parts)])
